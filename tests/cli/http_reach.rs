//! What tokens reach: lists that are filtered, waits of other people, and wrong tokens of streams.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

const ASK: &str = r#"{:slug :ask
  :flow '(flow/step :wait :decision {:key (str "go-" (:n (flow/input))) :approval {:actions [:approve :reject]} :timeout "1h"})}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/ask.edn", ASK);
    scratch.write("flows/quick.edn", "{:slug :quick :flow '1}");
    scratch
}

fn token(scratch: &Scratch, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "test"], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

fn ids(list: &Value) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items
        .map(|it| it["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[test]
fn a_list_goes_on_where_a_wait_of_the_last_page_was_answered() {
    let scratch = project();
    let api = Api::serve(&scratch);
    for n in 0..5 {
        let started = api.post(
            "/api/v1/flows/ask/runs",
            &json!({"input": {"n": n}, "wait": "60s"}),
        );
        assert_eq!(started.json()["status"], "waiting", "{started:?}");
    }
    let all = ids(&api.get("/api/v1/waits").json()["waits"]);
    assert_eq!(all.len(), 5);
    let first = api.get("/api/v1/waits?limit=2").json();
    assert_eq!(ids(&first["waits"]), all[..2]);
    // The wait that the cursor stands for goes; the next page is the same.
    let decided = api.post(&format!("/api/v1/waits/{}/approve", all[1]), &json!({}));
    assert_eq!(decided.status, 200, "{decided:?}");
    let cursor = first["next"].as_str().expect("a cursor");
    let second = api
        .get(&format!("/api/v1/waits?limit=2&cursor={cursor}"))
        .json();
    assert_eq!(ids(&second["waits"]), all[2..4]);
    let cursor = second["next"].as_str().expect("a cursor");
    let last = api
        .get(&format!("/api/v1/waits?limit=2&cursor={cursor}"))
        .json();
    assert_eq!(
        (ids(&last["waits"]), &last["next"]),
        (all[4..].to_vec(), &Value::Null)
    );
}

#[test]
fn people_reach_waits_of_their_own_runs_only() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let ada = token(&scratch, &["--kind", "user", "--subject", "ada"]);
    let bob = token(&scratch, &["--kind", "user", "--subject", "bob"]);
    let start = json!({"input": {"n": 1}, "wait": "60s"});
    assert_eq!(
        api.post_as(&ada, "/api/v1/flows/ask/runs", &start).status,
        202
    );
    let waits = api.get_as(&ada, "/api/v1/waits").json();
    let [id] = &ids(&waits["waits"])[..] else {
        panic!("{waits}");
    };
    let path = format!("/api/v1/waits/{id}");
    assert_eq!(api.get_as(&ada, &path).status, 200);
    assert_eq!(api.get_as(&bob, "/api/v1/waits").json()["waits"], json!([]));
    assert_eq!(api.get_as(&bob, &path).problem(), "404 E0514");
    let signal = json!({"key": "go-1", "value": {"action": "approve"}});
    assert_eq!(
        api.post_as(&bob, "/api/v1/signals", &signal).problem(),
        "404 E1014"
    );
}

#[test]
fn a_page_without_reached_runs_has_a_next_one() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let reader = token(&scratch, &["--scope", "read", "--flow", "ask"]);
    let oldest = api
        .post("/api/v1/flows/ask/runs", &json!({"input": {"n": 1}}))
        .json();
    // More runs out of reach than are looked at for one page.
    for _ in 0..6 {
        let inputs = vec![json!({}); 1_000];
        let started = api.post("/api/v1/runs", &json!({"flow": "quick", "inputs": inputs}));
        assert_eq!(started.status, 200, "{}", started.body);
    }
    let mut path = "/api/v1/runs?limit=500".to_owned();
    let mut found = Vec::new();
    let mut pages = 0;
    loop {
        let page = api.get_as(&reader, &path).json();
        found.extend(ids(&page["runs"]));
        pages += 1;
        let Some(cursor) = page["next"].as_str() else {
            break;
        };
        path = format!("/api/v1/runs?limit=500&cursor={cursor}");
        assert!(pages < 10);
    }
    assert_eq!(found, [oldest["id"].as_str().expect("an id")]);
    assert!(pages > 1, "the first page was not cut");
}

#[test]
fn wrong_tokens_of_streams_are_counted_like_others() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = api.post("/api/v1/flows/quick/runs", &json!({})).json();
    let path = format!("/api/v1/runs/{}/events", run["id"].as_str().expect("an id"));
    let statuses: Vec<u16> = (0..32)
        .map(|number| match number % 2 {
            0 => {
                api.request(&format!("GET {path}?token=wrong"), &[], "")
                    .status
            }
            _ => api.get_as("fst_00000000_wrong", "/api/v1/events").status,
        })
        .collect();
    assert_eq!(statuses[..30], [401; 30]);
    assert_eq!(statuses[30..], [429; 2]);
    assert_eq!(api.follow(&path, None).status, 200);
}

#[test]
fn people_make_a_bounded_number_of_requests() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let ada = token(&scratch, &["--kind", "user", "--subject", "ada"]);
    let begun = Instant::now();
    let mut refused = None;
    // A user has 50 requests a second.
    while refused.is_none() && begun.elapsed() < Duration::from_secs(60) {
        let many = || {
            let mut answers = (0..30).map(|_| api.get_as(&ada, "/api/v1/steps/kv"));
            answers.find(|answer| answer.status != 200)
        };
        refused = std::thread::scope(|scope| {
            let threads = [(); 8].map(|()| scope.spawn(many));
            let answers = threads.map(|thread| thread.join().expect("a thread"));
            answers.into_iter().flatten().next()
        });
    }
    let refused = refused.expect("the user is slowed down");
    assert_eq!(refused.problem(), "429 E1020");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(api.get("/api/v1/steps/kv").status, 200);
}
