//! Tasks: calls whose result is fetched later. A task is a run, under a handle that only its caller can use, so it outlives
//! the server.
//!
//! Clients of sessions of 2025-11-25 request a task with the call, and have `tasks/get`, `result`, `list` and `cancel`.
//! In the stateless revision, tasks are an extension: the server decides, and there are `tasks/get`, `update` and
//! `cancel`.

use flowstone_engine::codec::instant;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunQuery, RunStatus, RunSummary, wall_clock_ms};
use flowstone_engine::{EngineError, token::Scope};
use serde_json::{Map, Value as Json, json};

use super::call::{handle, of_handle};
use super::content;
use super::follow::{Followed, Glance, Patience, follow, glance};
use super::peer::{Request, refused};
use super::protocol::{RpcError, TASKS, codes};
use super::questions::{self, UNANSWERABLE};
use crate::http::EngineContext;
use crate::http::runs::is_reached;

/// How soon a client should poll again.
const POLL_MS: u64 = 1_000;
/// The purpose of handles of tasks.
const TASK: &str = "task";
/// The number of tasks on a page.
const PAGE: usize = 50;

/// Returns the response to a call that became a task.
///
/// # Errors
/// When the run cannot be read.
pub(super) async fn created(rq: &Request, run: &RunId) -> Result<Json, RpcError> {
    let found = glance(rq, run).await?;
    let mut task = task_json(rq, &found).await?;
    Ok(match rq.era.is_stateless() {
        true => {
            task["resultType"] = json!("task");
            // Its questions are in the response to `tasks/get`.
            if !found.row.status.is_final() {
                task["status"] = json!("working");
            }
            task
        }
        false => json!({"task": task}),
    })
}

/// Returns a task in the form of its revision.
async fn task_json(rq: &Request, found: &Glance) -> Result<Json, RpcError> {
    let row = &found.row;
    let status = match row.status {
        RunStatus::Queued | RunStatus::Running => "working",
        RunStatus::Waiting if found.waits.is_empty() => "working",
        RunStatus::Waiting => "input_required",
        RunStatus::Completed => "completed",
        RunStatus::Cancelled | RunStatus::Terminated => "cancelled",
        // In the stateless revision, a task fails only if a call would have no result.
        _ if row.status.is_final() && rq.era.is_stateless() => "completed",
        _ if row.status.is_final() => "failed",
        _ => "working",
    };
    let mut task = json!({
        "taskId": handle(rq, &row.id, TASK).await?,
        "status": status,
        "createdAt": instant(row.created_ms),
        "lastUpdatedAt": instant(row.updated_ms),
    });
    let (ttl, poll) = match rq.era.is_stateless() {
        true => ("ttlMs", "pollIntervalMs"),
        false => ("ttl", "pollInterval"),
    };
    // The task exists as long as the row of its run.
    task[ttl] = Json::Null;
    task[poll] = json!(POLL_MS);
    if let Some(wait) = found.waits.first() {
        task["statusMessage"] = json!(format!(
            "the run {} waits for an answer to `{}`; `flowstone waits list` shows it to people",
            row.id, wait.path
        ));
    } else if row.status.is_final() && row.status != RunStatus::Completed {
        task["statusMessage"] = json!(content::failure_text(row));
    }
    Ok(task)
}

/// Finds the task of a request.
async fn named(rq: &Request, params: &Map<String, Json>) -> Result<RunId, RpcError> {
    if rq.era.is_stateless() && !rq.can("tasks") {
        return Err(RpcError::capability(&json!({"extensions": {TASKS: {}}})));
    }
    let id = params.get("taskId").and_then(Json::as_str);
    let id = id.ok_or_else(|| RpcError::params("`taskId` must be the id of a task"))?;
    let found = of_handle(rq, id).await?;
    found.ok_or_else(|| RpcError::params("there is no such task"))
}

/// Answers `tasks/get`.
///
/// # Errors
/// When the task does not exist.
pub(super) async fn get(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let run = named(rq, params).await?;
    let found = glance(rq, &run).await?;
    let mut task = task_json(rq, &found).await?;
    if !rq.era.is_stateless() {
        return Ok(task);
    }
    match task["status"].as_str() {
        Some("completed") => task["result"] = content::tool_result(rq, &found.row).await?,
        Some("input_required") => {
            match questions::requests(rq, &run, &found.waits).await? {
                None => fail(&mut task),
                // A person must answer elsewhere.
                Some(requests) if requests.is_empty() => task["status"] = json!("working"),
                Some(requests) => task["inputRequests"] = Json::Object(requests),
            }
        }
        Some("cancelled") if found.row.cancel_requested.as_deref() == Some(UNANSWERABLE) => {
            fail(&mut task);
        }
        _ => {}
    }
    Ok(task)
}

