//! Prompts over the network, for editors: the nREPL protocol, and a plain socket prompt as Clojure's.
//!
//! One thread evaluates, because a session of the language stays on its thread; it shares the engine and the operations
//! of the prompt of a terminal. Threads of each connection read and write. What must work during an evaluation is
//! answered by the reading thread: `interrupt`, `stdin`, `clone`, `close`, `describe`, `ls-sessions`.
//!
//! Everything that a client can make grow has a limit: messages, sessions, connections, queues, unread output.

mod bencode;
mod connection;
mod evaluator;
mod host;
mod names;
mod reply;
mod sessions;
mod socket;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

use flowstone_engine::Engine;
use flowstone_lang::session::Session;
use tokio::sync::mpsc;

use crate::cli::Grants;
use connection::Protocol;
use evaluator::Evaluator;
use sessions::Hub;

/// Maximum number of requests that wait for the evaluating thread.
const QUEUE: usize = 256;

/// A server that listens and does not answer yet.
pub struct Listening {
    listener: TcpListener,
    protocol: Protocol,
}

/// What the evaluations of a server may use.
pub struct Serve<'a> {
    pub engine: &'a Engine,
    pub session: Rc<Session>,
    pub grants: Grants,
    /// Whether the process is to end.
    pub ends: &'a dyn Fn() -> bool,
}

/// Listens on a port of the loopback interface; 0: any free one.
///
/// # Errors
/// When the port cannot be used.
pub fn listen(port: u16, is_socket_prompt: bool) -> io::Result<Listening> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    Ok(Listening {
        listener,
        protocol: match is_socket_prompt {
            true => Protocol::Socket,
            false => Protocol::Nrepl,
        },
    })
}

impl Listening {
    /// Returns the address that clients connect to.
    ///
    /// # Errors
    /// When the system does not know it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers clients until the process is to end.
    pub async fn serve(self, serve: Serve<'_>) {
        let (requests, arriving) = mpsc::channel(QUEUE);
        let hub = Arc::new(Hub::new(requests));
        connection::accept(self.listener, self.protocol, hub.clone());
        Evaluator::new(&serve, hub.clone()).run(arriving).await;
        hub.end();
    }
}
