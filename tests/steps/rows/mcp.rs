//! The rows of `tests/coverage/agent.tsv` about `:mcp`: adapters of a flow, and agents with their tools.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::{Expect, expect};
use serde_json::{Value as Json, json};

use super::llm_images::png;
use crate::agent::{calls, says};
use crate::mcp::{script, script_giving};
use crate::project::Project;
use crate::server::{Say, Server};

/// A project with scripted model responses, and a server with the tools `echo` and `write`.
struct Bench {
    project: Project,
    model: Server,
}

impl Bench {
    fn new(turns: Vec<Say>) -> Bench {
        let model = Server::start(turns);
        let settings = format!(
            "{{:connections {{:ai {{:backend :openai :base-url \"{}/v1\" :model \"m\" :auth {{:type :none}}}}
                              :fake {{:backend :mcp :command [\"sh\" \"server.sh\"]}}
                              :other {{:backend :mcp :command [\"no-such-program\"]}}
                              :db {{:backend :openai :command [\"sh\" \"server.sh\"]}}}}}}",
            model.url
        );
        let project = Project::with(&settings);
        project.write("server.sh", script().as_bytes());
        Bench { project, model }
    }

    /// Runs an agent with these adapters and these references.
    fn agent(&self, adapters: &str, references: &str) -> String {
        self.flow(
            adapters,
            &format!(
                "(let [it (flow/step :agent :a {{:connection :ai :objective \"Say hi.\" :tools {{:mode :execute :mcp {references}}}}})]
                   [(:content it) (mapv (juxt :name :success :result) (:tool-calls it))])"
            ),
        )
    }

    fn flow(&self, adapters: &str, body: &str) -> String {
        self.project
            .eval(&format!("{{:slug :f :mcp [{adapters}] :flow '{body}}}"))
    }

    /// Returns the names of the tools that were sent to the model.
    fn shown(&self) -> Vec<(String, Json)> {
        let tools = self.model.body(0)["tools"].clone();
        let tools = tools.as_array().cloned().unwrap_or_default();
        let tool = |tool: &Json| {
            let function = &tool["function"];
            let name = function["name"].as_str().expect("a name").to_owned();
            (name, function.clone())
        };
        tools.iter().map(tool).collect()
    }

    fn names(&self) -> Vec<String> {
        self.shown().into_iter().map(|(name, _)| name).collect()
    }

    /// Returns how often the server was started, and how often one of its tools was called.
    fn counts(&self) -> (usize, usize) {
        let lines = |file: &str| {
            let text = std::fs::read_to_string(self.project.path().join(file));
            text.map_or(0, |text| text.lines().count())
        };
        (lines("started.txt"), lines("calls.txt"))
    }
}

const ALL: &str =
    "{:id :f/all :connection :fake :transport :stdio :allow-tools [\"echo\" \"write\"]}";

fn echo_then(content: &str) -> Vec<Say> {
    vec![
        calls(&[("c1", "f_echo", "{\"message\":\"m\"}")]),
        says(content),
    ]
}

fn check(adapters: &str, references: &str, expected: Expect) {
    let bench = Bench::new(vec![says("Done.")]);
    expected.assert_eq(&bench.agent(adapters, references));
}

#[test]
fn tools_mcp() {
    let bench = Bench::new(echo_then("Done."));
    let found = bench.agent(ALL, "[:f/all]");
    assert_eq!(found, "[\"Done.\" [[\"f_echo\" true \"hi\"]]]");
    assert_eq!(bench.counts(), (1, 1));
    // The model receives the tool's result.
    let answer = &bench.model.body(1)["messages"];
    let last = answer
        .as_array()
        .and_then(|it| it.last())
        .expect("an answer");
    assert!(
        last["content"].as_str().is_some_and(|it| it.contains("hi")),
        "{last}"
    );
}

/// Images reach the model as images, other contents by name. Nothing is sent as Base64 text, and the limit on results
/// applies to all texts together.
#[test]
fn contents_of_a_tool() {
    let [image, other] = [png(4, 2), png(6, 2)].map(|it| STANDARD.encode(it));
    let long = "x".repeat(15_000);
    let content = json!([
        {"type": "text", "text": "Two:"},
        {"type": "image", "data": image, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "x://1", "blob": other, "mimeType": "image/png"}},
        {"type": "resource", "resource": {"uri": "x://2", "blob": image, "mimeType": "application/zip"}},
        {"type": "audio", "data": image, "mimeType": "audio/wav"},
        {"type": "text", "text": long},
        {"type": "text", "text": long},
    ]);
    for (model, shown) in [("gpt-4o", 2), ("gpt-3.5-turbo", 0)] {
        let bench = Bench::new(echo_then("Done."));
        let script = script_giving(&content.to_string());
        bench.project.write("server.sh", script.as_bytes());
        let body = format!(
            "(flow/step :agent :a {{:connection :ai :model \"{model}\" :objective \"Say hi.\" :tools {{:mode :execute :mcp [:f/all]}}}})"
        );
        let found = bench.flow(ALL, &format!("(:content {body})"));
        assert_eq!(found, "\"Done.\"");
        let messages = bench.model.body(1)["messages"].clone();
        let messages = messages.as_array().expect("messages");
        let result = messages.iter().find(|it| it["role"] == "tool");
        let text = result.expect("a result")["content"].as_str().expect("text");
        let bytes = png(4, 2).len();
        let lines = [
            "Two:".to_owned(),
            format!("[image 1: image/png, {bytes} bytes]"),
            format!("[image 2: x://1: image/png, {} bytes]", png(6, 2).len()),
            format!("[x://2: application/zip, {bytes} bytes: contents that are not shown]"),
            format!("[audio/wav, {bytes} bytes: contents that are not shown]"),
        ];
        for line in lines {
            assert!(text.contains(&line), "{line}: {}", &text[..800]);
        }
        assert!(!text.contains(&image), "no Base64");
        assert!(text.len() < 20_500, "{}", text.len());
        let last = &messages[messages.len() - 1];
        let all = last.to_string();
        assert_eq!(all.matches("data:image/png;base64,").count(), shown);
        if shown == 0 {
            let line =
                "[an image is not shown: `gpt-3.5-turbo` of `:openai` does not accept images";
            assert_eq!(all.matches(line).count(), 2, "{all}");
        }
    }
}

#[test]
fn envelope_mcp() {
    // An invalid call is reported to the model, and the server is not called.
    let bench = Bench::new(vec![
        calls(&[("c1", "f_echo", "{\"mesage\":7}")]),
        says("Sorry."),
    ]);
    let found = bench.agent(ALL, "[:f/all]");
    assert!(
        found.starts_with("[\"Sorry.\" [[\"f_echo\" false "),
        "{found}"
    );
    assert_eq!(bench.counts(), (1, 0));
    check(
        ALL,
        "[:f/al]",
        expect![
            "E0836 :tools :mcp 0: there is no MCP adapter or tool `:f/al` | did you mean `:f/all`?"
        ],
    );
}

#[test]
fn mcp_id() {
    let step = "(:content (flow/step :mcp :x {:adapter :f/all :tool \"echo\" :arguments {:message \"m\"}}))";
    let bench = Bench::new(vec![says("Done.")]);
    assert_eq!(bench.flow(ALL, step), "\"hi\"");
    let computed =
        "(let [config {:adapter :f/other :tool \"echo\"}] (flow/step :mcp :x (merge config {})))";
    expect!["E0830 the flow has no adapter `:f/other` | describe it in the flow: `:mcp [{:id :linear/issues :connection :linear-mcp :allow-tools [...]}]`"].assert_eq(&bench.flow(ALL, computed));
}

#[test]
fn mcp_connection() {
    let adapter = |connection: &str| ALL.replace(":fake", connection);
    check(
        &adapter(":db"),
        "[:f/all]",
        expect![
            "E0830 the connection `:db` is for `:openai`, not for a server of MCP | give it `:backend :mcp`"
        ],
    );
    check(
        &adapter(":other"),
        "[:f/all]",
        expect![
            "E0831 the command `no-such-program` of `:other` cannot be started: No such file or directory (os error 2) | check `:command` of the connection in flowstone.edn; a path in it starts at the project's folder"
        ],
    );
    check(
        &adapter(":nobody"),
        "[:f/all]",
        expect![[
            r#"E0750 there is no connection `:nobody` | describe it in flowstone.edn beside the flows: {:connections {:nobody {:base-url "https://..." :auth {:type :bearer :secret-ref :nobody-token}}}}"#
        ]],
    );
}

#[test]
fn mcp_transport() {
    // Without it, the server has a URL.
    let http = ALL.replace(":transport :stdio", "");
    check(
        &http,
        "[:f/all]",
        expect![
            "E0830 the connection `:fake` has no `:base-url` | it is a command: give the adapter `:f/all` `:transport :stdio`"
        ],
    );
    check(
        &ALL.replace(":stdio", ":streamable-http"),
        "[:f/all]",
        expect![
            "E0830 the connection `:fake` has no `:base-url` | it is a command: give the adapter `:f/all` `:transport :stdio`"
        ],
    );
}

#[test]
fn mcp_allow_tools() {
    let bench = Bench::new(vec![says("Done.")]);
    bench.agent(&ALL.replace("\"echo\" ", ""), "[:f/all]");
    assert_eq!(bench.names(), ["f_write"]);
    check(
        &ALL.replace("\"write\"", "\"wrte\""),
        "[:f/all]",
        expect!["E0830 the server of `:f/all` has no tool `wrte`"],
    );
}

#[test]
fn mcp_tool_prefix() {
    for (prefix, names) in [
        (":tool-prefix \"linear\"", ["linear_echo", "linear_write"]),
        (":tool-prefix \"\"", ["echo", "write"]),
        ("", ["f_echo", "f_write"]),
    ] {
        let bench = Bench::new(vec![says("Done.")]);
        bench.agent(
            &ALL.replace(":transport", &format!("{prefix} :transport")),
            "[:f/all]",
        );
        assert_eq!(bench.names(), names);
    }
}

#[test]
fn mcp_timeout_ms() {
    let bench = Bench::new(vec![says("Done.")]);
    // The server stops answering when this tool is called.
    let silent = script().replace("'\"tools/call\"'*)", "'\"tools/call\"'*) continue;");
    bench.project.write("server.sh", silent.as_bytes());
    let step = "(try (flow/step :mcp :x {:adapter :f/all :tool \"write\"}) (catch :default e (:kind (ex-data e))))";
    let short = ALL.replace(":transport", ":timeout-ms 250 :transport");
    assert_eq!(bench.flow(&short, step), ":timeout");
}

#[test]
fn mcp_tools() {
    // The definition is sufficient: the server is not started for it.
    let tools = ":tools [{:name \"echo\" :description \"Ours.\" :read-only? true :input-schema [:map [:message [:enum \"a\" \"b\"]]]}]";
    let adapter = ALL
        .replace(" \"write\"", "")
        .replace(":transport", &format!("{tools} :transport"));
    let bench = Bench::new(vec![says("Done.")]);
    bench.agent(&adapter, "[:f/all]");
    assert_eq!(bench.counts(), (0, 0));
    let [(name, function)] = &bench.shown()[..] else {
        panic!("one tool");
    };
    assert_eq!(name, "f_echo");
    assert_eq!(function["description"], "Ours.");
    assert_eq!(
        function["parameters"]["properties"]["message"]["enum"][1],
        "b"
    );
    // Without the list, the server is asked for its tools.
    let bench = Bench::new(vec![says("Done.")]);
    bench.agent(ALL, "[:f/all]");
    assert_eq!(bench.counts(), (1, 0));
    assert_eq!(bench.shown()[0].1["description"], "Says it again.");
}

#[test]
fn mcp_adapter_ref() {
    let bench = Bench::new(vec![says("Done.")]);
    bench.agent(ALL, "[:f/all]");
    assert_eq!(bench.names(), ["f_echo", "f_write"]);
    let open = "{:id :f/all :connection :fake :transport :stdio}";
    check(
        open,
        "[:f/all]",
        expect![[
            r#"E0836 :tools :mcp 0: `:f/all` does not name the tools that may be used | give the adapter `:allow-tools ["..."]`, or name one tool: `:f/tool_name`"#
        ]],
    );
}

#[test]
fn mcp_tool_ref() {
    let bench = Bench::new(vec![says("Done.")]);
    bench.agent(
        "{:id :f/all :connection :fake :transport :stdio}",
        "[:f/echo]",
    );
    assert_eq!(bench.names(), ["f_echo"]);
    let bench = Bench::new(vec![says("Done.")]);
    bench.agent(ALL, "[:f/write :f/all]");
    assert_eq!(bench.names(), ["f_write", "f_echo"]);
    check(
        ALL,
        "[:f/delete]",
        expect![
            "E0836 :tools :mcp 0: there is no MCP adapter or tool `:f/delete` | there are `:f/all`, `:f/echo`, `:f/write`"
        ],
    );
}
