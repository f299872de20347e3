//! The build kit through its three doors: HTTP, MCP, and the command line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::agents_api::Agents;
use crate::api::{Api, Reply};
use crate::program::{Ran, Scratch};

pub(super) const FLOW: &str = r#"{:slug :digest :name "Digest"
 :invocations {:default {:inputs [{:name :region :type :text :default "EU"}]}}
 :flow '(let [in (flow/input)]
          ;; The greeting.
          (flow/step :function :greet {:code '(fn [x] (str "hello " (:region x))) :input in}))}
"#;

/// A call of a tool over HTTP, for a flow.
pub(super) fn call(api: &Api, tool: &str, arguments: &Value) -> Reply {
    call_as(api, &api.token, tool, arguments)
}

pub(super) fn call_as(api: &Api, token: &str, tool: &str, arguments: &Value) -> Reply {
    let token = format!("authorization: ApiKey {token}");
    let headers = [
        &*token,
        "content-type: application/json",
        "x-flowstone-flow: digest",
    ];
    let what = format!("POST /api/tools/{tool}");
    api.request(&what, &headers, &arguments.to_string())
}

pub(super) fn code(reply: &Reply) -> String {
    let error = reply.json();
    assert!(error["message"].is_string(), "{error}");
    let is_retryable = error["retryable"] == json!(true);
    assert!(!is_retryable || !error["next_step"].is_null(), "{error}");
    format!(
        "{} {}",
        reply.status,
        error["code"].as_str().unwrap_or_default()
    )
}

/// Allows commits without a question.
pub(super) fn allowing() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        "{:kit {:permissions {:commit_revision :allow :annotate-trace :allow} :enable [:read_config :query_workflows]}}",
    );
    scratch
}

pub(super) fn first(text: &str) -> Value {
    json!({"delta": {"set": {"parameters": {"files": {"flow.edn": text}}}}})
}

pub(super) fn token(scratch: &Scratch, args: &[&str]) -> String {
    let all = [&["tokens", "create", "--name"], args].concat();
    scratch.run(&all).ok().trim_end().to_owned()
}

#[test]
fn a_flow_is_committed_and_read_back() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    let made = call(&api, "commit_revision", &first(FLOW));
    assert_eq!(made.status, 200, "{made:?}");
    let made = made.json();
    assert_eq!(made["status"], "committed");
    assert_eq!(made["changed"], json!(["flow.edn"]));
    let revision = &made["revision"];
    assert_eq!(revision["version"], 1);
    assert_eq!(revision["released"], false);
    assert_eq!(revision["parent"], Value::Null);
    let id = revision["id"].as_str().expect("an id");
    // The same again changes nothing, whatever the message is.
    let again = json!({"base_revision_id": id, "message": "again", "delta": first(FLOW)["delta"]});
    let again = call(&api, "commit_revision/", &again).json();
    assert_eq!(again["status"], "no_change", "{again}");
    assert_eq!(again["revision"]["id"], *id);
    let read = call(
        &api,
        "read_config",
        &json!({"path": "/parameters/files/flow.edn"}),
    )
    .json();
    assert_eq!(read["value"], FLOW);
    assert_eq!(read["base_revision_id"], *id);
    let too_large = call(&api, "read_config", &json!({"max_bytes": 10}));
    assert_eq!(code(&too_large), "400 invalid_arguments");
    let flows = call(&api, "query_workflows", &json!({"name": "DIGEST"})).json();
    assert_eq!(flows["count"], 1);
    assert_eq!(flows["workflows"][0]["head"]["version"], 1, "{flows}");
    let none = call(&api, "query_workflows", &json!({"name": "nothing"})).json();
    assert_eq!(none, json!({"count": 0, "workflows": [], "next": null}));
}

