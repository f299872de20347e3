//! How a test is kept apart from other runs, and how it ends.

use std::rc::Rc;
use std::time::Duration;

use flowstone_engine::ExecuteOptions;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{RunQuery, RunStatus, WaitFilter};
use flowstone_stores::memory::{Memory, MemoryOptions};
use serde_json::json;

use super::project::{Project, SLUG, agent, calls, expecting, flow, run, token};
use flowstone_model::token::Scope;

#[test]
fn a_paused_test_is_over_when_it_was_read() {
    run(async {
        let project = Project::with("");
        let text = flow("(flow/step :send :ship {:confirm true})");
        project.commit(SLUG, &text).await;
        let answer = project.test(expecting("ship")).await;
        let run = project.run(&answer).await;
        assert_eq!(run.status, RunStatus::Cancelled);
        assert_eq!(run.cancel_requested.as_deref(), Some("test_over"));
        let open = project.engine.list_waits(WaitFilter::default()).await;
        assert_eq!(open.expect("waits"), [], "nobody can approve it later");
        assert_eq!(project.sent.get(), 0);
    });
}

#[test]
fn a_test_takes_no_slot() {
    run(async {
        let project = Project::with("");
        let text = |what: &str| {
            format!(
                "{{:slug :{SLUG} :concurrency {{:type :singleton :on-new-version :supersede}}
                   :flow '(flow/step :wait :pause {{:key \"{what}\"}})}}"
            )
        };
        let running = project.start(&text("production")).await;
        project.commit(SLUG, &text("new")).await;
        let answer = project.test(json!({"inputs": {}})).await;
        assert_eq!(answer["verdict"], "unconfirmed", "{answer}");
        assert_eq!(project.status(&running).await, RunStatus::Running);
        let row = project.engine.run(&running).await.expect("the run");
        assert_eq!(row.cancel_requested, None, "it was not superseded");
    });
}

#[test]
fn children_of_a_test_end_with_it() {
    run(async {
        let project = Project::with("");
        let child = "{:slug :child :concurrency {:type :singleton :on-new-version :supersede}
                      :flow '(do (flow/step :send :inner {}) (flow/step :wait :pause {:key \"c\"}))}";
        let flows = project.folder.path().join("flows");
        std::fs::create_dir_all(&flows).expect("a folder");
        std::fs::write(flows.join("child.edn"), child).expect("a file");
        let text = flow(
            "(flow/call-flow :child {} {:id :call :workflow-id \"one\" :parent-close-policy :abandon})",
        );
        project.commit(SLUG, &text).await;
        let answer = project.test(expecting("inner")).await;
        assert_eq!(answer["verdict"], "pass", "{answer}");
        assert_eq!(project.open_runs().await, []);
        // The name of a child is not shared with other runs.
        let again = project.test(expecting("inner")).await;
        assert_eq!(again["verdict"], "pass", "{again}");
        assert_eq!(project.sent.get(), 2);
    });
}

#[test]
fn a_caller_that_leaves_ends_its_test() {
    run(async {
        let project = Project::with("");
        let text = flow(
            "(do (flow/step :slack/send {:to \"a\"}) (flow/step :sleep :long {:millis 600000}))",
        );
        project.commit(SLUG, &text).await;
        let leaving = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            project.leave.send_replace(true);
        };
        let (answer, ()) = tokio::join!(project.test(expecting("send")), leaving);
        assert_eq!(answer["code"], "test_run_incomplete", "{answer}");
        assert_eq!(answer["retryable"], true);
        let details = &answer["details"];
        assert_eq!(details["verdict"], "failed");
        assert_eq!(
            details["tools"],
            json!([{"name": "slack__send", "called": true, "returned": true}])
        );
        let run = project.run(&answer).await;
        assert_eq!(details["trace_id"], json!(run.in_trace().trace.to_string()));
        assert_eq!(run.status, RunStatus::Cancelled);
        assert_eq!(run.cancel_requested.as_deref(), Some("test_interrupted"));
    });
}

#[test]
fn a_test_that_its_caller_drops_is_not_resumed() {
    run(async {
        let memory = Memory::new(MemoryOptions::default());
        let project = Project::over(memory.open(), "");
        let text = flow("(do (flow/step :sleep :short {:millis 900}) (flow/step :send :ship {}))");
        project.commit(SLUG, &text).await;
        let cut = tokio::time::timeout(
            Duration::from_millis(300),
            project.test(json!({"inputs": {}})),
        );
        assert!(cut.await.is_err(), "the caller goes away in the middle");
        assert_eq!(project.open_runs().await, []);
        let query = RunQuery {
            started_by: Some("test".to_owned()),
            ..RunQuery::default()
        };
        let tests = project.stores.runs.summaries(query).await.expect("runs");
        assert_eq!(tests.len(), 1);
        drop(project);
        let other = Project::over(memory.open(), "");
        let resumed = other
            .engine
            .resume_all(Rc::new(NoObserver), ExecuteOptions::default())
            .await;
        assert_eq!(resumed.expect("runs").len(), 0);
        let row = other.engine.run(&tests[0].id).await.expect("the run");
        assert_eq!(row.status, RunStatus::Terminated);
        assert_eq!(row.cancel_requested.as_deref(), Some("test_interrupted"));
        assert_eq!(other.sent.get(), 0);
    });
}

