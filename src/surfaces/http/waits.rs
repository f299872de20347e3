//! `/api/v1/waits` and `/api/v1/signals`: what runs wait for, and answers to it.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use flowstone_engine::EngineError;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{SignalFilter, Target, WaitFilter, WaitRow};
use flowstone_engine::token::Scope;
use flowstone_engine::waits::{Answered, Answering, Remark};
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::access::Caller;
use super::answer::Answer;
use super::cursor;
use super::operation::{
    self as shape, CURSOR, GIVEN, Kind, LIMIT, Operation, Operations, Param, Shape, VALUES, names,
};
use super::problem::Problem;
use super::request::{Given, Members, Query};
use super::runs::run_json;
use super::server::{EngineContext, Shared};
use super::trace;
use crate::json::{
    DecidedWait, Run, RunState, Signal, Wait, decided_wait_json, run_state_json, signal_json_as,
    wait_json, wait_json_as,
};

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::get("/api/v1/waits", "listWaits", "Lists what runs wait for.")
                .scope(Scope::Read)
                .query(FILTERS)
                .ok(shape::page::<Wait>("waits")),
            list,
        )
        .with(
            Operation::get(
                "/api/v1/waits/{id}",
                "getWait",
                "Returns a wait, without its token.",
            )
            .scope(Scope::Read)
            .query(&[VALUES])
            .ok(shape::of::<Wait>()),
            show,
        )
        .and(Decision::Approve.operation())
        .and(Decision::Cancel.operation())
        .and(Decision::Complete.operation())
        .and(Decision::Reject.operation())
        .with(
            Operation::get(
                "/api/v1/signals",
                "listSignals",
                "Lists signals that no wait has taken: those that are kept, and those that were refused.",
            )
            .scope(Scope::Read)
            .query(SIGNALS)
            .ok(shape::list::<Signal>("signals")),
            signals,
        )
        .with(
            Operation::post(
                "/api/v1/signals",
                "sendSignal",
                "Answers the waits of a key, or keeps the answer for a later one.",
            )
            .scope(Scope::Run)
            .members(SIGNAL)
            .ok(Shape::Some(vec![
                ("completed", Shape::ListOf(Box::new(Shape::Text))),
                (
                    "refused",
                    Shape::ListOf(Box::new(Shape::Members(vec![
                        ("wait", Shape::Text),
                        ("reason", Shape::Text),
                    ]))),
                ),
                ("deduped", Shape::Flag),
            ]))
            .json(
                StatusCode::ACCEPTED,
                "The answer is kept.",
                Shape::Members(vec![("kept", Shape::Flag)]),
            )
            .refuses(&[409, 410, 422]),
            signal,
        )
}

const FILTERS: &[Param] = &[
    CURSOR,
    Param::text("flow", "Only waits of this flow."),
    Param::text("key", "Only waits with this key."),
    LIMIT,
    Param::text("run", "Only waits of this run."),
    Param::new(
        "state",
        Kind::OneOf(&["open", "all"]),
        "`all`: also waits that are over.",
    ),
    VALUES,
];

const SIGNALS: &[Param] = &[Param::text("key", "Only signals with this key."), VALUES];
const SIGNAL: &[Param] = &[
    Param::text("dedup", "The same signal is taken once."),
    Param::text("key", "The key of the waits.").needed(),
    Param::new("value", Kind::Any, "The answer."),
    GIVEN,
];

const COMMENT: Param = Param::text("comment", "A comment for the flow.");
const DEDUP: Param = Param::text("dedup", "The same decision is taken once.");
const DIGEST: Param = Param::text(
    "digest",
    "`digest` of the wait as it was seen: if it has changed, nothing happens.",
);
const FIELDS: Param = Param::new("fields", Kind::Object, "The fields of `:validation`.");
const REASON: Param = Param::text("reason", "The reason, for the flow.");
const EDIT: Param = Param::new("value", Kind::Any, "What a review makes of its subject.");
const VALUE: Param = Param::new("value", Kind::Any, "The answer.");

/// What a caller may decide about a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Approve,
    Cancel,
    Complete,
    Reject,
}

