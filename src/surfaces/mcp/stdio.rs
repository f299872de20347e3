//! The protocol over standard input and output: one message a line, one client, with the owner's rights.

use std::collections::HashMap;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use flowstone_engine::json::compact;
use flowstone_engine::token::Scope;
use serde_json::{Map, Value as Json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::dispatch::answer;
use super::peer::Request;
use super::protocol::{
    Era, Incoming, LEGACY, META_VERSION, RpcError, STATELESS, check_meta, codes, read, response,
};
use super::sessions::Session;
use super::sets::ToolSets;
use crate::http::{Caller, EngineContext, Problem, Shared};
use crate::kit::KitDoor;

/// Maximum length of a message, in bytes.
const MESSAGE_MAX: u64 = 10 << 20;
/// How long responses may take after the client has closed its end.
const LAST: Duration = Duration::from_secs(60);
/// The same for the tools of the build kit: a test does not run on for a caller who has left.
const LAST_OF_KIT: Duration = Duration::from_secs(5);
/// Maximum number of messages that wait to be read or written.
const BACKLOG: usize = 64;

/// Serves a client until it closes its end, or the process stops. `scopes` narrows the owner's rights, `sets` the
/// tools; with `kit`, the tools are those of the build kit.
///
/// # Errors
/// When the owner's token cannot be read.
pub(crate) async fn talk(
    server: Shared,
    scopes: Vec<Scope>,
    (sets, kit): (ToolSets, Option<Arc<KitDoor>>),
) -> Result<(), Problem> {
    let caller = owner(&server, scopes).await?;
    let (out, outgoing) = mpsc::channel(BACKLOG);
    let writer = std::thread::spawn(move || write_all(outgoing));
    let mut incoming = lines();
    let mut talk = Talk {
        server: server.clone(),
        caller,
        sets,
        kit,
        session: None,
        out,
        active: HashMap::new(),
        work: JoinSet::new(),
    };
    loop {
        tokio::select! {
            line = incoming.recv() => match line {
                Some(line) => talk.message(&line).await,
                None => break,
            },
            Some(_) = talk.work.join_next() => {}
            () = server.interrupt.wait() => {
                talk.work.abort_all();
                break;
            }
        }
    }
    // A client that only wrote its requests still gets its responses. Without a session, its messages end.
    talk.session = None;
    let last = match talk.kit {
        Some(_) => LAST_OF_KIT,
        None => LAST,
    };
    let rest = async { while talk.work.join_next().await.is_some() {} };
    tokio::select! {
        _ = tokio::time::timeout(last, rest) => {}
        () = server.interrupt.wait() => {}
    }
    drop(talk);
    // The other end may be closed; then nothing is left to write.
    let _ = tokio::task::spawn_blocking(move || writer.join()).await;
    Ok(())
}

/// Returns the owner, with all rights or some of them.
async fn owner(server: &Shared, scopes: Vec<Scope>) -> Result<Caller, Problem> {
    let accepted = server
        .ask(async |cx: &EngineContext| {
            let text = cx.engine.owner_token().await?;
            cx.engine.accept_token(&text.reveal()).await
        })
        .await?;
    let mut token =
        accepted.map_err(|_| Problem::not_found("the owner's token is not accepted"))?;
    if !scopes.is_empty() {
        token.scopes = scopes;
    }
    Ok(Caller { token })
}

/// Reads lines on a separate thread, because reading cannot be interrupted.
fn lines() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input
                .by_ref()
                .take(MESSAGE_MAX)
                .read_until(b'\n', &mut line);
            let is_whole = line.ends_with(b"\n") || (line.len() as u64) < MESSAGE_MAX;
            match read {
                Ok(0) | Err(_) => return,
                Ok(_) if !is_whole => {
                    tracing::warn!("a message is too long; nothing more is read");
                    return;
                }
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => {
                    if sender.blocking_send(line).is_err() {
                        return;
                    }
                }
            }
        }
    });
    receiver
}

