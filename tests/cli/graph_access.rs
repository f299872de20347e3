//! Who may run graph agents over HTTP, how often, and what they see.

use serde_json::{Value, json};

use crate::graphs::{BASE, Graphs, calling, data, llm, names, one};

/// Returns a spec whose model asks for input.
fn asking() -> Value {
    one(
        llm("ASK", &[json!({"source": "builtin", "name": "interrupt"})]),
        json!({"builtin": ["interrupt"]}),
    )
}

const PUBLIC: &str = "/public/agents/a/runs";

#[test]
fn visibility_decides_who_starts_runs() {
    let graphs = Graphs::serve();
    let (user, anon) = (
        graphs.token("user", &["--subject", "ada"]),
        graphs.token("anon", &[]),
    );
    graphs.agent("a", &calling("CLASSIFY", &[]), json!({}));
    let body = json!({"input": {"message": "x"}});
    let nobody = graphs.api.request(
        &format!("POST {BASE}{PUBLIC}"),
        &["content-type: application/json"],
        &body.to_string(),
    );
    assert_eq!(nobody.status, 401);
    for token in [&user, &anon] {
        assert_eq!(graphs.post_as(token, PUBLIC, &body).problem(), "403 E1239");
        assert_eq!(
            graphs.post_as(token, "/agents/a/runs", &body).problem(),
            "403 E1239"
        );
        assert_eq!(graphs.get_as(token, "/agents").problem(), "403 E1239");
    }
    graphs.send(
        "PATCH",
        "/agents/a",
        &json!({"visibility": "authenticated"}),
    );
    assert_eq!(graphs.post_as(&user, PUBLIC, &body).status, 201);
    assert_eq!(graphs.post_as(&anon, PUBLIC, &body).problem(), "403 E1239");
    let refused = graphs.send("PATCH", "/agents/a", &json!({"visibility": "public"}));
    assert_eq!(refused.problem(), "409 E1241");
    let open = json!({"visibility": "public", "safety_acknowledged": true});
    assert_eq!(graphs.send("PATCH", "/agents/a", &open).status, 200);
    let key = format!("apikey: {anon}");
    let started = graphs.api.request(
        &format!("POST {BASE}{PUBLIC}"),
        &[key.as_str(), "content-type: application/json"],
        &body.to_string(),
    );
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(
        graphs
            .post_as(&anon, "/public/agents/none/runs", &body)
            .problem(),
        "403 E1239"
    );
    assert_eq!(graphs.post("/../other/agents", &body).status, 400);
    assert_eq!(graphs.api.get("/v1/other/agents").problem(), "404 E1232");
}

#[test]
fn a_scope_is_needed_for_each_kind_of_request() {
    let graphs = Graphs::serve();
    graphs.agent("a", &calling("WRITE", &["cancel"]), json!({}));
    let reader = graphs.token("service", &["--scope", "read"]);
    assert_eq!(graphs.get_as(&reader, "/agents/a").status, 200);
    for (path, body) in [
        ("/agents/a/runs", json!({})),
        ("/agents", json!({})),
        ("/functions", json!({})),
        ("/mcp-servers", json!({})),
    ] {
        assert_eq!(
            graphs.post_as(&reader, path, &body).problem(),
            "403 E1011",
            "{path}"
        );
    }
    let starter = graphs.token("service", &["--scope", "run"]);
    let body = json!({"input": {"message": "own"}});
    let started = graphs.post_as(&starter, "/agents/a/runs", &body).json();
    let id = started["run_id"].as_str().expect("a run").to_owned();
    let other = graphs.start("a", &json!({"message": "other"}));
    // A program that may only start runs reads those that it has started.
    for path in ["", "/events.json"] {
        let own = graphs.get_as(&starter, &format!("/agents/a/runs/{id}{path}"));
        assert_eq!(own.status, 200, "{own:?}");
        let refused = graphs.get_as(&starter, &format!("{other}{path}"));
        assert_eq!(refused.problem(), "403 E1011", "{refused:?}");
    }
    let calls = graphs.get_as(&starter, &format!("/runs/{id}/tool-calls"));
    assert_eq!(calls.status, 200, "{calls:?}");
    let missing = graphs.get_as(&starter, "/agents/a/runs/r0");
    assert_eq!(missing.problem(), "403 E1011", "{missing:?}");
    assert_eq!(graphs.get_as(&starter, "/agents/a").problem(), "403 E1011");
    let runner = graphs.token("service", &["--scope", "run", "--scope", "read"]);
    let run = graphs.start("a", &json!({"message": "x"}));
    let token = graphs.paused(&run);
    let answer = json!({"approval_token": token, "approved": true});
    assert_eq!(
        graphs
            .post_as(&runner, &format!("{run}/resume"), &answer)
            .problem(),
        "403 E1011"
    );
    let elsewhere = graphs.token("service", &["--scope", "approve", "--flow", "other"]);
    assert_eq!(
        graphs
            .post_as(&elsewhere, &format!("{run}/resume"), &answer)
            .problem(),
        "404 E1232"
    );
    let approver = graphs.token("service", &["--scope", "approve", "--flow", "a"]);
    assert_eq!(
        graphs
            .post_as(&approver, &format!("{run}/resume"), &answer)
            .status,
        202
    );
}

