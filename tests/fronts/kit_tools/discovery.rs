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
            // The project has neither a mail server nor a database.
            let state = match name {
                "db" | "notify" => "needs_input",
                _ => "ready",
            };
            assert_eq!(capability["connection"]["state"], state, "{capability}");
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
fn a_step_that_needs_a_connection_has_its_state() {
    run(async {
        let discover = async |settings: &str, flow: &str, use_case: &str| {
            let stores = Memory::new(MemoryOptions::default()).open();
            let project = Project::set(stores, settings);
            project.commit(SLUG, flow).await;
            project
                .call(&discover_tools::TOOL, json!({"use_cases": [use_case]}))
                .await
        };
        let bare = "{:slug :mail :flow '1}";
        for (use_case, step, integration) in [
            ("summarize a text", "llm", "openai"),
            ("research a topic autonomously", "agent", "openai"),
            ("run a sql query", "db", "database"),
            ("run a shell command on a remote machine", "ssh", "ssh"),
            ("send an email", "notify", "smtp"),
        ] {
            let answer = discover("{}", bare, use_case).await;
            let found = &answer["capabilities"][0];
            assert_eq!(found["tool"]["name"], step, "{answer:#}");
            let missing = json!({"state": "needs_input", "slug": null});
            assert_eq!(found["connection"], missing, "{answer:#}");
            assert_eq!(answer["ready"], false, "{answer:#}");
            let arguments = json!({"integration": integration, "mode": "api_key"});
            let connect = json!({"tool": "request_connection", "arguments": arguments});
            assert_eq!(answer["connections"][0]["connect"], connect, "{answer:#}");
            let plan = answer["guidance"]["plan_steps"][0]
                .as_str()
                .expect("a step");
            assert!(plan.contains(integration), "{plan}");
        }
        // A plain request and a message to an address need no connection.
        let http = discover("{}", bare, "fetch a web page by its url").await;
        assert_eq!(http["ready"], true, "{http:#}");
        let slot =
            "{:slug :mail :requires [{:slot :ai :type :http-api :backend :openai}] :flow '1}";
        let other = "{:connections {:spare {:backend :scripted :script {:turns [\"x\"]}}
                                    :orders {:type :database :base-url \"postgres://a@db.example.com/x\"
                                             :auth {:type :basic :secret-ref :orders-of-this-test}}}}";
        for (settings, flow, use_case, state, slug) in [
            ("{}", slot, "summarize a text", "needs_input", "ai"),
            (other, bare, "summarize a text", "ready", "spare"),
            // One that can be used comes first.
            (other, slot, "summarize a text", "ready", "spare"),
            (other, bare, "run a sql query", "needs_input", "orders"),
        ] {
            let answer = discover(settings, flow, use_case).await;
            let connection = json!({"state": state, "slug": slug});
            assert_eq!(
                answer["capabilities"][0]["connection"], connection,
                "{answer:#}"
            );
            assert_eq!(answer["connections"][0]["slug"], slug, "{answer:#}");
            assert_eq!(answer["ready"], state == "ready", "{answer:#}");
        }
        // The slot comes first where both can be used.
        let both = "{:connections {:ai {:backend :scripted :script {:turns [\"x\"]}}
                                   :a-spare {:backend :scripted :script {:turns [\"x\"]}}}}";
        let slot =
            "{:slug :mail :requires [{:slot :ai :type :http-api :backend :scripted}] :flow '1}";
        let answer = discover(both, slot, "summarize a text").await;
        assert_eq!(answer["capabilities"][0]["connection"]["slug"], "ai");
    });
}

#[test]
fn a_server_that_nobody_logged_in_to_is_found() {
    run(async {
        let stores = Memory::new(MemoryOptions::default()).open();
        let settings =
            "{:connections {:linear {:backend :mcp :base-url \"https://mcp.linear.example.com/mcp\"
                                                :auth {:type :oauth}}}}";
        let project = Project::set(stores, settings);
        let answer = project
            .call(
                &discover_tools::TOOL,
                json!({"use_cases": ["create an issue in Linear"]}),
            )
            .await;
        let found = &answer["capabilities"][0];
        assert_eq!(found["tool"]["type"], "mcp", "{answer:#}");
        assert_eq!(found["tool"]["connection"], "linear", "{answer:#}");
        let connection = json!({"state": "needs_auth", "slug": "linear"});
        assert_eq!(found["connection"], connection, "{answer:#}");
        let arguments = json!({"integration": "linear", "mode": "oauth"});
        let connect = json!({"tool": "request_connection", "arguments": arguments});
        assert_eq!(answer["connections"][0]["connect"], connect, "{answer:#}");
        assert_eq!(answer["ready"], false, "{answer:#}");
    });
}

