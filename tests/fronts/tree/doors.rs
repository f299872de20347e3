//! Answers to the wait of a tree that do not come by the tools, and runs that end beside their driver.

use flowstone_engine::ports::{WaitFilter, WaitRow};
use flowstone_engine::{Answered, EngineError, codec};
use serde_json::{Value as Json, json};

use super::project::{Project, run};
use super::walk::DEPLOY;

const URI: &str = "run://deploy-1";

/// Starts a tree whose first request is open.
async fn opened(uri: &str) -> Project {
    let project = Project::with(&[("deploy.yaml", DEPLOY)]);
    let arguments = json!({"tree_uri": "deploy.yaml", "gate": false});
    let answer = project.on(uri, "start_execution", arguments).await;
    assert_eq!(answer["ok"], true, "{answer}");
    project.on(uri, "next_step", json!({})).await;
    project
}

async fn wait(project: &Project) -> WaitRow {
    let waits = project.engine.list_waits(WaitFilter::default()).await;
    waits.expect("a list").pop().expect("an open wait")
}

/// Answers the open wait as `flowstone waits complete` does.
async fn complete(project: &Project, payload: &str) -> Result<Answered, EngineError> {
    let wait = wait(project).await;
    let payload = codec::decode(payload).expect("EDN");
    project
        .engine
        .complete_wait(&wait.id, &payload, false)
        .await
}

#[test]
fn every_door_has_the_rules_of_the_tools() {
    run(async {
        let project = opened(URI).await;
        let before = wait(&project).await;
        let write =
            |path: &str, value: &str| format!("{{:op \"var-write\" :path {path} :value {value}}}");
        let (large, long) = ("x".repeat(300_000), "y".repeat(20_000));
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        let keys = format!("[{}]", "\"k\" ".repeat(33));
        let refused = [
            (write("[\"__proto__\"]", "1"), "`__proto__` is refused"),
            (
                write("[\"a\" \"constructor\"]", "1"),
                "`constructor` is refused",
            ),
            (
                write("[\"q\"]", "{:a [{\"__proto__\" 1}]}"),
                "`__proto__`, which is refused",
            ),
            (write("[\"q\"]", "{:a 1 \"a\" 2}"), "the key `a` twice"),
            (write(&keys, "1"), "more than 32 keys"),
            (write("[\"\"]", "1"), "a key is empty"),
            (write("[\"a.b\"]", "1"), "the key `a.b` has a dot"),
            (
                write("[\"list\" \"5\"]", "1"),
                "not an index of a list of 2 items",
            ),
            (
                write("[\"q\"]", &format!("\"{large}\"")),
                "may have at most 262144",
            ),
            (write("[\"q\"]", &deep), "deep"),
            (
                write("[\"q\"]", "18446744073709551616N"),
                "would be rounded",
            ),
            (write("[\"q\"]", "#{1}"), "write it as a text"),
            (write("[\"q\"]", ":a"), "write it as a text"),
            (
                format!("{{:op :think :thought \"{long}\"}}"),
                "may have at most 16384",
            ),
            (
                format!("{{:op :submit :status \"running\" :note \"{long}\"}}"),
                "may have at most 16384",
            ),
            (
                "{:op :submit :status \"running\" :note \" \"}".to_owned(),
                "must not be empty",
            ),
        ];
        for (payload, reason) in &refused {
            let shown: String = payload.chars().take(80).collect();
            let error = complete(&project, payload).await.expect_err(&shown);
            assert!(error.to_string().contains(reason), "{shown}: {error}");
        }
        assert_eq!(wait(&project).await, before, "the request stays open");
        let taken = [
            write(
                "[\"a\"]",
                "{:b [1 2.5 nil true \"x\" 18446744073709551615N]}",
            ),
            write("[\"a\" \"b\" \"0\"]", "{\"c\" 2}"),
            "{:op :think :thought \"t\"}".to_owned(),
        ];
        for payload in &taken {
            complete(&project, payload).await.expect(payload);
            // The run continues when its driver looks.
            project.on(URI, "next_step", json!({})).await;
        }
        let written = project.on(URI, "var_read", json!({"path": "a"})).await;
        let expected = json!({"b": [{"c": 2}, 2.5, null, true, "x", u64::MAX]});
        assert_eq!(written["value"], expected);
    });
}

#[test]
fn an_answer_that_comes_before_its_request_has_the_same_rules() {
    run(async {
        let project = opened(URI).await;
        let first = wait(&project).await;
        let run = project
            .engine
            .find_run("tree:run:deploy-1")
            .await
            .expect("a run")
            .id;
        let (head, number) = first.key.rsplit_once('#').expect("a later wait");
        let number: u32 = number.parse().expect("a number");
        let next = format!("{head}#{}", number + 1);
        let payload = "{:op \"var-write\" :path [\"a\"] :value {\"__proto__\" 1}}";
        let payload = codec::decode(payload).expect("EDN");
        let kept = project.engine.complete_wait(&next, &payload, true).await;
        assert!(matches!(kept, Ok(Answered::Kept)), "{kept:?}");
        project.on(URI, "think", json!({"thought": "x"})).await;
        let after = wait(&project).await;
        assert_eq!(
            (&after.key, &after.run),
            (&next, &run),
            "the early answer is refused"
        );
        let var = project.on(URI, "var_read", json!({})).await;
        assert_eq!(var.get("a"), None, "{var}");
    });
}

#[test]
fn the_document_follows_an_answer_that_did_not_come_by_a_tool() {
    run(async {
        let project = Project::with(&[("deploy.yaml", DEPLOY)]);
        let uri = project.uri("run.json");
        let arguments = json!({"tree_uri": "deploy.yaml", "gate": false});
        project.on(&uri, "start_execution", arguments).await;
        project.on(&uri, "next_step", json!({})).await;
        complete(&project, "{:op :submit :status \"success\"}")
            .await
            .expect("it is taken");
        let shown = project.on(&uri, "get_execution", json!({})).await;
        let text = std::fs::read_to_string(project.path("run.json")).expect("a document");
        let document: Json = serde_json::from_str(&text).expect("JSON");
        for member in ["phase", "cursor", "trace", "var", "runtime"] {
            assert_eq!(document[member], shown[member], "{member}");
        }
        assert_eq!(document["trace"].as_array().map(Vec::len), Some(1));
    });
}

#[test]
fn an_answer_that_meets_a_cancellation_is_not_said_to_be_recorded() {
    run(async {
        for (tool, arguments, code) in [
            ("submit", json!({"status": "success"}), "E1205"),
            ("think", json!({"thought": "x"}), "E1207"),
            ("var_write", json!({"path": "a", "value": 1}), "E1212"),
        ] {
            let project = opened(URI).await;
            let run = project
                .engine
                .find_run("tree:run:deploy-1")
                .await
                .expect("a run")
                .id;
            project
                .engine
                .request_cancel(&run, "test")
                .await
                .expect("it is asked for");
            let answer = project.on(URI, tool, arguments).await;
            assert_eq!(answer["code"], code, "{tool}: {answer}");
            assert_eq!(
                project.on(URI, "read_trace", json!({})).await,
                json!([]),
                "{tool}"
            );
            let again = project.on(URI, "next_step", json!({})).await;
            assert_eq!(again, json!({"status": "failure"}), "{tool}");
        }
    });
}
