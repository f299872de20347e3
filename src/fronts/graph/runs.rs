//! Runs of stored agents: starting, showing, answering and cancelling them, and their events.

use std::rc::Rc;

use flowstone_engine::codec::digest_bytes;
use flowstone_engine::feed_event::instant;
use flowstone_engine::ids::RunId;
use flowstone_engine::json::from_json;
use flowstone_engine::outside::refuse_reserved;
use flowstone_engine::ports::{
    Delivered, Delivery, NewReceipt, News, RunQuery, RunRow, RunStatus, Stores, WaitRow, WaitState,
};
use flowstone_engine::{Engine, EngineError, StartOptions, Submitted};
use flowstone_flow::flow::{LoadedFlow, reload};
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::access::{Kind, SEAT, Who, may_call_back, within_limits};
use super::agents::Agent;
use super::answers::about_step;
use super::audit::canonical;
use super::codes;
use super::compile::{Target, slug};
use super::error::{GraphError, Status};
use super::events::{BARE_INPUT, Chain, Projection, RunEvent, failure_of, input_of, output_of};
use super::offered::missing_at_servers;
use super::project;
use super::shape::{self, Issue, Member, Shape};
use super::webhooks;
use crate::address::host_of;

/// How long an idempotency key is kept.
const KEY_MS: i64 = 86_400_000;
/// Number of rows of a feed that are read at a time.
const PAGE: usize = 500;
/// How long an idempotency key may be.
const KEY_MAX: usize = 128;
/// How often a start is counted again because another one came between.
const TRIES: u32 = 100;

/// A request to start a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Start {
    pub input: Json,
    pub idempotency_key: Option<String>,
    pub webhook_url: Option<String>,
    /// The digest of the whole body; empty if the same body starts a run each time.
    digest: String,
}

const START: Shape = Shape::Object(&[
    Member::optional(
        "input",
        Shape::Any,
        "The input; an empty object if it is left out.",
    ),
    Member::optional(
        "idempotency_key",
        Shape::Text(KEY_MAX),
        "The same key starts one run within 24 hours.",
    ),
    Member::optional(
        "webhook_url",
        Shape::Text(2_000),
        "An address that is called when the run is over. Needs a token of the owner, or of kind `service` with the scope `edit`.",
    ),
    Member::optional(
        "caller_user_id",
        Shape::Text(256),
        "Accepted for compatibility; a caller is known by the token.",
    ),
]);

impl Start {
    /// Reads the body of a start.
    ///
    /// # Errors
    /// When it is not valid. The error lists all problems.
    pub fn read(body: &Json) -> Result<Start, GraphError> {
        let mut issues = Vec::new();
        shape::check(&START, body, &mut issues);
        let text = |key: &str| body.get(key).and_then(Json::as_str).map(str::to_owned);
        if text("idempotency_key").is_some_and(|key| key.is_empty()) {
            issues.push(Issue::at(
                &[json!("idempotency_key")],
                "expected 1 to 128 characters, got none",
            ));
        }
        if text("webhook_url").is_some_and(|url| host_of(&url).is_none()) {
            issues.push(Issue::at(
                &[json!("webhook_url")],
                "expected an address that begins with http:// or https://, without credentials in it",
            ));
        }
        let members = body.get("input").and_then(Json::as_object);
        let reserved = members.into_iter().flat_map(serde_json::Map::keys);
        for key in reserved.filter(|key| key.starts_with("graph/")) {
            issues.push(Issue::at(
                &[json!("input"), json!(key)],
                "begins with `graph/`, which is for names that the server sets",
            ));
        }
        if !issues.is_empty() {
            return Err(GraphError::invalid(
                codes::MALFORMED,
                "the body is not valid",
                &issues,
            ));
        }
        Ok(Start {
            input: match body.get("input") {
                None | Some(Json::Null) => json!({}),
                Some(input) => input.clone(),
            },
            idempotency_key: text("idempotency_key"),
            webhook_url: text("webhook_url"),
            digest: digest_bytes(canonical(body).as_bytes()),
        })
    }

    /// Returns the start of a call, which is a run of its own even if an earlier call had the same input.
    pub fn of_call(input: Json) -> Start {
        Start {
            input,
            ..Start::default()
        }
    }

