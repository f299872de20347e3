//! The playbook of the build kit: one text through every door, and a client that follows it.

use flowstone_fronts::kit::{catalog, playbook};
use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;
use crate::server::{Answer, Server};

const MODEL: &str = r#":connections {:ai {:backend :scripted :models ["test/small"] :script {:turns ["Three issues are new."]}}}"#;

/// Settings that allow everything that the playbook calls.
fn settings() -> String {
    settings_with(MODEL)
}

fn settings_with(connections: &str) -> String {
    let tools = catalog::TOOLS.iter().filter(|tool| tool.default_on);
    let allowed: Vec<String> = tools.map(|tool| format!(":{} :allow", tool.name)).collect();
    let allowed = allowed.join(" ");
    format!("{{:allow {{:net [\"127.0.0.1\"]}} :kit {{:permissions {{{allowed}}}}} {connections}}}")
}

/// A client of the kit's MCP server for the flow `digest`.
struct Client<'a> {
    api: &'a Api,
    session: Option<String>,
    /// What the first answer said.
    instructions: String,
    calls: Vec<String>,
}

impl<'a> Client<'a> {
    fn begin(api: &'a Api) -> Client<'a> {
        let mut client = Client {
            api,
            session: None,
            instructions: String::new(),
            calls: Vec::new(),
        };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let reply = client.send("initialize", &params);
        assert_eq!(reply.status, 200, "{reply:?}");
        client.session = reply.header("mcp-session-id").map(str::to_owned);
        let answer = reply.json();
        let text = answer["result"]["instructions"].as_str();
        client.instructions = text.expect("instructions").to_owned();
        client
    }

    fn send(&self, method: &str, params: &Value) -> crate::api::Reply {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let token = format!("authorization: Bearer {}", self.api.token);
        let session = self
            .session
            .as_ref()
            .map(|id| format!("mcp-session-id: {id}"));
        let mut headers = vec![&*token, "content-type: application/json"];
        headers.extend(session.as_deref());
        self.api
            .request("POST /mcp/kit/digest", &headers, &body.to_string())
    }

    #[track_caller]
    fn ask(&self, method: &str, params: &Value) -> Value {
        let answer = self.send(method, params).json();
        assert!(answer["result"].is_object(), "{method} {answer}");
        answer["result"].clone()
    }

    /// Calls a tool, which must not fail.
    #[track_caller]
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.calls.push(name.to_owned());
        let answer = self.ask("tools/call", &json!({"name": name, "arguments": arguments}));
        assert_eq!(answer["isError"], false, "{name} {answer}");
        answer["structuredContent"].clone()
    }
}

#[test]
fn the_playbook_is_the_same_at_every_door() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", settings());
    let printed = scratch.run(&["skill"]);
    assert_eq!((printed.code, &*printed.out), (Some(0), playbook::TEXT));
    let written = scratch.run(&["skill", "--write"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    for folder in [".agents/skills", ".claude/skills"] {
        let file = format!("{folder}/build-a-flow/SKILL.md");
        assert_eq!(scratch.read(&file), playbook::TEXT);
        assert!(written.out.contains(&file), "{}", written.out);
    }
    let api = Api::serve(&scratch);
    let client = Client::begin(&api);
    assert_eq!(client.instructions, playbook::TEXT);
    let prompts = client.ask("prompts/list", &json!({}));
    assert_eq!(prompts["prompts"][0]["name"], "build-a-flow", "{prompts}");
    let prompt = client.ask("prompts/get", &json!({"name": "build-a-flow"}));
    assert_eq!(prompt["messages"][0]["content"]["text"], playbook::TEXT);
    let about = prompt["messages"][1]["content"]["text"].as_str();
    assert!(
        about
            .expect("a text")
            .contains("`digest` does not exist yet"),
        "{prompt}"
    );
    let resources = client.ask("resources/list", &json!({}));
    assert_eq!(
        resources["resources"][0]["uri"],
        playbook::URI,
        "{resources}"
    );
    let read = client.ask("resources/read", &json!({"uri": playbook::URI}));
    assert_eq!(read["contents"][0]["text"], playbook::TEXT);
    let wrong = client
        .send("resources/read", &json!({"uri": "flowstone://other"}))
        .json();
    assert!(wrong["error"]["code"].is_number(), "{wrong}");
}

/// Returns the example of the playbook.
fn example() -> &'static str {
    let (_, rest) = playbook::TEXT
        .split_once("```clojure\n")
        .expect("an example");
    rest.split_once("```").expect("its end").0
}

