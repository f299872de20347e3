//! Interfaces of flows: `/api/flows/{slug}/interfaces/live/{id}` and `/http/{path}`; those of an installation are below
//! `/api/flows/{slug}/installations/{installation}`.
//!
//! A request is checked in this order: address, method, size of the body, proof, repetition, type of the body, input.

pub(super) mod receive;
pub(super) mod reply;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use flowstone_engine::catalog::{ReadyInstallation, ServedInterface};
use flowstone_engine::events::Publication;
use flowstone_engine::installation::InstallationName;
use flowstone_engine::interfaces::{InterfaceError, Received};
use flowstone_engine::ports::PastDelivery;
use flowstone_engine::proofs::{Proven, Unproven};
use flowstone_engine::registry::DEFAULT_WORKSPACE;
use flowstone_engine::token::Scope;
use flowstone_engine::{EngineError, StartOptions, StartedInstallation, Submitted};
use flowstone_flow::flow::LoadedFlow;
use flowstone_flow::interfaces::InterfaceKind;
use flowstone_flow::proof::Proof;
use serde_json::Value as Json;

use super::access::{Caller, ProofClass};
use super::problem::{Problem, codes};
use super::runs::started_json;
use super::server::{EngineContext, Server, Shared};
use super::settings::ServerSettings;
use super::{events, flows, trace};
use crate::metrics::WebhookOutcome;
use receive::BODY_HTTP;
use reply::{Outcome, Started, Who};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/flows/{slug}/interfaces/{target}/{id}", any(by_id))
        .route("/api/flows/{slug}/installations/{*rest}", any(installation))
        .route("/http/{*path}", any(by_path))
}

/// Where a request goes.
#[derive(Debug, Clone)]
enum Address {
    Id {
        slug: String,
        id: String,
    },
    Path(Vec<String>),
    Installed {
        slug: String,
        at: InstallationName,
        place: Place,
    },
}

/// An interface among those of an installation.
#[derive(Debug, Clone)]
enum Place {
    Id(String),
    Path(Vec<String>),
}

