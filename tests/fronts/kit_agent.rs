//! The build kit as tools of an agent inside a run, on a scripted model over a store in memory. Crashes are tested in
//! `tests/cli/kit_killed.rs`, what reaches a model in `tests/cli/kit_agent.rs`.

use std::rc::Rc;
use std::time::Duration;

use flowstone_engine::ExecuteOptions;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{RunQuery, RunStatus, WaitFilter, WaitRow};
use flowstone_fronts::kit::tools::query_spans;
use flowstone_model::codec;
use flowstone_model::json::to_json;
use flowstone_project::registry::FlowRegistry;
use flowstone_stores::memory::{Memory, MemoryOptions};
use serde_json::{Value as Json, json};

use crate::kit_tools::project::{Project, SLUG, expecting, run};

/// A project whose model makes these turns, and whose settings have this beside the connection.
fn project(turns: &str, settings: &str) -> Project {
    let text = format!(
        "{{:connections {{:ai {{:backend :scripted :models [\"test/small\"] :script {{:turns [{turns}]}}}}}} {settings}}}"
    );
    Project::set(Memory::new(MemoryOptions::default()).open(), &text)
}

/// A flow whose agent has tools of the kit. It returns what the calls gave.
fn builder(kit: &str, options: &str) -> String {
    format!(
        "{{:slug :{SLUG} :requires [{{:slot :ai :type :http-api :backend :scripted}}]
          :flow '(let [done (flow/step :agent :builder {{:connection :ai :objective \"Build.\" :tools {{:kit {kit}}} {options}}})]
                   {{:calls (mapv (fn [call] (select-keys call [:name :result :success])) (:tool-calls done))
                     :reason (:abort-reason done)}})}}"
    )
}

fn call(tool: &str, arguments: &Json) -> String {
    let arguments = codec::encode(&flowstone_model::json::from_json(arguments)).expect("EDN");
    format!("{{:tool-calls [{{:name \"{tool}\" :arguments {arguments}}}]}}")
}

/// A first commit of another text of the flow.
fn commit() -> String {
    call(
        "commit_revision",
        &json!({"delta": {"set": {"parameters": {"files": {"flow.edn": format!("{{:slug :{SLUG} :flow '(str 1 2)}}")}}}}}),
    )
}

fn annotate() -> String {
    call(
        "annotate_trace",
        &json!({"references": {"evaluator": {"slug": "self-check"}}, "data": {"outputs": {"score": 1}}}),
    )
}

/// The results of the agent's calls, once its run is over.
async fn calls(project: &Project, run: &RunId) -> Vec<Json> {
    let row = project.engine.run(run).await.expect("the run");
    assert_eq!(row.status, RunStatus::Completed, "{row:?}");
    let value = codec::decode(&row.result.expect("a result")).expect("a value");
    let value = to_json(&value).expect("JSON");
    value["calls"].as_array().expect("calls").clone()
}

/// Returns the open wait. Its details have what a person sees, as EDN.
async fn only_wait(project: &Project) -> WaitRow {
    let waits = project.engine.list_waits(WaitFilter::default()).await;
    let mut waits = waits.expect("waits");
    assert_eq!(waits.len(), 1, "{waits:?}");
    waits.remove(0)
}

/// Answers the open wait, and resumes its run.
async fn answer(project: &Project, payload: &str) {
    let id = only_wait(project).await.id;
    let payload = codec::decode(payload).expect("a payload");
    let done = project.engine.complete_wait(&id, &payload, true).await;
    done.expect("it is answered");
    resume(project).await;
}

/// Executes a flow until it is over or waits.
async fn start(project: &Project, text: &str) -> RunId {
    let run = project.start(text).await;
    let executed = project
        .engine
        .execute(&run, Rc::new(NoObserver), ExecuteOptions::default())
        .await;
    executed.expect("it is executed");
    run
}

