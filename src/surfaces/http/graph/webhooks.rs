//! Calls of the webhooks of graph runs. What is owed is decided in `flowstone_fronts::graph::webhooks`.

use flowstone_engine::ids::RunId;
use flowstone_fronts::graph::webhooks as owed;

pub(in crate::http) use flowstone_fronts::graph::webhooks::MARK;

use crate::http::server::{EngineContext, Shared};

/// Starts the calls of runs that ended while no server was running.
pub(in crate::http) async fn sweep(server: &Shared) {
    let swept = server.ask(async |cx: &EngineContext| owed::deliver_all(&cx.engine).await);
    if let Err(problem) = swept.await {
        tracing::warn!(error = %problem.detail, "the webhooks of ended runs are not called");
    }
}

/// Starts the call of the webhook of an ended run.
pub(in crate::http) async fn call(server: &Shared, run: RunId) {
    let shown = run.to_string();
    let started = server.ask(async move |cx: &EngineContext| owed::deliver(&cx.engine, &run).await);
    if let Err(problem) = started.await {
        tracing::warn!(run = %shown, error = %problem.detail, "the webhook of a run is not called");
    }
}