#[test]
fn one_test_of_a_flow_runs_at_a_time() {
    run(async {
        let project = Project::with("");
        let text = flow("(flow/step :sleep :long {:millis 600000})");
        project.commit(SLUG, &text).await;
        let second = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let answer = project.test(json!({"inputs": {}})).await;
            project.leave.send_replace(true);
            answer
        };
        let (first, second) = tokio::join!(project.test(json!({"inputs": {}})), second);
        assert_eq!(second["code"], "limit_exceeded", "{second}");
        assert_eq!(second["retryable"], true);
        assert_eq!(first["code"], "test_run_incomplete", "{first}");
        assert_eq!(project.open_runs().await, []);
    });
}

#[test]
fn a_delta_is_tried_in_memory() {
    run(async {
        let project = Project::with(&format!("{} \"x\"", calls(&["look"])));
        project.commit(SLUG, &agent("")).await;
        let text = flow("(flow/step :slack/send {:to \"a\"})");
        let delta = json!({"set": {"parameters": {"files": {"flow.edn": text}}}});
        let with = |delta| json!({"inputs": {}, "delta": delta, "expectations": {"terminal_tool": "send"}});
        assert_eq!(project.test(with(delta.clone())).await["verdict"], "pass");
        let committed = project.test(expecting("send")).await;
        assert_eq!(
            committed["verdict"], "incomplete",
            "nothing was committed: {committed}"
        );
        // What a test may not change.
        let moved = agent("").replace(
            ":type :http-api",
            ":type :http-api :base-url \"http://127.0.0.1:1/v1\"",
        );
        let limited = agent("").replace(":steps [{", ":concurrency {:type :singleton} :steps [{");
        let renamed = agent("").replace(":slug :mail", ":slug :other");
        for (text, key) in [
            (moved, "requires"),
            (limited, "concurrency"),
            (renamed, "slug"),
        ] {
            let delta = json!({"set": {"parameters": {"files": {"flow.edn": text}}}});
            let answer = project.test(with(delta)).await;
            let code = answer["code"].as_str().unwrap_or_default();
            let message = answer["message"].as_str().unwrap_or_default();
            match key {
                // A version of another slug is wrong already.
                "slug" if code == "check_failed" => {}
                _ => assert!(
                    code == "out_of_scope" && message.contains(key),
                    "{key}: {answer}"
                ),
            }
        }
        let outside = project
            .test(with(json!({"set": {"runner": {"kind": "remote"}}})))
            .await;
        assert_eq!(outside["code"], "out_of_scope", "{outside}");
    });
}

#[test]
fn a_delta_needs_the_right_to_edit() {
    run(async {
        let mut project = Project::with("");
        project.token = token(&[Scope::Run]);
        project.commit(SLUG, &flow("1")).await;
        let plain = project.test(json!({"inputs": {}})).await;
        assert_eq!(plain["verdict"], "unconfirmed", "{plain}");
        let delta = json!({"set": {"parameters": {"files": {"flow.edn": flow("2")}}}});
        let refused = project.test(json!({"inputs": {}, "delta": delta})).await;
        assert_eq!(refused["code"], "permission_denied", "{refused}");
    });
}

#[test]
fn inputs_are_those_of_the_flow() {
    run(async {
        let project = Project::with("");
        let nothing = project.test(json!({"inputs": {}})).await;
        assert_eq!(nothing["code"], "no_revision", "{nothing}");
        let text = format!(
            "{{:slug :{SLUG} :invocations {{:default {{:inputs [{{:name :region :type :text :required true}}]}}}}
               :flow '(:region (flow/input))}}"
        );
        project.commit(SLUG, &text).await;
        let answer = |inputs| project.test(json!({"inputs": inputs}));
        assert_eq!(answer(json!({"region": "EU"})).await["output"], "EU");
        for (inputs, path) in [
            (json!({}), "/inputs"),
            (json!({"messages": []}), "/inputs"),
            (json!({"region": 7}), "/inputs/region"),
            (json!({"region": "EU", "target": "other"}), "/inputs/target"),
            (
                json!({"region": "EU", "activation": {}}),
                "/inputs/activation",
            ),
        ] {
            let refused = answer(inputs.clone()).await;
            assert_eq!(refused["code"], "invalid_arguments", "{inputs} {refused}");
            assert_eq!(refused["details"]["path"], path, "{inputs} {refused}");
        }
    });
}
