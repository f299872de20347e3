//! The feeds of runs and of the project over HTTP: each event once and in order, whatever breaks off.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::api::{Api, Event};
use crate::program::Scratch;

const STEPS: &str = r#"{:slug :steps
  :flow '(reduce (fn [sum number]
                   (flow/step :kv (keyword (str "put-" number))
                              {:operation :set :key (str "k" number) :value number})
                   (+ sum number))
                 0 (range 40))}"#;
const ASK: &str = r#"{:slug :ask
  :flow '(flow/step :wait :decision {:key "go" :title "Go on?" :approval {:actions [:approve :reject]}
                                     :timeout "1h"})}"#;
/// Sleeps between its steps, so that a server can be killed in its middle.
const SLOW: &str = r#"{:slug :slow
  :flow '(doseq [number (range 20)] (flow/step :sleep :pause {:duration "40ms"}))}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/steps.edn", STEPS);
    scratch.write("flows/ask.edn", ASK);
    scratch.write("flows/slow.edn", SLOW);
    scratch
}

fn start(api: &Api, flow: &str, wait: &str) -> String {
    let started = api.post(
        &format!("/api/v1/flows/{flow}/runs"),
        &json!({"wait": wait}),
    );
    assert!(started.status < 300, "{started:?}");
    started.json()["id"].as_str().expect("an id").to_owned()
}

fn ids(events: &[Event]) -> Vec<i64> {
    events.iter().filter_map(|event| event.id).collect()
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

#[test]
fn a_reader_that_breaks_off_at_any_event_has_each_once() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = start(&api, "steps", "60s");
    let path = format!("/api/v1/runs/{run}/events");
    let whole: Vec<Event> = api.follow(&path, None).collect();
    let count = whole.len() as i64;
    assert!(count > 40, "{:?}", names(&whole));
    assert_eq!(ids(&whole), (1..=count).collect::<Vec<_>>());
    assert_eq!(names(&whole)[0], "run.created");
    assert_eq!(names(&whole).last(), Some(&"run.completed"));
    assert!(whole.iter().all(|event| event.data["run"] == run.as_str()));
    for after in (0..count).step_by(7) {
        let rest: Vec<Event> = api.follow(&path, Some(after)).collect();
        assert_eq!(rest, whole[after as usize..], "after {after}");
    }
    let since = format!("{path}?since_seq={}", count - 2);
    assert_eq!(
        ids(&api.follow(&since, None).collect::<Vec<_>>()),
        [count - 1, count]
    );
    // A client that comes back after the end is sent away for good.
    assert_eq!(api.follow(&path, Some(count)).status, 204);
    assert_eq!(
        api.get(&format!("{path}?since_seq=x")).problem(),
        "400 E1016"
    );
    assert_eq!(
        api.get("/api/v1/runs/0000000000000000/events").problem(),
        "404 E0502"
    );
}

#[test]
fn a_reader_sees_what_happens_while_it_reads() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = start(&api, "ask", "60s");
    let path = format!("/api/v1/runs/{run}/events");
    let mut reader = api.follow(&path, None);
    let mut seen: Vec<Event> = Vec::new();
    while seen.last().is_none_or(|event| event.name != "wait.opened") {
        seen.push(reader.next().expect("the wait is opened"));
    }
    assert!(!format!("{seen:?}").contains("token"), "{seen:?}");
    let waits = api.get("/api/v1/waits").json();
    let wait = waits["waits"][0]["id"].as_str().expect("a wait");
    let decided = api.post(&format!("/api/v1/waits/{wait}/approve"), &json!({}));
    assert_eq!(decided.status, 200, "{decided:?}");
    seen.extend(reader);
    assert_eq!(ids(&seen), (1..=seen.len() as i64).collect::<Vec<_>>());
    assert!(
        names(&seen).contains(&"wait.answered"),
        "{:?}",
        names(&seen)
    );
    assert_eq!(names(&seen).last(), Some(&"run.completed"));
}

#[test]
fn a_number_beyond_the_end_waits_for_what_comes_after_it() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = start(&api, "ask", "60s");
    let path = format!("/api/v1/runs/{run}/events");
    let known = api.get(&format!("/api/v1/runs/{run}/feed")).json();
    let last = known["events"].as_array().map_or(0, Vec::len) as i64;
    let mut beyond = api.follow(&path, Some(last + 2));
    let mut far = api.follow(&path, Some(last + 900));
    assert_eq!((beyond.status, far.status), (200, 200));
    let cancel = format!("/api/v1/runs/{run}/cancel");
    assert_eq!(api.post(&cancel, &json!({})).status, 202);
    assert_eq!(beyond.next().and_then(|event| event.id), Some(last + 3));
    assert_eq!(far.next(), None, "the stream ends with the run");
    assert_eq!(api.follow(&path, Some(last + 900)).status, 204);
}

#[test]
fn readers_of_a_killed_server_continue_where_they_were() {
    let scratch = project();
    let first = Api::serve(&scratch);
    let runs: Vec<String> = (0..6).map(|_| start(&first, "slow", "0s")).collect();
    let mut readers: Vec<_> = runs
        .iter()
        .map(|run| first.follow(&format!("/api/v1/runs/{run}/events"), None))
        .collect();
    let mut seen: Vec<Vec<Event>> = vec![Vec::new(); runs.len()];
    for (reader, seen) in readers.iter_mut().zip(&mut seen) {
        seen.extend(reader.take(5));
    }
    first.kill();
    for (reader, seen) in readers.iter_mut().zip(&mut seen) {
        seen.extend(reader);
    }
    let second = Api::serve(&scratch);
    for (run, seen) in runs.iter().zip(&mut seen) {
        let last = ids(seen).last().copied();
        seen.extend(second.follow(&format!("/api/v1/runs/{run}/events"), last));
        assert_eq!(ids(seen), (1..=seen.len() as i64).collect::<Vec<_>>());
        assert_eq!(names(seen).last(), Some(&"run.completed"));
    }
}

