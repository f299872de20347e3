//! What `discover_tools`, `request_connection` and `list_connections` find and say.

use flowstone_fronts::kit::connecting::Place;
use flowstone_fronts::kit::tools::{discover_tools, list_connections, request_connection};
use flowstone_stores::memory::{Memory, MemoryOptions};
use serde_json::{Value as Json, json};

use super::project::{Project, SLUG, agent, run};

fn project() -> Project {
    let stores = Memory::new(MemoryOptions::default()).open();
    Project::set(
        stores,
        "{:allow {:net [\"127.0.0.1\"]}
          :connections {:ai {:backend :scripted :models [\"m\"] :script {:turns [\"x\"]}}
                        :tracker {:base-url \"https://tracker.example.com\" :label \"Issue tracker\"}
                        :billing {:base-url \"https://billing.example.com\"
                                  :auth {:type :bearer :secret-ref :billing-key-of-this-test}}
                        :calendar {:base-url \"https://calendar.example.com\" :auth {:type :oauth}}}}",
    )
}

async fn found(project: &Project, use_case: &str) -> Json {
    let answer = project
        .call(&discover_tools::TOOL, json!({"use_cases": [use_case]}))
        .await;
    answer["capabilities"][0].clone()
}

#[test]
fn each_use_case_gets_the_tool_that_does_it() {
    run(async {
        let project = project();
        project.commit(SLUG, &agent("")).await;
        project
            .commit(
                "invoices",
                "{:slug :invoices :description \"Sends reminders about unpaid invoices.\" :flow '1}",
            )
            .await;
        for (use_case, kind, name) in [
            ("fetch a web page by its url", "step", "http"),
            ("summarize a text", "step", "llm"),
            ("send an email notification", "step", "notify"),
            ("run a sql query on a postgres database", "step", "db"),
            ("ask a human for approval", "step", "wait"),
            ("remind customers about unpaid invoices", "flow", "invoices"),
            ("transform json with a jq filter", "step", "jq"),
        ] {
            let capability = found(&project, use_case).await;
            let tool = &capability["tool"];
            let first = tool["name"].as_str().unwrap_or_default();
            let first = first.split(' ').next().unwrap_or_default();
            assert_eq!(
                (&tool["type"], first),
                (&json!(kind), name),
                "{use_case}: {capability:#}"
            );
            assert_eq!(capability["connection"]["state"], "ready", "{capability}");
        }
        let rows = found(&project, "store a key and its value").await;
        assert_eq!(rows["tool"]["name"], "kv set", "{rows:#}");
        let packaged = found(&project, "slack send").await;
        assert_eq!(packaged["tool"]["name"], "slack/send", "{packaged:#}");
    });
}

#[test]
fn states_say_what_a_person_has_to_do() {
    run(async {
        let project = project();
        for (use_case, slug, state) in [
            ("create issues in the tracker", "tracker", "ready"),
            ("read the billing", "billing", "needs_input"),
            ("read the calendar", "calendar", "needs_auth"),
        ] {
            let answer = project
                .call(&discover_tools::TOOL, json!({"use_cases": [use_case]}))
                .await;
            let connection = &answer["capabilities"][0]["connection"];
            assert_eq!(
                connection,
                &json!({"state": state, "slug": slug}),
                "{answer:#}"
            );
            assert_eq!(answer["ready"], state == "ready", "{answer:#}");
            assert_eq!(answer["connections"][0]["state"], state, "{answer:#}");
            let connect = &answer["connections"][0]["connect"]["tool"];
            assert_eq!(
                connect == "request_connection",
                state != "ready",
                "{answer:#}"
            );
            for secret in ["billing-key", "provider"] {
                assert!(!answer.to_string().contains(secret), "{secret} {answer}");
            }
        }
        let listed = project.call(&list_connections::TOOL, json!({})).await;
        let states = listed["connections"]
            .as_array()
            .expect("connections")
            .iter();
        let states: Vec<String> = states
            .map(|it| format!("{} {}", it["slug"], it["state"]))
            .collect();
        assert_eq!(
            states,
            [
                "\"ai\" \"ready\"",
                "\"billing\" \"needs_input\"",
                "\"calendar\" \"needs_auth\"",
                "\"tracker\" \"ready\"",
            ]
        );
    });
}

#[test]
fn what_is_not_there_is_not_made_up() {
    run(async {
        let project = project();
        let capability = found(&project, "observe distant galaxies telescopically").await;
        assert_eq!(
            (&capability["tool"], &capability["connection"]),
            (&Json::Null, &Json::Null)
        );
        assert!(capability["note"].is_string(), "{capability}");
        let event = found(&project, "when a pull request is opened").await;
        let note = event["note"].as_str().expect("a note");
        assert!(note.contains("discover_triggers"), "{event}");
        let answer = project
            .call(
                &discover_tools::TOOL,
                json!({"use_cases": ["fetch a web page"], "provider": "flows", "limit_alternatives": 0}),
            )
            .await;
        assert_eq!(answer["capabilities"][0]["tool"], Json::Null, "{answer}");
        assert_eq!(answer["ready"], false);
        for wrong in [
            json!({"use_cases": []}),
            json!({"use_cases": ["a"], "limit_alternatives": 11}),
            json!({"use_cases": ["a"], "provider": "composio"}),
            json!({"use_cases": ["a"], "workspace": "other"}),
        ] {
            let refused = project.call(&discover_tools::TOOL, wrong.clone()).await;
            assert_eq!(refused["code"], "invalid_arguments", "{wrong} {refused}");
        }
    });
}

#[test]
fn a_person_completes_a_request() {
    run(async {
        let project = project();
        let ask = |arguments| project.call(&request_connection::TOOL, arguments);
        let ready = ask(json!({"integration": "tracker"})).await;
        assert_eq!(
            ready,
            json!({"status": "ready", "integration": "tracker", "slug": "tracker"})
        );
        let login = ask(json!({"integration": "calendar"})).await;
        assert_eq!(
            login["command"], "flowstone connections login calendar",
            "{login}"
        );
        let pending = ask(json!({"integration": "billing"})).await;
        assert_eq!(pending["status"], "pending", "{pending}");
        let again = ask(json!({"integration": "billing"})).await;
        assert_eq!(again, pending, "an open request is not repeated");
        let id = pending["command"].as_str().expect("a command");
        let id = id.rsplit(' ').next().expect("an id");
        let asked = flowstone_fronts::kit::connecting::find(&project.engine, id).await;
        let asked = asked.expect("a request");
        let variable = Place::Variable("BILLING_KEY_OF_THIS_TEST".to_owned());
        assert_eq!(asked.place, variable);
        assert_eq!(asked.missing, None);
        let complete =
            |secret| flowstone_fronts::kit::connecting::complete(&project.engine, &asked, secret);
        assert!(complete("short").await.is_err());
        complete("a-secret-value").await.expect("it is taken");
        let file = std::fs::read_to_string(project.folder.path().join(".env")).expect("a file");
        assert_eq!(file, "BILLING_KEY_OF_THIS_TEST=\"a-secret-value\"\n");
        let once = flowstone_fronts::kit::connecting::find(&project.engine, id).await;
        assert_eq!(once.map_err(|error| error.code.name()), Err("not_found"));
        // Five open requests of a flow.
        for name in ["a", "b", "c", "d"] {
            let asked = ask(json!({"integration": name})).await;
            assert_eq!(asked["status"], "pending", "{name} {asked}");
        }
        let refused = ask(json!({"integration": "e"})).await;
        assert_eq!(refused["code"], "limit_exceeded", "{refused}");
        let wrong = ask(json!({"integration": "../x"})).await;
        assert_eq!(wrong["code"], "invalid_arguments", "{wrong}");
    });
}
