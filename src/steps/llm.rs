//! `:llm`: one request to a model of any provider.
//!
//! A config becomes a call (`messages`, `definitions`, `options`), which is sent to the provider that `provider` chose
//! (`ask`); the reply is checked (`answer`) and made a value (`envelope`). The wire format of a family is one file of
//! pure functions; this module does not know which format is used.

mod answer;
pub mod anthropic;
mod ask;
mod attachments;
mod aws;
mod azure;
pub mod bedrock;
pub(crate) mod bounds;
pub mod call;
pub mod call_id;
pub mod capability;
pub mod chat_completions;
pub mod citations;
pub mod claude;
mod definitions;
pub mod dialect;
mod envelope;
pub mod error;
mod estimate;
pub mod event_stream;
mod fallback;
pub mod family;
pub mod frames;
pub mod gemini;
mod images;
mod messages;
mod models;
pub(crate) mod needs;
mod options;
pub(crate) mod output;
mod pause;
mod places;
pub mod prices;
mod provider;
pub mod provider_tool;
mod provider_tools;
pub mod responses;
mod scripted;
pub mod sigv4;
mod spec;
mod stop;
pub mod subset;
pub mod surrogates;

use flowstone_flow::bounds::StepBounds;
use flowstone_flow::diagnostic::Diagnostic;
use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::permission::PlannedNeed;
use flowstone_flow::step::{
    Effect, LocalFuture, Outcome, Progress, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

use crate::connections::Auth;
use crate::fields::{Fields, listed};
use crate::literal::{self, Remarks};
use crate::{agent, json, rendered};
use call::Call;
use capability::Capability;
pub use definitions::executes;
use dialect::Dialect;
pub(crate) use estimate::ESTIMATED;
use images::Sight;
use output::Wanted;
pub use provider::{BY_ENVIRONMENT, UsualModel, usual_model};
use provider::{Backend, Endpoint};
pub(crate) use provider_tools::FIELD as PROVIDER_TOOLS;

/// The built-in model providers.
pub const PROVIDERS: &[&Dialect] = &[
    &dialect::ANTHROPIC,
    &dialect::AZURE_OPENAI,
    &dialect::BEDROCK,
    &dialect::DEEPSEEK,
    &dialect::FIREWORKS,
    &dialect::GOOGLE,
    &dialect::GOOGLE_AI,
    &dialect::GROQ,
    &dialect::LLAMA_CPP,
    &dialect::LM_STUDIO,
    &dialect::MISTRAL,
    &dialect::OLLAMA,
    &dialect::OPENAI,
    &dialect::OPENAI_CHAT,
    &dialect::OPENAI_COMPATIBLE,
    &dialect::OPENROUTER,
    &dialect::SCRIPTED,
    &dialect::TOGETHER,
    &dialect::VLLM,
];

/// Returns the environment variables, beside keys, that model calls depend on.
pub(crate) fn variables() -> Vec<String> {
    provider::variables()
}

/// The `:llm` step.
#[derive(Default)]
pub struct Llm;

impl Step for Llm {
    fn spec(&self) -> &'static StepSpec {
        &spec::SPEC
    }

    fn effect(&self, config: &Value) -> Effect {
        match executes(config) {
            true => Effect::Steps,
            false => spec::SPEC.effect,
        }
    }

    /// Returns the answer. Calls of tools that the flow must make are not an answer yet; executed calls have one.
    fn judged(&self, value: &Value) -> Option<Value> {
        let calls = value.get("tool-calls").and_then(json::items);
        let is_answer = calls.is_none_or(|it| it.iter().all(|call| call.get("success").is_some()));
        is_answer.then(|| value.get("content").unwrap_or(value).clone())
    }

    fn remarks(&self, flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        let mut remarks = rendered::remarks(flow, config, "llm-prompt", false);
        let asks = ["input", "messages", "objective", "prompt", "template"];
        if !literal::has_any(config, &asks) {
            literal::remark::<()>(&mut remarks, "", Err(messages::nothing_to_ask()));
        }
        output_remarks(config, &mut remarks);
        remarks
    }

    fn settings_remarks(
        &self,
        flow: &Flow,
        settings: &Value,
        config: &Value,
    ) -> Vec<(&'static str, Diagnostic)> {
        crate::connections::unknown_names(flow, settings, config)
    }

    fn needs(&self, flow: &Flow, settings: &Value, config: &Value) -> Vec<PlannedNeed> {
        needs::of_agent(flow, settings, config)
    }

    fn bounds(&self, flow: &Flow, settings: &Value, config: &Value) -> StepBounds {
        // Tools that are computed may be executed.
        let tools = config.get("tools").unwrap_or(&Value::Nil);
        let may_execute =
            config.as_map().is_none() || !literal::is_known(tools) || executes(config);
        bounds::bounds(flow, settings, config, may_execute)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let config = with_template(cx, config)?;
            if executes(&config) {
                check_loop(cx, &config)?;
                return agent::run_loop(cx, config).await.map(Outcome::Value);
            }
            let value = match fallback::names(&config)? {
                None => asked(cx, &config).await?,
                // Boxed: most calls have one connection.
                Some(names) => Box::pin(first_answer(cx, &config, &names)).await?,
            };
            tell_spent(cx, &value);
            Ok(Outcome::Value(value))
        })
    }
}

