//! The outputs of client tools and the answers to questions: what a caller submits for a generation that is paused.

use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::json::from_json;
use flowstone_engine::ports::{RunRow, RunStatus, Target};
use flowstone_engine::waits::Caller;
use flowstone_engine::{Answering, Engine, EngineError};
use serde_json::{Map, Value as Json, json};

use super::agent::Agent;
use super::body::{Body, Kind as Of, Member};
use super::compile::Start;
use super::control::Control;
use super::error::{ApiError, Status as Refused};
use super::pauses::{self, Kind, Pause};
use super::{codes, ids, questions};

/// The body of outputs of client tools.
pub const SUBMIT: &[Member] = &[
    Member::optional("active_tool_ids", Of::Texts, "For the next step."),
    Member::optional(
        "defaults",
        Of::Object,
        "For all later steps: `{tool_choice?, active_tool_ids?}`.",
    ),
    Member::optional("step_rules", Of::Objects, "For later steps."),
    Member::optional("tool_choice", Of::TextOrObject, "For the next step."),
    Member::required(
        "tool_outputs",
        Of::Objects,
        "`{tool_call_id, output}` for each call.",
    ),
];

const OUTPUT: &[Member] = &[
    Member::required("output", Of::Any, "The output."),
    Member::required("tool_call_id", Of::Text, "The call."),
];

/// Gives a generation the outputs of client tools.
///
/// # Errors
/// When it does not wait for outputs, or the body does not answer each call once.
pub async fn submit(
    engine: &Engine,
    agent: &Agent,
    row: &RunRow,
    body: Json,
    caller: Caller,
) -> Result<(), ApiError> {
    let body = Body::read(body, SUBMIT)?;
    let pause = match row.status {
        RunStatus::Waiting => pauses::of_run(engine, &row.id).await?,
        _ => None,
    };
    let Some(pause) = pause else {
        return Err(not_waiting(&row.id));
    };
    let outputs = outputs(&pause.calls, body.items("tool_outputs"))?;
    let answered = match pause.kind {
        Kind::Questions => {
            let more = SUBMIT
                .iter()
                .find(|it| !it.is_needed && body.get(it.name).is_some());
            if let Some(more) = more {
                let message = format!("`{}` belongs to outputs of client tools", more.name);
                return Err(ApiError::invalid(message));
            }
            questions::answer(engine, &pause.waits, &outputs, &caller).await
        }
        Kind::Client => {
            let control = control(agent, row);
            let mut payload = control.known.submitted(&body)?;
            if let Some(Json::Object(defaults)) = body.get("defaults") {
                control.check_overrides(&Body(defaults.clone()))?;
            }
            refuse_past(body.items("step_rules"), pause.steps.unwrap_or(0))?;
            let entries = outputs.into_iter();
            let entries = entries.map(|(id, output)| json!({"tool-call-id": id, "output": output}));
            payload.insert("outputs".to_owned(), entries.collect());
            client(engine, &pause, payload, caller).await
        }
    };
    match answered {
        // Of two submissions at the same time, one counts.
        Err(ApiError::Engine(EngineError::AlreadyDecided(_) | EngineError::NoSuchWait { .. })) => {
            Err(not_waiting(&row.id))
        }
        other => other,
    }
}

/// Returns the loop control that a generation started with, which a change of its agent does not change.
fn control(agent: &Agent, row: &RunRow) -> Control {
    let input = codec::decode(&row.input).ok();
    let own = input.and_then(|input| Start::of_input(&input).control);
    own.unwrap_or_else(|| agent.control())
}

/// Refuses rules for steps that the generation has made: they would change nothing.
fn refuse_past(rules: &[Json], steps: i64) -> Result<(), ApiError> {
    for (idx, rule) in rules.iter().enumerate() {
        if let Some(step) = rule["step"].as_i64().filter(|step| *step <= steps) {
            return Err(ApiError::invalid(format!(
                "`step_rules[{idx}].step` is {step}, but the generation has made {steps} already: name a later step"
            )));
        }
    }
    Ok(())
}

/// Answers the wait for the outputs of client tools.
async fn client(
    engine: &Engine,
    pause: &Pause,
    payload: Map<String, Json>,
    caller: Caller,
) -> Result<(), ApiError> {
    let how = Answering {
        caller,
        ..Answering::default()
    };
    let payload = from_json(&Json::Object(payload));
    for wait in &pause.waits {
        let target = Target::Name(wait.id.clone());
        engine.answer_waits(target, &payload, how.clone()).await?;
    }
    Ok(())
}

fn not_waiting(run: &RunId) -> ApiError {
    ApiError::new(
        Refused::Conflict,
        ("CONFLICT", codes::NOT_WAITING),
        format!(
            "the generation `{}` does not wait for tool outputs",
            ids::generation(run)
        ),
    )
}

/// Checks that outputs answer each call once, and returns them with the ids of their calls.
fn outputs(calls: &[Json], given: &[Json]) -> Result<Vec<(String, Json)>, ApiError> {
    let call_id = |call: &Json| {
        let id = call["tool-call-id"].as_str();
        id.unwrap_or_default().to_owned()
    };
    let mut outputs: Vec<(String, Json)> = Vec::new();
    for (idx, entry) in given.iter().enumerate() {
        let entry = Body::read(entry.clone(), OUTPUT)
            .map_err(|error| ApiError::invalid(format!("`tool_outputs[{idx}]`: {error}")))?;
        let id = entry.text("tool_call_id").unwrap_or_default().to_owned();
        if !calls.iter().any(|call| call_id(call) == id) {
            return Err(ApiError::invalid(format!(
                "`tool_outputs` has the call `{id}`, which the generation does not wait for"
            )));
        }
        if outputs.iter().any(|(known, _)| *known == id) {
            return Err(ApiError::invalid(format!(
                "`tool_outputs` has the call `{id}` twice"
            )));
        }
        let output = entry.get("output").cloned().unwrap_or(Json::Null);
        outputs.push((id, output));
    }
    let missing = calls
        .iter()
        .map(call_id)
        .find(|id| !outputs.iter().any(|(known, _)| known == id));
    if let Some(missing) = missing {
        return Err(ApiError::invalid(format!(
            "`tool_outputs` lacks the call `{missing}`: each call needs an output"
        )));
    }
    Ok(outputs)
}
