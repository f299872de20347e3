//! `:kit`: performs a tool of the build kit on the flow of the run.
//!
//! A call that changes something is made at most once: the step notes that it begins and what it answered, so a step that is
//! performed again after a crash returns the answer, or says that the call was interrupted. What a person has to agree to, the
//! agent asks before, in place; the step compares the digest that they agreed to.

use flowstone_engine::{Engine, EngineError};
use flowstone_flow::flow::name_of;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_flow::tools::kit as known;
use flowstone_lang::value::Value;
use flowstone_model::json::{from_json, items, to_json};
use flowstone_project::registry::FlowRegistry;
use serde_json::{Value as Json, json};
use tokio::task::spawn_local;

use super::error::KitError;
use super::place::{Place, check_owner, permissions};
use super::tool::{Permission, Tool};
use super::{Called, Consent, Permissions, catalog, playbook};
use crate::rows::Rows;

/// The calls that change something, by the idempotency key of their step: `{ms}` from when they begin, with `answer` or `error`
/// once they have ended.
const CALLS: Rows = Rows("flowstone_kit_calls");
/// The code of a call that failed.
const FAILED: &str = "E1512";
/// The key of an error's data with the object that the model gets.
const OBJECT: &str = "kit";

/// The `:kit` step.
#[derive(Debug)]
pub struct KitStep;

const SPEC: StepSpec = StepSpec {
    kind: "kit",
    operations: None,
    aliases: &[],
    doc: "Performs a tool of the build kit on the flow of the run. Agents with `:tools {:kit [...]}` make such steps.\n\n\
        Returns the answer of the tool as data. A call that changes something needs the agreement of a person: an agent asks for \
        it and waits; a step in the body of a flow needs `:kit {:permissions {...}}` in flowstone.edn.",
    fields: FIELDS,
    examples: &[
        "(flow/step :kit :failed {:tool \"query_spans\" :arguments {:filtering {:conditions [{:field \"status_code\" :value \"STATUS_CODE_ERROR\"}]}}})",
        "(flow/step :kit :schedules {:tool \"list_schedules\"})",
    ],
    effect: Effect::External,
};

const FIELDS: &[Field] = &[
    Field::optional(
        "arguments",
        FieldType::Any,
        "The arguments of the tool, a map. Default: none.",
    ),
    Field::optional(
        "op",
        FieldType::Name,
        "`:call` performs the tool. `:question` returns what a person is asked before the call, and `:list` describes the `:tools`. Default `:call`.",
    ),
    Field::optional(
        "tool",
        FieldType::Name,
        "The name of the tool, such as `\"test_run\"`.",
    ),
    Field::optional(
        "tools",
        FieldType::List(&FieldType::Name),
        "For `:list`: the names of the tools. Default: those that the kit offers by default.",
    ),
];

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Call,
    List,
    Question,
}

impl Operation {
    fn of(config: &Value) -> Option<Operation> {
        match config.get("op").filter(|op| !op.is_nil()) {
            None => Some(Operation::Call),
            Some(given) => match &*name_of(given)? {
                "call" => Some(Operation::Call),
                "list" => Some(Operation::List),
                "question" => Some(Operation::Question),
                _ => None,
            },
        }
    }
}

impl Step for KitStep {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn effect(&self, config: &Value) -> Effect {
        match (Operation::of(config), tool_of(config)) {
            (Some(Operation::Call), Some(tool)) if !tool.read_only => Effect::External,
            _ => Effect::Read,
        }
    }

    /// A call that was begun is not made again.
    fn repeats_safely(&self, _config: &Value) -> bool {
        true
    }

    /// The kit refuses what a test may not do.
    fn performs_in_dry_tests(&self, _config: &Value) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let done = match Operation::of(&config) {
                Some(Operation::Call) => call(cx, &config).await,
                Some(Operation::Question) => question(cx, &config).await,
                Some(Operation::List) => list(cx, &config).await,
                None => Err(KitError::invalid(
                    "/op",
                    "`:call`, `:question` or `:list`",
                    "the `:kit` step has no such operation",
                )
                .to_json()),
            };
            done.map(|answer| Outcome::Value(from_json(&answer)))
                .map_err(|error| failed(&error))
        })
    }
}

/// Returns the error of a step with the object of the kit in its data.
fn failed(error: &Json) -> StepError {
    let message = error["message"].as_str().unwrap_or_default();
    StepError::new(FAILED, "kit", message).with(OBJECT, from_json(error))
}

fn tool_of(config: &Value) -> Option<&'static Tool> {
    catalog::find(&name_of(config.get("tool")?)?.replace('-', "_"))
}

/// Returns the name of the tool and the arguments of a config.
fn wanted(config: &Value) -> Result<(String, Json), KitError> {
    let name = config.get("tool").and_then(name_of).unwrap_or_default();
    let arguments = match config.get("arguments").filter(|it| !it.is_nil()) {
        None => json!({}),
        Some(given) => to_json(given)
            .map_err(|error| KitError::invalid("", "JSON", format!("the arguments: {error}")))?,
    };
    Ok((name.replace('-', "_"), arguments))
}