impl Decision {
    /// Returns the members that a request with this decision may have.
    fn members(self) -> &'static [Param] {
        match self {
            Decision::Approve => &[COMMENT, DEDUP, DIGEST, FIELDS, EDIT, GIVEN],
            Decision::Cancel => &[DEDUP, DIGEST, REASON],
            Decision::Complete => &[DEDUP, DIGEST, VALUE, GIVEN],
            Decision::Reject => &[DEDUP, DIGEST, FIELDS, REASON, GIVEN],
        }
    }

    fn operation(self) -> Operations {
        let (path, id, doc) = match self {
            Decision::Approve => (
                "/api/v1/waits/{id}/approve",
                "approveWait",
                "Approves what a run asks.",
            ),
            Decision::Cancel => (
                "/api/v1/waits/{id}/cancel",
                "cancelWait",
                "Cancels a wait: its step fails.",
            ),
            Decision::Complete => (
                "/api/v1/waits/{id}/complete",
                "completeWait",
                "Answers a wait with a value.",
            ),
            Decision::Reject => (
                "/api/v1/waits/{id}/reject",
                "rejectWait",
                "Rejects what a run asks.",
            ),
        };
        let wait = Shape::OneOf(vec![shape::of::<Wait>(), shape::of::<DecidedWait>()]);
        let run = Shape::OneOf(vec![shape::of::<Run>(), shape::of::<RunState>()]);
        let decided = vec![("wait", wait), ("run", run)];
        Operations::default().with(
            Operation::post(path, id, doc)
                .scope(Scope::Approve)
                .members(self.members())
                .ok(Shape::Members(decided))
                .refuses(&[409, 410, 422]),
            async move |state: State<Shared>,
                        caller: Caller,
                        id: Path<String>,
                        headers: HeaderMap,
                        body: Body| {
                decide(self, (state, caller, id), headers, body).await
            },
        )
    }
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &names(FILTERS))?;
    let (limit, values) = (query.limit()?, query.values()?);
    let all = match query.get("state") {
        None | Some("open") => false,
        Some("all") => true,
        Some(other) => {
            return Err(Problem::malformed(format!(
                "`state` must be open or all, got `{other}`"
            )));
        }
    };
    let filters = format!(
        "{:?}",
        ["flow", "key", "run", "state"].map(|name| query.get(name))
    );
    let after = match query.get("cursor") {
        Some(text) => Some(Place::read(&cursor::read(text, &filters)?)?),
        None => None,
    };
    let filter = WaitFilter {
        run: query.owned("run").map(RunId::from_text),
        flow: query.owned("flow"),
        key: query.owned("key"),
        all,
        ..WaitFilter::default()
    };
    let (waits, next) = server
        .ask(async move |cx: &EngineContext| {
            let mut waits = cx.engine.list_waits(filter).await?;
            waits.retain(|wait| after.as_ref().is_none_or(|after| Place::of(wait) > *after));
            let mut page = Vec::new();
            for wait in &waits {
                if page.len() > limit {
                    break;
                }
                if reaches(cx, &caller, wait).await? {
                    page.push(wait);
                }
            }
            let is_more = page.len() > limit;
            page.truncate(limit);
            let next = page.last().filter(|_| is_more).map(|wait| Place::of(wait));
            let shown: Vec<Json> = page
                .into_iter()
                .map(|wait| wait_json_as(wait, values))
                .collect();
            Ok::<_, Problem>((shown, next))
        })
        .await?;
    let next = next.map(|after| cursor::write(&after.text(), &filters));
    Ok(Answer::ok(json!({"waits": waits, "next": next})))
}

/// The place of a wait in lists: the oldest is first. A wait that is answered meanwhile leaves its place as it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    opened_ms: i64,
    id: String,
}

impl Place {
    fn of(wait: &WaitRow) -> Place {
        Place {
            opened_ms: wait.opened_ms,
            id: wait.id.clone(),
        }
    }

    fn text(&self) -> String {
        format!("{} {}", self.opened_ms, self.id)
    }

    fn read(text: &str) -> Result<Place, Problem> {
        let parts = text.split_once(' ').and_then(|(opened_ms, id)| {
            let opened_ms = opened_ms.parse().ok()?;
            let id = id.to_owned();
            Some(Place { opened_ms, id })
        });
        parts.ok_or_else(|| Problem::malformed("`cursor` is not one that this list returned"))
    }
}

/// Tells whether a caller reaches a wait. Users reach those of their own runs.
async fn reaches(cx: &EngineContext, caller: &Caller, wait: &WaitRow) -> Result<bool, Problem> {
    let labels = cx.catalog.labels(&cx.engine, &wait.flow);
    if !caller.has_own_runs_only() {
        let side = caller.token.reaches_side(&wait.flow, &labels);
        return Ok(side.is_installer());
    }
    Ok(match cx.engine.run(&wait.run).await {
        Ok(run) => caller
            .side_of_run(&run.flow, &labels, &run.started_by)
            .is_installer(),
        // It was removed meanwhile.
        Err(EngineError::NoSuchRun { .. }) => false,
        Err(error) => return Err(error.into()),
    })
}

async fn show(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let values = Query::read(query.as_deref(), &names(&[VALUES]))?.values()?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let wait = reached(cx, &caller, &id).await?;
            Ok::<_, Problem>(wait_json_as(&wait, values))
        })
        .await?;
    Ok(Answer::ok(shown))
}

/// `GET /api/v1/signals`: what `waits list --signals` prints.
async fn signals(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    refuse_limited(&caller, "`GET /api/v1/waits` lists the waits of its flows")?;
    let query = Query::read(query.as_deref(), &names(SIGNALS))?;
    let values = query.values()?;
    let filter = SignalFilter {
        key: query.owned("key"),
        workspace: caller.own_workspace(),
        ..SignalFilter::default()
    };
    let signals = server
        .ask(async move |cx: &EngineContext| {
            let signals = cx.engine.list_signals(filter).await?;
            let shown = signals.iter().map(|signal| signal_json_as(signal, values));
            Ok::<_, Problem>(shown.collect::<Vec<Json>>())
        })
        .await?;
    Ok(Answer::ok(json!({"signals": signals})))
}

