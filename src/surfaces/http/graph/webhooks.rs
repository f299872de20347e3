//! Calls of the webhooks of graph runs. What is owed is decided in `flowstone_fronts::graph::webhooks`.

use flowstone_engine::ids::RunId;
use flowstone_fronts::graph::webhooks as owed;

pub(in crate::http) use flowstone_fronts::graph::webhooks::MARK;

use crate::http::server::{EngineContext, Shared};

/// Starts the calls of ended runs that were not made, such as those of runs that ended while no server was running. Returns
/// whether that succeeded.
pub(in crate::http) async fn sweep(server: &Shared) -> bool {
    let swept = server.ask(async |cx: &EngineContext| owed::deliver_all(&cx.engine).await);
    let swept = swept.await;
    if let Err(problem) = &swept {
        tracing::warn!(error = %problem.detail, "the webhooks of ended runs are not called");
    }
    swept.is_ok()
}

/// Starts the call of the webhook of an ended run. Returns whether that succeeded.
pub(in crate::http) async fn call(server: &Shared, run: RunId) -> bool {
    let shown = run.to_string();
    let started = server.ask(async move |cx: &EngineContext| owed::deliver(&cx.engine, &run).await);
    let started = started.await;
    if let Err(problem) = &started {
        tracing::warn!(run = %shown, error = %problem.detail, "the webhook of a run is not called");
    }
    started.is_ok()
}