    /// Returns the receipt that keeps a start from being repeated; `None` if it may be repeated.
    fn receipt(&self, agent: &Agent, who: &Who, now_ms: i64) -> Option<NewReceipt> {
        let scope = format!("graph agent {} {}", agent.name, who.identity());
        if let Some(key) = &self.idempotency_key {
            return Some(NewReceipt {
                scope,
                key: format!("key {key}"),
                digest: digest_bytes(canonical(&self.input).as_bytes()),
                until_ms: now_ms.saturating_add(KEY_MS),
            });
        }
        let is_repeatable = self.digest.is_empty() || agent.dedupe_seconds() == 0;
        if who.kind == Kind::Anonymous || is_repeatable {
            return None;
        }
        Some(NewReceipt {
            scope,
            key: match agent.is_strict() {
                true => "body".to_owned(),
                false => format!("body {}", self.digest),
            },
            digest: self.digest.clone(),
            until_ms: now_ms.saturating_add(agent.dedupe_seconds().saturating_mul(1_000)),
        })
    }

    /// Returns the input of the flow: an object with the input of the run and the internal keys.
    fn flow_input(&self) -> Value {
        let input = match &self.input {
            Json::Object(members) => members.clone(),
            bare => [(BARE_INPUT.to_owned(), bare.clone())]
                .into_iter()
                .collect(),
        };
        from_json(&Json::Object(input))
    }
}

/// A run that this request, or an earlier equal one, started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedRun {
    pub run: RunId,
    pub status: &'static str,
    /// An earlier equal request started the run.
    pub is_replay: bool,
}

/// Starts a run of an agent, unless an equal request has done so before.
///
/// # Errors
/// When the agent is disabled, the project lacks a tool or a model, a limit is reached, another request has the same key, the
/// input has a key that the engine sets, or the caller may not name a webhook.
pub async fn start(
    engine: &Engine,
    agent: &Agent,
    who: &Who,
    start: &Start,
) -> Result<StartedRun, GraphError> {
    if agent.is_disabled() {
        let error = format!("the agent `{}` is disabled", agent.name);
        return Err(GraphError::new(Status::BadRequest, codes::DISABLED, error));
    }
    may_call_back(who, start)?;
    refuse_reserved(&start.flow_input())?;
    if let Some(url) = start.webhook_url.as_deref()
        && !webhooks::may_call(engine, url)
    {
        let message = "the project does not allow this address: name its host in `:allow {:net [...]}` of flowstone.edn";
        let issue = Issue::at(&[json!("webhook_url")], message);
        let error = "the body is not valid";
        return Err(GraphError::invalid(codes::MALFORMED, error, &[issue]));
    }
    let now_ms = engine.now_ms();
    let receipts: Vec<NewReceipt> = start.receipt(agent, who, now_ms).into_iter().collect();
    if let Some(known) = replayed(engine, start, &receipts, now_ms).await? {
        return Ok(known);
    }
    let spec = agent.spec()?;
    let known = project::known(engine, &spec).await?;
    let models = project::models(engine, agent.fallback());
    let target = Target {
        name: &agent.name,
        caller: who.audience(),
        known: &known,
        models: &models,
        keeps_spec: Some(agent.spec_json()),
    };
    let session = Rc::new(engine.session());
    let made = project::make(engine, &session, &spec, &target).map_err(|issues| {
        let texts: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
        GraphError::invalid(codes::LACKING, texts.join("; "), &issues)
    })?;
    if let Some(problem) = project::problem(&made) {
        return Err(GraphError::new(Status::BadRequest, codes::LACKING, problem));
    }
    let loaded = made.checked.loaded.ok_or_else(|| {
        GraphError::new(Status::BadRequest, codes::LACKING, "the spec made no flow")
    })?;
    let missing = missing_at_servers(engine, &spec, &known).await;
    if !missing.is_empty() {
        let texts: Vec<&str> = missing.iter().map(|issue| issue.message.as_str()).collect();
        let error = texts.join("; ");
        return Err(GraphError::invalid(codes::LACKING, error, &missing));
    }
    let name = match &start.webhook_url {
        Some(url) => Some(webhooks::note(engine, url).await?),
        None => None,
    };
    let begun = submit(
        engine,
        agent,
        (who, start),
        (&loaded, name.clone(), &receipts),
    )
    .await;
    let is_new = begun.as_ref().is_ok_and(|begun| !begun.is_replay);
    if let Some(name) = name.filter(|_| !is_new) {
        webhooks::forget(engine, &name).await?;
    }
    begun
}

