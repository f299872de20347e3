//! Requests that a server must refuse: each has a clear status, and leaves runs, waits, tokens and files as they were.

mod rows;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use rows::{BODY, DECIDE, ELSEWHERE, FORM, JSON, PATHS, PROOFS, TOKENS, TWO_WAYS};

use super::hooks::hmac;
use crate::api::{Api, Reply};
use crate::program::Scratch;

const GREET: &str = r#"{:slug :greet :tags [:open]
  :invocations {:default {:inputs [{:name :who :type :text :required true}]}}
  :interfaces {:http [{:id :hello :invocation :default :path "/greet/{who}"}]
               :mcp [{:id :tool :tool-name "greet" :description "Greets." :invocation :default}]}
  :flow '(:who (flow/input))}"#;
const PAID: &str = r#"{:slug :paid :invocations {:default {:inputs []}}
  :interfaces {:webhook [{:id :github :invocation :default :auth {:type :github :secret-ref :hook}}]}
  :flow '(flow/step :kv :count {:operation :increment :key "paid"})}"#;
const BILLED: &str = r#"{:slug :billed :invocations {:default {:inputs []}}
  :interfaces {:webhook [{:id :stripe :invocation :default :auth {:type :stripe :secret-ref :hook}}]}
  :flow '(flow/step :kv :count {:operation :increment :key "billed"})}"#;
const ASK: &str = r#"{:slug :ask
  :flow '(flow/step :wait :ok {:key "ask" :title "Go on?" :approval {} :timeout "1h"})}"#;
const CALL: &str = r#"{:slug :call
  :flow '(flow/step :wait :done {:key "call" :timeout "1h"
                                 :webhook {:path "done" :auth {:type :hmac-sha256 :secret-ref :hook}}})}"#;

/// A project with a run that waits for a decision and one that waits for a delivery, and tokens of all kinds.
struct Target {
    scratch: Scratch,
    api: Api,
    /// What stands for what in a row: names in capitals, and their values.
    names: Vec<(&'static str, String)>,
}

impl Target {
    fn new() -> Target {
        let scratch = Scratch::new();
        scratch.write(".env", "HOOK=s1\n");
        scratch.write("secret.txt", "0UTS1DE");
        for (name, text) in [
            ("greet", GREET),
            ("paid", PAID),
            ("billed", BILLED),
            ("ask", ASK),
            ("call", CALL),
        ] {
            scratch.write(&format!("flows/{name}.edn"), text);
        }
        let api = Api::serve(&scratch);
        let run = waiting(&api, "ask");
        waiting(&api, "call");
        let shown = scratch.json_of(&["waits", "show", "ask"]);
        let text = |name: &str| shown[name].as_str().expect("text").to_owned();
        let token = |options: &[&str]| {
            let args = [&["tokens", "create", "--name", "t"], options].concat();
            let made = scratch.json_of(&args);
            let id = made["id"].as_str().expect("an id").to_owned();
            let text = made["token"].as_str().expect("a token").to_owned();
            (id, format!("authorization: Bearer {text}"))
        };
        let (revoked_id, revoked) = token(&["--scope", "admin"]);
        scratch.run(&["tokens", "revoke", &revoked_id]).ok();
        let digest = hmac("s1", BODY);
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).expect("a time");
        let stripe = |at: u64| {
            let signature = hmac("s1", &format!("{at}.{BODY}"));
            format!("stripe-signature: t={at},v1={signature}")
        };
        let names = vec![
            ("OWNER", format!("authorization: Bearer {}", api.token)),
            ("OTHER_RUN", token(&["--scope", "run", "--flow", "paid"]).1),
            (
                "OTHER_ALL",
                token(&[
                    "--scope", "read", "--scope", "run", "--scope", "approve", "--flow", "paid",
                ])
                .1,
            ),
            ("READER", token(&["--scope", "read"]).1),
            (
                "EXPIRED",
                token(&["--scope", "admin", "--expires", "1ms"]).1,
            ),
            ("REVOKED", revoked),
            ("WAIT", text("id")),
            ("TICKET", text("token")),
            ("DIGEST", text("digest")),
            ("RUN", run),
            ("SIGNED", format!("x-hub-signature-256: sha256={digest}")),
            (
                "FLIPPED",
                format!("x-hub-signature-256: sha256={}", flipped(&digest)),
            ),
            ("STRIPE_OLD", stripe(now.as_secs() - 400)),
            ("STRIPE_NEW", stripe(now.as_secs())),
            (
                "STRIPE_FLIPPED",
                stripe(now.as_secs())
                    .replace("v1=", "v1=0")
                    .replace(",v1=00", ",v1=01"),
            ),
        ];
        Target {
            scratch,
            api,
            names,
        }
    }

