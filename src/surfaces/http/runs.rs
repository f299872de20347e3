//! `/api/v1/runs`: starting, listing, showing and ending runs.

mod again;
mod bulk;
mod reach;
mod records;
mod show;
mod target;

use std::rc::Rc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use flowstone_engine::catalog::ServedFlow;
use flowstone_engine::ids::RunId;
use flowstone_engine::installation::Side;
use flowstone_engine::ports::{
    CHILD_KEY, NewReceipt, RunOrder, RunQuery, RunRow, RunStatus, RunSummary as Summary,
    StartDecision, WaitFilter, WaitState, wall_clock_ms,
};
use flowstone_engine::token::{Scope, TokenKind};
use flowstone_engine::trace::{TraceOrigin, TraceParent};
use flowstone_engine::{StartOptions, StartedRun, Submitted};
use flowstone_flow::flow::undeclared_inputs;
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::access::Caller;
use super::answer::Answer;
use super::cursor;
use super::flows::no_flow;
use super::operation::{
    self as shape, CURSOR, GIVEN, Kind, LIMIT, Operation, Operations, Param, Shape, names, type_of,
};
use super::problem::{Problem, codes};
use super::request::{Given, Members, Query};
use super::rights::Right;
use super::server::{EngineContext, Shared};
use super::trace;
use crate::json::{
    BulkRun, Run, RunMarks, RunSummary, StartMarks, add_decision, marked_json, summary_json,
};

use reach::{for_author, reached_as, whole_json};
pub(crate) use reach::{is_reached, side};
pub(super) use reach::{reached, run_json};

/// Maximum time that a start waits for the end of the run.
const WAIT_MAX: Duration = Duration::from_secs(180);
/// Maximum number of runs that are read to fill a page of those that the caller reaches.
const SCANNED_MAX: usize = 5_000;

pub(super) fn operations() -> Operations {
    Operations::default()
        .and(show::operations())
        .and(again::operations())
        .and(records::operations())
        .with(
            Operation::get("/api/v1/runs", "listRuns", "Lists runs, newest first.")
                .scope(Scope::Read)
                .query(FILTERS)
                .ok(shape::page_of(
                    "runs",
                    Shape::OneOf(vec![
                        Shape::All(
                            "ListedRun",
                            vec![type_of::<RunSummary>(), type_of::<RunMarks>()],
                        ),
                        Shape::All(
                            "ListedFullRun",
                            vec![type_of::<Run>(), type_of::<RunMarks>()],
                        ),
                    ]),
                )),
            list,
        )
        .with(
            Operation::post(
                "/api/v1/runs",
                "startRuns",
                "Starts many runs, all of them or none.",
            )
            .scope(Scope::Run)
            .headers(KEY)
            .members(bulk::MEMBERS)
            .ok(shape::list::<BulkRun>("runs"))
            .refuses(&[409, 422]),
            bulk::start,
        )
        .with(
            Operation::post("/api/v1/runs/{id}/cancel", "cancelRun", "Cancels a run.")
                .scope(Scope::Run)
                .members(CANCEL)
                .json(StatusCode::ACCEPTED, "The run.", shape::of::<Run>())
                .refuses(&[409]),
            cancel,
        )
}

/// The operation of a start, whose address is that of a flow.
pub(super) fn start_operation() -> Operation {
    let run = Shape::OneOf(vec![
        Shape::All(
            "StartedRun",
            vec![type_of::<Run>(), type_of::<StartMarks>()],
        ),
        shape::of::<Run>(),
    ]);
    Operation::post("/api/v1/flows/{slug}/runs", "startRun", "Starts a run.")
        .scope(Scope::Run)
        .headers(START_HEADERS)
        .members(START)
        .json(
            StatusCode::CREATED,
            "The run. `Location` has its address.",
            run.clone(),
        )
        .json(
            StatusCode::OK,
            "The run, which ended within `wait`, or which had its `id` before.",
            run.clone(),
        )
        .json(
            StatusCode::ACCEPTED,
            "The run, which did not end within `wait`.",
            run,
        )
        .refuses(&[409, 422])
}

