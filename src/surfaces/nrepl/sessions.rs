//! The sessions of all clients, and the requests that need no evaluation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::Sender;

use super::bencode::{Bencode, Dict};
use super::connection::Client;
use super::evaluator::OPS;
use super::reply::{Address, status_of};

/// Maximum number of sessions. One whose client has left makes room for a new one.
const SESSIONS: usize = 256;
/// Maximum size of the input that a session has not read, in bytes.
const INPUT_MAX: usize = 4 << 20;
/// How often a thread that waits for input checks for an interrupt.
const POLL: Duration = Duration::from_millis(50);

/// A request for the evaluating thread.
pub struct Request {
    pub client: Arc<Client>,
    pub session: Arc<ClientSession>,
    pub address: Address,
    pub op: String,
    pub message: Dict,
}

/// A session of a client.
pub struct ClientSession {
    pub id: String,
    pub input: Input,
    /// Whether nobody can name it, because it was made for one request.
    pub is_ephemeral: bool,
    is_closed: AtomicBool,
    client: Mutex<Arc<Client>>,
    /// Whether an evaluation for a socket has not ended.
    is_busy: Mutex<bool>,
    freed: Condvar,
}

impl ClientSession {
    /// Marks that an evaluation was requested.
    pub fn set_busy(&self) {
        *locked(&self.is_busy) = true;
    }

    /// Marks that the evaluation has ended.
    pub fn set_free(&self) {
        *locked(&self.is_busy) = false;
        self.freed.notify_all();
    }

