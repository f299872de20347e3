//! `:llm`: one question to a model, whoever provides it.
//!
//! This file makes a call of the config, sends it, checks the answer and makes a value of it. The wire
//! format of a family is one file of pure functions; which provider is asked is decided in `provider`.

pub mod anthropic;
mod aws;
mod azure;
pub mod bedrock;
pub mod call;
pub mod call_id;
pub mod capability;
pub mod chat_completions;
pub mod claude;
mod config;
pub mod dialect;
pub mod error;
pub mod event_stream;
pub mod family;
pub mod frames;
pub mod gemini;
pub(crate) mod output;
mod provider;
pub mod responses;
pub mod sigv4;
pub mod subset;

use std::time::Duration;

use flowstone_engine::diagnostic::Diagnostic;
use flowstone_engine::flow::Flow;
use flowstone_engine::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Progress, Retry, Step, StepContext, StepError,
    StepSpec,
};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::http::client::{self, Incoming, Limits, Request};
use crate::http::error::{Again, HttpError, header};
use crate::sse;
use crate::{http, json, rendered};
use call::{Call, Delta, Message, Reply, Role, ToolCall, ToolChoice, Usage};
use dialect::Dialect;
use error::LlmError;
use family::{Family, Stream};
use output::Wanted;
use provider::Endpoint;

/// Who can be asked.
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

const SPEC: StepSpec = StepSpec {
    kind: "llm",
    operations: None,
    aliases: &[],
    doc: "Asks a model and returns `{:content :usage :model :provider :finish-reason}`.\n\n\
        With `:output {:format :json :schema [...]}` the content is data, checked here against the schema. Text \
        streams to whoever watches the run. Which provider is asked follows from `:provider`, the connection, or the \
        keys in the environment.",
    fields: FIELDS,
    examples: &[
        "(flow/step :llm :summary {:connection :ai :prompt \"Say in one line what Clojure is.\"})",
        "(flow/step :llm :triage {:connection :ai :prompt ticket :output {:format :json :schema [:map [:urgent :boolean] [:team [:enum \"billing\" \"support\"]]]}})",
    ],
    effect: Effect::Read,
};

const SCALAR: FieldType = FieldType::Number;

const FIELDS: &[Field] = &[
    Field::optional(
        "api-version",
        FieldType::Text,
        "For Azure: the version of its interface.",
    ),
    Field::optional(
        "auth",
        FieldType::Map,
        "`{:type :bearer :secret-ref :name}`, instead of the connection's.",
    ),
    Field::optional(
        "available-steps",
        FieldType::Items,
        "Steps as tools. Not supported yet.",
    ),
    Field::optional(
        "base-url",
        FieldType::Text,
        "Where the provider is, instead of its usual address.",
    ),
    Field::optional(
        "cache-system?",
        FieldType::Bool,
        "Whether the provider is to keep the system prompt and the tools: cheaper when they are sent again.",
    ),
    Field::optional(
        "connection",
        FieldType::Name,
        "A slot of `:requires`, a connection of `flowstone.edn`, or a provider.",
    ),
    Field::optional("data", FieldType::Map, "The data of the `:template`."),
    Field::optional("deployment", FieldType::Text, "For Azure: the deployment."),
    Field::optional("frequency-penalty", SCALAR, "Forwarded."),
    Field::optional(
        "input",
        FieldType::Map,
        "`:prompt`, `:messages` and `:system` in one map.",
    ),
    Field::optional(
        "json-schema",
        FieldType::Map,
        "A JSON Schema for the answer; `:output` is the newer way.",
    ),
    Field::optional(
        "max-iterations",
        FieldType::Int,
        "For tools that are run. Not supported yet.",
    ),
    Field::optional(
        "max-repeated-tool-calls",
        FieldType::Int,
        "For tools that are run. Not supported yet.",
    ),
    Field::optional("max-tokens", FieldType::Int, "How long the answer may be."),
    Field::optional(
        "max-tool-calls",
        FieldType::Int,
        "For tools that are run. Not supported yet.",
    ),
    Field::optional(
        "messages",
        FieldType::Items,
        "The conversation: `[{:role :user :content \"...\"}]`.",
    ),
    Field::optional("model", FieldType::Text, "Which model."),
    Field::optional(
        "openai",
        FieldType::Map,
        "`{:responses {...}}`: added to a request of OpenAI's Responses interface as it is.",
    ),
    Field::optional(
        "output",
        FieldType::Either(&[FieldType::Map, FieldType::Name]),
        "`{:format :json :schema [...]}`: a Malli form, or JSON Schema as a map.",
    ),
    Field::optional("presence-penalty", SCALAR, "Forwarded."),
    Field::optional(
        "previous-response-id",
        FieldType::Text,
        "For OpenAI: the `:response-id` of the answer that this goes on from.",
    ),
    Field::optional(
        "prompt",
        FieldType::Any,
        "What to ask, instead of `:messages`. Data is sent as JSON.",
    ),
    Field::optional("prompt-cache-key", FieldType::Text, "Forwarded."),
    Field::optional(
        "provider",
        FieldType::Name,
        "Which provider: `:openai`, `:ollama`, one of `:llm-providers` ...",
    ),
    Field::optional(
        "provider-opts",
        FieldType::Map,
        "`{:openrouter {...}}`: added to the request as it is.",
    ),
    Field::optional(
        "reasoning-effort",
        FieldType::Name,
        "`:low`, `:medium` or `:high`.",
    ),
    Field::optional(
        "repair",
        FieldType::Int,
        "How often a wrong answer goes back to the model with the problem. Default 0.",
    ),
    Field::optional(
        "response-format",
        FieldType::Any,
        "`:json`, or the provider's own map. Wins over `:output`.",
    ),
    Field::optional("seed", FieldType::Int, "Forwarded."),
    Field::optional(
        "stop",
        FieldType::Either(&[FieldType::Text, FieldType::Items]),
        "Where the answer ends.",
    ),
    Field::optional("system", FieldType::Text, "The system prompt."),
    Field::optional("temperature", SCALAR, "Forwarded."),
    Field::optional(
        "template",
        FieldType::Name,
        "A template of type `:llm-prompt`. What the step says itself wins.",
    ),
    Field::optional(
        "tools",
        FieldType::Either(&[FieldType::Map, FieldType::Items]),
        "Tools that the model may ask for: `[{:name :description :parameters}]`. The calls are returned under `:tool-calls`.",
    ),
    Field::optional("top-p", SCALAR, "Forwarded."),
];

