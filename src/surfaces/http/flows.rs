//! `/api/v1/flows`: the flows that are served.

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::routing::get;
use flowstone_engine::catalog::ServedFlow;
use flowstone_engine::json::to_json;
use flowstone_engine::token::Scope;
use serde_json::{Value, json};

use super::access::Caller;
use super::answer::Answer;
use super::problem::Problem;
use super::request::Query;
use super::server::{Desk, Shared};
use super::{cursor, runs};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/flows", get(list))
        .route("/api/v1/flows/{slug}", get(show))
        .route(
            "/api/v1/flows/{slug}/runs",
            axum::routing::post(runs::start),
        )
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &["limit", "cursor"])?;
    let limit = query.limit()?;
    let after = match query.get("cursor") {
        Some(cursor) => Some(cursor::read(cursor, "flows")?),
        None => None,
    };
    let mut flows: Vec<(String, Value)> = server
        .ask(async move |desk: &Desk| {
            let flows = desk.catalog.flows(&desk.engine).into_iter();
            let reached = flows.filter(|flow| caller.token.reaches_flow(&flow.slug, &flow.labels));
            let rest = reached.filter(|flow| after.as_ref().is_none_or(|after| flow.slug > *after));
            let page = rest.take(limit + 1);
            let page = page.map(|flow| (flow.slug.clone(), summary(&flow)));
            Ok::<_, Problem>(page.collect())
        })
        .await?;
    let is_more = flows.len() > limit;
    flows.truncate(limit);
    let last = flows.last().filter(|_| is_more);
    let next = last.map(|(slug, _)| cursor::write(slug, "flows"));
    let flows: Vec<Value> = flows.into_iter().map(|(_, flow)| flow).collect();
    Ok(Answer::ok(json!({"flows": flows, "next": next})))
}

async fn show(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    Query::read(query.as_deref(), &[])?;
    let flow = server
        .ask(async move |desk: &Desk| {
            let flow = desk.catalog.flow(&desk.engine, &slug);
            let reached = flow.filter(|flow| caller.token.reaches_flow(&flow.slug, &flow.labels));
            reached
                .map(|flow| details(&flow))
                .ok_or_else(|| no_flow(&slug))
        })
        .await?;
    Ok(Answer::ok(flow))
}

/// The answer for a flow that is not served, or that the caller does not reach.
pub(super) fn no_flow(slug: &str) -> Problem {
    Problem::not_found(format!("there is no flow `{slug}`"))
        .hint("`GET /api/v1/flows` lists the flows that are served")
}

fn summary(flow: &ServedFlow) -> Value {
    let definition = &flow.loaded.flow.definition;
    let text = |key: &str| {
        definition
            .get(key)
            .and_then(|it| it.as_str().map(|it| it.to_string()))
    };
    json!({
        "slug": flow.slug,
        "name": text("name"),
        "description": text("description"),
        "file": flow.name,
        "tags": flow.labels,
        "version": flow.loaded.program.hash,
    })
}

/// Everything that a caller needs to start the flow. Its code is not part of it.
fn details(flow: &ServedFlow) -> Value {
    let mut shown = summary(flow);
    let definition = &flow.loaded.flow.definition;
    for key in ["invocations", "schedules"] {
        let value = definition.get(key).and_then(|value| to_json(value).ok());
        shown[key] = json!(value);
    }
    shown
}
