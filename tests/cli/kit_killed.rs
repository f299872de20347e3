//! An agent that builds with the kit, killed at any point: no call is made twice.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::kit_agent::{settings, turn};
use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

/// What the agent commits: it tells the desk, so a test of it can be counted.
fn built(server: &Server) -> String {
    format!(
        "{{:slug :digest :flow '(flow/step :http :tell {{:url \"{}\" :method :post :json {{:a 1}} :retry {{:max-attempts 1}}}})}}",
        server.url("/desk")
    )
}

/// The flow returns what there is in the end, as its own `:kit` steps see it.
const FLOW: &str = r#"{:slug :digest
 :flow '(let [done (flow/step :agent :builder {:connection :ai :objective "Build." :tools {:kit [:commit_revision :annotate_trace :create_schedule :test_run]}})
              read (fn [id tool arguments] (flow/step :kit id {:tool tool :arguments arguments}))
              own (:run-id (:flow/ctx (flow/input)))
              flows (:workflows (read :flows "query_workflows" {:name "digest"}))
              spans (:spans (read :spans "query_spans" {:filtering {:conditions [{:field "trace_id" :value own}]} :fields ["events"]}))]
          {:versions (or (:version (:head (first flows))) 0)
           :annotations (count (:events (first spans)))
           :schedules (:count (read :schedules "list_schedules" {}))
           :calls (mapv (fn [call] [(:name call) (:success call) (:code (:result call))]) (:tool-calls done))})}"#;

fn bench() -> (Scratch, Server) {
    let text = std::sync::OnceLock::<String>::new();
    let text = std::sync::Arc::new(text);
    let known = text.clone();
    let server = Server::start(move |request, _| {
        if request.path == "/desk" {
            return Answer::Json("{}".to_owned());
        }
        let text = known.get().expect("the text of the flow");
        let turns = vec![
            vec![(
                "commit_revision",
                json!({"delta": {"set": {"parameters": {"files": {"flow.edn": text}}}}}),
            )],
            vec![(
                "annotate_trace",
                json!({"references": {"evaluator": {"slug": "me"}}, "data": {"outputs": {"ok": true}}}),
            )],
            vec![(
                "create_schedule",
                json!({"data": {"event_key": "digest.daily", "schedule": "0 9 * * *"}}),
            )],
            vec![("test_run", json!({"inputs": {}}))],
        ];
        turn(request, &turns)
    });
    text.set(built(&server)).expect("it is set once");
    let scratch = match std::path::Path::new("/dev/shm").is_dir() {
        true => Scratch::within("/dev/shm"),
        false => Scratch::new(),
    };
    scratch.write("digest.edn", FLOW);
    let more = ":allow {:net [\"127.0.0.1\"]}
                :kit {:permissions {:commit_revision :allow :annotate_trace :allow :create_schedule :allow :test_run :allow}}";
    scratch.write("flowstone.edn", settings(&server, more));
    (scratch, server)
}

fn process(scratch: &Scratch, home: &str, crash_at: Option<u64>) -> Ran {
    let mut command = scratch.command(&["test", "digest.edn", "--live", "--quiet", "--json"]);
    command.args(["--test-home", home]);
    if let Some(point) = crash_at {
        command.args(["--crash-at", &point.to_string()]);
    }
    Ran::to_the_end(&mut command)
}

fn told(server: &Server, from: usize) -> usize {
    let requests = &server.requests()[from..];
    requests.iter().filter(|it| it.path == "/desk").count()
}

/// Reads what the flow returned.
fn end(ran: &Ran) -> Value {
    let json = ran.json();
    let end = json["end"].as_str().expect("an end").to_owned();
    let at = end.find('{').expect("a map");
    let value = flowstone_engine::codec::decode(&end[at..]).expect("EDN");
    flowstone_engine::json::to_json(&value).expect("JSON")
}

fn crash(scratch: &Scratch, server: &Server, point: u64) -> bool {
    let home = format!("home{point}");
    let from = server.requests().len();
    let first = process(scratch, &home, Some(point));
    let was_killed = first.code.is_none();
    let last = match was_killed {
        true => process(scratch, &home, None),
        false => first,
    };
    let end = end(&last);
    let tests = told(server, from);
    let made = [
        ("commit_revision", &end["versions"]),
        ("annotate_trace", &end["annotations"]),
        ("create_schedule", &end["schedules"]),
        ("test_run", &json!(tests)),
    ];
    for (place, (tool, count)) in made.into_iter().enumerate() {
        let call = &end["calls"][place];
        assert_eq!(call[0], tool, "point {point}: {end}");
        match call[1] == true {
            true => assert_eq!(*count, 1, "point {point}: {tool} {end}"),
            // It was cut, and may have been made. After a cut commit, the next calls find nothing to work on.
            false => {
                assert!(count.as_u64() <= Some(1), "point {point}: {tool} {end}");
                let code = call[2].as_str().unwrap_or_default();
                let known = [
                    "timeout",
                    "test_run_incomplete",
                    "no_revision",
                    "limit_exceeded",
                ];
                assert!(known.contains(&code), "point {point}: {tool} {end}");
            }
        }
    }
    std::fs::remove_dir_all(scratch.path().join(home)).expect("it was there");
    was_killed
}

#[test]
fn an_agent_killed_at_any_point_makes_no_call_of_the_kit_twice() {
    let (scratch, server) = bench();
    let undisturbed = process(&scratch, "undisturbed", None);
    let found = end(&undisturbed);
    let all = json!([
        ["commit_revision", true, null],
        ["annotate_trace", true, null],
        ["create_schedule", true, null],
        ["test_run", true, null],
    ]);
    assert_eq!(found["calls"], all, "{found}");
    assert_eq!(
        (
            &found["versions"],
            &found["annotations"],
            &found["schedules"],
            told(&server, 0)
        ),
        (&json!(1), &json!(1), &json!(1), 1)
    );
    let points = undisturbed.json()["points"].as_u64().expect("a number");
    let next = AtomicU64::new(1);
    let killed = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let (scratch, server) = bench();
                loop {
                    let point = next.fetch_add(1, Ordering::SeqCst);
                    if point > points {
                        break;
                    }
                    let was_killed = crash(&scratch, &server, point);
                    killed.fetch_add(u64::from(was_killed), Ordering::SeqCst);
                }
            });
        }
    });
    let killed = killed.into_inner();
    assert!(killed > 20 && killed + 10 >= points, "{killed} of {points}");
}
