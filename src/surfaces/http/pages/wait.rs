//! `/{workspace}/waits/{id}/{action}`: the page behind `{{approval-url}}` and `{{rejection-url}}`.
//!
//! Looking changes nothing, so that previews of links decide nothing. Only the form that is sent decides, and the wait's
//! token is in its body. All decisions are the one call that the command line and the API make.

use std::collections::BTreeMap;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use flowstone_engine::form::FieldProblem;
use flowstone_engine::links::{LinkError, LinkedAnswer, LinkedWait};
use flowstone_engine::resource::segment;
use flowstone_engine::token::Scope;
use flowstone_engine::waits::{Caller as Decider, WaitError};
use flowstone_engine::{Answering, EngineError};

use super::{FORM_POLICY, form, page, see_other};
use crate::http::access::{Caller, ProofClass};
use crate::http::problem::{Problem, codes};
use crate::http::server::{EngineContext, Peer, Shared};
use crate::pages::{self, WaitPage};

/// The last part of the address of the page after a decision.
const DONE: &str = "done";
/// Who a decision by a link is attributed to: a link proves nothing about a person.
const LINK: &str = "link";
/// The way from a page to the root of the server.
const ROOT: &str = "../../../";
/// The action in a receipt of an answer without one.
const ANSWERED: &str = "answered";
/// The name of the workspace that every project has.
const LOCAL: &str = "local";

/// The parts of an address.
type Address = Path<(String, String, String)>;

/// Shows what is asked.
pub(super) async fn show(
    State(server): State<Shared>,
    Extension(peer): Extension<Peer>,
    Path((workspace, id, action)): Address,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    refuse_other_workspaces(&server, &workspace)?;
    let mut query = form::pairs(query.as_deref().unwrap_or_default())?;
    let Some(token) = query.remove("token") else {
        return match action == DONE {
            true => done(&server, id, query).await,
            false => Err(refused(&server, peer)),
        };
    };
    let found = server
        .ask(async move |cx: &EngineContext| {
            let engine = &cx.engine;
            let wait = engine.linked_wait(&id, &token).await?;
            if let Some(refusal) = wait.refusal(engine.now_ms()) {
                return Err(over(&wait, refusal));
            }
            let page = WaitPage {
                wait: &wait,
                token: &token,
                action: &action,
                typed: None,
                problems: &[],
                notice: None,
                root: ROOT,
                now_ms: engine.now_ms(),
            };
            Ok::<_, Problem>(page.html())
        })
        .await;
    let html = found.map_err(|problem| counted(&server, peer, problem))?;
    Ok(page(StatusCode::OK, html, FORM_POLICY))
}

/// The outcome of a form that was sent.
enum Sent {
    Decided {
        action: String,
        receipt: (i64, String),
    },
    /// The page is shown again.
    Again { status: StatusCode, html: String },
}

/// Decides.
pub(super) async fn decide(
    State(server): State<Shared>,
    Extension(peer): Extension<Peer>,
    Path((workspace, id, action)): Address,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    refuse_other_workspaces(&server, &workspace)?;
    let mut form = form::read(&headers, body).await?;
    let mut query = form::pairs(query.as_deref().unwrap_or_default())?;
    let token = form.remove("token").or_else(|| query.remove("token"));
    let Some(token) = token else {
        return Err(refused(&server, peer));
    };
    let wait_id = id.clone();
    let sent = server
        .ask(async move |cx: &EngineContext| {
            let wait = cx.engine.linked_wait(&id, &token).await?;
            let action = form.remove("action").unwrap_or(action);
            let form = SentForm {
                token,
                action,
                digest: form.remove("digest"),
                access_token: form.remove("access-token").filter(|it| !it.is_empty()),
                typed: form,
            };
            form.decide(cx, wait).await
        })
        .await;
    match sent.map_err(|problem| counted(&server, peer, problem))? {
        Sent::Again { status, html } => Ok(page(status, html, FORM_POLICY)),
        Sent::Decided {
            action,
            receipt: (expires, signature),
        } => {
            let action = segment(&action);
            let target = format!(
                "/{workspace}/waits/{wait_id}/{DONE}?action={action}&expires={expires}&signature={signature}"
            );
            see_other(&server, &target)
        }
    }
}

/// A form that was sent.
struct SentForm {
    token: String,
    action: String,
    digest: Option<String>,
    access_token: Option<String>,
    typed: BTreeMap<String, String>,
}

