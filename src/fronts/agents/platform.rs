//! `:platform`: performs one platform action for a generation, with the rights of its caller and within the boundaries of agents.
//!
//! The rights are read when the step is performed. A nested generation is a child run, added in the commit that notes its
//! request; new records get ids that follow from the place of the step, so a repeated step makes no second record.

use flowstone_engine::ids::RunId;
use flowstone_engine::json::from_exact_json;
use flowstone_engine::ports::RunRow;
use flowstone_engine::{Engine, start_loaded_child};
use flowstone_flow::flow::name_of;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;
use flowstone_model::json::to_json;
use flowstone_model::token::Scope;
use flowstone_project::knowledge::Embedder;
use flowstone_steps::embedder;
use serde_json::{Map, Value as Json, json};

use super::actions::{self, Action, Given, With};
use super::agent::Agent;
use super::compile::{self, Start};
use super::error::{ApiError, Status};
use super::generations::{self, Who};
use super::records::Records;
use super::rights::Rights;
use super::{codes, projects};
use crate::rows::Rows;

/// The instants at which steps began that make new records.
const BEGUN: Rows = Rows("flowstone_api_actions");
/// The most runs above a step.
const ABOVE: usize = 200;

/// The `:platform` step.
#[derive(Debug)]
pub struct Platform;

const SPEC: StepSpec = StepSpec {
    kind: "platform",
    operations: None,
    aliases: &[],
    doc: "Performs an action of the agents API on the records of a project: agents, documents, sessions, tools, traces.\n\n\
        For the generation of a stored agent, the rights of the caller and the boundary policy of the agent must allow the action. \
        Returns the answer of the API as data. `create-agent-generation` runs another agent as a child run.",
    fields: FIELDS,
    examples: &[
        "(flow/step :platform :note {:action \"create-document\" :arguments {:content \"Hello\" :title \"Note\"}})",
        "(flow/step :platform :answer {:action \"create-agent-generation\" :arguments {:agent_id \"agt_...\" :prompt \"Hi\"}})",
    ],
    effect: Effect::External,
};

const FIELDS: &[Field] = &[
    Field::required(
        "action",
        FieldType::Name,
        "The action, such as `\"get-document\"`.",
    ),
    Field::optional("arguments", FieldType::Map, "The arguments of the action."),
    Field::optional(
        "project",
        FieldType::Text,
        "The id of the project of the API. Default: the project of the agent; in other flows the project `default`.",
    ),
];

impl Step for Platform {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn effect(&self, config: &Value) -> Effect {
        match action_of(config) {
            Some(action) if action.name == actions::GENERATE => Effect::OwnStore,
            Some(action) if action.scope == Scope::Read => Effect::Read,
            Some(_) | None => Effect::External,
        }
    }

    /// A new record has the same id again, and the same change changes nothing.
    fn repeats_safely(&self, _config: &Value) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(perform(cx, config))
    }
}

fn action_of(config: &Value) -> Option<&'static Action> {
    actions::find(&name_of(config.get("action")?)?)
}

async fn perform(cx: &StepContext, config: Value) -> Result<Outcome, StepError> {
    let Some(action) = action_of(&config) else {
        let name = config.get("action").and_then(name_of).unwrap_or_default();
        return Err(wrong(format!("`{name}` is not a platform action")));
    };
    let arguments = match config.get("arguments").filter(|it| !it.is_nil()) {
        None => json!({}),
        Some(given) => to_json(given).map_err(|error| wrong(error.to_string()))?,
    };
    let base_ms = begun(cx, action).await.map_err(of_api)?;
    let engine = Engine::of_step(cx, base_ms);
    let place = Place::find(cx, &engine).await.map_err(of_api)?;
    let project = config.get("project").and_then(Value::as_str);
    let project = place.project(&engine, project).await.map_err(of_api)?;
    let given = action.given(&project, &arguments).map_err(of_api)?;
    let admitted = action.admit(&engine, &given, &place.rights).await;
    admitted.map_err(of_api)?;
    if action.name == actions::GENERATE {
        return generate(cx, (&engine, &place), &given)
            .await
            .map(Outcome::Child);
    }
    let found = embedder::of_step(cx).map_err(wrong)?;
    let embedder = found.as_ref().map(|it| it as &dyn Embedder);
    let who = &place.who();
    let answer = action
        .perform(&engine, &given, With { embedder, who })
        .await;
    let answer = answer.map_err(of_api)?;
    Ok(Outcome::Value(from_exact_json(&answer)))
}

/// Returns when the step began first, if it makes records.
async fn begun(cx: &StepContext, action: &Action) -> Result<i64, ApiError> {
    let now_ms = cx.now_ms();
    if action.scope == Scope::Read || action.name == actions::GENERATE {
        return Ok(now_ms);
    }
    let engine = Engine::of_step(cx, now_ms);
    let key = cx.idempotency_key();
    let begun = json!({"ms": now_ms});
    if BEGUN.insert(&engine, key, &begun).await? {
        return Ok(now_ms);
    }
    let known = BEGUN.get(&engine, key).await?;
    let known = known.and_then(|it| it.get("ms")?.as_i64());
    Ok(known.unwrap_or(now_ms))
}