/// Marks a task as one without a result, because the client cannot answer the questions of its run.
fn fail(task: &mut Json) {
    task["status"] = json!("failed");
    task["error"] = json!({"code": codes::CAPABILITY, "message": UNANSWERABLE});
}

/// Answers `tasks/update`, with which the client answers the open waits of the run.
///
/// # Errors
/// When the task does not exist, or the answers are malformed.
pub(super) async fn update(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let run = named(rq, params).await?;
    let Some(Json::Object(answers)) = params.get("inputResponses") else {
        return Err(RpcError::params("`inputResponses` must be an object"));
    };
    let found = glance(rq, &run).await?;
    questions::take_all(rq, &found.waits, answers).await?;
    Ok(json!({}))
}

/// Answers `tasks/result` of a session: waits for the end of the run.
///
/// # Errors
/// When the task does not exist.
pub(super) async fn result(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let run = named(rq, params).await?;
    let followed = follow(rq, &run, (Patience::Endless, None)).await?;
    let mut result = match followed {
        Followed::Ended(row) => content::tool_result(rq, &row).await?,
        // People decide elsewhere, so the client must poll again.
        Followed::Late(row) => {
            let message = format!(
                "the run {} waits for an answer; a person decides: `flowstone waits list`",
                row.id
            );
            return Err(RpcError::params(message));
        }
        Followed::Input(_) => return Err(RpcError::no_method("tasks/result")),
    };
    let task = json!({"taskId": params.get("taskId")});
    result["_meta"]["io.modelcontextprotocol/related-task"] = task;
    Ok(result)
}

/// Answers `tasks/list` of a session: the runs that the caller started, newest first.
///
/// # Errors
/// When the cursor is malformed, or the store cannot be read.
pub(super) async fn list(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    rq.need(Scope::Run)?;
    let after = match params.get("cursor") {
        None | Some(Json::Null) => None,
        Some(Json::String(cursor)) => Some(RunId::from_text(cursor.clone())),
        Some(_) => {
            return Err(RpcError::params(
                "`cursor` must be one that this list returned",
            ));
        }
    };
    let query = RunQuery {
        started_by: Some(rq.caller.started_by()),
        after,
        limit: PAGE + 1,
        ..RunQuery::default()
    };
    let caller = rq.caller.clone();
    let found = rq.server.ask(async move |cx: &EngineContext| {
        let found = cx.engine.summaries(query).await?.into_iter();
        // Another token with this name may reach other flows.
        let marked = found.map(|run| (is_reached(cx, &caller, (&run.flow, &run.started_by)), run));
        Ok::<Vec<(bool, RunSummary)>, EngineError>(marked.collect())
    });
    let found = found.await.map_err(|problem| refused(&problem))?;
    let mut tasks = Vec::new();
    for (_, run) in found
        .iter()
        .take(PAGE)
        .filter(|(is_reached, _)| *is_reached)
    {
        let found = glance(rq, &run.id).await?;
        tasks.push(task_json(rq, &found).await?);
    }
    let mut answer = json!({"tasks": tasks});
    if let (true, Some((_, last))) = (found.len() > PAGE, found.get(PAGE - 1)) {
        answer["nextCursor"] = json!(last.id.as_str());
    }
    Ok(answer)
}

/// Answers `tasks/cancel`: cancels the run.
///
/// # Errors
/// When the task does not exist, or has ended.
pub(super) async fn cancel(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    rq.need(Scope::Run)?;
    let run = named(rq, params).await?;
    let reason = format!("cancelled by {}", rq.caller.token.attributed_to());
    let asked = run.clone();
    let cancelled = rq.server.ask(async move |cx: &EngineContext| {
        match cx.engine.request_cancel(&asked, &reason).await {
            Err(EngineError::Over { .. }) => Ok(false),
            other => other.map(|()| true),
        }
    });
    let is_cancelled = cancelled.await.map_err(|problem| refused(&problem))?;
    if rq.era.is_stateless() {
        return Ok(json!({}));
    }
    if !is_cancelled {
        return Err(RpcError::params("the task is over already"));
    }
    let found = glance(rq, &run).await?;
    let mut task = task_json(rq, &found).await?;
    // The run's cleanup may still be executed.
    task["status"] = json!("cancelled");
    task["lastUpdatedAt"] = json!(instant(wall_clock_ms()));
    Ok(task)
}
