//! The MCP server, over HTTP and over standard input and output, as clients see it.

#[cfg(unix)]
mod agents;
mod approvals;
#[cfg(unix)]
mod listen;
#[cfg(unix)]
mod tasks;
mod workspace;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;

const ORDER: &str = r#"{:slug :order :description "Looks up an order." :tags [:shop]
  :invocations {:default {:inputs [{:name :id :type :text :required true :description "Its number."}
                                   {:name :size :type :select :options [:s :m] :default :m}]}}
  :interfaces {:mcp [{:tool-name "find_order" :label "Find" :invocation :default
                      :output-schema {:type "object" :properties {"id" {:type "string"}}}}
                     {:tool-name "order" :kind :resource :uri "orders://{id}" :invocation :default}
                     {:tool-name "ask_order" :kind :prompt :invocation :default}
                     {:tool-name "off" :invocation :default :enabled false}]}
  :flow '(let [in (flow/input)]
           (case (:id in)
             "bad" (throw (ex-info "no such order" {}))
             "zero" (/ 1 0)
             {:id (:id in) :size (:size in)}))}"#;

const PAY: &str = r#"{:slug :pay :invocations {:default {:inputs []}}
  :interfaces {:mcp [{:tool-name "pay" :invocation :default}]}
  :flow '(:action (flow/step :wait :ok {:message "Pay?" :actions [:approve :reject]}))}"#;

const FORM: &str = r#"{:slug :form :invocations {:default {:inputs []}}
  :interfaces {:mcp [{:tool-name "form" :invocation :default}]}
  :flow '(:city (flow/step :wait :place {:message "Where?" :validation [:map [:city :string]]}))}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/order.edn", ORDER);
    scratch.write("flows/pay.edn", PAY);
    scratch.write("flows/form.edn", FORM);
    scratch
}

/// A client of the revisions with sessions.
struct Client<'a> {
    api: &'a Api,
    token: String,
    session: String,
}

impl<'a> Client<'a> {
    fn begin(api: &'a Api, token: &str, capabilities: &Value) -> Client<'a> {
        let mut client = Client {
            api,
            token: token.to_owned(),
            session: String::new(),
        };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let reply = client.send("initialize", &params);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["result"]["protocolVersion"], "2025-11-25");
        let session = reply.header("mcp-session-id").expect("a session");
        client.session = session.to_owned();
        client
    }

    fn owner(api: &'a Api) -> Client<'a> {
        Client::begin(api, &api.token, &json!({}))
    }

    fn send(&self, method: &str, params: &Value) -> Reply {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let token = format!("authorization: Bearer {}", self.token);
        let session = format!("mcp-session-id: {}", self.session);
        let mut headers = vec![&*token, "content-type: application/json"];
        if !self.session.is_empty() {
            headers.push(&session);
        }
        self.api.request("POST /mcp", &headers, &body.to_string())
    }

    /// Returns the answer to a request: its result, or its error.
    fn ask(&self, method: &str, params: &Value) -> Value {
        let reply = self.send(method, params);
        let mut answer = last_message(&reply);
        match answer.get("result") {
            Some(_) => answer["result"].take(),
            None => answer,
        }
    }

    fn call(&self, name: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": name, "arguments": arguments}))
    }

    fn tools(&self) -> Vec<String> {
        let tools = self.ask("tools/list", &json!({}));
        let tools = tools["tools"].as_array().expect("tools").iter();
        tools
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    }
}

/// Calls a tool as the owner, and returns the answer as it is.
pub(super) fn call_of(api: &Api, name: &str, arguments: &Value) -> Reply {
    let params = json!({"name": name, "arguments": arguments});
    Client::owner(api).send("tools/call", &params)
}

/// Returns the last message of an answer, which is JSON or a stream of events.
pub(super) fn last_message(reply: &Reply) -> Value {
    let mut events = reply
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    match events.next_back() {
        Some(data) => serde_json::from_str(data).expect("a message"),
        None => reply.json(),
    }
}

fn token(scratch: &Scratch, args: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "t"], args].concat();
    let made = scratch.json_of(&args);
    made["token"].as_str().expect("a token").to_owned()
}

