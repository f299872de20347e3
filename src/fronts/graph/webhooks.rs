//! Calls the webhooks of runs that have ended.
//!
//! The flow of a run knows nothing of its webhook: a row of a table of the project has the address, and the run has an external
//! id that names the row. After the end of the run, however it ended, a run of its own makes the call. The name of that run has
//! the id of the ended one, so that it is started once, and the row is deleted after that.

use std::rc::Rc;

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Random as _, RunFilter, RunRow, RunStatus, SystemRandom};
use flowstone_engine::{Engine, EngineError, StartOptions};
use flowstone_model::json::from_json;
use flowstone_steps::permissions::may_reach;
use serde_json::{Value as Json, json};

use super::events::{failure_of, output_of};
use super::registry::Registry;

/// The beginning of the external ids of runs with a webhook.
pub const MARK: &str = "graph-hook:";
/// How long a row without a run is kept: its start may be in progress.
const STARTING_MS: i64 = 3_600_000;
/// The slug of the flow of a call.
const SLUG: &str = "graph-webhook";
/// The flow of a call. An attempt that fails is repeated after 2, 4, 8 and 16 seconds.
const FLOW: &str = "{:slug :graph-webhook
 :name \"Webhook of a graph run\"
 :invocations {:default {:inputs [{:name :url :type :string :required true} {:name :body :type :any}]}}
 :flow '(let [{:keys [url body]} (flow/input)]
          (flow/step :http :webhook
                     {:url url :method :post :on-doubt :retry :json body
                      :retry {:max-attempts 5 :initial-interval-ms 2000 :coefficient 2.0 :max-interval-ms 300000
                              :jitter 0.0}})
          nil)}";

/// Tells whether the project allows the call of an address.
pub fn may_call(engine: &Engine, url: &str) -> bool {
    may_reach(&engine.permissions_of(SLUG), url)
}

/// Notes the address that is called at the end of a run that is about to start. Returns the external id for the run.
///
/// # Errors
/// When the store cannot be written.
pub async fn note(engine: &Engine, url: &str) -> Result<String, EngineError> {
    let key = format!("{:016x}{:016x}", SystemRandom.next(), SystemRandom.next());
    let row = json!({"key": key, "url": url, "noted_ms": engine.now_ms()});
    Registry::Webhooks.put(engine, &key, &row).await?;
    Ok(format!("{MARK}{key}"))
}

/// Forgets an address whose run was not started.
///
/// # Errors
/// When the store cannot be written.
pub async fn forget(engine: &Engine, name: &str) -> Result<(), EngineError> {
    if let Some(key) = name.strip_prefix(MARK) {
        Registry::Webhooks.delete(engine, key).await?;
    }
    Ok(())
}

/// Starts the calls of all ended runs whose webhook was not called.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn deliver_all(engine: &Engine) -> Result<(), EngineError> {
    for row in Registry::Webhooks.list(engine).await? {
        let Some(key) = row["key"].as_str() else {
            continue;
        };
        let name = format!("{MARK}{key}");
        let filter = RunFilter {
            id_prefix: Some(name.clone()),
            limit: 1,
            ..RunFilter::default()
        };
        let run = engine.list_runs(filter).await?.into_iter().next();
        let age_ms = engine.now_ms() - row["noted_ms"].as_i64().unwrap_or(0);
        match run {
            Some(run) => drop(deliver(engine, &run.id).await?),
            None if age_ms > STARTING_MS => forget(engine, &name).await?,
            None => {}
        }
    }
    Ok(())
}

/// Starts the call of a run's webhook, if the run has ended and its webhook was not called. Returns the run of the call.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn deliver(engine: &Engine, run: &RunId) -> Result<Option<RunId>, EngineError> {
    let row = engine.run(run).await?;
    let name = row.external_id.as_deref();
    let Some(key) = name.and_then(|name| name.strip_prefix(MARK)) else {
        return Ok(None);
    };
    let noted = match row.status.is_final() {
        true => Registry::Webhooks.get(engine, key).await?,
        false => None,
    };
    let Some(noted) = noted else {
        return Ok(None);
    };
    let called = call(engine, &row, &noted["url"]).await?;
    Registry::Webhooks.delete(engine, key).await?;
    Ok(Some(called))
}

async fn call(engine: &Engine, row: &RunRow, url: &Json) -> Result<RunId, EngineError> {
    let session = Rc::new(engine.session());
    let checked = engine.check_made(&session, FLOW, "graph-webhook.edn");
    let Some(loaded) = checked.loaded else {
        let message = "the flow that calls webhooks has a problem".to_owned();
        return Err(EngineError::Internal(message));
    };
    let input = json!({"url": url, "body": body(row)});
    let options = StartOptions {
        external_id: Some(format!("graph-webhook:{}", row.id)),
        started_by: Some("graph".to_owned()),
        is_left: true,
        ..StartOptions::with_input(from_json(&input))
    };
    Ok(engine.submit(&loaded, options).await?.run)
}

fn body(row: &RunRow) -> Json {
    let mut body = json!({"run_id": row.id.as_str()});
    match row.status {
        RunStatus::Completed => {
            body["status"] = json!("completed");
            body["output"] = output_of(row);
        }
        RunStatus::Failed | RunStatus::FailedCompensating | RunStatus::TimedOut => {
            let failure = failure_of(row);
            body["status"] = json!("failed");
            body["error"] = failure["error"].clone();
            body["reason"] = failure["reason"].clone();
        }
        RunStatus::Cancelled
        | RunStatus::Terminated
        | RunStatus::Queued
        | RunStatus::Running
        | RunStatus::Waiting => body["status"] = json!("cancelled"),
    }
    body
}