/// Adds the run of a start, unless an equal request was committed in the meantime. `name`: the external id of the run.
async fn submit(
    engine: &Engine,
    agent: &Agent,
    (who, start): (&Who, &Start),
    (loaded, name, receipts): (&LoadedFlow, Option<String>, &[NewReceipt]),
) -> Result<StartedRun, GraphError> {
    let digest = receipts.first().map(|receipt| receipt.digest.clone());
    for _ in 0..TRIES {
        let seat = match within_limits(engine, agent, who).await {
            Ok(seat) => seat,
            // The run that reached the limit may be that of an equal request: a replay does not count.
            Err(refusal) => {
                let known = replayed(engine, start, receipts, engine.now_ms()).await?;
                return known.ok_or(refusal);
            }
        };
        let options = StartOptions {
            external_id: name.clone(),
            is_left: true,
            started_by: Some(who.started_by()),
            ..StartOptions::with_input(start.flow_input())
        };
        let receipts = receipts.iter().cloned().chain(seat).collect();
        match engine.submit_once(loaded, options, receipts).await? {
            Submitted::Started(started) => {
                return Ok(StartedRun {
                    run: started.run,
                    status: "queued",
                    is_replay: false,
                });
            }
            // Another start was counted in the meantime.
            Submitted::Known(past) if past.digest == SEAT => {}
            // An equal request was committed in the meantime.
            Submitted::Known(past) => {
                return of_past(engine, start, digest.as_deref(), &past).await;
            }
        }
    }
    let error = "too many runs of the agent are started at the same moment";
    Err(GraphError::new(Status::TooMany, codes::LIMITED, error).after(1))
}

/// Returns the run that an earlier equal request has started.
async fn replayed(
    engine: &Engine,
    start: &Start,
    receipts: &[NewReceipt],
    now_ms: i64,
) -> Result<Option<StartedRun>, GraphError> {
    if receipts.is_empty() {
        return Ok(None);
    }
    // A delivery without runs writes no receipt.
    let delivery = Delivery {
        receipts: receipts.to_vec(),
        now_ms,
        ..Delivery::default()
    };
    match engine.stores().queue.deliver(delivery).await? {
        Delivered::Taken { .. } => Ok(None),
        Delivered::Known(past) => {
            let digest = receipts.first().map(|receipt| receipt.digest.as_str());
            of_past(engine, start, digest, &past).await.map(Some)
        }
    }
}

async fn of_past(
    engine: &Engine,
    start: &Start,
    digest: Option<&str>,
    past: &flowstone_engine::ports::PastDelivery,
) -> Result<StartedRun, GraphError> {
    let run = past
        .runs
        .first()
        .cloned()
        .unwrap_or_else(|| RunId::from_text(String::new()));
    if digest != Some(past.digest.as_str()) {
        let error = match start.idempotency_key {
            Some(_) => "idempotency_key_reuse",
            None => "another body was sent to this agent within its dedupe window",
        };
        return Err(GraphError::new(Status::Conflict, codes::REUSED, error)
            .with("existing_run_id", json!(run.as_str())));
    }
    let row = engine.run(&run).await?;
    Ok(StartedRun {
        status: status(engine, &row).await?,
        run,
        is_replay: true,
    })
}

/// Returns a run of an agent.
///
/// # Errors
/// When the agent has no such run.
pub async fn find(engine: &Engine, agent: &str, id: &str) -> Result<RunRow, GraphError> {
    let row = any(engine, id).await?;
    match row.flow == slug(agent) {
        true => Ok(row),
        false => Err(no_run(id)),
    }
}

