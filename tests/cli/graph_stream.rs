//! Streams of graph runs that are cut while the run is going on.

use serde_json::json;

use crate::api::{Api, Event};
use crate::graphs::{BASE, Graphs, calling, names};
use crate::program::Scratch;

const EVENTS: &[&str] = &[
    "run_start",
    "node_start",
    "llm_token_usage",
    "tool_call_start",
    "tool_call_end",
    "tool_call_start",
    "run_paused",
    "tool_call_end",
    "llm_token_usage",
    "node_end",
    "node_start",
    "node_end",
    "run_end",
];

/// Reads one event after another, each with a connection of its own, and approves what is asked. `cut` is called after
/// each event.
fn one_by_one(graphs: &mut Graphs, run: &str, mut cut: impl FnMut(&mut Graphs)) -> Vec<Event> {
    let mut got: Vec<Event> = Vec::new();
    loop {
        let after = got.last().and_then(|event| event.id);
        let mut stream = graphs.api.follow(&format!("{BASE}{run}/events"), after);
        let event = stream.next().expect("the run is not over");
        drop(stream);
        cut(graphs);
        if event.name == "run_paused" {
            let token = &event.data["payload"]["approval_token"];
            let answer = json!({"approval_token": token, "approved": true});
            let resumed = graphs.post(&format!("{run}/resume"), &answer);
            assert_eq!(resumed.status, 202, "{resumed:?}");
        }
        let is_last = event.name == "run_end";
        got.push(event);
        if is_last {
            return got;
        }
    }
}

fn check(mut graphs: Graphs, cut: impl FnMut(&mut Graphs)) {
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let run = graphs.start("hitl", &json!({"message": "x"}));
    let got = one_by_one(&mut graphs, &run, cut);
    assert_eq!(names(&got), EVENTS);
    let numbers: Vec<i64> = got.iter().filter_map(|event| event.id).collect();
    assert_eq!(numbers, (1..=13).collect::<Vec<i64>>());
    assert_eq!(graphs.events(&run), got, "a later reader gets the same");
}

#[test]
fn a_stream_that_is_cut_after_every_event_misses_none() {
    check(Graphs::serve(), |_| {});
}

#[test]
fn a_server_that_is_killed_after_every_event_repeats_none() {
    check(Graphs::serve(), |graphs| {
        let other = Scratch::new();
        std::mem::replace(&mut graphs.api, Api::serve(&other)).kill();
        graphs.api = Api::serve(&graphs.scratch);
    });
}
