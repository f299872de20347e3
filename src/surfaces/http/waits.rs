//! `/api/v1/waits` and `/api/v1/signals`: what runs wait for, and answers to it.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use flowstone_engine::ids::RunId;
use flowstone_engine::json::from_json;
use flowstone_engine::ports::{Target, WaitFilter, WaitRow};
use flowstone_engine::token::Scope;
use flowstone_engine::waits::{Answered, Answering, Remark};
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::access::Caller;
use super::answer::Answer;
use super::cursor;
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{Desk, Shared};
use crate::json::{row_json, wait_json};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/waits", get(list))
        .route("/api/v1/waits/{id}", get(show))
        .route("/api/v1/waits/{id}/approve", post(approve))
        .route("/api/v1/waits/{id}/reject", post(reject))
        .route("/api/v1/waits/{id}/complete", post(complete))
        .route("/api/v1/waits/{id}/cancel", post(cancel))
        .route("/api/v1/signals", post(signal))
}

/// What a caller may decide about a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Approve,
    Cancel,
    Complete,
    Reject,
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let known = ["cursor", "flow", "key", "limit", "run", "state"];
    let query = Query::read(query.as_deref(), &known)?;
    let limit = query.limit()?;
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
        Some(text) => Some(cursor::read(text, &filters)?),
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
        .ask(async move |desk: &Desk| {
            let mut waits = desk.engine.list_waits(filter).await?;
            waits.retain(|wait| {
                let labels = desk.catalog.labels(&desk.engine, &wait.flow);
                caller.token.reaches_flow(&wait.flow, &labels)
            });
            let start = after.and_then(|after| waits.iter().position(|wait| wait.id == after));
            let rest = waits
                .get(start.map_or(0, |at| at + 1)..)
                .unwrap_or_default();
            let page = rest.iter().take(limit);
            let next = rest
                .get(limit.saturating_sub(1))
                .filter(|_| rest.len() > limit);
            let shown: Vec<Json> = page.map(wait_json).collect();
            Ok::<_, Problem>((shown, next.map(|wait| wait.id.clone())))
        })
        .await?;
    let next = next.map(|after| cursor::write(&after, &filters));
    Ok(Answer::ok(json!({"waits": waits, "next": next})))
}

async fn show(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    Query::read(query.as_deref(), &[])?;
    let shown = server
        .ask(async move |desk: &Desk| {
            Ok::<_, Problem>(wait_json(&reached(desk, &caller, &id).await?))
        })
        .await?;
    Ok(Answer::ok(shown))
}

/// Returns a wait by its whole id, if the caller reaches its flow.
async fn reached(desk: &Desk, caller: &Caller, id: &str) -> Result<WaitRow, Problem> {
    let missing = || {
        Problem::new(
            StatusCode::NOT_FOUND,
            "E0514",
            format!("there is no wait `{id}`"),
        )
        .hint("`GET /api/v1/waits` lists the open waits")
    };
    let row = match desk.engine.find_wait(id).await {
        Ok(row) if row.id == id => row,
        Ok(_) | Err(flowstone_engine::EngineError::NoSuchWait { .. }) => return Err(missing()),
        Err(error) => return Err(error.into()),
    };
    let labels = desk.catalog.labels(&desk.engine, &row.flow);
    match caller.token.reaches_flow(&row.flow, &labels) {
        true => Ok(row),
        false => Err(missing()),
    }
}

type Request = (State<Shared>, Caller, Path<String>, HeaderMap, Body);

async fn approve(
    state: State<Shared>,
    caller: Caller,
    id: Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    decide((state, caller, id, headers, body), Decision::Approve).await
}

async fn reject(
    state: State<Shared>,
    caller: Caller,
    id: Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    decide((state, caller, id, headers, body), Decision::Reject).await
}

async fn complete(
    state: State<Shared>,
    caller: Caller,
    id: Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    decide((state, caller, id, headers, body), Decision::Complete).await
}

async fn cancel(
    state: State<Shared>,
    caller: Caller,
    id: Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    decide((state, caller, id, headers, body), Decision::Cancel).await
}