/// Returns a run.
///
/// # Errors
/// When no run has that id.
pub async fn any(engine: &Engine, id: &str) -> Result<RunRow, GraphError> {
    match engine.run(&RunId::from_text(id)).await {
        Ok(row) => Ok(row),
        Err(EngineError::NoSuchRun { .. }) => Err(no_run(id)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error for a run that does not exist, or that the caller may not see.
pub fn no_run(id: &str) -> GraphError {
    GraphError::new(
        Status::NotFound,
        codes::MISSING,
        format!("there is no run `{id}`"),
    )
}

/// Returns the state of a run in the terms of graph agents.
///
/// # Errors
/// When the store cannot be read.
pub async fn status(engine: &Engine, row: &RunRow) -> Result<&'static str, EngineError> {
    let facts = (row.status, row.begun, row.cancel_requested.is_some());
    status_of(engine, &row.id, facts).await
}

async fn status_of(
    engine: &Engine,
    run: &RunId,
    (status, begun, is_cancelling): (RunStatus, bool, bool),
) -> Result<&'static str, EngineError> {
    Ok(match status {
        RunStatus::Queued => "queued",
        RunStatus::Completed => "completed",
        RunStatus::Failed | RunStatus::FailedCompensating | RunStatus::TimedOut => "failed",
        RunStatus::Cancelled | RunStatus::Terminated => "cancelled",
        RunStatus::Running | RunStatus::Waiting if is_cancelling => "cancelling",
        RunStatus::Running if !begun => "queued",
        RunStatus::Running => "running",
        RunStatus::Waiting => match open_waits(engine, run).await?.is_empty() {
            false => "paused",
            true => "running",
        },
    })
}

/// Returns the waits of a run, and of the runs that its tool calls started, which a person has to answer.
pub(super) async fn open_waits(engine: &Engine, run: &RunId) -> Result<Vec<WaitRow>, EngineError> {
    let mut waits = engine.waits_below(run).await?;
    waits.retain(|wait| wait.state == WaitState::Open);
    Ok(waits)
}

/// Returns a run in the form of responses.
///
/// # Errors
/// When the store cannot be read.
pub async fn show(engine: &Engine, row: &RunRow) -> Result<Json, GraphError> {
    let status = status(engine, row).await?;
    let mut run = json!({
        "id": row.id.as_str(),
        "run_id": row.id.as_str(),
        "status": status,
        "input": input_of(row),
        "output": Json::Null,
        "error": Json::Null,
        "created_at": instant(row.created_ms),
        "updated_at": instant(row.updated_ms),
        "finished_at": row.ended_ms.map_or(Json::Null, instant),
    });
    match row.status {
        RunStatus::Completed => run["output"] = output_of(row),
        RunStatus::Failed | RunStatus::FailedCompensating | RunStatus::TimedOut => {
            let failure = failure_of(row);
            run["error"] = failure["error"].clone();
            run["reason"] = failure["reason"].clone();
        }
        RunStatus::Queued
        | RunStatus::Running
        | RunStatus::Waiting
        | RunStatus::Cancelled
        | RunStatus::Terminated => {}
    }
    if let Some(mut reader) = Reader::open(engine, row).await? {
        reader.read_all().await?;
        let projection = reader.projection();
        run["agent"] = json!(projection.agent());
        run["attempt"] = json!(projection.attempt());
        if let Some((node, step)) = projection.node() {
            run["checkpoint"] = json!({"step": step, "node_id": node, "state": projection.state()});
        }
        if status == "paused" {
            let waits = open_waits(engine, &row.id).await?;
            let pause = projection.pause();
            let is_it = |wait: &&WaitRow| pause.is_some_and(|pause| pause.wait == wait.id);
            let wait = waits.iter().find(is_it).or(waits.first());
            let asked = wait.and_then(|wait| {
                let child = (wait.run != row.id).then(|| wait.run.as_str());
                about_step(wait, child, projection.call_of(child))
            });
            run["pause"] = json!(asked.or(pause.map(|pause| pause.payload.clone())));
        }
    }
    Ok(run)
}

/// Returns the runs of an agent, newest first, without their inputs and outputs.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(engine: &Engine, agent: &str, limit: usize) -> Result<Vec<Json>, GraphError> {
    let query = RunQuery {
        flow: Some(slug(agent)),
        limit,
        ..RunQuery::default()
    };
    let mut runs = Vec::new();
    for run in engine.summaries(query).await? {
        let facts = (run.status, run.begun, run.is_cancel_requested);
        runs.push(json!({
            "id": run.id.as_str(),
            "run_id": run.id.as_str(),
            "agent": agent,
            "status": status_of(engine, &run.id, facts).await?,
            "created_at": instant(run.created_ms),
            "updated_at": instant(run.updated_ms),
            "finished_at": run.ended_ms.map_or(Json::Null, instant),
        }));
    }
    Ok(runs)
}

