//! Answers delayed messages of sessions while the server runs.

use std::time::Duration;

use flowstone_engine::ports::wall_clock_ms;
use flowstone_fronts::agents::pending;

use crate::http::server::{EngineContext, Shared};

/// Maximum time between two looks: other processes add messages, too.
const LONGEST: Duration = Duration::from_secs(30);
/// How long to wait after a failure of the store.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Answers messages whose time has come, until it is dropped.
pub(crate) async fn answer_delayed(server: Shared) {
    loop {
        let next = server
            .ask(async move |cx: &EngineContext| pending::answer_due(&cx.engine).await)
            .await;
        let wait = match next {
            Ok(None) => LONGEST,
            Ok(Some(at_ms)) => {
                let left = at_ms.saturating_sub(wall_clock_ms());
                Duration::from_millis(left.max(1).unsigned_abs()).min(LONGEST)
            }
            Err(problem) => {
                tracing::warn!("delayed messages are not answered: {}", problem.detail);
                AFTER_FAILURE
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = server.delayed.notified() => {}
        }
    }
}