#[test]
fn a_flow_is_a_tool_with_its_schemas() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let client = Client::owner(&api);
    let tools = client.ask("tools/list", &json!({}));
    let tools = tools["tools"].as_array().expect("tools");
    let tool = tools.iter().find(|tool| tool["name"] == "find_order");
    let tool = tool.expect("the tool of the flow");
    assert_eq!(tool["description"], "Looks up an order.");
    assert_eq!(tool["title"], "Find");
    assert_eq!(tool["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(tool["outputSchema"]["type"], "object");
    assert_eq!(
        tool["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "Its number."},
                "size": {"enum": ["s", "m"], "default": "m"},
            },
            "required": ["id"],
            "additionalProperties": false,
        })
    );
    assert!(!client.tools().contains(&"off".to_owned()));
    let found = client.call("find_order", &json!({"id": "o-1"}));
    assert_eq!(found["isError"], false, "{found}");
    assert_eq!(
        found["structuredContent"],
        json!({"id": "o-1", "size": "m"})
    );
    let run = found["_meta"]["runId"].as_str().expect("a run");
    assert_eq!(
        api.get(&format!("/api/v1/runs/{run}")).json()["status"],
        "completed"
    );
}

#[test]
fn failures_and_bad_arguments_are_answers_of_the_tool() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let client = Client::owner(&api);
    for (arguments, expected) in [
        (json!({"id": "bad"}), "no such order"),
        (json!({}), "E0420"),
        (json!({"id": "o", "colour": 1}), "E1045"),
        (json!({"id": "o", "size": "xl"}), "E0421"),
        (json!({"id": "o", "activation": {}}), "E1045"),
        (json!({"id": "o", "flow/ctx": {}}), "E1045"),
    ] {
        let answer = client.call("find_order", &arguments);
        assert_eq!(answer["isError"], true, "{arguments}: {answer}");
        let text = answer["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains(expected), "{arguments}: {text}");
    }
    let unknown = client.call("no_such_tool", &json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let failed = client.call("find_order", &json!({"id": "zero"}));
    let text = failed["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("\ncode: E0322\nrun: "), "{text}");
    let facts = &failed["_meta"];
    assert_eq!(
        (&facts["code"], &facts["status"]),
        (&json!("E0322"), &json!("failed"))
    );
    let read = client.ask("resources/read", &json!({"uri": "orders://zero"}));
    assert_eq!(read["error"]["data"]["code"], "E0322", "{read}");
    let task = json!({"name": "find_order", "arguments": {"id": "zero"}, "task": {}});
    let task = client.ask("tools/call", &task)["task"]["taskId"].take();
    let result = client.ask("tasks/result", &json!({"taskId": task}));
    assert_eq!(result["_meta"]["code"], "E0322", "{result}");
    let found = client.ask("tasks/get", &json!({"taskId": task}));
    let message = found["statusMessage"].as_str().expect("a message");
    assert!(message.contains("code: E0322"), "{found}");
    // Only the failed ones are runs.
    let runs = api.get("/api/v1/runs").json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(4), "{runs}");
}

#[test]
fn a_token_sees_what_it_may_use() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let reads = token(&scratch, &["--scope", "read"]);
    let tools = Client::begin(&api, &reads, &json!({})).tools();
    assert!(
        tools.contains(&"workspace_runs_list".to_owned()),
        "{tools:?}"
    );
    assert!(
        tools.iter().all(|tool| tool.starts_with("workspace_")),
        "{tools:?}"
    );
    assert!(
        !tools
            .iter()
            .any(|tool| tool.contains("cancel") || tool.contains("approve"))
    );
    let runs = token(
        &scratch,
        &["--scope", "run", "--scope", "edit", "--flow", "pay"],
    );
    let client = Client::begin(&api, &runs, &json!({}));
    let tools = client.tools();
    assert_eq!(
        tools,
        [
            "pay",
            "workspace_events_publish",
            "workspace_flows_run",
            "workspace_runs_cancel",
            "workspace_runs_fork",
            "workspace_runs_resume",
            "workspace_schedules_run",
            "workspace_signals_send",
        ]
    );
    let other = client.call("find_order", &json!({"id": "o"}));
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let started = client.call(
        "workspace_flows_run",
        &json!({"slug": "order", "input": {}}),
    );
    assert_eq!(started["isError"], true, "{started}");
    assert_eq!(api.get("/api/v1/runs").json()["runs"], json!([]));
}

#[test]
fn a_session_belongs_to_its_token_and_ends() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let own = format!("authorization: Bearer {}", api.token);
    let ask = |headers: &[&str]| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let all = [headers, &["content-type: application/json"]].concat();
        api.request("POST /mcp", &all, body)
    };
    assert_eq!(ask(&[]).status, 401);
    assert_eq!(ask(&[&own]).status, 400);
    let client = Client::owner(&api);
    assert_eq!(client.ask("ping", &json!({})), json!({}));
    let session = format!("mcp-session-id: {}", client.session);
    let other = format!(
        "authorization: Bearer {}",
        token(&scratch, &["--scope", "read"])
    );
    assert_eq!(ask(&[&other, &session]).problem(), "404 E1083");
    assert_eq!(api.request("GET /mcp", &[&own], "").status, 405);
    assert_eq!(
        api.request("DELETE /mcp", &[&own, &session], "").status,
        204
    );
    assert_eq!(client.send("ping", &json!({})).problem(), "404 E1083");
    assert_eq!(api.get("/.well-known/oauth-protected-resource").status, 404);
}