/// Asks the model of a config with one connection.
async fn asked(cx: &StepContext, config: &Value) -> Result<Value, StepError> {
    let fields = Fields::new(config);
    let endpoint = provider::choose(cx, fields)?;
    refuse_unsupported(fields, &endpoint)?;
    let wanted = Wanted::read(fields)?;
    let mut call = call(cx, fields, &endpoint, &wanted).await?;
    let refused = endpoint.dialect.family.refuses(&call);
    refuse_of_model(&refused, &endpoint)?;
    answer::answer(cx, &endpoint, &wanted, &mut call).await
}

/// Asks the models of several connections in order, until one answers.
async fn first_answer(
    cx: &StepContext,
    config: &Value,
    names: &[String],
) -> Result<Value, StepError> {
    let configs = fallback::configs(cx, config, names)?;
    let mut failures = fallback::Failures::default();
    let mut left = names.iter().zip(&configs).peekable();
    while let Some((name, one)) = left.next() {
        let next = left.peek().map(|(next, _)| next.as_str());
        match asked(cx, one).await {
            Ok(answer) => return Ok(failures.answered(name, &answer)),
            Err(error) => failures.note(cx, config, (name, next), error)?,
        }
    }
    Err(messages::nothing_to_ask())
}

/// Checks the answer format and the authentication of a config, as far as they are written out.
pub(crate) fn output_remarks(config: &Value, remarks: &mut Remarks) {
    let parts = ["json-schema", "output", "repair", "response-format"];
    let known = literal::known(config);
    let is_known = |key: &str| config.get(key).is_none_or(literal::is_known);
    if parts.into_iter().all(is_known) {
        let key = parts.into_iter().find(|key| known.get(key).is_some());
        let read = Wanted::read(Fields::new(&known));
        if let (Some(key), false) = (key, literal::has_any(config, &["expect"])) {
            literal::remark(remarks, key, read);
        }
    }
    if let Some(auth @ Value::Map(_)) = known.get("auth") {
        literal::remark(remarks, "auth", Auth::read(":auth", auth));
    }
    literal::remark(remarks, "connection", fallback::names(&known));
}

/// Reports the cost of an answer to the run's observers.
fn tell_spent(cx: &StepContext, value: &Value) {
    if let Some(tokens) = value.get("tokens-used").and_then(Value::as_int) {
        let usd = match value.get("cost-usd") {
            Some(Value::Float(usd)) => Some(*usd),
            _ => None,
        };
        cx.emit(Progress::Spent { tokens, usd });
    }
}

/// Makes the call that a config describes.
async fn call(
    cx: &StepContext,
    fields: Fields<'_>,
    endpoint: &Endpoint,
    wanted: &Wanted,
) -> Result<Call, StepError> {
    let sight = Sight {
        provider: &endpoint.provider,
        model: &endpoint.model,
        sees: endpoint.can(Capability::Vision),
        fetches: endpoint.can(Capability::ImageUrls),
        files: endpoint.dialect.family.files(&endpoint.dialect),
        is_fitting: false,
    };
    let tools = definitions::read(fields)?;
    if !tools.tools.is_empty() && !endpoint.can(Capability::ToolCalling) {
        return Err(unable(
            endpoint,
            "does not support tools, but the step has `:tools`",
        ));
    }
    if wanted.is_held() && !endpoint.can(Capability::StructuredOutput) {
        return Err(unable(
            endpoint,
            "cannot be constrained to a schema, but `:output` has `:strict? true`",
        ));
    }
    Ok(Call {
        model: endpoint.model.clone(),
        messages: messages::read(cx, fields, &sight).await?,
        tools: tools.tools,
        tool_choice: tools.choice,
        provider_tools: provider_tools::read(fields, endpoint)?,
        options: options::read(fields, endpoint, wanted)?,
        output: wanted.output.clone(),
        extra: match endpoint.way {
            Backend::Server(_) => options::extra(fields, &endpoint.provider, &endpoint.dialect)?,
            Backend::Script(_) => Vec::new(),
        },
    })
}

