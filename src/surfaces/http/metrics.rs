//! `/metrics`: figures for Prometheus.

use axum::Router;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flowstone_engine::EngineError;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::FeedDetail;
use flowstone_engine::token::Scope;
use flowstone_fronts::tree::{DOCUMENT_MARK, write_ended};

use super::graph::webhooks;
use super::problem::{Problem, codes};
use super::server::{EngineContext, Shared};
use crate::metrics::Now;
use crate::telemetry;

/// Maximum number of events that are counted at a time.
const PAGE: usize = 500;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(server): State<Shared>, parts: Parts) -> Result<Response, Problem> {
    if !server.settings.metrics_open {
        let caller = server.caller(&parts).await?;
        caller.need(Scope::Read)?;
        if caller.is_limited() {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                codes::MISSING_SCOPE,
                "the figures are those of all flows, and the token reaches only some",
            )
            .hint("use a token of kind `service` without `--flow` and `--label`"));
        }
    }
    let mut now = server
        .ask(async |cx: &EngineContext| {
            let stores = cx.engine.stores();
            let counts = stores.upkeep.counts().await.map_err(EngineError::from)?;
            let usage = stores.upkeep.usage().await.map_err(EngineError::from)?;
            Ok::<_, EngineError>(Now {
                counts,
                store_bytes: usage.file_bytes,
                spans_dropped: telemetry::dropped(),
                ..Now::default()
            })
        })
        .await?;
    now.readers = server.readers.counts();
    let text = server.metrics.text(&now).map_err(|_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            codes::INTERNAL,
            "the figures cannot be written",
        )
    })?;
    let mut response = text.into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8"),
    );
    Ok(response)
}

/// The beginnings of the external ids of runs whose ends matter to something else than the figures.
const NOTICED: &[&str] = &[webhooks::MARK, DOCUMENT_MARK];

/// Counts the events of the project until the server stops. Ends of runs also go to the webhooks of graph agents and the
/// documents of trees, so that the feed is read once.
pub(super) async fn count(server: Shared) {
    let feeds = server.ask(async |cx: &EngineContext| Ok::<_, Problem>(cx.engine.feeds()));
    let Ok(feeds) = feeds.await else {
        return;
    };
    let Ok(after) = feeds.last_position().await else {
        tracing::warn!("runs are not counted: the feed of the project cannot be read");
        return;
    };
    let reader = feeds.follow_project(after, FeedDetail::Events);
    let mut reader = reader.noticing(NOTICED);
    let mut news = feeds.watch_project();
    let mut stopping = server.stopping.subscribe();
    // Ends before the first page, and ends whose call could not be started.
    let mut is_owing = true;
    loop {
        news.mark_seen();
        if is_owing {
            is_owing = !webhooks::sweep(&server).await;
        }
        match reader.page(PAGE).await {
            Ok(page) => {
                for event in &page.events {
                    server.metrics.event(event);
                }
                for run in page.noticed {
                    write_document(&server, run.clone()).await;
                    is_owing |= !webhooks::call(&server, run).await;
                }
                if !page.events.is_empty() {
                    continue;
                }
            }
            Err(error) => tracing::warn!(%error, "the feed of the project cannot be read"),
        }
        tokio::select! {
            () = news.changed() => {}
            // The sender is gone only when the server is.
            _ = stopping.wait_for(|is_stopping| *is_stopping) => return,
        }
    }
}

/// Writes the document of a tree's run that ended without its driver.
async fn write_document(server: &Shared, run: RunId) {
    let shown = run.to_string();
    let written = server.ask(async move |cx: &EngineContext| {
        let written = write_ended(&cx.engine, &run).await;
        Ok::<_, EngineError>(written.map_err(|error| error.to_string()))
    });
    match written.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(run = %shown, %error, "the document of a run is not written");
        }
        Err(problem) => {
            tracing::warn!(run = %shown, error = %problem.detail, "the document of a run is not written");
        }
    }
}
