//! Schedules, subscriptions and deliveries of the build kit, called as the doors call them.

mod project;

use std::rc::Rc;

use flowstone_engine::ExecuteOptions;
use flowstone_engine::interfaces::Received;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{PlanChange, RunFilter, ScheduleRow};
use flowstone_engine::triggers::MINUTE_MS;
use flowstone_project::registry::FlowRegistry;
use flowstone_project::webhooks::webhooks;
use serde_json::{Value as Json, json};

use project::{MONDAY_MS, SETTINGS, block_on, project};

#[test]
fn a_schedule_is_created_listed_paused_resumed_and_removed() {
    let project = project();
    let schedule = project.call(
        "create_schedule",
        json!({
            "name": "Morning",
            "description": "Each working day",
            "data": {
                "event_key": "digest.daily",
                "schedule": "  0 9 * * mon-FRI ",
                "start_time": "2026-05-05T11:30:59+02:30",
                "end_time": "2026-05-08T09:00:00Z",
                "inputs_fields": {"day": "$.event.attributes.scheduled_for", "price": {"$literal": "$5 off"}},
            },
        }),
    )["schedule"]
        .clone();
    let id = schedule["id"].as_str().expect("an id").to_owned();
    assert!(id.starts_with("sch_"), "{id}");
    assert_eq!(schedule["source"], "kit");
    assert_eq!(schedule["data"]["schedule"], "0 9 * * mon-FRI");
    assert_eq!(schedule["data"]["start_time"], "2026-05-05T09:00:00.000Z");
    assert_eq!(schedule["next_at"], "2026-05-05T09:00:00.000Z");
    assert_eq!(schedule["last_at"], Json::Null);
    assert_eq!(schedule["revision"]["version"], 1);
    assert_eq!(schedule["revision"]["released"], false);
    assert_eq!(schedule["flags"]["is_active"], true);
    project.commit("digest", "1");
    let listed = project.call("list_schedules", json!({}));
    assert_eq!(listed["count"], 1);
    assert_eq!(listed["schedules"][0], schedule);
    let paused = project.call("pause_schedule", json!({"id": id}))["schedule"].clone();
    assert_eq!(
        (&paused["flags"]["is_active"], &paused["next_at"]),
        (&json!(false), &Json::Null)
    );
    assert_eq!(
        project.call("pause_schedule", json!({"id": id}))["schedule"],
        paused
    );
    // Tuesday passes.
    project.turn(25 * 60);
    let resumed = project.call("resume_schedule", json!({"id": id}))["schedule"].clone();
    assert_eq!(resumed["next_at"], "2026-05-06T09:00:00.000Z");
    project.turn(2 * 24 * 60);
    let deliveries = project.call("list_deliveries", json!({"schedule_id": id}));
    assert_eq!(deliveries["count"], 1);
    let delivery = &deliveries["deliveries"][0];
    assert_eq!(
        delivery["status"],
        json!({"code": 200, "message": "delivered"})
    );
    assert_eq!(
        delivery["data"]["inputs"],
        json!({"day": "2026-05-06T09:00:00.000Z", "price": "$5 off"})
    );
    assert_eq!(delivery["schedule_id"], *id);
    assert_eq!(delivery["subscription_id"], Json::Null);
    assert_eq!(
        delivery["data"]["trace_id"].as_str().map(str::len),
        Some(32)
    );
    assert_eq!(
        project.call("remove_schedule", json!({"id": id})),
        json!({"removed": true, "id": id})
    );
    assert!(
        project
            .refused("remove_schedule", json!({"id": id}))
            .starts_with("not_found")
    );
    assert_eq!(project.call("list_schedules", json!({}))["count"], 0);
    // The deliveries remain.
    assert_eq!(
        project.call("list_deliveries", json!({"schedule_id": id}))["count"],
        1
    );
    project.turn(3 * 24 * 60);
    assert_eq!(project.runs(), 1);
}

#[test]
fn the_person_who_is_asked_reads_which_revision_is_bound() {
    let project = project();
    let data = json!({"event_key": "a", "schedule": "0 9 * * *"});
    let asked = || {
        block_on(project.asked("digest", "create_schedule", json!({"data": data})))
            .expect("a question")
    };
    let first = asked();
    assert!(first.text().contains("version 1"), "{}", first.text());
    assert!(
        first.text().contains("was not released"),
        "{}",
        first.text()
    );
    // The agreement is about this revision.
    project.commit("digest", "2");
    assert_ne!(asked().digest, first.digest);
    let registry = FlowRegistry::new(project.engine.stores(), MONDAY_MS);
    block_on(registry.release("digest", None, ("ada", ""))).expect("released");
    assert!(asked().text().contains("which was released"));
}