#[test]
fn what_starts_a_flow_is_planned_with_its_own_tool() {
    run(async {
        let project = project();
        project.commit(SLUG, &agent("")).await;
        for (use_case, tool, note) in [
            (
                "when a github issue is opened, do something",
                Json::Null,
                "discover_triggers",
            ),
            ("every morning at 9", Json::Null, "create_schedule"),
            (
                "every Monday, summarize the week",
                json!("llm"),
                "create_schedule",
            ),
        ] {
            let answer = project
                .call(&discover_tools::TOOL, json!({"use_cases": [use_case]}))
                .await;
            let found = &answer["capabilities"][0];
            assert_eq!(
                found["tool"].get("name").unwrap_or(&Json::Null),
                &tool,
                "{answer:#}"
            );
            assert!(
                found["note"].as_str().expect("a note").contains(note),
                "{answer:#}"
            );
            let plan = answer["guidance"]["plan_steps"].to_string();
            assert!(plan.contains(note) && !plan.contains(":files"), "{plan}");
        }
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
        assert_eq!(file, "BILLING_KEY_OF_THIS_TEST='a-secret-value'\n");
        let once = flowstone_fronts::kit::connecting::find(&project.engine, id).await;
        assert_eq!(once.map_err(|error| error.code.name()), Err("not_found"));
        // Five open requests of a flow.
        for name in ["a", "b", "c", "d"] {
            let asked = ask(json!({"integration": "http-api", "slug": name})).await;
            assert_eq!(asked["status"], "pending", "{name} {asked}");
        }
        let refused = ask(json!({"integration": "http-api", "slug": "e"})).await;
        assert_eq!(refused["code"], "limit_exceeded", "{refused}");
        let wrong = ask(json!({"integration": "../x"})).await;
        assert_eq!(wrong["code"], "invalid_arguments", "{wrong}");
    });
}

#[test]
fn a_request_asks_for_what_the_connection_reads() {
    run(async {
        let stores = Memory::new(MemoryOptions::default()).open();
        let project = Project::set(
            stores,
            "{:connections {:shop {:webhook {:type :stripe :secret-ref :shop-hook-of-this-test}}}}",
        );
        let flow = "{:slug :mail :requires [{:slot :ai :type :http-api :backend :anthropic}
                                            {:slot :crm :type :http-api}] :flow '1}";
        project.commit(SLUG, flow).await;
        for (integration, slug, variable, missing) in [
            ("openai", "openai", "OPENAI_API_KEY", None),
            ("ai", "ai", "ANTHROPIC_API_KEY", None),
            (
                "crm",
                "crm",
                "CRM_TOKEN",
                Some(
                    ":crm {:base-url \"https://...\" :auth {:type :bearer :secret-ref :crm-token}}",
                ),
            ),
            (
                "github",
                "github",
                "GITHUB_HOOK",
                Some(":github {:webhook {:type :github :secret-ref :github-hook}}"),
            ),
            ("shop", "shop", "SHOP_HOOK_OF_THIS_TEST", None),
        ] {
            let asked = project
                .call(
                    &request_connection::TOOL,
                    json!({"integration": integration, "slug": slug}),
                )
                .await;
            let command = asked["command"].as_str().unwrap_or_default();
            let id = command.rsplit(' ').next().unwrap_or_default();
            let found = flowstone_fronts::kit::connecting::find(&project.engine, id).await;
            let found = found.unwrap_or_else(|_| panic!("{integration} {asked}"));
            assert_eq!(
                found.place,
                Place::Variable(variable.to_owned()),
                "{integration}"
            );
            let entry = missing.map(|entry| format!(":connections {{{entry}}}"));
            assert_eq!(found.missing, entry, "{integration}");
        }
        for (integration, near) in [
            ("totally_unknown", ""),
            ("llm", ""),
            ("opnai", "did you mean `openai`?"),
            ("databse", "did you mean `database`?"),
        ] {
            let refused = project
                .call(
                    &request_connection::TOOL,
                    json!({"integration": integration}),
                )
                .await;
            assert_eq!(refused["code"], "invalid_arguments", "{refused}");
            let message = refused["message"].as_str().expect("a message");
            assert!(message.contains(near), "{message}");
            let expected = refused["details"]["expected"].as_str().expect("names");
            assert!(expected.contains("openai"), "{expected}");
        }
        let local = json!({"integration": "ollama"});
        let refused = project.call(&request_connection::TOOL, local).await;
        assert_eq!(refused["code"], "connection_not_ready", "{refused}");
    });
}