const IDEMPOTENCY: Param = Param::text(
    "Idempotency-Key",
    "1 to 255 visible characters: the same key with the same body takes effect once within 24 hours.",
);
const KEY: &[Param] = &[IDEMPOTENCY];
const START_HEADERS: &[Param] = &[
    IDEMPOTENCY,
    Param::text(
        "Prefer",
        "`wait=30` waits up to 30 seconds for the end of the run.",
    ),
];
const CANCEL: &[Param] = &[
    Param::flag(
        "force",
        "Ends the run at once, without `finally` blocks and compensations.",
    ),
    Param::text("reason", "The reason."),
];

/// The header with the key of a start that is to take place once.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const KEY_MAX: usize = 255;
/// How long a key is remembered.
const RECEIPT_MS: i64 = 24 * 60 * 60 * 1000;
/// How many digits of a version are shown.
const VERSION_DIGITS: usize = 12;

/// The code of a manual interface that is disabled.
const MANUAL_OFF: &str = "E0954";

/// Which version of the registry is started.
const TARGET: Param = Param::new(
    "target",
    Kind::OneOf(&["draft", "live"]),
    "The newest or the released version of the registry; what is served if it is left out.",
);
const START: &[Param] = &[
    Param::text(
        "id",
        "Your own name for the run. If a run has it already, no other is started.",
    ),
    Param::new(
        "input",
        Kind::Any,
        "The input; an empty object if it is left out.",
    ),
    Param::text(
        "installation",
        "The installation of the flow, in the workspace of the token.",
    ),
    Param::text(
        "invocation",
        "The invocation of the flow; the default one if it is left out.",
    ),
    Param::number(
        "priority",
        "Priority in the queue: runs with higher numbers start first.",
    ),
    Param::text(
        "profile",
        "The profile of the settings that the run uses. Needs the scope `admin`.",
    ),
    TARGET,
    Param::new(
        "timeout",
        Kind::Duration,
        "Cancels the run if it takes longer.",
    ),
    GIVEN,
    Param::new(
        "version",
        Kind::Name,
        "The number of a version in the registry, or the beginning of the program that must be served.",
    ),
    Param::new(
        "wait",
        Kind::Duration,
        "How long to wait for the end of the run, up to 180s.",
    ),
];

/// `POST /api/v1/flows/{slug}/runs`.
pub(super) async fn start(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    let given = Members::read(&headers, body, &names(START)).await?;
    let profile = given.text("profile")?;
    if profile.is_some() {
        caller.need(Scope::Admin)?;
    }
    let wait = wait_time(&given, &headers)?;
    let path = format!("/api/v1/flows/{slug}/runs");
    let receipt = receipt(&caller, &headers, &path, given.digest())?;
    let start = Start {
        is_interface: false,
        receipt,
        flow: slug,
        version: given.name("version")?,
        target: given.text("target")?,
        installation: given.text("installation")?,
        input: given.value("input", given.values()?)?,
        invocation: given.text("invocation")?,
        id: given.text("id")?,
        priority: given.number("priority")?,
        timeout: given.duration("timeout")?,
        profile,
        trace: trace::of_caller(&headers),
    };
    let asking = caller.clone();
    let (started, is_replayed) = begin(&server, asking, start).await?;
    let run = RunId::from_text(started["id"].as_str().unwrap_or_default());
    let location = format!("/api/v1/runs/{run}");
    let answer = |status: StatusCode, body: Json| {
        let answer = Answer::with(status, body).header(header::LOCATION, &location);
        match is_replayed {
            true => answer.header(REPLAYED, "true"),
            false => answer,
        }
    };
    let Some(wait) = wait else {
        let is_deduped = started["concurrencyDecision"] == StartDecision::Deduped.name();
        let status = match is_deduped {
            true => StatusCode::OK,
            false => StatusCode::CREATED,
        };
        return Ok(answer(status, started));
    };
    let right = server.rights.open(&caller);
    let by = (Some(caller), Some(right));
    let mut shown = ended_within(&server, by, (run, wait)).await?;
    for key in [
        "concurrencyDecision",
        "concurrencyKey",
        "replaced",
        "warnings",
    ] {
        if let Some(mark) = started.get(key) {
            shown[key] = mark.clone();
        }
    }
    let is_over = shown["endedAt"].is_string();
    let status = if is_over {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    Ok(answer(status, shown))
}

/// A run to be started. A value of the language stays on its thread, so the input is what it came as until it is there.
struct Start {
    /// Not by hand: an interface that is enabled starts it.
    is_interface: bool,
    receipt: Option<NewReceipt>,
    flow: String,
    version: Option<String>,
    target: Option<String>,
    installation: Option<String>,
    input: Option<Given>,
    invocation: Option<String>,
    id: Option<String>,
    priority: Option<i64>,
    timeout: Option<Duration>,
    profile: Option<String>,
    trace: Option<TraceOrigin>,
}

/// Returns how long a start waits; nothing if it does not.
fn wait_time(given: &Members, headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let preferred = headers.get(HeaderName::from_static("prefer"));
    let preferred = preferred
        .and_then(|text| text.to_str().ok())
        .and_then(|text| {
            let parts = text
                .split([',', ';'])
                .filter_map(|part| part.trim().strip_prefix("wait="));
            parts
                .filter_map(|seconds| seconds.trim().parse().ok())
                .next()
        });
    let wait = given
        .duration("wait")?
        .or(preferred.map(Duration::from_secs));
    match wait {
        Some(wait) if wait > WAIT_MAX => Err(Problem::malformed(format!(
            "`wait` can be at most {} s",
            WAIT_MAX.as_secs()
        ))),
        wait => Ok(wait),
    }
}

/// Returns what is kept of a request to `path` that has a key, so that it has an effect once.
fn receipt(
    caller: &Caller,
    headers: &HeaderMap,
    path: &str,
    digest: String,
) -> Result<Option<NewReceipt>, Problem> {
    let key = idempotency_key(headers)?;
    Ok(key.map(|key| NewReceipt {
        scope: format!("{} POST {path}", caller.identity()),
        key,
        digest,
        until_ms: wall_clock_ms().saturating_add(RECEIPT_MS),
    }))
}

/// The answer to a key that came with another body before.
fn key_reused() -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        codes::KEY_REUSED,
        "this `Idempotency-Key` came with another body before",
    )
    .hint("use a new key for each thing that is to be done once")
}

