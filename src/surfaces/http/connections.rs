//! `/api/v1/connections`: connections by name, without their secrets.

use std::rc::Rc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use flowstone_engine::token::{Scope, TokenKind};
use flowstone_flow::flow::Flow;
use flowstone_lang::value::Value;
use flowstone_project::connections::ConnectionReport;
use serde_json::{Value as Json, json};

use super::access::Caller;
use super::answer::Answer;
use super::operation::{self as shape, Operation, Operations, Param, names};
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{EngineContext, Shared};
use crate::json::{Connection, ConnectionTest, connection_json, connection_test_json};

/// The code of a connection that does not exist.
const NO_CONNECTION: &str = "E0951";

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::get(
                "/api/v1/connections",
                "listConnections",
                "Lists connections, without their secrets.",
            )
            .scope(Scope::Read)
            .ok(shape::list::<Connection>("connections")),
            list,
        )
        .with(
            Operation::post(
                "/api/v1/connections/test",
                "testConnections",
                "Tests one connection, or all, by requests to their servers.",
            )
            .scope(Scope::Admin)
            .members(TEST)
            .ok(shape::list::<ConnectionTest>("connections")),
            test,
        )
}

const TEST: &[Param] = &[Param::text(
    "name",
    "The connection; all if it is left out.",
)];

fn flows(cx: &EngineContext) -> Vec<Rc<Flow>> {
    let served = cx.catalog.flows(&cx.engine);
    served
        .iter()
        .map(|served| served.loaded.flow.clone())
        .collect()
}

fn reports(cx: &EngineContext, flows: &[Rc<Flow>]) -> Vec<ConnectionReport> {
    let flows: Vec<&Flow> = flows.iter().map(|flow| &**flow).collect();
    cx.backend.connections(&cx.engine, &flows)
}

/// Refuses tokens that are limited to some flows: connections are shared by all.
fn reach_all(caller: &Caller) -> Result<(), Problem> {
    let is_limited = caller.token.is_limited_to_flows();
    match caller.token.kind {
        TokenKind::Owner | TokenKind::Service if !is_limited => Ok(()),
        _ => Err(Problem::not_found(
            "connections are out of reach of this token",
        )),
    }
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    reach_all(&caller)?;
    Query::read(query.as_deref(), &[])?;
    let connections = server
        .ask(async |cx: &EngineContext| {
            let reports = reports(cx, &flows(cx));
            Ok::<_, Problem>(reports.iter().map(connection_json).collect::<Vec<Json>>())
        })
        .await?;
    Ok(Answer::ok(json!({"connections": connections})))
}

/// Tests one connection, or all. This makes requests to their servers.
async fn test(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Admin)?;
    reach_all(&caller)?;
    let given = Members::read(&headers, body, &names(TEST)).await?;
    let name = given.text("name")?;
    let tests = server
        .ask(async move |cx: &EngineContext| {
            let flows = flows(cx);
            let mut reports = reports(cx, &flows);
            if let Some(name) = &name {
                reports.retain(|report| report.name == name.trim_start_matches(':'));
                if reports.is_empty() {
                    let detail = format!("there is no connection `{name}`");
                    let status = StatusCode::NOT_FOUND;
                    return Err(Problem::new(status, NO_CONNECTION, detail));
                }
            }
            let bare = Rc::new(Flow::bare("none", Value::Nil));
            let mut tests = Vec::new();
            for report in &reports {
                let flow = flows.iter().find(|flow| *flow.slug == *report.source);
                let flow = flow.unwrap_or(&bare);
                let test = cx.backend.try_connection(&cx.engine, flow, report).await;
                tests.push(connection_test_json(&test));
            }
            Ok::<_, Problem>(tests)
        })
        .await?;
    Ok(Answer::ok(json!({"connections": tests})))
}