fn write_all(mut outgoing: mpsc::Receiver<Json>) {
    let mut output = io::stdout().lock();
    while let Some(message) = outgoing.blocking_recv() {
        let written = writeln!(output, "{}", compact(&message)).and_then(|()| output.flush());
        if written.is_err() {
            return;
        }
    }
}

struct Talk {
    server: Shared,
    caller: Caller,
    sets: ToolSets,
    kit: Option<Arc<KitDoor>>,
    session: Option<Arc<Session>>,
    out: mpsc::Sender<Json>,
    /// Requests in progress, by their ids as text.
    active: HashMap<String, AbortHandle>,
    work: JoinSet<()>,
}

impl Talk {
    async fn message(&mut self, line: &[u8]) {
        match read(line) {
            Err((id, error)) => self.send(response(&id, &Err(error))).await,
            Ok(Incoming::Response { id, result }) => {
                if let Some(session) = &self.session {
                    session.answered(&id, result);
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId")
                    && let Some(active) = self.active.remove(&id.to_string())
                {
                    active.abort();
                }
            }
            Ok(Incoming::Request {
                id,
                method,
                params,
                rounded,
            }) => match self.prepared(&method, &params) {
                Err(error) => self.send(response(&id, &Err(error))).await,
                Ok(era) => self.begin(era, (id, method, params), rounded),
            },
        }
    }

    async fn send(&self, message: Json) {
        // The client may have disconnected.
        let _ = self.out.send(message).await;
    }

    /// Determines the protocol revision and session of a request.
    fn prepared(&mut self, method: &str, params: &Map<String, Json>) -> Result<Era, RpcError> {
        let version = params
            .get("_meta")
            .and_then(|meta| meta.get(META_VERSION)?.as_str());
        match version {
            Some(STATELESS) => check_meta(params).map(|()| Era::Stateless),
            Some(other) if !LEGACY.contains(&other) => Err(RpcError::version(other)),
            _ if method == "server/discover" => check_meta(params).map(|()| Era::Stateless),
            _ if method == "initialize" => {
                let version = params.get("protocolVersion").and_then(Json::as_str);
                let era = Era::negotiated(version);
                let capabilities = params.get("capabilities").cloned().unwrap_or(Json::Null);
                let session = Arc::new(Session::new(
                    self.caller.token.id.clone(),
                    era,
                    capabilities,
                ));
                let mut messages = session.open_stream();
                let out = self.out.clone();
                self.work.spawn(async move {
                    while let Some(message) = messages.recv().await {
                        if out.send(message).await.is_err() {
                            return;
                        }
                    }
                });
                self.session = Some(session);
                Ok(era)
            }
            _ => match &self.session {
                Some(session) => Ok(session.era),
                None => Err(RpcError::new(
                    codes::INVALID_REQUEST,
                    "a session begins with `initialize`",
                )),
            },
        }
    }

    fn begin(
        &mut self,
        era: Era,
        (id, method, params): (Json, String, Map<String, Json>),
        rounded: Option<String>,
    ) {
        let meta = params.get("_meta").and_then(Json::as_object).cloned();
        let rq = Request {
            server: self.server.clone(),
            caller: self.caller.clone(),
            address: "local".to_owned(),
            sets: self.sets.clone(),
            kit: self.kit.clone(),
            era,
            session: self.session.clone().filter(|_| !era.is_stateless()),
            id: id.clone(),
            repeated: None,
            meta: meta.unwrap_or_default(),
            rounded,
            parent: None,
            out: self.out.clone(),
        };
        let key = id.to_string();
        let work = self.work.spawn(async move {
            let answer = answer(&rq, &method, &params).await;
            let _ = rq.out.send(response(&id, &answer)).await;
        });
        self.active.retain(|_, work| !work.is_finished());
        self.active.insert(key, work);
    }
}
