//! A running `flowstone serve --listen`, and a client of its API.

use std::io::{BufRead as _, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::api_document;
use crate::program::Scratch;

/// How long the server may take to start, and an answer to come.
const LONGEST: Duration = Duration::from_secs(120);

/// A server. It is killed when this is dropped.
pub struct Api {
    child: Child,
    pub address: String,
    pub token: String,
}

/// What a server answered.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    /// The headers, a lower-case line each.
    pub head: String,
    pub body: String,
}

impl Reply {
    /// Returns the body as JSON. An answer of MCP that takes long comes as a stream of events; its last one has the answer.
    #[track_caller]
    pub fn json(&self) -> Value {
        let is_stream = self.header("content-type") == Some("text/event-stream");
        let mut lines = self.body.lines().rev().filter(|_| is_stream);
        let last = lines.find_map(|line| line.strip_prefix("data: "));
        let text = last.unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines();
        lines
            .filter_map(|line| line.split_once(": "))
            .find(|(known, _)| *known == name)
            .map(|it| it.1)
    }

    /// Returns status and code of an error.
    pub fn problem(&self) -> String {
        let code = self.json()["code"].as_str().unwrap_or_default().to_owned();
        format!("{} {code}", self.status)
    }
}

impl Api {
    /// Serves a project on a free port, until this is dropped.
    pub fn serve(scratch: &Scratch) -> Api {
        Api::serve_with(scratch, &[])
    }

    pub fn serve_with(scratch: &Scratch, options: &[&str]) -> Api {
        Api::serve_as(scratch, options, &[])
    }

    /// Serves with these variables of the environment.
    pub fn serve_as(scratch: &Scratch, options: &[&str], variables: &[(&str, String)]) -> Api {
        Api::start(scratch, (options, variables), Stdio::inherit())
    }

    /// Serves with a log of JSON in the file `server.log` of the project.
    pub fn serve_logged(scratch: &Scratch, filter: &str) -> Api {
        let log = std::fs::File::create(scratch.path().join("server.log"));
        let variables = [("FLOWSTONE_LOG", filter), ("FLOWSTONE_LOG_FORMAT", "json")];
        let variables = variables.map(|(key, value)| (key, value.to_owned()));
        Api::start(scratch, (&[], &variables), log.expect("a file").into())
    }