#[test]
fn cron_expressions_that_are_not_five_fields_in_utc_are_refused() {
    let project = project();
    for cron in [
        "* * * * * *",
        "*/1 * * * * *",
        "@daily",
        "@every 1s",
        "@reboot",
        "TZ=Europe/Oslo 0 9 * * *",
        "CRON_TZ=UTC 0 9 * * *",
        "*/0 * * * *",
        "0 9 30 2 *",
        "0 9 31 4 *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "0 9 * *",
        "",
        "   ",
        "0 9 * * L",
        "0 9 ? * *",
        "0 9 * * MON#1",
        "5-1 * * * *",
        "-1 * * * *",
        "1.5 * * * *",
        "* * * * mon tue",
        "0 9 * * *; rm",
        "0\t9 * * * *",
    ] {
        let data = json!({"event_key": "a", "schedule": cron});
        let refused = project.refused("create_schedule", json!({"data": data}));
        assert_eq!(refused, "invalid_arguments /data/schedule", "{cron}");
    }
    assert_eq!(project.call("list_schedules", json!({}))["count"], 0);
}

#[test]
fn a_window_that_is_empty_past_or_unreadable_is_refused() {
    let project = project();
    let with = |name: &str, times: Json| {
        let mut data = json!({"event_key": "a", "schedule": "0 9 * * *"});
        for (key, value) in times.as_object().expect("an object") {
            data[key] = value.clone();
        }
        let refused = project.refused("create_schedule", json!({"data": data}));
        assert_eq!(refused, format!("invalid_arguments /data/{name}"));
    };
    with("end_time", json!({"end_time": "2026-05-04T08:59:00Z"}));
    with("end_time", json!({"end_time": "2026-05-04T09:00:59Z"}));
    with(
        "end_time",
        json!({"start_time": "2026-05-06T09:00:10Z", "end_time": "2026-05-06T09:00:50Z"}),
    );
    with(
        "end_time",
        json!({"start_time": "2026-05-06T09:00:00Z", "end_time": "2026-05-06T07:00:00-01:00"}),
    );
    with("start_time", json!({"start_time": "tomorrow"}));
    with("start_time", json!({"start_time": "2026-13-01T00:00:00Z"}));
    // Without an offset a time is ambiguous.
    with("start_time", json!({"start_time": "2026-05-06T09:00:00"}));
    with("end_time", json!({"end_time": "2026-05-06"}));
    // No tick is in the window.
    with("schedule", json!({"end_time": "2026-05-05T09:00:00Z"}));
}

#[test]
fn arguments_that_name_another_target_or_are_not_paths_are_refused() {
    let project = project();
    let data = json!({"event_key": "a", "schedule": "0 9 * * *"});
    for field in [
        "flow",
        "workflow",
        "slug",
        "workflow_variant_id",
        "id",
        "revision",
    ] {
        let mut arguments = json!({"data": data.clone()});
        arguments[field] = json!("orders");
        assert_eq!(
            project.refused("create_schedule", arguments),
            format!("invalid_arguments /{field}")
        );
        let mut inner = data.clone();
        inner[field] = json!("orders");
        let refused = project.refused("create_schedule", json!({"data": inner}));
        assert_eq!(refused, format!("invalid_arguments /data/{field}"));
    }
    for text in ["$5 off", "$.", "$[", "/a~2"] {
        let mut data = data.clone();
        data["inputs_fields"] = json!({"deep": [{"price": text}]});
        let refused = project.refused("create_schedule", json!({"data": data}));
        assert_eq!(
            refused, "invalid_arguments /data/inputs_fields/deep/0/price",
            "{text}"
        );
    }
    for fields in [json!([]), json!("$.event"), Json::Null] {
        let mut data = data.clone();
        data["inputs_fields"] = fields;
        let refused = project.refused("create_schedule", json!({"data": data}));
        assert_eq!(refused, "invalid_arguments /data/inputs_fields");
    }
    for key in ["", " ", "a b", "../x", "a/b", "é"] {
        let data = json!({"event_key": key, "schedule": "0 9 * * *"});
        let refused = project.refused("create_schedule", json!({"data": data}));
        assert_eq!(refused, "invalid_arguments /data/event_key", "{key}");
    }
    assert_eq!(project.call("list_schedules", json!({}))["count"], 0);
    // The wrapper of other clients is taken away.
    project.call("create_schedule", json!({"schedule": {"data": data}}));
    assert_eq!(project.call("list_schedules", json!({}))["count"], 1);
}

