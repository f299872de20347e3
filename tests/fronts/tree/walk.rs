//! Driving a tree by the tools: the answers, the phases and the errors.

use serde_json::{Value as Json, json};

use super::project::{Project, run};

pub const DEPLOY: &str = r#"
name: deploy
version: 1.0.0
tree:
  type: sequence
  name: Deploy_Service
  children:
    - type: action
      name: Run_Tests
      steps:
        - instruct: |
            Run tests.
            Store pass/fail at $VAR.tests_passed.
        - evaluate: |
            $VAR.tests_passed is true.
    - type: action
      name: Build_And_Push
      retries: 1
      steps:
        - instruct: |
            Build and push image to $CONST.registry.
state:
  var:
    tests_passed: null
    list: [1, 2]
  const:
    threshold: 80
    registry: ghcr.io/my-app
"#;

const URI: &str = "run://deploy-1";

async fn started(gate: bool) -> Project {
    let project = Project::with(&[("deploy.yaml", DEPLOY)]);
    let arguments = json!({"tree_uri": "deploy.yaml", "gate": gate});
    let answer = project.on(URI, "start_execution", arguments).await;
    assert_eq!(
        answer,
        json!({"ok": true, "schema_version": 1, "uri": URI, "tree_uri": "deploy.yaml", "slug": "deploy"})
    );
    project
}

/// Gets the next request without its cursor.
async fn next(project: &Project) -> Json {
    let mut request = project.on(URI, "next_step", json!({})).await;
    if let Some(members) = request.as_object_mut() {
        members.remove("cursor");
    }
    request
}

async fn status(project: &Project, tool: &str, arguments: Json) -> Json {
    project.on(URI, tool, arguments).await["status"].take()
}

#[test]
fn a_tree_is_driven_to_its_end() {
    run(async {
        let project = started(true).await;
        let gate = next(&project).await;
        assert_eq!(
            (&gate["type"], &gate["name"]),
            (&json!("instruct"), &json!("Acknowledge_Protocol"))
        );
        assert_eq!(
            status(&project, "submit", json!({"status": "success"})).await,
            "protocol_accepted"
        );
        let expected = json!({
            "type": "instruct", "name": "Run_Tests",
            "instruction": "Run tests.\nStore pass/fail at $VAR.tests_passed.",
        });
        assert_eq!(next(&project).await, expected);
        // The open request is repeated.
        assert_eq!(next(&project).await, expected);
        assert_eq!(
            status(&project, "submit", json!({"status": "running"})).await,
            "running"
        );
        assert_eq!(next(&project).await, expected);
        assert_eq!(
            status(&project, "submit", json!({"status": "success"})).await,
            "step_complete"
        );
        let expected = json!({
            "type": "evaluate", "name": "Run_Tests", "expression": "$VAR.tests_passed is true.",
        });
        assert_eq!(next(&project).await, expected);
        assert_eq!(
            status(&project, "eval", json!({"result": true})).await,
            "evaluation_passed"
        );
        assert_eq!(next(&project).await["name"], "Build_And_Push");
        assert_eq!(
            status(&project, "submit", json!({"status": "failure"})).await,
            "action_failed"
        );
        assert_eq!(next(&project).await["name"], "Build_And_Push");
        assert_eq!(
            status(&project, "submit", json!({"status": "success"})).await,
            "action_complete"
        );
        assert_eq!(next(&project).await, json!({"status": "done"}));
        assert_eq!(next(&project).await, json!({"status": "done"}));
        let end = project.on(URI, "resume_execution", json!({})).await;
        let expected = json!({
            "ok": true, "uri": URI, "status": "complete", "phase": "idle", "protocol_accepted": true,
        });
        assert_eq!(end, expected);
    });
}