/// Returns the key under which a request starts a run once.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = given.next() else {
        return Ok(None);
    };
    let key = key.to_str().unwrap_or_default();
    let is_visible = key.bytes().all(|byte| byte.is_ascii_graphic());
    match given.next().is_none() && is_visible && (1..=KEY_MAX).contains(&key.len()) {
        true => Ok(Some(key.to_owned())),
        false => Err(Problem::malformed(format!(
            "`Idempotency-Key` must be there once, with 1 to {KEY_MAX} visible ASCII characters"
        ))),
    }
}

/// Starts a run of a served flow and returns it as JSON, and whether it was started before with the same key.
async fn begin(server: &Shared, caller: Caller, start: Start) -> Result<(Json, bool), Problem> {
    server
        .ask(async move |cx: &EngineContext| {
            let named = (
                &*start.flow,
                start.version.as_deref(),
                start.target.as_deref(),
            );
            target::refuse_both(&start)?;
            let (flow, installation) = match &start.installation {
                Some(name) => {
                    let named = (&*start.flow, &**name);
                    let found = target::installed(cx, &caller, named).await?;
                    (found.0, Some(found.1))
                }
                None => (target::to_start(cx, &caller, named).await?, None),
            };
            if !start.is_interface {
                may_start(&caller, &flow, start.invocation.as_deref())?;
            }
            let input = start
                .input
                .as_ref()
                .map_or_else(|| Value::map([]), Given::value);
            let undeclared =
                undeclared_inputs(&flow.loaded.flow, start.invocation.as_deref(), &input);
            let options = StartOptions {
                invocation: start.invocation,
                external_id: start.id,
                started_by: Some(caller.started_by()),
                priority: start.priority,
                timeout: start.timeout,
                profile: start.profile,
                trace: start.trace,
                installation,
                ..StartOptions::from_outside(input)?
            };
            let Some(receipt) = start.receipt else {
                let started = cx.engine.submit(&flow.loaded, options).await?;
                return Ok((own_json(cx, &caller, (&started, &undeclared)).await?, false));
            };
            let digest = receipt.digest.clone();
            let submitted = cx.engine.submit_once(&flow.loaded, options, vec![receipt]);
            match submitted.await? {
                Submitted::Started(started) => {
                    Ok((own_json(cx, &caller, (&started, &undeclared)).await?, false))
                }
                Submitted::Known(past) if past.digest != digest => Err(key_reused()),
                Submitted::Known(past) => {
                    let run = past.runs.first().cloned();
                    let run = run.unwrap_or_else(|| RunId::from_text(String::new()));
                    trace::touches(&run);
                    Ok((run_json(cx, Some(&caller), &run).await?, true))
                }
            }
        })
        .await
}

