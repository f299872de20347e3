//! The build kit as tools of an agent, in the program: what reaches the model, who answers for a call, and what installed
//! copies may do.

use serde_json::{Value, json};

use flowstone_fronts::kit::playbook;

use crate::program::Scratch;
use crate::server::{Answer, Request, Server};

/// A model that makes these turns: calls of tools, and then a text.
pub(super) fn model(turns: Vec<Vec<(&'static str, Value)>>) -> Server {
    Server::start(move |request, _| turn(request, &turns))
}

pub(super) fn turn(request: &Request, turns: &[Vec<(&'static str, Value)>]) -> Answer {
    let body: Value = serde_json::from_str(&request.body).expect("a JSON body");
    let messages = body["messages"].as_array().expect("messages");
    let number = messages.iter().filter(|it| it["role"] == "assistant");
    let number = number.count();
    let delta = match turns.get(number) {
        None => json!({"content": "done"}),
        Some(calls) => {
            let calls = calls.iter().enumerate().map(|(idx, (name, arguments))| {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                json!({"index": idx, "id": format!("c{number}{idx}"), "type": "function", "function": function})
            });
            json!({"tool_calls": calls.collect::<Vec<_>>()})
        }
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11});
    let choice = json!({"index": 0, "delta": delta, "finish_reason": "stop"});
    Answer::Events(vec![
        json!({"id": "1", "model": "fake", "choices": [choice], "usage": usage}).to_string(),
        "[DONE]".to_owned(),
    ])
}

pub(super) fn settings(server: &Server, more: &str) -> String {
    format!(
        "{{:connections {{:ai {{:type :http-api :backend \"openai-compatible\" :model \"fake\"
                               :base-url \"{}\" :auth {{:type :none}}}}}} {more}}}",
        server.url("/v1")
    )
}

/// A flow whose agent has the kit.
fn builder(kit: &str) -> String {
    format!(
        "{{:slug :digest
          :flow '(let [done (flow/step :agent :builder {{:connection :ai :objective \"Build.\" :instructions \"Be brief.\" :tools {{:kit {kit}}}}})]
                   {{:calls (mapv (fn [call] (select-keys call [:name :result :success])) (:tool-calls done))}})}}"
    )
}

fn commit(text: &str) -> Value {
    json!({"delta": {"set": {"parameters": {"files": {"flow.edn": text}}}}})
}

/// The bodies of the requests that reached the model.
fn asked(server: &Server) -> Vec<Value> {
    let requests = server.requests().into_iter();
    requests
        .map(|it| serde_json::from_str(&it.body).expect("JSON"))
        .collect()
}