const MEMBERS: &[&str] = &["comment", "dedup", "digest", "fields", "reason", "value"];

async fn decide(request: Request, decision: Decision) -> Result<Answer, Problem> {
    let (State(server), caller, Path(id), headers, body) = request;
    caller.need(Scope::Approve)?;
    let given = Members::read(&headers, body, MEMBERS).await?;
    let how = Answering {
        caller: caller.decides(),
        dedup: given.text("dedup")?,
        keep: false,
        digest: given.text("digest")?,
        is_unattended: false,
    };
    let text = given.text(match decision {
        Decision::Approve => "comment",
        Decision::Reject | Decision::Cancel => "reason",
        Decision::Complete => "comment",
    })?;
    let (value, fields) = (given.get("value").cloned(), given.get("fields").cloned());
    let shown = server
        .ask(async move |desk: &Desk| {
            let row = reached(desk, &caller, &id).await?;
            let value = value.as_ref().map(from_json);
            let engine = &desk.engine;
            match (decision, fields) {
                (Decision::Cancel, _) => {
                    engine.cancel_wait(&row.id, text.as_deref(), how).await?;
                }
                (Decision::Complete, _) => {
                    let value = value.unwrap_or(Value::Nil);
                    engine
                        .answer_waits(Target::Name(row.id.clone()), &value, how)
                        .await?;
                }
                // Other fields than those of a decision: the answer is a map with the action and the fields.
                (Decision::Approve | Decision::Reject, Some(fields)) => {
                    let action = if decision == Decision::Approve {
                        "approve"
                    } else {
                        "reject"
                    };
                    let answer = with_action(action, &fields, text)?;
                    engine
                        .answer_waits(Target::Name(row.id.clone()), &answer, how)
                        .await?;
                }
                (Decision::Approve | Decision::Reject, None) => {
                    let remark = Remark { text, value };
                    let is_approved = decision == Decision::Approve;
                    engine
                        .decide_wait(&row.id, is_approved, remark, how)
                        .await?;
                }
            }
            let wait = engine.find_wait(&row.id).await?;
            let run = engine.run(&row.run).await?;
            Ok::<_, Problem>(json!({"wait": wait_json(&wait), "run": row_json(&run)}))
        })
        .await?;
    Ok(Answer::ok(shown))
}

/// Returns the answer of a person who decided and filled in a form.
fn with_action(action: &str, fields: &Json, text: Option<String>) -> Result<Value, Problem> {
    let Json::Object(fields) = fields else {
        return Err(Problem::malformed("`fields` must be an object"));
    };
    let own = [
        (Value::keyword("action"), Value::keyword(action)),
        (
            Value::keyword("comment"),
            text.map_or(Value::Nil, Value::from),
        ),
    ];
    let given = fields
        .iter()
        .map(|(name, value)| (Value::keyword(name), from_json(value)));
    let own = own.into_iter().filter(|(_, value)| !value.is_nil());
    Ok(Value::map(given.chain(own)))
}

/// Completes the waits of a key, or keeps the answer for a later wait.
async fn signal(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    if caller.token.is_limited_to_flows() {
        return Err(
            Problem::not_found("signals reach all flows, and this token does not")
                .hint("complete a wait of a flow with `POST /api/v1/waits/{id}/complete`"),
        );
    }
    let given = Members::read(&headers, body, &["dedup", "key", "value"]).await?;
    let key = given.text("key")?;
    let key = key.ok_or_else(|| Problem::malformed("`key` is missing"))?;
    let how = Answering {
        caller: caller.decides(),
        dedup: given.text("dedup")?,
        keep: true,
        digest: None,
        // A token that may not approve does not approve by a signal either.
        is_unattended: !caller.token.has(Scope::Approve),
    };
    let value = given.get("value").cloned();
    let answered = server
        .ask(async move |desk: &Desk| {
            let value = value.as_ref().map_or(Value::Nil, from_json);
            desk.engine
                .answer_waits(Target::Name(key), &value, how)
                .await
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