#[test]
fn a_user_reaches_only_their_own_runs() {
    let graphs = Graphs::serve();
    let (ada, ben) = (
        graphs.token("user", &["--subject", "ada"]),
        graphs.token("user", &["--subject", "ben"]),
    );
    graphs.agent("a", &asking(), json!({"visibility": "authenticated"}));
    let started = graphs
        .post_as(&ada, PUBLIC, &json!({"input": {"message": "x"}}))
        .json();
    let id = started["run_id"].as_str().expect("an id").to_owned();
    graphs.paused(&format!("/agents/a/runs/{id}"));
    let own = format!("/public/runs/{id}");
    assert_eq!(graphs.get_as(&ada, &own).json()["run"]["status"], "paused");
    for path in [
        own.clone(),
        format!("{own}/events.json"),
        format!("{own}/events"),
    ] {
        assert_eq!(graphs.get_as(&ben, &path).problem(), "404 E1232", "{path}");
    }
    for path in ["cancel", "resume", "stream-token"] {
        let refused = graphs.post_as(&ben, &format!("{own}/{path}"), &json!({"input": 1}));
        assert_eq!(refused.problem(), "404 E1232", "{path}");
    }
    // An approval is not a user's to give, whatever the token is.
    let approval = json!({"approval_token": "x", "approved": true});
    assert_eq!(
        graphs
            .post_as(&ada, &format!("{own}/resume"), &approval)
            .problem(),
        "403 E1239"
    );
    assert_eq!(
        graphs
            .post_as(&ada, &format!("{own}/resume"), &json!({"input": 1}))
            .status,
        202
    );
    let token = started["stream_token"].as_str().expect("a token");
    let stream = |token: &str, run: &str| {
        graphs.api.follow_with(
            &format!("{BASE}/public/runs/{run}/events?token={token}"),
            &[],
        )
    };
    let events: Vec<_> = stream(token, &id).collect();
    assert_eq!(names(&events).last(), Some(&"run_end"));
    assert_eq!(stream(token, &id).count(), events.len());
    let other = graphs
        .post_as(&ben, PUBLIC, &json!({"input": {"message": "y"}}))
        .json();
    assert_eq!(
        stream(token, other["run_id"].as_str().expect("an id")).status,
        401
    );
    assert_eq!(stream("fss_1_a_b_c", &id).status, 401);
    assert_eq!(
        graphs
            .api
            .follow_with(&format!("{BASE}{own}/events"), &[])
            .status,
        401
    );
    let again = graphs.post_as(&ada, &format!("{own}/stream-token"), &json!({}));
    assert_eq!(again.status, 201);
    assert!(again.json()["expires_at"].is_string());
}

#[test]
fn runs_of_users_see_tools_for_users_only() {
    let graphs = Graphs::serve();
    let user = graphs.token("user", &["--subject", "ada"]);
    // `lookup` is for end users, `cancel` for developers.
    graphs.agent(
        "a",
        &calling("WRITE", &["lookup", "cancel"]),
        json!({"visibility": "authenticated"}),
    );
    let started = graphs
        .post_as(&user, PUBLIC, &json!({"input": {"message": "x"}}))
        .json();
    let id = started["run_id"].as_str().expect("an id");
    let events = graphs.events(&format!("/agents/a/runs/{id}"));
    let ends = data(&events, "tool_call_end");
    let of = |name: &str| {
        ends.iter()
            .find(|it| it["tool_name"] == name)
            .expect("an end")
    };
    assert_eq!(
        (&of("lookup")["status"], &of("cancel")["status"]),
        (&json!("ok"), &json!("error"))
    );
    assert!(
        of("cancel")["error"]
            .as_str()
            .is_some_and(|it| it.contains("there is no tool"))
    );
    assert!(data(&events, "run_paused").is_empty());
}

