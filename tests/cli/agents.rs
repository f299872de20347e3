//! Agents in the program: what a crash may cost, and the guide's example.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Request, Server};

/// The turn that answers; those before it call two tools at once.
const LAST_TURN: usize = 11;

/// Twelve turns with four tools: files of a changeset, the search, a request to an outside server, and a counter in the
/// project's own store.
fn flow(server: &Server) -> String {
    let url = server.url("/desk");
    format!(
        "{{:slug :twelve
 :functions [{{:id :letter :code (fn [{{:keys [turn]}}] {{:json {{:turn turn}}}})}}
             {{:id :next :code (fn [_] {{:operation :increment :key \"calls\"}})}}]
 :steps [{{:id :desk/tell :type :http :description \"Tells the desk.\" :input-schema [:map [:turn :int]]
          :defaults {{:url \"{url}\" :method :post :on-doubt :retry}} :prepare :letter}}
         {{:id :notes/count :type :kv :description \"Counts.\" :input-schema [:map] :prepare :next}}]
 :flow '(let [draft (flow/step :files :draft {{:op :init-changeset :source {{:type :dir :path \"src\"}}}})
              result (flow/step :agent :work
                       {{:connection :ai
                        :objective \"Work.\"
                        :inputs {{:draft draft}}
                        :available-steps [:files :search]
                        :tools {{:steps [:desk/tell :notes/count]}}}})
              files (flow/step :files :list {{:op :list :source draft}})]
          {{:content (:content result)
           :turns (:iterations result)
           :usage (:usage result)
           :calls (mapv :success (:tool-calls result))
           :counted (:value (flow/step :kv :counted {{:operation :get :key \"calls\"}}))
           :files (count (:entries files))}})}}"
    )
}

/// What a request asks for: a turn of the model by the number of those before it, or a call of the desk.
fn asked(request: &Request) -> String {
    let body: Value = serde_json::from_str(&request.body).expect("a JSON body");
    if request.path == "/desk" {
        return format!("desk {}", body["turn"]);
    }
    let messages = body["messages"].as_array().expect("messages");
    let turns = messages.iter().filter(|it| it["role"] == "assistant");
    format!("turn {}", turns.count())
}

/// Answers like a model, and at the desk.
fn answer(request: &Request) -> Answer {
    let asked = asked(request);
    let Some(turn) = asked.strip_prefix("turn ") else {
        return Answer::Json("{}".to_owned());
    };
    let turn: usize = turn.parse().expect("a number");
    let delta = match turn {
        LAST_TURN => json!({"content": "all done"}),
        _ => {
            let other = match turn % 3 {
                0 => ("desk_tell", json!({"turn": turn})),
                1 => (
                    "files",
                    json!({"op": "write-file", "changeset": changeset(&request.body),
                           "path": format!("{turn}.txt"), "content": "written\n"}),
                ),
                _ => ("search", json!({"query": "nothing"})),
            };
            let calls = [("notes_count", json!({})), other];
            let calls = calls.iter().enumerate().map(|(idx, (name, arguments))| {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                json!({"index": idx, "id": format!("c{turn}{name}"), "type": "function", "function": function})
            });
            json!({"content": format!("turn {turn}"), "tool_calls": calls.collect::<Vec<_>>()})
        }
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11});
    let choice = json!({"index": 0, "delta": delta, "finish_reason": "stop"});
    Answer::Events(vec![
        json!({"id": "1", "model": "fake", "choices": [choice], "usage": usage}).to_string(),
        "[DONE]".to_owned(),
    ])
}

/// Finds the changeset that the model was told of.
fn changeset(text: &str) -> String {
    let refs = text.split("res://").skip(1);
    let mut refs = refs.map(|it| it.split(['"', '\\', ' ']).next().unwrap_or_default());
    let found = refs.find(|it| it.contains("changeset"));
    format!("res://{}", found.expect("a changeset"))
}

/// One process of a crash test: it dies at a point, or prints the outcome of the run.
fn process(scratch: &Scratch, home: &str, crash_at: Option<u64>) -> Ran {
    let mut command = scratch.command(&["test", "twelve.edn", "--live", "--quiet", "--json"]);
    command.args(["--test-home", home]);
    if let Some(point) = crash_at {
        command.args(["--crash-at", &point.to_string()]);
    }
    Ran::to_the_end(&mut command)
}

/// A folder with the flow and a model of its own, so that what one test asks for is not mixed with another.
fn bench() -> (Scratch, Server) {
    // Syncs cost nothing in memory, and a killed process does not need them.
    let server = Server::start(|request, _| answer(request));
    let scratch = match std::path::Path::new("/dev/shm").is_dir() {
        true => Scratch::within("/dev/shm"),
        false => Scratch::new(),
    };
    scratch.write("src/a.txt", "a\n");
    scratch.write("twelve.edn", flow(&server));
    scratch.write(
        "flowstone.edn",
        format!(
            "{{:connections {{:ai {{:type :http-api :backend \"openai-compatible\" :model \"fake\"
                                    :base-url \"{}\" :auth {{:type :none}}}}}}}}",
            server.url("/v1")
        ),
    );
    (scratch, server)
}

/// Counts requests from one on.
fn counts(server: &Server, from: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in &server.requests()[from..] {
        *counts.entry(asked(request)).or_default() += 1;
    }
    counts
}

/// The results of the crashes.
#[derive(Default)]
struct Tally {
    killed: AtomicU64,
    /// Requests that were made again.
    again: AtomicU64,
}

/// Kills a process at a point and has another go on.
fn crash(scratch: &Scratch, server: &Server, point: u64, expected: &Expected, tally: &Tally) {
    let home = format!("home{point}");
    let from = server.requests().len();
    let first = process(scratch, &home, Some(point));
    let before = counts(server, from);
    let was_killed = first.code.is_none();
    let last = match was_killed {
        true => process(scratch, &home, None),
        false => first,
    };
    let told = last.json();
    for what in ["status", "end", "contents"] {
        assert_eq!(told[what], expected.told[what], "point {point}: {what}");
    }
    let after = counts(server, from);
    let asked: Vec<&String> = after.keys().collect();
    let wanted: Vec<&String> = expected.counts.keys().collect();
    assert_eq!(asked, wanted, "point {point}");
    let again: Vec<&String> = after.keys().filter(|it| after[*it] > 1).collect();
    // Only the request that was under way when the process died is made again, and that once.
    let newest = before.keys().max_by_key(|it| number(it));
    match again[..] {
        [] => {}
        [again] => {
            tally.again.fetch_add(1, Ordering::SeqCst);
            assert_eq!(after[again], 2, "point {point}: {after:?}");
            assert_eq!(
                number(again),
                newest.map_or(0, |it| number(it)),
                "point {point}: {again}"
            );
        }
        _ => panic!("point {point}: {after:?}"),
    }
    tally
        .killed
        .fetch_add(u64::from(was_killed), Ordering::SeqCst);
    std::fs::remove_dir_all(scratch.path().join(home)).expect("it was there");
}

/// The turn that a request belongs to.
fn number(asked: &str) -> usize {
    let number = asked.rsplit(' ').next().and_then(|it| it.parse().ok());
    number.expect("a number")
}

/// A run that nobody disturbs.
struct Expected {
    told: Value,
    counts: BTreeMap<String, usize>,
}

/// Every point is tried: each commit and each effect, before it and after it.
#[test]
fn an_agent_killed_at_any_point_repeats_no_turn() {
    let (scratch, server) = bench();
    let told = process(&scratch, "undisturbed", None).json();
    let end = told["end"].as_str().expect("an end");
    for fact in ["all done", ":turns 12", ":total-tokens 132", ":counted 11"] {
        assert!(end.contains(fact), "{told:#}");
    }
    let expected = Expected {
        counts: counts(&server, 0),
        told,
    };
    // Twelve turns, and four times the desk.
    assert_eq!(expected.counts.len(), 16, "{:?}", expected.counts);
    assert!(expected.counts.values().all(|it| *it == 1));
    let points = expected.told["points"].as_u64().expect("a number");
    let next = AtomicU64::new(1);
    let tally = Tally::default();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let (scratch, server) = bench();
                loop {
                    let point = next.fetch_add(1, Ordering::SeqCst);
                    if point > points {
                        break;
                    }
                    crash(&scratch, &server, point, &expected, &tally);
                }
            });
        }
    });
    // How many commits there are depends on who is faster: the last points may not be there every time.
    let killed = tally.killed.into_inner();
    assert!(killed > 60 && killed + 10 >= points, "{killed} of {points}");
    // Each is lost once at least: when the process dies after the answer and before the commit.
    assert!(tally.again.into_inner() >= 16);
}

/// The flow and the settings of the guide, as they stand there.
#[test]
fn the_example_of_the_guide_runs() {
    let guide = std::fs::read_to_string(crate::tidy::root().join("docs/guide/agents.md")).unwrap();
    let mut blocks = guide.split("```clojure\n").skip(1);
    let mut block = || {
        blocks
            .next()
            .unwrap()
            .split("```")
            .next()
            .unwrap()
            .to_owned()
    };
    let scratch = Scratch::new();
    scratch.write("sums.edn", block());
    scratch.write("flowstone.edn", block());
    let ran = scratch.run(&["run", "sums.edn"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for fact in ["42", "math_add"] {
        assert!(ran.out.contains(fact), "{}", ran.out);
    }
}

/// Answers that are asked for again are told apart, and why.
#[test]
fn answers_that_are_repaired_have_lines_of_their_own() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        r#"{:connections {:ai {:backend :scripted :script {:turns ["{\"total\": \"NaN\"}" "{\"total\": 3}"]}}}}"#,
    );
    scratch.write(
        "total.edn",
        r#"{:slug :total :flow '(:content (flow/step :llm :total {:connection :ai :prompt "Total?" :repair 1 :output {:format :json :schema [:map [:total :int]]}}))}"#,
    );
    let ran = scratch.run(&["run", "total.edn"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let lines: Vec<&str> = ran.err.lines().map(str::trim).collect();
    let at = |text: &str| lines.iter().position(|line| *line == text);
    let (first, second) = (at(r#"{"total": "NaN"}"#), at(r#"{"total": 3}"#));
    let (first, second) = (first.expect(&ran.err), second.expect(&ran.err));
    assert_eq!(second, first + 2, "{}", ran.err);
    let mark = "↻   the answer is not right, asking again: at [:total]: should be an integer";
    assert!(lines[first + 1].starts_with(mark), "{}", ran.err);
}

#[test]
fn an_agent_says_which_connections_did_not_answer() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        r#"{:allow {:net ["127.0.0.1"]}
            :connections {:dead {:backend :openai-compatible :base-url "http://127.0.0.1:1" :model "m"}
                          :spare {:backend :scripted :script {:turns ["Hi"]}}}}"#,
    );
    scratch.write(
        "hi.edn",
        r#"{:slug :hi :flow '(mapv :connection (:failed-connections (flow/step :agent :a {:connection [:dead :spare] :objective "Hi?"})))}"#,
    );
    let ran = scratch.run(&["run", "hi.edn"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.out.trim(), "[:dead]");
    assert!(ran.err.contains("`:dead` cannot answer"), "{}", ran.err);
    assert!(!ran.err.contains("not right"), "{}", ran.err);
}