    /// Waits for the end of the evaluation. Returns false if `stops` first.
    pub fn wait_free(&self, stops: impl Fn() -> bool) -> bool {
        let mut is_busy = locked(&self.is_busy);
        while *is_busy {
            if stops() {
                return false;
            }
            let waited = self.freed.wait_timeout(is_busy, POLL);
            is_busy = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}

/// The input that a client has sent for the programs of a session.
#[derive(Default)]
pub struct Input {
    state: Mutex<InputState>,
    news: Condvar,
}

#[derive(Default)]
struct InputState {
    text: VecDeque<u8>,
    is_over: bool,
}

/// The evaluation in progress.
struct Running {
    session: String,
    id: Option<String>,
}

/// All sessions, and the way to the evaluating thread.
pub struct Hub {
    requests: Sender<Request>,
    sessions: Mutex<BTreeMap<String, Arc<ClientSession>>>,
    running: Mutex<Option<Running>>,
    /// Interrupts the evaluation in progress.
    pub interrupt: Arc<AtomicBool>,
    is_over: AtomicBool,
}

impl Input {
    /// Adds text. Returns false if there is no room for it.
    pub fn push(&self, bytes: &[u8]) -> bool {
        let mut state = locked(&self.state);
        if state.text.len() + bytes.len() > INPUT_MAX {
            return false;
        }
        state.text.extend(bytes);
        self.news.notify_all();
        true
    }

    /// Marks the end of the input, for the reader that waits now or next.
    pub fn end(&self) {
        locked(&self.state).is_over = true;
        self.news.notify_all();
    }

    /// Takes a line with its end, or what remains before the end of the input; `None` at that end, or when `stops`.
    pub fn line(&self, stops: impl Fn() -> bool, ask: impl FnOnce()) -> Option<String> {
        let mut state = locked(&self.state);
        let mut ask = Some(ask);
        loop {
            if let Some(at) = state.text.iter().position(|byte| *byte == b'\n') {
                return Some(take(&mut state, at + 1));
            }
            if state.is_over {
                state.is_over = false;
                let count = state.text.len();
                return (count > 0).then(|| take(&mut state, count));
            }
            if stops() {
                return None;
            }
            if let Some(ask) = ask.take() {
                drop(state);
                ask();
                state = locked(&self.state);
                continue;
            }
            let waited = self.news.wait_timeout(state, POLL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn take(state: &mut InputState, count: usize) -> String {
    let bytes: Vec<u8> = state.text.drain(..count).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Hub {
    pub fn new(requests: Sender<Request>) -> Hub {
        Hub {
            requests,
            sessions: Mutex::default(),
            running: Mutex::default(),
            interrupt: Arc::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Marks that the server ends: threads that wait for input stop.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Handles a message of a client.
    pub fn take(&self, client: &Arc<Client>, message: Dict) {
        let text = |name: &str| {
            message
                .get(name)
                .and_then(Bencode::as_text)
                .map(str::to_owned)
        };
        let mut address = Address {
            id: text("id"),
            session: text("session"),
        };
        let op = text("op").unwrap_or_default();
        let known = address.session.as_ref();
        let known = known.map(|id| locked(&self.sessions).get(id).cloned());
        let session = match known {
            Some(Some(session)) => session,
            Some(None) => {
                return client.answer(&address.status(&["error", "unknown-session", "done"]));
            }
            None => new_session(client, true),
        };
        *locked(&session.client) = client.clone();
        address.session = Some(session.id.clone());
        match &*op {
            "clone" => match self.add(client) {
                Some(id) => client.answer(&address.reply([
                    ("new-session", Bencode::from(id)),
                    ("status", status_of(&["done"])),
                ])),
                None => client.answer(&address.status(&["error", "too-many-sessions", "done"])),
            },
            "close" => self.close(client, &session, &address),
            "describe" => client.answer(&describe(&address)),
            "interrupt" => {
                self.interrupt(client, &session, &address, text("interrupt-id").as_deref())
            }
            "ls-sessions" => {
                let ids: Vec<String> = locked(&self.sessions).keys().cloned().collect();
                let ids = ids.into_iter().map(Bencode::from).collect();
                let done = status_of(&["done"]);
                client.answer(&address.reply([("sessions", ids), ("status", done)]));
            }
            "stdin" => {
                let text = text("stdin").unwrap_or_default();
                let is_taken = match text.is_empty() {
                    true => {
                        session.input.end();
                        true
                    }
                    false => session.input.push(text.as_bytes()),
                };
                client.answer(&match is_taken {
                    true => address.status(&["done"]),
                    false => address.status(&["error", "input-full", "done"]),
                });
            }
            op if OPS.iter().any(|(known, _)| *known == op) => {
                let request = Request {
                    client: client.clone(),
                    session,
                    address: address.clone(),
                    op: op.to_owned(),
                    message,
                };
                if !self.pass(request) {
                    client.answer(&address.status(&["error", "too-many-requests", "done"]));
                }
            }
            op => client.answer(&address.reply([
                ("op", Bencode::from(op)),
                ("status", status_of(&["error", "unknown-op", "done"])),
            ])),
        }
    }

    /// Passes a request to the evaluating thread. Returns false if too many wait for it.
    pub fn pass(&self, request: Request) -> bool {
        self.requests.try_send(request).is_ok()
    }

    /// Removes a session.
    pub fn forget(&self, id: &str) {
        locked(&self.sessions).remove(id);
    }

    /// Adds a session. `None`: there are too many.
    pub fn add(&self, client: &Arc<Client>) -> Option<String> {
        let session = new_session(client, false);
        let id = session.id.clone();
        let mut sessions = locked(&self.sessions);
        if sessions.len() >= SESSIONS {
            let mut left = sessions.values().filter(|it| locked(&it.client).is_gone());
            let unused = left.next().map(|session| session.id.clone())?;
            if let Some(unused) = sessions.remove(&unused) {
                unused.is_closed.store(true, Ordering::Relaxed);
            }
        }
        sessions.insert(id.clone(), session);
        Some(id)
    }

    /// Returns the session of an id.
    pub fn session(&self, id: &str) -> Option<Arc<ClientSession>> {
        locked(&self.sessions).get(id).cloned()
    }

    /// Ends the input of the sessions of a client that has left, so that nothing waits for it.
    pub fn left(&self, client: &Arc<Client>) {
        for session in locked(&self.sessions).values() {
            if Arc::ptr_eq(&locked(&session.client), client) {
                session.input.news.notify_all();
            }
        }
    }

    fn close(&self, client: &Client, session: &ClientSession, address: &Address) {
        locked(&self.sessions).remove(&session.id);
        session.is_closed.store(true, Ordering::Relaxed);
        let running = locked(&self.running);
        if running.as_ref().is_some_and(|it| it.session == session.id) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        drop(running);
        client.answer(&address.status(&["done", "session-closed"]));
    }

    fn interrupt(
        &self,
        client: &Client,
        session: &ClientSession,
        address: &Address,
        id: Option<&str>,
    ) {
        let running = locked(&self.running);
        let status: &[&str] = match &*running {
            Some(running) if running.session == session.id => {
                match id.is_none() || running.id.as_deref() == id {
                    true => {
                        self.interrupt.store(true, Ordering::Relaxed);
                        &["done"]
                    }
                    false => &["error", "interrupt-id-mismatch", "done"],
                }
            }
            _ => &["done", "session-idle"],
        };
        drop(running);
        client.answer(&address.status(status));
    }

    /// Interrupts the evaluation of a session, if there is one.
    pub fn interrupt_session(&self, session: &str) {
        let running = locked(&self.running);
        if running.as_ref().is_some_and(|it| it.session == session) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
    }

    /// Marks the evaluation that begins; an earlier interrupt is forgotten.
    pub fn begin(&self, address: &Address) {
        let mut running = locked(&self.running);
        self.interrupt.store(false, Ordering::Relaxed);
        *running = Some(Running {
            session: address.session.clone().unwrap_or_default(),
            id: address.id.clone(),
        });
    }

    /// Marks that the evaluation has ended.
    pub fn ended(&self) {
        let mut running = locked(&self.running);
        self.interrupt.store(false, Ordering::Relaxed);
        *running = None;
    }
}

/// Returns what the server can do.
fn describe(address: &Address) -> Dict {
    let own = [
        "clone",
        "close",
        "describe",
        "interrupt",
        "ls-sessions",
        "stdin",
    ];
    let ops = own.into_iter().chain(OPS.iter().map(|(name, _)| *name));
    let ops = ops.map(|name| (name.to_owned(), Bencode::Dict(Dict::new())));
    let version = |text: &str| {
        let mut parts = text.splitn(3, '.').map(|part| part.parse().unwrap_or(0));
        let mut part = || Bencode::Int(parts.next().unwrap_or(0));
        Bencode::Dict(Dict::from([
            ("major".to_owned(), part()),
            ("minor".to_owned(), part()),
            ("incremental".to_owned(), part()),
            ("version-string".to_owned(), Bencode::from(text)),
        ]))
    };
    let versions = Dict::from([
        ("flowstone".to_owned(), version(env!("CARGO_PKG_VERSION"))),
        ("nrepl".to_owned(), version(PROTOCOL)),
        // Clients choose what they send by the version of the language.
        ("clojure".to_owned(), version(LANGUAGE)),
    ]);
    address.reply([
        (
            "aux",
            Bencode::Dict(Dict::from([(
                "current-ns".to_owned(),
                Bencode::from("user"),
            )])),
        ),
        ("ops", Bencode::Dict(ops.collect())),
        ("versions", Bencode::Dict(versions)),
        ("status", status_of(&["done"])),
    ])
}

/// The version of the protocol's reference server whose answers are given here.
const PROTOCOL: &str = "1.0.0";
/// The version of Clojure that the language follows.
const LANGUAGE: &str = "1.12.0";

fn new_session(client: &Arc<Client>, is_ephemeral: bool) -> Arc<ClientSession> {
    Arc::new(ClientSession {
        id: new_id(),
        input: Input::default(),
        is_ephemeral,
        is_closed: AtomicBool::new(false),
        client: Mutex::new(client.clone()),
        is_busy: Mutex::default(),
        freed: Condvar::new(),
    })
}

/// Returns a random id in the form of a UUID. A client that knows it can use the session.
fn new_id() -> String {
    use flowstone_engine::ports::{Random, SystemRandom};
    let bits = |count: u32| SystemRandom.next() >> (64 - count);
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        bits(32),
        bits(16),
        bits(12),
        bits(12),
        bits(48)
    )
}

/// Locks. A thread that panicked has left nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_read_by_line_up_to_its_end() {
        let input = Input::default();
        assert!(input.push(b"one\ntwo"));
        let line = || input.line(|| true, || ());
        assert_eq!(line().as_deref(), Some("one\n"));
        assert_eq!(line(), None);
        input.end();
        assert_eq!(line().as_deref(), Some("two"));
        assert!(!input.push(&vec![b'x'; INPUT_MAX + 1]));
    }
}