/// Performs a tool. The error is the object that every door answers.
async fn call(cx: &StepContext, config: &Value) -> Result<Json, Json> {
    let of_kit = |error: KitError| error.to_json();
    check_owner(cx).map_err(of_kit)?;
    let changes = tool_of(config).is_some_and(|tool| !tool.read_only);
    // Nothing is noted in a test, where the kit refuses to change anything.
    if !changes || cx.scope().services.test.is_some() {
        return perform(cx, config, cx.now_ms()).await.map_err(of_kit);
    }
    let engine = Engine::of_step(cx, cx.now_ms());
    let noted = noted(cx, &engine, config).await;
    let base_ms = match noted.map_err(|error| KitError::from(error).to_json())? {
        Noted::New { ms } => ms,
        Noted::Ended(ended) => return ended,
    };
    let ended = perform(cx, config, base_ms).await.map_err(of_kit);
    let row = match &ended {
        Ok(answer) => json!({"ms": base_ms, "answer": answer}),
        Err(error) => json!({"ms": base_ms, "error": error}),
    };
    let kept = CALLS.put(&engine, cx.idempotency_key(), &row).await;
    kept.map_err(|error| KitError::from(error).to_json())?;
    ended
}

/// What is known of a call that changes something.
enum Noted {
    /// It begins now.
    New {
        ms: i64,
    },
    Ended(Result<Json, Json>),
}

async fn noted(cx: &StepContext, engine: &Engine, config: &Value) -> Result<Noted, EngineError> {
    let key = cx.idempotency_key();
    let ms = cx.now_ms();
    if CALLS.insert(engine, key, &json!({"ms": ms})).await? {
        return Ok(Noted::New { ms });
    }
    let row = CALLS.get(engine, key).await?.unwrap_or(Json::Null);
    Ok(Noted::Ended(match (row.get("answer"), row.get("error")) {
        (Some(answer), _) => Ok(answer.clone()),
        (None, Some(error)) => Err(error.clone()),
        (None, None) => Err(interrupted(config).to_json()),
    }))
}

fn interrupted(config: &Value) -> KitError {
    let name = tool_of(config).map_or("", |tool| tool.name);
    match name {
        "test_run" => KitError::test_run_incomplete(
            "the process ended during the test, which is cancelled",
            json!({"verdict": "failed"}),
        ),
        name => KitError::interrupted(name),
    }
}

async fn perform(cx: &StepContext, config: &Value, base_ms: i64) -> Result<Json, KitError> {
    let (name, arguments) = wanted(config)?;
    let (place, left) = Place::of_step(cx, (base_ms, &name)).await?;
    let agreed = cx.agreed().map(str::to_owned);
    // A task of its own: when the step is dropped, because the run is cancelled or the step's time is over, the call is
    // told by the guard, and ends what it has started.
    let called = spawn_local(async move {
        let consent = agreed.as_deref().map_or(Consent::Door, Consent::Given);
        match super::call(&place.call(), &name, arguments, consent).await? {
            Called::Done(answer) => Ok(answer),
            Called::Ask(_) => Err(KitError::not_agreed(&name, agreed.is_some())),
        }
    });
    let called = called.await;
    drop(left);
    called.map_err(|error| KitError::internal(&error))?
}

/// Returns whether a person has to agree to a call: `{ask, text, digest}`.
async fn question(cx: &StepContext, config: &Value) -> Result<Json, Json> {
    let asked = async {
        check_owner(cx)?;
        let (name, arguments) = wanted(config)?;
        let (place, _left) = Place::of_step(cx, (cx.now_ms(), &name)).await?;
        super::question(&place.call(), &name, arguments).await
    };
    let asked: Result<_, KitError> = asked.await;
    Ok(match asked.map_err(|error| error.to_json())? {
        None => json!({"ask": false}),
        Some(question) => json!({
            "ask": true,
            "text": question.headline(),
            "digest": question.digest,
        }),
    })
}

/// Describes tools to an agent: `{tools, playbook}`. The journal keeps it, so an agent that continues has what it began with.
async fn list(cx: &StepContext, config: &Value) -> Result<Json, Json> {
    let given = config.get("tools").and_then(items);
    let names: Vec<String> = match given {
        None => known::default_names().map(str::to_owned).collect(),
        Some(given) => given
            .iter()
            .filter_map(|name| Some(name_of(name)?.replace('-', "_")))
            .collect(),
    };
    let permissions = permissions(cx).map_err(|error| error.to_json())?;
    let mut tools = Vec::new();
    for name in &names {
        let tool = catalog::find(name).ok_or_else(|| KitError::unknown_tool(name, None).to_json());
        tools.push(described(tool?, &permissions));
    }
    let playbook = match check_owner(cx) {
        Ok(()) => {
            let stores = &cx.scope().services.stores;
            let registry = FlowRegistry::new(stores, cx.now_ms());
            let text = playbook::for_run(&registry, &cx.flow().slug).await;
            text.map_err(|error| KitError::from(error).to_json())?
        }
        Err(_) => playbook::TEXT.to_owned(),
    };
    Ok(json!({"tools": tools, "playbook": playbook}))
}

/// Returns what an agent knows of a tool.
fn described(tool: &Tool, permissions: &Permissions) -> Json {
    json!({
        "name": tool.name,
        "description": tool.description,
        // As text: the journal keeps data of Clojure, in which an object's members have no order.
        "parameters": (tool.input)().to_string(),
        // What a person completes by themselves is not a change.
        "changes": !tool.read_only && tool.permission == Permission::Ask,
        "asks": permissions.of(tool) == Permission::Ask,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_know_the_tools_of_the_catalogue() {
        let all: Vec<(&str, bool)> = catalog::TOOLS
            .iter()
            .map(|tool| (tool.name, tool.default_on))
            .collect();
        assert_eq!(all, known::KIT_TOOLS);
    }
}
