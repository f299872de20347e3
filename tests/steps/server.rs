//! A local server with scripted responses, byte by byte.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The response to one connection.
#[derive(Clone)]
pub enum Say {
    /// Sends these bytes, then closes.
    Raw(Vec<u8>),
    /// Sends these bytes, then nothing more, without closing.
    Hang(Vec<u8>),
    /// Sends these bytes and this number of zeros as fast as they are read, then closes.
    Zeros(Vec<u8>, u64),
    /// Sends these bytes, then the others repeatedly until the client disconnects.
    Endless(Vec<u8>, Vec<u8>),
}

/// Returns a status line, headers and a body, with the right content length.
pub fn reply(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Say {
    let body = body.as_ref();
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for header in headers {
        bytes.push_str(&format!("{header}\r\n"));
    }
    bytes.push_str("\r\n");
    Say::Raw([bytes.as_bytes(), body].concat())
}

pub fn json(body: &str) -> Say {
    reply("200 OK", &["content-type: application/json"], body)
}

/// Returns the events of a model's stream; the connection closes at their end.
pub fn events(data: &[&str]) -> Say {
    Say::Raw([SSE.as_bytes(), event_text(data).as_bytes()].concat())
}

/// The same, but the connection stays open and silent.
pub fn stalled(data: &[&str]) -> Say {
    Say::Hang([SSE.as_bytes(), event_text(data).as_bytes()].concat())
}

const SSE: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";

fn event_text(data: &[&str]) -> String {
    data.iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect()
}

pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that answers one connection with each of these, in order, and all later ones with the last.
    pub async fn start(answers: Vec<Say>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut held = Vec::new();
            for at in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read(&mut stream).await;
                seen.lock().unwrap().push(request);
                match answers[at.min(answers.len() - 1)].clone() {
                    Say::Raw(bytes) => {
                        stream.write_all(&bytes).await.ok();
                        stream.shutdown().await.ok();
                    }
                    Say::Zeros(head, count) => {
                        let block = vec![0; 1 << 20];
                        let mut taken = stream.write_all(&head).await;
                        let mut left = count;
                        while left > 0 && taken.is_ok() {
                            let size = left.min(block.len() as u64);
                            taken = stream.write_all(&block[..size as usize]).await;
                            left -= size;
                        }
                        stream.shutdown().await.ok();
                    }
                    Say::Endless(head, again) => {
                        let block = again.repeat((1 << 16) / again.len() + 1);
                        let mut taken = stream.write_all(&head).await;
                        while taken.is_ok() {
                            taken = stream.write_all(&block).await;
                        }
                    }
                    Say::Hang(bytes) => {
                        stream.write_all(&bytes).await.ok();
                        held.push(stream);
                    }
                }
            }
        });
        Server { url, requests }
    }

    /// The same on its own thread, for tests that execute runs.
    pub fn beside(answers: Vec<Say>) -> Server {
        let (sent, started) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                sent.send(Server::start(answers).await)
                    .expect("somebody waits");
                std::future::pending::<()>().await;
            });
        });
        started.recv().expect("the server starts")
    }

    /// Returns the requests, head and body, without parts that differ from run to run.
    pub fn requests(&self) -> Vec<String> {
        let host = self.url.trim_start_matches("http://");
        self.requests
            .lock()
            .unwrap()
            .iter()
            .map(|request| request.replace(host, "HOST"))
            .collect()
    }

    /// Returns the body of a request.
    pub fn body(&self, at: usize) -> serde_json::Value {
        let request = self.requests()[at].clone();
        serde_json::from_str(request.split_once("\n\n").unwrap().1).unwrap()
    }

    /// Returns a text without the server's address.
    pub fn clean(&self, text: &str) -> String {
        text.replace(self.url.trim_start_matches("http://"), "HOST")
    }
}

async fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, length)| length.trim().parse().unwrap());
            if body.len() >= length {
                return format!("{}\n\n{body}", head.replace("\r\n", "\n"));
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return text,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}
