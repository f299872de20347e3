//! The outputs of client tools: what a caller submits for a generation that waits for them.

use flowstone_engine::ids::RunId;
use flowstone_engine::json::from_json;
use flowstone_engine::ports::{RunRow, RunStatus, Target};
use flowstone_engine::waits::Caller;
use flowstone_engine::{Answering, Engine, EngineError};
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::agent::Agent;
use super::body::{Body, Kind, Member};
use super::error::{ApiError, Status as Refused};
use super::generations::{call_id, calls_of, open_wait};
use super::{codes, ids};

/// The body of outputs of client tools.
pub const SUBMIT: &[Member] = &[
    Member::optional("active_tool_ids", Kind::Texts, "For the next step."),
    Member::optional(
        "defaults",
        Kind::Object,
        "For all later steps: `{tool_choice?, active_tool_ids?}`.",
    ),
    Member::optional("step_rules", Kind::Objects, "For later steps."),
    Member::optional("tool_choice", Kind::TextOrObject, "For the next step."),
    Member::required(
        "tool_outputs",
        Kind::Objects,
        "`{tool_call_id, output}` for each call.",
    ),
];

const OUTPUT: &[Member] = &[
    Member::required("output", Kind::Any, "The output."),
    Member::required("tool_call_id", Kind::Text, "The call."),
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
    let wait = match row.status {
        RunStatus::Waiting => open_wait(engine, &row.id).await?,
        _ => None,
    };
    let Some(wait) = wait else {
        return Err(not_waiting(&row.id));
    };
    let outputs = outputs(&calls_of(&wait), body.items("tool_outputs"))?;
    let mut payload = agent.known().submitted(&body)?;
    payload.insert("outputs".to_owned(), Json::Array(outputs));
    let how = Answering {
        caller,
        ..Answering::default()
    };
    let target = Target::Name(wait.id.clone());
    let payload = from_json(&Json::Object(payload));
    match engine.answer_waits(target, &payload, how).await {
        Ok(_) => Ok(()),
        // Of two submissions at the same time, one counts.
        Err(EngineError::AlreadyDecided(_) | EngineError::NoSuchWait { .. }) => {
            Err(not_waiting(&row.id))
        }
        Err(error) => Err(error.into()),
    }
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

/// Checks that outputs answer each call once, and returns them as the payload of the wait has them.
fn outputs(calls: &[Value], given: &[Json]) -> Result<Vec<Json>, ApiError> {
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
    let outputs = outputs.into_iter();
    Ok(outputs
        .map(|(id, output)| json!({"tool-call-id": id, "output": output}))
        .collect())
}
