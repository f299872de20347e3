//! The client side of a connection: its identity, and its handling of a server's requests and notifications.
//!
//! No capabilities are offered to servers: no sampling, no questions to people. Their requests are declined and
//! recorded.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ErrorData, Implementation, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::mpsc;

use super::connection::Watchers;
use super::process::Output;

/// The client of one connection.
pub(super) struct Client {
    pub watchers: Watchers,
    pub changed: Arc<AtomicBool>,
    output: Output,
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Heard {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// The receiver of progress. Reports that arrive faster than they are processed are dropped.
pub(super) type Watcher = mpsc::Sender<Heard>;

impl Client {
    pub(super) fn new(output: Output) -> Client {
        Client {
            watchers: Watchers::default(),
            changed: Arc::default(),
            output,
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("flowstone", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.output.asked("an answer of a person");
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = watchers.get(&progress.progress_token) {
            watcher.try_send(progress.into()).ok();
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Relaxed);
    }
}