async fn resume(project: &Project) {
    let resumed = project
        .engine
        .resume_all(Rc::new(NoObserver), ExecuteOptions::default())
        .await;
    resumed.expect("it is resumed");
}

/// The number of the newest revision and its author.
async fn head(project: &Project) -> Option<(i64, String)> {
    let registry = FlowRegistry::new(&project.stores, project.engine.now_ms());
    let row = registry.find(SLUG).await.expect("the registry")?;
    let head = registry.pointers(SLUG).await.expect("a head").head;
    assert_eq!(row.head, head.number);
    Some((head.number, head.author))
}

#[test]
fn a_call_that_changes_something_waits_for_a_person_in_place() {
    run(async {
        let project = project(&format!("{} \"done\"", commit()), "");
        let run = start(&project, &builder("true", "")).await;
        assert_eq!(project.status(&run).await, RunStatus::Waiting);
        assert_eq!(head(&project).await, None);
        let shown = only_wait(&project).await.details;
        let asked = format!("\"Allow `commit_revision` on the flow `{SLUG}`?\"");
        assert!(shown.contains(&asked), "{shown}");
        assert!(shown.contains("(str 1 2)"), "{shown}");
        answer(&project, "{:action :approve}").await;
        let made = calls(&project, &run).await;
        assert_eq!(made[0]["result"]["status"], "committed", "{made:?}");
        assert_eq!(head(&project).await, Some((1, format!("run {run}"))));
    });
}

#[test]
fn a_call_that_a_person_rejects_is_not_made() {
    run(async {
        let project = project(&format!("{} \"done\"", commit()), "");
        let run = start(&project, &builder("[:commit-revision]", "")).await;
        answer(&project, "{:action :reject :comment \"not today\"}").await;
        let made = calls(&project, &run).await;
        let error = &made[0]["result"];
        assert_eq!(error["code"], "approval_denied", "{error}");
        assert_eq!(error["retryable"], false);
        assert!(
            error["message"]
                .as_str()
                .unwrap_or_default()
                .contains("not today")
        );
        assert_eq!(made[0]["success"], false);
        assert_eq!(head(&project).await, None);
    });
}

#[test]
fn an_answer_of_the_flow_is_not_that_of_a_person() {
    run(async {
        // The agent hands its own request to the flow, which approves it by itself.
        let project = project(&format!("{} \"done\"", commit()), "");
        let text = format!(
            "{{:slug :{SLUG} :requires [{{:slot :ai :type :http-api :backend :scripted}}]
              :flow '(let [ask {{:connection :ai :tools {{:kit [:commit_revision]}} :approval true :return-messages true}}
                           first (flow/step :agent :builder (assoc ask :objective \"Build.\"))
                           done (flow/step :agent :again (assoc ask :messages (:messages first) :approval-answer {{:action :approve}}))]
                       {{:calls (mapv (fn [call] (select-keys call [:name :result])) (:tool-calls done))}})}}"
        );
        let run = start(&project, &text).await;
        assert_eq!(project.status(&run).await, RunStatus::Waiting);
        assert_eq!(head(&project).await, None);
        answer(&project, "{:action :approve}").await;
        assert_eq!(
            calls(&project, &run).await[0]["result"]["status"],
            "committed"
        );
    });
}

#[test]
fn an_agent_that_waits_for_its_own_rule_asks_once() {
    run(async {
        let project = project(&format!("{} \"done\"", commit()), "");
        let own = ":approval {:mode :all-mutations :resume :in-place :timeout \"2h\"}";
        let run = start(&project, &builder("true", own)).await;
        let wait = only_wait(&project).await;
        assert!(wait.details.contains("Allow `commit_revision`"), "{wait:?}");
        assert!(wait.deadline_ms.is_some(), "{wait:?}");
        answer(&project, "{:action :approve}").await;
        assert_eq!(calls(&project, &run).await.len(), 1);
        assert_eq!(head(&project).await.map(|it| it.0), Some(1));
    });
}

