//! `test_run` through its doors: HTTP and the command line, and flows that try to start tests from inside a test.

use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;

const SETTINGS: &str = r#"{:allow {:net ["127.0.0.1"]}
 :kit {:permissions {:test_run :allow :commit_revision :allow}}
 :connections {:ai {:backend :scripted :models ["test/small"] :script {:scripts [
  {:when "SEND" :turns [{:tool-calls [{:name "slack__send" :arguments {}}]} "Sent."]}
  {:when "BREAK" :turns [{:tool-calls [{:name "break" :arguments {}}]} "Oh."]}
  {:turns ["Nothing to do."]}]}}}}"#;

fn agent(word: &str) -> String {
    format!(
        "{{:slug :mail :requires [{{:slot :ai :type :http-api :backend :scripted}}]
          :steps [{{:id :slack/send :type :function :tool {{:name \"slack__send\"}} :description \"x\" :input-schema [:map]
                    :defaults {{:code '(fn [_] {{:sent true}})}}}}
                  {{:id :crm/break :type :function :tool {{:name \"break\"}} :description \"x\" :input-schema [:map]
                    :defaults {{:code '(fn [_] (throw (ex-info \"out of order\" {{}})))}}}}]
          :flow '(flow/step :agent :writer {{:connection :ai :instructions \"{word}\" :objective \"Write.\"
                    :tools {{:steps [:slack/send :crm/break]}}}})}}"
    )
}

fn project(text: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    push(&scratch, text);
    scratch
}

fn push(scratch: &Scratch, text: &str) {
    let file = scratch.write("mail.edn", text);
    let file = file.display().to_string();
    let ran = scratch.run(&["flows", "push", &file, "--force"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Calls a tool of the kit over HTTP.
fn call(api: &Api, tool: &str, more: &[&str], arguments: &Value) -> Reply {
    let authorization = format!("authorization: Bearer {}", api.token);
    let mut headers = vec![
        authorization.as_str(),
        "content-type: application/json",
        "x-flowstone-flow: mail",
    ];
    headers.extend(more);
    api.request(
        &format!("POST /api/tools/{tool}"),
        &headers,
        &arguments.to_string(),
    )
}

fn expecting(tool: &str) -> Value {
    json!({"inputs": {}, "expectations": {"terminal_tool": tool}})
}

#[test]
fn verdicts_come_over_http() {
    let scratch = project(&agent("SEND"));
    let api = Api::serve(&scratch);
    for (word, tool, verdict, reason) in [
        ("SEND", "send", "pass", Value::Null),
        (
            "SEND",
            "break",
            "incomplete",
            json!("terminal tool 'break' never ran"),
        ),
        (
            "BREAK",
            "break",
            "failed",
            json!("tool 'break' returned an error"),
        ),
        (
            "NOTHING",
            "send",
            "incomplete",
            json!("terminal tool 'send' never ran"),
        ),
    ] {
        push(&scratch, &agent(word));
        let reply = call(&api, "test_run", &[], &expecting(tool));
        assert_eq!(reply.status, 200, "{reply:?}");
        let answer = reply.json();
        assert_eq!(
            (&answer["verdict"], &answer["verdict_reason"]),
            (&json!(verdict), &reason),
            "{answer}"
        );
        let keys = [
            "approvals",
            "output",
            "resolved",
            "test_id",
            "tools",
            "trace_id",
            "verdict",
            "verdict_reason",
        ];
        let mut found: Vec<&String> = answer.as_object().expect("an object").keys().collect();
        found.sort();
        assert_eq!(found, keys);
    }
    for wrong in [
        json!({"inputs": {}, "target": "other"}),
        json!({"inputs": {}, "flow": "other"}),
        json!({"inputs": {}, "expectations": {"tool": "x"}}),
        json!({"inputs": {}, "delta": {"runner": {}}}),
        json!({}),
    ] {
        let reply = call(&api, "test_run", &[], &wrong);
        assert_eq!(
            reply.problem(),
            "400 invalid_arguments",
            "{wrong} {reply:?}"
        );
    }
}

#[test]
fn a_test_starts_no_test() {
    let scratch = project(&agent("SEND"));
    let api = Api::serve(&scratch);
    for header in ["x-flowstone-run-kind: test", "x-agenta-run-kind: test"] {
        let reply = call(&api, "test_run", &[header], &expecting("send"));
        assert_eq!(
            reply.problem(),
            "403 recursion_refused",
            "{header} {reply:?}"
        );
        let delta = json!({"delta": {"set": {"parameters": {"agent": {"model": "x"}}}}});
        let reply = call(&api, "commit_revision", &[header], &delta);
        assert_eq!(reply.problem(), "403 refused_in_test", "{header} {reply:?}");
    }
    // A flow that calls the server, by its address and by another name of the machine, directly and in a flow that it calls.
    let port = api.address.rsplit_once(':').expect("a port").1.to_owned();
    let post = |host: &str| {
        format!(
            "(try (flow/step :http :again {{:url \"http://{host}:{port}/api/tools/test_run\" :method :post
                :headers {{\"authorization\" \"Bearer {}\" \"x-flowstone-flow\" \"mail\" \"x-flowstone-run-kind\" \"none\"}}
                :json {{:inputs {{}}}}}}) (catch Exception e (ex-data e)))",
            api.token
        )
    };
    scratch.write(
        "flows/child.edn",
        format!("{{:slug :child :flow '{}}}", post("127.0.0.1")),
    );
    for body in [
        post("127.0.0.1"),
        post("localhost"),
        "(flow/call-flow :child {})".to_owned(),
    ] {
        push(&scratch, &format!("{{:slug :mail :flow '{body}}}"));
        let reply = call(&api, "test_run", &[], &expecting("again"));
        let answer = reply.json();
        let shown = answer.to_string();
        assert!(shown.contains("recursion_refused"), "{body} {shown}");
    }
    let runs = scratch.json_of(&["runs", "list"]);
    let tests = runs["runs"].as_array().expect("runs").iter();
    assert_eq!(
        tests.filter(|run| run["startedBy"] == "test").count(),
        3,
        "{runs}"
    );
}

#[test]
fn a_person_without_a_terminal_is_told_how_to_agree() {
    let scratch = project(&agent("SEND"));
    scratch.write(
        "flowstone.edn",
        SETTINGS.replace(":test_run :allow", ":test_run :ask"),
    );
    let asked = scratch.run(&["flows", "test", "mail"]);
    assert_eq!(asked.code, Some(3), "{asked:?}");
    for words in ["`--yes`", "`--dry`", "flowstone kit approve kap_"] {
        assert!(asked.err.contains(words), "{words} {}", asked.err);
    }
    assert!(!asked.err.contains("details"), "{}", asked.err);
}

#[test]
fn the_command_tests_a_flow() {
    let scratch = project(&agent("SEND"));
    let test = |args: &[&str]| scratch.run(&[&["flows", "test", "mail"], args].concat());
    let passed = test(&["--expect-tool", "send"]);
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(
        passed
            .out
            .starts_with("pass\n  slack__send returned\n\nSent.\n"),
        "{}",
        passed.out
    );
    let other = test(&["--expect-tool", "break", "--json", "--yes"]);
    assert_eq!(
        (other.code, &other.json()["verdict"]),
        (Some(1), &json!("incomplete")),
        "{other:?}"
    );
    let open = test(&["--dry", "--json"]);
    assert_eq!(open.code, Some(0), "{open:?}");
    assert_eq!(
        (&open.json()["verdict"], &open.json()["dry"]),
        (&json!("unconfirmed"), &json!(true))
    );
    let unknown = scratch.run(&["flows", "test", "nobody", "--yes"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.err.contains("no_revision"), "{}", unknown.err);
    let tool = scratch.run(&[
        "kit",
        "test_run",
        "--flow",
        "mail",
        "--json",
        &expecting("send").to_string(),
    ]);
    assert_eq!(tool.json()["verdict"], "pass", "{tool:?}");
}
