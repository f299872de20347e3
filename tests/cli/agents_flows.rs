//! Flows with models and agents on the command line: connections that are checked, drafts, and a kill while a second connection is asked.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

#[test]
fn names_that_no_connection_has_are_found_before_a_run() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        "{:connections {:main {:backend :openai} :spare {:backend :groq}}}",
    );
    for (kind, asks) in [("llm", ":prompt \"x\""), ("agent", ":objective \"x\"")] {
        for (given, unknown) in [
            ("[:main :spar]", Some("spar")),
            ("[\"main\" \"spare\"]", None),
            ("[:main (keyword \"x\")]", None),
            (":mian", Some("mian")),
            (":own", None),
        ] {
            let flow = format!(
                "{{:slug :f :requires [{{:slot :own :type :llm-provider}}] :flow '(flow/step :{kind} :a {{:connection {given} {asks}}})}}"
            );
            scratch.write("flows/f.clj", flow);
            let found = scratch.run(&["check", "flows/f.clj", "--json"]).json();
            let expected = match unknown {
                Some(name) => json!([[
                    "warning",
                    "E0750",
                    format!("there is no connection `:{name}`")
                ]]),
                None => json!([]),
            };
            let findings = found["findings"].as_array().expect("findings").iter();
            let findings: Vec<_> = findings
                .map(|it| json!([it["severity"], it["code"], it["message"]]))
                .collect();
            assert_eq!(json!(findings), expected, "{kind} {given}: {found}");
            assert_eq!(found["ok"], true, "it is a warning");
        }
    }
}

#[test]
fn a_draft_may_have_every_step_that_flows_may_have() {
    let scratch = Scratch::new();
    let draft = |step: &str| {
        let literal = format!("{{:slug :d :flow '(flow/step {step})}}");
        let flow = format!(
            "(flow/step :workspace :push {{:op :flows/push-draft :mutations :draft-only :args {{:flow-literal {literal:?}}}}})"
        );
        scratch.write("push.clj", flow);
        scratch.run(&["run", "push.clj", "--quiet"])
    };
    for step in [
        ":platform :list {:action \\\"list-agents\\\"}",
        ":graph :g {}",
        ":sleep :s {:seconds 1}",
    ] {
        let ran = draft(&step.replace("\\\"", "\""));
        let shown = format!("{ran:?}");
        assert!(!shown.contains("there is no step type"), "{step}: {shown}");
    }
    let ran = draft(":platform :list {:action \"list-agents\"}");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = draft(":platfrom :list {:action \"list-agents\"}");
    assert_ne!(ran.code, Some(0), "{ran:?}");
}

/// A server of models that kills its client when it is asked for the n-th time; 0: never.
fn spare(target: &Arc<AtomicU32>, at: u32) -> Server {
    let (target, asked) = (Arc::clone(target), AtomicU32::new(0));
    Server::start(move |_, _| {
        if asked.fetch_add(1, Ordering::SeqCst) + 1 == at {
            let id = target.load(Ordering::SeqCst).to_string();
            let killed = Command::new("kill").args(["-9", &id]).status();
            assert!(killed.is_ok_and(|it| it.success()), "kill -9 {id}");
            return Answer::HalfBody;
        }
        Answer::Json(answer().to_string())
    })
}

fn answer() -> serde_json::Value {
    let message = json!({"role": "assistant", "content": "from the spare"});
    json!({"id": "1", "model": "s", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
           "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
}

fn start(scratch: &Scratch, args: &[&str], target: &AtomicU32) -> Ran {
    let child = scratch
        .command(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    target.store(child.id(), Ordering::SeqCst);
    Ran::of(child)
}

#[test]
fn a_kill_while_the_second_connection_is_asked_loses_nothing() {
    for asked in [
        "(flow/step :llm :ask {:connection [:main :spare] :prompt \"x\"})",
        "(flow/step :agent :ask {:connection [:main :spare] :objective \"x\"})",
    ] {
        let scratch = Scratch::with_local_servers();
        let target = Arc::new(AtomicU32::new(0));
        let main = Server::start(|_, _| Answer::Status(503, "down"));
        let spare = spare(&target, 1);
        let url = |server: &Server| server.url("/v1");
        let connections = format!(
            "{{:main {{:backend :openai-compatible :base-url {:?} :model \"m\"}} :spare {{:backend :openai-compatible :base-url {:?} :model \"s\"}}}}",
            url(&main),
            url(&spare)
        );
        let settings = std::fs::read_to_string(scratch.path().join("flowstone.edn"));
        let settings = settings.unwrap_or_else(|_| "{}".to_owned());
        let open = settings.trim().strip_suffix('}').expect("a map");
        scratch.write(
            "flowstone.edn",
            format!("{open} :connections {connections}}}"),
        );
        let flow = format!(
            "(do (flow/step :kv :count {{:operation :increment :key \"begun\"}}) (let [r {asked}] (select-keys r [:content :connection :failed-connections])))"
        );
        scratch.write("flow.edn", flow);
        let killed = start(&scratch, &["run", "flow.edn", "--quiet"], &target);
        assert_eq!(killed.code, None, "{killed:?}");
        assert_eq!((main.requests().len(), spare.requests().len()), (1, 1));
        let resumed = start(&scratch, &["runs", "resume", "--all", "--quiet"], &target);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        assert_eq!(
            (main.requests().len(), spare.requests().len()),
            (2, 2),
            "{asked}"
        );
        let runs = scratch.json_of(&["runs", "list"]);
        let id = runs["runs"][0]["id"].as_str().expect("an id");
        let run = scratch.json_of(&["runs", "show", id]);
        assert_eq!(run["status"], "completed", "{run}");
        let result = run["result"].to_string();
        assert!(
            result.contains("from the spare") && result.contains("spare"),
            "{result}"
        );
        assert!(
            result.contains("main"),
            "the one that failed is named: {result}"
        );
        let steps = run["steps"].as_array().expect("steps").iter();
        let done: Vec<&str> = steps.filter_map(|it| it["status"].as_str()).collect();
        assert!(done.iter().all(|it| *it == "done"), "{run}");
    }
}

#[test]
fn conversations_are_listed_shown_and_deleted_as_resources() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        "{:connections {:ai {:backend :scripted :script {:turns [\"Hello Ann.\"]}}}}",
    );
    scratch.write(
        "chat.edn",
        "(:content (flow/step :agent :a {:connection :ai :messages [{:role :user :content \"I am Ann.\"}] :thread \"ann\"}))",
    );
    assert_eq!(
        scratch.run(&["run", "chat.edn", "--quiet"]).ok().trim(),
        "Hello Ann."
    );
    let list = [
        "resources",
        "list",
        "--prefix",
        "result/kv/agent-thread:",
        "--json",
    ];
    let listed = |scratch: &Scratch| scratch.run(&list).json()["resources"].clone();
    assert_eq!(listed(&scratch).as_array().map(Vec::len), Some(1));
    let name = "result/kv/agent-thread:ann";
    let shown = scratch.run(&["resources", "read", name]).ok();
    assert!(
        shown.contains("I am Ann.") && shown.contains("Hello Ann."),
        "{shown}"
    );
    scratch.run(&["resources", "delete", name, "--yes"]).ok();
    assert_eq!(listed(&scratch), json!([]));
}