#[test]
fn the_feed_of_the_project_has_the_runs_that_a_token_reaches() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let limited = [
        "tokens", "create", "--name", "t", "--scope", "read", "--flow", "ask",
    ];
    let limited = scratch.run(&limited).ok().trim_end().to_owned();
    let header = format!("authorization: Bearer {limited}");
    let asked = start(&api, "ask", "60s");
    let _other = start(&api, "steps", "60s");
    let again = start(&api, "ask", "60s");
    let all: Vec<Event> = api
        .follow("/api/v1/events?since_seq=0", None)
        .take(8)
        .collect();
    assert!(
        ids(&all).is_sorted_by(|one, other| one < other),
        "{:?}",
        ids(&all)
    );
    let reader = api.follow_with("/api/v1/events?since_seq=0", &[&header]);
    let seen: Vec<Event> = reader.take(6).collect();
    let runs: Vec<&str> = seen
        .iter()
        .filter_map(|event| event.data["run"].as_str())
        .collect();
    assert!(
        runs.iter().all(|run| *run == asked || *run == again),
        "{seen:?}"
    );
    assert!(runs.contains(&&*again), "{seen:?}");
    let refused = api.follow_with("/api/v1/events", &[]);
    assert_eq!(refused.status, 401);
}

#[test]
fn a_reader_that_goes_frees_its_place_at_once() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = start(&api, "ask", "60s");
    let path = format!("/api/v1/runs/{run}/events");
    let open = || {
        let metrics = api.get("/metrics").body;
        let mut lines = metrics
            .lines()
            .filter(|line| line.starts_with("flowstone_sse_readers{stream=\"run\"}"));
        let line = lines.next().expect("the figure").to_owned();
        line.rsplit(' ').next().expect("a number").to_owned()
    };
    let mut readers: Vec<_> = (0..20).map(|_| api.follow(&path, None)).collect();
    let seen = readers.iter_mut().filter_map(Iterator::next);
    assert_eq!(seen.count(), 20);
    assert_eq!(open(), "20");
    drop(readers);
    let begun = Instant::now();
    while open() != "0" {
        // The run is quiet: what is noticed earlier than this is not noticed by writing.
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", open());
    }
}

#[test]
fn a_stream_token_is_good_for_one_run() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let (one, other) = (start(&api, "steps", "60s"), start(&api, "steps", "60s"));
    let made = api.post("/api/v1/stream-tokens", &json!({"run": one}));
    assert_eq!(made.status, 201, "{made:?}");
    let token = made.json()["token"].as_str().expect("a token").to_owned();
    let status = |run: &str, token: &str| {
        let path = format!("/api/v1/runs/{run}/events?token={token}");
        api.follow_with(&path, &[]).status
    };
    assert_eq!(status(&one, &token), 200);
    assert_eq!(status(&other, &token), 401);
    assert_eq!(status(&one, &token.replace("fss_1", "fss_2")), 401);
    let other_end = if token.ends_with('0') { "g" } else { "0" };
    let forged = format!("{}{other_end}", &token[..token.len() - 1]);
    assert_eq!(status(&one, &forged), 401);
    assert_eq!(status(&one, ""), 401);
    let project = format!("/api/v1/events?token={token}");
    assert_eq!(api.follow_with(&project, &[]).status, 401);
    assert_eq!(api.get_as(&token, "/api/v1/runs").status, 401);
}

#[test]
fn a_server_that_stops_says_so() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = start(&api, "ask", "60s");
    let reader = api.follow(&format!("/api/v1/runs/{run}/events"), None);
    let begun = Instant::now();
    assert_eq!(api.stop(), Some(0));
    let seen: Vec<Event> = reader.collect();
    assert_eq!(names(&seen).last(), Some(&"server.stopping"));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_reader_that_takes_nothing_is_sent_back_to_replay() {
    let scratch = project();
    // More than the buffers of a connection hold, beside the backlog of a reader.
    scratch.write(
        "flows/loud.edn",
        r#"{:slug :loud :flow '(do (flow/step :wait :go {:key "go" :timeout "1h"})
              (let [text (apply str (repeat 4000 "loud "))]
                (doseq [n (range 800)] (flow/emit "noise" {:n n :text text}))))}"#,
    );
    let api = Api::serve(&scratch);
    let run = start(&api, "loud", "60s");
    let path = format!("/api/v1/runs/{run}/events");
    let mut reader = api.follow(&path, None);
    let first = reader.next().expect("an event");
    api.post("/api/v1/signals", &json!({"key": "go", "value": 1}));
    let begun = Instant::now();
    let was_sent_back = || {
        let metrics = api.get("/metrics").body;
        metrics.contains("flowstone_sse_resyncs_total{stream=\"run\"} 1")
    };
    while !was_sent_back() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it is not noticed"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut seen = vec![first];
    seen.extend(reader);
    let last = seen.pop().expect("an event");
    assert_eq!((last.id, &*last.name), (None, "resync"));
    let after = seen.last().and_then(|event| event.id);
    seen.extend(api.follow(&path, after));
    assert_eq!(seen.last().expect("an event").name, "run.completed");
    let numbers: Vec<i64> = seen.iter().filter_map(|event| event.id).collect();
    assert!(numbers.len() > 800);
    assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>());
}
