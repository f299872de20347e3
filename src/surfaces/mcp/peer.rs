//! One request of a client: the caller, the client's capabilities, and the channel back to it.

use std::sync::Arc;
use std::time::Duration;

use flowstone_engine::token::Scope;
use flowstone_engine::trace::TraceParent;
use serde_json::{Map, Value as Json, json};
use tokio::sync::mpsc;

use super::headers::Repeated;
use super::protocol::{Era, META_CAPABILITIES, META_LOG_LEVEL, META_TRACE, RpcError, TASKS, codes};
use super::sessions::Session;
use super::sets::ToolSets;
use crate::http::{Caller, Problem, Shared};
use crate::kit::KitDoor;

/// How long a person may take to answer a question of the client.
const ANSWER_TIME: Duration = Duration::from_secs(10 * 60);

/// The levels of log messages, in increasing severity.
const LEVELS: &[&str] = &[
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// A request that is in progress.
pub(crate) struct Request {
    pub server: Shared,
    pub caller: Caller,
    /// The address that the request comes from; `local` over stdio.
    pub address: String,
    pub sets: ToolSets,
    /// What the build kit is open for; the project's own server, without it.
    pub kit: Option<Arc<KitDoor>>,
    pub era: Era,
    pub session: Option<Arc<Session>>,
    /// The id that the client chose.
    pub id: Json,
    /// The arguments that headers repeat; `None` if the transport has no headers.
    pub repeated: Option<Repeated>,
    /// `_meta` of the request.
    pub meta: Map<String, Json>,
    /// An integer of the message that has more than 64 bits, so that it was rounded.
    pub rounded: Option<String>,
    /// The parent span from the transport.
    pub parent: Option<TraceParent>,
    /// Messages that the client receives before the response.
    pub out: mpsc::Sender<Json>,
}

/// The reason why the client has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// It does not support the request, or has disconnected.
    Gone,
    /// The client refused the request.
    Refused,
    Late,
}

impl Request {
    /// Returns the client's span that is the parent of runs of this request: that of `_meta`, or else of the transport.
    pub(super) fn trace(&self) -> Option<TraceParent> {
        let own = self.meta.get(META_TRACE).and_then(Json::as_str);
        own.and_then(TraceParent::parse).or(self.parent)
    }

    /// Returns the capabilities of the client.
    fn capabilities(&self) -> Json {
        match (&self.session, self.era) {
            (Some(session), Era::Legacy(_)) => session.capabilities.clone(),
            _ => self
                .meta
                .get(META_CAPABILITIES)
                .cloned()
                .unwrap_or(Json::Null),
        }
    }

    /// Tells whether the client has a capability, such as `sampling` or `elicitation.url`. An `elicitation` that names no
    /// mode is for forms.
    pub(super) fn can(&self, capability: &str) -> bool {
        let all = self.capabilities();
        match capability {
            "elicitation" => all["elicitation"].is_object(),
            "elicitation.form" => {
                let modes = all["elicitation"].as_object();
                modes.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
            }
            "elicitation.url" => all["elicitation"]["url"].is_object(),
            "tasks" => all["extensions"][TASKS].is_object(),
            other => all[other].is_object(),
        }
    }

    /// # Errors
    /// When the token does not have the scope.
    pub(super) fn need(&self, scope: Scope) -> Result<(), RpcError> {
        self.caller.need(scope).map_err(|problem| refused(&problem))
    }

    /// Sends a notification that belongs to this request.
    pub(super) async fn notify(&self, method: &str, params: Json) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        // The client may have disconnected.
        let _ = self.out.send(message).await;
    }

    /// Sends a log message, if the client wants messages of this level.
    pub(super) async fn log(&self, level: &str, logger: &str, data: Json) {
        let level = match level {
            "warn" => "warning",
            "trace" => "debug",
            other => other,
        };
        let least = match (&self.session, self.era) {
            // Until the session sets a level, the server may choose one.
            (Some(session), Era::Legacy(_)) => session.level().or(Some("info".to_owned())),
            _ => {
                let level = self.meta.get(META_LOG_LEVEL).and_then(Json::as_str);
                level.map(str::to_owned)
            }
        };
        let rank = |level: &str| LEVELS.iter().position(|known| *known == level);
        let is_wanted =
            least.is_some_and(|least| rank(level).unwrap_or(1) >= rank(&least).unwrap_or(0));
        if is_wanted {
            let level = LEVELS[rank(level).unwrap_or(1)];
            let params = json!({"level": level, "logger": logger, "data": data});
            self.notify("notifications/message", params).await;
        }
    }

    /// Returns the token for progress notifications of this request.
    pub(super) fn progress_token(&self) -> Option<&Json> {
        self.meta
            .get("progressToken")
            .filter(|token| !token.is_null())
    }

    /// Sends a request to the client within a session, and waits for its response.
    pub(super) async fn ask(&self, method: &str, params: &Json) -> Result<Json, Unanswered> {
        let session = self.session.as_ref().ok_or(Unanswered::Gone)?;
        let (id, answer) = session.ask();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if self.out.send(message).await.is_err() {
            session.forget(&id);
            return Err(Unanswered::Gone);
        }
        let answer = tokio::select! {
            answer = tokio::time::timeout(ANSWER_TIME, answer) => answer,
            () = self.out.closed() => Ok(Ok(Err(Json::Null))),
        };
        session.forget(&id);
        match answer {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(_))) => Err(Unanswered::Refused),
            Ok(Err(_)) => Err(Unanswered::Gone),
            Err(_) => Err(Unanswered::Late),
        }
    }
}

/// Tells whether a text is a level of log messages.
pub(super) fn is_level(text: &str) -> bool {
    LEVELS.contains(&text)
}

/// Converts an error of a shared layer to one of the protocol.
pub(super) fn refused(problem: &Problem) -> RpcError {
    let code = match problem.status.as_u16() {
        400 | 403 | 404 | 409 | 422 => codes::PARAMS,
        _ => codes::INTERNAL,
    };
    let mut data = json!({"code": problem.code, "status": problem.status.as_u16()});
    if let Some(hint) = &problem.hint {
        data["hint"] = json!(hint);
    }
    RpcError::new(code, problem.detail.clone()).with(data)
}