async fn by_id(
    State(server): State<Shared>,
    Path((slug, target, id)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    if target != "live" {
        return Err(nothing(request.uri().path())
            .hint("this server has one version of each flow, under `live`"));
    }
    serve(&server, Address::Id { slug, id }, request).await
}

async fn installation(
    State(server): State<Shared>,
    Path((slug, _)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let path = request.uri().path();
    let (_, rest) = path.split_once("/installations/").unwrap_or_default();
    match installed_address(slug, &receive::segments(rest)?) {
        Some(address) => serve(&server, address, request).await,
        None => Err(nothing(path).hint(
            "an interface is at `/api/flows/{slug}/installations/{installation}/interfaces/{id}`",
        )),
    }
}

/// Reads `[WORKSPACE/]NAME/interfaces/ID` and `[WORKSPACE/]NAME/http/PATH`.
fn installed_address(slug: String, parts: &[String]) -> Option<Address> {
    let is_kind = |part: &String| part == "interfaces" || part == "http";
    // An installation may be called like a kind.
    let (workspace, name, rest) = match parts {
        [name, kind, rest @ ..] if is_kind(kind) && !rest.is_empty() => {
            (DEFAULT_WORKSPACE, name, (kind, rest))
        }
        [workspace, name, kind, rest @ ..] if is_kind(kind) => (&**workspace, name, (kind, rest)),
        _ => return None,
    };
    let place = match rest {
        (kind, [id]) if kind == "interfaces" => Place::Id(id.clone()),
        (kind, [_, ..]) if kind == "http" => Place::Path(rest.1.to_vec()),
        _ => return None,
    };
    Some(Address::Installed {
        slug,
        at: InstallationName {
            workspace: workspace.to_owned(),
            name: name.clone(),
        },
        place,
    })
}

async fn by_path(State(server): State<Shared>, request: Request) -> Result<Response, Problem> {
    let path = request.uri().path();
    let parts = receive::segments(path.strip_prefix("/http/").unwrap_or_default())?;
    serve(&server, Address::Path(parts), request).await
}

fn nothing(path: &str) -> Problem {
    Problem::not_found(format!("there is nothing at `{path}`"))
}

/// What is known of an interface before its request is read.
struct Found {
    method: &'static str,
    kind: InterfaceKind,
    owner: String,
    place: String,
    needs_token: bool,
}

async fn serve(server: &Shared, address: Address, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let (wanted, method) = (address.clone(), parts.method.clone());
    let public = server.settings.public.clone();
    let found = server
        .ask(async move |cx: &EngineContext| {
            // Interfaces may share a path under several methods.
            let exact = find(cx, &wanted, Some(&method));
            let found = exact.or_else(|| find(cx, &wanted, None));
            let found = found.filter(|(it, _)| is_served(it, &public));
            Ok::<_, Problem>(found.map(|(served, _)| Found {
                method: served.interface.method,
                kind: served.interface.kind,
                owner: served.owner().to_owned(),
                place: served.place(),
                needs_token: served.interface.proof.is_none(),
            }))
        })
        .await?;
    let found = found.ok_or_else(|| nothing(&path))?;
    if let Some(response) = other_method(&parts.method, found.method, &path) {
        return Ok(response);
    }
    let most = match found.kind {
        InterfaceKind::Http => BODY_HTTP,
        InterfaceKind::Webhook | InterfaceKind::Trigger => server.settings.limits.webhook_body,
    };
    let caller = match found.needs_token {
        true => {
            receive::refuse_large(&parts.headers, most)?;
            Some(token(server, &parts).await?)
        }
        false => None,
    };
    let about = About {
        class: class_of(&found.place),
        webhook: (found.kind != InterfaceKind::Http).then_some(found.owner),
        who: Who::of(server, caller.as_ref()),
    };
    let read = receive::read(server, &mut parts, body, most).await;
    let arrived = match read {
        Ok(arrived) => arrived,
        Err(problem) => return answer(server, &parts, about, Err(problem)).await,
    };
    let outcome = server
        .ask(async move |cx: &EngineContext| {
            let (received, _room) = arrived.open()?;
            let method = received.method.parse().unwrap_or(Method::POST);
            let found = find(cx, &address, Some(&method));
            let (served, parameters) = found.ok_or_else(|| nothing(&received.path))?;
            let received = Received {
                parameters,
                without_files: served.installation.is_some(),
                ..received
            };
            take(cx, &served, &received, caller).await
        })
        .await;
    answer(server, &parts, about, outcome).await
}

impl From<InterfaceError> for Problem {
    fn from(error: InterfaceError) -> Problem {
        let text = error.to_string();
        match error {
            InterfaceError::Unset { .. } => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                codes::SECRET_UNSET,
                "the interface cannot be used: a secret of its `:auth` is not set",
            )
            .hint("`/readyz` names the secret"),
            // The reason is for the log; `answer` takes it out.
            InterfaceError::Unproven(why) => unproven().with(WHY, why.name().into()),
            InterfaceError::Twice { .. } | InterfaceError::Malformed(_) => Problem::malformed(text),
            InterfaceError::UnknownInput { known, .. } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, codes::UNKNOWN_INPUT, text).hint(
                    match known.is_empty() {
                        true => "it takes no inputs".to_owned(),
                        false => format!("it takes: {}", known.join(", ")),
                    },
                )
            }
            InterfaceError::MediaType(_) => {
                Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, codes::MEDIA_TYPE, text)
            }
            InterfaceError::Engine(error) => refused(error),
        }
    }
}

/// Returns the answer to a start that a flow refuses.
pub(super) fn refused(error: EngineError) -> Problem {
    let is_taken = matches!(error, EngineError::SlotTaken { .. });
    let problem = Problem::from(error);
    match is_taken {
        true => problem.header(header::RETRY_AFTER, "5"),
        false => problem,
    }
}

fn unproven() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        codes::UNPROVEN,
        "the request does not prove who sends it",
    )
}

/// Returns the class in which failed proofs of an interface are counted.
pub(super) fn class_of(place: &str) -> ProofClass {
    let mut hasher = DefaultHasher::new();
    place.hash(&mut hasher);
    ProofClass::Interface(hasher.finish())
}

/// Whose request is answered.
pub(super) struct About {
    /// What its failed proofs count for.
    pub class: ProofClass,
    /// The flow, if its webhook or the webhook of one of its waits was called.
    pub webhook: Option<String>,
    pub who: Who,
}

