//! Events: `/{workspace}/events/{path}` of triggers and of waits, and `POST /api/v1/events`.

use std::collections::HashSet;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::any;
use flowstone_engine::catalog::ServedInterface;
use flowstone_engine::codec;
use flowstone_engine::events::{EventAnswer, Publication, Published};
use flowstone_engine::interfaces::{InterfaceError, Received};
use flowstone_engine::ports::{NewReceipt, Target, WaitFilter, WaitRow, WaitState, wall_clock_ms};
use flowstone_engine::proofs::Proven;
use flowstone_engine::registry::DEFAULT_WORKSPACE;
use flowstone_engine::token::Scope;
use flowstone_engine::trace::TraceOrigin;
use flowstone_engine::{EngineError, StartOptions, waits};
use flowstone_flow::interfaces::InterfaceKind;
use flowstone_flow::proof::Proof;
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::access::Caller;
use super::answer::Answer;
use super::interfaces::receive;
use super::interfaces::reply::{Outcome, Who};
use super::interfaces::{
    About, Begun, answer, class_of, duplicate, other_method, published, reaches, refused, served_of,
};
use super::operation::{GIVEN, Kind, Operation, Operations, Param, Shape, names};
use super::problem::{Problem, codes};
use super::request::{Given, Members, decoded};
use super::server::{EngineContext, Shared};
use super::trace;

/// How long a `dedup` of `POST /api/v1/events` is remembered.
const RECEIPT_MS: i64 = 24 * 60 * 60 * 1000;
/// How many waits that are over are looked at for a delivery that comes again.
const ENDED: usize = 64;
/// The second part of the addresses of events.
pub(super) const PART: &str = "events";
/// The name of the workspace that every project has.
const LOCAL: &str = "local";

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/{ws}/events/{*path}", any(deliver))
}

pub(super) fn operations() -> Operations {
    let answer = Shape::Members(vec![
        ("runs", Shape::ListOf(Box::new(Shape::Text))),
        ("waits", Shape::ListOf(Box::new(Shape::Text))),
        ("kept", Shape::Flag),
        ("deduped", Shape::Flag),
    ]);
    Operations::default().with(
        Operation::post(
            "/api/v1/events",
            "publishEvent",
            "Publishes an event: it answers waits and starts flows.",
        )
        .scope(Scope::Run)
        .members(EVENT)
        .json(StatusCode::ACCEPTED, "What the event did.", answer)
        .refuses(&[409, 422]),
        publish,
    )
}

/// What has an address below `/{workspace}/events`, and the flow that it counts for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Receiver {
    Trigger { flow: String },
    Waits { flow: String },
}

async fn deliver(State(server): State<Shared>, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let address = parts.uri.path().to_owned();
    let nothing = || Problem::not_found(format!("there is nothing at `{address}`"));
    let rest = address.trim_start_matches('/').split_once("/events/");
    let (workspace, path) = rest.ok_or_else(nothing)?;
    if workspace != LOCAL && workspace != server.settings.workspace {
        return Err(nothing());
    }
    // A key of a wait may hold anything, so it takes the rest of the path.
    let path = decoded(path, false)?;
    if path.contains('\0') {
        return Err(Problem::malformed("the path has a part that is not a name"));
    }
    let wanted = path.clone();
    let receiver = server
        .ask(async move |cx: &EngineContext| {
            if let Some(served) = trigger_at(cx, &wanted) {
                let flow = served.flow.slug.clone();
                return Ok(Some(Receiver::Trigger { flow }));
            }
            let mut found = waits_at(cx, &wanted, Which::Open).await?;
            if found.is_empty() {
                found = waits_at(cx, &wanted, Which::Ended).await?;
            }
            let first = found.into_iter().next();
            Ok::<_, Problem>(first.map(|wait| Receiver::Waits { flow: wait.flow }))
        })
        .await?;
    let receiver = receiver.ok_or_else(nothing)?;
    if let Some(response) = other_method(&parts.method, "POST", &address) {
        return Ok(response);
    }
    let (flow, is_wait) = match receiver {
        Receiver::Trigger { flow } => (flow, false),
        Receiver::Waits { flow } => (flow, true),
    };
    // Only waits without a proof of their own ask for a token.
    let caller = match is_wait && parts.headers.contains_key("authorization") {
        true => server.caller(&parts).await.ok(),
        false => None,
    };
    let about = About {
        class: class_of(&format!("events/{path}")),
        webhook: Some(flow),
        who: Who::of(&server, caller.as_ref()),
    };
    let most = server.settings.limits.webhook_body;
    let arrived = match receive::read(&server, &mut parts, body, most).await {
        Ok(arrived) => arrived,
        Err(problem) => return answer(&server, &parts, about, Err(problem)).await,
    };
    let outcome = server
        .ask(async move |cx: &EngineContext| {
            let (received, _room) = arrived.open()?;
            if is_wait {
                return answer_waits(cx, &path, &received, caller).await;
            }
            match trigger_at(cx, &path) {
                Some(served) => take(cx, &served, &received).await,
                None => Err(Problem::not_found("the trigger is no longer served")),
            }
        })
        .await;
    answer(&server, &parts, about, outcome).await
}