/// Cancels a run, and returns its new state.
///
/// # Errors
/// When the run has ended.
pub async fn cancel(engine: &Engine, row: &RunRow, by: &str) -> Result<&'static str, GraphError> {
    if row.status.is_final() {
        return Err(over(engine, row).await?);
    }
    engine
        .request_cancel(&row.id, &format!("cancelled by {by}"))
        .await?;
    Ok(status(engine, &engine.run(&row.id).await?).await?)
}

async fn over(engine: &Engine, row: &RunRow) -> Result<GraphError, GraphError> {
    let status = status(engine, row).await?;
    Ok(GraphError::new(
        Status::Conflict,
        codes::OVER,
        format!("the run `{}` is {status}", row.id),
    )
    .with("run_status", json!(status)))
}

/// Tells whether a run may have more events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedState {
    More,
    /// The run has not ended.
    Open,
    Ended,
}

/// Reads the events of a run.
pub struct Reader {
    stores: Stores,
    run: RunId,
    /// The number of the last row that was read.
    after: i64,
    projection: Projection,
}

impl Reader {
    /// Opens the events of a run; `None` if its flow was not compiled from a graph spec.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn open(engine: &Engine, row: &RunRow) -> Result<Option<Reader>, EngineError> {
        let Some(program) = engine.stores().runs.program(&row.program).await? else {
            return Ok(None);
        };
        let checked = reload(&engine.session(), &program);
        let chain = checked.loaded.and_then(|loaded| Chain::of(&loaded.flow));
        Ok(chain.map(|chain| Reader {
            stores: engine.stores().clone(),
            run: row.id.clone(),
            after: 0,
            projection: Projection::new(chain),
        }))
    }

    /// Returns a value that changes whenever there may be more events.
    pub fn news(&self) -> Box<dyn News> {
        self.stores.feed.watch(&self.run)
    }

    /// Returns the next events. An empty page does not mean that there are no more.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn page(&mut self) -> Result<(Vec<RunEvent>, FeedState), EngineError> {
        let page = self.stores.feed.read(&self.run, self.after, PAGE).await?;
        let Some(page) = page.filter(|page| !page.is_pruned) else {
            return Ok((Vec::new(), FeedState::Ended));
        };
        let stand = match (page.rows.len() >= PAGE, page.status.is_final()) {
            (true, _) => FeedState::More,
            (false, true) => FeedState::Ended,
            (false, false) => FeedState::Open,
        };
        if page.rows.is_empty() {
            return Ok((Vec::new(), stand));
        }
        let Some(row) = self.stores.runs.find(&self.run).await? else {
            return Ok((Vec::new(), FeedState::Ended));
        };
        let mut events = Vec::new();
        for found in &page.rows {
            events.extend(self.projection.take(&found.item, &row));
            self.after = found.seq;
        }
        Ok((events, stand))
    }

    /// Reads all events so far.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read_all(&mut self) -> Result<Vec<RunEvent>, EngineError> {
        let mut all = Vec::new();
        loop {
            let (events, stand) = self.page().await?;
            all.extend(events);
            if stand != FeedState::More {
                return Ok(all);
            }
        }
    }

    pub fn projection(&self) -> &Projection {
        &self.projection
    }
}

/// Returns the events of a run after a number.
///
/// # Errors
/// When the store cannot be read.
pub async fn events(
    engine: &Engine,
    row: &RunRow,
    after: i64,
    limit: usize,
) -> Result<Vec<Json>, GraphError> {
    let Some(mut reader) = Reader::open(engine, row).await? else {
        return Ok(Vec::new());
    };
    let all = reader.read_all().await?;
    let later = all.iter().filter(|event| event.seq > after);
    Ok(later.take(limit).map(RunEvent::to_json).collect())
}

/// Returns the rows of the audit of a run.
///
/// # Errors
/// When the run's flow was not compiled from a graph spec.
pub async fn tool_calls(engine: &Engine, row: &RunRow) -> Result<Vec<Json>, GraphError> {
    let Some(mut reader) = Reader::open(engine, row).await? else {
        return Err(no_run(row.id.as_str()));
    };
    reader.read_all().await?;
    let calls = reader.projection().calls().iter();
    Ok(calls.map(|call| call.row(row.id.as_str())).collect())
}