/// The member of a problem that holds why a proof failed.
const WHY: &str = "unproven";

/// Makes the answer of what was taken, and counts failed proofs and deliveries.
pub(super) async fn answer(
    server: &Shared,
    parts: &Parts,
    about: About,
    outcome: Result<Outcome, Problem>,
) -> Result<Response, Problem> {
    if let (Some(flow), Some(counted)) = (&about.webhook, counted(&outcome)) {
        server.metrics.webhook(flow, counted);
    }
    match outcome {
        Ok(outcome) => reply::respond(server, outcome, about.who).await,
        Err(mut problem) => {
            let Some(why) = problem.more.remove(WHY) else {
                return Err(problem);
            };
            let reason = why.as_str().unwrap_or_default();
            tracing::warn!(target: "flowstone::server", reason, path = parts.uri.path(), "a proof failed");
            Err(server.failed(parts, about.class, (reason, problem)))
        }
    }
}

/// Returns what a delivery counts as; nothing for the question whether an address is right, and for our own errors.
fn counted(outcome: &Result<Outcome, Problem>) -> Option<WebhookOutcome> {
    let problem = match outcome {
        Ok(Outcome::Started(_) | Outcome::Published(_)) => return Some(WebhookOutcome::Started),
        Ok(Outcome::Duplicate { .. } | Outcome::Repeated(_)) => {
            return Some(WebhookOutcome::Deduped);
        }
        Ok(Outcome::Challenge(_)) => return None,
        Err(problem) => problem,
    };
    let is_late = problem.more.get(WHY).and_then(Json::as_str) == Some(Unproven::Late.name());
    match problem.status {
        StatusCode::UNAUTHORIZED if is_late => Some(WebhookOutcome::Replayed),
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::CONFLICT
        | StatusCode::SERVICE_UNAVAILABLE => Some(WebhookOutcome::Refused),
        status if status.is_server_error() => None,
        _ => Some(WebhookOutcome::Invalid),
    }
}

/// Checks the token of a request.
pub(super) async fn token(server: &Server, parts: &Parts) -> Result<Caller, Problem> {
    let caller = server.caller(parts).await?;
    caller.need(Scope::Run)?;
    Ok(caller)
}

/// Answers requests with another method than the one that starts a run.
pub(super) fn other_method(
    method: &Method,
    expected: &'static str,
    path: &str,
) -> Option<Response> {
    let allow = match expected {
        "GET" => "GET, HEAD, OPTIONS".to_owned(),
        other => format!("{other}, OPTIONS"),
    };
    if method.as_str() == expected {
        return None;
    }
    let mut response = match (method, expected) {
        (&Method::OPTIONS, _) => StatusCode::NO_CONTENT.into_response(),
        // It has no effect, and no run whose result it could have.
        (&Method::HEAD, "GET") => StatusCode::NO_CONTENT.into_response(),
        _ => Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            codes::METHOD,
            format!("`{path}` does not take {method}"),
        )
        .into_response(),
    };
    if let Ok(allow) = allow.parse() {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    Some(response)
}

/// Finds the interface of an address, and the parameters of its path. With a method, only those that take it.
fn find(
    cx: &EngineContext,
    address: &Address,
    method: Option<&Method>,
) -> Option<(ServedInterface, Vec<(String, String)>)> {
    let all = cx.catalog.interfaces(&cx.engine).into_iter();
    let fits = |it: &ServedInterface| method.is_none_or(|m| m.as_str() == it.interface.method);
    match address {
        Address::Id { slug, id } => {
            let mut all = all.filter(|it| it.interface.kind != InterfaceKind::Trigger);
            let found = all.find(|it| it.flow.slug == *slug && it.interface.id == *id && fits(it));
            found.map(|it| (it, Vec::new()))
        }
        Address::Path(path) => {
            let found = all.filter(fits).filter_map(|it| {
                let pattern = it.interface.path.as_ref()?;
                let rank = pattern.rank();
                let parameters = pattern.matches(path)?;
                Some((rank, it, parameters))
            });
            let first = found.min_by(|one, other| one.0.cmp(&other.0));
            first.map(|(_, it, parameters)| (it, parameters))
        }
        Address::Installed { slug, at, place } => {
            let all = of_installation(cx, at).filter(|it| it.flow.slug == *slug && fits(it));
            installed_at(all, place)
        }
    }
}