/// How long a stream may say nothing. Models that think can be silent for minutes.
const IDLE: Duration = Duration::from_secs(180);

/// How long a call may take when the step has no `:timeout`.
const TOTAL: Duration = Duration::from_secs(1800);

impl Step for Llm {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn remarks(&self, flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        rendered::remarks(flow, config, "llm-prompt", false)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let config = with_template(cx, config)?;
            let fields = Fields::new(&config);
            let endpoint = provider::choose(cx, fields)?;
            config::refuse_unsupported(fields, &endpoint.provider, &endpoint.dialect)?;
            let wanted = Wanted::read(fields)?;
            let call = Call {
                model: endpoint.model.clone(),
                messages: config::messages(cx, fields).await?,
                tools: config::tools(fields)?,
                tool_choice: ToolChoice::Auto,
                options: config::options(fields)?,
                output: wanted.output.clone(),
                extra: config::extra(fields, &endpoint.provider, &endpoint.dialect)?,
            };
            let refused = endpoint.dialect.family.refuses(&call);
            config::refuse_of_model(&refused, &endpoint.provider, &endpoint.model)?;
            answer(cx, &endpoint, &wanted, call)
                .await
                .map(Outcome::Value)
        })
    }
}

fn with_template(cx: &StepContext, config: Value) -> Result<Value, StepError> {
    let Some(template) = rendered::rendered(cx, Fields::new(&config), "llm-prompt")? else {
        return Ok(config);
    };
    let of = |key: &str| {
        template
            .get(key)
            .map(|value| (Value::keyword(key), value.clone()))
    };
    let under = Value::map(["prompt", "system"].iter().filter_map(|key| of(key)));
    Ok(rendered::merged(&under, &config))
}

/// Asks, checks, and asks again where the answer may be repaired.
async fn answer(
    cx: &StepContext,
    endpoint: &Endpoint,
    wanted: &Wanted,
    mut call: Call,
) -> Result<Value, StepError> {
    let mut usage: Option<Usage> = None;
    let mut asked = 0;
    loop {
        asked += 1;
        let reply = ask(cx, endpoint, &call).await?;
        usage = match (usage, reply.usage) {
            (Some(before), Some(now)) => Some(before.plus(now)),
            (before, now) => before.or(now),
        };
        refused(endpoint, &reply)?;
        let is_call = !reply.tool_calls.is_empty();
        if is_call || !wanted.is_data() {
            return Ok(envelope(
                endpoint,
                Value::from(reply.content.as_str()),
                &reply,
                usage,
                asked,
            ));
        }
        match wanted.take(&reply.content) {
            Ok(content) => return Ok(envelope(endpoint, content, &reply, usage, asked)),
            Err(_) if reply.finish_reason == "length" => {
                return Err(LlmError::CutShort {
                    content: reply.content,
                }
                .into());
            }
            Err(problem) if asked > wanted.repairs => {
                return Err(LlmError::BadOutput {
                    problem,
                    content: reply.content,
                }
                .into());
            }
            Err(problem) => {
                cx.emit(Progress::Status(format!(
                    "the answer is not right, asking again: {problem}"
                )));
                call.messages
                    .push(Message::text(Role::Assistant, reply.content));
                let ask = format!(
                    "That answer is not right: {problem}\nAnswer again, with one JSON document and nothing else."
                );
                call.messages.push(Message::text(Role::User, ask));
            }
        }
    }
}