/// Starts a run of a flow by one of its interfaces.
pub(crate) async fn start_interface(
    server: &Shared,
    caller: Caller,
    (flow, installation, invocation): (String, Option<String>, String),
    (input, trace): (Json, Option<TraceParent>),
) -> Result<RunId, Problem> {
    caller.need(Scope::Run)?;
    let start = Start {
        is_interface: true,
        receipt: None,
        flow,
        version: None,
        target: None,
        installation,
        input: Some(Given::Json(input)),
        invocation: Some(invocation),
        id: None,
        priority: None,
        timeout: None,
        profile: None,
        trace: trace.map(TraceOrigin::Parent),
    };
    let (started, _) = begin(server, caller, start).await?;
    let id = started["id"].as_str().unwrap_or_default();
    Ok(RunId::from_text(id.to_owned()))
}

/// Returns a served flow that the caller reaches. With a version, it must be the served one.
fn served(
    cx: &EngineContext,
    caller: &Caller,
    slug: &str,
    version: Option<&str>,
) -> Result<Rc<ServedFlow>, Problem> {
    let flow = cx.catalog.flow(&cx.engine, slug);
    let flow = flow.filter(|flow| caller.token.reaches_flow(&flow.slug, &flow.labels));
    let flow = flow.ok_or_else(|| no_flow(slug))?;
    let hash = &flow.loaded.program.hash;
    if let Some(version) = version.filter(|it| it.is_empty() || !hash.starts_with(*it)) {
        let short = |hash: &str| hash.get(..VERSION_DIGITS).unwrap_or(hash).to_owned();
        let [served, version] = [hash.as_str(), version].map(short);
        let detail = format!("the server serves version {served} of `{slug}`, not {version}");
        return Err(Problem::new(StatusCode::CONFLICT, codes::VERSION, detail));
    }
    Ok(flow)
}

/// Refuses users a flow whose manual interface is disabled; programs start it by their scope.
fn may_start(caller: &Caller, flow: &ServedFlow, invocation: Option<&str>) -> Result<(), Problem> {
    let is_person = matches!(caller.token.kind, TokenKind::User | TokenKind::Anon);
    match flow.loaded.flow.manual_off(invocation) {
        Some(interface) if is_person => Err(Problem::new(
            StatusCode::FORBIDDEN,
            MANUAL_OFF,
            format!(
                "the manual interface `:{interface}` of `{}` is disabled",
                flow.slug
            ),
        )),
        _ => Ok(()),
    }
}

/// Returns a run that was just started, with what was decided about its start.
pub(super) async fn started_json(
    cx: &EngineContext,
    started: &StartedRun,
    undeclared: &[Diagnostic],
) -> Result<Json, Problem> {
    trace::touches(&started.run);
    let mut shown = run_json(cx, None, &started.run).await?;
    if let Some(members) = shown.as_object_mut() {
        add_decision(members, started, undeclared);
    }
    Ok(shown)
}

/// Returns a run that was just started, or that had its id already, if the caller reaches it.
async fn own_json(
    cx: &EngineContext,
    caller: &Caller,
    (started, undeclared): (&StartedRun, &[Diagnostic]),
) -> Result<Json, Problem> {
    if started.decision == StartDecision::Deduped {
        let row = cx.engine.run(&started.run).await?;
        refuse_others(cx, caller, &row)?;
    }
    started_json(cx, started, undeclared).await
}

/// Refuses a start whose id a run has that the caller does not reach, or may not read.
fn refuse_others(cx: &EngineContext, caller: &Caller, row: &RunRow) -> Result<(), Problem> {
    let side = side(cx, caller, (&row.flow, &row.started_by));
    match side.is_installer() && caller.may_read(row) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::CONFLICT,
            codes::ID_TAKEN,
            format!(
                "the id `{}` is used by another run",
                row.external_id.as_deref().unwrap_or_default()
            ),
        )
        .hint("use another id, or an `Idempotency-Key`, which belongs to your token")),
    }
}