/// Returns an interface with a path. Several with one path have the same proof.
fn trigger_at(cx: &EngineContext, path: &str) -> Option<ServedInterface> {
    let mut all = cx.catalog.interfaces(&cx.engine).into_iter();
    all.find(|it| it.interface.event_path.as_deref() == Some(path))
}

/// Takes a delivery for a trigger: publishes its event once, or starts its flow if it has none.
pub(super) async fn take(
    cx: &EngineContext,
    served: &ServedInterface,
    received: &Received,
) -> Result<Outcome, Problem> {
    let (engine, interface) = (&cx.engine, &served.interface);
    let Some(proof) = &interface.proof else {
        return Err(Problem::not_found("the trigger is no longer served"));
    };
    let begun = Begun::of(cx, served).await?;
    let proven = begun.prove(cx, proof, received)?;
    if let Some(challenge) = received.challenge(proof) {
        return Ok(Outcome::Challenge(challenge));
    }
    let workspace = served.installation.as_ref().map(|it| &*it.at.workspace);
    let scope = match (&interface.event, workspace) {
        (Some(event), None) => format!("event {event}"),
        (Some(event), Some(workspace)) => format!("event {workspace}/{event}"),
        (None, _) => format!("interface {}", served.place()),
    };
    let receipts = engine.receipts(&scope, interface, received, &proven);
    if let Some(past) = engine.delivered(&receipts).await? {
        return duplicate(cx, &past).await;
    }
    let starting = match &interface.event {
        Some(event) => of_event(cx, event, workspace),
        None => vec![served.clone()],
    };
    let workspace = workspace.unwrap_or(DEFAULT_WORKSPACE);
    let trace = trace::of_unknown_sender(received);
    let mut all = Vec::new();
    for one in &starting {
        let begun = Begun::of(cx, one).await?;
        let input = engine
            .interface_input(&begun.loaded.flow, &one.interface, received)
            .await?;
        let options = StartOptions {
            installation: begun.installation,
            ..options(&one.interface.invocation, input, one, trace)
        };
        all.push((begun.loaded, options));
    }
    let starts: Vec<_> = all
        .iter()
        .map(|(loaded, options)| (loaded, options.clone()))
        .collect();
    let mut answers = Vec::new();
    if let Some(event) = &interface.event {
        answers.push(EventAnswer {
            target: Target::Event {
                name: event.clone(),
                key: None,
            },
            payload: engine.payload(received).await?,
            workspace: Some(workspace.to_owned()),
            is_unattended: true,
            keep: starts.is_empty(),
        });
    }
    let publication = engine.publish(starts, answers, receipts).await?;
    published(cx, served, publication).await
}

