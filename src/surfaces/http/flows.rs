//! `/api/v1/flows`: the flows that are served.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use flowstone_engine::catalog::ServedFlow;
use flowstone_engine::registry::MAIN_FILE;
use flowstone_engine::token::Scope;
use flowstone_flow::flow::program_files;
use serde_json::{Value, json};

use super::access::Caller;
use super::answer::Answer;
use super::operation::{self as shape, CURSOR, LIMIT, Operation, Operations, Param, names};
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{EngineContext, Shared};
use super::{cursor, runs};
use crate::json::{
    Finding, Flow, FlowSummary, Version, flow_json, flow_summary_json, of_findings, report_json,
    version_json,
};

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::get(
                "/api/v1/flows",
                "listFlows",
                "Lists the flows that are served.",
            )
            .scope(Scope::Read)
            .query(&[CURSOR, LIMIT])
            .ok(shape::page::<FlowSummary>("flows")),
            list,
        )
        .with(
            Operation::get(
                "/api/v1/flows/{slug}",
                "getFlow",
                "Returns a flow with the contracts of its inputs.",
            )
            .scope(Scope::Read)
            .ok(shape::of::<Flow>()),
            show,
        )
        .with(
            Operation::post(
                "/api/v1/flows/{slug}/check",
                "checkFlow",
                "Checks a flow as it is in its file, or another text for it.",
            )
            .scope(Scope::Edit)
            .members(CHECK)
            .ok(shape::list::<Finding>("findings")),
            check,
        )
        .with(runs::start_operation(), runs::start)
        .with(
            Operation::get(
                "/api/v1/flows/{slug}/versions",
                "listVersions",
                "Lists the programs of a flow: the served one, and those of its runs.",
            )
            .scope(Scope::Read)
            .query(&[CURSOR, LIMIT])
            .ok(shape::page::<Version>("versions")),
            versions,
        )
}

const CHECK: &[Param] = &[Param::text(
    "source",
    "The text to check instead of the file.",
)];

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
        .ask(async move |cx: &EngineContext| {
            let flows = cx.catalog.flows(&cx.engine).into_iter();
            let reached = flows.filter(|flow| caller.token.reaches_flow(&flow.slug, &flow.labels));
            let rest = reached.filter(|flow| after.as_ref().is_none_or(|after| flow.slug > *after));
            let page = rest.take(limit + 1);
            let page = page.map(|flow| (flow.slug.clone(), flow_summary_json(&flow)));
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
        .ask(async move |cx: &EngineContext| {
            let flow = cx.catalog.flow(&cx.engine, &slug);
            let reached = flow.filter(|flow| caller.token.reaches_flow(&flow.slug, &flow.labels));
            reached
                .map(|flow| flow_json(&flow))
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

/// The programs of the flow: the one that is served, and those of its runs, newest first.
async fn versions(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &["cursor", "limit"])?;
    let limit = query.limit()?;
    let filters = format!("versions of {slug}");
    let after = match query.get("cursor") {
        Some(text) => Some(cursor::read(text, &filters)?),
        None => None,
    };
    let versions = server
        .ask(async move |cx: &EngineContext| {
            let flow = cx.catalog.flow(&cx.engine, &slug);
            let reached = flow.filter(|flow| caller.token.reaches_flow(&flow.slug, &flow.labels));
            let flow = reached.ok_or_else(|| no_flow(&slug))?;
            let hash = &flow.loaded.program.hash;
            let versions = cx.engine.flow_versions(&slug, Some(hash)).await?;
            let shown = versions
                .iter()
                .map(|it| version_json(it, it.program == *hash));
            Ok::<_, Problem>(shown.collect::<Vec<Value>>())
        })
        .await?;
    let is_after = |shown: &Value| shown["version"].as_str() == after.as_deref();
    let start = match &after {
        Some(_) => versions.iter().position(is_after).map_or(0, |at| at + 1),
        None => 0,
    };
    let rest = versions.get(start..).unwrap_or_default();
    let page = rest.get(..limit).unwrap_or(rest);
    let last = page.last().filter(|_| rest.len() > limit);
    let next = last.and_then(|shown| shown["version"].as_str());
    let next = next.map(|version| cursor::write(version, &filters));
    Ok(Answer::ok(json!({"versions": page, "next": next})))
}

/// Returns the texts of a released version; `None` for a flow of a file.
fn released_texts(flow: &ServedFlow) -> Option<BTreeMap<String, String>> {
    flow.loaded.version?;
    let (_, mut texts) = program_files(&flow.loaded.program)?;
    let main = texts.remove("")?;
    texts.insert(MAIN_FILE.to_owned(), main);
    Some(texts)
}

/// Checks the flow as it is in its file, or another text for it.
async fn check(
    State(server): State<Shared>,
    caller: Caller,
    Path(slug): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Edit)?;
    let given = Members::read(&headers, body, &names(CHECK)).await?;
    let source = given.text("source")?;
    let findings = server
        .ask(async move |cx: &EngineContext| {
            let flow = cx.catalog.flow(&cx.engine, &slug);
            let reached = flow.filter(|flow| caller.token.reaches_flow(&flow.slug, &flow.labels));
            let flow = reached.ok_or_else(|| no_flow(&slug))?;
            let session = cx.engine.session();
            let checked = match source {
                Some(source) => cx.engine.check_text(&session, &source),
                None => match released_texts(&flow) {
                    Some(texts) => cx.engine.check_version(&session, &slug, &texts),
                    None => cx.engine.check(&session, &flow.path, &flow.name),
                },
            };
            let reports = of_findings(&session, &checked.findings);
            Ok::<_, Problem>(reports.iter().map(report_json).collect::<Vec<Value>>())
        })
        .await?;
    Ok(Answer::ok(json!({"findings": findings})))
}
