//! Addresses that programs write into a flow, and what has to be right before a person is asked.

use std::rc::Rc;

use flowstone_engine::ExecuteOptions;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::RunStatus;
use flowstone_fronts::kit::tools::{
    annotate_trace, commit_revision, create_schedule, discover_tools, list_connections,
    request_connection, test_run,
};
use flowstone_project::registry::FlowRegistry;
use serde_json::{Value as Json, json};

use super::project::{Project, SLUG, run};

const ADDRESS: &str = "http://127.0.0.1:9/v1";

fn text(slot: &str) -> String {
    format!(
        "{{:slug :{SLUG} :requires [{slot}] :flow '(flow/step :llm :a {{:connection :model :prompt \"x\"}})}}"
    )
}

fn delta(text: &str) -> Json {
    json!({"set": {"parameters": {"files": {"flow.edn": text}}}})
}

async fn state(project: &Project) -> String {
    let answer = project.call(&list_connections::TOOL, json!({})).await;
    let all = answer["connections"].as_array().expect("connections");
    let found = all.iter().find(|it| it["slug"] == "model");
    found.expect("the slot")["state"]
        .as_str()
        .expect("a state")
        .to_owned()
}

#[test]
fn an_address_that_a_program_wrote_is_not_used_until_a_person_confirms_it() {
    run(async {
        let project = Project::with("\"x\"");
        let slot = format!(
            "{{:slot :model :type :http-api :backend :openai :base-url \"{ADDRESS}\" :auth {{:type :none}}}}"
        );
        let given = json!({"delta": delta(&text(&slot))});
        let answer = project.call(&commit_revision::TOOL, given).await;
        let warnings = answer["warnings"].to_string();
        assert!(warnings.contains("no person has confirmed"), "{answer}");
        assert_eq!(state(&project).await, "needs_input");
        let asked = json!({"use_cases": ["summarize a text"]});
        let answer = project.call(&discover_tools::TOOL, asked).await;
        assert_eq!(
            answer["ready"],
            answer["capabilities"][0]["connection"]["slug"] != "model",
            "{answer}"
        );
        let asked = json!({"integration": "model"});
        let answer = project.call(&request_connection::TOOL, asked).await;
        assert_eq!(answer["status"], "pending", "{answer}");
        let answer = project.test(json!({"inputs": {}})).await;
        assert_eq!(answer["code"], "connection_not_ready", "{answer}");
        assert_eq!(answer["details"]["base_url"], ADDRESS);
        let timer = json!({"data": {"event_key": "a.b", "schedule": "0 9 * * *"}});
        let answer = project.call(&create_schedule::TOOL, timer.clone()).await;
        assert_eq!(answer["code"], "connection_not_ready", "{answer}");
        // Neither does a flow that calls this one: directly, or through a flow between.
        for (caller, body) in [
            ("near", format!("(flow/call-flow :{SLUG} {{}})")),
            ("far", "(flow/step :fanout :f {:items [{:type :call-flow :flow-slug \"near\" :input {}}]})".to_owned()),
        ] {
            let text = format!("{{:slug :{caller} :flow '{body}}}");
            project.commit(caller, &text).await;
            let calls = [(&test_run::TOOL, json!({"inputs": {}})), (&create_schedule::TOOL, timer.clone())];
            for (tool, arguments) in calls {
                let answer = project.call_on(caller, tool, arguments).await;
                assert_eq!(answer["code"], "connection_not_ready", "{caller}: {answer}");
                assert_eq!(answer["details"]["flow"], SLUG, "{caller}: {answer}");
            }
        }
        // A release is the act of a person.
        let registry = FlowRegistry::new(&project.stores, project.engine.now_ms());
        registry
            .release(SLUG, Some(1), ("somebody", ""))
            .await
            .expect("it is released");
        assert_eq!(state(&project).await, "ready");
    });
}

#[test]
fn an_address_of_a_person_is_theirs() {
    run(async {
        let project = Project::with("\"x\"");
        let slot = format!(
            "{{:slot :model :type :http-api :backend :openai :base-url \"{ADDRESS}\" :auth {{:type :none}}}}"
        );
        project.commit(SLUG, &text(&slot)).await;
        assert_eq!(state(&project).await, "ready");
    });
}