/// Returns the interfaces of an installation.
fn of_installation(
    cx: &EngineContext,
    at: &InstallationName,
) -> impl Iterator<Item = ServedInterface> + use<> {
    let ready = cx.catalog.installed().find(at).cloned();
    ready.into_iter().flat_map(|ready| served_of(&ready))
}

/// Returns the interfaces of an installation that can run.
pub(super) fn served_of(ready: &Rc<ReadyInstallation>) -> Vec<ServedInterface> {
    let all = ready.interfaces.iter().map(|interface| ServedInterface {
        flow: ready.flow.clone(),
        interface: interface.clone(),
        installation: Some(ready.clone()),
    });
    all.collect()
}

fn installed_at(
    mut all: impl Iterator<Item = ServedInterface>,
    place: &Place,
) -> Option<(ServedInterface, Vec<(String, String)>)> {
    match place {
        Place::Id(id) => {
            let is_it = |it: &ServedInterface| {
                it.interface.kind != InterfaceKind::Trigger && it.interface.id == *id
            };
            all.find(is_it).map(|it| (it, Vec::new()))
        }
        Place::Path(path) => all.find_map(|it| {
            let parameters = it.interface.path.as_ref()?.matches(path)?;
            Some((it, parameters))
        }),
    }
}

/// Tells whether an interface may be served: one that is open to everybody must be listed in the settings.
pub(super) fn is_served(served: &ServedInterface, public: &[String]) -> bool {
    !matches!(served.interface.proof, Some(Proof::None)) || public.contains(&served.place())
}

/// Tells whether a caller may start the runs of an interface.
pub(super) fn reaches(caller: &Caller, served: &ServedInterface) -> bool {
    let side = caller
        .token
        .reaches_side(served.owner(), &served.flow.labels);
    match served.installation {
        Some(_) => side.is_installer(),
        None => side.is_whole(),
    }
}

/// What an interface starts: a flow, and the installation whose run it is, as it is configured now.
pub(super) struct Begun {
    pub loaded: LoadedFlow,
    pub installation: Option<StartedInstallation>,
}

impl Begun {
    /// Reads what an interface starts.
    ///
    /// # Errors
    /// When its installation was removed, or lacks something.
    pub(super) async fn of(cx: &EngineContext, served: &ServedInterface) -> Result<Begun, Problem> {
        let Some(ready) = &served.installation else {
            return Ok(Begun {
                loaded: served.flow.loaded.clone(),
                installation: None,
            });
        };
        let session = Rc::new(cx.engine.session());
        let unusable = || Problem::not_found("the installation cannot be used");
        let found = cx.engine.installed(&session, &ready.at).await;
        let (checked, installation) = found.map_err(|_| unusable())?;
        let has_errors = checked.has_errors();
        let loaded = checked.loaded.filter(|_| !has_errors);
        Ok(Begun {
            loaded: loaded.ok_or_else(unusable)?,
            installation: Some(installation),
        })
    }

    pub(super) fn prove(
        &self,
        cx: &EngineContext,
        proof: &Proof,
        received: &Received,
    ) -> Result<Proven, Problem> {
        let Some(installation) = &self.installation else {
            return Ok(cx.engine.prove(proof, received)?);
        };
        let of = (&*self.loaded.flow, installation);
        let proven = cx.engine.prove_installed(of, proof, received);
        proven.map_err(|error| match error {
            InterfaceError::Unset { .. } => Problem::from(error).hint(
                "the installation binds the secret: a value of its setup form, or a slot of type `:secret`",
            ),
            error => error.into(),
        })
    }
}

