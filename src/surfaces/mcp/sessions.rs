//! Sessions of the revisions that have them: each belongs to one token, and is forgotten when it is idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flowstone_engine::ports::{Random as _, SystemRandom};
use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::protocol::Era;

/// How long an unused session is kept.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of sessions; beyond that, those idle for longest are removed.
const SESSIONS_MAX: usize = 10_000;
/// Maximum number of resources that a session follows.
const FOLLOWED_MAX: usize = 100;
/// Maximum number of messages that wait for the stream of a session; more are dropped, as if the client did not listen.
const BACKLOG: usize = 64;

/// One client, from `initialize` on.
pub(crate) struct Session {
    pub id: String,
    pub token: String,
    pub era: Era,
    /// The capabilities of the client.
    pub capabilities: Json,
    inner: Mutex<Inner>,
    next: AtomicU64,
}

#[derive(Default)]
struct Inner {
    used: Option<Instant>,
    level: Option<String>,
    /// Requests to the client without a response yet.
    asked: HashMap<String, oneshot::Sender<Result<Json, Json>>>,
    /// Requests of the client in progress.
    active: HashMap<String, watch::Sender<bool>>,
    stream: Option<mpsc::Sender<Json>>,
    followed: HashMap<String, AbortHandle>,
}

impl Session {
    pub(crate) fn new(token: String, era: Era, capabilities: Json) -> Session {
        Session {
            id: random_id(),
            token,
            era,
            capabilities,
            inner: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the level from which log messages are sent.
    pub(super) fn level(&self) -> Option<String> {
        self.inner().level.clone()
    }

    pub(super) fn set_level(&self, level: &str) {
        self.inner().level = Some(level.to_owned());
    }

    /// Creates the id of a request to the client, and the channel of its response.
    pub(super) fn ask(&self) -> (String, oneshot::Receiver<Result<Json, Json>>) {
        let id = format!("flowstone-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        self.inner().asked.insert(id.clone(), sender);
        (id, receiver)
    }

    /// Handles the client's response to a request. A response that is no longer awaited is dropped.
    pub(crate) fn answered(&self, id: &Json, result: Result<Json, Json>) {
        let asked = id.as_str().and_then(|id| self.inner().asked.remove(id));
        if let Some(asked) = asked {
            let _ = asked.send(result);
        }
    }

    /// Records that a response is no longer awaited.
    pub(super) fn forget(&self, id: &str) {
        self.inner().asked.remove(id);
    }

    /// Records that a request is in progress. The returned value changes when the client cancels the request.
    pub(crate) fn begin(&self, id: &Json) -> watch::Receiver<bool> {
        let (sender, receiver) = watch::channel(false);
        self.inner().active.insert(id.to_string(), sender);
        receiver
    }

    pub(crate) fn end(&self, id: &Json) {
        self.inner().active.remove(&id.to_string());
    }

    /// Cancels a request in progress. The run that it follows continues.
    pub(crate) fn cancel(&self, id: &Json) {
        if let Some(active) = self.inner().active.get(&id.to_string()) {
            active.send_replace(true);
        }
    }

    /// Opens the stream of messages that do not belong to a request. An earlier stream ends.
    pub(crate) fn open_stream(&self) -> mpsc::Receiver<Json> {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        self.inner().stream = Some(sender);
        receiver
    }

    /// Sends a message that does not belong to a request, if the client listens.
    pub(super) fn send(&self, method: &str, params: &Json) {
        let stream = self.inner().stream.clone();
        if let Some(stream) = stream {
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            let _ = stream.try_send(message);
        }
    }

    /// Records the task that follows a resource. An earlier one of the same resource ends. Returns false if there are
    /// too many.
    pub(super) fn follow(&self, uri: &str, follower: AbortHandle) -> bool {
        let mut inner = self.inner();
        if inner.followed.len() >= FOLLOWED_MAX && !inner.followed.contains_key(uri) {
            follower.abort();
            return false;
        }
        if let Some(earlier) = inner.followed.insert(uri.to_owned(), follower) {
            earlier.abort();
        }
        true
    }

    pub(super) fn unfollow(&self, uri: &str) {
        if let Some(follower) = self.inner().followed.remove(uri) {
            follower.abort();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for follower in self.inner().followed.values() {
            follower.abort();
        }
    }
}

/// Returns 128 random bits as text.
fn random_id() -> String {
    let bits = [SystemRandom.next(), SystemRandom.next()];
    bits.map(|bits| format!("{bits:016x}")).concat()
}

/// All sessions of a server.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, session: Session) -> Arc<Session> {
        let now = Instant::now();
        session.inner().used = Some(now);
        let session = Arc::new(session);
        let mut all = self.all();
        all.retain(|_, session| !is_idle(session, now));
        if all.len() >= SESSIONS_MAX {
            let oldest = all.values().min_by_key(|session| session.inner().used);
            let oldest = oldest.map(|session| session.id.clone());
            oldest.and_then(|id| all.remove(&id));
        }
        all.insert(session.id.clone(), session.clone());
        session
    }

    /// Returns a session of a token.
    pub(crate) fn get(&self, id: &str, token: &str) -> Option<Arc<Session>> {
        let now = Instant::now();
        let mut all = self.all();
        let session = all
            .get(id)
            .filter(|session| session.token == token)?
            .clone();
        if is_idle(&session, now) {
            all.remove(id);
            return None;
        }
        session.inner().used = Some(now);
        Some(session)
    }

    pub(crate) fn remove(&self, id: &str) {
        self.all().remove(id);
    }
}

fn is_idle(session: &Session, now: Instant) -> bool {
    let used = session.inner().used;
    used.is_some_and(|used| now.duration_since(used) > IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_belongs_to_its_token() {
        let sessions = Sessions::default();
        let era = Era::negotiated(None);
        let session = sessions.add(Session::new("a".to_owned(), era, Json::Null));
        assert_eq!(session.id.len(), 32);
        assert!(sessions.get(&session.id, "a").is_some());
        assert!(sessions.get(&session.id, "b").is_none());
        sessions.remove(&session.id);
        assert!(sessions.get(&session.id, "a").is_none());
    }
}
