//! Two drivers of one tree, and processes that end between answers.

use flowstone_engine::{Engine, EngineConfig};
use flowstone_stores::memory::{Memory, MemoryOptions};
use serde_json::{Value as Json, json};

use super::project::{Project, run};
use super::walk::DEPLOY;

const URI: &str = "run://deploy-1";

async fn start(project: &Project) {
    let arguments = json!({"tree_uri": "deploy.yaml", "gate": false});
    let answer = project.on(URI, "start_execution", arguments).await;
    assert_eq!(answer["ok"], true, "{answer}");
}

#[test]
fn an_answer_to_an_older_request_is_refused() {
    run(async {
        let project = Project::with(&[("deploy.yaml", DEPLOY)]);
        start(&project).await;
        let first = project.on(URI, "next_step", json!({})).await;
        let old = first["cursor"].as_str().expect("a cursor").to_owned();
        let answer = json!({"status": "failure", "expected_cursor": old});
        assert_eq!(
            project.on(URI, "submit", answer.clone()).await["status"],
            "action_failed"
        );
        // While nothing is open, the phase is what is wrong.
        assert_eq!(
            project.on(URI, "submit", answer.clone()).await["code"],
            "E1205"
        );
        assert_eq!(
            project.on(URI, "next_step", json!({})).await,
            json!({"status": "failure"})
        );
        project.on(URI, "reset_execution", json!({})).await;
        // The same place, offered again.
        let again = project.on(URI, "next_step", json!({})).await;
        assert_eq!(again["instruction"], first["instruction"]);
        assert_ne!(again["cursor"], first["cursor"]);
        let refused = project.on(URI, "submit", answer).await;
        assert_eq!(refused["code"], "E1206", "{refused}");
        assert_eq!(project.on(URI, "read_trace", json!({})).await, json!([]));
    });
}

#[test]
fn a_retry_of_the_same_place_has_another_cursor() {
    run(async {
        let tree = "{type: action, name: A, retries: 5, steps: [{instruct: x}]}";
        let project = Project::with(&[("t.yaml", tree)]);
        let arguments = json!({"tree_uri": "t.yaml", "gate": false});
        project.on(URI, "start_execution", arguments).await;
        let mut seen: Vec<Json> = Vec::new();
        for _ in 0..4 {
            let request = project.on(URI, "next_step", json!({})).await;
            assert!(!seen.contains(&request["cursor"]), "{seen:?}");
            // It is the same while the request is open, whatever is noted meanwhile.
            project.on(URI, "think", json!({"thought": "x"})).await;
            project
                .on(URI, "submit", json!({"status": "running"}))
                .await;
            assert_eq!(project.on(URI, "next_step", json!({})).await, request);
            seen.push(request["cursor"].clone());
            project
                .on(URI, "submit", json!({"status": "failure"}))
                .await;
        }
    });
}

#[test]
fn of_two_drivers_at_once_one_is_taken() {
    run(async {
        let project = Project::with(&[("deploy.yaml", DEPLOY)]);
        start(&project).await;
        for _ in 0..5 {
            let one = project.on(URI, "next_step", json!({}));
            let other = project.on(URI, "next_step", json!({}));
            let (one, other) = tokio::join!(one, other);
            assert_eq!(one, other, "both see the same request");
            if one["status"] == "done" {
                break;
            }
            let cursor = &one["cursor"];
            let (tool, answer) = match one["type"].as_str() {
                Some("evaluate") => ("eval", json!({"result": true, "expected_cursor": cursor})),
                _ => (
                    "submit",
                    json!({"status": "success", "expected_cursor": cursor}),
                ),
            };
            let one = project.on(URI, tool, answer.clone());
            let other = project.on(URI, tool, answer);
            let (one, other) = tokio::join!(one, other);
            let refused = [&one, &other]
                .iter()
                .filter(|it| it["code"].is_string())
                .count();
            assert_eq!(refused, 1, "{one} {other}");
        }
        let trace = project.on(URI, "read_trace", json!({})).await;
        assert_eq!(trace.as_array().expect("a list").len(), 3, "{trace}");
    });
}

/// Drives a tree with random answers; after each call, everything but the store is lost.
#[test]
fn another_process_continues_after_each_call() {
    run(async {
        let memory = Memory::new(MemoryOptions::default());
        let mut project = Project::over(memory.open(), &[("deploy.yaml", DEPLOY)]);
        start(&project).await;
        let calls = [
            ("next_step", json!({})),
            ("var_write", json!({"path": "a", "value": "1"})),
            ("submit", json!({"status": "success"})),
            ("next_step", json!({})),
            ("think", json!({"thought": "x"})),
            ("eval", json!({"result": true})),
            ("next_step", json!({})),
            ("submit", json!({"status": "failure"})),
            ("next_step", json!({})),
            ("submit", json!({"status": "success"})),
            ("next_step", json!({})),
        ];
        for (tool, arguments) in calls {
            let answer = project.on(URI, tool, arguments).await;
            assert_eq!(answer["error"], Json::Null, "{tool}: {answer}");
            let before = project.on(URI, "get_execution", json!({})).await;
            memory.crash();
            let steps = flowstone_project::all_steps();
            let config = EngineConfig::for_tests(project.folder.path(), memory.open(), steps);
            project.engine = Engine::open(config);
            let mut after = project.on(URI, "get_execution", json!({})).await;
            after["updated_at"] = before["updated_at"].clone();
            assert_eq!(after, before, "{tool}");
        }
        let end = project.on(URI, "next_step", json!({})).await;
        assert_eq!(end, json!({"status": "done"}));
    });
}

#[test]
fn a_tree_run_is_an_ordinary_run() {
    run(async {
        let project = Project::with(&[("deploy.yaml", DEPLOY)]);
        start(&project).await;
        let engine = &project.engine;
        let row = engine.find_run("tree:run:deploy-1").await.expect("a run");
        assert_eq!((&*row.flow, row.status.name()), ("deploy", "waiting"));
        project.on(URI, "next_step", json!({})).await;
        for (tool, arguments) in [
            ("submit", json!({"status": "success"})),
            ("eval", json!({"result": true})),
            ("submit", json!({"status": "success"})),
        ] {
            project.on(URI, tool, arguments).await;
            project.on(URI, "next_step", json!({})).await;
        }
        let row = engine.run(&row.id).await.expect("a run");
        assert_eq!(row.status.name(), "completed");
        // A replay computes the same state from the answers.
        engine.verify(&row.id).await.expect("it agrees");
    });
}