#[test]
fn a_flow_has_at_most_twenty_schedules_and_pages_list_them() {
    let project = project();
    for hour in 0..20 {
        project.clock.set(MONDAY_MS + hour);
        project.schedule(&format!("0 {hour} * * *"));
    }
    let data = json!({"event_key": "a", "schedule": "0 9 * * *"});
    let refused = project.refused("create_schedule", json!({"data": data}));
    assert!(refused.starts_with("limit_exceeded"), "{refused}");
    let mut seen = Vec::new();
    let mut next = Json::Null;
    loop {
        let mut arguments = json!({"limit": 7});
        if next.is_string() {
            arguments["next"] = next;
        }
        let page = project.call("list_schedules", arguments);
        for schedule in page["schedules"].as_array().expect("a list") {
            seen.push(
                schedule["data"]["schedule"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
        next = page["next"].clone();
        if next.is_null() {
            break;
        }
    }
    let expected: Vec<String> = (0..20).map(|hour| format!("0 {hour} * * *")).collect();
    assert_eq!(seen, expected);
    let refused = project.refused("list_schedules", json!({"next": "x"}));
    assert_eq!(refused, "invalid_arguments /next");
}

#[test]
fn schedules_of_the_text_of_a_flow_are_listed_and_not_changed() {
    let project = project();
    let row = ScheduleRow {
        flow: "digest".to_owned(),
        id: "weekly".to_owned(),
        timing: "0 9 * * MON Europe/Oslo".to_owned(),
        program: "p".to_owned(),
        file: "digest@1".to_owned(),
        next_ms: Some(MONDAY_MS),
        last_ms: None,
        last_run: None,
        note: None,
    };
    let change = PlanChange {
        seen: None,
        row,
        program: None,
        now_ms: MONDAY_MS,
    };
    let planned = project.engine.stores().agenda.plan(change);
    assert!(block_on(planned).expect("written"));
    project.schedule("0 9 * * *");
    let listed = project.call("list_schedules", json!({}));
    let sources = listed["schedules"].as_array().expect("a list").iter();
    let sources: Vec<&Json> = sources.map(|it| &it["source"]).collect();
    assert_eq!(sources, ["kit", "flow"]);
    assert_eq!(listed["schedules"][1]["revision"]["version"], 1);
    for tool in ["remove_schedule", "pause_schedule", "resume_schedule"] {
        let refused = project.refused(tool, json!({"id": "weekly"}));
        assert!(refused.starts_with("not_removable"), "{tool}: {refused}");
        let refused = project.refused_for("orders", tool, json!({"id": "weekly"}));
        assert!(refused.starts_with("not_found"), "{tool}: {refused}");
    }
    assert_eq!(project.call("list_schedules", json!({})), listed);
}

#[test]
fn ids_of_another_flow_are_not_found_and_nothing_changes() {
    let project = project();
    let schedule = project.schedule("0 9 * * *");
    let subscription = project.subscribe("local", "flow.orders.completed");
    let before = project.call("list_schedules", json!({}));
    for (tool, id) in [
        ("remove_schedule", schedule["id"].clone()),
        ("pause_schedule", schedule["id"].clone()),
        ("resume_schedule", schedule["id"].clone()),
        ("remove_subscription", json!(subscription)),
        ("pause_subscription", json!(subscription)),
        ("resume_subscription", json!(subscription)),
    ] {
        let refused = project.refused_for("orders", tool, json!({"id": id}));
        assert!(refused.starts_with("not_found"), "{tool}: {refused}");
        // The id of the other kind is not found, either.
        let refused = project.refused("remove_subscription", json!({"id": schedule["id"]}));
        assert!(refused.starts_with("not_found"), "{refused}");
    }
    for given in [
        json!({"schedule_id": schedule["id"]}),
        json!({"subscription_id": subscription}),
    ] {
        let refused = project.refused_for("orders", "list_deliveries", given);
        assert!(refused.starts_with("not_found"), "{refused}");
    }
    let listed = block_on(project.called("orders", "list_schedules", json!({})));
    assert_eq!(listed.expect("a list")["count"], 0);
    assert_eq!(project.call("list_schedules", json!({})), before);
    assert_eq!(project.call("list_subscriptions", json!({}))["count"], 1);
}

#[test]
fn a_flow_without_a_revision_or_that_is_archived_has_no_schedules() {
    let project = project();
    let arguments = json!({"data": {"event_key": "a", "schedule": "0 9 * * *"}});
    let refused = project.refused_for("new", "create_schedule", arguments.clone());
    assert!(refused.starts_with("no_revision"), "{refused}");
    let registry = FlowRegistry::new(project.engine.stores(), MONDAY_MS);
    block_on(registry.archive("digest", true)).expect("archived");
    let refused = project.refused("create_schedule", arguments);
    assert!(refused.starts_with("flow_archived"), "{refused}");
}

#[test]
fn events_of_another_flow_start_runs_once() {
    let project = project();
    let id = project.subscribe("local", "flow.orders.completed");
    block_on(project.run("orders"));
    project.turn(1);
    project.turn(2);
    let deliveries = project.call("list_deliveries", json!({"subscription_id": id}));
    assert_eq!(deliveries["count"], 1, "{deliveries}");
    let delivery = &deliveries["deliveries"][0];
    assert_eq!(delivery["status"]["code"], 200);
    let event = &delivery["data"]["inputs"]["event"];
    assert_eq!(event["event_type"], "flow.orders.completed");
    assert_eq!(event["attributes"]["output"], json!({"total": 7}));
    assert_eq!(delivery["data"]["inputs"]["scope"]["flow"], "digest");
    assert_eq!(delivery["data"]["inputs"]["subscription"]["id"], *id);
    // Events while it is paused are left out.
    project.call("pause_subscription", json!({"id": id}));
    block_on(project.run("orders"));
    project.turn(3);
    let resumed = project.call("resume_subscription", json!({"id": id}));
    assert_eq!(
        resumed["subscription"]["flags"],
        json!({"is_active": true, "is_valid": true})
    );
    project.turn(4);
    block_on(project.run("orders"));
    project.turn(5);
    assert_eq!(project.call("list_deliveries", json!({}))["count"], 2);
    project.call("remove_subscription", json!({"id": id}));
    block_on(project.run("orders"));
    project.turn(6);
    assert_eq!(project.call("list_deliveries", json!({}))["count"], 2);
}

#[test]
fn subscriptions_to_itself_to_nothing_and_in_masses_are_refused() {
    let project = project();
    let refused = |connection: &str, key: &str| {
        let arguments = json!({"connection_id": connection, "data": {"event_key": key}});
        project.refused("create_subscription", arguments)
    };
    for (connection, key) in [
        ("local", "flow.digest.completed"),
        ("local", "flow.nothing.completed"),
        ("local", "flow.orders.started"),
        ("local", "webhook.gh.push"),
        ("gh", "flow.orders.completed"),
        ("gh", "webhook.shop.push"),
        ("gh", "webhook.gh."),
        ("gh", "webhook.gh.psuh"),
    ] {
        assert_eq!(
            refused(connection, key),
            "invalid_arguments /data/event_key",
            "{key}"
        );
    }
    assert!(refused("nothing", "webhook.nothing.x").starts_with("not_found"));
    assert!(refused("unset", "webhook.unset.invoice.paid").starts_with("connection_not_ready"));
    assert!(refused("wrong", "webhook.wrong.x").starts_with("connection_not_ready"));
    let config = json!({"connection_id": "gh", "data": {"event_key": "webhook.gh.push", "trigger_config": {"mach": {}}}});
    assert_eq!(
        project.refused("create_subscription", config),
        "invalid_arguments /data/trigger_config/mach"
    );
    for _ in 0..20 {
        project.subscribe("gh", "webhook.gh.push");
    }
    assert!(refused("gh", "webhook.gh.push").starts_with("limit_exceeded"));
}

#[test]
fn events_of_a_connection_start_runs_once_and_only_where_they_match() {
    let project = project();
    let all = project.subscribe("gh", "webhook.gh.issues");
    let data = json!({
        "event_key": "webhook.gh.issues",
        "trigger_config": {"match": {"/action": "opened"}},
        "inputs_fields": {"title": "$.event.attributes.issue.title"},
    });
    let arguments = json!({"connection_id": "gh", "data": data});
    let opened = project.call("create_subscription", arguments)["subscription"]["id"].clone();
    let issue = |action: &str| json!({"action": action, "issue": {"title": "It fails"}});
    assert_eq!(
        block_on(project.event("gh", "issues", "e1", issue("opened"))),
        [200, 200]
    );
    assert_eq!(
        block_on(project.event("gh", "issues", "e2", issue("closed"))),
        [200]
    );
    assert_eq!(
        block_on(project.event("gh", "push", "e3", json!({}))),
        Vec::<u16>::new()
    );
    assert_eq!(
        block_on(project.event("shop", "issues", "e4", json!({}))),
        Vec::<u16>::new()
    );
    // It comes again.
    project.clock.set(MONDAY_MS + 1);
    assert_eq!(
        block_on(project.event("gh", "issues", "e1", issue("opened"))),
        [409, 409]
    );
    assert_eq!(project.runs(), 3);
    let deliveries = project.call("list_deliveries", json!({"subscription_id": opened}));
    let codes = deliveries["deliveries"].as_array().expect("a list").iter();
    let codes: Vec<_> = codes.map(|it| it["status"]["code"].clone()).collect();
    assert_eq!(codes, [409, 200]);
    assert_eq!(
        deliveries["deliveries"][1]["data"]["inputs"],
        json!({"title": "It fails"})
    );
    assert_eq!(
        deliveries["deliveries"][0]["data"]["run_id"],
        deliveries["deliveries"][1]["data"]["run_id"]
    );
    assert_eq!(
        project.call("list_deliveries", json!({"subscription_id": all}))["count"],
        3
    );
    let both = json!({"subscription_id": all, "schedule_id": "x"});
    assert_eq!(
        project.refused("list_deliveries", both),
        "invalid_arguments /subscription_id"
    );
}

#[test]
fn a_test_of_a_subscription_records_one_event_and_starts_nothing() {
    let project = project();
    let live = project.subscribe("gh", "webhook.gh.issues");
    let data = json!({"event_key": "webhook.gh.issues", "inputs_fields": {"action": "/event/attributes/action"}});
    let arguments = json!({"connection_id": "gh", "data": data, "timeout_s": 20});
    let answer = block_on(async {
        let testing = project.called("digest", "test_subscription", arguments);
        let sending = async {
            tokio::time::sleep(std::time::Duration::from_millis(150)).await;
            project
                .event("gh", "issues", "e1", json!({"action": "opened"}))
                .await
        };
        let (answer, _) = tokio::join!(testing, sending);
        answer.expect("an event")
    });
    assert_eq!(answer["delivery"]["data"]["is_test"], true);
    assert_eq!(
        answer["delivery"]["data"]["inputs"],
        json!({"action": "opened"})
    );
    assert_eq!(answer["delivery"]["data"]["run_id"], Json::Null);
    assert_eq!(answer["also_delivered"], json!([live]));
    // Only the live subscription started a run, and the watch is gone.
    assert_eq!(project.runs(), 1);
    assert_eq!(
        block_on(project.event("gh", "issues", "e2", json!({}))),
        [200]
    );
    let listening = project.engine.stores().triggers.listening("gh");
    assert_eq!(block_on(listening).expect("a list").len(), 1);
}

#[test]
fn a_test_sees_events_of_flows_without_a_worker_and_ends_by_itself() {
    let project = project();
    let data = json!({"event_key": "flow.orders.completed"});
    let arguments = json!({"connection_id": "local", "data": data, "timeout_s": 20});
    let answer = block_on(async {
        let testing = project.called("digest", "test_subscription", arguments);
        let running = async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            project.run("orders").await;
        };
        tokio::join!(testing, running).0.expect("an event")
    });
    assert_eq!(
        answer["delivery"]["data"]["event_key"],
        "flow.orders.completed"
    );
    assert_eq!(project.runs(), 1);
    let arguments =
        json!({"connection_id": "gh", "data": {"event_key": "webhook.gh.push"}, "timeout_s": 1});
    let refused = project.refused("test_subscription", arguments);
    assert!(refused.starts_with("no_event"), "{refused}");
    let listening = project.engine.stores().triggers.listening("gh");
    assert_eq!(block_on(listening).expect("a list"), []);
}

#[test]
fn a_watch_whose_process_is_gone_receives_nothing_and_is_removed() {
    let project = project();
    let data = json!({"event_key": "webhook.gh.push"});
    let arguments = json!({"connection_id": "gh", "data": data, "timeout_s": 60});
    block_on(async {
        let testing = project.called("digest", "test_subscription", arguments);
        let gone = tokio::time::timeout(std::time::Duration::from_millis(200), testing).await;
        assert!(gone.is_err(), "the process ends while the call waits");
    });
    let listening = || {
        block_on(project.engine.stores().triggers.listening("gh"))
            .expect("a list")
            .len()
    };
    assert_eq!(listening(), 1);
    project.clock.set(MONDAY_MS + 2 * MINUTE_MS);
    assert_eq!(
        block_on(project.event("gh", "push", "e1", json!({}))),
        Vec::<u16>::new()
    );
    project.turn(2);
    assert_eq!(listening(), 0);
}

#[test]
fn flows_that_start_one_another_end_after_sixteen() {
    let project = project();
    project.subscribe("local", "flow.orders.completed");
    let back = json!({"connection_id": "local", "data": {"event_key": "flow.digest.completed"}});
    block_on(project.called("orders", "create_subscription", back)).expect("created");
    block_on(project.run("orders"));
    for minute in 1..30 {
        project.turn(minute);
        block_on(async {
            let rows = project
                .engine
                .list_runs(RunFilter::default())
                .await
                .expect("runs");
            for row in rows.into_iter().filter(|row| !row.status.is_final()) {
                let run =
                    project
                        .engine
                        .execute(&row.id, Rc::new(NoObserver), ExecuteOptions::default());
                run.await.expect("it ends");
            }
        });
    }
    assert_eq!(project.runs(), 17);
    let of =
        |slug: &str| block_on(project.called(slug, "list_deliveries", json!({}))).expect("a list");
    let last = [of("digest"), of("orders")];
    let errors = last
        .iter()
        .flat_map(|it| it["deliveries"].as_array().expect("a list").clone());
    let errors: Vec<Json> = errors.filter(|it| it["status"]["code"] == 500).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["data"]["error"]["code"], "E1540");
}

#[test]
fn an_object_with_a_literal_has_nothing_else() {
    let project = project();
    let fields = json!({"price": {"$literal": 1, "x": 2}});
    let data = json!({"event_key": "a", "schedule": "0 9 * * *", "inputs_fields": fields});
    let refused = project.refused("create_schedule", json!({"data": data}));
    assert_eq!(refused, "invalid_arguments /data/inputs_fields/price");
}

#[test]
fn triggers_are_discovered_with_their_state_and_a_sample() {
    let project = project();
    let found = project.call(
        "discover_triggers",
        json!({"use_cases": [
            "when an issue is opened in GitHub",
            "an invoice was paid in Stripe",
            "the flow orders completed",
            "every day at nine",
        ]}),
    );
    let at = |idx: usize| found["capabilities"][idx].clone();
    assert_eq!(at(0)["event"]["event_key"], "webhook.gh.issues");
    assert_eq!(at(0)["connection"], json!({"state": "ready", "slug": "gh"}));
    assert_eq!(at(0)["event"]["payload"]["action"], "opened");
    assert_eq!(at(1)["event"]["event_key"], "webhook.unset.invoice.paid");
    assert_eq!(at(1)["connection"]["state"], "needs_input");
    assert_eq!(at(2)["event"]["event_key"], "flow.orders.completed");
    assert_eq!(at(3)["event"], Json::Null);
    assert!(
        at(3)["note"]
            .as_str()
            .is_some_and(|note| note.contains("create_schedule"))
    );
    assert_eq!(found["ready"], false);
    // Its own events are not offered, and secrets are nowhere.
    let text = found.to_string();
    assert!(
        !text.contains("flow.digest.") && !text.contains("s3cret"),
        "{text}"
    );
    let none = project.call(
        "discover_triggers",
        json!({"use_cases": ["an issue is opened"], "provider": "mcp"}),
    );
    assert_eq!(none["capabilities"][0]["event"], Json::Null);
}

#[test]
fn requests_name_their_events_and_ids() {
    let settings = flowstone_lang::reader::read_data(SETTINGS).expect("settings");
    let all = webhooks(&settings);
    let names: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["gh", "shop", "unset", "wrong"]);
    assert!(all[3].1.is_err());
    let shop = all[1].1.clone().expect("a connection");
    let received = |body: &str| Received {
        body: body.as_bytes().to_vec(),
        ..Received::default()
    };
    let proven = flowstone_engine::proofs::Proven {
        signed: Some("x".to_owned()),
    };
    let event = shop
        .event_of(&received(r#"{"kind": "order.paid"}"#), &proven)
        .expect("an event");
    assert_eq!(event.name, "order.paid");
    assert!(event.id.starts_with("evt_"));
    for body in [
        "",
        "[]",
        "{}",
        r#"{"kind": "a b"}"#,
        r#"{"kind": ""}"#,
        r#"{"kind": {}}"#,
    ] {
        assert!(shop.event_of(&received(body), &proven).is_err(), "{body}");
    }
}