/// Returns what a delivery to an interface of a flow, or of an installation of a workspace, starts.
fn of_event(cx: &EngineContext, event: &str, workspace: Option<&str>) -> Vec<ServedInterface> {
    let mut all = match workspace {
        None => starters(cx, event, None),
        Some(_) => Vec::new(),
    };
    let workspace = workspace.unwrap_or(DEFAULT_WORKSPACE);
    all.extend(starters(cx, event, Some(workspace)));
    all
}

/// Returns the interfaces that an event starts: those of the flows of the project, or of the installations of a workspace.
fn starters(cx: &EngineContext, event: &str, workspace: Option<&str>) -> Vec<ServedInterface> {
    let starts = |it: &ServedInterface| {
        it.interface.kind != InterfaceKind::Http && it.interface.event.as_deref() == Some(event)
    };
    let Some(workspace) = workspace else {
        let all = cx.catalog.interfaces(&cx.engine).into_iter();
        return all.filter(starts).collect();
    };
    let installed = cx.catalog.installed();
    let own = installed.ready().filter(|it| it.at.workspace == workspace);
    own.flat_map(served_of).filter(starts).collect()
}

fn options(
    invocation: &Option<String>,
    input: Value,
    from: &ServedInterface,
    trace: Option<TraceOrigin>,
) -> StartOptions {
    StartOptions {
        invocation: invocation.clone(),
        is_left: true,
        started_by: Some(format!("webhook:{}", from.interface.id)),
        trace,
        ..StartOptions::with_input(input)
    }
}

/// Which waits of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Open,
    /// The last ones that are over.
    Ended,
}

/// Returns the waits with a webhook at a path, or with a webhook and a key.
async fn waits_at(
    cx: &EngineContext,
    path: &str,
    which: Which,
) -> Result<Vec<WaitRow>, EngineError> {
    let mut found: Vec<WaitRow> = Vec::new();
    let all = match which {
        Which::Open => WaitFilter::default(),
        Which::Ended => WaitFilter {
            all: true,
            last: Some(ENDED),
            ..WaitFilter::default()
        },
    };
    let of_path = |path: String| WaitFilter {
        webhook: Some(path),
        ..all.clone()
    };
    let of_key = WaitFilter {
        key: Some(path.to_owned()),
        ..all.clone()
    };
    let plain = path.trim_matches('/');
    for filter in [
        of_path(plain.to_owned()),
        of_path(format!("events/{path}")),
        of_key,
    ] {
        let rows = cx.engine.list_waits(filter).await?;
        let of_state = |row: &WaitRow| (row.state == WaitState::Open) == (which == Which::Open);
        let fitting = |row: &WaitRow| row.webhook.is_some() && of_state(row);
        found.extend(rows.into_iter().filter(fitting));
        if !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Completes the waits at a path.
async fn answer_waits(
    cx: &EngineContext,
    path: &str,
    received: &Received,
    caller: Option<Caller>,
) -> Result<Outcome, Problem> {
    let engine = &cx.engine;
    let mut proven = Vec::new();
    let mut failure = None;
    for row in waits_at(cx, path, Which::Open).await? {
        match prove(cx, &row, received, caller.as_ref()) {
            Ok(proof) => proven.push((row, proof)),
            Err(error) => failure = Some(error),
        }
    }
    if proven.is_empty() {
        return match is_repeated(cx, path, received).await? {
            true => Ok(repeated()),
            false => Err(failure.unwrap_or_else(gone)),
        };
    }
    let receipts: Vec<NewReceipt> = proven
        .iter()
        .find_map(|(_, proof)| receipt(path, received, proof.as_ref()?))
        .into_iter()
        .collect();
    if engine.delivered(&receipts).await?.is_some() {
        return Ok(repeated());
    }
    let payload = engine.payload(received).await?;
    let text = codec::encode(&payload).map_err(EngineError::from)?;
    proven.retain(|(row, _)| is_chosen(row, &text));
    let Some((first, _)) = proven.first() else {
        return Err(Problem::not_found(
            "no wait here has the key of this payload",
        ));
    };
    if proven.iter().any(|(row, _)| row.key != first.key) {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            codes::AMBIGUOUS,
            "several waits with different keys have this address",
        )
        .hint("give the waits an `:event {:key {:path [...]}}`, so that the payload chooses, or paths of their own"));
    }
    let answers = proven.iter().map(|(row, proof)| EventAnswer {
        target: Target::Name(row.id.clone()),
        payload: without_by(&payload),
        workspace: None,
        is_unattended: proof.is_none(),
        keep: false,
    });
    let published = match engine
        .publish(Vec::new(), answers.collect(), receipts)
        .await?
    {
        Publication::Known(_) => return Ok(repeated()),
        Publication::Taken(published) => published,
    };
    if published.waits.is_empty() {
        return Err(match published.refused.into_iter().next() {
            Some(error) => refused(error),
            None => gone(),
        });
    }
    Ok(Outcome::Published(summary(&published)))
}