#[test]
fn the_playbook_and_closed_schemas_reach_the_model_once() {
    let server = model(vec![
        vec![("list_schedules", json!({}))],
        vec![("commit_revision", commit("{:slug :digest :flow '(str 1)}"))],
        vec![(
            "annotate_trace",
            json!({"references": {"evaluator": {"slug": "me"}}, "data": {"outputs": {}}}),
        )],
    ]);
    let scratch = Scratch::new();
    let more = ":kit {:permissions {:commit_revision :allow :annotate_trace :allow}}";
    scratch.write("flowstone.edn", settings(&server, more));
    scratch.write("flows/digest.edn", builder("true"));
    let ran = scratch.run(&["run", "flows/digest.edn", "--quiet"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = asked(&server);
    assert_eq!(requests.len(), 4);
    for request in &requests {
        let whole = request["messages"].to_string();
        let text = json!(playbook::TEXT).to_string();
        let text = text.trim_matches('"');
        assert_eq!(
            whole.matches(text).count(),
            1,
            "the playbook is there once, byte for byte"
        );
        assert!(whole.contains("Be brief."));
    }
    let system = requests[0]["messages"][0]["content"]
        .as_str()
        .expect("a prompt");
    assert!(system.contains("a run of the flow `digest`"), "{system}");
    assert!(system.contains("`digest` does not exist yet"), "{system}");
    // What the agent knows of the flow is what was there when it began.
    assert_eq!(requests[3]["messages"][0], requests[0]["messages"][0]);
    let tools = requests[0]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    let default: Vec<&str> = flowstone_flow::tools::kit::default_names().collect();
    assert_eq!(names, default);
    for tool in tools {
        let function = &tool["function"];
        let schema = &function["parameters"];
        assert_eq!(schema["additionalProperties"], false, "{function}");
        let own = flowstone_fronts::kit::catalog::find(function["name"].as_str().expect("a name"));
        let own = own.expect("a tool of the kit");
        assert_eq!(*schema, (own.input)());
        for field in own.bound.iter().flat_map(|bound| bound.fields()) {
            let is_slug = (own.name, *field) == ("request_connection", "slug");
            assert!(
                is_slug || schema["properties"].get(field).is_none(),
                "{field}"
            );
        }
    }
    let versions = scratch
        .run(&["flows", "versions", "digest", "--json"])
        .json();
    assert_eq!(
        versions["versions"].as_array().map(Vec::len),
        Some(1),
        "{versions}"
    );
    // The next run begins with the revision that the last one made.
    let ran = scratch.run(&["run", "flows/digest.edn", "--quiet"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let again = asked(&server)[4].clone();
    let system = again["messages"][0]["content"].as_str().expect("a prompt");
    assert!(
        system.contains("(version 1): its `base_revision_id`"),
        "{system}"
    );
    assert!(
        system.contains("{:slug :digest :flow '(str 1)}"),
        "{system}"
    );
}

#[test]
fn a_person_answers_for_a_call_with_the_commands_for_waits() {
    let server = model(vec![vec![
        ("commit_revision", commit("{:slug :digest :flow '(str 2)}")),
        ("query_spans", json!({})),
    ]]);
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", settings(&server, ""));
    scratch.write(
        "flows/digest.edn",
        builder("[:commit_revision :query_spans]"),
    );
    let ran = scratch.run(&["run", "flows/digest.edn", "--quiet"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let waits = scratch.json_of(&["waits", "list"]);
    let id = waits["waits"][0]["id"].as_str().expect("a wait");
    let shown = scratch.run(&["waits", "show", id]).ok();
    for part in ["Allow `commit_revision` on the flow `digest`?", "(str 2)"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // The kit's own approvals have nothing to do with it.
    let approvals = scratch.json_of(&["kit", "approvals"]);
    assert_eq!(approvals["count"], 0, "{approvals}");
    let none = scratch.json_of(&["flows", "versions", "digest"]);
    assert_eq!(none["versions"][0]["author"], Value::Null, "{none}");
    scratch.run(&["waits", "approve", id]).ok();
    scratch.run(&["runs", "resume", "--all", "--quiet"]);
    let versions = scratch.json_of(&["flows", "versions", "digest"]);
    let versions = versions["versions"].as_array().expect("versions");
    assert_eq!(versions.len(), 1, "{versions:?}");
    assert!(
        versions[0]["author"]
            .as_str()
            .is_some_and(|it| it.starts_with("run "))
    );
    let last = asked(&server).pop().expect("a request");
    let results: Vec<&Value> = last["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter(|it| it["role"] == "tool")
        .collect();
    assert!(
        results[0]["content"].to_string().contains("committed"),
        "{results:?}"
    );
    assert!(
        results[1]["content"]
            .to_string()
            .contains("invoke_workflow"),
        "{results:?}"
    );
}

#[test]
fn an_installed_copy_does_not_change_the_flow_of_its_author() {
    let server = model(vec![vec![
        ("commit_revision", commit("{:slug :digest :flow '(str 3)}")),
        ("test_run", json!({"inputs": {}})),
        ("query_spans", json!({})),
    ]]);
    let scratch = Scratch::new();
    // The model is a connection of the installer; the settings allow every call.
    let text = format!(
        "{{:connections {{:one {{:workspace :acme :type :http-api :backend \"openai-compatible\" :model \"fake\"
                                :base-url \"{}\" :auth {{:type :none}}}}}}
          :kit {{:permissions {{:commit_revision :allow :test_run :allow}}}}}}",
        server.url("/v1")
    );
    scratch.write("flowstone.edn", text);
    let slot = "{:slug :digest :requires [{:slot :ai :type :llm-provider}]";
    scratch.write(
        "flows/digest.edn",
        builder("true").replace("{:slug :digest", slot),
    );
    for args in [
        &["flows", "push", "digest"][..],
        &["flows", "release", "digest"],
        &[
            "flows",
            "install",
            "digest",
            "--workspace",
            "acme",
            "--as",
            "copy",
        ],
        &["flows", "configure", "acme/copy", "--set", "ai.conn=one"],
        &["run", "digest", "--installation", "acme/copy", "--quiet"],
    ] {
        let ran = scratch.run(args);
        assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
    }
    let last = asked(&server).pop().expect("a request");
    let results = last["messages"].as_array().expect("messages").iter();
    let results: Vec<String> = results
        .filter(|it| it["role"] == "tool")
        .map(|it| it["content"].to_string())
        .collect();
    assert_eq!(results.len(), 3);
    for result in results {
        assert!(result.contains("permission_denied"), "{result}");
    }
    let versions = scratch.json_of(&["flows", "versions", "digest"]);
    assert_eq!(
        versions["versions"].as_array().map(Vec::len),
        Some(1),
        "{versions}"
    );
}

#[test]
fn check_knows_the_setting_and_its_names() {
    let scratch = Scratch::new();
    scratch.write(
        "good.edn",
        builder("[:test-run read_config]").replace("read_config", ":read_config"),
    );
    let ran = scratch.run(&["check", "good.edn"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    scratch.write("bad.edn", builder("[:comit_revision]"));
    let ran = scratch.run(&["check", "bad.edn"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in [
        "the build kit has no tool `comit_revision`",
        "did you mean `commit_revision`?",
    ] {
        assert!(ran.err.contains(part) || ran.out.contains(part), "{ran:?}");
    }
}