#[test]
fn limits_refuse_runs_of_users_and_not_of_the_owner() {
    let graphs = Graphs::serve();
    let (ada, ben) = (
        graphs.token("user", &["--subject", "ada"]),
        graphs.token("user", &["--subject", "ben"]),
    );
    let limits = json!({"visibility": "authenticated", "max_runs_per_user_per_hour": 2});
    graphs.agent("a", &asking(), limits);
    let start = |token: &str, text: &str| {
        graphs.post_as(token, PUBLIC, &json!({"input": {"message": text}}))
    };
    assert_eq!(start(&ada, "1").status, 201);
    assert_eq!(start(&ada, "2").status, 201);
    let over = start(&ada, "3");
    assert_eq!(over.problem(), "429 E1238");
    let facts = over.json();
    assert_eq!(
        (&facts["limit"], &facts["current"], &facts["max"]),
        (&json!("max_runs_per_user_per_hour"), &json!(2), &json!(2))
    );
    let wait: i64 = over
        .header("retry-after")
        .expect("a header")
        .parse()
        .expect("seconds");
    assert!((3_500..=3_600).contains(&wait), "{wait}");
    assert!(facts["reset_at"].is_string());
    // A replayed start is not counted.
    assert_eq!(start(&ada, "2").status, 200);
    assert_eq!(start(&ben, "1").status, 201);
    graphs.start("a", &json!({"message": "owner"}));

    let patch = |limits: Value| assert_eq!(graphs.send("PATCH", "/agents/a", &limits).status, 200);
    patch(json!({"max_runs_per_user_per_hour": null, "max_runs_per_app_per_hour": 3}));
    assert_eq!(
        start(&ben, "4").json()["limit"],
        "max_runs_per_app_per_hour"
    );
    patch(json!({"max_runs_per_app_per_hour": null, "max_runs_per_ip_per_hour": 3}));
    assert_eq!(start(&ben, "5").json()["limit"], "max_runs_per_ip_per_hour");
    patch(json!({"max_runs_per_ip_per_hour": null, "max_concurrent_runs": 3}));
    let full = start(&ben, "6");
    assert_eq!(
        (&full.json()["limit"], &full.json()["reset_at"]),
        (&json!("max_concurrent_runs"), &Value::Null)
    );
    assert_eq!(full.header("retry-after"), Some("1"));
    patch(json!({"max_concurrent_runs": null, "daily_budget_usd": 0}));
    let spent = start(&ben, "7").json();
    assert_eq!(
        (&spent["limit"], &spent["current"]),
        (&json!("daily_budget_usd"), &json!(0))
    );
    assert!(
        spent["reset_at"]
            .as_str()
            .is_some_and(|it| it.contains("T00:00:00")),
        "{spent}"
    );
    patch(json!({"daily_budget_usd": null}));
    assert_eq!(start(&ben, "8").status, 201);
}

#[test]
fn starts_at_the_same_moment_are_counted_against_each_other() {
    let graphs = Graphs::serve();
    let ada = graphs.token("user", &["--subject", "ada"]);
    for limit in ["max_runs_per_user_per_hour", "max_concurrent_runs"] {
        let agent = format!("a-{}", limit.len());
        graphs.agent(
            &agent,
            &asking(),
            json!({"visibility": "authenticated", limit: 3}),
        );
        let path = format!("/public/agents/{agent}/runs");
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let start = |number: usize| {
                let body = json!({"input": {"message": number}});
                graphs.post_as(&ada, &path, &body).status
            };
            let threads: Vec<_> = (0..8).map(|it| scope.spawn(move || start(it))).collect();
            let joined = threads.into_iter().map(|it| it.join().expect("an answer"));
            joined.collect()
        });
        let with = |status: u16| statuses.iter().filter(|it| **it == status).count();
        assert_eq!((with(201), with(429)), (3, 5), "{limit}: {statuses:?}");
    }
}

#[test]
fn equal_starts_at_the_same_moment_are_one_run_and_none_is_over_a_limit() {
    let graphs = Graphs::serve();
    let ada = graphs.token("user", &["--subject", "ada"]);
    for round in 0..5 {
        let agent = format!("once-{round}");
        graphs.agent(
            &agent,
            &asking(),
            json!({"visibility": "authenticated", "max_runs_per_user_per_hour": 1}),
        );
        let path = format!("/public/agents/{agent}/runs");
        let body = json!({"input": {"message": "same"}});
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            // A busy server asks to repeat a request.
            let start = || loop {
                let status = graphs.post_as(&ada, &path, &body).status;
                if status != 503 {
                    return status;
                }
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            let joined = threads.into_iter().map(|it| it.join().expect("an answer"));
            joined.collect()
        });
        let with = |status: u16| statuses.iter().filter(|it| **it == status).count();
        assert_eq!((with(201), with(200)), (1, 7), "{statuses:?}");
    }
}

#[test]
fn callers_without_a_name_repeat_a_start_by_their_key_only() {
    let graphs = Graphs::serve();
    let anon = graphs.token("anon", &[]);
    graphs.agent(
        "a",
        &calling("CLASSIFY", &[]),
        json!({"visibility": "public", "safety_acknowledged": true}),
    );
    let start = |body: &Value| graphs.post_as(&anon, PUBLIC, body);
    let body = json!({"input": {"message": "x"}});
    assert_eq!((start(&body).status, start(&body).status), (201, 201));
    let keyed = json!({"input": {"message": "x"}, "idempotency_key": "k"});
    assert_eq!((start(&keyed).status, start(&keyed).status), (201, 200));
}