    fn fill(&self, text: &str) -> String {
        let names = self.names.iter();
        names.fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("<{name}>"), value)
        })
    }

    /// Sends a row. A header with the host replaces ours.
    fn send(&self, (what, headers, body): (&str, &[&str], &str)) -> Reply {
        let body = self.fill(body);
        let mut lines: Vec<String> = headers.iter().map(|line| self.fill(line)).collect();
        if !lines.iter().any(|line| line.starts_with("host:")) {
            lines.push(format!("host: {}", self.api.address));
        }
        let lines = lines.join("\r\n");
        let length = body.len();
        self.api.send(format!(
            "{} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{lines}\r\n\r\n{body}",
            self.fill(what)
        ))
    }

    /// Returns all that a request could have changed.
    fn state(&self) -> Value {
        let list = |path: &str, name: &str, keys: &[&str]| {
            let listed = self.api.get(path).json();
            let items = listed[name].as_array().expect("a list").iter();
            let items =
                items.map(|item| keys.iter().map(|key| item[key].clone()).collect::<Vec<_>>());
            items.collect::<Vec<_>>()
        };
        let mut files = Vec::new();
        list_files(self.scratch.path(), &mut files);
        files.sort();
        json!({
            "runs": list("/api/v1/runs", "runs", &["id", "status"]),
            "waits": list("/api/v1/waits", "waits", &["id", "state", "digest"]),
            "tokens": list("/api/v1/tokens", "tokens", &["id"]),
            "resources": list("/api/v1/resources", "resources", &["uri"]),
            "jobs": list("/api/v1/jobs", "jobs", &["id"]),
            "files": files,
        })
    }
}

fn waiting(api: &Api, flow: &str) -> String {
    let started = api.post(
        &format!("/api/v1/flows/{flow}/runs"),
        &json!({"wait": "60s"}),
    );
    assert_eq!(started.json()["status"], "waiting", "{started:?}");
    started.json()["id"].as_str().expect("an id").to_owned()
}

/// Changes one bit of a number in hexadecimal.
fn flipped(hex: &str) -> String {
    let (first, rest) = hex.split_at(1);
    let digit = u8::from_str_radix(first, 16).expect("hexadecimal") ^ 1;
    format!("{digit:x}{rest}")
}

