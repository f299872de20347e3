//! The threads of a connection: one reads messages, one writes answers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use super::bencode::{Decoder, Dict, encode};
use super::reply;
use super::sessions::Hub;
use super::socket;

/// How clients and the server talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Nrepl,
    /// Text, with a prompt.
    Socket,
}

/// Maximum number of clients at a time.
const CONNECTIONS: usize = 64;
/// Maximum number of answers that a client has not read.
const UNREAD: usize = 1_024;
/// How long an answer waits for a client that does not read.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;
/// How long the listener rests after an error, such as too many open files.
const REST: Duration = Duration::from_millis(100);

/// A client.
pub struct Client {
    answers: SyncSender<Vec<u8>>,
    is_gone: AtomicBool,
    stream: TcpStream,
}

impl Client {
    /// Sends bytes. A client that reads nothing for a while is disconnected.
    pub fn send(&self, bytes: Vec<u8>) {
        let until = Instant::now() + PATIENCE;
        let mut bytes = bytes;
        loop {
            if self.is_gone() {
                return;
            }
            match self.answers.try_send(bytes) {
                Ok(()) => return,
                Err(TrySendError::Disconnected(_)) => return self.leave(),
                Err(TrySendError::Full(_)) if Instant::now() > until => return self.leave(),
                Err(TrySendError::Full(back)) => bytes = back,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the connection once everything that was sent is written.
    pub fn leave_after_writing(&self) {
        self.send(Vec::new());
    }

    /// Ends the writing thread. Sessions may keep the client for longer.
    fn end_writing(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
        if self.answers.try_send(Vec::new()).is_err() {
            // It has too much to write for a client that reads nothing.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    /// Sends a message.
    pub fn answer(&self, dict: &Dict) {
        self.send(encode(dict));
    }

    /// Tells whether the connection has ended.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Ends the connection.
    pub fn leave(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
        // It may have ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Takes connections, in a thread of its own that ends with the process.
pub fn accept(listener: TcpListener, protocol: Protocol, hub: Arc<Hub>) {
    std::thread::spawn(move || {
        let count = Arc::new(AtomicUsize::new(0));
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                std::thread::sleep(REST);
                continue;
            };
            if count.load(Ordering::Relaxed) >= CONNECTIONS {
                // Dropping it ends the connection.
                continue;
            }
            count.fetch_add(1, Ordering::Relaxed);
            let (hub, taken) = (hub.clone(), count.clone());
            std::thread::spawn(move || {
                talk(stream, protocol, &hub);
                taken.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
}

/// Serves one client until it leaves.
fn talk(stream: TcpStream, protocol: Protocol, hub: &Arc<Hub>) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let Ok(writing) = stream.try_clone() else {
        return;
    };
    let Ok(reading) = stream.try_clone() else {
        return;
    };
    let (answers, unsent) = sync_channel(UNREAD);
    let client = Arc::new(Client {
        answers,
        is_gone: AtomicBool::new(false),
        stream,
    });
    let writer = std::thread::spawn(move || write(writing, &unsent));
    match protocol {
        Protocol::Nrepl => read(reading, &client, hub),
        Protocol::Socket => socket::read(reading, &client, hub),
    }
    client.end_writing();
    hub.left(&client);
    let _ = writer.join();
}

fn write(mut stream: TcpStream, unsent: &Receiver<Vec<u8>>) {
    for bytes in unsent {
        if bytes.is_empty() {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
        if stream.write_all(&bytes).is_err() {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn read(mut stream: TcpStream, client: &Arc<Client>, hub: &Arc<Hub>) {
    let mut decoder = Decoder::default();
    let mut piece = vec![0; PIECE];
    loop {
        let count = match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        decoder.push(&piece[..count]);
        loop {
            match decoder.next() {
                Ok(Some(message)) => hub.take(client, message),
                Ok(None) => break,
                Err(error) => {
                    client.answer(&reply::refusal(&error.to_string()));
                    return;
                }
            }
        }
    }
}
