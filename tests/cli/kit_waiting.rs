//! Calls of the build kit that take long: progress, the end of their time, and clients that leave.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;
use crate::server::{Answer, Server};

const SETTINGS: &str = r#"{:allow {:net ["127.0.0.1"]}
 :kit {:permissions {:test_run :allow :test_subscription :allow}}}"#;
/// How long a cancel may take to arrive.
const LONGEST: Duration = Duration::from_secs(60);

/// A project whose flow `mail` takes ten minutes.
fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    scratch.write("flows/orders.edn", "{:slug :orders :flow '1}");
    push(&scratch, "(flow/step :sleep :long {:millis 600000})");
    scratch
}

fn push(scratch: &Scratch, body: &str) {
    let file = scratch.write("mail.edn", format!("{{:slug :mail :flow '{body}}}"));
    let file = file.display().to_string();
    scratch.run(&["flows", "push", &file, "--force"]).ok();
}

/// A client of the kit's server with a session.
struct Client<'a> {
    api: &'a Api,
    session: String,
}

impl Client<'_> {
    fn begin(api: &Api) -> Client<'_> {
        let mut client = Client {
            api,
            session: String::new(),
        };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                            "clientInfo": {"name": "test", "version": "1"}});
        let reply = client
            .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        let session = reply.header("mcp-session-id").expect("a session");
        session.clone_into(&mut client.session);
        client
    }

    fn send(&self, message: &Value) -> Reply {
        let token = format!("authorization: Bearer {}", self.api.token);
        let session = format!("mcp-session-id: {}", self.session);
        let mut headers = vec![&*token, "content-type: application/json"];
        if !self.session.is_empty() {
            headers.push(&session);
        }
        let what = "POST /mcp/kit/mail";
        self.api.request(what, &headers, &message.to_string())
    }

    fn call(&self, id: u32, tool: &str, (arguments, meta): (&Value, &Value)) -> Reply {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }
}

#[test]
fn a_call_reports_progress_every_five_seconds_and_ends_in_its_time() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let client = Client::begin(&api);
    let arguments = json!({"connection_id": "local", "timeout_s": 6,
                           "data": {"event_key": "flow.orders.completed"}});
    let begun = Instant::now();
    let (with, without) = std::thread::scope(|scope| {
        let call = |id, meta: Value| {
            let (client, arguments) = (&client, &arguments);
            scope.spawn(move || client.call(id, "test_subscription", (arguments, &meta)))
        };
        let with = call(2, json!({"progressToken": "p-1"}));
        let without = call(3, json!({}));
        (
            with.join().expect("an answer"),
            without.join().expect("an answer"),
        )
    });
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(6), "{took:?}");
    for reply in [&with, &without] {
        let answer = reply.json();
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{answer}");
        assert_eq!(result["structuredContent"]["code"], "no_event", "{answer}");
    }
    let lines = with.body.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("data: "));
    let messages = lines.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let progress: Vec<Value> = messages
        .filter(|message| message["method"] == "notifications/progress")
        .collect();
    assert_eq!(progress.len(), 1, "{with:?}");
    assert_eq!(progress[0]["params"]["progressToken"], "p-1");
    assert_eq!(progress[0]["params"]["progress"], 5);
    assert!(!without.body.contains("notifications/progress"));
}

/// Returns the run of the test, if it is in a state.
fn tested(api: &Api, status: &str) -> Option<Value> {
    let runs = api.get("/api/v1/runs?flow=mail").json();
    let runs = runs["runs"].as_array().expect("runs").clone();
    let mut runs = runs.into_iter();
    runs.find(|run| run["startedBy"] == "test" && run["status"] == *status)
}

