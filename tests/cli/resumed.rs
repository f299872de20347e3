//! The same command resumes its run, wherever that was stopped, and never starts a second one beside it.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

/// A kind of pause: what stands between two effects, and whether the process is killed in it or ends by itself.
struct Pause {
    name: &'static str,
    body: &'static str,
    /// It ends by itself, with code 3.
    leaves: bool,
}

const PAUSES: &[Pause] = &[
    Pause {
        name: "a sleep",
        body: "(flow/step :sleep :nap {:duration \"2s\"})",
        leaves: false,
    },
    Pause {
        name: "between polls",
        body: "(flow/poll {:id :ready :interval \"2s\" :timeout \"1m\" :return-on (fn [polls] (< 1 polls))}
                 (:value (flow/step :kv :polls {:operation :increment :key \"polls\"})))",
        leaves: false,
    },
    Pause {
        name: "before another attempt",
        body: "(flow/step :http :flaky {:method :get :url \"URL\" :retry {:max-attempts 3 :initial-interval-ms 2000}})",
        leaves: false,
    },
    Pause {
        name: "an answer",
        body: "(flow/step :wait :door {:key \"door\"})",
        leaves: true,
    },
    Pause {
        name: "a branch",
        body: "(flow/pmap (fn [n] (flow/step :sleep :nap {:duration \"2s\"})) [1 2])",
        leaves: false,
    },
    Pause {
        name: "a child",
        body: "(flow/call-flow :child {})",
        leaves: false,
    },
    Pause {
        name: "a later pass",
        body: "(if (= 1 (:pass (flow/input)))
                 (flow/step :sleep :nap {:duration \"2s\"})
                 (flow/continue-as-new {:pass 1}))",
        leaves: false,
    },
];

fn scratch(pause: &Pause, concurrency: &str) -> (Scratch, Server) {
    let server = Server::start(|_, before| match before {
        0 => Answer::Status(503, "Unavailable"),
        _ => Answer::Json("{}".to_owned()),
    });
    let scratch = Scratch::with_local_servers();
    let body = pause.body.replace("URL", &server.url("/"));
    scratch.write(
        "flow.edn",
        format!(
            "{{:slug :pausing :concurrency {{:type {concurrency}}}
 :flow '(do (when-not (:pass (flow/input)) (flow/step :kv :first {{:operation :increment :key \"n\"}}))
            {body}
            (:value (flow/step :kv :last {{:operation :increment :key \"n\"}})))}}"
        ),
    );
    scratch.write(
        "flows/child.edn",
        "{:slug :child :concurrency {:type :singleton}
          :flow '(flow/step :sleep :nap {:duration \"2s\"})}",
    );
    (scratch, server)
}

fn spawn(scratch: &Scratch, args: &[&str]) -> Child {
    scratch
        .command(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn stop(child: Child, signal: &str) -> Ran {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {id}");
    Ran::of(child)
}

fn runs(scratch: &Scratch, flow: &str) -> Vec<Value> {
    let list = scratch.run(&["runs", "list", "--flow", flow, "--json"]);
    list.json()["runs"].as_array().cloned().expect("a list")
}

/// Waits until the run, or the one that it called, waits for something.
fn until_waiting(scratch: &Scratch, name: &str) {
    let begun = Instant::now();
    let is_waiting = || {
        let list = scratch.run(&["runs", "list", "--status", "waiting", "--json"]);
        list.json()["runs"]
            .as_array()
            .is_some_and(|runs| !runs.is_empty())
    };
    while !is_waiting() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{name} does not wait"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_same_command_resumes_a_run_at_every_kind_of_pause() {
    for (nth, pause) in PAUSES.iter().enumerate() {
        let (name, args) = (pause.name, &["run", "flow.edn"]);
        let (scratch, _server) = scratch(pause, ":singleton");
        if pause.leaves {
            assert_eq!(scratch.run(args).code, Some(3), "{name}");
        } else {
            let child = spawn(&scratch, args);
            until_waiting(&scratch, name);
            let (signal, code) = [("-INT", Some(130)), ("-KILL", None)][nth % 2];
            assert_eq!(stop(child, signal).code, code, "{name}");
        }
        if pause.leaves {
            let again = scratch.run(args);
            assert_eq!(again.code, Some(3), "{name}: {again:?}");
            assert!(again.err.contains("resuming run"), "{name}: {}", again.err);
            scratch
                .run(&[
                    "waits",
                    "signal",
                    "door",
                    "--value",
                    "{:action :go}",
                    "--no-resume",
                ])
                .ok();
        }
        let again = scratch.run(args);
        assert!(again.err.contains("resuming run"), "{name}: {}", again.err);
        assert_eq!(again.ok().trim(), "2", "{name}");
        assert_eq!(runs(&scratch, "pausing").len(), 1, "{name}");
        // What is over is not resumed.
        if !pause.leaves {
            let more = scratch.run(args);
            assert!(!more.err.contains("resuming run"), "{name}: {}", more.err);
            assert_eq!(runs(&scratch, "pausing").len(), 2, "{name}");
        }
    }
}

#[test]
fn a_queued_run_is_resumed_by_its_command_and_what_is_ahead_is_named() {
    let pause = &PAUSES[3];
    let (scratch, _server) = scratch(pause, ":singleton");
    let first = scratch.run(&["run", "flow.edn", "--json"]).json();
    let ahead = first["run"].as_str().expect("an id").to_owned();
    let queued = scratch.run(&["run", "flow.edn", "--new"]);
    assert_eq!(queued.code, Some(3), "{queued:?}");
    for verb in ["resume", "cancel"] {
        let advice = format!("flowstone runs {verb} {ahead}");
        assert!(queued.err.contains(&advice), "{advice}: {}", queued.err);
    }
    assert_eq!(runs(&scratch, "pausing").len(), 2);
    scratch.run(&["runs", "cancel", &ahead]).ok();
    // Only the queued one is left.
    let resumed = scratch.run(&["run", "flow.edn"]);
    assert!(resumed.err.contains("resuming run"), "{}", resumed.err);
    assert_eq!(resumed.code, Some(3), "{resumed:?}");
    assert_eq!(runs(&scratch, "pausing").len(), 2);
}

#[test]
fn another_input_invocation_or_text_and_new_start_another_run() {
    let (scratch, _server) = scratch(&PAUSES[3], ":singleton :on-new-version :coexist");
    let count = |expected: usize, args: &[&str]| {
        let ran = scratch.run(args);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert_eq!(runs(&scratch, "pausing").len(), expected, "{args:?}");
    };
    count(1, &["run", "flow.edn"]);
    count(1, &["run", "flow.edn"]);
    count(2, &["run", "flow.edn", "--new"]);
    count(3, &["run", "flow.edn", "--input", "{\"other\": 1}"]);
    count(3, &["run", "flow.edn", "--input", "{\"other\": 1}"]);
    let text = scratch.read("flow.edn");
    scratch.write("flow.edn", format!("; edited\n{text}"));
    count(4, &["run", "flow.edn"]);
    count(4, &["run", "flow.edn"]);
}
