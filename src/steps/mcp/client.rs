//! The client side of a connection: its identity, and its handling of a server's requests and notifications.
//!
//! A server may ask people if the connection is for a call whose questions are asked. Other requests of servers are
//! declined and recorded; sampling is never offered.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::{mpsc, oneshot};

use super::connection::Watchers;
use super::process::Output;

/// The client of one connection.
pub(super) struct Client {
    pub watchers: Watchers,
    pub changed: Arc<AtomicBool>,
    output: Output,
    /// The receiver of the server's questions, if they are asked.
    asks: Option<mpsc::Sender<Asked>>,
}

/// A question of the server in the middle of a call, which waits for its answer.
pub(super) struct Asked {
    pub params: ElicitRequestParams,
    pub answer: oneshot::Sender<ElicitResult>,
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
    pub(super) fn new(output: Output, asks: Option<mpsc::Sender<Asked>>) -> Client {
        Client {
            asks,
            watchers: Watchers::default(),
            changed: Arc::default(),
            output,
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("flowstone", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = self.asks.is_some().then(|| {
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new())
        });
        ClientConfig::new(capabilities, us)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let Some(asks) = &self.asks {
            let (answer, answered) = oneshot::channel();
            let asked = Asked {
                params: request,
                answer,
            };
            asks.send(asked).await.ok();
            let cancelled = |_| ElicitResult::new(ElicitationAction::Cancel);
            return Ok(answered.await.unwrap_or_else(cancelled));
        }
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
