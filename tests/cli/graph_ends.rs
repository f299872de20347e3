//! How runs of graph agents end from outside: by force, and by the end of the process that executes them.

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
    let message = hook.requests().len();
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
    let hook = Server::start(|_, before| match before {
        0 => Answer::Hang(Vec::new()),
        _ => Answer::Json("{}".to_owned()),
    });
    graphs.agent("told", &calling("CALL", &["lookup"]), json!({}));
    let (run, id) = start(&graphs, "told", &hook);
    requests(&hook, 1);
    assert_eq!(graphs.run(&run)["attempt"], 1);
    again(&mut graphs, Api::kill);
    let events = graphs.events(&run);
    assert_eq!(names(&events).last(), Some(&"run_end"));
    let shown = graphs.run(&run);
    assert_eq!(
        (&shown["attempt"], &shown["status"]),
        (&json!(2), &json!("completed"))
    );
    let found = requests(&hook, 2);
    assert_eq!(body(&found[0]), body(&found[1]));
    let feed = graphs.scratch.run(&["runs", "feed", &id]).ok();
    assert_eq!(feed.matches("run.orphaned").count(), 1, "{feed}");
    // A run that only waited is not at another attempt.
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let (run, _) = start(&graphs, "hitl", &hook);
    graphs.paused(&run);
    again(&mut graphs, Api::kill);
    assert_eq!(graphs.run(&run)["attempt"], 1);
}