fn refused(endpoint: &Endpoint, reply: &Reply) -> Result<(), LlmError> {
    if reply.finish_reason == "content_filter" {
        let message = match reply.refusal.as_str() {
            "" => "its content filter stopped the answer".to_string(),
            why => format!("its content filter stopped the answer ({why})"),
        };
        return Err(LlmError::Filtered {
            provider: endpoint.provider.clone(),
            message,
        });
    }
    // What was said before a refusal is not an answer.
    if reply.finish_reason == "refusal" || !reply.refusal.is_empty() && reply.content.is_empty() {
        return Err(LlmError::Refused {
            message: reply.refusal.clone(),
        });
    }
    Ok(())
}

/// Sends one call and puts the streamed answer together.
async fn ask(cx: &StepContext, endpoint: &Endpoint, call: &Call) -> Result<Reply, LlmError> {
    let timeout = http::timeout(cx, TOTAL);
    let family = endpoint.dialect.family;
    let body = family.encode(call, &endpoint.dialect);
    let url = match &endpoint.url {
        Some(url) => url.clone(),
        None => family.address(&endpoint.base, call),
    };
    let own = family.headers().iter();
    let own = own.map(|(name, value)| ((*name).to_string(), (*value).to_string()));
    let mut headers: Vec<(String, String)> = own.collect();
    headers.extend(endpoint.headers.clone());
    headers.push(("content-type".into(), "application/json".into()));
    headers.push(("accept".into(), family.frames().accept().into()));
    let mut request = Request {
        method: reqwest::Method::POST,
        url,
        headers,
        secret_headers: endpoint.secret_headers.clone(),
        body: Some(body.to_string().into_bytes()),
        limits: Limits {
            timeout,
            max_redirects: 3,
            ..Limits::default()
        },
        route: endpoint.route.clone(),
    };
    if let Some(signer) = &endpoint.signer {
        let kind = [("content-type".into(), "application/json".into())];
        let body = request.body.as_deref().unwrap_or_default();
        let proof = signer.sign("POST", &request.url, &kind, body, cx.now_ms());
        request.secret_headers.extend(proof);
    }
    cx.emit(Progress::Status(format!(
        "asking {} ({})",
        endpoint.provider, call.model
    )));
    let incoming = client::open(request).await?;
    if incoming.status >= 400 {
        return Err(LlmError::from_answer(
            &endpoint.provider,
            &incoming.collect().await?,
        ));
    }
    let is_stream =
        header(&incoming.headers, "content-type").is_none_or(|kind| !kind.contains("json"));
    if !is_stream {
        let answer = incoming.collect().await?;
        let reply = family.decode(&endpoint.provider, &answer.body)?;
        cx.emit(Progress::Text(reply.content.clone()));
        return Ok(reply);
    }
    streamed(cx, &endpoint.provider, family, incoming).await
}

async fn streamed(
    cx: &StepContext,
    provider: &str,
    family: &dyn Family,
    mut incoming: Incoming,
) -> Result<Reply, LlmError> {
    /// No event of an honest server is larger.
    const MOST: usize = 18 << 20;
    let mut stream = family.stream(provider);
    let mut decoder = family.frames().decoder();
    let mut first = Vec::new();
    let mut any = false;
    while !stream.is_done() {
        let chunk = incoming
            .next(Some(IDLE))
            .await
            .map_err(|error| broken(provider, &*stream, error))?;
        let Some(chunk) = chunk else { break };
        if !any {
            first.extend_from_slice(&chunk);
        }
        let events = decoder.push(&chunk);
        for event in events.map_err(|cause| not_a_stream(provider, &cause, &chunk))? {
            any = true;
            take(cx, &mut *stream, &event)?;
        }
        if decoder.waiting().max(first.len()) > MOST {
            return Err(not_a_stream(provider, "an event that does not end", &first));
        }
    }
    if let Some(event) = decoder.finish() {
        any = true;
        take(cx, &mut *stream, &event)?;
    }
    // Some do not stream, and do not say what they send instead.
    let is_json = matches!(first.trim_ascii_start().first(), Some(b'{' | b'['));
    if !any && is_json {
        let reply = family.decode(provider, &first)?;
        cx.emit(Progress::Text(reply.content.clone()));
        return Ok(reply);
    }
    if !any && !first.is_empty() {
        return Err(not_a_stream(provider, "no event in what it sent", &first));
    }
    stream.finish()
}