#[test]
fn a_commit_on_an_older_revision_conflicts_and_one_with_errors_is_refused() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    let made = call(&api, "commit_revision", &first(FLOW)).json();
    let id = made["revision"]["id"].as_str().expect("an id").to_owned();
    let missing = call(&api, "commit_revision", &first("{}"));
    assert_eq!(code(&missing), "400 invalid_arguments");
    assert_eq!(missing.json()["details"]["current_revision_id"], *id);
    let with = |base: &str, text: &str| {
        let mut arguments = first(text);
        arguments["base_revision_id"] = json!(base);
        call(&api, "commit_revision", &arguments)
    };
    let changed = FLOW.replace("hello", "hi");
    assert_eq!(with(&id, &changed).json()["status"], "committed");
    let stale = with(&id, &FLOW.replace("hello", "bye"));
    assert_eq!(code(&stale), "409 revision_conflict");
    let stale = stale.json();
    assert_eq!(stale["retryable"], false);
    assert_eq!(stale["details"]["base_revision_id"], *id);
    assert_eq!(stale["details"]["current_version"], 2);
    assert_eq!(stale["details"]["changed"], json!(["flow.edn"]));
    let head = stale["details"]["current_revision_id"]
        .as_str()
        .expect("an id");
    let wrong = with(head, &FLOW.replace("flow/input", "flow/inptu"));
    assert_eq!(code(&wrong), "422 check_failed");
    let problems = wrong.json()["details"]["problems"].clone();
    assert_eq!(problems[0]["severity"], "error", "{problems}");
    assert_eq!(problems[0]["line"], 3, "{problems}");
    let other = with(head, &FLOW.replace(":digest", ":other"));
    assert_eq!(code(&other), "403 out_of_scope");
    let outside = json!({"base_revision_id": head, "delta": {"set": {"slug": "other"}}});
    assert_eq!(
        code(&call(&api, "commit_revision", &outside)),
        "403 out_of_scope"
    );
    scratch.run(&["flows", "archive", "digest"]).ok();
    assert_eq!(code(&with(head, &changed)), "409 flow_archived");
}

#[test]
fn errors_have_one_shape_on_every_address_of_the_kit() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    let bearer = format!("authorization: Bearer {}", api.token);
    let json_type = "content-type: application/json";
    for (what, headers, body, expected) in [
        ("GET /api/tools", vec![], "", "401 unauthorized"),
        (
            "GET /api/tools/",
            vec!["authorization: ApiKey nope"],
            "",
            "401 unauthorized",
        ),
        (
            "GET /api/tools/commit_revision",
            vec![&*bearer],
            "",
            "405 invalid_arguments",
        ),
        (
            "POST /api/tools/find_capabilities",
            vec![&*bearer],
            "",
            "404 unknown_tool",
        ),
        (
            "POST /api/tools/commit_revision",
            vec![&*bearer, json_type],
            "{}",
            "400 binding_missing",
        ),
        (
            "POST /api/tools/query_workflows",
            vec![&*bearer, json_type],
            "[]",
            "400 invalid_arguments",
        ),
        (
            "POST /api/tools/query_workflows",
            vec![&*bearer, json_type],
            "{",
            "400 invalid_arguments",
        ),
        (
            "POST /api/tools/query_workflows",
            vec![&*bearer, "content-type: text/plain"],
            "{}",
            "415 invalid_arguments",
        ),
        ("POST /api/spans/other", vec![&*bearer], "", "404 not_found"),
    ] {
        let reply = api.request(what, &headers, body);
        assert_eq!(code(&reply), expected, "{what} {reply:?}");
    }
    let unknown = call(&api, "find_capabilities", &json!({})).json();
    assert_eq!(unknown["next_step"], "call `discover_tools`");
}

#[test]
fn arguments_are_closed_and_the_target_cannot_be_named() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    for (arguments, path) in [
        (json!({"delta": {}, "flow": "other"}), "/flow"),
        (
            json!({"delta": {}, "workflow_variant_id": "x"}),
            "/workflow_variant_id",
        ),
        (json!({"delta": {}, "mesage": "x"}), "/mesage"),
        (json!({}), "/delta"),
        (json!({"delta": {"add": {}}}), "/delta/add"),
        (json!({"delta": {"remove": "a"}}), "/delta/remove"),
    ] {
        let reply = call(&api, "commit_revision", &arguments);
        assert_eq!(code(&reply), "400 invalid_arguments", "{arguments}");
        let details = &reply.json()["details"];
        assert_eq!(details["path"], path, "{details}");
        assert!(details["expected"].is_string(), "{details}");
    }
    // A flow outside of the token's limits does not exist for it.
    let other = token(
        &scratch,
        &[
            "other", "--scope", "edit", "--scope", "read", "--flow", "report",
        ],
    );
    assert_eq!(
        code(&call_as(&api, &other, "commit_revision", &first(FLOW))),
        "404 not_found"
    );
    let reader = token(&scratch, &["reader", "--scope", "read"]);
    assert_eq!(
        code(&call_as(&api, &reader, "commit_revision", &first(FLOW))),
        "403 permission_denied"
    );
}

#[test]
fn a_test_changes_nothing_through_the_kit() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    let token = format!("authorization: Bearer {}", api.token);
    for kind in ["x-flowstone-run-kind: test", "x-agenta-run-kind: test"] {
        let headers = [
            &*token,
            "content-type: application/json",
            "x-flowstone-flow: digest",
            kind,
        ];
        let reply = api.request(
            "POST /api/tools/commit_revision",
            &headers,
            &first(FLOW).to_string(),
        );
        assert_eq!(code(&reply), "403 refused_in_test");
        let reply = api.request("POST /api/tools/query_workflows", &headers, "");
        assert_eq!(reply.status, 200, "{reply:?}");
    }
}

