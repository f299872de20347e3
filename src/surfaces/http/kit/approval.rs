//! `/api/tools/approvals`: calls that wait for a person, as JSON for programs and as a page for people.
//!
//! The link of the page shows the call. It decides nothing, because the program that asked has it, too: the form takes an access
//! token that may approve. Programs send that token themselves.

use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use flowstone_engine::token::Token;
use flowstone_fronts::kit::approval::{
    self, LinkedApproval, Undecided, find_approval, open_approvals,
};
use flowstone_fronts::kit::change::Changes;
use flowstone_fronts::kit::link::{APPROVALS, Linked};
use flowstone_fronts::kit::{Decider, KitError};
use serde_json::{Value as Json, json};

use super::link::{ROOT, counted, nothing, over, receipt, refused};
use super::read;
use crate::http::access::{Caller, ProofClass};
use crate::http::answer::Answer;
use crate::http::pages::form::{self, Fields};
use crate::http::pages::{FORM_POLICY, page, see_other};
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Peer, Shared};
use crate::kit;
use crate::pages::kit::{ApprovalPage, Done};

/// What the receipt of a decision says.
const DECISIONS: &[(&str, Done)] = &[("approve", Done::Approved), ("deny", Done::Denied)];

/// `GET /api/tools/approvals`: the calls that wait for a person, of flows that the caller reaches.
pub(super) async fn list(State(server): State<Shared>, caller: Caller) -> Result<Answer, Problem> {
    may_decide(&caller.token)?;
    let open = server
        .ask(async move |cx: &EngineContext| {
            open_approvals(&cx.engine, &cx.catalog, &Decider::of(&caller.token)).await
        })
        .await?;
    Ok(Answer::ok(json!({"count": open.len(), "approvals": open})))
}

/// `GET /api/tools/approvals/{id}`: one of them.
pub(super) async fn show(
    State(server): State<Shared>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    if !is_browser(&parts.headers) {
        let caller = server.caller(&parts).await?;
        may_decide(&caller.token)?;
        let found = server.ask(async move |cx: &EngineContext| {
            find_approval(&cx.engine, &cx.catalog, &id, &Decider::of(&caller.token)).await
        });
        return Ok(Answer::ok(found.await?).into_response());
    }
    let mut query = form::pairs(query.as_deref().unwrap_or_default())?;
    let Some(token) = query.remove("token") else {
        return Err(refused(&server, peer));
    };
    let html = server
        .ask(async move |cx: &EngineContext| {
            let approval = open(cx, (&id, &token)).await?;
            Ok::<_, Problem>(drawn(cx, &approval, (&token, None)).await)
        })
        .await
        .map_err(|problem| counted(&server, peer, problem))?;
    Ok(page(StatusCode::OK, html, FORM_POLICY))
}

/// `POST /api/tools/approvals/{id}`: decides about a call of somebody else, with the page's form or as
/// `{"decision": "approve" | "deny"}`.
pub(super) async fn decide(
    State(server): State<Shared>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    if form::is_form(&parts.headers) {
        let form = form::read(&parts.headers, body).await?;
        return of_form(&server, peer, id, form).await;
    }
    let caller = server.caller(&parts).await?;
    let decided = of_program(&server, caller, id, (parts.headers, body)).await?;
    Ok(Answer::ok(decided).into_response())
}

async fn of_program(
    server: &Shared,
    caller: Caller,
    id: String,
    (headers, body): (HeaderMap, Body),
) -> Result<Json, Problem> {
    may_decide(&caller.token)?;
    let body = read(&headers, body).await?;
    let is_approved = match body["decision"].as_str() {
        Some("approve") => true,
        Some("deny") => false,
        _ => {
            return Err(KitError::invalid(
                "/decision",
                "`approve` or `deny`",
                "`decision` must be `approve` or `deny`",
            )
            .into());
        }
    };
    server
        .ask(async move |cx: &EngineContext| {
            let by = Decider::of(&caller.token);
            approval::decide(&cx.engine, &cx.catalog, (&id, is_approved), &by).await
        })
        .await
}

fn may_decide(token: &Token) -> Result<(), KitError> {
    match kit::may_decide(token) {
        true => Ok(()),
        false => Err(KitError::permission_denied(format!(
            "the token `{}` lacks the scope `approve`",
            token.name
        ))),
    }
}

/// The outcome of a form that was sent.
enum Sent {
    Decided {
        decision: &'static str,
        receipt: (i64, String),
    },
    /// The page is shown again.
    Again { status: StatusCode, html: String },
    /// The access token is not accepted.
    Unaccepted { html: String },
}