    fn start(
        scratch: &Scratch,
        (options, variables): (&[&str], &[(&str, String)]),
        log: Stdio,
    ) -> Api {
        let home = scratch.path().join(".flowstone");
        // That of a server that was killed.
        let _ = std::fs::remove_file(home.join("server.json"));
        let args = [&["serve", "--listen", "127.0.0.1:0", "--quiet"], options].concat();
        let child = scratch
            .command(&args)
            .envs(variables.iter().map(|(key, value)| (*key, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the server starts");
        let mut api = Api {
            child,
            address: String::new(),
            token: String::new(),
        };
        let begun = Instant::now();
        while api.address.is_empty() {
            assert!(begun.elapsed() < LONGEST, "the server does not start");
            let ended = api.child.try_wait().expect("a process");
            assert!(ended.is_none(), "the server ended: {ended:?}");
            if let Ok(text) = std::fs::read_to_string(home.join("server.json"))
                && let Ok(about) = serde_json::from_str::<Value>(&text)
            {
                let base = about["base"].as_str().unwrap_or_default();
                api.address = base.trim_start_matches("http://").to_owned();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let token = std::fs::read_to_string(home.join("owner.token")).expect("the owner's token");
        token.trim_end().clone_into(&mut api.token);
        api
    }

    /// Sends exactly this text and returns what comes back.
    pub fn send(&self, text: impl AsRef<[u8]>) -> Reply {
        send(&self.address, text)
    }

    /// Makes a request with these headers, a line each.
    pub fn request(&self, what: &str, headers: &[&str], body: &str) -> Reply {
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let length = match body.is_empty() {
            true => String::new(),
            false => format!("content-length: {}\r\n", body.len()),
        };
        let host = &self.address;
        self.send(format!(
            "{what} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{lines}{length}\r\n{body}"
        ))
    }

    fn authorization(&self) -> String {
        format!("authorization: Bearer {}", self.token)
    }

    /// Gets a path as the owner.
    pub fn get(&self, path: &str) -> Reply {
        self.request(&format!("GET {path}"), &[&self.authorization()], "")
    }

    /// Posts JSON as the owner.
    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_as(&self.token, path, body)
    }

    /// Posts JSON with a token.
    pub fn post_as(&self, token: &str, path: &str, body: &Value) -> Reply {
        let headers = [
            &*format!("authorization: Bearer {token}"),
            "content-type: application/json",
        ];
        self.request(&format!("POST {path}"), &headers, &body.to_string())
    }

    /// Gets a path with a token.
    pub fn get_as(&self, token: &str, path: &str) -> Reply {
        let header = format!("authorization: Bearer {token}");
        self.request(&format!("GET {path}"), &[&header], "")
    }

    /// Follows a stream of events as the owner, from after a number if there is one.
    pub fn follow(&self, path: &str, after: Option<i64>) -> Events {
        let authorization = self.authorization();
        let last = after.map(|after| format!("last-event-id: {after}"));
        let headers: Vec<&str> = [Some(&*authorization), last.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        self.follow_with(path, &headers)
    }

    /// Follows a stream of events with these headers.
    pub fn follow_with(&self, path: &str, headers: &[&str]) -> Events {
        self.follow_request(&format!("GET {path}"), headers, "")
    }

    /// Makes a request whose answer is a stream of events.
    pub fn follow_request(&self, what: &str, headers: &[&str], body: &str) -> Events {
        let mut stream = TcpStream::connect(&self.address).expect("the server accepts");
        stream.set_read_timeout(Some(LONGEST)).expect("a timeout");
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let host = &self.address;
        let length = match body.is_empty() {
            true => String::new(),
            false => format!("content-length: {}\r\n", body.len()),
        };
        let request = format!("{what} HTTP/1.0\r\nhost: {host}\r\n{lines}{length}\r\n{body}");
        stream
            .write_all(request.as_bytes())
            .expect("the server reads");
        let mut lines = BufReader::new(stream).lines();
        let mut line = || lines.next().and_then(Result::ok).unwrap_or_default();
        let status = line()
            .split(' ')
            .nth(1)
            .and_then(|it| it.parse().ok())
            .unwrap_or(0);
        while !line().is_empty() {}
        Events { status, lines }
    }

    /// Asks the server to stop, and returns its exit code.
    pub fn stop(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.expect("`kill` starts").success());
        self.child.wait().expect("a process").code()
    }

    /// Ends the server without notice.
    /// Returns the id of the server's process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Posts JSON with a token to a server, also while it stops.
pub fn post_to(address: &str, token: &str, path: &str, body: &Value) -> Reply {
    let body = body.to_string();
    let length = body.len();
    send(
        address,
        format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        ),
    )
}

/// Sends exactly this text and returns what comes back, which must be as the API's document says.
#[track_caller]
fn send(address: &str, text: impl AsRef<[u8]>) -> Reply {
    let mut stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_read_timeout(Some(LONGEST)).expect("a timeout");
    // The server may refuse before it has read everything.
    let sent = text.as_ref();
    let _ = stream.write_all(sent);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let (line, head) = head.split_once("\r\n").unwrap_or((head, ""));
    let reply = Reply {
        status: line
            .split(' ')
            .nth(1)
            .and_then(|it| it.parse().ok())
            .unwrap_or(0),
        head: head.to_ascii_lowercase().replace("\r\n", "\n"),
        body: body.to_owned(),
    };
    api_document::check(&String::from_utf8_lossy(sent), &reply);
    reply
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: Option<i64>,
    pub name: String,
    pub data: Value,
}

/// A stream of events. Its iterator ends when the server closes the stream.
pub struct Events {
    pub status: u16,
    lines: Lines<BufReader<TcpStream>>,
}

impl Events {
    /// Returns the text of the next line of data, which may be other text than JSON.
    pub fn next_data(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.ok()?;
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(data.to_owned());
            }
        }
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let (mut id, mut name) = (None, String::new());
        loop {
            let line = self.lines.next()?.ok()?;
            match line.split_once(": ") {
                Some(("id", text)) => id = Some(text.parse().expect("a number")),
                Some(("event", text)) => text.clone_into(&mut name),
                Some(("data", text)) => {
                    let data = serde_json::from_str(text).expect("JSON");
                    return Some(Event { id, name, data });
                }
                // Comments, the time to come back, and ends of events.
                _ => {}
            }
        }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