#[test]
fn a_call_that_asks_waits_for_a_person_who_is_not_the_one_that_asked() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let agent = token(
        &scratch,
        &["agent", "--scope", "edit", "--scope", "approve"],
    );
    let asked = call_as(&api, &agent, "commit_revision", &first(FLOW));
    assert_eq!(code(&asked), "403 approval_required");
    let details = asked.json()["details"].clone();
    let id = details["approval_id"].as_str().expect("an id").to_owned();
    assert_eq!(details["command"], format!("flowstone kit approve {id}"));
    // Asking again asks about the same call.
    let again = call_as(&api, &agent, "commit_revision", &first(FLOW)).json();
    assert_eq!(again["details"]["approval_id"], *id);
    let path = format!("/api/tools/approvals/{id}");
    let decide =
        |token: &str, decision: &str| api.post_as(token, &path, &json!({"decision": decision}));
    assert_eq!(code(&decide(&agent, "approve")), "403 permission_denied");
    assert_eq!(decide(&api.token, "approve").json()["status"], "approved");
    // Another call is not approved with it, and neither is the same of another caller.
    let changed = first(&FLOW.replace("hello", "hi"));
    let other = call_as(&api, &agent, "commit_revision", &changed);
    assert_eq!(code(&other), "403 approval_required");
    // A call that would fail is not asked about.
    let wrong = call_as(&api, &agent, "commit_revision", &first("{:slug :digest}"));
    assert_eq!(code(&wrong), "422 check_failed");
    assert_eq!(
        code(&call(&api, "commit_revision", &first(FLOW))),
        "403 approval_required"
    );
    let made = call_as(&api, &agent, "commit_revision", &first(FLOW));
    assert_eq!(made.json()["status"], "committed", "{made:?}");
    // It is used up, also for a call that can be repeated because it changes nothing.
    let mut same = first(FLOW);
    same["base_revision_id"] = made.json()["revision"]["id"].clone();
    let ask = || call_as(&api, &agent, "commit_revision", &same);
    let asked = ask().json();
    assert_eq!(asked["code"], "approval_required", "{asked}");
    let id = asked["details"]["approval_id"].as_str().expect("an id");
    scratch.run(&["kit", "approve", id, "--yes"]).ok();
    assert_eq!(ask().json()["status"], "no_change");
    assert_eq!(code(&ask()), "403 approval_required");
    scratch.run(&["kit", "deny", id]).ok();
    let denied = ask();
    assert_eq!(code(&denied), "403 approval_denied");
}

#[test]
fn settings_narrow_what_may_be_called() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        r#"{:kit {:permissions {:commit_revision :allow} :tokens {"ci" {:commit_revision :deny}}}}"#,
    );
    let api = Api::serve(&scratch);
    let ci = token(&scratch, &["ci", "--scope", "edit"]);
    assert_eq!(
        code(&call_as(&api, &ci, "commit_revision", &first(FLOW))),
        "403 permission_denied"
    );
    assert_eq!(call(&api, "commit_revision", &first(FLOW)).status, 200);
    assert_eq!(
        code(&call(&api, "query_workflows", &json!({}))),
        "403 tool_disabled"
    );
    let listed = api.get("/api/tools").json();
    let tools = listed["tools"].as_array().expect("a list");
    assert_eq!(listed["count"], tools.len());
    let of = |name: &str| {
        tools
            .iter()
            .find(|it| it["name"] == *name)
            .expect("a tool")
            .clone()
    };
    assert_eq!(of("query_workflows")["enabled"], false);
    let commit = of("commit_revision");
    assert_eq!(commit["enabled"], true);
    assert_eq!(commit["permission"], "allow");
    assert_eq!(commit["timeout_ms"], 30_000);
    assert_eq!(commit["input_schema"]["additionalProperties"], false);
}

fn object(ran: &Ran, exit: i32) -> Value {
    assert_eq!(ran.code, Some(exit), "{}{}", ran.out, ran.err);
    serde_json::from_str(&ran.out).expect("an object")
}