async fn of_form(
    server: &Shared,
    peer: Peer,
    id: String,
    mut form: Fields,
) -> Result<Response, Problem> {
    let Some(token) = form.remove("token") else {
        return Err(refused(server, peer));
    };
    let path = format!("{APPROVALS}/{id}/done");
    let sent = server
        .ask(async move |cx: &EngineContext| {
            let approval = open(cx, (&id, &token)).await?;
            decided(cx, &approval, (&token, form)).await
        })
        .await;
    match sent.map_err(|problem| counted(server, peer, problem))? {
        Sent::Decided {
            decision,
            receipt: (expires, signature),
        } => {
            let query = format!("action={decision}&expires={expires}&signature={signature}");
            see_other(server, &format!("{path}?{query}"))
        }
        Sent::Again { status, html } => Ok(page(status, html, FORM_POLICY)),
        Sent::Unaccepted { html } => {
            server.metrics.refused("link");
            let noted = server
                .failures
                .note(peer.0.ip(), ProofClass::Token, Instant::now());
            match noted {
                Some(problem) => Err(problem),
                None => Ok(page(StatusCode::FORBIDDEN, html, FORM_POLICY)),
            }
        }
    }
}

/// Decides as a form says.
async fn decided(
    cx: &EngineContext,
    approval: &LinkedApproval,
    (link, form): (&str, Fields),
) -> Result<Sent, Problem> {
    let again = async |status, notice: &str| {
        let html = drawn(cx, approval, (link, Some(notice))).await;
        Ok::<_, Problem>(Sent::Again { status, html })
    };
    let named = form.get("decision").map_or("", String::as_str);
    let Some((decision, _)) = DECISIONS.iter().find(|(known, _)| *known == named) else {
        return again(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Choose one of the decisions.",
        )
        .await;
    };
    let given = form.get("access-token").map_or("", |text| text.trim());
    let Ok(token) = cx.engine.accept_token(given).await? else {
        let notice = "Nothing was decided: the access token is not accepted.";
        let html = drawn(cx, approval, (link, Some(notice))).await;
        return Ok(Sent::Unaccepted { html });
    };
    let elsewhere = "Nothing was decided: this access token may not decide here.";
    if !kit::may_decide(&token) {
        return again(StatusCode::FORBIDDEN, elsewhere).await;
    }
    let is_approved = *decision == "approve";
    let (project, by) = ((&cx.engine, &cx.catalog), Decider::of(&token));
    match approval.decide(project, is_approved, &by).await {
        Ok(()) => Ok(Sent::Decided {
            decision,
            receipt: cx.engine.sign_receipt(&approval.id, decision)?,
        }),
        Err(Undecided::OutOfReach) => again(StatusCode::FORBIDDEN, elsewhere).await,
        Err(Undecided::OwnCall) => {
            let notice = "Nothing was decided: the program asked with this access token, so it cannot decide.";
            again(StatusCode::FORBIDDEN, notice).await
        }
        // Somebody was faster; the link now says who.
        Err(Undecided::Decided) => {
            open(cx, (&approval.id, link)).await?;
            Err(over("somebody decided about this call already"))
        }
        Err(Undecided::Failed(error)) => Err(error.into()),
    }
}

/// Returns the approval of a link that can still be decided.
async fn open(cx: &EngineContext, (id, token): (&str, &str)) -> Result<LinkedApproval, Problem> {
    match approval::linked(&cx.engine, id, token).await? {
        Linked::Open(approval) => Ok(approval),
        Linked::Over(why) => Err(over(&why)),
        Linked::Nothing => Err(nothing()),
    }
}

async fn drawn(
    cx: &EngineContext,
    approval: &LinkedApproval,
    (token, notice): (&str, Option<&str>),
) -> String {
    let changes = Changes::of(&cx.engine, approval).await;
    let page = ApprovalPage {
        approval,
        changes: &changes,
        token,
        notice,
        root: ROOT,
        now_ms: cx.engine.now_ms(),
    };
    page.html()
}

/// The page after a decision. What it says is signed, so that nobody makes one that says something else.
pub(super) async fn done(
    State(server): State<Shared>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    receipt(&server, id, (query, DECISIONS)).await
}

/// Tells whether the sender of a request shows pages.
fn is_browser(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT);
    let accepted = accepted.and_then(|it| it.to_str().ok()).unwrap_or_default();
    accepted.contains("text/html") && !accepted.contains("application/json")
}