#[test]
fn a_call_that_cannot_be_made_is_refused_before_a_person_is_asked() {
    run(async {
        let project = Project::with("\"x\"");
        let made = json!({"delta": delta("{:slug :mail :flow '1}")});
        let made = project.call(&commit_revision::TOOL, made).await;
        let stale =
            json!({"base_revision_id": "rev_old", "delta": delta("{:slug :mail :flow '2}")});
        assert_eq!(
            project.question(&commit_revision::TOOL, stale).await,
            "revision_conflict"
        );
        let outside = json!({"base_revision_id": made["revision"]["id"],
            "delta": {"set": {"parameters": {"files": {"../x.md": "text"}}}}});
        assert_eq!(
            project.question(&commit_revision::TOOL, outside).await,
            "invalid_arguments"
        );
        let wrong = json!({"data": {"event_key": "a.b", "schedule": "every day"}});
        assert_eq!(
            project.question(&create_schedule::TOOL, wrong).await,
            "invalid_arguments"
        );
        let timer = json!({"data": {"event_key": "a.b", "schedule": "0 9 * * *"}});
        assert_eq!(
            project
                .question(&create_schedule::TOOL, timer.clone())
                .await,
            "asked"
        );
        for _ in 0..20 {
            let answer = project.call(&create_schedule::TOOL, timer.clone()).await;
            assert!(answer["schedule"].is_object(), "{answer}");
        }
        assert_eq!(
            project.question(&create_schedule::TOOL, timer).await,
            "limit_exceeded"
        );
        let note = json!({"references": {"evaluator": {"slug": "me"}}, "data": {"outputs": {}}});
        assert_eq!(
            project.question(&annotate_trace::TOOL, note).await,
            "no_trace"
        );
    });
}

#[test]
fn a_commit_that_fails_confirms_nothing() {
    run(async {
        let project = Project::with("\"x\"");
        let slot = |address: &str| {
            format!(
                "{{:slot :model :type :http-api :backend :openai :base-url \"{address}\" :auth {{:type :none}}}}"
            )
        };
        let given = json!({"delta": delta(&text(&slot(ADDRESS)))});
        let made = project.call(&commit_revision::TOOL, given).await;
        let other = text(&slot("http://127.0.0.1:10/v1"));
        let message = "x".repeat(100_000);
        let failing = json!({"base_revision_id": made["revision"]["id"], "delta": delta(&other), "message": message});
        let refused = project.call(&commit_revision::TOOL, failing).await;
        assert_eq!(refused["code"], "invalid_arguments", "{refused}");
        assert_eq!(state(&project).await, "needs_input");
        let answer = project.test(json!({"inputs": {}})).await;
        assert_eq!(answer["code"], "connection_not_ready", "{answer}");
    });
}

#[test]
fn the_token_that_wrote_an_address_cannot_confirm_it() {
    run(async {
        let project = Project::with("\"x\"");
        let slot = format!(
            "{{:slot :model :type :http-api :backend :openai :base-url \"{ADDRESS}\" :auth {{:type :none}}}}"
        );
        let given = json!({"delta": delta(&text(&slot))});
        project.call(&commit_revision::TOOL, given).await;
        let registry = FlowRegistry::new(&project.stores, project.engine.now_ms());
        let own = project.token.attributed_to();
        let released = registry.release(SLUG, Some(1), (own, "")).await;
        released.expect("it is released");
        assert_eq!(state(&project).await, "needs_input");
    });
}

#[test]
fn an_address_that_a_run_wrote_is_not_confirmed() {
    run(async {
        let project = Project::with("\"x\"");
        let slot = format!(
            "{{:slot :model :type :http-api :backend :openai :base-url \"{ADDRESS}\" :auth {{:type :none}}}}"
        );
        let literal = flowstone_model::codec::encode(&text(&slot).into()).expect("EDN");
        let writes = format!(
            "{{:slug :writer :flow '(flow/step :workspace :push {{:op :flows/push-draft :mutations :draft-only :args {{:flow-literal {literal}}}}})}}"
        );
        let id = project.start(&writes).await;
        let (observer, options) = (Rc::new(NoObserver), ExecuteOptions::default());
        let ended = project.engine.execute(&id, observer, options).await;
        ended.expect("it ends");
        let row = project.engine.run(&id).await.expect("the run");
        assert_eq!(row.status, RunStatus::Completed, "{:?}", row.error);
        assert_eq!(state(&project).await, "needs_input");
        let answer = project.test(json!({"inputs": {}})).await;
        assert_eq!(answer["code"], "connection_not_ready", "{answer}");
    });
}