/// Refuses callers that reach only some flows of their workspace: a signal is of none.
fn refuse_limited(caller: &Caller, instead: &str) -> Result<(), Problem> {
    match caller.token.names_flows() || caller.has_own_runs_only() {
        false => Ok(()),
        true => Err(
            Problem::not_found("signals reach all flows, and this token does not").hint(instead),
        ),
    }
}

/// Returns a wait by its whole id, if the caller reaches its flow.
async fn reached(cx: &EngineContext, caller: &Caller, id: &str) -> Result<WaitRow, Problem> {
    let missing = || {
        Problem::new(
            StatusCode::NOT_FOUND,
            "E0514",
            format!("there is no wait `{id}`"),
        )
        .hint("`GET /api/v1/waits` lists the open waits")
    };
    let row = match cx.engine.find_wait(id).await {
        Ok(row) if row.id == id => row,
        Ok(_) | Err(EngineError::NoSuchWait { .. }) => return Err(missing()),
        Err(error) => return Err(error.into()),
    };
    if !reaches(cx, caller, &row).await? {
        return Err(missing());
    }
    trace::touches(&row.run);
    Ok(row)
}

/// Takes a decision about a wait.
async fn decide(
    decision: Decision,
    (State(server), caller, Path(id)): (State<Shared>, Caller, Path<String>),
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Approve)?;
    let given = Members::read(&headers, body, &names(decision.members())).await?;
    let how = Answering {
        caller: caller.decides(),
        dedup: given.text("dedup")?,
        digest: given.text("digest")?,
        ..Answering::default()
    };
    let text = match given.text("comment")? {
        None => given.text("reason")?,
        comment => comment,
    };
    let value = given.value("value", given.values()?)?;
    let fields = given.value_map("fields", given.values()?)?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let row = reached(cx, &caller, &id).await?;
            let value = value.as_ref().map(Given::value);
            let engine = &cx.engine;
            match decision {
                Decision::Approve | Decision::Reject => {
                    let fields = fields.iter();
                    let remark = Remark {
                        text,
                        value,
                        fields: fields
                            .map(|(name, value)| (name.clone(), value.value()))
                            .collect(),
                    };
                    let is_approved = decision == Decision::Approve;
                    engine
                        .decide_wait(&row.id, is_approved, remark, how)
                        .await?;
                }
                Decision::Complete => {
                    let value = value.unwrap_or(Value::Nil);
                    engine
                        .answer_waits(Target::Name(row.id.clone()), &value, how)
                        .await?;
                }
                Decision::Cancel => {
                    engine.cancel_wait(&row.id, text.as_deref(), how).await?;
                }
            }
            let wait = engine.find_wait(&row.id).await?;
            let run = engine.run(&row.run).await?;
            Ok::<_, Problem>(match caller.may_read(&run) {
                true => {
                    let run = run_json(cx, Some(&caller), &run.id).await?;
                    json!({"wait": wait_json(&wait), "run": run})
                }
                false => json!({"wait": decided_wait_json(&wait), "run": run_state_json(&run)}),
            })
        })
        .await?;
    Ok(Answer::ok(shown))
}

/// Completes the waits of a key, or keeps the answer for a later wait.
async fn signal(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    refuse_limited(
        &caller,
        "complete a wait of a flow with `POST /api/v1/waits/{id}/complete`",
    )?;
    let given = Members::read(&headers, body, &names(SIGNAL)).await?;
    let key = given.text("key")?;
    let key = key.ok_or_else(|| Problem::malformed("`key` is missing"))?;
    let how = Answering {
        caller: caller.decides(),
        workspace: caller.own_workspace(),
        dedup: given.text("dedup")?,
        keep: true,
        // A token that may not approve does not approve by a signal either.
        is_unattended: !caller.token.has(Scope::Approve),
        ..Answering::default()
    };
    let value = given.value("value", given.values()?)?;
    let answered = server
        .ask(async move |cx: &EngineContext| {
            let value = value.as_ref().map_or(Value::Nil, Given::value);
            cx.engine.answer_waits(Target::Name(key), &value, how).await
        })
        .await?;
    let runs: Vec<&str> = answered.runs().iter().map(RunId::as_str).collect();
    Ok(match &answered {
        Answered::Runs(_) => Answer::ok(json!({"completed": runs})),
        Answered::Partly { refused, .. } => {
            let refused: Vec<Json> = refused
                .iter()
                .map(|(wait, reason)| json!({"wait": wait, "reason": reason}))
                .collect();
            Answer::ok(json!({"completed": runs, "refused": refused}))
        }
        Answered::Kept => Answer::with(StatusCode::ACCEPTED, json!({"kept": true})),
        Answered::Duplicate => Answer::ok(json!({"deduped": true})),
    })
}