#[test]
fn a_wrong_phase_changes_nothing() {
    run(async {
        let project = started(true).await;
        let execution = async || {
            let mut execution = project.on(URI, "get_execution", json!({})).await;
            execution["updated_at"].take();
            execution
        };
        let wrong = async |tool: &str, arguments: Json, expected: &str| {
            let before = execution().await;
            let answer = project.on(URI, tool, arguments).await;
            assert_eq!(answer["error"], expected, "{tool}");
            assert_eq!(execution().await, before, "{tool}");
        };
        let evaluating = "Execution is not in evaluating phase (current: ";
        let performing = "Execution is not in performing phase (current: ";
        let (eval, submit) = (json!({"result": true}), json!({"status": "success"}));
        let think = json!({"thought": "x"});
        let none = "cannot think: no action in flight";
        wrong("eval", eval.clone(), &format!("{evaluating}idle)")).await;
        wrong("submit", submit.clone(), &format!("{performing}idle)")).await;
        wrong("think", think.clone(), none).await;
        next(&project).await;
        wrong("eval", eval.clone(), &format!("{evaluating}protocol)")).await;
        wrong("think", think.clone(), none).await;
        project.on(URI, "submit", submit.clone()).await;
        next(&project).await;
        wrong("eval", eval, &format!("{evaluating}performing)")).await;
        project.on(URI, "submit", submit.clone()).await;
        next(&project).await;
        wrong("submit", submit, &format!("{performing}evaluating)")).await;
    });
}

#[test]
fn a_rejected_protocol_ends_the_run_for_good() {
    run(async {
        let project = started(true).await;
        next(&project).await;
        assert_eq!(
            status(&project, "submit", json!({"status": "running"})).await,
            "running"
        );
        assert_eq!(next(&project).await["name"], "Acknowledge_Protocol");
        assert_eq!(
            status(&project, "submit", json!({"status": "failure"})).await,
            "protocol_rejected"
        );
        assert_eq!(next(&project).await, json!({"status": "failure"}));
        assert_eq!(next(&project).await, json!({"status": "failure"}));
        let end = project.on(URI, "resume_execution", json!({})).await;
        assert_eq!(
            (&end["status"], &end["protocol_accepted"]),
            (&json!("failed"), &json!(false))
        );
    });
}

#[test]
fn the_trace_has_every_decision_with_its_place() {
    run(async {
        let project = started(true).await;
        next(&project).await;
        project
            .on(URI, "submit", json!({"status": "success"}))
            .await;
        next(&project).await;
        project
            .on(URI, "think", json!({"thought": " green so far "}))
            .await;
        project
            .on(
                URI,
                "submit",
                json!({"status": "success", "note": "12 of 12"}),
            )
            .await;
        next(&project).await;
        project
            .on(URI, "eval", json!({"result": false, "note": "-1"}))
            .await;
        let trace = project.on(URI, "read_trace", json!({})).await;
        let entries = trace.as_array().expect("a list");
        let said: Vec<String> = entries
            .iter()
            .map(|entry| {
                assert!(
                    entry["ts"].as_str().expect("a time").ends_with('Z'),
                    "{entry}"
                );
                let keys = ["kind", "cursor", "name", "submitted", "outcome", "note"];
                keys.map(|key| entry[key].as_str().unwrap_or("")).join("|")
            })
            .collect();
        let expected = [
            "protocol|null|Acknowledge_Protocol|accept|protocol_accepted|",
            "think|{\"path\":[0],\"step\":0}|Run_Tests|thought|recorded|green so far",
            "instruct|{\"path\":[0],\"step\":0}|Run_Tests|success|step_complete|12 of 12",
            "evaluate|{\"path\":[0],\"step\":1}|Run_Tests|false|evaluation_failed|-1",
        ];
        assert_eq!(said, expected);
        let part = project
            .on(URI, "read_trace", json!({"from": 1, "to": 3}))
            .await;
        assert_eq!(part, json!([entries[1], entries[2]]));
        for (from, to) in [(3, 1), (9, 20)] {
            let part = project
                .on(URI, "read_trace", json!({"from": from, "to": to}))
                .await;
            assert_eq!(part, json!([]));
        }
    });
}

