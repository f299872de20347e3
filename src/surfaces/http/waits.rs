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
        .route("/api/v1/waits/{id}/{decision}", post(decide))
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

impl Decision {
    /// Returns the decision of an address.
    fn named(name: &str) -> Result<Decision, Problem> {
        match name {
            "approve" => Ok(Decision::Approve),
            "cancel" => Ok(Decision::Cancel),
            "complete" => Ok(Decision::Complete),
            "reject" => Ok(Decision::Reject),
            _ => Err(
                Problem::not_found(format!("no decision is called `{name}`"))
                    .hint("a wait takes approve, cancel, complete and reject"),
            ),
        }
    }

    /// Returns the members that a request with this decision may have.
    fn members(self) -> &'static [&'static str] {
        match self {
            Decision::Approve => &["comment", "dedup", "digest", "fields", "value"],
            Decision::Cancel => &["dedup", "digest", "reason"],
            Decision::Complete => &["dedup", "digest", "value"],
            Decision::Reject => &["dedup", "digest", "fields", "reason"],
        }
    }
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

/// Takes a decision about a wait.
async fn decide(
    State(server): State<Shared>,
    caller: Caller,
    Path((id, decision)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let decision = Decision::named(&decision)?;
    caller.need(Scope::Approve)?;
    let given = Members::read(&headers, body, decision.members()).await?;
    let how = Answering {
        caller: caller.decides(),
        dedup: given.text("dedup")?,
        keep: false,
        digest: given.text("digest")?,
        is_unattended: false,
    };
    let text = match given.text("comment")? {
        None => given.text("reason")?,
        comment => comment,
    };
    let value = given.get("value").cloned();
    let fields = given.object("fields")?;
    let shown = server
        .ask(async move |desk: &Desk| {
            let row = reached(desk, &caller, &id).await?;
            let value = value.as_ref().map(from_json);
            let engine = &desk.engine;
            match decision {
                Decision::Approve | Decision::Reject => {
                    let fields = fields.iter();
                    let remark = Remark {
                        text,
                        value,
                        fields: fields
                            .map(|(name, value)| (name.clone(), from_json(value)))
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
            Ok::<_, Problem>(json!({"wait": wait_json(&wait), "run": row_json(&run)}))
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
