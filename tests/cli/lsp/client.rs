//! A client of the language server, for tests and benchmarks.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take on a machine that has much to do.
const LONGEST: Duration = Duration::from_secs(120);

/// A running server and what it has sent.
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    answers: HashMap<i64, Value>,
    /// The last diagnostics by address, with the version they belong to.
    found: HashMap<String, (Option<i64>, Value)>,
    versions: HashMap<String, i64>,
    next: i64,
    root: String,
    pub capabilities: Value,
}

impl Client {
    /// Starts a server for a client with some capabilities, with a command that runs in the root of a project.
    pub fn start(mut command: Command, root: &Path, capabilities: &Value) -> Client {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            while let Some(message) = message(&mut stdout) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let root = root.canonicalize().expect("a folder");
        let mut client = Client {
            stdin: child.stdin.take(),
            child,
            messages,
            answers: HashMap::new(),
            found: HashMap::new(),
            versions: HashMap::new(),
            next: 0,
            root: root.display().to_string(),
            capabilities: Value::Null,
        };
        let params = json!({"processId": null, "rootUri": null, "capabilities": capabilities});
        let result = client.call("initialize", params);
        client.capabilities = result["capabilities"].clone();
        client.notify("initialized", json!({}));
        client
    }

    pub fn uri(&self, name: &str) -> String {
        format!("file://{}/{name}", self.root)
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request, and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: i64) -> Value {
        while !self.answers.contains_key(&id) {
            self.take();
        }
        self.answers.remove(&id).expect("it was there")
    }

    /// Returns the result of a request, which must succeed.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Returns the error of a request, which must fail.
    #[track_caller]
    pub fn refusal(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer["error"].is_object(), "{method}: {answer}");
        answer["error"].clone()
    }

    /// Returns the result of a request about a place.
    #[track_caller]
    pub fn at(&mut self, method: &str, name: &str, place: (usize, usize)) -> Value {
        self.call(method, self.place(name, place))
    }

    pub fn place(&self, name: &str, (line, column): (usize, usize)) -> Value {
        json!({"textDocument": {"uri": self.uri(name)}, "position": {"line": line, "character": column}})
    }

    pub fn open(&mut self, name: &str, text: &str) {
        let uri = self.uri(name);
        self.versions.insert(uri.clone(), 1);
        let document = json!({"uri": uri, "languageId": "clojure", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Replaces a whole text.
    pub fn replace(&mut self, name: &str, text: &str) {
        self.change(name, json!({"text": text}));
    }

    /// Replaces a range of a text.
    pub fn edit(&mut self, name: &str, start: (usize, usize), end: (usize, usize), text: &str) {
        let place = |(line, column)| json!({"line": line, "character": column});
        self.change(
            name,
            json!({"range": {"start": place(start), "end": place(end)}, "text": text}),
        );
    }

    fn change(&mut self, name: &str, change: Value) {
        let uri = self.uri(name);
        let version = self.versions.get(&uri).copied().unwrap_or(1) + 1;
        self.versions.insert(uri.clone(), version);
        let document = json!({"uri": uri, "version": version});
        self.notify(
            "textDocument/didChange",
            json!({"textDocument": document, "contentChanges": [change]}),
        );
    }

    /// Waits for the findings about the present version of a text.
    #[track_caller]
    pub fn diagnostics(&mut self, name: &str) -> Value {
        let uri = self.uri(name);
        let version = self.versions.get(&uri).copied();
        loop {
            if let Some((of, found)) = self.found.remove(&uri)
                && (of == version || of.is_none())
            {
                return found;
            }
            self.take();
        }
    }

    /// Ends the server as the protocol wants. Returns its exit code.
    pub fn end(mut self) -> Option<i32> {
        self.call("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.child.wait().expect("a process").code()
    }

    /// Closes the connection without a word. Returns the exit code.
    pub fn leave(mut self) -> Option<i32> {
        self.stdin.take();
        self.child.wait().expect("a process").code()
    }

    fn write(&mut self, message: &Value) {
        let text = message.to_string();
        let stdin = self.stdin.as_mut().expect("it is open");
        write!(stdin, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        stdin.flush().expect("the server reads");
    }

    #[track_caller]
    fn take(&mut self) {
        let message = self
            .messages
            .recv_timeout(LONGEST)
            .expect("the server answers");
        if let Some(id) = message["id"].as_i64() {
            self.answers.insert(id, message);
        } else if message["method"] == "textDocument/publishDiagnostics" {
            let params = &message["params"];
            let uri = params["uri"].as_str().unwrap_or_default().to_owned();
            self.found.insert(
                uri,
                (params["version"].as_i64(), params["diagnostics"].clone()),
            );
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that failed leaves the process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn message(stdout: &mut BufReader<impl std::io::Read>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => {
                if let Some(given) = line.strip_prefix("Content-Length: ") {
                    length = given.parse().ok()?;
                }
            }
        }
    }
    let mut bytes = vec![0; length];
    stdout.read_exact(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns the line and column of the nth occurrence of a text.
#[track_caller]
pub fn at(text: &str, part: &str, nth: usize) -> (usize, usize) {
    let (offset, _) = text.match_indices(part).nth(nth).expect(part);
    let before = &text[..offset];
    let line = before.matches('\n').count();
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .encode_utf16()
        .count();
    (line, column)
}

/// Applies edits to an ASCII text.
pub fn applied(text: &str, edits: &Value) -> String {
    let offset = |place: &Value| {
        let number = |name: &str| usize::try_from(place[name].as_u64().unwrap_or(0)).unwrap_or(0);
        let lines = text.split_inclusive('\n').take(number("line"));
        lines.map(str::len).sum::<usize>() + number("character")
    };
    let mut edits: Vec<(usize, usize, String)> = edits
        .as_array()
        .cloned()
        .unwrap_or_default()
        .iter()
        .map(|edit| {
            let range = &edit["range"];
            let new = edit["newText"].as_str().unwrap_or_default().to_owned();
            (offset(&range["start"]), offset(&range["end"]), new)
        })
        .collect();
    edits.sort();
    let mut out = text.to_owned();
    for (start, end, new) in edits.into_iter().rev() {
        out.replace_range(start..end, &new);
    }
    out
}
