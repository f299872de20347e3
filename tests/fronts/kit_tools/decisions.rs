//! What spans of calls say about the decisions of people.

use std::rc::Rc;

use flowstone_engine::ExecuteOptions;
use flowstone_engine::observer::NoObserver;
use flowstone_fronts::kit::tools::query_spans;
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::project::{Project, SLUG, agent, calls, run};

const IN_PLACE: &str = ":approval {:mode :tools :tool-names [\"slack__send\"] :resume :in-place}";

/// Returns the span of the call.
async fn span(project: &Project, run: &str) -> Json {
    let conditions = json!([
        {"field": "trace_id", "value": run},
        {"field": "attributes", "key": "gen_ai.tool.name", "value": "slack__send"},
    ]);
    let asked = json!({"filtering": {"conditions": conditions}});
    let answer = project.call(&query_spans::TOOL, asked).await;
    assert_eq!(answer["count"], 1, "{answer}");
    answer["spans"][0].clone()
}

#[test]
fn spans_of_calls_say_what_a_person_decided() {
    run(async {
        for (action, approval, status) in [
            ("approve", "approved", "STATUS_CODE_OK"),
            ("reject", "rejected", "STATUS_CODE_ERROR"),
        ] {
            let turns = format!("{} \"done\"", calls(&["slack__send"]));
            let project = Project::with(&turns);
            project.commit(SLUG, &agent(IN_PLACE)).await;
            let id = project.start(&agent(IN_PLACE)).await;
            let execute = async || {
                let observer = Rc::new(NoObserver);
                project
                    .engine
                    .execute(&id, observer, ExecuteOptions::default())
                    .await
            };
            execute().await.expect("it waits");
            let before = span(&project, id.as_str()).await;
            assert_eq!(before["attributes"]["flowstone.approval"], "waiting");
            let wait = project.engine.waits_below(&id).await.expect("waits");
            let answer = Value::map([(Value::keyword("action"), Value::keyword(action))]);
            let answered = project.engine.complete_wait(&wait[0].id, &answer, false);
            answered.await.expect("it is answered");
            execute().await.expect("it continues");
            let after = span(&project, id.as_str()).await;
            assert_eq!(
                after["attributes"]["flowstone.approval"], approval,
                "{after:#}"
            );
            assert_eq!(after["status_code"], status, "{after:#}");
            assert!(after["end_time"].is_string(), "{after:#}");
            assert_eq!(
                after["attributes"].get("output").is_some(),
                action == "approve"
            );
        }
    });
}

#[test]
fn a_call_about_which_nobody_decides_in_time_is_not_rejected_by_a_person() {
    run(async {
        let options = IN_PLACE.replace(":resume", ":timeout \"1s\" :resume");
        let turns = format!("{} \"done\"", calls(&["slack__send"]));
        let project = Project::with(&turns);
        project.commit(SLUG, &agent(&options)).await;
        let id = project.start(&agent(&options)).await;
        let execute = async || {
            let observer = Rc::new(NoObserver);
            let options = ExecuteOptions::default();
            project.engine.execute(&id, observer, options).await
        };
        execute().await.expect("it waits");
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        execute().await.expect("it ends");
        let span = span(&project, id.as_str()).await;
        assert_eq!(
            span["attributes"]["flowstone.approval"], "unanswered",
            "{span:#}"
        );
        assert_eq!(span["status_code"], "STATUS_CODE_ERROR", "{span:#}");
        let message = span["status_message"].as_str().unwrap_or_default();
        assert!(
            message.contains("in time") && !message.contains("rejected"),
            "{span:#}"
        );
    });
}
