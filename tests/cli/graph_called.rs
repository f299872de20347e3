//! Flows that are tools of graph agents, and wait for people: their waits are pauses of the run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::Api;
use crate::graphs::{Graphs, calling, data, limited, names};
use crate::program::Scratch;
use crate::server::{Answer, Server};

/// Longer than the agents may run.
const LONG: Duration = Duration::from_secs(6);

const MODELS: &str = r#":connections {:ai {:backend :scripted :models ["test/small"] :script {:scripts [
  {:when "PAY" :turns [{:tool-calls [{:name "pay" :arguments {:order "o1"}}]} "paid"]}
  {:when "ASK" :turns [{:tool-calls [{:name "ask" :arguments {}}]} "asked"]}
  {:when "MAY" :turns [{:tool-calls [{:name "may" :arguments {}}]} "allowed"]}]}}}"#;

fn project(shop: &Server) -> Graphs {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        format!("{{:allow {{:net [\"127.0.0.1\"]}} {MODELS}}}"),
    );
    scratch.write(
        "flows/pay.edn",
        format!(
            "{{:slug :pay :graph/agent-tool true :graph/agent-tool-mode :read-write
               :invocations {{:default {{:inputs [{{:name :order :type :string}}]}}}}
               :flow '(:body (flow/step :http :go {{:url \"{}\" :method :post :json {{:order (:order (flow/input))}}}}))}}",
            shop.url("/pay")
        ),
    );
    scratch.write(
        "flows/ask.edn",
        r#"{:slug :ask :graph/agent-tool true :flow '(flow/step :wait :which {:message "Which one?"})}"#,
    );
    scratch.write(
        "flows/may.edn",
        r#"{:slug :may :graph/agent-tool true
            :flow '(flow/step :function :go {:code (quote (fn [_] "gone")) :confirm {:message "May it?"}})}"#,
    );
    let api = Api::serve(&scratch);
    Graphs { scratch, api }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn agent(graphs: &Graphs, name: &str, words: &str) {
    let spec = limited(calling(words, &[name]), json!({"timeout_seconds": 5}));
    graphs.agent(name, &spec, json!({}));
}

fn resume(graphs: &Graphs, run: &str, answer: &Value) -> u16 {
    graphs.post(&format!("{run}/resume"), answer).status
}

/// The server is killed in the middle of the request of a flow, so nobody knows whether it was done. The question about it is
/// one of the run, and may take longer than the run.
#[test]
fn a_flow_in_doubt_pauses_the_run_until_somebody_answers() {
    let shop = Server::start(|_, before| match before {
        0 => Answer::Hang(Vec::new()),
        _ => Answer::Json(json!({"paid": true}).to_string()),
    });
    let mut graphs = project(&shop);
    agent(&graphs, "pay", "PAY");
    let run = graphs.start("pay", &json!({"message": "x"}));
    let first = graphs.paused(&run);
    let approval = json!({"approval_token": first, "approved": true});
    assert_eq!(resume(&graphs, &run, &approval), 202);
    until("the request", || !shop.requests().is_empty());
    std::mem::replace(&mut graphs.api, Api::serve(&Scratch::new())).kill();
    graphs.api = Api::serve(&graphs.scratch);
    until("the pause", || {
        let shown = graphs.run(&run);
        shown["status"] == "paused" && shown["pause"]["question"] == "in-doubt"
    });
    let pause = graphs.run(&run)["pause"].clone();
    assert_eq!(pause["tool_name"], "pay", "{pause}");
    assert_eq!(pause["args"], json!({"order": "o1"}), "{pause}");
    // The server ended while it executed the run of the flow.
    assert_eq!(graphs.run(&run)["attempt"], 2);
    let token = pause["approval_token"].clone();
    assert_ne!(token, json!(first));
    let events = graphs.get(&format!("{run}/events.json")).json()["events"].clone();
    let last = events
        .as_array()
        .and_then(|all| all.last())
        .expect("events");
    assert_eq!(last["type"], "run_paused", "{events}");
    assert_eq!(last["data"]["payload"]["approval_token"], token, "{events}");
    assert_eq!(last["data"]["payload"]["tool_name"], "pay", "{events}");
    // The time of the pause does not count.
    std::thread::sleep(LONG);
    assert_eq!(graphs.run(&run)["status"], "paused");
    assert_eq!(resume(&graphs, &run, &approval), 409);
    let other = json!({"approval_token": "w0", "input": {"action": "retry"}});
    assert_eq!(resume(&graphs, &run, &other), 403);
    let dance = json!({"approval_token": token, "input": {"action": "dance"}});
    assert_eq!(resume(&graphs, &run, &dance), 400);
    assert_eq!(shop.requests().len(), 1);
    let retry = json!({"approval_token": token, "input": {"action": "retry"}});
    assert_eq!(resume(&graphs, &run, &retry), 202);
    let events = graphs.events(&run);
    assert_eq!(names(&events).last(), Some(&"run_end"), "{events:?}");
    let end = data(&events, "tool_call_end")[0];
    assert_eq!(
        (&end["status"], &end["result"]),
        (&json!("ok"), &json!({"paid": true}))
    );
    assert!(
        end["duration_ms"].as_i64().is_some_and(|it| it < 30_000),
        "{end}"
    );
    assert_eq!(shop.requests().len(), 2);
    assert_eq!(resume(&graphs, &run, &retry), 409);
}

