//! Notification of workers and readers about commits.

use std::future::Future;
use std::pin::Pin;

use flowstone_model::ports::News;
use tokio::sync::watch;

/// A counter of commits after which there may be more work.
pub(crate) struct Commits(pub watch::Receiver<u64>);

impl News for Commits {
    fn mark_seen(&mut self) {
        self.0.borrow_and_update();
    }

    fn has_changed(&self) -> bool {
        self.0.has_changed().unwrap_or(false)
    }

    fn changed(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            // Fails when the store is closed; then every operation fails.
            let _ = self.0.changed().await;
        })
    }
}