#[test]
fn var_is_read_and_written_by_path() {
    run(async {
        let project = started(false).await;
        let write = async |path: &str, value: Json| {
            project
                .on(URI, "var_write", json!({"path": path, "value": value}))
                .await
        };
        let read = async |path: &str| {
            project.on(URI, "var_read", json!({"path": path})).await["value"].take()
        };
        assert_eq!(
            write("a.b.c", json!("42")).await,
            json!({"path": "a.b.c", "value": 42})
        );
        assert_eq!(read("a.b").await, json!({"c": 42}));
        for (given, kept) in [
            (json!("\"text\""), json!("text")),
            (json!("-1"), json!(-1)),
            (json!("--flag"), json!("--flag")),
            (json!({"k": [1, null]}), json!({"k": [1, null]})),
            (json!("[1.5, true]"), json!([1.5, true])),
            (json!("null"), Json::Null),
            (json!(""), json!("")),
        ] {
            assert_eq!(write("v", given).await["value"], kept);
            assert_eq!(read("v").await, kept);
        }
        assert_eq!(read("missing.deeper").await, Json::Null);
        write("list.1", json!("7")).await;
        write("list.2", json!("8")).await;
        assert_eq!(read("list").await, json!([1, 7, 8]));
        assert_eq!(read("list.1").await, 7);
        write("tests_passed.now", json!("true")).await;
        let all = project.on(URI, "var_read", json!({})).await;
        assert_eq!(all["tests_passed"], json!({"now": true}));
        let constants = project.on(URI, "const_read", json!({})).await;
        assert_eq!(
            constants,
            json!({"threshold": 80, "registry": "ghcr.io/my-app"})
        );
        let threshold = project
            .on(URI, "const_read", json!({"path": "threshold"}))
            .await;
        assert_eq!(threshold, json!({"path": "threshold", "value": 80}));
    });
}

#[test]
fn an_argument_that_is_null_is_left_out() {
    run(async {
        let project = started(false).await;
        next(&project).await;
        let answer = json!({"status": "success", "note": null, "expected_cursor": null});
        assert_eq!(status(&project, "submit", answer).await, "step_complete");
        let all = project.on(URI, "var_read", json!({"path": null})).await;
        assert!(all.get("tests_passed").is_some(), "{all}");
        let error = project.on(URI, "submit", json!({"status": null})).await;
        assert_eq!(error["error"], "the argument `status` is missing");
        let written = project
            .on(URI, "var_write", json!({"path": "v", "value": null}))
            .await;
        assert_eq!(written, json!({"path": "v", "value": null}));
    });
}

#[test]
fn writes_that_are_refused_change_nothing() {
    run(async {
        let project = started(false).await;
        let before = project.on(URI, "get_execution", json!({})).await;
        let refused = async |path: &str, value: Json, expected: &str| {
            let answer = project
                .on(URI, "var_write", json!({"path": path, "value": value}))
                .await;
            let error = answer["error"].as_str().unwrap_or_default().to_owned();
            assert!(error.contains(expected), "{path}: {answer}");
        };
        for key in ["__proto__", "prototype", "constructor"] {
            refused(
                &format!("a.{key}.b"),
                json!(1),
                &format!("the key `{key}` is refused"),
            )
            .await;
            refused(
                "a",
                json!({"b": [{key: 1}]}),
                &format!("has the key `{key}`"),
            )
            .await;
        }
        refused("a..b", json!(1), "a key is empty").await;
        refused(
            "list.9",
            json!(1),
            "`9` is not an index of a list of 2 items",
        )
        .await;
        for padded in ["list.00", "list.01"] {
            let key = padded.trim_start_matches("list.");
            let message = format!("`{key}` is not an index of a list of 2 items");
            refused(padded, json!(1), &message).await;
        }
        refused(
            "list.x",
            json!(1),
            "`x` is not an index of a list of 2 items",
        )
        .await;
        refused("a", json!("x".repeat(300 << 10)), "may have at most 262144").await;
        refused(&"a.".repeat(40), json!(1), "more than 32 keys").await;
        let deep = (0..90).fold(json!(1), |value, _| json!({ "n": value }));
        let path = ["deep"; 32].join(".");
        refused(&path, deep, "nested deeper than 100 levels").await;
        let answer = project
            .on(URI, "var_write", json!({"path": "node_status", "value": 1}))
            .await;
        assert_eq!(answer["value"], 1, "bookkeeping is elsewhere");
        let after = project.on(URI, "get_execution", json!({})).await;
        assert_eq!(after["runtime"], before["runtime"]);
        let mut expected = before["var"].clone();
        expected["node_status"] = json!(1);
        assert_eq!(after["var"], expected);
    });
}