#[test]
fn the_command_line_calls_the_same_tools() {
    let scratch = Scratch::new();
    scratch.write("change.json", first(FLOW).to_string());
    let commit = [
        "kit",
        "commit_revision",
        "--flow",
        "digest",
        "--json",
        "@change.json",
    ];
    // Nobody is at a terminal.
    let asked = object(&scratch.run(&commit), 3);
    assert_eq!(asked["code"], "approval_required");
    let with = |more: &[&str]| scratch.run(&[&commit[..], more].concat());
    let made = object(&with(&["--yes"]), 0);
    assert_eq!(made["status"], "committed");
    let denied = object(&with(&["--permission", "commit_revision=deny"]), 1);
    assert_eq!(denied["code"], "permission_denied");
    let unknown = object(&scratch.run(&["kit", "comit_revision"]), 2);
    assert_eq!(unknown["code"], "unknown_tool");
    assert_eq!(unknown["next_step"], "call `commit_revision`");
    let unbound = object(&scratch.run(&["kit", "commit_revision"]), 2);
    assert_eq!(unbound["code"], "binding_missing");
    let off = object(&scratch.run(&["kit", "query_workflows"]), 1);
    assert_eq!(off["code"], "tool_disabled");
    let on = scratch.run(&["kit", "query_workflows", "--enable", "query_workflows"]);
    assert_eq!(object(&on, 0)["count"], 1);
    let wrong = scratch.run(&["kit", "query_workflows", "--enable", "query_workflow"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.contains("did you mean `query_workflows`?"),
        "{}",
        wrong.err
    );
    let listed = scratch.run(&["kit", "list"]).ok();
    assert!(listed.contains("commit_revision"), "{listed}");
}

/// A client of the kit's server with a session.
struct Client<'a> {
    api: &'a Api,
    session: String,
}

impl Client<'_> {
    fn begin<'a>(api: &'a Api, capabilities: &Value) -> Client<'a> {
        let mut client = Client {
            api,
            session: String::new(),
        };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let reply = client.send("initialize", &params);
        assert_eq!(reply.status, 200, "{reply:?}");
        client.session = reply
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        client
    }

    fn send(&self, method: &str, params: &Value) -> Reply {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let token = format!("authorization: Bearer {}", self.api.token);
        let session = format!("mcp-session-id: {}", self.session);
        let mut headers = vec![&*token, "content-type: application/json"];
        if !self.session.is_empty() {
            headers.push(&session);
        }
        self.api
            .request("POST /mcp/kit/digest", &headers, &body.to_string())
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let reply = self.send("tools/call", &json!({"name": tool, "arguments": arguments}));
        reply.json()
    }
}

#[test]
fn a_client_of_mcp_gets_objects_and_errors_of_the_kit() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    let client = Client::begin(&api, &json!({}));
    let tools = client.send("tools/list", &json!({})).json();
    let tools = tools["result"]["tools"].as_array().expect("tools").clone();
    let commit = tools.iter().find(|it| it["name"] == "commit_revision");
    let commit = commit.expect("the tool");
    assert_eq!(commit["annotations"]["readOnlyHint"], false);
    // A client checks answers and errors against it.
    assert_eq!(commit["outputSchema"]["type"], "object");
    assert_eq!(commit["outputSchema"]["anyOf"][1]["required"][0], "code");
    let made = client.call("commit_revision", &first(FLOW));
    let result = &made["result"];
    assert_eq!(result["isError"], false, "{made}");
    assert_eq!(result["structuredContent"]["status"], "committed");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let text: Value = serde_json::from_str(text).expect("the same object");
    assert_eq!(text, result["structuredContent"]);
    let refused = client.call("commit_revision", &json!({"delta": {}, "flow": "other"}));
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(
        refused["result"]["structuredContent"]["code"],
        "invalid_arguments"
    );
    let unknown = client.call("find_capabilities", &json!({}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(unknown["error"]["data"]["code"], "unknown_tool");
}

#[test]
fn a_client_of_mcp_that_cannot_ask_gets_an_approval() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let client = Client::begin(&api, &json!({}));
    let asked = client.call("commit_revision", &first(FLOW));
    let error = &asked["result"]["structuredContent"];
    assert_eq!(error["code"], "approval_required", "{asked}");
    let id = error["details"]["approval_id"].as_str().expect("an id");
    scratch.run(&["kit", "approve", id]).ok();
    let made = client.call("commit_revision", &first(FLOW));
    assert_eq!(
        made["result"]["structuredContent"]["status"], "committed",
        "{made}"
    );
}

/// An answer is about its arguments only: not about a call on another revision, which changes nothing and can be repeated. It is
/// used once.
fn uses_an_answer_up(mut params: Value, mut call: impl FnMut(i64, &Value) -> Value) {
    let again = call(6, &params);
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    params["requestState"] = again["result"]["requestState"].clone();
    let made = call(7, &params);
    assert_eq!(
        made["result"]["structuredContent"]["status"], "no_change",
        "{made}"
    );
    let again = call(8, &params);
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
}

