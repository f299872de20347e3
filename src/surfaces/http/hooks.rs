//! `/api/hooks/{connection}`: events of connections with `:webhook`, for the subscriptions of flows.
//!
//! A request is checked in this order: address, method, size of the body, proof, type of the body. What it says is answered
//! after it was delivered, so a sender repeats what was not; an event that comes again starts nothing.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::any;
use flowstone_engine::interfaces::Received;
use flowstone_engine::triggers::TriggerEvent;
use flowstone_project::webhooks::{WebhookConnection, webhooks};
use serde_json::{Value as Json, json};

use super::interfaces::receive;
use super::interfaces::reply::{Outcome, Who};
use super::interfaces::{About, answer, class_of, other_method};
use super::problem::{Problem, codes};
use super::server::{EngineContext, Shared};

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/hooks/{connection}", any(deliver))
}

async fn deliver(
    State(server): State<Shared>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let address = parts.uri.path().to_owned();
    let wanted = name.clone();
    let is_known = server
        .ask(async move |cx: &EngineContext| {
            let mut all = webhooks(cx.engine.settings()).into_iter();
            Ok::<_, Problem>(all.any(|(name, _)| name == wanted))
        })
        .await?;
    if !is_known {
        return Err(Problem::not_found(format!(
            "there is nothing at `{address}`"
        )));
    }
    if let Some(response) = other_method(&parts.method, "POST", &address) {
        return Ok(response);
    }
    let about = About {
        class: class_of(&format!("hooks/{name}")),
        webhook: None,
        who: Who::of(&server, None),
    };
    let most = server.settings.limits.webhook_body;
    let arrived = match receive::read(&server, &mut parts, body, most).await {
        Ok(arrived) => arrived,
        Err(problem) => return answer(&server, &parts, about, Err(problem)).await,
    };
    let outcome = server
        .ask(async move |cx: &EngineContext| {
            let (received, _room) = arrived.open()?;
            let connection = connection(cx, &name)?;
            take(cx, &connection, &received).await
        })
        .await;
    answer(&server, &parts, about, outcome).await
}

fn connection(cx: &EngineContext, name: &str) -> Result<WebhookConnection, Problem> {
    let mut all = webhooks(cx.engine.settings()).into_iter();
    let found = all.find(|(known, _)| known == name).map(|(_, found)| found);
    let why = match found {
        Some(Ok(connection)) => return Ok(connection),
        Some(Err(why)) => why,
        None => "it is not there any more".to_owned(),
    };
    tracing::warn!(target: "flowstone::server", connection = name, %why, "the webhook of a connection cannot be used");
    Err(Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        codes::SECRET_UNSET,
        "the webhook cannot be used: its settings are wrong",
    ))
}

/// Proves a request, and delivers its event.
async fn take(
    cx: &EngineContext,
    connection: &WebhookConnection,
    received: &Received,
) -> Result<Outcome, Problem> {
    let engine = &cx.engine;
    let proven = engine.prove(&connection.proof, received)?;
    if let Some(challenge) = received.challenge(&connection.proof) {
        return Ok(Outcome::Challenge(challenge));
    }
    let event = connection
        .event_of(received, &proven)
        .map_err(Problem::malformed)?;
    let key = format!("webhook.{}.{}", connection.name, event.name);
    let event = TriggerEvent {
        id: event.id,
        at_ms: engine.now_ms(),
        attributes: event.payload,
        depth: 1,
    };
    let deliveries = engine.deliver_event(&connection.name, &key, &event).await;
    let deliveries = deliveries.map_err(flowstone_engine::EngineError::from)?;
    let delivered = deliveries.iter().filter(|it| it.code == 200).count();
    let is_repeated = deliveries.iter().any(|it| it.code == 409);
    Ok(Outcome::Published(body(
        &event.id,
        &key,
        (delivered, is_repeated),
    )))
}

/// Returns the answer, which tells the sender nothing about flows.
fn body(id: &str, key: &str, (delivered, is_repeated): (usize, bool)) -> Json {
    json!({"event": key, "eventId": id, "delivered": delivered, "deduped": is_repeated})
}