/// Lists all files and their sizes, but those of the database, which each request may touch.
fn list_files(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            list_files(&path, found);
        } else if !name.contains("/.flowstone/flowstone.") {
            let size = entry.metadata().map_or(0, |about| about.len());
            found.push(format!("{name} {size}"));
        }
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    let target = Target::new();
    let before = target.state();
    let mut wrong = Vec::new();
    for (what, headers, body, expected) in [ELSEWHERE, TWO_WAYS, TOKENS, PROOFS, PATHS].concat() {
        let reply = target.send((what, headers, body));
        let found = match reply.body.is_empty() {
            true => reply.status.to_string(),
            false => reply.problem(),
        };
        if found != expected {
            wrong.push(format!(
                "{what} {headers:?} {body}: {found}, not {expected}"
            ));
        }
        assert!(!reply.body.contains("0UTS1DE"), "{what} {reply:?}");
        assert_eq!(target.state(), before, "{what} {headers:?} {body}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Nothing was used up: what is right still counts, once.
    let paid = "POST /api/flows/paid/interfaces/live/github";
    let first = target.send((paid, &["<SIGNED>", JSON], BODY));
    assert_eq!(
        (first.status, &first.json()["status"]),
        (200, &json!("completed")),
        "{first:?}"
    );
    let stripe = "POST /api/flows/billed/interfaces/live/stripe";
    assert_eq!(
        target.send((stripe, &["<STRIPE_NEW>", JSON], BODY)).status,
        200
    );
    let after = target.state();
    for (what, signed) in [(paid, "<SIGNED>"), (stripe, "<STRIPE_NEW>")] {
        let again = target.send((what, &[signed, JSON], BODY));
        assert_eq!(
            (again.status, &again.json()["deduped"]),
            (200, &json!(true)),
            "{again:?}"
        );
    }
    assert_eq!(target.state(), after, "a delivery that comes again");
    let decided = target.send(("POST /local/waits/<WAIT>/approve", &[FORM], DECIDE));
    assert_eq!(decided.status, 303, "{decided:?}");
}

/// Sends the beginning of a request and then `rest` again and again, until the other side has had enough. Returns the
/// first line of the answer.
fn exchange(target: &Target, beginning: &str, rest: &[u8], times: usize) -> String {
    let stream = TcpStream::connect(&target.api.address).expect("the server accepts");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a timeout");
    let beginning = target
        .fill(beginning)
        .replace("<HOST>", &format!("host: {}", target.api.address));
    let mut text = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            // The server closes the connection when it has had enough.
            let _ = (&stream).write_all(beginning.as_bytes());
            let _ = (0..times).try_for_each(|_| (&stream).write_all(rest));
        });
        let _ = (&stream).read_to_end(&mut text);
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let text = String::from_utf8_lossy(&text);
    text.split("\r\n").next().unwrap_or_default().to_owned()
}

const LARGE: &str = "HTTP/1.1 413 Payload Too Large";
const FLOOD: &str = "HTTP/1.1 431 Request Header Fields Too Large";

/// The beginnings of requests with 100 MB and more.
const HUGE: &[&str] = &[
    "POST /api/v1/flows/greet/runs HTTP/1.1\r\n<HOST>\r\n<OWNER>\r\ncontent-type: application/json",
    "POST /api/v1/runs HTTP/1.1\r\n<HOST>\r\n<OWNER>\r\ncontent-type: application/json",
    "POST /api/v1/waits/<WAIT>/approve HTTP/1.1\r\n<HOST>\r\n<OWNER>\r\ncontent-type: application/json",
    "POST /local/waits/<WAIT>/approve HTTP/1.1\r\n<HOST>\r\ncontent-type: application/x-www-form-urlencoded",
    "POST /api/flows/paid/interfaces/live/github HTTP/1.1\r\n<HOST>\r\n<SIGNED>\r\ncontent-type: application/json",
    "POST /local/events/done HTTP/1.1\r\n<HOST>\r\ncontent-type: application/json",
    "POST /http/greet/x HTTP/1.1\r\n<HOST>\r\n<OWNER>\r\ncontent-type: application/json",
    "POST /mcp HTTP/1.1\r\n<HOST>\r\n<OWNER>\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream",
];