/// The generation that a step belongs to, and what it may do.
struct Place {
    /// The project of its agent; nothing in a flow that is not of an agent.
    project: Option<String>,
    start: Start,
    rights: Rights,
}

impl Place {
    async fn find(cx: &StepContext, engine: &Engine) -> Result<Place, ApiError> {
        let own = cx.own_stores().runs.find(cx.run_id()).await?;
        let flow = own.as_ref().map_or("", |row| row.flow.as_str());
        let origin = compile::origin(flow);
        if origin.is_none() && flow != compile::CALL {
            // A flow of the project is trusted like its other steps. Its input is not read: callers choose it.
            return Ok(Place {
                project: None,
                start: Start {
                    depth: generations::MAX_DEPTH,
                    ..Start::default()
                },
                rights: Rights::default(),
            });
        }
        let start = Start::of_input(&cx.scope().input);
        let mut rights = Rights::of_token(engine, start.caller.as_deref()).await?;
        for row in above(engine, own).await? {
            let Some(origin) = compile::origin(&row.flow) else {
                continue;
            };
            match Records::Agents.get(engine, &origin.agent).await {
                Ok(agent) => rights.add_boundary(&agent),
                Err(ApiError::Refused(_)) => rights.add_missing(&origin.agent),
                Err(error) => return Err(error),
            }
        }
        Ok(Place {
            project: origin.map(|origin| origin.project),
            start,
            rights,
        })
    }

    /// Returns who performs the action: the caller of the generation, within the boundaries of the agents above.
    fn who(&self) -> Who {
        Who {
            started_by: String::new(),
            caller: flowstone_engine::waits::Caller::default(),
            is_operator: false,
            token: self.start.caller.clone(),
            narrowed: Some(self.rights.clone()),
        }
    }

    /// Returns the project of the action. That of an agent cannot be left.
    async fn project(&self, engine: &Engine, given: Option<&str>) -> Result<String, ApiError> {
        match &self.project {
            Some(own) => Ok(own.clone()),
            None => projects::of(engine, given).await,
        }
    }
}

/// Returns a run and those above it.
async fn above(engine: &Engine, own: Option<RunRow>) -> Result<Vec<RunRow>, ApiError> {
    let mut rows: Vec<RunRow> = own.into_iter().collect();
    while let Some(parent) = rows.last().and_then(|row| row.parent.clone()) {
        if rows.len() > ABOVE {
            break;
        }
        rows.push(engine.run(&parent.run).await?);
    }
    Ok(rows)
}

/// Starts a nested generation.
async fn generate(
    cx: &StepContext,
    (engine, place): (&Engine, &Place),
    given: &Given,
) -> Result<RunId, StepError> {
    let id = given.ids.first().map_or("", String::as_str);
    let agent = Agent::find(engine, id).await.map_err(of_api)?;
    let mut body = given.body.clone();
    if !place.start.context.is_empty() {
        body["tool_context"] = json!(place.start.context);
    }
    let prepared = generations::prepare(engine, (&agent, &place.who()), (body, Map::new())).await;
    let (loaded, mut start) = prepared.map_err(of_api)?;
    // A nested generation may only lower what is left.
    start.depth = start.depth.min(place.start.depth.saturating_sub(1)).max(0);
    let config = Value::map([(Value::keyword("input"), start.input())]);
    start_loaded_child(cx, loaded, &config).await
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config(codes::ARGUMENTS, message)
}

/// Converts a refusal of the API to an error of the step.
fn of_api(error: ApiError) -> StepError {
    let refusal = match error {
        ApiError::Engine(error) => {
            return StepError::new(error.code(), "store", error.to_string());
        }
        ApiError::Refused(refusal) => refusal,
    };
    match refusal.status {
        Status::Forbidden => StepError::new(codes::DENIED, "denied", refusal.message),
        Status::BadRequest => StepError::new(codes::ARGUMENTS, "invalid", refusal.message),
        Status::NotFound => StepError::new(codes::ACTION, "not-found", refusal.message),
        Status::Conflict | Status::Gone | Status::Unprocessable | Status::BadGateway => {
            StepError::new(codes::ACTION, "invalid", refusal.message)
                .with("code", Value::from(refusal.name))
        }
    }
}

/// Returns a direct call of an action as a flow.
pub fn call_flow(project: &str, action: &str, arguments: Map<String, Json>) -> String {
    let config = json!({"action": action, "arguments": arguments, "project": project});
    format!(
        "{{:slug :{} :flow '(flow/step :platform :call {})}}",
        compile::CALL,
        crate::graph::compile::text::edn(&config)
    )
}