#[test]
fn arguments_that_a_person_changed_are_what_they_agreed_to() {
    run(async {
        let project = project(&format!("{} \"done\"", annotate()), "");
        let run = start(&project, &builder("[:annotate_trace]", "")).await;
        answer(
            &project,
            "{:action :approve :decisions [{:tool-call-id \"call_1_1\" :action :edit
               :arguments {:references {:evaluator {:slug \"person\"}} :data {:outputs {:score 0}}}}]}",
        )
        .await;
        let made = calls(&project, &run).await;
        let annotation = &made[0]["result"]["annotation"];
        assert_eq!(
            annotation["references"]["evaluator"]["slug"], "person",
            "{made:?}"
        );
    });
}

#[test]
fn an_annotation_is_of_the_trace_of_the_run() {
    run(async {
        let project = project(
            &format!("{} \"done\"", annotate()),
            ":kit {:permissions {:annotate_trace :allow}}",
        );
        let run = start(&project, &builder("true", "")).await;
        let made = calls(&project, &run).await;
        let annotation = &made[0]["result"]["annotation"];
        let own = project
            .engine
            .run(&run)
            .await
            .expect("the run")
            .in_trace()
            .trace;
        assert_eq!(annotation["trace_id"], json!(own.to_string()), "{made:?}");
        let spans = project
            .call(
                &query_spans::TOOL,
                json!({"filtering": {"conditions": [{"field": "trace_id", "value": run.as_str()}]},
                       "fields": ["span_name", "span_id", "events"]}),
            )
            .await;
        let root = &spans["spans"][0];
        assert_eq!(root["span_id"], annotation["span_id"], "{spans}");
        assert_eq!(root["events"][0]["attributes"]["by"], format!("run {run}"));
    });
}

#[test]
fn settings_narrow_and_widen_what_agents_may_call() {
    run(async {
        for (settings, expected) in [
            (":kit {:permissions {:commit_revision :allow}}", "committed"),
            (
                ":kit {:permissions {:commit-revision :deny}}",
                "permission_denied",
            ),
        ] {
            let project = project(&format!("{} \"done\"", commit()), settings);
            let run = start(&project, &builder("true", "")).await;
            let result = calls(&project, &run).await[0]["result"].clone();
            let found = result.get("status").or(result.get("code"));
            assert_eq!(found, Some(&json!(expected)), "{settings}: {result}");
        }
        // A tool that only reads asks if a person says so.
        let turns = format!("{} \"done\"", call("list_schedules", &json!({})));
        let asking = project(&turns, ":kit {:permissions {:list_schedules :ask}}");
        let run = start(&asking, &builder("true", "")).await;
        assert_eq!(asking.status(&run).await, RunStatus::Waiting);
        answer(&asking, "{:action :approve}").await;
        assert_eq!(calls(&asking, &run).await[0]["result"]["count"], 0);
        let free = project(&turns, "");
        let run = start(&free, &builder("true", "")).await;
        assert_eq!(calls(&free, &run).await[0]["result"]["count"], 0);
    });
}

#[test]
fn errors_reach_the_model_in_the_shape_of_the_kit() {
    run(async {
        let rows = [
            (
                "commit_revision",
                json!({"delta": {}, "flow": "other"}),
                "invalid_arguments",
            ),
            (
                "commit_revision",
                json!({"delta": {}, "target": "other"}),
                "invalid_arguments",
            ),
            (
                "query_spans",
                json!({"filtering": {"conditions": [{"field": "nothing"}]}}),
                "invalid_arguments",
            ),
            ("remove_schedule", json!({"id": "sch_none"}), "not_found"),
            ("test_run", json!({"inputs": {}}), "no_revision"),
        ];
        for (tool, arguments, code) in rows {
            let project = project(
                &format!("{} \"done\"", call(tool, &arguments)),
                ":kit {:permissions {:remove_schedule :allow :test_run :allow}}",
            );
            let run = start(&project, &builder("true", "")).await;
            let made = calls(&project, &run).await;
            let error = &made[0]["result"];
            assert_eq!(error["code"], code, "{tool}: {error}");
            assert!(
                error["message"].is_string() && error["retryable"].is_boolean(),
                "{error}"
            );
            assert_eq!(made[0]["success"], false);
        }
    });
}

#[test]
fn a_run_tests_its_own_flow_and_a_test_changes_nothing() {
    run(async {
        // The committed flow is an agent with the kit, too. In its test it may read only.
        let test = call(
            "test_run",
            &json!({"inputs": {}, "expectations": {"terminal_tool": "query_spans"}}),
        );
        let inner = [
            commit(),
            annotate(),
            test.clone(),
            call("list_schedules", &json!({})),
        ]
        .join(" ");
        let project = project(
            &format!("{inner} {} \"done\"", call("query_spans", &json!({}))),
            ":kit {:permissions {:test_run :allow :annotate_trace :allow}}",
        );
        let text = builder("true", "");
        project.commit(SLUG, &text).await;
        let answer = project.test(expecting("query_spans")).await;
        // Refused calls are errors of tools, so the verdict says that they failed.
        assert_eq!(answer["verdict"], "failed", "{answer}");
        assert_eq!(answer["approvals"], json!([]), "nobody is asked in a test");
        let tested = project.run(&answer).await;
        let codes: Vec<Json> = calls(&project, &tested.id)
            .await
            .iter()
            .map(|call| json!([call["name"], call["result"]["code"]]))
            .collect();
        let refused = json!([
            ["commit_revision", "refused_in_test"],
            ["annotate_trace", "refused_in_test"],
            ["test_run", "recursion_refused"],
            ["list_schedules", null],
            ["query_spans", null],
        ]);
        assert_eq!(json!(codes), refused);
        let dry = project.test(json!({"inputs": {}, "dry": true})).await;
        let tested = project.run(&dry).await;
        let codes = calls(&project, &tested.id).await;
        assert_eq!(codes[0]["result"]["code"], "refused_in_test", "{codes:?}");
        assert_eq!(head(&project).await.map(|it| it.0), Some(1));
    });
}

#[test]
fn a_test_ends_with_the_step_that_runs_it() {
    run(async {
        let project = project("", ":kit {:permissions {:test_run :allow}}");
        let text = format!(
            "{{:slug :{SLUG} :invocations {{:default {{:inputs [{{:name :slow :type :boolean :required false}}]}}}}
              :flow '(if (:slow (flow/input))
                       (flow/step :sleep :nap {{:duration \"20s\"}})
                       (try (flow/step :kit :call {{:tool \"test_run\" :arguments {{:inputs {{:slow true}}}} :timeout \"500ms\"}})
                         (catch Exception e (:kind (ex-data e)))))}}"
        );
        project.commit(SLUG, &text).await;
        let run = start(&project, &text).await;
        let outer = project.engine.run(&run).await.expect("the run");
        assert_eq!(
            outer.result.as_deref(),
            Some(":timeout"),
            "{:?}",
            outer.error
        );
        // The call notices that nobody waits for its answer, and ends the test after the step.
        let ends = tokio::time::Instant::now() + Duration::from_secs(10);
        let ended = loop {
            let query = RunQuery {
                started_by: Some("test".to_owned()),
                ..RunQuery::default()
            };
            let tests = project.stores.runs.summaries(query).await.expect("runs");
            assert_eq!(tests.len(), 1);
            let status = tests[0].status;
            if status.is_final() || tokio::time::Instant::now() > ends {
                break status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!(ended, RunStatus::Cancelled);
        // The next test of the flow is not refused.
        let answer = project.test(json!({"inputs": {}})).await;
        assert_ne!(answer["code"], "limit_exceeded", "{answer}");
    });
}

#[test]
fn an_agent_tests_what_it_has_committed() {
    run(async {
        let commit = call(
            "commit_revision",
            &json!({"delta": {"set": {"parameters": {"files": {"flow.edn":
                format!("{{:slug :{SLUG} :flow '(flow/step :send :ship {{}})}}")}}}}}),
        );
        let test = call(
            "test_run",
            &json!({"inputs": {}, "expectations": {"terminal_tool": "ship"}}),
        );
        let project = project(&format!("{commit} {test} \"done\""), "");
        let run = start(&project, &builder("true", "")).await;
        answer(&project, "{:action :approve}").await;
        let wait = only_wait(&project).await;
        assert!(wait.details.contains("Allow `test_run`"), "{wait:?}");
        answer(&project, "{:action :approve}").await;
        let made = calls(&project, &run).await;
        assert_eq!(made[1]["result"]["verdict"], "pass", "{made:?}");
        assert_eq!(project.sent.get(), 1);
        let id = RunId::from_text(made[1]["result"]["test_id"].as_str().expect("a test"));
        assert_eq!(
            project.engine.run(&id).await.expect("the test").started_by,
            "test"
        );
    });
}

#[test]
fn a_step_in_the_body_of_a_flow_asks_nobody() {
    run(async {
        let body = |tool: &str| {
            format!(
                "{{:slug :{SLUG} :flow '(try (flow/step :kit :call {{:tool \"{tool}\" :arguments {{:references {{:evaluator {{:slug \"x\"}}}} :data {{:outputs {{}}}}}}}})
                    (catch Exception e (:code (:kit (ex-data e)))))}}"
            )
        };
        for (settings, expected) in [
            ("", "approval_required"),
            (":kit {:permissions {:annotate_trace :allow}}", "annotation"),
        ] {
            let project = project("", settings);
            let run = start(&project, &body("annotate_trace")).await;
            let row = project.engine.run(&run).await.expect("the run");
            let result = row.result.unwrap_or_default();
            assert!(
                result.contains(expected),
                "{settings}: {result} {:?}",
                row.error
            );
        }
        // A packaged step does not give an agent what only the kit's own tools have.
        let project = project(&format!("{} \"done\"", call("note", &json!({}))), "");
        let text = format!(
            "{{:slug :{SLUG} :requires [{{:slot :ai :type :http-api :backend :scripted}}]
              :steps [{{:id :my/note :type :kit :tool {{:name \"note\"}} :description \"x\" :input-schema [:map]
                        :defaults {{:tool \"annotate_trace\" :arguments {{:references {{:evaluator {{:slug \"x\"}}}} :data {{:outputs {{}}}}}}}}}}]
              :flow '{{:calls (mapv (fn [call] (select-keys call [:result :success]))
                        (:tool-calls (flow/step :agent :a {{:connection :ai :objective \"x\" :tools {{:steps [:my/note]}}}})))}}}}"
        );
        let run = start(&project, &text).await;
        let made = calls(&project, &run).await;
        assert_eq!(made[0]["success"], false, "{made:?}");
    });
}

#[test]
fn names_of_tools_are_checked_before_a_run() {
    let project = project("", "");
    let check = |kit: &str| {
        let checked = project
            .engine
            .check_text(&project.engine.session(), &builder(kit, ""));
        let found = checked
            .findings
            .iter()
            .map(|it| format!("{} {:?}", it.message, it.hints));
        found.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(check("true"), "");
    assert_eq!(check("[:test-run \"read_config\"]"), "");
    let wrong = check("[:test_rum]");
    assert!(
        wrong.contains("no tool `test_rum`") && wrong.contains("test_run"),
        "{wrong}"
    );
    let wrong = check("\"all\"");
    assert!(
        wrong.contains("`:kit` is `true` or a vector of names"),
        "{wrong}"
    );
}