#[test]
fn a_reset_begins_again_in_any_phase_and_after_the_end() {
    run(async {
        let project = started(true).await;
        let first = project.on(URI, "get_execution", json!({})).await;
        let said = |execution: &Json| {
            let keys = [
                "status",
                "phase",
                "cursor",
                "protocol_accepted",
                "var",
                "runtime",
                "trace",
            ];
            keys.map(|key| execution[key].clone())
        };
        for ends in [false, true] {
            next(&project).await;
            project
                .on(URI, "submit", json!({"status": "success"}))
                .await;
            next(&project).await;
            project
                .on(
                    URI,
                    "var_write",
                    json!({"path": "tests_passed", "value": true}),
                )
                .await;
            if ends {
                for _ in 0..2 {
                    project
                        .on(URI, "submit", json!({"status": "failure"}))
                        .await;
                    next(&project).await;
                }
                assert_eq!(next(&project).await, json!({"status": "failure"}));
                let answer = project
                    .on(URI, "var_write", json!({"path": "a", "value": 1}))
                    .await;
                assert_eq!(answer["code"], "E1212", "{answer}");
            }
            for _ in 0..2 {
                assert_eq!(
                    status(&project, "reset_execution", json!({})).await,
                    "reset"
                );
                let again = project.on(URI, "get_execution", json!({})).await;
                assert_eq!(said(&again), said(&first), "{ends}");
            }
        }
        assert_eq!(next(&project).await["name"], "Acknowledge_Protocol");
    });
}

#[test]
fn no_tool_shows_what_was_not_visited() {
    run(async {
        let project = started(false).await;
        next(&project).await;
        for tool in [
            "get_execution",
            "resume_execution",
            "read_trace",
            "var_read",
            "next_step",
        ] {
            let answer = project.on(URI, tool, json!({})).await.to_string();
            assert!(!answer.contains("Build"), "{tool}: {answer}");
        }
    });
}

#[test]
fn handles_and_arguments_are_checked() {
    run(async {
        let project = started(false).await;
        let error = async |uri: &str, tool: &str, arguments: Json| {
            let answer = project.on(uri, tool, arguments).await;
            answer["error"].as_str().unwrap_or_default().to_owned()
        };
        let tree = json!({"tree_uri": "deploy.yaml"});
        std::fs::create_dir(project.path(".git")).expect("a folder");
        assert_eq!(
            error(URI, "start_execution", tree.clone()).await,
            "Execution already exists: run://deploy-1"
        );
        assert_eq!(
            error("memory://none", "next_step", json!({})).await,
            "Execution not found: memory://none"
        );
        for (uri, why) in [
            ("s3://bucket/key.json", "the scheme s3:// is unknown"),
            ("deploy.json", "it has no scheme"),
            ("memory://", "the name is empty"),
            ("file:///etc/run.json", "it is outside the project's folder"),
            ("file://relative.json", "the path is not absolute"),
            (&*project.uri(".env"), "are not for runs"),
            (&*project.uri(".env.json"), "are not for runs"),
            (&*project.uri(".git/run.json"), "are not for runs"),
            (&*project.uri("flowstone.edn"), "are not for runs"),
            (&*project.uri("evil.edn"), "ends in .json"),
        ] {
            let said = error(uri, "start_execution", tree.clone()).await;
            assert!(said.contains(why), "{uri}: {said}");
        }
        let inside = project.uri("a/../run.json");
        assert!(
            error(&inside, "start_execution", tree)
                .await
                .contains("the path has `..`")
        );
        let said = error(
            "memory://x",
            "start_execution",
            json!({"tree_uri": "https://x/t.yaml"}),
        )
        .await;
        assert_eq!(
            said,
            "Could not load tree at https://x/t.yaml: references to https:// are off"
        );
        for (tool, arguments, expected) in [
            (
                "eval",
                json!({"result": "true"}),
                "the argument `result` must be true or false",
            ),
            (
                "submit",
                json!({"status": "ok"}),
                "the argument `status` must be one of success, failure, running",
            ),
            ("submit", json!({}), "the argument `status` is missing"),
            ("next_step", json!({"x": 1}), "there is no argument `x`"),
            (
                "read_trace",
                json!({"from": -1}),
                "the argument `from` must be a whole number from 0",
            ),
        ] {
            assert_eq!(error(URI, tool, arguments).await, expected);
        }
        next(&project).await;
        let note = json!({"status": "success", "note": "x".repeat(20_000)});
        assert_eq!(
            error(URI, "submit", note).await,
            "note has 20000 bytes, and may have at most 16384"
        );
        let note = json!({"status": "success", "note": "  "});
        assert_eq!(
            error(URI, "submit", note).await,
            "the argument `note` must not be empty"
        );
    });
}

