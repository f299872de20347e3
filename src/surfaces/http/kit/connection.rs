//! `/api/tools/connections/{id}`: the page of a request for a connection. A person enters the secret, or logs in at the service.
//!
//! The link is the proof, and works once. What is typed goes to where `kit connect` writes it, and nowhere else: no answer, error
//! or log has it.

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use flowstone_flow::step::StepError;
use flowstone_fronts::kit::connecting::{self, Asked, Mode};
use flowstone_fronts::kit::link::{CALLBACK, CONNECTIONS, Linked};
use flowstone_fronts::kit::{KitCode, KitError};
use flowstone_project::connections::{begin_login, finish_login};

use super::link::{ROOT, counted, nothing, over, receipt, refused};
use super::logins::Begun;
use crate::http::pages::{FORM_POLICY, form, page, see_other};
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Peer, Shared};
use crate::pages::kit::{ConnectionPage, Done, login_page};

const STORED: &str = "stored";
const LOGGED_IN: &str = "logged-in";
/// What the receipt of a completed request says.
const ENDS: &[(&str, Done)] = &[(STORED, Done::Stored), (LOGGED_IN, Done::LoggedIn)];

/// Shows what is asked for.
pub(super) async fn show(
    State(server): State<Shared>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = form::pairs(query.as_deref().unwrap_or_default())?;
    let Some(token) = query.remove("token") else {
        return Err(refused(&server, peer));
    };
    let html = server
        .ask(async move |cx: &EngineContext| {
            let asked = open(cx, (&id, &token)).await?;
            Ok::<_, Problem>(drawn(cx, &asked, (&token, None)))
        })
        .await
        .map_err(|problem| counted(&server, peer, problem))?;
    Ok(page(StatusCode::OK, html, FORM_POLICY))
}

/// The outcome of a form that was sent.
enum Sent {
    /// The secret is stored, and the receipt says so.
    Stored((i64, String)),
    /// The page is shown again, or the next one.
    Page { status: StatusCode, html: String },
}

/// Takes the secret, or begins the login.
pub(super) async fn complete(
    State(server): State<Shared>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let mut form = form::read(&headers, body).await?;
    let Some(token) = form.remove("token") else {
        return Err(refused(&server, peer));
    };
    let secret = form.remove("secret").unwrap_or_default();
    let (shared, request) = (server.clone(), id.clone());
    let sent = server
        .ask(async move |cx: &EngineContext| {
            let asked = open(cx, (&request, &token)).await?;
            match asked.mode {
                Some(Mode::Oauth) => begin(&shared, cx, &asked, token).await,
                Some(Mode::ApiKey) | None => store(cx, &asked, (&token, &secret)).await,
            }
        })
        .await;
    match sent.map_err(|problem| counted(&server, peer, problem))? {
        Sent::Stored(signed) => see_other(&server, &receipt_of(&id, STORED, &signed)),
        Sent::Page { status, html } => Ok(page(status, html, FORM_POLICY)),
    }
}

/// Stores the secret of a request.
async fn store(
    cx: &EngineContext,
    asked: &Asked,
    (link, secret): (&str, &str),
) -> Result<Sent, Problem> {
    let again = |status, notice: &str| {
        let html = drawn(cx, asked, (link, Some(notice)));
        Ok(Sent::Page { status, html })
    };
    if asked.is_set(&cx.engine) {
        return again(
            StatusCode::CONFLICT,
            "Nothing was stored: the secret has a value already, which a link does not replace.",
        );
    }
    match connecting::complete(&cx.engine, asked, secret).await {
        Ok(()) => Ok(Sent::Stored(cx.engine.sign_receipt(&asked.id, STORED)?)),
        Err(error) if error.code == KitCode::InvalidArguments => again(
            StatusCode::UNPROCESSABLE_ENTITY,
            &format!("Nothing was stored: {}.", error.message),
        ),
        // Somebody was faster.
        Err(error) if error.code == KitCode::NotFound => Err(over(&error.message)),
        Err(error) => Err(error.into()),
    }
}

