//! How runs of graph agents end, and how their webhooks are told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::Api;
use crate::graphs::{Graphs, calling, names};
use crate::program::{Ran, Scratch};
use crate::server::{Answer, Request, Server};

/// How long a request may take to come.
const LONGEST: Duration = Duration::from_secs(20);

/// Waits for a number of requests to a webhook.
fn requests(hook: &Server, count: usize) -> Vec<Request> {
    let begun = Instant::now();
    loop {
        let found = hook.requests();
        if found.len() >= count || begun.elapsed() > LONGEST {
            assert_eq!(found.len(), count, "{found:?}");
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn body(request: &Request) -> Value {
    serde_json::from_str(&request.body).expect("JSON")
}

/// Starts a run with a webhook, and returns the beginning of its addresses and its id.
fn start(graphs: &Graphs, agent: &str, hook: &Server) -> (String, String) {
    // The same body would start nothing new.
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let message = STARTED.fetch_add(1, Ordering::Relaxed);
    let body = json!({"input": {"message": message}, "webhook_url": hook.url("/hook")});
    let started = graphs.post(&format!("/agents/{agent}/runs"), &body).json();
    let id = started["run_id"].as_str().expect("an id").to_owned();
    (format!("/agents/{agent}/runs/{id}"), id)
}

/// Replaces the server of a project by a new one; `stop` ends the old one.
fn again(graphs: &mut Graphs, stop: impl FnOnce(Api)) {
    let other = Scratch::new();
    stop(std::mem::replace(&mut graphs.api, Api::serve(&other)));
    graphs.api = Api::serve(&graphs.scratch);
}

/// Returns how many runs called a webhook for others.
fn calls(graphs: &Graphs) -> usize {
    let found = graphs.api.get("/api/v1/runs?flow=graph-webhook").json();
    found["runs"].as_array().map_or(0, Vec::len)
}

/// Waits until no call of a webhook is in progress.
fn settled(graphs: &Graphs) {
    let begun = Instant::now();
    loop {
        let found = graphs.api.get("/api/v1/runs?flow=graph-webhook").json();
        let runs = found["runs"].as_array().cloned().unwrap_or_default();
        if runs.iter().all(|run| run["status"] == "completed") || begun.elapsed() > LONGEST {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_webhook_is_called_once_after_the_end_of_a_run() {
    let graphs = Graphs::serve();
    let hook = Server::start(|_, before| match before {
        0 => Answer::Status(503, "busy"),
        _ => Answer::Json("{}".to_owned()),
    });
    graphs.agent("told", &calling("CLASSIFY", &[]), json!({}));
    graphs.agent("fails", &calling("FAIL", &[]), json!({}));
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let (run, id) = start(&graphs, "told", &hook);
    assert_eq!(names(&graphs.events(&run)).last(), Some(&"run_end"));
    let found = requests(&hook, 2);
    let expected = json!({"run_id": id, "status": "completed", "output": "billing"});
    assert_eq!(
        (body(&found[0]), body(&found[1])),
        (expected.clone(), expected)
    );
    let input = graphs.run(&run)["input"].clone();
    let members = input.as_object().expect("an object").keys();
    assert_eq!(members.collect::<Vec<_>>(), ["message"]);
    // The run itself makes no request, so its end does not wait for the webhook.
    let feed = graphs.scratch.run(&["runs", "feed", &id]).ok();
    assert!(!feed.contains("webhook"), "{feed}");

    let (run, failed) = start(&graphs, "fails", &hook);
    graphs.events(&run);
    let told = body(&requests(&hook, 3)[2]);
    assert_eq!(
        (&told["run_id"], &told["status"]),
        (&json!(failed), &json!("failed"))
    );
    assert_eq!(told["reason"], "model");

    let (run, cancelled) = start(&graphs, "hitl", &hook);
    graphs.paused(&run);
    assert_eq!(
        graphs.post(&format!("{run}/cancel"), &json!({})).status,
        202
    );
    let told = body(&requests(&hook, 4)[3]);
    assert_eq!(told, json!({"run_id": cancelled, "status": "cancelled"}));
    settled(&graphs);
    assert_eq!((hook.requests().len(), calls(&graphs)), (4, 3));
}

#[test]
fn an_address_that_cannot_be_called_is_refused_at_the_start() {
    let graphs = Graphs::serve();
    graphs.agent("told", &calling("CLASSIFY", &[]), json!({}));
    for url in [
        "http://10.1.2.3/hook",
        "http://me:pw@127.0.0.1:1/hook",
        "ftp://127.0.0.1/hook",
        "http://169.254.169.254/hook",
    ] {
        let body = json!({"input": {"message": "x"}, "webhook_url": url});
        let refused = graphs.post("/agents/told/runs", &body);
        assert_eq!(refused.problem(), "400 E1234", "{url}");
    }
}

#[test]
fn no_end_is_told_twice_or_lost_when_the_server_is_killed() {
    let mut graphs = Graphs::serve();
    let hook = Server::start(|_, _| Answer::Json("{}".to_owned()));
    graphs.agent("told", &calling("CLASSIFY", &[]), json!({}));
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (run, id) = start(&graphs, "told", &hook);
        graphs.events(&run);
        // The call may be noted, started or made by now.
        again(&mut graphs, Api::kill);
        ids.push(id);
    }
    let begun = Instant::now();
    while calls(&graphs) < ids.len() && begun.elapsed() < LONGEST {
        std::thread::sleep(Duration::from_millis(20));
    }
    settled(&graphs);
    assert_eq!(calls(&graphs), ids.len());
    for id in &ids {
        let told = hook.requests();
        assert!(
            told.iter().any(|it| body(it)["run_id"] == json!(id)),
            "{told:?}"
        );
    }
}

#[test]
fn only_those_who_may_edit_choose_a_webhook() {
    let graphs = Graphs::serve();
    let hook = Server::start(|_, _| Answer::Json("{}".to_owned()));
    let open = json!({"visibility": "public", "safety_acknowledged": true});
    graphs.agent("told", &calling("CLASSIFY", &[]), open);
    let with_hook = json!({"input": {"message": 1}, "webhook_url": hook.url("/hook")});
    let (public, own) = ("/public/agents/told/runs", "/agents/told/runs");
    let service = graphs.token("service", &["--scope", "run", "--scope", "read"]);
    let editor = graphs.token("service", &["--scope", "run", "--scope", "edit"]);
    for (token, path) in [
        (graphs.token("user", &["--subject", "ada"]), public),
        (graphs.token("anon", &[]), public),
        (service, own),
    ] {
        let refused = graphs.post_as(&token, path, &with_hook);
        assert_eq!(refused.problem(), "403 E1239", "{refused:?}");
        assert!(refused.body.contains("webhook_url"), "{refused:?}");
        let without = graphs.post_as(&token, path, &json!({"input": {"message": 2}}));
        assert_eq!(without.status, 201, "{without:?}");
    }
    assert_eq!(graphs.post_as(&editor, own, &with_hook).status, 201);
    requests(&hook, 1);
}

#[test]
fn a_run_that_is_ended_by_force_calls_its_webhook_once() {
    let mut graphs = Graphs::serve();
    let hook = Server::start(|_, before| match before {
        0 => Answer::Status(503, "busy"),
        _ => Answer::Json("{}".to_owned()),
    });
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let (run, id) = start(&graphs, "hitl", &hook);
    graphs.paused(&run);
    graphs.scratch.run(&["runs", "cancel", &id, "--force"]).ok();
    let found = requests(&hook, 2);
    let expected = json!({"run_id": id, "status": "cancelled"});
    assert_eq!(
        (body(&found[0]), body(&found[1])),
        (expected.clone(), expected)
    );
    assert_eq!(names(&graphs.events(&run)).last(), Some(&"run_cancelled"));

    // One that is ended while no server runs is called for by the next one, and nobody is called for twice.
    let (run, second) = start(&graphs, "hitl", &hook);
    graphs.paused(&run);
    let cancel = graphs
        .scratch
        .command(&["runs", "cancel", &second, "--force"]);
    again(&mut graphs, |old| {
        old.stop();
        let mut cancel = cancel;
        Ran::to_the_end(&mut cancel).ok();
    });
    let found = requests(&hook, 3);
    assert_eq!(
        body(&found[2]),
        json!({"run_id": second, "status": "cancelled"})
    );
    again(&mut graphs, Api::kill);
    let (run, third) = start(&graphs, "hitl", &hook);
    graphs.paused(&run);
    graphs
        .scratch
        .run(&["runs", "cancel", &third, "--force"])
        .ok();
    assert_eq!(body(&requests(&hook, 4)[3])["run_id"], third);
    assert_eq!(calls(&graphs), 3);
}

#[test]
fn a_run_that_is_taken_over_is_at_its_next_attempt() {
    let mut graphs = Graphs::serve();
    let hook = Server::start(|_, _| Answer::Json("{}".to_owned()));
    graphs.agent("slow", &calling("SLOW", &[]), json!({}));
    let (run, id) = start(&graphs, "slow", &hook);
    graphs.until(&run, "node_start");
    assert_eq!(graphs.run(&run)["attempt"], 1);
    again(&mut graphs, Api::kill);
    let events = graphs.events(&run);
    assert_eq!(names(&events).last(), Some(&"run_end"));
    let shown = graphs.run(&run);
    assert_eq!(
        (&shown["attempt"], &shown["status"]),
        (&json!(2), &json!("completed"))
    );
    requests(&hook, 1);
    let feed = graphs.scratch.run(&["runs", "feed", &id]).ok();
    assert_eq!(feed.matches("run.orphaned").count(), 1, "{feed}");
    // A run that only waited is not at another attempt.
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let (run, _) = start(&graphs, "hitl", &hook);
    graphs.paused(&run);
    again(&mut graphs, Api::kill);
    assert_eq!(graphs.run(&run)["attempt"], 1);
}