/// Rejects options that the provider does not support, by name, before anything is sent.
fn refuse_unsupported(fields: Fields<'_>, endpoint: &Endpoint) -> Result<(), StepError> {
    let lacking = Capability::ALL
        .iter()
        .filter(|it| it.is_field() && !endpoint.dialect.can(**it))
        .map(|it| it.name());
    if fields.has("reasoning-effort")
        && endpoint.dialect.can(Capability::ReasoningEffort)
        && !endpoint.can(Capability::ReasoningEffort)
    {
        return Err(unable(endpoint, "does not take `:reasoning-effort`"));
    }
    let given: Vec<&str> = lacking.filter(|key| fields.has(key)).collect();
    if given.is_empty() {
        return Ok(());
    }
    let message = format!("`:{}` cannot do {}", endpoint.provider, listed(&given));
    Err(StepError::config("E0809", message).hint("leave them out, or use another `:provider`"))
}

/// Returns the error for an option that the model does not support.
fn unable(endpoint: &Endpoint, what: &str) -> StepError {
    let message = format!("`{}` of `:{}` {what}", endpoint.model, endpoint.provider);
    StepError::new("E0821", "unsupported", message)
        .hint("use another `:model`, or declare the abilities of this one: `:capabilities` in its connection or in `:llm-providers`")
}

/// Rejects executed tools for models that are not known to call tools well.
///
/// # Errors
/// Kind `unsupported`, before anything is sent.
pub(crate) fn check_loop(cx: &StepContext, config: &Value) -> Result<(), StepError> {
    if let Some(names) = fallback::names(config)? {
        for name in names {
            let one = (Value::keyword("connection"), Value::keyword(&name));
            check_loop(cx, &rendered::merged(config, &Value::map([one])))?;
        }
        return Ok(());
    }
    // The first turn reports other errors of the choice.
    let Ok(endpoint) = provider::choose(cx, Fields::new(config)) else {
        return Ok(());
    };
    let lacks = |it: Capability| !endpoint.dialect.can(it);
    match lacks(Capability::AgenticToolLoop) || lacks(Capability::ToolCalling) {
        true => Err(
            unable(&endpoint, "is not known to work with tools in a loop").hint(
                "as in `:capabilities #{:tool-calling :structured-output :agentic-tool-loop}`",
            ),
        ),
        false => Ok(()),
    }
}

/// Rejects options that this model does not support, although others of its provider do.
fn refuse_of_model(names: &[&str], endpoint: &Endpoint) -> Result<(), StepError> {
    if names.is_empty() {
        return Ok(());
    }
    let message = format!(
        "`{}` of `:{}` does not accept {} as set by the step",
        endpoint.model,
        endpoint.provider,
        listed(names)
    );
    Err(StepError::config("E0809", message).hint("leave it out, or use another `:model`"))
}

/// Merges the step's options over its template.
fn with_template(cx: &StepContext, config: Value) -> Result<Value, StepError> {
    let Some(template) = rendered::rendered(cx, Fields::new(&config), "llm-prompt")? else {
        return Ok(config);
    };
    let own = |key: &str| {
        let inside = config.get("input").and_then(|input| input.get(key));
        let found = config.get(key).filter(|it| !it.is_nil());
        found.or(inside).is_some_and(|it| !it.is_nil())
    };
    // Messages of the step replace the template's prompt.
    let is_asked = own("prompt") || own("messages");
    let keys = [("prompt", is_asked), ("system", own("system"))];
    let under = keys
        .into_iter()
        .filter(|(_, is_own)| !is_own)
        .filter_map(|(key, _)| Some((Value::keyword(key), template.get(key)?.clone())));
    let given = config.as_map().into_iter().flat_map(|map| map.iter());
    let given = given.filter(|(key, _)| {
        let name = name_of(key);
        name.is_none_or(|name| !matches!(&*name, "data" | "template"))
    });
    let given = Value::map(given.map(|(key, value)| (key.clone(), value.clone())));
    Ok(rendered::merged(&Value::map(under), &given))
}