/// Begins the login of a request, and shows where it is made.
async fn begin(
    server: &Shared,
    cx: &EngineContext,
    asked: &Asked,
    link: String,
) -> Result<Sent, Problem> {
    let redirect = format!("{}{}", server.settings.base, CALLBACK);
    let begun = match begin_login(&cx.engine, &asked.slug, redirect).await {
        Ok(begun) => begun,
        Err(error) => {
            let html = drawn(cx, asked, (&link, Some(&failed(&error))));
            let status = StatusCode::BAD_GATEWAY;
            return Ok(Sent::Page { status, html });
        }
    };
    let html = login_page(ROOT, &asked.slug, &begun.url);
    let request = (asked.id.clone(), link);
    match server.logins.add(begun, request, cx.engine.now_ms()) {
        true => Ok(Sent::Page {
            status: StatusCode::OK,
            html,
        }),
        false => Err(KitError::limit_exceeded("too many logins are being made", 60).into()),
    }
}

/// Returns why a login was not made, as a notice.
fn failed(error: &StepError) -> String {
    let hint = error.hints.first();
    let hint = hint.map_or_else(String::new, |hint| format!(" Hint: {hint}."));
    format!("Nobody is logged in: {}.{hint}", error.message)
}

/// `/callback`: the person comes back from the login page of an authorization server.
pub(super) async fn come_back(
    State(server): State<Shared>,
    Extension(peer): Extension<Peer>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query = query.unwrap_or_default();
    let state = form::pairs(&query)?.remove("state").unwrap_or_default();
    let Some(begun) = server.logins.take(&state) else {
        return Err(refused(&server, peer));
    };
    let id = begun.request.0.clone();
    let signed = server
        .ask(async move |cx: &EngineContext| log_in(cx, begun, &query).await)
        .await?;
    see_other(&server, &receipt_of(&id, LOGGED_IN, &signed))
}

async fn log_in(cx: &EngineContext, begun: Begun, query: &str) -> Result<(i64, String), Problem> {
    let (id, link) = begun.request;
    if begun.until_ms <= cx.engine.now_ms() {
        return Err(over("the login took longer than ten minutes"));
    }
    let asked = open(cx, (&id, &link)).await?;
    let claim = connecting::claim(&cx.engine, &asked).await;
    let claim = claim.map_err(|error| over(&error.message))?;
    match finish_login(&cx.engine, begun.login, query).await {
        Ok(_) => Ok(cx.engine.sign_receipt(&id, LOGGED_IN)?),
        Err(error) => {
            claim.release(&cx.engine).await?;
            let mut problem = Problem::from(error);
            problem.status = StatusCode::BAD_GATEWAY;
            Err(problem.hint("open the link of the request again, and log in once more"))
        }
    }
}

/// Returns the request of a link that can still be completed.
async fn open(cx: &EngineContext, (id, token): (&str, &str)) -> Result<Asked, Problem> {
    match connecting::linked(&cx.engine, id, token).await? {
        Linked::Open(asked) => Ok(asked),
        Linked::Over(why) => Err(over(&why)),
        Linked::Nothing => Err(nothing()),
    }
}

fn drawn(cx: &EngineContext, asked: &Asked, (token, notice): (&str, Option<&str>)) -> String {
    let page = ConnectionPage {
        asked,
        token,
        notice,
        root: ROOT,
        now_ms: cx.engine.now_ms(),
    };
    page.html()
}

fn receipt_of(id: &str, action: &str, (expires, signature): &(i64, String)) -> String {
    format!("{CONNECTIONS}/{id}/done?action={action}&expires={expires}&signature={signature}")
}

/// The page after a request was completed.
pub(super) async fn done(
    State(server): State<Shared>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    receipt(&server, id, (query, ENDS)).await
}
