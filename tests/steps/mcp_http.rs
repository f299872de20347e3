//! `:mcp` over HTTP: a local server that answers each message as scripted.

use std::net::TcpListener;

use expect_test::{Expect, expect};
use flowstone_engine::codec::encode;
use flowstone_engine::outcome::RunOutcome;

use crate::project::Project;
use crate::test_server::{Answer, Request, Server, event_stream, reply};

/// The response of a server to one message of a method.
#[derive(Clone, Copy)]
enum Say {
    /// A JSON-RPC response with this result, as JSON.
    Json(&'static str),
    /// The same response as an event of a stream.
    Event(&'static str),
    /// A raw HTTP response: status line with headers, and a body.
    Http(&'static str, &'static str),
    /// The beginning of a stream; then the connection closes.
    CutOff,
    /// A response that is larger than the limit.
    Huge,
}

const OLD: Say = Say::Json(r#""error":{"code":-32601,"message":"Method not found"}"#);
const INITIALIZE: Say = Say::Json(
    r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}"#,
);
const NEW: Say = Say::Json(
    r#""result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#,
);
const LIST: Say = Say::Json(
    r#""result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
);
const HI: Say =
    Say::Json(r#""result":{"resultType":"complete","content":[{"type":"text","text":"hi"}]}"#);

#[derive(Clone, Copy)]
struct Fake {
    discover: Say,
    initialize: Say,
    call: Say,
}

const FAKE: Fake = Fake {
    discover: OLD,
    initialize: INITIALIZE,
    call: HI,
};

impl Fake {
    fn start(self) -> Server {
        Server::start(move |request, _| self.answer(request))
    }

    fn answer(self, request: &Request) -> Answer {
        let message: serde_json::Value = serde_json::from_str(&request.body).unwrap_or_default();
        let say = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => self.discover,
            "initialize" => self.initialize,
            "tools/list" => LIST,
            "tools/call" => self.call,
            _ if request.method == "POST" => Say::Http("202 Accepted", ""),
            _ => Say::Http("405 Method Not Allowed", ""),
        };
        let json = |inner: &str| format!(r#"{{"jsonrpc":"2.0","id":{},{inner}}}"#, message["id"]);
        match say {
            Say::Json(inner) => {
                let headers = ["content-type: application/json", "mcp-session-id: s1"];
                reply("200 OK", &headers, json(inner))
            }
            Say::Event(inner) => {
                let text = format!(": hello\n\nevent: message\ndata: {}\n\n", json(inner));
                Answer::Raw(event_stream(&text))
            }
            Say::Http(head, body) => reply(head, &[], body),
            Say::CutOff => Answer::Raw(event_stream("event: message\ndata: {\"jsonrpc\":")),
            Say::Huge => {
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n\"";
                Answer::Endless(head.into(), b"x".to_vec())
            }
        }
    }
}

/// Runs a flow that calls a tool of a server, and returns its result as text.
fn run(base: &str, settings: &str) -> (Project, String) {
    run_with(base, settings, "")
}

/// As [`run`], with further fields of the step.
fn run_with(base: &str, settings: &str, fields: &str) -> (Project, String) {
    let settings = format!(
        "{{:http {{:proxy false}} :connections {{:fake {{:backend :mcp :base-url \"{base}\" {settings}}}}}}}"
    );
    let project = Project::with_secrets(&settings, &[("fake-token", "s3cret-token")]);
    let flow = format!(
        "{{:slug :f :concurrency {{:type :singleton :on-new-version :coexist}}
        :mcp [{{:id :f/all :connection :fake :path \"/mcp\" :timeout-ms 20000}}]
        :flow '(flow/step :mcp :echo {{:adapter :f/all :tool \"echo\" {fields}}})}}"
    );
    let text = match project.run(&flow).expect("the run ends") {
        RunOutcome::Completed(value) => encode(&value).expect("a value"),
        RunOutcome::Failed(failure) => {
            let exception = failure.exception;
            let hints = exception.hints.iter().map(|hint| format!("\n  {hint}"));
            let hints: String = hints.collect();
            format!("{} {}{hints}", exception.code, exception.display_text())
        }
        other => format!("{other:?}"),
    };
    (project, text)
}

fn check(fake: Fake, expected: Expect) {
    let server = fake.start();
    let (_project, text) = run(&server.url("/base"), "");
    expected.assert_eq(&text);
}

#[test]
fn both_revisions_and_both_kinds_of_responses_work() {
    check(FAKE, expect![[r#"{:content "hi"}"#]]);
    check(
        Fake {
            discover: NEW,
            initialize: Say::Http("500 No", ""),
            ..FAKE
        },
        expect![[r#"{:content "hi"}"#]],
    );
    let event =
        r#""result":{"resultType":"complete","content":[{"type":"text","text":"streamed"}]}"#;
    check(
        Fake {
            call: Say::Event(event),
            ..FAKE
        },
        expect![[r#"{:content "streamed"}"#]],
    );
    check(
        Fake {
            discover: NEW,
            call: Say::Event(event),
            ..FAKE
        },
        expect![[r#"{:content "streamed"}"#]],
    );
    // An older server that does not know the method.
    let unknown = Say::Http("404 Not Found\r\ncontent-type: text/plain", "no such thing");
    check(
        Fake {
            discover: unknown,
            ..FAKE
        },
        expect![[r#"{:content "hi"}"#]],
    );
}

#[test]
fn credentials_are_sent_and_not_recorded() {
    let server = FAKE.start();
    let base = server.url("");
    let (project, text) = run(
        &base,
        ":headers {\"x-team\" \"blue\"} :auth {:type :bearer :secret-ref :fake-token}",
    );
    assert_eq!(text, "{:content \"hi\"}");
    let requests = server.requests();
    for request in &requests {
        assert_eq!(request.header("authorization"), Some("Bearer s3cret-token"));
        assert_eq!(request.header("x-team"), Some("blue"));
        assert_eq!(request.path, "/mcp");
    }
    let call = requests
        .iter()
        .find(|request| request.body.contains("tools/call"))
        .expect("the call");
    assert_eq!(call.header("mcp-session-id"), Some("s1"));
    assert!(!project.everything_kept().contains("s3cret-token"));
}

#[test]
fn headers_of_a_step_come_after_those_of_its_connection() {
    let server = FAKE.start();
    let settings = ":headers {\"x-team\" \"blue\" \"x-other\" \"kept\"}";
    let fields = ":headers {\"X-Team\" \"red\"}";
    let (_project, text) = run_with(&server.url(""), settings, fields);
    assert_eq!(text, "{:content \"hi\"}");
    let requests = server.requests();
    let call = requests.iter().find(|it| it.body.contains("tools/call"));
    let call = call.expect("the call");
    assert_eq!(
        (call.header("x-team"), call.header("x-other")),
        (Some("red"), Some("kept"))
    );
    for wrong in [
        r#"{"a b" "c"}"#,
        r#"{"x" "a\nb: c"}"#,
        r#"{"mcp-session-id" "s2"}"#,
        r#"{"x" ""}"#,
    ] {
        let fields = format!(":headers {wrong}");
        let (_project, text) = run_with(&server.url(""), "", &fields);
        assert!(text.starts_with("E0830"), "{wrong}: {text}");
    }
}

#[test]
fn a_server_that_refuses_or_does_not_speak_mcp_is_reported() {
    let all = |say| Fake {
        discover: say,
        initialize: say,
        call: say,
    };
    check(
        all(Say::Http(
            "401 Unauthorized\r\nwww-authenticate: Bearer realm=\"x\"",
            "",
        )),
        expect![[r#"
            E0831 `:fake` denies access: it wants Bearer realm="x"
              give the connection an `:auth`, and check that its secret is set and valid"#]],
    );
    check(
        all(Say::Http("403 Forbidden", "no")),
        expect![[r#"
            E0831 `:fake` denies access: status 403
              give the connection an `:auth`, and check that its secret is set and valid"#]],
    );
    check(
        all(Say::Http(
            "200 OK\r\ncontent-type: text/html",
            "<h1>Hello</h1>",
        )),
        expect![[r#"
            E0831 `:fake` does not follow the MCP protocol: its answer is text/html, not JSON
              check `:base-url` of the connection and `:path` of the adapter, or `:command`"#]],
    );
    check(
        all(Say::Http(
            "200 OK\r\ncontent-type: application/json",
            "{\"half\":",
        )),
        expect![[r#"
            E0831 `:fake` does not follow the MCP protocol: it answers a line that is not a message: EOF while parsing a value at line 1 column 8: {"half":
              check `:base-url` of the connection and `:path` of the adapter, or `:command`"#]],
    );
    // The redirect is not followed.
    check(
        all(Say::Http(
            "302 Found\r\nlocation: http://169.254.169.254/",
            "",
        )),
        expect![[r#"
            E0831 `:fake` does not follow the MCP protocol: it answers HTTP 302 Found
              check `:base-url` of the connection and `:path` of the adapter, or `:command`"#]],
    );
}

#[test]
fn a_failed_call_reports_its_cause() {
    let call = |call| Fake { call, ..FAKE };
    check(
        call(Say::Http("429 Too Many Requests\r\nretry-after: 7", "")),
        expect!["E0832 `:fake` answers with status 429"],
    );
    check(
        call(Say::Http("503 Service Unavailable", "")),
        expect!["E0832 `:fake` answers with status 503"],
    );
    check(
        call(Say::Http("200 OK\r\ncontent-type: application/json", "[1")),
        expect![
            "E0832 `:fake` breaks the protocol: it answers a line that is not a message: EOF while parsing a list at line 1 column 2: [1"
        ],
    );
    check(
        call(Say::Json(
            r#""result":{"isError":true,"content":[{"type":"text","text":"no"}]}"#,
        )),
        expect!["E0833 the tool `echo` failed: no"],
    );
    check(
        call(Say::Huge),
        expect![[r#"
        E0832 an answer of `:fake` is larger than 16777216 bytes
          ask the tool for less"#]],
    );
    check(
        call(Say::CutOff),
        expect![[r#"
        E0832 `:fake` is gone in the middle of `echo`
          whether the tool did its work is not known; `:retry` tries again, with a new connection"#]],
    );
}

#[test]
fn unreachable_and_forbidden_addresses_are_reported() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let (_project, text) = run(&format!("http://{address}"), "");
    assert!(text.starts_with("E0732 "), "{text}");
    let (_project, text) = run("http://169.254.169.254/latest", "");
    expect![[r#"
        E0731 169.254.169.254 is a link-local or metadata address, which is refused
          if this is intended, allow it in flowstone.edn, `:allow {:net ["169.254.169.254"]}`, and set `:client-opts {:allow-link-local true}` on the step"#]]
    .assert_eq(&text);
    let (_project, text) = run("ftp://127.0.0.1/", "");
    expect![[r#"
        E0730 `ftp://127.0.0.1/mcp` is not a valid address: `ftp:` is not HTTP
          an address looks like https://host/path"#]]
    .assert_eq(&text);
}