/// Returns a run when it is over, or as it is after some time.
///
/// # Errors
/// When the right of the caller ends meanwhile; a sender without a token has none.
pub(super) async fn ended_within(
    server: &Shared,
    (caller, mut right): (Option<Caller>, Option<Right>),
    (run, wait): (RunId, Duration),
) -> Result<Json, Problem> {
    server
        .ask(async move |cx: &EngineContext| {
            let mut news = cx.engine.stores().agenda.news();
            let end = tokio::time::Instant::now() + wait;
            loop {
                news.mark_seen();
                let row = cx.engine.run(&run).await?;
                if row.status.is_final() || is_for_others(cx, &row).await? {
                    return run_json(cx, caller.as_ref(), &run).await;
                }
                let ended = async {
                    match &mut right {
                        Some(right) => right.ended().await,
                        None => std::future::pending().await,
                    }
                };
                let is_late = tokio::select! {
                    changed = tokio::time::timeout_at(end, news.changed()) => changed.is_err(),
                    ended = ended => return Err(ended.into()),
                };
                if is_late {
                    return run_json(cx, caller.as_ref(), &run).await;
                }
            }
        })
        .await
}

/// Tells whether a run waits for others: for its turn, or for an answer. A run that sleeps continues by itself.
async fn is_for_others(cx: &EngineContext, row: &RunRow) -> Result<bool, Problem> {
    Ok(match row.status {
        RunStatus::Queued => true,
        RunStatus::Waiting => {
            // Also what it waits for workers to do, which lists of waits leave out.
            let filter = WaitFilter {
                run: Some(row.id.clone()),
                all: true,
                ..WaitFilter::default()
            };
            let waits = cx.engine.stores().waits.list(filter).await?;
            let mut waits = waits.iter();
            waits.any(|wait| wait.state == WaitState::Open && !wait.key.starts_with(CHILD_KEY))
        }
        _ => false,
    })
}

/// Stands beside statuses in filters: a running run that no process executes.
const INTERRUPTED: &str = "interrupted";

const FILTERS: &[Param] = &[
    Param::text("before", "Only runs after this one in the list."),
    CURSOR,
    Param::text("flow", "Only runs of this flow."),
    Param::flag("full", "Adds inputs, results and errors."),
    Param::text("key", "Only runs with this `:concurrency` key."),
    LIMIT,
    Param::text("parent", "Only runs that this run called."),
    Param::text(
        "since",
        "Only runs created since this instant, or within this duration.",
    ),
    Param::text("sort", "The order of the list."),
    Param::text("startedBy", "Only runs that were started by this."),
    Param::new(
        "status",
        Kind::Texts,
        "Only runs with one of these statuses.",
    ),
    Param::text(
        "text",
        "Only runs whose input, result or error contains this text.",
    ),
    Param::text(
        "until",
        "Only runs created before this instant, or before this duration.",
    ),
    Param::text("workflowId", "As `flow`."),
];

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let given = Query::read(query.as_deref(), &names(FILTERS))?;
    let now_ms = flowstone_engine::ports::wall_clock_ms();
    let (mut query, filters) = run_query(&given, now_ms)?;
    query.after = given.owned("before").map(RunId::from_text);
    if let Some(cursor) = given.get("cursor") {
        query.after = Some(RunId::from_text(cursor::read(cursor, &filters)?));
    }
    let (limit, full) = (given.limit()?, given.flag("full")?);
    let (runs, next) = server
        .ask(async move |cx: &EngineContext| {
            let (page, next) = page(cx, &caller, query, limit).await?;
            let doubts = cx.engine.in_doubt(&page).await?;
            let mut runs = Vec::new();
            for run in &page {
                let place = match run.status {
                    RunStatus::Queued => cx.engine.queue_place(&run.id).await?,
                    _ => None,
                };
                let shown = match full {
                    true => whole_json(cx, &caller, &run.id).await?,
                    false => summary_json(run),
                };
                runs.push(marked_json(shown, doubts.contains(&run.id), place.as_ref()));
            }
            Ok::<_, Problem>((runs, next))
        })
        .await?;
    let next = next.map(|after| cursor::write(&after, &filters));
    Ok(Answer::ok(json!({"runs": runs, "next": next})))
}