#[test]
fn requests_of_any_size_are_cut() {
    let target = Target::new();
    let before = target.state();
    let chunk = [b"100000\r\n", &[b' '; 0x10_0000][..], b"\r\n"].concat();
    for beginning in HUGE {
        let said = format!("{beginning}\r\ncontent-length: 100000000\r\n\r\n");
        assert_eq!(exchange(&target, &said, b"", 0), LARGE, "{said}");
        // All of it is sent, if the server lets us.
        assert_eq!(
            exchange(&target, &said, &[b' '; 100_000], 1_000),
            LARGE,
            "{said}"
        );
        let unsaid = format!("{beginning}\r\ntransfer-encoding: chunked\r\n\r\n");
        assert_eq!(exchange(&target, &unsaid, &chunk, 100), LARGE, "{unsaid}");
    }
    let line = format!("x-long: {}\r\n", "a".repeat(1 << 20));
    let floods: [(&str, &[u8], usize); 3] = [
        (
            "GET /api/v1/runs HTTP/1.1\r\n<HOST>\r\n<OWNER>\r\n",
            b"x: 1\r\n",
            1_000_000,
        ),
        (
            "GET /api/v1/runs HTTP/1.1\r\n<HOST>\r\n<OWNER>\r\n",
            line.as_bytes(),
            1,
        ),
        ("GET /api/v1/runs?text=", &[b'a'; 1 << 16], 100),
    ];
    for (beginning, rest, times) in floods {
        let answer = exchange(&target, beginning, rest, times);
        assert!(
            answer == FLOOD || answer == "HTTP/1.1 414 URI Too Long",
            "{beginning} {answer}"
        );
    }
    assert_eq!(target.state(), before);
}

#[test]
fn requests_that_pause_are_ended() {
    let target = Target::new();
    let before = target.state();
    let begun = Instant::now();
    let answers: Vec<(String, String)> = thread::scope(|scope| {
        // The rest does not come.
        let slow = |beginning: String| {
            let target = &target;
            scope.spawn(move || {
                let answer = exchange(target, &beginning, b"", 0);
                (beginning, answer)
            })
        };
        let bodies = HUGE
            .iter()
            .map(|it| slow(format!("{it}\r\ncontent-length: 20\r\n\r\n{{")));
        let chunks = HUGE.iter().map(|it| {
            slow(format!(
                "{it}\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{{\r\n"
            ))
        });
        let heads = HUGE.iter().map(|it| slow(format!("{it}\r\n")));
        let threads: Vec<_> = bodies.chain(chunks).chain(heads).collect();
        // Others are served meanwhile.
        assert_eq!(target.api.get("/healthz").status, 200);
        threads
            .into_iter()
            .map(|it| it.join().expect("an answer"))
            .collect()
    });
    for (beginning, answer) in answers {
        // An incomplete head has no answer: the connection is closed.
        let expected = match beginning.contains("\r\n\r\n") {
            true => "HTTP/1.1 408 Request Timeout",
            false => "",
        };
        assert_eq!(answer, expected, "{beginning}");
    }
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(target.state(), before);
}

#[test]
fn of_decisions_at_once_by_link_api_and_command_one_counts() {
    let target = Target::new();
    let start = Barrier::new(6);
    let wait = target.fill("<WAIT>");
    let counted: Vec<bool> = thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|number| {
                let (target, start, wait) = (&target, &start, &wait);
                scope.spawn(move || {
                    start.wait();
                    match number % 3 {
                        0 => {
                            target
                                .send(("POST /local/waits/<WAIT>/approve", &[FORM], DECIDE))
                                .status
                                == 303
                        }
                        1 => {
                            target
                                .send((
                                    "POST /api/v1/waits/<WAIT>/reject",
                                    &["<OWNER>", JSON],
                                    "{}",
                                ))
                                .status
                                == 200
                        }
                        _ => target.scratch.run(&["waits", "approve", wait]).code == Some(0),
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|it| it.join().expect("an answer"))
            .collect()
    });
    assert_eq!(counted.iter().filter(|it| **it).count(), 1, "{counted:?}");
    let run = target.fill("<RUN>");
    target.scratch.run(&["runs", "watch", &run]);
    let events = target
        .api
        .follow(&format!("/api/v1/runs/{run}/events"), None);
    let answered = events.filter(|event| event.name == "wait.answered").count();
    assert_eq!(answered, 1);
}