/// Returns the arguments with which the playbook says that the example is tested.
fn test_of_the_example() -> Value {
    let (_, rest) = playbook::TEXT
        .split_once("It is tested with `")
        .expect("a test");
    let (arguments, _) = rest.split_once('`').expect("its end");
    serde_json::from_str(arguments).expect("JSON")
}

#[test]
fn a_client_with_only_the_kit_builds_the_example_of_the_playbook() {
    let tracker = Server::start(|request, _| match &*request.method {
        "GET" => Answer::Json(r#"[{"title": "Login fails"}]"#.to_owned()),
        _ => Answer::Json(r#"{"id": 7}"#.to_owned()),
    });
    let scratch = Scratch::new();
    let connections = format!(
        ":connections {{:ai {{:backend :scripted :models [\"test/small\"] :script {{:turns [\"Three issues are new.\"]}}}}
                       :tracker {{:base-url \"{}\" :label \"Issue tracker\"}}}}",
        tracker.url("")
    );
    scratch.write("flowstone.edn", settings_with(&connections));
    let api = Api::serve(&scratch);
    let mut client = Client::begin(&api);
    let found = client.call(
        "discover_tools",
        json!({"use_cases": ["read the issues of the tracker", "summarize a text", "every weekday at 8"]}),
    );
    let names = [0, 1].map(|at| found["capabilities"][at]["tool"]["name"].clone());
    assert_eq!(names, [json!("http"), json!("llm")], "{found:#}");
    let slugs = [0, 1].map(|at| found["capabilities"][at]["connection"]["slug"].clone());
    assert_eq!(slugs, [json!("tracker"), json!("ai")], "{found:#}");
    let delta = json!({"set": {"parameters": {"files": {"flow.edn": example()}}}});
    let committed = client.call("commit_revision", json!({"delta": delta}));
    assert_eq!(committed["status"], "committed", "{committed}");
    assert_eq!(committed["warnings"], json!([]), "{committed}");
    let tested = client.call("test_run", test_of_the_example());
    assert_eq!(tested["verdict"], "pass", "{tested}");
    assert_eq!(
        tested["tools"],
        json!([{"name": "publish", "called": true, "returned": true}])
    );
    assert_eq!(tested["output"], "Three issues are new.", "{tested}");
    let posted = tracker.requests();
    let posted = posted.iter().find(|request| request.method == "POST");
    let posted = posted.expect("the report");
    assert!(posted.body.contains("Three issues are new."), "{posted:?}");
    let outputs = json!({"outputs": {"pass": true}});
    let note = json!({"references": {"evaluator": {"slug": "self-test"}}, "data": outputs});
    let noted = client.call("annotate_trace", note);
    assert_eq!(
        noted["annotation"]["trace_id"], tested["trace_id"],
        "{noted}"
    );
    let schedule = json!({"data": {"event_key": "schedule", "schedule": "0 8 * * 1-5",
                                    "inputs_fields": {"region": "EU"}}});
    let scheduled = client.call("create_schedule", schedule);
    let revision = &scheduled["schedule"]["revision"]["id"];
    assert_eq!(*revision, committed["revision"]["id"], "{scheduled}");
    assert!(client.calls.len() <= 7, "{:?}", client.calls);
}

#[test]
fn a_person_adds_the_secret_of_a_connection() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        r#"{:connections {:billing {:base-url "https://billing.example.com" :auth {:type :bearer :secret-ref :billing-of-the-kit}}}}"#,
    );
    let kit = |args: &[&str]| {
        scratch
            .run(&[&["kit"], args, &["--flow", "digest"]].concat())
            .json()
    };
    let state = || {
        let listed = kit(&[
            "list_connections",
            "--enable",
            "list_connections",
            "--json",
            "{}",
        ]);
        listed["connections"][0]["state"].clone()
    };
    assert_eq!(state(), "needs_input");
    let pending = kit(&[
        "request_connection",
        "--json",
        r#"{"integration": "billing"}"#,
    ]);
    let command = pending["command"].as_str().expect("a command").to_owned();
    let id = command
        .strip_prefix("flowstone kit connect ")
        .expect("a request");
    let done = scratch.run_with(&["kit", "connect", id], "a-secret-value\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(
        scratch.read(".env"),
        "BILLING_OF_THE_KIT='a-secret-value'\n"
    );
    assert_eq!(state(), "ready");
    assert!(!format!("{done:?} {pending}").contains("a-secret-value"));
    let again = scratch.run_with(&["kit", "connect", id], "another-value\n");
    assert_eq!(again.code, Some(1), "{again:?}");
}