/// Waits until the run of the test is in a state.
#[track_caller]
fn wait_for(api: &Api, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        if let Some(run) = tested(api, status) {
            return run;
        }
        assert!(begun.elapsed() < LONGEST, "no test is {status}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a call of `test_run`, and returns the connection on which its answer comes.
fn send_test(api: &Api) -> TcpStream {
    let mut stream = TcpStream::connect(&api.address).expect("somebody listens");
    let (host, token, body) = (&api.address, &api.token, r#"{"inputs": {}}"#);
    write!(
        stream,
        "POST /api/tools/test_run HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nx-flowstone-flow: mail\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    stream
}

#[test]
fn a_cancelled_request_ends_the_test_that_it_started() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let client = Client::begin(&api);
    let arguments = json!({"inputs": {}});
    let begun = Instant::now();
    let reply = std::thread::scope(|scope| {
        let called = scope.spawn(|| client.call(7, "test_run", (&arguments, &json!({}))));
        wait_for(&api, "waiting");
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": {"requestId": 7, "reason": "changed my mind"}});
        assert_eq!(client.send(&cancel).status, 202);
        called.join().expect("an answer")
    });
    assert!(begun.elapsed() < LONGEST, "{reply:?}");
    assert!(!reply.body.contains("verdict"), "{reply:?}");
    let run = wait_for(&api, "cancelled");
    let shown = api.get(&format!(
        "/api/v1/runs/{}",
        run["id"].as_str().expect("an id")
    ));
    assert!(shown.body.contains("test_interrupted"), "{shown:?}");
}

#[test]
fn a_closed_request_ends_the_test_that_it_started() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let stream = send_test(&api);
    wait_for(&api, "waiting");
    drop(stream);
    wait_for(&api, "cancelled");
}

#[test]
fn a_test_whose_server_is_killed_is_cancelled_and_not_resumed() {
    let scratch = project();
    let desk = Server::start(|_, _| Answer::Hang(Vec::new()));
    let url = desk.url("/desk");
    push(
        &scratch,
        &format!("(flow/step :http :ask {{:url \"{url}\" :retry {{:max-attempts 3}}}})"),
    );
    let api = Api::serve(&scratch);
    let stream = send_test(&api);
    let run = wait_for(&api, "running");
    let begun = Instant::now();
    while desk.requests().is_empty() {
        assert!(begun.elapsed() < LONGEST, "the step is not performed");
        std::thread::sleep(Duration::from_millis(20));
    }
    api.kill();
    drop(stream);
    let api = Api::serve(&scratch);
    // The lease of the killed server ends first.
    let ended = wait_for(&api, "cancelled");
    assert_eq!(ended["id"], run["id"]);
    let path = format!("/api/v1/runs/{}", run["id"].as_str().expect("an id"));
    let shown = api.get(&path);
    assert!(shown.body.contains("test_interrupted"), "{shown:?}");
    assert_eq!(desk.requests().len(), 1, "nothing is asked again");
    // The next test of the flow is not refused.
    push(&scratch, "(+ 1 2)");
    let token = format!("authorization: Bearer {}", api.token);
    let headers = [
        &*token,
        "content-type: application/json",
        "x-flowstone-flow: mail",
    ];
    let body = json!({"inputs": {}}).to_string();
    let next = api.request("POST /api/tools/test_run", &headers, &body);
    assert_eq!(next.json()["output"], "3", "{next:?}");
}

#[test]
fn a_test_that_calls_the_kit_over_mcp_is_refused() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let own = format!(
        "{{:allow {{:net [\"127.0.0.1\"]}}
          :kit {{:permissions {{:test_run :allow :commit_revision :allow}}}}
          :connections {{:own {{:backend :mcp :base-url \"http://{}/mcp/kit/mail\"
                               :auth {{:type :bearer :secret-ref :own-token}}}}}}}}",
        api.address
    );
    // The command reads it; the server has its own settings.
    scratch.write("flowstone.edn", own);
    scratch.write(".env", format!("OWN_TOKEN={}\n", api.token));
    for (tool, arguments, code) in [
        ("test_run", "{:inputs {}}", "recursion_refused"),
        (
            "commit_revision",
            "{:delta {:set {:parameters {:files {\"notes.md\" \"x\"}}}}}",
            "refused_in_test",
        ),
    ] {
        let text = format!(
            "{{:slug :mail :mcp [{{:id :f/own :connection :own}}]
              :flow '(try (pr-str (flow/step :mcp :again {{:adapter :f/own :tool \"{tool}\" :arguments {arguments}}}))
                          (catch Exception e (pr-str (ex-message e) (ex-data e))))}}"
        );
        let file = scratch.write("mail.edn", text).display().to_string();
        scratch.run(&["flows", "push", &file, "--force"]).ok();
        let arguments = r#"{"inputs": {}}"#;
        let ran = scratch.run(&["kit", "test_run", "--flow", "mail", "--json", arguments]);
        assert!(ran.out.contains(code), "{tool}: {ran:?}");
    }
    let runs = api.get("/api/v1/runs?flow=mail").json();
    let runs = runs["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2, "no test started another: {runs:?}");
}

/// A flow that tests itself, and whose test takes ten minutes.
const BUILDER: &str = r#"{:slug :mail :invocations {:default {:inputs [{:name :mode :type :text :required false}]}}
 :flow '(if (= "slow" (:mode (flow/input)))
          (flow/step :sleep :long {:millis 600000})
          (do (try (flow/step :kit :test {:tool "test_run" :arguments {:inputs {:mode "slow"}} TIMEOUT})
                   (catch Exception e nil))
              (flow/step :sleep :stay {:millis 600000})))}"#;

#[test]
fn a_test_ends_with_the_step_that_started_it() {
    for timeout in ["", ":timeout \"2s\""] {
        let scratch = Scratch::new();
        scratch.write("flowstone.edn", SETTINGS);
        let file = scratch.write("flows/mail.edn", BUILDER.replace("TIMEOUT", timeout));
        let file = file.display().to_string();
        scratch.run(&["flows", "push", &file]).ok();
        let api = Api::serve(&scratch);
        let reply = api.post("/api/v1/flows/mail/runs", &json!({"input": {}}));
        let run = reply.json()["id"].as_str().expect("a run").to_owned();
        if timeout.is_empty() {
            wait_for(&api, "waiting");
            let reply = api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({}));
            assert!(reply.status < 300, "{reply:?}");
        }
        wait_for(&api, "cancelled");
    }
}