/// Returns the runs of a page that the caller reaches, and the run after which the next page begins, if there may be one.
/// A page may have fewer runs than its limit, even none, and still a next one: where many runs in a row are out of reach.
async fn page(
    cx: &EngineContext,
    caller: &Caller,
    mut query: RunQuery,
    limit: usize,
) -> Result<(Vec<Summary>, Option<String>), Problem> {
    let mut page = Vec::new();
    let mut scanned = 0;
    query.limit = limit;
    loop {
        let found = cx.engine.summaries(query.clone()).await?;
        scanned += found.len();
        let is_last = found.len() < query.limit;
        let last = found.last().map(|run| run.id.clone());
        let by_content = query.text.is_some() || query.key.is_some();
        for run in found {
            let side = side(cx, caller, (&run.flow, &run.started_by));
            // Of what only the installer knows, nothing can be learned by asking for it.
            let is_listed = side.is_installer() || (side.is_author() && !by_content);
            let run = match side.is_installer() {
                true => run,
                false => for_author(run),
            };
            if is_listed {
                page.push(run);
            }
            if page.len() == limit {
                let next = page.last().map(|run: &Summary| run.id.to_string());
                return Ok((page, next));
            }
        }
        if is_last {
            return Ok((page, None));
        }
        query.after = last;
        if scanned >= SCANNED_MAX {
            return Ok((page, query.after.map(|run| run.to_string())));
        }
    }
}

/// Returns the query of a list, and its filters as one text.
fn run_query(given: &Query, now_ms: i64) -> Result<(RunQuery, String), Problem> {
    let mut query = RunQuery {
        flow: given.owned("flow").or_else(|| given.owned("workflowId")),
        key: given.owned("key"),
        text: given.owned("text"),
        started_by: given.owned("startedBy"),
        parent: given.owned("parent").map(RunId::from_text),
        ..RunQuery::default()
    };
    for name in given
        .get("status")
        .into_iter()
        .flat_map(|names| names.split(','))
    {
        match RunStatus::from_name(name) {
            Some(status) => query.statuses.push(status),
            None if name == INTERRUPTED => query.interrupted = true,
            None => {
                let names = RunStatus::NAMES.iter().map(|(_, name)| *name);
                let names: Vec<&str> = names.chain([INTERRUPTED]).collect();
                return Err(Problem::malformed(format!(
                    "`status` must be one of {}, got `{name}`",
                    names.join(", ")
                )));
            }
        }
    }
    for (name, slot) in [
        ("since", &mut query.since_ms),
        ("until", &mut query.until_ms),
    ] {
        if let Some(text) = given.get(name) {
            let instant = flowstone_engine::read_instant(text, now_ms);
            *slot = Some(instant.ok_or_else(|| {
                Problem::malformed(format!(
                    "`{name}` must be an instant or a duration, got `{text}`"
                ))
            })?);
        }
    }
    if let Some(name) = given.get("sort") {
        query.sort = RunOrder::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = RunOrder::NAMES.iter().map(|(_, name)| *name).collect();
            Problem::malformed(format!(
                "`sort` must be one of {}, got `{name}`",
                names.join(", ")
            ))
        })?;
    }
    let names = names(FILTERS).into_iter();
    let filters: Vec<String> = names
        .filter(|name| !["cursor", "limit", "full"].contains(name))
        .map(|name| format!("{name}={:?}", given.get(name)))
        .collect();
    Ok((query, filters.join("&")))
}

async fn cancel(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    let given = Members::read(&headers, body, &names(CANCEL)).await?;
    let reason = given
        .text("reason")?
        .unwrap_or_else(|| format!("cancelled by {}", caller.token.attributed_to()));
    let force = given.flag("force")?.unwrap_or(false);
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let (row, _) = reached_as(cx, &caller, (&id, Side::is_installer)).await?;
            match force {
                true => cx.engine.request_end(&row.id, &reason).await?,
                false => cx.engine.request_cancel(&row.id, &reason).await?,
            }
            run_json(cx, Some(&caller), &row.id).await
        })
        .await?;
    Ok(Answer::with(StatusCode::ACCEPTED, shown))
}
