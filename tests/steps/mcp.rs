//! `:mcp` over stdio, with valid and with broken servers. The servers are shell scripts with fixed responses, so that
//! nothing has to be installed.

use std::fs;
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use flowstone_engine::codec::encode;
use flowstone_engine::outcome::RunOutcome;

use crate::project::Project;

/// A server with the handshake of 2025: `CALL` is its reaction to a tool call, `START` what it does first.
const SERVER: &str = r#"
echo started >> started.txt
START
reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"server/discover"'*) DISCOVER;;
    *'"initialize"'*) INITIALIZE;;
    *'"tools/list"'*) LIST;;
    *'"tools/call"'*) echo "$line" >> calls.txt; CALL;;
    *'"notifications/cancelled"'*) echo "$line" >> cancelled.txt;;
  esac
done
"#;

const OLD: &str = r#"reply '"error":{"code":-32601,"message":"Method not found"}'"#;
const INITIALIZE: &str = r#"reply '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}'"#;
const NEW: &str = r#"reply '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'"#;
const LIST: &str = r#"reply '"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]},"annotations":{"readOnlyHint":true}},{"name":"write","inputSchema":{"type":"object"}}]}'"#;
const HI: &str = r#"reply '"result":{"content":[{"type":"text","text":"hi"}]}'"#;

#[derive(Clone, Copy)]
struct Fake {
    start: &'static str,
    discover: &'static str,
    initialize: &'static str,
    list: &'static str,
    call: &'static str,
}

const FAKE: Fake = Fake {
    start: "",
    discover: OLD,
    initialize: INITIALIZE,
    list: LIST,
    call: HI,
};

/// Returns the script of a valid server whose tools return `hi`.
pub fn script() -> String {
    FAKE.script()
}

/// Returns the script of a server whose tools return this result, as JSON without single quotes.
pub fn script_giving(content: &str) -> String {
    let call = format!(
        r#"reply '"result":{{"content":{content},"structuredContent":{{"content":{content}}}}}'"#
    );
    FAKE.script().replace(HI, &call)
}

impl Fake {
    fn script(self) -> String {
        SERVER
            .replace("START", self.start)
            .replace("DISCOVER", self.discover)
            .replace("INITIALIZE", self.initialize)
            .replace("LIST", self.list)
            .replace("CALL", self.call)
    }

    fn project(self) -> Project {
        let script = self.script();
        Project::with_files(&[
            ("server.sh", &script),
            (
                "flowstone.edn",
                "{:connections {:fake {:backend :mcp :command [\"sh\" \"server.sh\"]}}}",
            ),
        ])
    }
}

/// Runs a body in a flow whose adapter is `:f/all`, and returns its result as text.
pub fn run(project: &Project, body: &str) -> String {
    run_with(project, "", body)
}

fn run_with(project: &Project, adapter: &str, body: &str) -> String {
    let flow = format!(
        "{{:slug :f :concurrency {{:type :singleton :on-new-version :coexist}}
          :mcp [{{:id :f/all :connection :fake :transport :stdio {adapter}}}] :flow '{body}}}"
    );
    let outcome = project.run(&flow).expect("the run ends");
    let text = match outcome {
        RunOutcome::Completed(value) => encode(&value).expect("a value"),
        RunOutcome::Failed(failure) => {
            let exception = failure.exception;
            let hints = exception.hints.iter().map(|hint| format!("\n  {hint}"));
            let hints: String = hints.collect();
            format!("{} {}{hints}", exception.code, exception.display_text())
        }
        other => format!("{other:?}"),
    };
    text.replace(&project.path().display().to_string(), "ROOT")
}

const ECHO: &str =
    "(flow/step :mcp :echo {:adapter :f/all :tool \"echo\" :arguments {:message \"m\"}})";

fn lines(project: &Project, file: &str) -> usize {
    fs::read_to_string(project.path().join(file)).map_or(0, |text| text.lines().count())
}

