//! One Ctrl-C or SIGTERM suspends a run between any two steps, whatever it is doing and whichever command executes it.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Request, Server};

/// How long a process may take to end after a signal: what is under way outside is given 5 s.
const PROMPT: Duration = Duration::from_secs(5);
/// Requests that may be under way when the signal comes, one for each of the branches or runs that a test has.
const UNDER_WAY: usize = 8;

/// A model that calls the same tool again and again.
fn model() -> Value {
    let function = json!({"name": "count", "arguments": "{}"});
    let call = json!({"index": 0, "id": "c1", "type": "function", "function": function});
    let choice =
        json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"});
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    json!({"id": "1", "model": "fake", "choices": [choice], "usage": usage})
}

fn answer(request: &Request) -> Answer {
    std::thread::sleep(Duration::from_millis(5));
    match request.path.as_str() {
        "/v1/chat/completions" => Answer::Events(vec![model().to_string(), "[DONE]".to_owned()]),
        _ => Answer::Json("{}".to_owned()),
    }
}

struct Bench {
    scratch: Scratch,
    server: Server,
}

impl Bench {
    fn new(flow: &str) -> Bench {
        let server = Server::start(|request, _| answer(request));
        let scratch = Scratch::new();
        let post = format!(
            "{{:method :post :url \"{}\" :on-doubt :retry}}",
            server.url("/post")
        );
        let flow = flow.replace("POST", &post);
        scratch.write("flow.edn", &flow);
        scratch.write(
            "flows/child.edn",
            format!(
                "{{:slug :child :concurrency {{:type :singleton}}
                   :flow '(dotimes [i 5000] (flow/step :http :write {post}))}}"
            ),
        );
        scratch.write(
            "flowstone.edn",
            format!(
                "{{:allow {{:net [\"127.0.0.1\"]}}
                  :connections {{:ai {{:type :http-api :backend \"openai-compatible\" :model \"fake\"
                                       :base-url \"{}\"}}}}}}",
                server.url("/v1")
            ),
        );
        Bench { scratch, server }
    }

    fn spawn(&self, args: &[&str]) -> Child {
        self.scratch
            .command(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    /// Waits until that many requests came in.
    fn busy(&self, requests: usize) {
        let begun = Instant::now();
        while self.server.requests().len() < requests {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing happens");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends a signal to a process at work, and returns how it ended and how many requests it still made.
    fn signal(&self, child: Child, signal: &str) -> (Ran, usize) {
        let before = self.server.requests().len();
        let id = child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {id}");
        let begun = Instant::now();
        let ran = Ran::of(child);
        assert!(begun.elapsed() < PROMPT, "{:?} {ran:?}", begun.elapsed());
        (ran, self.server.requests().len() - before)
    }
}

/// Each begins with a request, so that the signal comes when it is at work.
const BODIES: &[(&str, &str)] = &[
    ("requests", "(dotimes [i 5000] (flow/step :http :write POST))"),
    ("a loop", "(loop [i 0] (when (< i 5000) (flow/step :http :write POST) (recur (inc i))))"),
    ("mapv", "(mapv (fn [i] (flow/step :http :write POST)) (range 5000))"),
    (
        "own store",
        "(do (flow/step :http :begin POST)
             (dotimes [i 500000] (flow/step :kv :count {:operation :increment :key \"n\"})))",
    ),
    (
        "functions",
        "(do (flow/step :http :begin POST)
             (dotimes [i 500000] (flow/step :function :f {:input {:i i} :code '(fn [{:keys [i]}] (inc i))})))",
    ),
    (
        "a function",
        "(do (flow/step :http :begin POST)
             (flow/step :function :f {:input {} :code '(fn [_] (loop [] (recur)))}))",
    ),
    (
        "natives in a function",
        "(do (flow/step :http :begin POST)
             (flow/step :function :f {:input {} :code '(fn [_] (count (pr-str (nth (iterate (fn [x] [x x]) 1) 44))))}))",
    ),
    (
        "fractions",
        "(do (flow/step :http :begin POST) (reduce + (map #(/ 1 %) (range 1 100000000))))",
    ),
    (
        "fractions in a function",
        "(do (flow/step :http :begin POST)
             (flow/step :function :f {:input {} :code '(fn [_] (reduce + (map #(/ 1 %) (range 1 100000000))))}))",
    ),
    (
        "shared values",
        "(do (flow/step :http :begin POST)
             (let [make #(nth (iterate (fn [x] [x x]) 1) 44)] (compare (make) (make))))",
    ),
    ("no step", "(do (flow/step :http :begin POST) (loop [] (recur)))"),
    (
        "a native",
        "(do (flow/step :http :begin POST) (reduce + (range 1000000000000)))",
    ),
    (
        "branches",
        "(flow/pmap {:max 4} (fn [i] (dotimes [j 1000] (flow/step :http :write POST))) (range 20))",
    ),
    (
        "branches of own stores",
        "(do (flow/step :http :begin POST)
             (flow/pmap {:max 4}
                        (fn [i] (dotimes [j 100000] (flow/step :kv :count {:operation :increment :key \"n\"})))
                        (range 20)))",
    ),
    (
        "retries",
        "(do (flow/step :http :begin POST)
             (flow/step :http :f {:url \"http://127.0.0.1:1/\"
                              :retry {:max-attempts 100 :initial-interval-ms 20 :coefficient 1}}))",
    ),
    ("a child", "(flow/call-flow :child {})"),
    (
        "an agent",
        "(flow/step :agent :work {:connection :ai :objective \"Count.\" :max-iterations 100
                                  :tools {:steps [:notes/count]}})",
    ),
];

fn flow(body: &str) -> String {
    format!(
        "{{:slug :busy :concurrency {{:type :singleton}}
 :functions [{{:id :next :code (fn [_] {{:operation :increment :key \"calls\"}})}}]
 :steps [{{:id :notes/count :type :kv :description \"Counts.\" :input-schema [:map] :prepare :next}}]
 :flow '{body}}}"
    )
}

#[test]
fn one_signal_suspends_a_run_at_any_kind_of_work() {
    for (nth, (name, body)) in BODIES.iter().enumerate() {
        let bench = Bench::new(&flow(body));
        let signal = ["-INT", "-TERM"][nth % 2];
        let child = bench.spawn(&["run", "flow.edn", "--quiet"]);
        bench.busy(1);
        std::thread::sleep(Duration::from_millis(30));
        let (ran, more) = bench.signal(child, signal);
        assert_eq!(ran.code, Some(130), "{name}: {ran:?}");
        assert!(more <= UNDER_WAY, "{name}: {more} requests");
        assert!(ran.err.contains("is suspended"), "{name}: {}", ran.err);
        let runs = bench
            .scratch
            .run(&[
                "runs",
                "list",
                "--status",
                "interrupted",
                "--flow",
                "busy",
                "--json",
            ])
            .json();
        let found = runs["runs"].as_array().map_or(0, Vec::len);
        // A parent's row says that it waits for its child.
        assert!(
            found == 1 || *name == "a child" || *name == "retries",
            "{name}: {runs}"
        );
    }
}

#[test]
fn a_resumed_run_is_suspended_as_well() {
    let bench = Bench::new(&flow(BODIES[0].1));
    for (args, signal) in [
        (&["run", "flow.edn", "--quiet"][..], "-TERM"),
        (&["run", "flow.edn", "--quiet"], "-INT"),
        (&["runs", "resume", "--all", "--quiet"], "-TERM"),
    ] {
        let begun = bench.server.requests().len();
        let child = bench.spawn(args);
        bench.busy(begun + 5);
        let (ran, more) = bench.signal(child, signal);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert!(more <= 1, "{more} requests");
    }
    let runs = bench.scratch.run(&["runs", "list", "--json"]).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "{runs}");
}

#[test]
fn a_worker_with_several_runs_ends_in_time_and_leaves_them_all() {
    let bench = Bench::new(
        &flow(BODIES[0].1).replace("{:type :singleton}", "{:type :keyed :key-field :k}"),
    );
    for key in 0..3 {
        let input = format!("{{\"k\": {key}}}");
        let args = ["run", "flow.edn", "--detach", "--input", &input];
        bench.scratch.run(&args).ok();
    }
    let child = bench.spawn(&["serve", "--threads", "2"]);
    bench.busy(30);
    let (ran, more) = bench.signal(child, "-TERM");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(more <= 3, "{more} requests");
    let args = ["runs", "list", "--status", "interrupted", "--json"];
    let runs = bench.scratch.run(&args).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(3), "{runs}");
}

/// A result that nobody reads, so that printing it does not end.
#[test]
fn one_signal_ends_the_printing_of_a_finished_result() {
    let scratch = Scratch::new();
    scratch.write("large.edn", "{:slug :large :flow '(vec (range 300000))}");
    for (args, is_run) in [
        (&["eval", "(vec (range 300000))"][..], false),
        (&["run", "large.edn", "--quiet"], true),
        (&["run", "large.edn", "--quiet", "--json", "--new"], true),
    ] {
        let mut command = scratch.command(args);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
        let mut first = [0];
        let mut out = child.stdout.take().expect("piped");
        std::io::Read::read_exact(&mut out, &mut first).expect("something is printed");
        // It waits for its reader now, or will soon.
        std::thread::sleep(Duration::from_millis(100));
        let begun = Instant::now();
        let sent = Command::new("kill").arg(child.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()));
        while child.try_wait().expect("a status").is_none() {
            if begun.elapsed() > PROMPT {
                child.kill().expect("killed");
                panic!("{args:?} goes on printing");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let status = child.wait().expect("a status");
        assert_eq!(status.code(), Some(130), "{args:?}");
        if is_run {
            let runs = scratch.json_of(&["runs", "list"]);
            assert_eq!(runs["runs"][0]["status"], "completed", "{runs}");
        }
    }
}