fn take(cx: &StepContext, stream: &mut dyn Stream, event: &sse::Event) -> Result<(), LlmError> {
    for delta in stream.push(event)? {
        cx.emit(match delta {
            Delta::Text(text) => Progress::Text(text),
            Delta::Thought(text) => Progress::Thought(text),
        });
    }
    Ok(())
}

fn not_a_stream(provider: &str, cause: &str, first: &[u8]) -> LlmError {
    LlmError::Malformed {
        provider: provider.into(),
        cause: cause.into(),
        preview: http::error::preview(first),
    }
}

/// Names what happened to a stream that was under way.
fn broken(provider: &str, stream: &dyn Stream, error: HttpError) -> LlmError {
    let provider = provider.to_string();
    match error {
        HttpError::TimedOut { limit, .. } => LlmError::Stalled {
            provider,
            idle: limit,
            chars: stream.chars(),
        },
        HttpError::CutOff { cause, .. } => LlmError::BrokeOff {
            provider,
            cause,
            chars: stream.chars(),
        },
        error => LlmError::Http(error),
    }
}

fn envelope(
    endpoint: &Endpoint,
    content: Value,
    reply: &Reply,
    usage: Option<Usage>,
    iterations: usize,
) -> Value {
    let key = Value::keyword;
    let model = if reply.model.is_empty() {
        &endpoint.model
    } else {
        &reply.model
    };
    let mut facts = vec![(key("content"), content)];
    if !reply.tool_calls.is_empty() {
        facts.push((
            key("tool-calls"),
            Value::vector(reply.tool_calls.iter().map(tool_call)),
        ));
    }
    if let Some(usage) = usage {
        let mut counts = vec![
            (key("prompt-tokens"), Value::Int(usage.prompt)),
            (key("completion-tokens"), Value::Int(usage.completion)),
            (key("total-tokens"), Value::Int(usage.total)),
        ];
        counts.extend(
            usage
                .cached
                .map(|count| (key("cached-tokens"), Value::Int(count))),
        );
        counts.extend(
            usage
                .reasoning
                .map(|count| (key("reasoning-tokens"), Value::Int(count))),
        );
        facts.push((key("usage"), Value::map(counts)));
        facts.push((key("tokens-used"), Value::Int(usage.total)));
    }
    facts.push((key("model"), Value::from(model.as_str())));
    facts.push((key("provider"), Value::keyword(&endpoint.provider)));
    facts.push((
        key("finish-reason"),
        Value::from(reply.finish_reason.as_str()),
    ));
    facts.push((key("iterations"), Value::from(iterations)));
    Value::map(facts)
}

/// Returns a call of a tool. Arguments that are not JSON are handed over as the model wrote them.
fn tool_call(call: &ToolCall) -> Value {
    let text = if call.arguments.trim().is_empty() {
        "{}"
    } else {
        &call.arguments
    };
    let arguments = match serde_json::from_str(text) {
        Ok(arguments) => ("arguments", json::from_json(&arguments)),
        Err(_) => ("arguments-text", Value::from(text)),
    };
    Value::map([
        (
            Value::keyword("tool-call-id"),
            Value::from(call.id.as_str()),
        ),
        (Value::keyword("name"), Value::from(call.name.as_str())),
        (Value::keyword(arguments.0), arguments.1),
    ])
}

impl From<LlmError> for StepError {
    fn from(error: LlmError) -> StepError {
        if let LlmError::Http(error) = error {
            return error.into();
        }
        let (code, kind) = error.code();
        let retry = match error.again() {
            Again::Never => Retry::Never,
            Again::Later => Retry::Backoff,
            Again::After(wait) => Retry::After(wait),
        };
        let step = StepError::new(code, kind, error.to_string())
            .hint(error.hint())
            .retry(retry);
        match error {
            LlmError::BadOutput { content, problem } => {
                step.with("content", content).with("problem", problem)
            }
            LlmError::CutShort { content } => step.with("content", content),
            LlmError::Malformed { preview, .. } => step.with("preview", preview),
            LlmError::BrokeOff { cause, .. } => step.with("cause", cause),
            LlmError::BadRequest { status, .. } | LlmError::Overloaded { status, .. } => {
                step.with("status", i64::from(status))
            }
            _ => step,
        }
    }
}
