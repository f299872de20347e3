//! Webhooks of graph runs that ended without calling them. What is owed is decided in `flowstone_fronts::graph::webhooks`.

use flowstone_engine::EngineError;
use flowstone_engine::feed_event::FeedEvent;
use flowstone_engine::ids::RunId;
use flowstone_fronts::graph::webhooks::{deliver, ended, is_end};

use crate::http::server::{EngineContext, Shared};

/// Starts the calls of runs that ended while no server was running.
pub(in crate::http) async fn sweep(server: &Shared) {
    let swept = server.ask(async |cx: &EngineContext| {
        for run in ended(&cx.engine).await? {
            deliver(&cx.engine, &run).await?;
        }
        Ok::<_, EngineError>(())
    });
    if let Err(problem) = swept.await {
        tracing::warn!(error = %problem.detail, "the webhooks of ended runs are not called");
    }
}

/// Starts the call of a run's webhook if an event says that the run has ended without it.
pub(in crate::http) async fn note(server: &Shared, event: &FeedEvent) {
    if !is_end(event.name) {
        return;
    }
    let run: RunId = event.run.clone();
    let started = server.ask(async move |cx: &EngineContext| deliver(&cx.engine, &run).await);
    if let Err(problem) = started.await {
        tracing::warn!(run = %event.run, error = %problem.detail, "the webhook of a run is not called");
    }
}