/// Waits until a file has `count` lines.
fn wait_for(project: &Project, file: &str, count: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    while lines(project, file) < count {
        assert!(Instant::now() < until, "{file} does not come");
        std::thread::yield_now();
    }
}

/// Calls a server's tool that does what `call` says.
fn check_call(call: &'static str, expected: Expect) {
    let project = Fake { call, ..FAKE }.project();
    expected.assert_eq(&run(&project, ECHO));
}

#[test]
fn the_result_of_a_tool_is_a_value() {
    check_call(HI, expect![[r#"{:content "hi"}"#]]);
    check_call(
        r#"reply '"result":{"content":[{"type":"text","text":"{}"}],"structuredContent":{"temp":21.5,"at":["a","b"]}}'"#,
        expect![[r#"{:content {:temp 21.5 :at ["a" "b"]}}"#]],
    );
    check_call(
        r#"reply '"result":{"content":[{"type":"text","text":"a"},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"resource","resource":{"uri":"x://1","text":"t","mimeType":"text/plain"}},{"type":"resource","resource":{"uri":"x://2","blob":"aGk="}},{"type":"resource_link","uri":"x://3","name":"three"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"}]}'"#,
        expect![[
            r#"{:content "a" :parts [{:type :text :text "a"} {:type :image :url "data:image/png;base64,aGk="} {:type :resource :uri "x://1" :mime-type "text/plain" :text "t"} {:type :resource :uri "x://2" :url "data:application/octet-stream;base64,aGk="} {:type :resource-link :uri "x://3" :name "three"} {:type :audio :url "data:audio/wav;base64,aGk="}]}"#
        ]],
    );
    check_call(
        r#"reply '"result":{"content":[]}'"#,
        expect![[r#"{:content ""}"#]],
    );
}

#[test]
fn the_newer_revision_is_used_if_the_server_supports_it() {
    let project = Fake {
        discover: NEW,
        initialize: "exit 9",
        call: r#"reply '"result":{"resultType":"complete","content":[{"type":"text","text":"new"}]}'"#,
        ..FAKE
    }
    .project();
    expect![[r#"{:content "new"}"#]].assert_eq(&run(&project, ECHO));
    let asked = fs::read_to_string(project.path().join("calls.txt")).expect("a call");
    assert!(
        asked.contains("\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""),
        "{asked}"
    );
}

#[test]
fn the_error_of_a_tool_has_its_own_code() {
    check_call(
        r#"reply '"result":{"isError":true,"content":[{"type":"text","text":"disk full"}]}'"#,
        expect!["E0833 the tool `echo` failed: disk full"],
    );
    check_call(
        r#"reply '"result":{"isError":true,"content":[]}'"#,
        expect!["E0833 the tool `echo` failed: no reason given"],
    );
    check_call(
        r#"reply '"error":{"code":-32602,"message":"no team","data":{"field":"team"}}'"#,
        expect!["E0833 the tool `echo` failed: no team (code -32602)"],
    );
    let project = Fake {
        call: r#"reply '"result":{"isError":true,"content":[{"type":"text","text":"disk full"}]}'"#,
        ..FAKE
    }
    .project();
    let caught = run(
        &project,
        &format!(
            "(try {ECHO} (catch :default e (select-keys (ex-data e) [:kind :code :tool :result])))"
        ),
    );
    expect![[r#"{:kind :tool-error :code "E0833" :tool "echo" :result {:content "disk full"}}"#]]
        .assert_eq(&caught);
}

#[test]
fn a_hostile_server_does_no_harm() {
    // Lines that are not messages are skipped.
    check_call(
        r#"echo 'Listening on port 3000'; echo '{"half'; echo '{"jsonrpc":"2.0","method":"notifications/strange"}'; printf '\n'; reply '"result":{"content":[{"type":"text","text":"hi"}]}'"#,
        expect![[r#"{:content "hi"}"#]],
    );
    check_call(
        "echo 'segmentation fault' >&2; exit 11",
        expect![[r#"
        E0832 `:fake` is gone in the middle of `echo`; its error output: segmentation fault
          whether the tool did its work is not known; `:retry` tries again, with a new connection"#]],
    );
    check_call(
        "head -c 17000000 /dev/zero | tr '\\0' 'x'; reply '\"result\":{}'",
        expect![[r#"
            E0832 an answer of `:fake` is larger than 16777216 bytes
              ask the tool for less"#]],
    );
    check_call(
        r#"reply '"result":{"tools":[]}'"#,
        expect!["E0832 `:fake` breaks the protocol: it did not answer with a tool's result"],
    );
    check_call(
        r#"reply '"result":{"resultType":"input_required","inputRequests":{},"requestState":"s"}'"#,
        expect![[r#"
            E0832 the tool `echo` of `:fake` asks for more input, which is not available here
              pass everything that the tool needs in `:arguments`, or let the step ask a person: `:questions :ask`"#]],
    );
    check_call(
        r#"printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{}}}}\n'; IFS= read -r answer; echo "$answer" >> answers.txt; reply '"result":{"isError":true,"content":[{"type":"text","text":"declined"}]}'"#,
        expect![[r#"
            E0832 the tool `echo` of `:fake` asks for an answer of a person, which is not available here
              pass everything that the tool needs in `:arguments`, or let the step ask a person: `:questions :ask`"#]],
    );
}

#[test]
fn unrequested_responses_are_skipped_until_the_timeout() {
    for call in [
        r#"id=999; reply '"result":{"content":[]}'"#,
        r#"printf '{"jsonrpc":"2.0","error":{"code":-32600,"message":"?"}}\n'"#,
        ":",
    ] {
        let project = Fake { call, ..FAKE }.project();
        let text = run_with(&project, ":timeout-ms 400", ECHO);
        let told = "E0832 `:fake` did not answer in the middle of `echo` within 0.4 s\n  raise `:timeout-ms` of the adapter, or `:timeout` of the step";
        assert_eq!(text, told);
        // The server receives the cancellation, and the connection remains usable.
        wait_for(&project, "cancelled.txt", 1);
        assert_eq!(lines(&project, "started.txt"), 1);
    }
}

#[test]
fn a_failed_handshake_is_reported_with_the_output_of_the_server() {
    let cases = [
        (
            Fake {
                start: "echo 'no such folder' >&2; exit 3",
                ..FAKE
            },
            expect![[r#"
                E0831 `:fake` does not follow the MCP protocol: it ended before it answered (exit status: 3); its error output: no such folder
                  check `:base-url` of the connection and `:path` of the adapter, or `:command`"#]],
        ),
        (
            Fake {
                start: "echo 'Usage: server DIR'; read -r line; exit 0",
                ..FAKE
            },
            expect![[r#"
                E0831 `:fake` does not follow the MCP protocol: it ended before it answered (exit status: 0); its output has a line that is not a message: `Usage: server DIR`
                  check `:base-url` of the connection and `:path` of the adapter, or `:command`"#]],
        ),
        (
            Fake {
                initialize: r#"reply '"error":{"code":-32000,"message":"license expired"}'"#,
                ..FAKE
            },
            expect![[r#"
                E0831 `:fake` does not follow the MCP protocol: it refuses the handshake: license expired (code -32000)
                  check `:base-url` of the connection and `:path` of the adapter, or `:command`"#]],
        ),
        (
            Fake {
                initialize: r#"reply '"result":{"tools":[]}'"#,
                ..FAKE
            },
            expect![[r#"
                E0831 `:fake` does not follow the MCP protocol: its answer to the handshake is invalid
                  check `:base-url` of the connection and `:path` of the adapter, or `:command`"#]],
        ),
        (
            Fake {
                discover: r#"reply '"result":{"resultType":"complete","supportedVersions":["2031-01-01"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}'"#,
                initialize: "exit 1",
                ..FAKE
            },
            expect![[r#"
                E0831 `:fake` does not follow the MCP protocol: it ended before it answered (exit status: 1)
                  check `:base-url` of the connection and `:path` of the adapter, or `:command`"#]],
        ),
    ];
    for (fake, expected) in cases {
        let project = fake.project();
        expected.assert_eq(&run(&project, ECHO));
    }
}

#[test]
fn a_server_that_exits_on_the_newer_handshake_gets_the_older_one() {
    let project = Fake {
        discover: "exit 1",
        ..FAKE
    }
    .project();
    expect![[r#"{:content "hi"}"#]].assert_eq(&run(&project, ECHO));
    assert_eq!(lines(&project, "started.txt"), 2);
}

#[test]
fn a_connection_is_reused_and_a_broken_one_is_reopened() {
    let project = Fake {
        call: r#"case $line in *'"die"'*) exit 1;; *) reply '"result":{"content":[{"type":"text","text":"hi"}]}';; esac"#,
        ..FAKE
    }
    .project();
    let body = "(let [say (fn [it] (:content (flow/step :mcp :echo {:adapter :f/all :tool \"echo\" :arguments {:message it}})))]
                  [(say \"one\") (say \"two\")
                   (try (say \"die\") (catch :default e (ex-message e)))
                   (say \"three\")])";
    expect![[r#"["hi" "hi" "`:fake` is gone in the middle of `echo`" "hi"]"#]]
        .assert_eq(&run(&project, body));
    assert_eq!(lines(&project, "started.txt"), 2);
    assert_eq!(lines(&project, "calls.txt"), 4);
}

#[test]
fn concurrent_calls_share_a_connection() {
    let project = FAKE.project();
    let body = "(flow/pmap (fn [n] (:content (flow/step :mcp :echo {:adapter :f/all :tool \"echo\" :arguments {:message (str n)}}))) (range 12))";
    assert_eq!(run(&project, body).matches("hi").count(), 12);
    assert_eq!(lines(&project, "started.txt"), 1);
}

#[test]
fn arguments_are_validated_before_the_call() {
    let project = FAKE.project();
    let wrong = "(flow/step :mcp :echo {:adapter :f/all :tool \"echo\" :arguments {:mesage 7}})";
    expect![[r#"
        E0834 the arguments of the tool `echo` do not fit: "message" is a required property
          the tool was not called"#]]
    .assert_eq(&run(&project, wrong));
    let wrong = "(flow/step :mcp :echo {:adapter :f/all :tool \"echo\" :arguments {:message 7}})";
    let own = ":tools [{:name \"echo\" :input-schema [:map [:message [:enum \"a\" \"b\"]]]}]";
    expect![[r#"
        E0834 the arguments of the tool `echo` do not fit: /message: 7 is not of type "string"; /message: 7 is not one of "a" or "b"
          the tool was not called"#]].assert_eq(&run_with(&project, own, wrong));
    assert_eq!(lines(&project, "calls.txt"), 0);
}

#[test]
fn tools_are_listed_as_the_adapter_allows_them() {
    let project = FAKE.project();
    let body = "(flow/step :mcp :tools {:adapter :f/all :op :list-tools})";
    expect![[r#"{:tools [{:name "echo" :description "Says it again." :input-schema {:type "object" :properties {:message {:type "string"}} :required ["message"]} :read-only? true} {:name "write" :description "" :input-schema {:type "object"} :read-only? false}]}"#]].assert_eq(&run(&project, body));
    expect![[r#"{:tools [{:name "write" :description "" :input-schema {:type "object"} :read-only? true}]}"#]].assert_eq(&run_with(
        &project,
        ":allow-tools [\"write\"] :tools [{:name \"write\" :read-only? true}]",
        body,
    ));
}

#[test]
fn an_endless_list_of_tools_is_cut_off() {
    let list = r#"reply '"result":{"tools":[],"nextCursor":"again"}'"#;
    let project = Fake { list, ..FAKE }.project();
    expect!["E0832 `:fake` breaks the protocol: its list of tools has no end"]
        .assert_eq(&run(&project, ECHO));
    let list = r#"reply '"result":{"tools":{"echo":1}}'"#;
    let project = Fake { list, ..FAKE }.project();
    expect!["E0832 `:fake` breaks the protocol: it sent an invalid list of tools"]
        .assert_eq(&run(&project, ECHO));
}

#[test]
fn a_changed_list_of_tools_is_requested_again() {
    let project = Fake {
        list: r#"if [ -f more ]; then reply '"result":{"tools":[{"name":"late","inputSchema":{"type":"object"}}]}'; else reply '"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}'; fi"#,
        call: r#"touch more; printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'; reply '"result":{"content":[{"type":"text","text":"hi"}]}'"#,
        ..FAKE
    }
    .project();
    let body = "(let [say (fn [it] (try (:content (flow/step :mcp :say {:adapter :f/all :tool it})) (catch :default e (ex-message e))))]
                  [(say \"late\") (say \"echo\") (say \"late\") (say \"echo\")])";
    expect![[r#"["`:fake` has no tool `late`" "hi" "hi" "`:fake` has no tool `echo`"]"#]]
        .assert_eq(&run(&project, body));
}

#[test]
fn missing_adapters_and_tools_are_named() {
    let project = FAKE.project();
    let adapter = ":allow-tools [\"echo\"]";
    for (config, expected) in [
        (
            "{:adapter :f/al :tool \"echo\"}",
            expect![[r#"
            E0830 the flow has no adapter `:f/al`
              did you mean `:f/all`?
              describe it in the flow: `:mcp [{:id :linear/issues :connection :linear-mcp :allow-tools [...]}]`"#]],
        ),
        (
            "{:adapter :f/all :tool \"ecko\"}",
            expect![[r#"
            E0830 the adapter `:f/all` does not allow the tool `ecko`
              did you mean `echo`?
              name it in `:allow-tools` of `:f/all`"#]],
        ),
        (
            "{:adapter :f/all}",
            expect![[r#"
            E0830 `:op :call` needs `:tool`
              `:tool`: The name of the tool on the server."#]],
        ),
        (
            "{:adapter :f/all :op :list-tools :tool \"echo\"}",
            expect![[r#"
                E0830 `:tool` does not apply to `:op :list-tools`
                  it takes `:adapter` `:headers`"#]],
        ),
    ] {
        // Computed, so that the error comes from the step and not from `check`.
        let body = format!("(let [config {config}] (flow/step :mcp :x (merge config {{}})))");
        expected.assert_eq(&run_with(&project, adapter, &body));
    }
    let body = "(flow/step :mcp :x {:adapter :f/all :tool \"ecko\" :arguments {:message \"m\"}})";
    expect![[r#"
        E0830 `:fake` has no tool `ecko`
          did you mean `echo`?"#]]
    .assert_eq(&run(&project, body));
}

#[test]
fn a_server_sees_its_own_environment_only() {
    let project = Project::with_secrets(
        "{:secrets {:token {:env \"TOKEN\"}}
          :connections {:fake {:backend :mcp :cwd \"sub\" :command [\"sh\" \"../server.sh\"]
                               :env {\"API_TOKEN\" {:secret-ref :token} :LEVEL \"debug\" \"COUNT\" 3}}}}",
        &[("token", "s3cret-token")],
    );
    let script = SERVER
        .replace(
            "START",
            "export -p > env.txt; echo \"token $API_TOKEN\" >&2",
        )
        .replace("DISCOVER", OLD)
        .replace("INITIALIZE", INITIALIZE)
        .replace("LIST", LIST)
        .replace("CALL", "exit 1");
    project.write("server.sh", script.as_bytes());
    project.write("sub/.keep", b"");
    let text = run(&project, ECHO);
    // The server prints its secret, which the run's record does not contain.
    expect![[r#"
        E0832 `:fake` is gone in the middle of `echo`; its error output: token [secret]
          whether the tool did its work is not known; `:retry` tries again, with a new connection"#]].assert_eq(&text);
    assert!(!project.everything_kept().contains("s3cret-token"));
    let env = fs::read_to_string(project.path().join("sub/env.txt")).expect("what it saw");
    assert!(
        env.contains("API_TOKEN='s3cret-token'") || env.contains("API_TOKEN=\"s3cret-token\""),
        "{env}"
    );
    assert!(
        env.contains("LEVEL") && env.contains("COUNT") && env.contains("PATH"),
        "{env}"
    );
    // Cargo sets this variable for tests.
    assert!(!env.contains("CARGO_MANIFEST_DIR"), "{env}");
}

#[test]
fn invalid_connections_are_reported() {
    let cases = [
        (
            "{}",
            expect![[r#"
            E0750 there is no connection `:fake`
              describe it in flowstone.edn beside the flows: {:connections {:fake {:base-url "https://..." :auth {:type :bearer :secret-ref :fake-token}}}}"#]],
        ),
        (
            "{:connections {:fake {:backend :mcp :base-url \"http://127.0.0.1:1\"}}}",
            expect![[r#"
                E0830 no command is set for the connection `:fake` in flowstone.edn
                  as in `{:connections {:fake {:backend :mcp :command ["node" "server.js" "."]}}}`
                  a flow cannot set it: a flow from elsewhere must not start programs"#]],
        ),
        (
            "{:connections {:fake {:backend :openai :command [\"sh\"]}}}",
            expect![[r#"
                E0830 the connection `:fake` is for `:openai`, not for a server of MCP
                  give it `:backend :mcp`"#]],
        ),
        (
            "{:connections {:fake {:backend :mcp :command \"sh server.sh\"}}}",
            expect![[r#"
                E0830 `flowstone.edn :connections :fake :command` is a vector of strings
                  the program and each of its arguments, as in `["node" "server.js" "."]`; no shell reads them"#]],
        ),
        (
            "{:connections {:fake {:backend :mcp :command []}}}",
            expect![[r#"
                E0830 `flowstone.edn :connections :fake :command` is a vector of strings
                  the program and each of its arguments, as in `["node" "server.js" "."]`; no shell reads them"#]],
        ),
        (
            "{:connections {:fake {:backend :mcp :command [\"./no-such-program\"]}}}",
            expect![[r#"
                E0831 the command `ROOT/./no-such-program` of `:fake` cannot be started: No such file or directory (os error 2)
                  check `:command` of the connection in flowstone.edn; a path in it starts at the project's folder"#]],
        ),
        (
            "{:connections {:fake {:backend :mcp :command [\"sh\"] :cwd \"nowhere\"}}}",
            expect![
                "E0830 `flowstone.edn :connections :fake :cwd`: there is no folder ROOT/nowhere"
            ],
        ),
        (
            "{:connections {:fake {:backend :mcp :command [\"sh\"] :env {\"A\" {:secret-ref :missing}}}}}",
            expect![[r#"
                E0752 the secret `missing`, which `:fake` needs, is not set
                  set MISSING in the environment, or in `.env` beside the flows
                  or say where it is in flowstone.edn: {:secrets {:missing {:env "..."}}}"#]],
        ),
        (
            "{:connections {:fake {:backend :mcp :command [\"sh\"] :env {\"A\" [1]}}}}",
            expect![
                "E0830 `flowstone.edn :connections :fake :env A` is a string or `{:secret-ref :name}`, not a vector"
            ],
        ),
    ];
    for (settings, expected) in cases {
        let project = Project::with(settings);
        expected.assert_eq(&run(&project, ECHO));
    }
}