fn gone() -> Problem {
    Problem::not_found("nothing waits here any more")
}

/// Returns the receipt of a delivery to the waits at a path, if its proof signs something.
fn receipt(path: &str, received: &Received, proof: &Proven) -> Option<NewReceipt> {
    let signed = proof.signed.as_ref()?;
    Some(NewReceipt {
        scope: format!("wait {path}"),
        key: format!("signed {signed}"),
        digest: codec::digest_bytes(&received.body),
        until_ms: wall_clock_ms().saturating_add(RECEIPT_MS),
    })
}

/// Tells whether a delivery answered waits at a path that are over: its sender did not get the response.
async fn is_repeated(
    cx: &EngineContext,
    path: &str,
    received: &Received,
) -> Result<bool, EngineError> {
    let mut tried = HashSet::new();
    for row in waits_at(cx, path, Which::Ended).await? {
        // To others than its sender, a wait that is over is no different from one that never was.
        let proof = prove(cx, &row, received, None).ok().flatten();
        let receipt = proof.and_then(|proof| receipt(path, received, &proof));
        let Some(receipt) = receipt.filter(|it| tried.insert(it.key.clone())) else {
            continue;
        };
        if cx.engine.delivered(&[receipt]).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the outcome of a delivery that answered waits before.
fn repeated() -> Outcome {
    Outcome::Repeated(json!({"runs": [], "waits": [], "kept": false, "deduped": true}))
}

/// Verifies a request with the proof of a wait's webhook. Without one, a token that may start the flow is needed.
fn prove(
    cx: &EngineContext,
    row: &WaitRow,
    received: &Received,
    caller: Option<&Caller>,
) -> Result<Option<Proven>, Problem> {
    let details = codec::decode(&row.details).unwrap_or(Value::Nil);
    let webhook = details.get("show").and_then(|show| show.get("webhook"));
    let auth = webhook.and_then(|webhook| webhook.get("auth"));
    let Some(auth) = auth.filter(|auth| !auth.is_nil()) else {
        let caller = caller.ok_or_else(|| {
            super::access::unauthorized(
                "the webhook of this wait has no `:auth`, so it needs a token",
            )
        })?;
        caller.need(Scope::Run)?;
        let labels = cx.catalog.labels(&cx.engine, &row.flow);
        let reaches_flow = caller.token.reaches_flow(&row.flow, &labels);
        return match reaches_flow && !caller.has_own_runs_only() {
            true => Ok(None),
            false => Err(Problem::not_found("there is nothing at this address")),
        };
    };
    let proof = Proof::read(auth).map_err(|message| {
        InterfaceError::Malformed(format!(
            "the webhook of this wait cannot be used: {message}"
        ))
    })?;
    Ok(Some(cx.engine.prove(&proof, received)?))
}

/// Tells whether a payload has the key that a wait looks for.
fn is_chosen(row: &WaitRow, payload: &str) -> bool {
    let event = row.event.as_ref();
    let Some((event, path)) = event.and_then(|event| Some((event, event.path.as_ref()?))) else {
        return true;
    };
    event.key.is_none() || waits::event_key(path, payload) == event.key
}

/// Returns a payload that does not say who decided: a program proves a key, not a person.
fn without_by(payload: &Value) -> Value {
    let Some(map) = payload.as_map() else {
        return payload.clone();
    };
    let by = Value::keyword("by");
    let entries = map.iter().filter(|(key, _)| **key != by);
    Value::map(entries.map(|(key, value)| (key.clone(), value.clone())))
}

/// Returns what a delivery did, as JSON. The names of the fields are stable.
pub(super) fn summary(published: &Published) -> Json {
    let runs = published.runs.iter().map(|it| it.run.as_str());
    let waits = published.waits.iter().map(|it| it.id.as_str());
    json!({
        "runs": runs.collect::<Vec<_>>(),
        "waits": waits.collect::<Vec<_>>(),
        "kept": published.kept,
        "deduped": false,
    })
}

const EVENT: &[Param] = &[
    Param::text("dedup", "The same event is taken once."),
    Param::text("key", "Only waits with this key."),
    Param::text("name", "The name of the event.").needed(),
    Param::new(
        "payload",
        Kind::Any,
        "The answer for waits, and the input of runs.",
    ),
    GIVEN,
];

/// `POST /api/v1/events`: what a verified delivery does, for callers with a token.
async fn publish(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    let trace = trace::of_caller(&headers);
    let given = Members::read(&headers, body, &names(EVENT)).await?;
    let name = given.text("name")?.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Problem::malformed("`name` is missing"))?;
    let key = given.text("key")?;
    let payload = given.value("payload", given.values()?)?;
    let receipts: Vec<NewReceipt> = given
        .text("dedup")?
        .map(|dedup| NewReceipt {
            scope: format!("{} event {name}", caller.identity()),
            key: dedup,
            digest: given.digest(),
            until_ms: wall_clock_ms().saturating_add(RECEIPT_MS),
        })
        .into_iter()
        .collect();
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let payload = payload
                .as_ref()
                .map_or_else(|| Value::map([]), Given::value);
            let mut all = starters(cx, &name, None);
            all.extend(starters(cx, &name, Some(caller.token.workspace())));
            all.retain(|it| reaches(&caller, it));
            let mut starting = Vec::new();
            for it in &all {
                let begun = Begun::of(cx, it).await?;
                let options = StartOptions {
                    invocation: it.interface.invocation.clone(),
                    started_by: Some(caller.started_by()),
                    trace,
                    installation: begun.installation,
                    ..StartOptions::from_outside(input_of(&payload))?
                };
                starting.push((begun.loaded, options));
            }
            let starts: Vec<_> = starting
                .iter()
                .map(|(loaded, options)| (loaded, options.clone()))
                .collect();
            let answer = EventAnswer {
                target: Target::Event { name, key },
                payload: payload.clone(),
                workspace: caller.own_workspace(),
                is_unattended: true,
                keep: starts.is_empty(),
            };
            // Waits of all flows of a workspace may wait for an event.
            let answers = match caller.token.names_flows() || caller.has_own_runs_only() {
                true => Vec::new(),
                false => vec![answer],
            };
            let publication = cx.engine.publish(starts, answers, receipts).await?;
            Ok::<_, Problem>(match publication {
                Publication::Taken(published) => summary(&published),
                Publication::Known(past) => {
                    let runs: Vec<&str> = past.runs.iter().map(|run| run.as_str()).collect();
                    json!({"runs": runs, "waits": [], "kept": false, "deduped": true})
                }
            })
        })
        .await?;
    Ok(Answer::with(StatusCode::ACCEPTED, shown))
}

/// Returns a payload as the input of a run: a map as it is, anything else under `:body`.
fn input_of(payload: &Value) -> Value {
    match payload {
        Value::Map(_) => payload.clone(),
        other => Value::map([(Value::keyword("body"), other.clone())]),
    }
}