#[test]
fn a_flow_that_waits_pauses_the_run() {
    let shop = Server::of(Vec::new());
    let graphs = project(&shop);
    for (name, words) in [("ask", "ASK"), ("may", "MAY")] {
        agent(&graphs, name, words);
    }
    let runs = ["ask", "may"].map(|name| graphs.start(name, &json!({"message": "x"})));
    let tokens = runs.each_ref().map(|run| graphs.paused(run));
    std::thread::sleep(LONG);
    for (run, reason) in runs.iter().zip(["Which one?", "May it?"]) {
        let shown = graphs.run(run);
        assert_eq!(shown["status"], "paused", "{shown}");
        assert_eq!(shown["pause"]["reason"], reason, "{shown}");
        assert!(shown["pause"]["child_run_id"].is_string(), "{shown}");
    }
    let list = graphs.get("/agents/ask/runs").json();
    assert_eq!(list["runs"][0]["status"], "paused", "{list}");
    let answers = [
        json!({"approval_token": tokens[0], "input": {"choice": 2}}),
        json!({"approval_token": tokens[1], "input": {"action": "approve"}}),
    ];
    let results = [json!({"choice": 2}), json!("gone")];
    for ((run, answer), result) in runs.iter().zip(&answers).zip(&results) {
        let resumed = graphs.post(&format!("{run}/resume"), answer);
        assert_eq!(resumed.status, 202, "{resumed:?}");
        let events = graphs.events(run);
        assert_eq!(names(&events).last(), Some(&"run_end"), "{events:?}");
        assert_eq!(data(&events, "run_paused").len(), 1, "{events:?}");
        let end = data(&events, "tool_call_end")[0];
        assert_eq!((&end["status"], &end["result"]), (&json!("ok"), result));
        assert!(
            end["duration_ms"].as_i64().is_some_and(|it| it < 5_000),
            "{end}"
        );
    }
}

/// The end of a run is the end of its calls, too.
#[test]
fn calls_in_progress_end_with_the_run() {
    let shop = Server::of(Vec::new());
    let graphs = project(&shop);
    agent(&graphs, "ask", "ASK");
    agent(&graphs, "pay", "PAY");
    for name in ["ask", "pay"] {
        let run = graphs.start(name, &json!({"message": "x"}));
        graphs.paused(&run);
        assert_eq!(
            graphs.post(&format!("{run}/cancel"), &json!({})).status,
            202
        );
        let events = graphs.events(&run);
        let ends = names(&events);
        assert_eq!(
            ends[ends.len() - 2..],
            ["tool_call_end", "run_cancelled"],
            "{events:?}"
        );
        assert_eq!(data(&events, "tool_call_end")[0]["status"], "error");
        let id = run.rsplit('/').next().expect("an id");
        let rows = graphs.get(&format!("/runs/{id}/tool-calls")).json();
        let row = &rows["tool_calls"][0];
        assert_eq!(row["status"], "error", "{rows}");
        assert!(row["finished_at"].is_string(), "{rows}");
    }
    until("the called run is cancelled", || {
        let found = graphs.api.get("/api/v1/runs?flow=ask").json();
        let mut runs = found["runs"].as_array().into_iter().flatten();
        runs.all(|run| run["status"] == "cancelled")
    });
}
