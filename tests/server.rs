//! A server on the loopback interface that answers as a test wants, also wrongly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What came in.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    /// The headers, a lower-case line each.
    pub head: String,
    pub body: String,
}

/// What goes out.
pub enum Answer {
    Json(String),
    Events(Vec<String>),
    Status(u16, &'static str),
    /// Promises a body and ends in the middle of it.
    HalfBody,
    /// Says nothing, until the other side gives up.
    Hang,
}

/// A running server; its thread ends with the process.
pub struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts one. `answer` gets each request and how many came before it.
    pub fn start(answer: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &seen, &*answer));
            }
        });
        Server { port, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests
            .lock()
            .expect("no test panics with it")
            .clone()
    }
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request, usize) -> Answer + Send + Sync),
) {
    let Some(request) = read(&stream) else {
        return;
    };
    let before = {
        let mut seen = seen.lock().expect("no test panics with it");
        seen.push(request.clone());
        seen.len() - 1
    };
    // The server ignores clients that have disconnected.
    let _ = write(&mut stream, answer(&request, before));
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let path = words.nth(1)?.to_owned();
    let mut length = 0;
    let mut head = String::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        head.push_str(&header);
        head.push('\n');
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        path,
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn write(stream: &mut TcpStream, answer: Answer) -> std::io::Result<()> {
    let head = |status: &str, kind: &str, length: usize| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        )
    };
    match answer {
        Answer::Json(body) => {
            stream.write_all(head("200 OK", "application/json", body.len()).as_bytes())?;
            stream.write_all(body.as_bytes())
        }
        Answer::Events(events) => {
            let body: String = events
                .iter()
                .map(|event| format!("data: {event}\n\n"))
                .collect();
            stream.write_all(head("200 OK", "text/event-stream", body.len()).as_bytes())?;
            stream.write_all(body.as_bytes())
        }
        Answer::Status(status, body) => {
            let status = format!("{status} Answer");
            stream.write_all(head(&status, "text/plain", body.len()).as_bytes())?;
            stream.write_all(body.as_bytes())
        }
        Answer::HalfBody => {
            stream.write_all(head("200 OK", "application/json", 1_000).as_bytes())?;
            stream.write_all(b"{\"items\": [")
        }
        Answer::Hang => {
            // Returns when the client closes the connection.
            stream.read(&mut [0]).map(|_| ())
        }
    }
}