/// A request of the revision without sessions. `_meta` of the parameters is what the client can do.
fn stateless(api: &Api, headers: &[&str], method: &str, params: &Value) -> Reply {
    let mut params = params.clone();
    let capabilities = params["_meta"].take();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    if capabilities.is_object() {
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    }
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let own = format!("authorization: Bearer {}", api.token);
    let all = [headers, &[&*own, "content-type: application/json"]].concat();
    api.request("POST /mcp", &all, &body.to_string())
}

#[test]
fn headers_of_the_stateless_revision_agree_with_the_body() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let version = "mcp-protocol-version: 2026-07-28";
    let call = json!({"name": "find_order", "arguments": {"id": "o-1"}});
    let ask = |headers: &[&str]| stateless(&api, headers, "tools/call", &call);
    let good = ask(&[version, "mcp-method: tools/call", "mcp-name: find_order"]);
    let result = last_message(&good);
    assert_eq!(result["result"]["resultType"], "complete", "{result}");
    assert_eq!(result["result"]["structuredContent"]["id"], "o-1");
    for headers in [
        &["mcp-method: tools/call", "mcp-name: find_order"][..],
        &[version, "mcp-name: find_order"],
        &[version, "mcp-method: tools/list", "mcp-name: find_order"],
        &[version, "mcp-method: tools/call", "mcp-name: pay"],
    ] {
        let refused = ask(headers);
        assert_eq!(refused.status, 400, "{headers:?}");
        assert_eq!(refused.json()["error"]["code"], -32020, "{headers:?}");
        assert_eq!(refused.json()["id"], 7);
    }
    let unknown = ask(&["mcp-protocol-version: 2030-01-01"]);
    assert_eq!(unknown.status, 400);
    let supported = &unknown.json()["error"]["data"]["supported"];
    assert_eq!(supported[0], "2026-07-28", "{supported}");
    let removed = [version, "mcp-method: ping"];
    let removed = stateless(&api, &removed, "ping", &json!({}));
    assert_eq!(
        (removed.status, removed.json()["error"]["code"].as_i64()),
        (404, Some(-32601))
    );
}

#[test]
fn a_wait_for_data_is_a_form_and_its_state_belongs_to_the_caller() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let headers = [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: form",
    ];
    let ask = |more: &Value| {
        let mut params = json!({"name": "form", "arguments": {}});
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        last_message(&stateless(&api, &headers, "tools/call", &params))
    };
    let asked = ask(&json!({}));
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let request = &asked["inputRequests"]["place"];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(
        request["params"]["requestedSchema"]["required"],
        json!(["city"])
    );
    let state = asked["requestState"].as_str().expect("a state");
    let answer = json!({"place": {"action": "accept", "content": {"city": "Bern"}}});
    let forged = ask(&json!({"requestState": format!("{state}0"), "inputResponses": answer}));
    assert_eq!(forged["error"]["code"], -32602, "{forged}");
    let wrong = json!({"place": {"action": "accept", "content": {"city": 7}}});
    let again = ask(&json!({"requestState": state, "inputResponses": wrong}));
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let done = ask(&json!({"requestState": state, "inputResponses": answer}));
    assert_eq!(
        done["result"]["structuredContent"],
        json!({"result": "Bern"}),
        "{done}"
    );
}

#[test]
fn an_approval_is_never_a_form_unless_the_project_says_so() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let headers = [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: pay",
    ];
    let params = json!({"name": "pay", "arguments": {}});
    let late = last_message(&stateless(&api, &headers, "tools/call", &params));
    let late = &late["result"];
    assert_eq!(late["structuredContent"]["status"], "waiting", "{late}");
    let waits = late["structuredContent"]["waits"]
        .as_array()
        .expect("waits");
    assert_eq!(waits.len(), 1);
    drop(api);
    scratch.write("flowstone.edn", "{:server {:mcp {:elicit-approvals true}}}");
    let api = Api::serve(&scratch);
    let asked = last_message(&stateless(&api, &headers, "tools/call", &params));
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answer = json!({"ok": {"action": "accept", "content": {"action": "approve"}}});
    let mut params = params;
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = answer;
    let done = last_message(&stateless(&api, &headers, "tools/call", &params));
    assert_eq!(
        done["result"]["structuredContent"],
        json!({"result": "approve"}),
        "{done}"
    );
}

