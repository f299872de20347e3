//! Behaviour trees over the command line and over MCP, as agents drive them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

const TREE: &str = r#"
name: release
version: 1.0.0
tree:
  type: sequence
  name: Release
  children:
    - type: action
      name: Test
      steps:
        - instruct: Run the tests.
        - evaluate: $VAR.passed is true.
    - type: parallel
      name: Publish
      children:
        - {type: action, name: Docs, steps: [{instruct: Publish the docs.}]}
        - {type: action, name: Package, retries: 1, steps: [{instruct: Publish the package.}]}
state: {var: {passed: null}, const: {branch: main}}
"#;

/// The twelve tools, sorted.
const TOOLS: &[&str] = &[
    "const_read",
    "eval",
    "get_execution",
    "next_step",
    "read_trace",
    "reset_execution",
    "resume_execution",
    "start_execution",
    "submit",
    "think",
    "var_read",
    "var_write",
];

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    scratch.write("trees/release.yaml", TREE);
    scratch
}

/// A client of `flowstone mcp`, one line a message.
pub(super) struct Client {
    child: Child,
    input: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    id: i64,
}

impl Client {
    pub(super) fn begin(scratch: &Scratch, args: &[&str]) -> Client {
        let mut child = scratch
            .command(&[&["mcp"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut client = Client {
            input: child.stdin.take().expect("a pipe"),
            lines: BufReader::new(child.stdout.take().expect("a pipe")).lines(),
            child,
            id: 0,
        };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
        client.ask("initialize", &params);
        client
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.ask_text(method, &params.to_string())
    }

    /// Sends a request whose parameters are written as they are.
    fn ask_text(&mut self, method: &str, params: &str) -> Value {
        self.id += 1;
        let id = self.id;
        writeln!(
            self.input,
            r#"{{"jsonrpc": "2.0", "id": {id}, "method": "{method}", "params": {params}}}"#
        )
        .expect("the client writes");
        loop {
            let line = self.lines.next().expect("an answer").expect("text");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == self.id {
                return answer;
            }
        }
    }

    /// Calls a tool: the JSON in its text, or the text of its error.
    pub(super) fn call(
        &mut self,
        tool: &str,
        uri: &str,
        mut arguments: Value,
    ) -> Result<Value, String> {
        arguments["trace_output"] = json!(uri);
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", &params);
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{tool}: {answer}"));
        match result["isError"].as_bool() {
            Some(false) => Ok(serde_json::from_str(text).expect("JSON")),
            _ => Err(text.to_owned()),
        }
    }

    fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().expect("a list").iter();
        tools
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// Ends the process at once, as `kill -9` does.
    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Closes the client's end, and waits for the process.
    pub(super) fn end(self) {
        let Client {
            mut child, input, ..
        } = self;
        drop(input);
        child.wait().expect("it ends");
    }
}

#[test]
fn an_agent_drives_a_tree_over_stdio() {
    let scratch = project();
    let mut client = Client::begin(&scratch, &["--tools", "tree"]);
    assert_eq!(client.tools(), TOOLS);
    let uri = "memory://release-1";
    let started = client.call(
        "start_execution",
        uri,
        json!({"tree_uri": "trees/release.yaml"}),
    );
    let expected = json!({
        "ok": true, "schema_version": 1, "uri": uri, "tree_uri": "trees/release.yaml",
        "slug": "release",
    });
    assert_eq!(started, Ok(expected));
    let submit = json!({"status": "success"});
    let mut names = Vec::new();
    loop {
        let request = client.call("next_step", uri, json!({})).expect("a request");
        if request["status"].is_string() {
            assert_eq!(request, json!({"status": "done"}));
            break;
        }
        names.push(request["name"].as_str().expect("a name").to_owned());
        let cursor = &request["cursor"];
        let answered = match request["type"].as_str() {
            Some("evaluate") => client.call(
                "eval",
                uri,
                json!({"result": true, "expected_cursor": cursor}),
            ),
            _ => {
                let mut answer = submit.clone();
                answer["expected_cursor"] = cursor.clone();
                client.call("submit", uri, answer)
            }
        };
        answered.expect("it is taken");
    }
    assert_eq!(
        names,
        ["Acknowledge_Protocol", "Test", "Test", "Docs", "Package"]
    );
    let refused = client.call("eval", uri, json!({"result": true}));
    let expected = "Execution is not in evaluating phase (current: idle)";
    assert_eq!(refused, Err(expected.to_owned()));
    client.end();
    // The handle ends with the process; the run does not.
    let mut client = Client::begin(&scratch, &["--tools", "tree"]);
    let missing = client.call("next_step", uri, json!({}));
    assert_eq!(missing, Err(format!("Execution not found: {uri}")));
    client.end();
    let runs = scratch.json_of(&["runs", "list"]);
    assert_eq!(runs["runs"][0]["status"], "completed", "{runs}");
}

#[test]
fn numbers_arrive_as_they_were_sent_or_are_refused() {
    let scratch = project();
    let mut client = Client::begin(&scratch, &["--tools", "tree"]);
    let uri = "run://numbers";
    let tree = json!({"tree_uri": "trees/release.yaml", "gate": false});
    client.call("start_execution", uri, tree).expect("started");
    let write = |client: &mut Client, value: &str| {
        let arguments = format!(r#"{{"trace_output": "{uri}", "path": "n", "value": {value}}}"#);
        let params = format!(r#"{{"name": "var_write", "arguments": {arguments}}}"#);
        client.ask_text("tools/call", &params)["result"].clone()
    };
    for (value, expected) in [
        ("1e22", json!(1e22)),
        ("[-2.5E+30]", json!([-2.5e30])),
        ("18446744073709551615", json!(u64::MAX)),
        ("\"1e22\"", json!(1e22)),
        (
            "\"\\\"123456789012345678901\\\"\"",
            json!("123456789012345678901"),
        ),
    ] {
        let written = write(&mut client, value);
        assert_eq!(written["isError"], false, "{value}: {written}");
        let read = client.call("var_read", uri, json!({"path": "n"}));
        assert_eq!(read.expect("read")["value"], expected, "{value}");
    }
    for value in ["123456789012345678901", "{\"a\": [-9223372036854775809]}"] {
        let refused = write(&mut client, value);
        assert_eq!(refused["isError"], true, "{value}: {refused}");
        assert_eq!(refused["_meta"]["code"], "E1216", "{value}: {refused}");
    }
    let read = client.call("var_read", uri, json!({"path": "n"}));
    assert_eq!(read.expect("read")["value"], "123456789012345678901");
    client.end();
}

#[test]
fn a_run_that_is_answered_quickly_is_not_replayed() {
    let scratch = project();
    let actions: Vec<Value> = (0..40)
        .map(|idx| json!({"type": "action", "name": format!("A{idx}"), "steps": [{"instruct": "x"}]}))
        .collect();
    let tree = json!({"type": "sequence", "name": "Long", "children": actions});
    scratch.write("trees/long.json", tree.to_string());
    let mut client = Client::begin(&scratch, &["--tools", "tree"]);
    let uri = "run://long";
    let arguments = json!({"tree_uri": "trees/long.json", "gate": false});
    client
        .call("start_execution", uri, arguments)
        .expect("it starts");
    for _ in 0..40 {
        client.call("next_step", uri, json!({})).expect("a request");
        client
            .call("submit", uri, json!({"status": "success"}))
            .expect("it is taken");
    }
    assert_eq!(
        client.call("next_step", uri, json!({})),
        Ok(json!({"status": "done"}))
    );
    client.end();
    let runs = scratch.json_of(&["runs", "list"]);
    let run = runs["runs"][0]["id"].as_str().expect("an id");
    let feed = scratch.run(&["runs", "feed", run]).out;
    let count = |kind: &str| feed.lines().filter(|line| line.contains(kind)).count();
    assert_eq!(count("wait.answered"), 81, "{feed}");
    // Without `:keep-alive`, each answer resumes it.
    assert!(count("run.resumed") < 10, "{}", count("run.resumed"));
}

#[test]
fn a_killed_server_loses_no_answer() {
    let scratch = project();
    let folder = std::fs::canonicalize(scratch.path()).expect("a folder");
    let uri = &format!("file://{}/run.json", folder.display());
    let mut client = Client::begin(&scratch, &["--tools", "tree"]);
    let arguments = json!({"tree_uri": "trees/release.yaml", "gate": false});
    client
        .call("start_execution", uri, arguments)
        .expect("it starts");
    let success = json!({"status": "success"});
    let calls = [
        ("next_step", json!({})),
        ("var_write", json!({"path": "passed", "value": "true"})),
        ("submit", success.clone()),
        ("next_step", json!({})),
        ("eval", json!({"result": true})),
        ("next_step", json!({})),
        ("submit", success.clone()),
        ("next_step", json!({})),
        ("submit", json!({"status": "failure"})),
        ("next_step", json!({})),
        ("submit", success),
    ];
    for (tool, arguments) in calls {
        let answer = client.call(tool, uri, arguments);
        assert!(answer.is_ok(), "{tool}: {answer:?}");
        client.kill();
        let document: Value = serde_json::from_str(&scratch.read("run.json")).expect("JSON");
        client = Client::begin(&scratch, &["--tools", "tree"]);
        let execution = client
            .call("get_execution", uri, json!({}))
            .expect("it is known");
        for key in ["status", "phase", "cursor", "var", "runtime", "trace"] {
            assert_eq!(execution[key], document[key], "{tool}: {key}");
        }
    }
    assert_eq!(
        client.call("next_step", uri, json!({})),
        Ok(json!({"status": "done"}))
    );
    let trace = client.call("read_trace", uri, json!({})).expect("a trace");
    let outcomes = trace.as_array().expect("a list").iter();
    let outcomes: Vec<&str> = outcomes
        .map(|it| it["outcome"].as_str().expect("a text"))
        .collect();
    let expected = [
        "step_complete",
        "evaluation_passed",
        "action_complete",
        "action_failed",
        "action_complete",
    ];
    assert_eq!(outcomes, expected);
    client.end();
}

#[test]
fn of_two_servers_one_takes_the_answer() {
    let scratch = project();
    let (mut one, mut other) = (
        Client::begin(&scratch, &["--tools", "tree"]),
        Client::begin(&scratch, &["--tools", "tree"]),
    );
    let uri = "run://shared";
    let arguments = json!({"tree_uri": "trees/release.yaml", "gate": false});
    one.call("start_execution", uri, arguments.clone())
        .expect("it starts");
    let exists = other.call("start_execution", uri, arguments);
    assert_eq!(exists, Err(format!("Execution already exists: {uri}")));
    let request = one.call("next_step", uri, json!({})).expect("a request");
    assert_eq!(other.call("next_step", uri, json!({})), Ok(request.clone()));
    let answer = json!({"status": "success", "expected_cursor": request["cursor"]});
    other
        .call("submit", uri, answer.clone())
        .expect("it is taken");
    other.call("next_step", uri, json!({})).expect("a request");
    let late = one.call("submit", uri, answer).expect_err("it is refused");
    assert!(
        late.contains("performing phase (current: evaluating)") || late.contains("is stale"),
        "{late}"
    );
    one.end();
    other.end();
}

#[test]
fn trees_are_offered_where_the_project_has_them() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    scratch.write("flows/data.yaml", "name: none\nsteps: 3\n");
    let mut client = Client::begin(&scratch, &[]);
    assert!(!client.tools().contains(&"next_step".to_owned()));
    client.end();
    scratch.write("flows/a/release.yaml", TREE);
    let mut client = Client::begin(&scratch, &[]);
    let tools = client.tools();
    assert!(
        tools.contains(&"next_step".to_owned())
            && tools.contains(&"workspace_runs_list".to_owned())
    );
    client.end();
    let mut client = Client::begin(&scratch, &["--tools", "flows"]);
    assert_eq!(client.tools(), Vec::<String>::new());
    let params = json!({"name": "next_step", "arguments": {"trace_output": "run://a"}});
    assert_eq!(
        client.ask("tools/call", &params)["error"]["message"],
        "there is no tool `next_step`"
    );
    client.end();
    let mut client = Client::begin(&scratch, &["--scope", "read", "--tools", "tree"]);
    let reading = ["const_read", "get_execution", "read_trace", "var_read"];
    assert_eq!(client.tools(), reading);
    client.end();
}

#[test]
fn an_agent_drives_a_tree_over_http() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let send = |query: &str, method: &str, params: Value| -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut params = params;
        params["_meta"] = meta;
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let token = format!("authorization: Bearer {}", api.token);
        let (called, named) = (format!("mcp-method: {method}"), format!("mcp-name: {name}"));
        let mut headers = vec![
            &*token,
            "content-type: application/json",
            "mcp-protocol-version: 2026-07-28",
            &called,
        ];
        if !name.is_empty() {
            headers.push(&named);
        }
        api.request(&format!("POST /mcp{query}"), &headers, &body.to_string())
            .json()
    };
    let listed = send("?tools=tree", "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("a list");
    assert_eq!(tools.len(), TOOLS.len(), "{listed}");
    let refused = send("?tools=forest", "tools/list", json!({}));
    assert!(
        refused
            .to_string()
            .contains("there is no tool set `forest`"),
        "{refused}"
    );
    let call = |tool: &str, mut arguments: Value| -> Value {
        arguments["trace_output"] = json!("memory://http");
        let answer = send(
            "",
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        );
        let text = answer["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).unwrap_or_else(|_| json!(text))
    };
    call(
        "start_execution",
        json!({"tree_uri": "trees/release.yaml", "gate": false}),
    );
    assert_eq!(call("next_step", json!({}))["name"], "Test");
    assert_eq!(
        call("submit", json!({"status": "success"}))["status"],
        "step_complete"
    );
    assert_eq!(call("next_step", json!({}))["type"], "evaluate");
    assert_eq!(
        call("eval", json!({"result": false}))["status"],
        "evaluation_failed"
    );
    assert_eq!(call("next_step", json!({})), json!({"status": "failure"}));
}

#[test]
fn a_person_drives_a_tree_by_commands() {
    let scratch = project();
    let text = |args: &[&str]| {
        let ran = scratch.run(&[&["tree"], args].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.out.trim_end().to_owned()
    };
    assert_eq!(
        text(&["check", "trees/release.yaml"]),
        "trees/release.yaml: release (5 nodes)"
    );
    assert_eq!(
        text(&["start", "trees/release.yaml", "run.json"]),
        "run.json"
    );
    assert_eq!(
        text(&["next", "run.json"]),
        "instruct Test\n\nRun the tests."
    );
    assert_eq!(text(&["think", "run.json", "-1 of 3"]), "recorded");
    assert_eq!(text(&["var", "run.json", "offset", "--set", "-1"]), "-1");
    assert_eq!(
        text(&["var", "run.json", "flag", "--set", "--json"]),
        "--json"
    );
    assert_eq!(text(&["const", "run.json", "branch"]), "main");
    assert_eq!(
        text(&["submit", "run.json", "success", "--note", "-"]),
        "step_complete"
    );
    assert_eq!(
        text(&["next", "run.json"]),
        "evaluate Test\n\n$VAR.passed is true."
    );
    let request = scratch.json_of(&["tree", "next", "run.json"]);
    let cursor = request["cursor"].as_str().expect("a cursor");
    let stale = scratch.run(&["tree", "eval", "run.json", "true", "--expect", "old"]);
    assert_eq!(stale.code, Some(1));
    assert!(stale.err.contains("E1206"), "{stale:?}");
    assert_eq!(
        text(&["eval", "run.json", "true", "--expect", cursor]),
        "evaluation_passed"
    );
    text(&["next", "run.json"]);
    let shown = text(&["show", "run.json"]);
    assert!(shown.contains("    action Test: success\n"), "{shown}");
    assert!(
        shown.contains("      action Docs: open at step 1\n"),
        "{shown}"
    );
    assert!(
        shown.contains("      action Package"),
        "the inspector shows all: {shown}"
    );
    let trace = text(&["trace", "run.json"]);
    assert_eq!(trace.lines().count(), 3, "{trace}");
    let document: Value = serde_json::from_str(&text(&["export", "run.json"])).expect("JSON");
    assert_eq!(document["var"]["offset"], -1);
    assert_eq!(text(&["reset", "run.json"]), "reset");
    assert_eq!(text(&["resume", "run.json"]), "running, idle");
    // It is an ordinary run.
    let runs = scratch.json_of(&["runs", "list"]);
    let run = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(runs["runs"][0]["status"], "waiting");
    assert_eq!(text(&["next", &run]), "instruct Test\n\nRun the tests.");
    text(&["next", "run.json"]);
    scratch.run(&["runs", "cancel", &run]).ok();
    let said: Value = serde_json::from_str(&scratch.read("run.json")).expect("JSON");
    assert_eq!(
        (&said["status"], &said["ended"]),
        (&json!("failed"), &json!("cancelled"))
    );
    let memory = scratch.run(&["tree", "start", "trees/release.yaml", "memory://a"]);
    assert!(
        memory.err.contains("E1202") && memory.code == Some(1),
        "{memory:?}"
    );
}

#[test]
fn forks_and_waits_know_the_runs_of_trees() {
    let scratch = project();
    scratch.json_of(&["tree", "start", "trees/release.yaml", "one"]);
    scratch.json_of(&["tree", "next", "one"]);
    scratch.json_of(&["tree", "submit", "one", "success", "--note", "first"]);
    let waits = scratch.json_of(&["waits", "list"]);
    assert_eq!(
        waits["waits"].as_array().expect("a list").len(),
        1,
        "{waits}"
    );
    let wait = waits["waits"][0]["id"].as_str().expect("an id").to_owned();
    let wrong = scratch.run(&[
        "waits",
        "complete",
        &wait,
        "--value",
        "{:op :eval :result true}",
    ]);
    assert_eq!(
        wrong.code,
        Some(1),
        "the wait takes what its phase takes: {wrong:?}"
    );
    // Anybody who may answer waits may answer this one.
    scratch.run(&["waits", "complete", &wait, "--value", "{:op :next}"]);
    assert_eq!(
        scratch.json_of(&["tree", "next", "one"])["type"],
        "evaluate"
    );
    let runs = scratch.json_of(&["runs", "list"]);
    let run = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    let fork = scratch.json_of(&["runs", "fork", &run, "--at", "answer#3"]);
    let fork = fork["run"]
        .as_str()
        .unwrap_or_else(|| panic!("{fork}"))
        .to_owned();
    assert_ne!(fork, run);
    let trace = scratch.json_of(&["tree", "trace", &fork]);
    assert_eq!(trace["trace"][0]["note"], "first", "{trace}");
    assert_eq!(
        scratch.json_of(&["tree", "next", &fork])["type"],
        "evaluate"
    );
    assert_eq!(
        scratch.json_of(&["tree", "eval", &fork, "false"])["status"],
        "evaluation_failed"
    );
    assert_eq!(
        scratch.json_of(&["tree", "next", &fork])["status"],
        "failure"
    );
    assert_eq!(
        scratch.json_of(&["tree", "eval", "one", "true"])["status"],
        "evaluation_passed"
    );
}

#[test]
fn an_ejected_tree_is_a_flow_that_runs() {
    let scratch = project();
    let ejected = scratch.run(&["tree", "eject", "trees/release.yaml"]);
    assert_eq!(ejected.code, Some(0), "{ejected:?}");
    scratch.write("flows/release.edn", &ejected.out);
    let checked = scratch.run(&["check", "flows/release.edn"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let ran = scratch.run(&["run", "flows/release.edn", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let run = ran.json()["run"].as_str().expect("an id").to_owned();
    assert_eq!(scratch.json_of(&["tree", "next", &run])["name"], "Test");
}

#[test]
fn problems_of_a_tree_file_are_listed() {
    let scratch = project();
    scratch.write(
        "bad.yaml",
        "{type: sequence, name: S, children: [], retries: -1}",
    );
    let ran = scratch.run(&["tree", "check", "bad.yaml", "trees/release.yaml", "--json"]);
    assert_eq!(ran.code, Some(1));
    let said = ran.json();
    let expected = json!([
        "retries: must be a whole number from 1 to 10000, got `-1`",
        "children: must be a list of at least one node",
    ]);
    assert_eq!(said["files"][0]["problems"], expected, "{said}");
    assert_eq!(said["files"][1]["ok"], true);
    let ran = scratch.run(&["tree", "start", "bad.yaml"]);
    assert!(
        ran.err
            .contains("error[E1200]: the tree file bad.yaml has 2 problems"),
        "{ran:?}"
    );
    assert_eq!(scratch.json_of(&["runs", "list"])["runs"], json!([]));
}

#[test]
fn the_tree_files_of_a_project_are_listed() {
    let scratch = project();
    scratch.write(
        "trees/parts/act.yaml",
        "{type: action, name: Part, steps: [{instruct: x}]}",
    );
    scratch.write(
        "trees/broken.json",
        r#"{"type": "sequence", "name": "B", "children": [{}]}"#,
    );
    scratch.write("trees/other.yaml", "kind: something else\n");
    let listed = scratch.run(&["tree", "list"]).ok();
    let expected = [
        "trees/broken.json  has problems; `flowstone tree check trees/broken.json` lists them",
        "trees/parts/act.yaml  part (1 nodes)",
        "trees/release.yaml  release (5 nodes)",
    ];
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    let listed = scratch.json_of(&["tree", "list"]);
    assert_eq!(listed["trees"][0]["code"], "E1200");
    assert_eq!(
        listed["trees"][2],
        json!({"file": "trees/release.yaml", "ok": true, "slug": "release", "name": "release", "nodes": 5, "description": null})
    );
}

#[test]
fn a_picture_shows_the_nodes_of_a_file_and_the_state_of_a_run() {
    let scratch = project();
    let of_file = scratch.run(&["tree", "picture", "trees/release.yaml"]).ok();
    assert!(
        of_file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""),
        "{of_file}"
    );
    assert_eq!(of_file.matches("<rect ").count(), 5);
    assert_eq!(of_file.matches("<path ").count(), 4);
    assert!(of_file.contains(">parallel Publish</text>"), "{of_file}");

    scratch
        .run(&["tree", "start", "trees/release.yaml", "r"])
        .ok();
    scratch.run(&["tree", "next", "r"]).ok();
    scratch.run(&["tree", "submit", "r", "success"]).ok();
    scratch.run(&["tree", "next", "r"]).ok();
    let of_run = scratch.run(&["tree", "picture", "r"]).ok();
    assert!(of_run.contains("stroke=\"#d6338a\""), "{of_run}");
    assert!(
        of_run.contains(">action Test (open at step 2)</text>"),
        "{of_run}"
    );
    scratch.run(&["tree", "eval", "r", "true"]).ok();
    scratch.run(&["tree", "next", "r"]).ok();
    let of_run = scratch.run(&["tree", "picture", "r"]).ok();
    assert!(of_run.contains(">action Test (success)</text>"), "{of_run}");

    let name = "a <b> & \"c\"";
    let hostile = json!({"type": "action", "name": name, "steps": [{"instruct": "x"}]});
    scratch.write("hostile.json", hostile.to_string());
    let hostile = scratch
        .run(&["tree", "picture", "hostile.json", "--file"])
        .ok();
    assert!(
        hostile.contains(">action a &lt;b&gt; &amp; \"c\"</text>"),
        "{hostile}"
    );
}

#[test]
fn runs_of_memory_handles_end_after_their_process() {
    let scratch = project();
    let arguments = json!({"tree_uri": "trees/release.yaml"});
    let mut living = Client::begin(&scratch, &[]);
    living
        .call("start_execution", "memory://living", arguments.clone())
        .expect("a run");
    let mut killed = Client::begin(&scratch, &[]);
    killed
        .call("start_execution", "memory://killed", arguments.clone())
        .expect("a run");
    killed
        .call("start_execution", "run://named", arguments)
        .expect("a run");
    killed.kill();
    let waits = || {
        let found = scratch.run(&["waits", "list", "--json"]).json();
        found["waits"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(waits(), 3);
    let next = Client::begin(&scratch, &[]);
    let begun = std::time::Instant::now();
    while waits() > 2 && begun.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(waits(), 2);
    let request = living.call("next_step", "memory://living", json!({}));
    assert_eq!(request.expect("a request")["name"], "Acknowledge_Protocol");
    next.end();
    living.end();
}