#[test]
fn the_run_keeps_its_tree() {
    run(async {
        let project = started(false).await;
        std::fs::remove_file(project.path("deploy.yaml")).expect("it was there");
        assert_eq!(next(&project).await["name"], "Run_Tests");
        project.on(URI, "reset_execution", json!({})).await;
        assert_eq!(next(&project).await["name"], "Run_Tests");
    });
}

#[test]
fn a_path_may_begin_with_the_name_of_its_store() {
    run(async {
        let project = started(false).await;
        let on = async |tool: &str, arguments: Json| project.on(URI, tool, arguments).await;
        let written = on("var_write", json!({"path": "$VAR.a.b", "value": 7})).await;
        assert_eq!(written["path"], "$VAR.a.b");
        assert_eq!(on("var_read", json!({"path": "a.b"})).await["value"], 7);
        assert_eq!(
            on("var_read", json!({"path": "$LOCAL.a"})).await["value"],
            json!({"b": 7})
        );
        let whole = on("var_read", json!({"path": "$VAR"})).await;
        assert_eq!(whole["value"], on("var_read", json!({})).await);
        assert_eq!(
            on("const_read", json!({"path": "$CONST.threshold"})).await["value"],
            80
        );
        for (tool, path, expected) in [
            ("var_read", "$CONST.threshold", "`$CONST` is another store"),
            (
                "const_read",
                "$VAR.a",
                "is not a path in $CONST: `$VAR` is another store",
            ),
            (
                "var_write",
                "$GLOBAL.threshold",
                "`$GLOBAL` is another store",
            ),
            ("var_write", "$VAR", "names no place"),
        ] {
            let mut arguments = json!({"path": path});
            if tool == "var_write" {
                arguments["value"] = json!(1);
            }
            let refused = on(tool, arguments).await;
            assert_eq!(refused["code"], "E1208", "{tool} {path}: {refused}");
            assert!(
                refused["error"]
                    .as_str()
                    .is_some_and(|it| it.contains(expected)),
                "{refused}"
            );
        }
    });
}

#[test]
fn an_integer_that_would_be_rounded_is_not_stored() {
    run(async {
        let project = started(false).await;
        for value in [
            json!("123456789012345678901"),
            json!("{\"a\": 1, \"a\": 2}"),
        ] {
            let refused = project
                .on(URI, "var_write", json!({"path": "n", "value": value}))
                .await;
            assert_eq!(refused["code"], "E1216", "{refused}");
        }
        let kept = [
            json!("18446744073709551615"),
            json!("1.5e20"),
            json!(1e22),
            json!([{"n": -1.5e20}]),
            json!("\"123456789012345678901\""),
        ];
        let expected = [
            json!(u64::MAX),
            json!(1.5e20),
            json!(1e22),
            json!([{"n": -1.5e20}]),
            json!("123456789012345678901"),
        ];
        for (value, expected) in kept.into_iter().zip(expected) {
            project
                .on(URI, "var_write", json!({"path": "n", "value": value}))
                .await;
            assert_eq!(
                project.on(URI, "var_read", json!({"path": "n"})).await["value"],
                expected
            );
        }
    });
}

#[test]
fn a_run_of_another_flow_is_not_executed_as_a_tree() {
    run(async {
        let project = Project::with(&[]);
        let session = project.engine.session();
        let text = "{:slug :other :flow '(flow/step :kv :touched {:operation :set :key \"touched\" :value 1})}";
        let loaded = project
            .engine
            .check_text(&session, text)
            .loaded
            .expect("a flow");
        let options = flowstone_engine::StartOptions {
            is_left: true,
            ..flowstone_engine::StartOptions::with_input(flowstone_lang::value::Value::Nil)
        };
        let run = project
            .engine
            .submit(&loaded, options)
            .await
            .expect("a run")
            .run;
        let refused = project
            .on(&format!("run://{run}"), "next_step", json!({}))
            .await;
        assert_eq!(refused["code"], "E1214", "{refused}");
        let row = project.engine.run(&run).await.expect("a run");
        assert!(!row.begun, "naming a run does not execute it");
    });
}