/// Proves a request and starts a run, or what the interface's event starts.
async fn take(
    cx: &EngineContext,
    served: &ServedInterface,
    received: &Received,
    caller: Option<Caller>,
) -> Result<Outcome, Problem> {
    let (engine, interface, flow) = (&cx.engine, &served.interface, &served.flow);
    if let Some(caller) = &caller
        && !reaches(caller, served)
    {
        return Err(match &served.installation {
            Some(_) => nothing(&received.path),
            None => flows::no_flow(&flow.slug),
        });
    }
    if interface.event.is_some() && interface.kind != InterfaceKind::Http {
        return events::take(cx, served, received).await;
    }
    let begun = Begun::of(cx, served).await?;
    let proven = match &interface.proof {
        Some(proof) => Some((proof, begun.prove(cx, proof, received)?)),
        None => None,
    };
    if let Some(challenge) = proven.as_ref().and_then(|it| received.challenge(it.0)) {
        return Ok(Outcome::Challenge(challenge));
    }
    let scope = format!("interface {}", served.place());
    let receipts = match (&proven, interface.kind) {
        (Some((_, proven)), InterfaceKind::Webhook | InterfaceKind::Trigger) => {
            engine.receipts(&scope, interface, received, proven)
        }
        _ => Vec::new(),
    };
    if let Some(past) = engine.delivered(&receipts).await? {
        return duplicate(cx, &past).await;
    }
    let input = engine
        .interface_input(&begun.loaded.flow, interface, received)
        .await?;
    let kind = match interface.kind {
        InterfaceKind::Http => "http",
        InterfaceKind::Webhook | InterfaceKind::Trigger => "webhook",
    };
    let started_by = match &caller {
        Some(caller) => caller.started_by(),
        None => format!("{kind}:{}", interface.id),
    };
    let options = StartOptions {
        invocation: interface.invocation.clone(),
        is_left: true,
        started_by: Some(started_by),
        trace: match &caller {
            Some(_) => trace::of_receiver(received),
            None => trace::of_unknown_sender(received),
        },
        installation: begun.installation,
        ..StartOptions::with_input(input)
    };
    let submitted = engine.submit_once(&begun.loaded, options, receipts).await;
    match submitted.map_err(refused)? {
        Submitted::Known(past) => duplicate(cx, &past).await,
        Submitted::Started(started) => Ok(Outcome::Started(Started {
            kind: interface.kind,
            run: started_json(cx, &started, &[]).await?,
            timeout: interface.timeout,
        })),
    }
}

/// Returns the answer to a delivery that came before.
pub(super) async fn duplicate(cx: &EngineContext, past: &PastDelivery) -> Result<Outcome, Problem> {
    let run = match past.runs.first() {
        Some(run) => cx.engine.run(run).await.ok(),
        None => None,
    };
    Ok(Outcome::Duplicate {
        run: run.map(|run| (run.id.to_string(), run.status.name())),
    })
}

/// Returns what was published as an outcome.
pub(super) async fn published(
    cx: &EngineContext,
    served: &ServedInterface,
    publication: Publication,
) -> Result<Outcome, Problem> {
    let mut published = match publication {
        Publication::Known(past) => return duplicate(cx, &past).await,
        Publication::Taken(published) => published,
    };
    let is_nothing = published.runs.is_empty() && published.waits.is_empty() && !published.kept;
    if is_nothing && !published.refused.is_empty() {
        return Err(refused(published.refused.remove(0)));
    }
    for error in &published.refused {
        tracing::warn!(target: "flowstone::server", %error, code = error.code(), "a flow or a wait did not take an event");
    }
    match (&published.runs[..], published.waits.is_empty()) {
        ([only], true) => Ok(Outcome::Started(Started {
            kind: InterfaceKind::Webhook,
            run: started_json(cx, only, &[]).await?,
            timeout: served.interface.timeout,
        })),
        _ => Ok(Outcome::Published(events::summary(&published))),
    }
}

/// Returns what keeps interfaces from being used: secrets that are not set, and open ones that are not listed.
pub(super) fn problems(cx: &EngineContext, settings: &ServerSettings) -> Vec<serde_json::Value> {
    let mut found = Vec::new();
    for served in cx.catalog.interfaces(&cx.engine) {
        let place = served.place();
        let proof = served.interface.proof.as_ref();
        let unset = proof.and_then(|proof| cx.engine.unset_secret(proof));
        let (code, message) = match unset {
            Some(name) => (
                codes::SECRET_UNSET,
                format!("the interface `{place}` needs the secret `{name}`, which is not set"),
            ),
            None if !is_served(&served, &settings.public) => (
                "E1041",
                format!(
                    "the interface `{place}` is open to everybody, and `:server {{:public [...]}}` does not list it"
                ),
            ),
            None => continue,
        };
        found.push(serde_json::json!({
            "file": served.flow.name, "code": code, "message": message
        }));
    }
    found
}
