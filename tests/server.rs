//! The server of all tests: it listens on the loopback interface and answers as a test wants, also wrongly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request that the server received.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, a lower-case line each.
    pub head: String,
    /// The request line, the headers, an empty line and the body, as they were sent, with `\n` at the ends of lines.
    pub text: String,
    pub body: String,
    pub body_bytes: Vec<u8>,
}

impl Request {
    /// Returns the value of a header; its name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.text.split("\n\n").next()?.lines().skip(1);
        lines.find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// The answer to a request. The server closes the connection after it.
#[derive(Clone)]
pub enum Answer {
    Json(String),
    /// The data of server-sent events.
    Events(Vec<String>),
    Status(u16, &'static str),
    /// Promises a body and ends in the middle of it.
    HalfBody,
    /// These bytes.
    Raw(Vec<u8>),
    /// These bytes, then silence until the client gives up.
    Hang(Vec<u8>),
    /// These bytes, then those that the function returns, which may wait for something.
    Then(Vec<u8>, Arc<dyn Fn() -> Vec<u8> + Send + Sync>),
    /// These bytes, then this many zeros, as fast as the client takes them.
    Zeros(Vec<u8>, u64),
    /// The first bytes once, then the others until the client gives up.
    Endless(Vec<u8>, Vec<u8>),
}

/// Returns an answer with a status line, headers and the length of its body.
pub fn reply(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let length = format!("content-length: {}", body.len());
    let head = head(
        status,
        [&*length].into_iter().chain(headers.iter().copied()),
    );
    Answer::Raw([head.as_bytes(), body].concat())
}

fn head<'a>(status: &str, headers: impl IntoIterator<Item = &'a str>) -> String {
    let mut head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head + "\r\n"
}

/// Returns a stream of server-sent events without a length.
pub fn event_stream(text: &str) -> Vec<u8> {
    (head("200 OK", ["content-type: text/event-stream"]) + text).into_bytes()
}

/// A running server; its threads end with the process.
pub struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server. `answer` gets each request and how many came before it.
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

    /// Starts a server that gives these answers in order, and the last of them to all later requests. One without
    /// answers closes each connection.
    pub fn of(answers: Vec<Answer>) -> Server {
        Server::start(move |_, before| {
            let answer = answers.get(before).or(answers.last());
            answer.cloned().unwrap_or(Answer::Raw(Vec::new()))
        })
    }

    /// Returns the host with its port.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host())
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

/// Reads a request; `None` if the client closes the connection before its end.
fn read(mut stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut parts = line.split_whitespace();
    let (method, path) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let mut text = format!("{}\n", line.trim_end());
    let mut head = String::new();
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end();
        text.push_str(header);
        text.push('\n');
        if header.is_empty() {
            break;
        }
        let header = header.to_ascii_lowercase();
        match header.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(("transfer-encoding", _)) => is_chunked = true,
            Some(("expect", _)) => stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?,
            _ => {}
        }
        head.push_str(&header);
        head.push('\n');
    }
    let mut bytes = vec![0; length];
    match is_chunked {
        true => bytes = chunks(&mut reader)?,
        false => reader.read_exact(&mut bytes).ok()?,
    }
    let body = String::from_utf8_lossy(&bytes).into_owned();
    text.push_str(&body);
    Some(Request {
        method,
        path,
        head,
        text,
        body,
        body_bytes: bytes,
    })
}

fn chunks(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let size = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        body.extend(chunk);
        if size == 0 {
            return Some(body);
        }
    }
}

fn write(stream: &mut TcpStream, answer: Answer) -> std::io::Result<()> {
    let whole = |status: &str, kind: &str, body: &str| {
        let length = format!("content-length: {}", body.len());
        head(status, [&*format!("content-type: {kind}"), &*length]) + body
    };
    let text = match answer {
        Answer::Json(body) => whole("200 OK", "application/json", &body),
        Answer::Events(events) => {
            let body: String = events
                .iter()
                .map(|event| format!("data: {event}\n\n"))
                .collect();
            whole("200 OK", "text/event-stream", &body)
        }
        Answer::Status(status, body) => whole(&format!("{status} Answer"), "text/plain", body),
        Answer::HalfBody => {
            let headers = ["content-type: application/json", "content-length: 1000"];
            head("200 OK", headers) + "{\"items\": ["
        }
        Answer::Raw(bytes) => return stream.write_all(&bytes),
        Answer::Hang(bytes) => {
            stream.write_all(&bytes)?;
            // Returns when the client closes the connection.
            return stream.read(&mut [0]).map(|_| ());
        }
        Answer::Then(bytes, rest) => {
            stream.write_all(&bytes)?;
            return stream.write_all(&rest());
        }
        Answer::Zeros(head, count) => {
            stream.write_all(&head)?;
            return std::io::copy(&mut std::io::repeat(0).take(count), stream).map(|_| ());
        }
        Answer::Endless(head, again) => {
            let block = again.repeat((1 << 16) / again.len() + 1);
            stream.write_all(&head)?;
            loop {
                stream.write_all(&block)?;
            }
        }
    };
    stream.write_all(text.as_bytes())
}