#[test]
fn a_client_of_mcp_that_can_ask_asks_its_user() {
    let scratch = Scratch::new();
    let mut child = scratch
        .command(&["mcp", "--kit", "digest"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut ask = |message: Value| -> Value {
        writeln!(input, "{message}").expect("the client writes");
        let line = lines.next().expect("an answer").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    let request = |id: i64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let capabilities = json!({"elicitation": {}});
    let begun = ask(request(
        1,
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": capabilities}),
    ));
    let instructions = begun["result"]["instructions"].as_str();
    assert!(
        instructions.is_some_and(|it| it.contains("build")),
        "{begun}"
    );
    let call = |id: i64, text: &str| {
        request(
            id,
            "tools/call",
            json!({"name": "commit_revision", "arguments": first(text)}),
        )
    };
    let asked = ask(call(2, FLOW));
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let message = asked["params"]["message"].as_str().expect("a text");
    assert!(
        message.starts_with("Allow `commit_revision` on the flow `digest`?"),
        "{message}"
    );
    let answer = |asked: &Value, action: &str| json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action, "content": {}}});
    let declined = ask(answer(&asked, "decline"));
    assert_eq!(
        declined["result"]["structuredContent"]["code"], "approval_denied",
        "{declined}"
    );
    let asked = ask(call(3, FLOW));
    let made = ask(answer(&asked, "accept"));
    assert_eq!(
        made["result"]["structuredContent"]["status"], "committed",
        "{made}"
    );
    // The revision without sessions asks by its answer, and the client repeats the call.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let changed = FLOW.replace("hello", "hi");
    let mut arguments = first(&changed);
    let id = made["result"]["structuredContent"]["revision"]["id"].clone();
    arguments["base_revision_id"] = id;
    let mut params = json!({"name": "commit_revision", "arguments": arguments, "_meta": meta});
    let asked = ask(request(4, "tools/call", params.clone()));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] =
        json!({"approval": {"action": "accept", "content": {"allow": true}}});
    let made = ask(request(5, "tools/call", params.clone()));
    assert_eq!(
        made["result"]["structuredContent"]["status"], "committed",
        "{made}"
    );
    params["arguments"]["base_revision_id"] =
        made["result"]["structuredContent"]["revision"]["id"].clone();
    uses_an_answer_up(params, |id, params| {
        ask(request(id, "tools/call", params.clone()))
    });
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn spans_show_which_calls_of_an_agent_returned() {
    let agents = Agents::serve();
    let tool = agents.http_tool("lookup");
    let waiting = agents.client_tool("ask");
    let agent = agents.agent(
        "call lookup\ncall ask\nsay done",
        &[&tool, &waiting],
        json!({}),
    );
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(paused["status"], "requires_action", "{paused}");
    let runs = agents.scratch.run(&["runs", "list", "--json"]).json();
    let run = runs["runs"][0]["id"].as_str().expect("a run").to_owned();
    let body = json!({"filtering": {"conditions": [{"field": "trace_id", "operator": "is", "value": run}]}});
    let token = format!("authorization: ApiKey {}", agents.api.token);
    let headers = [&*token, "content-type: application/json"];
    let reply = agents
        .api
        .request("POST /api/spans/query", &headers, &body.to_string());
    assert_eq!(reply.status, 200, "{reply:?}");
    let found = reply.json();
    let spans = found["spans"].as_array().expect("spans").clone();
    let named = |name: &str| {
        let mut spans = spans.iter();
        spans
            .find(|it| it["span_name"] == *name)
            .cloned()
            .unwrap_or_else(|| panic!("{name}: {found}"))
    };
    assert_eq!(spans[0]["span_type"], "workflow");
    let lookup = named("execute_tool lookup");
    assert!(lookup["attributes"]["output"].is_object(), "{lookup}");
    assert_eq!(lookup["status_code"], "STATUS_CODE_OK");
    assert_eq!(lookup["attributes"]["gen_ai.tool.name"], "lookup");
    let ask = named("execute_tool ask");
    assert_eq!(ask["attributes"].get("output"), None, "{ask}");
    assert_eq!(ask["status_code"], "STATUS_CODE_UNSET");
    let chat = named("chat fake-1");
    assert_eq!(chat["attributes"]["gen_ai.operation.name"], "chat");
    let agent = spans
        .iter()
        .find(|it| it["span_type"] == "agent")
        .expect("an agent");
    assert_eq!(lookup["parent_id"], agent["span_id"]);
    assert_eq!(chat["parent_id"], agent["span_id"]);
}