impl SentForm {
    async fn decide(self, cx: &EngineContext, wait: LinkedWait) -> Result<Sent, Problem> {
        let engine = &cx.engine;
        if let Some(refusal) = wait.refusal(engine.now_ms()) {
            return Err(over(&wait, refusal));
        }
        let is_choice = !wait.actions.is_empty();
        let again = |status, notice: &str, problems: &[FieldProblem]| {
            Ok(self.again(cx, &wait, status, notice, problems))
        };
        let unfit = StatusCode::UNPROCESSABLE_ENTITY;
        if is_choice && !wait.actions.contains(&self.action) {
            return again(unfit, "Choose one of the decisions.", &[]);
        }
        let Some(digest) = self.digest.clone().filter(|digest| !digest.is_empty()) else {
            return Err(Problem::malformed(
                "the form has no `digest` of what was shown",
            ));
        };
        let action = is_choice.then(|| self.action.clone());
        let answer = match wait.form(action.as_deref()).read(&self.typed) {
            Ok(answer) => answer,
            Err(problems) => {
                return again(
                    unfit,
                    "Nothing was decided: some fields need your attention.",
                    &problems,
                );
            }
        };
        let caller = match self.decider(cx, &wait).await? {
            Ok(caller) => caller,
            Err(notice) => return again(StatusCode::FORBIDDEN, notice, &[]),
        };
        let text = self.typed.get("comment").map(|text| text.trim().to_owned());
        let text = text.filter(|text| !text.is_empty());
        let has_own = answer.get("comment").is_some();
        let given = LinkedAnswer {
            action,
            answer,
            text: text.filter(|_| !has_own),
        };
        let how = Answering {
            caller,
            digest: Some(digest),
            ..Answering::default()
        };
        match engine.decide_linked(&wait, given, how).await {
            Ok(_) => {
                let action = if is_choice { &*self.action } else { ANSWERED };
                let receipt = engine.sign_receipt(&wait.row.id, action)?;
                let action = action.to_owned();
                Ok(Sent::Decided { action, receipt })
            }
            Err(EngineError::Wait(WaitError::Stale { .. })) => {
                let wait = engine.linked_wait(&wait.row.id, &self.token).await?;
                let notice = "Nothing was decided: the request has changed since it was shown. This is how it is now.";
                Ok(self.again(cx, &wait, StatusCode::CONFLICT, notice, &[]))
            }
            Err(EngineError::BadAnswer { problems }) => {
                let notice = format!("Nothing was decided: {}", problems.join("; "));
                again(unfit, &notice, &[])
            }
            Err(EngineError::Wait(error @ WaitError::Role { .. })) => again(
                StatusCode::FORBIDDEN,
                &format!("Nothing was decided: {error}"),
                &[],
            ),
            Err(error) => {
                // Another decision may have been faster.
                let wait = engine.linked_wait(&wait.row.id, &self.token).await?;
                Err(over(&wait, error))
            }
        }
    }

    /// Returns who decides: the link, or who has an access token with the roles that are needed. The inner error is a
    /// notice for the page.
    async fn decider(
        &self,
        cx: &EngineContext,
        wait: &LinkedWait,
    ) -> Result<Result<Decider, &'static str>, Problem> {
        let Some(text) = &self.access_token else {
            let link = Decider {
                name: Some(LINK.to_owned()),
                roles: Vec::new(),
            };
            return Ok(match wait.roles.is_empty() {
                true => Ok(link),
                false => Err("Nothing was decided: this decision needs an access token."),
            });
        };
        let Ok(token) = cx.engine.accept_token(text).await? else {
            return Err(unaccepted());
        };
        let labels = cx.catalog.labels(&cx.engine, &wait.row.flow);
        let side = token.reaches_side(&wait.row.flow, &labels);
        let may = token.has(Scope::Approve) && side.is_installer();
        Ok(match may {
            true => Ok(Caller { token }.decides()),
            false => Err("Nothing was decided: this access token may not decide here."),
        })
    }

    /// Returns the page again, with what was typed.
    fn again(
        &self,
        cx: &EngineContext,
        wait: &LinkedWait,
        status: StatusCode,
        notice: &str,
        problems: &[FieldProblem],
    ) -> Sent {
        let page = WaitPage {
            wait,
            token: &self.token,
            action: &self.action,
            typed: Some(&self.typed),
            problems,
            notice: Some(notice),
            root: ROOT,
            now_ms: cx.engine.now_ms(),
        };
        let html = page.html();
        Sent::Again { status, html }
    }
}

/// Returns the answer for a wait that is not open: decided by somebody, or over without a decision.
fn over(wait: &LinkedWait, error: EngineError) -> Problem {
    let is_decided = matches!(error, EngineError::AlreadyDecided(_));
    let mut problem = Problem::from(error);
    if is_decided && !wait.is_answered() {
        problem.status = StatusCode::GONE;
    }
    problem
}

/// The page after a decision. What it says is signed, so that nobody makes one that says something else.
async fn done(
    server: &Shared,
    id: String,
    query: BTreeMap<String, String>,
) -> Result<Response, Problem> {
    let html = server
        .ask(async move |cx: &EngineContext| {
            let text = |name: &str| query.get(name).map_or("", String::as_str);
            let action = text("action");
            let signed = (text("expires").parse().unwrap_or(0), text("signature"));
            let is_good = cx.engine.is_receipt(&id, action, signed)?;
            Ok::<_, EngineError>(pages::decided(ROOT, is_good.then_some(action)))
        })
        .await?;
    Ok(page(StatusCode::OK, html, FORM_POLICY))
}

fn refuse_other_workspaces(server: &Shared, workspace: &str) -> Result<(), Problem> {
    match workspace == LOCAL || workspace == server.settings.workspace {
        true => Ok(()),
        false => Err(nothing()),
    }
}

/// The one answer to a wrong id and to a wrong token.
fn nothing() -> Problem {
    EngineError::from(LinkError::Wait).into()
}

fn refused(server: &Shared, peer: Peer) -> Problem {
    counted(server, peer, nothing())
}

/// The answer to an access token in the form that is not accepted.
fn unaccepted() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        codes::UNAUTHORIZED,
        "the access token is not accepted, and nothing was decided",
    )
    .hint("go back, and paste a token that is valid; `flowstone tokens create --role` makes one")
}

/// Counts a failed proof; after too many, the answer is that there were too many.
fn counted(server: &Shared, Peer(peer): Peer, problem: Problem) -> Problem {
    let class = match &*problem.code {
        code if code == LinkError::Wait.code() => ProofClass::WaitLink,
        code if code == codes::UNAUTHORIZED => ProofClass::Token,
        _ => return problem,
    };
    server.metrics.refused("link");
    let refused = server.failures.note(peer.ip(), class, Instant::now());
    refused.unwrap_or(problem)
}
