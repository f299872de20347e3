//! Calls the webhooks of runs that could not do it themselves.
//!
//! A flow calls its webhook as its last step. A run that is ended by force, or cancelled before it begins, executes nothing
//! more, so a run of its own makes the call. The name of that run has the id of the ended one: it is started once.

use std::rc::Rc;

use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{
    Entry, EntryKind, EventKind, FeedItem, RunQuery, RunRow, RunStatus, StartDecision,
};
use flowstone_engine::{Engine, EngineError, StartOptions};
use flowstone_lang::value::Value;
use flowstone_model::json::from_json;
use serde_json::{Value as Json, json};

use super::events::{WEBHOOK, failure_of};

/// Ends after which a webhook may not have been called. A completed run has called it.
const ENDS: &[RunStatus] = &[
    RunStatus::Cancelled,
    RunStatus::Failed,
    RunStatus::Terminated,
    RunStatus::TimedOut,
];
/// Number of rows of a feed that are read at a time.
const PAGE: usize = 500;
/// Maximum number of ended runs that are looked at when a server starts.
const ENDED: usize = 1_000;
/// The flow of a call. It retries as a graph run does.
const FLOW: &str = "{:slug :graph-webhook
 :name \"Webhook of a graph run\"
 :invocations {:default {:inputs [{:name :url :type :string :required true} {:name :body :type :any}]}}
 :flow '(let [{:keys [url body]} (flow/input)]
          (flow/step :http :webhook
                     {:url url :method :post :on-doubt :retry :json body
                      :retry {:max-attempts 5 :initial-interval-ms 2000 :coefficient 2.0 :max-interval-ms 300000
                              :jitter 0.0}})
          nil)}";

/// Tells whether a run may owe the call of its webhook after an event of this name.
pub fn is_end(event: &str) -> bool {
    EventKind::from_name(event).is_some_and(|kind| kind.is_end() && kind != EventKind::RunCompleted)
}

/// Returns the ended runs with a webhook, newest first: some of them may owe its call since no server was running.
///
/// # Errors
/// When the store cannot be read.
pub async fn ended(engine: &Engine) -> Result<Vec<RunId>, EngineError> {
    let query = RunQuery {
        statuses: ENDS.to_vec(),
        text: Some(WEBHOOK.to_owned()),
        limit: ENDED,
        ..RunQuery::default()
    };
    let runs = engine.summaries(query).await?;
    Ok(runs.into_iter().map(|run| run.id).collect())
}

/// Starts the call of an ended run's webhook, if the run has one that was not called. Returns the run of the call.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn deliver(engine: &Engine, run: &RunId) -> Result<Option<RunId>, EngineError> {
    let row = engine.run(run).await?;
    let Some(url) = address(&row).filter(|_| ENDS.contains(&row.status)) else {
        return Ok(None);
    };
    if is_called(engine, run).await? {
        return Ok(None);
    }
    let session = Rc::new(engine.session());
    let checked = engine.check_made(&session, FLOW, "graph-webhook.edn");
    let Some(loaded) = checked.loaded else {
        let message = "the flow that calls webhooks has a problem".to_owned();
        return Err(EngineError::Internal(message));
    };
    let input = json!({"url": url, "body": body(&row)});
    let options = StartOptions {
        external_id: Some(format!("graph-webhook:{run}")),
        started_by: Some("graph".to_owned()),
        is_left: true,
        ..StartOptions::with_input(from_json(&input))
    };
    let started = engine.submit(&loaded, options).await?;
    Ok((started.decision != StartDecision::Deduped).then_some(started.run))
}

fn address(row: &RunRow) -> Option<String> {
    // Most runs have none, and need not be decoded.
    if !row.input.contains(WEBHOOK) {
        return None;
    }
    let input = codec::decode(&row.input).ok()?;
    input
        .get(WEBHOOK)
        .and_then(Value::as_str)
        .map(str::to_owned)
}

fn body(row: &RunRow) -> Json {
    let mut body = json!({"run_id": row.id.as_str()});
    match row.status {
        RunStatus::Failed | RunStatus::TimedOut => {
            let failure = failure_of(row);
            body["status"] = json!("failed");
            body["error"] = failure["error"].clone();
            body["reason"] = match row.status {
                RunStatus::TimedOut => json!("timeout"),
                _ => failure["reason"].clone(),
            };
        }
        _ => body["status"] = json!("cancelled"),
    }
    body
}

/// Tells whether the flow of a run has called its webhook, or has given up.
async fn is_called(engine: &Engine, run: &RunId) -> Result<bool, EngineError> {
    let mut after = 0;
    loop {
        let page = engine.stores().feed.read(run, after, PAGE).await?;
        let Some(page) = page.filter(|page| !page.is_pruned) else {
            return Ok(true);
        };
        let is_call = |item: &FeedItem| match item {
            FeedItem::Entry(entry) => is_answer_of_call(entry),
            FeedItem::Event(_) => false,
        };
        if page.rows.iter().any(|row| is_call(&row.item)) {
            return Ok(true);
        }
        match page.rows.last() {
            Some(last) if page.rows.len() >= PAGE => after = last.seq,
            Some(_) | None => return Ok(false),
        }
    }
}

/// The call is the step `webhook` of the flow, of its compensation or of its cleanup.
fn is_answer_of_call(entry: &Entry) -> bool {
    let last = entry.path.rsplit('/').next().unwrap_or_default();
    let is_over = matches!(entry.kind, EntryKind::Result | EntryKind::Error);
    is_over && entry.what == "http" && last.split('#').next() == Some("webhook")
}