#[test]
fn a_task_survives_the_server_and_belongs_to_its_token() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let client = Client::owner(&api);
    let created = client.ask(
        "tools/call",
        &json!({"name": "pay", "arguments": {}, "task": {}}),
    );
    let id = created["task"]["taskId"]
        .as_str()
        .expect("a task")
        .to_owned();
    drop(api);
    let api = Api::serve(&scratch);
    let client = Client::owner(&api);
    let task = json!({"taskId": id});
    let mut shown = client.ask("tasks/get", &task);
    while shown["status"] == "working" {
        shown = client.ask("tasks/get", &task);
    }
    assert_eq!(shown["status"], "input_required", "{shown}");
    let other = token(&scratch, &["--scope", "read", "--scope", "run"]);
    let other = Client::begin(&api, &other, &json!({}));
    assert_eq!(other.ask("tasks/get", &task)["error"]["code"], -32602);
    let listed = client.ask("tasks/list", &json!({}));
    assert_eq!(listed["tasks"][0]["taskId"], json!(id), "{listed}");
    let waits = client.call("workspace_waits_list", &json!({}));
    let wait = waits["structuredContent"]["waits"][0]["id"].clone();
    let approved = client.call("workspace_waits_approve", &json!({"id": wait}));
    assert_eq!(approved["isError"], false, "{approved}");
    let result = client.ask("tasks/result", &task);
    assert_eq!(
        result["structuredContent"],
        json!({"result": "approve"}),
        "{result}"
    );
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
        json!(id)
    );
    assert_eq!(client.ask("tasks/get", &task)["status"], "completed");
    assert_eq!(client.ask("tasks/cancel", &task)["error"]["code"], -32602);
}

#[test]
fn resources_and_prompts_are_flows_runs_pages_and_what_flows_make() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let client = Client::owner(&api);
    let called = client.call("find_order", &json!({"id": "o-1"}));
    let run = called["_meta"]["runId"].as_str().expect("a run");
    let read = |uri: &str| client.ask("resources/read", &json!({"uri": uri}));
    let text = |answer: &Value| {
        answer["contents"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(text(&read("flowstone://flows/order")).contains("Looks up an order."));
    assert!(text(&read(&format!("flowstone://runs/{run}"))).contains("completed"));
    assert_eq!(text(&read("orders://o-2")), r#"{"id":"o-2","size":"m"}"#);
    let missing = read("flowstone://flows/none");
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
    assert_eq!(missing["error"]["data"]["uri"], "flowstone://flows/none");
    let listed = client.ask("resources/list", &json!({}));
    let uris = listed["resources"].to_string();
    assert!(
        uris.contains("flowstone://flows/pay") && uris.contains(run),
        "{uris}"
    );
    let templates = client
        .ask("resources/templates/list", &json!({}))
        .to_string();
    assert!(templates.contains("orders://{id}"), "{templates}");
    let prompts = client.ask("prompts/list", &json!({})).to_string();
    assert!(
        prompts.contains("guide_steps") && prompts.contains("ask_order"),
        "{prompts}"
    );
    let goal = json!({"name": "create_flow_from_goal", "arguments": {"goal": "Send the news."}});
    assert!(
        client
            .ask("prompts/get", &goal)
            .to_string()
            .contains("Send the news.")
    );
    let asked = json!({"name": "ask_order", "arguments": {"id": "o-3"}});
    assert!(
        client
            .ask("prompts/get", &asked)
            .to_string()
            .contains("o-3")
    );
    let complete = json!({
        "ref": {"type": "ref/resource", "uri": "flowstone://flows/{slug}"},
        "argument": {"name": "slug", "value": "o"},
    });
    let values = client.ask("completion/complete", &complete);
    assert_eq!(values["completion"]["values"], json!(["order"]), "{values}");
}

#[test]
fn stdio_speaks_both_revisions_with_narrowed_rights() {
    let scratch = project();
    let mut child = scratch
        .command(&["mcp", "--scope", "run"])
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
    let early = ask(request(1, "tools/list", json!({})));
    assert_eq!(early["error"]["code"], -32600, "{early}");
    let begun = ask(request(
        2,
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
    ));
    assert_eq!(begun["result"]["protocolVersion"], "2025-06-18", "{begun}");
    let tools = ask(request(3, "tools/list", json!({}))).to_string();
    assert!(
        tools.contains("find_order") && !tools.contains("workspace_runs_list"),
        "{tools}"
    );
    let call = json!({"name": "find_order", "arguments": {"id": "o-1"}});
    let called = ask(request(4, "tools/call", call));
    assert_eq!(
        called["result"]["structuredContent"]["id"], "o-1",
        "{called}"
    );
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let found = ask(request(5, "server/discover", meta));
    assert_eq!(
        found["result"]["supportedVersions"][0], "2026-07-28",
        "{found}"
    );
    drop(input);
    assert!(child.wait().expect("it ends").success());
}
