//! A run whose process is killed twenty times ends with every step done exactly once.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

/// Half of the steps call the server, half change our own store.
const PAIRS: usize = 100;
const KILLS: usize = 20;

/// The process to kill.
type Target = Arc<AtomicU32>;

#[test]
fn killed_runs_do_every_step_once() {
    let scratch = Scratch::with_local_servers();
    let counter = scratch.path().join("counter");
    let target = Target::default();
    let server = server(counter.clone(), Arc::clone(&target));
    scratch.write("flow.edn", flow(&server.url("/count")));
    let mut args: &[&str] = &["run", "flow.edn", "--quiet"];
    let mut kills = 0;
    let last = loop {
        let ran = start(&scratch, args, &target);
        match ran.code {
            None => kills += 1,
            Some(0) => break ran,
            Some(_) => panic!("{ran:?}"),
        }
        assert!(kills <= KILLS, "it does not come to an end");
        args = &["runs", "resume", "--all", "--quiet"];
    };
    assert_eq!(kills, KILLS, "{last:?}");
    done_once_by_the_store(&scratch);
    done_once_by_the_journal(&scratch);
    done_once_by_the_counter(
        &std::fs::read_to_string(counter).expect("it was written"),
        kills,
    );
}

fn flow(url: &str) -> String {
    format!(
        "(let [counts (vec (for [i (range {PAIRS})]
                       (do (flow/step :http :tell {{:url \"{url}\" :method :post :json {{:i i}} :on-doubt :retry}})
                           (:value (flow/step :kv :count {{:operation :increment :key \"done\"}})))))]
           {{:last (peek counts) :distinct (count (set counts))}})"
    )
}

/// Records each call, and kills the calling process at points spread over the run: before the answer or after.
fn server(counter: PathBuf, target: Target) -> Server {
    let step = PAIRS / KILLS;
    let calls = AtomicU32::new(0);
    Server::start(move |request, _| {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&counter)
            .expect("a file");
        writeln!(file, "{}", request.body).expect("it is written");
        let call = calls.fetch_add(1, Ordering::SeqCst) as usize;
        // Not evenly, so that other places are hit as well; by this many calls twenty are over.
        if call % step == (call / step) % step && call / step < KILLS {
            kill(&target);
            if call.is_multiple_of(2) {
                return Answer::HalfBody;
            }
        }
        Answer::Json("{\"ok\": true}".to_owned())
    })
}

fn kill(target: &Target) {
    let id = target.load(Ordering::SeqCst).to_string();
    let status = Command::new("kill").args(["-9", &id]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -9 {id}");
}

fn start(scratch: &Scratch, args: &[&str], target: &Target) -> Ran {
    let child = scratch
        .command(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    target.store(child.id(), Ordering::SeqCst);
    Ran::of(child)
}

fn done_once_by_the_store(scratch: &Scratch) {
    scratch.write(
        "look.edn",
        "(:value (flow/step :kv :look {:operation :get :key \"done\"}))",
    );
    let done = scratch.run(&["run", "look.edn", "--quiet"]).ok();
    assert_eq!(done.trim(), PAIRS.to_string());
}

fn done_once_by_the_journal(scratch: &Scratch) {
    let runs = scratch.run(&["runs", "list", "--json"]).json();
    let runs = runs["runs"].as_array().expect("a list");
    let id = runs
        .last()
        .and_then(|run| run["id"].as_str())
        .expect("the first run");
    let run = scratch.run(&["runs", "show", id, "--json"]).json();
    assert_eq!(run["status"], "completed", "{run}");
    let steps = run["steps"].as_array().expect("steps");
    let mut by_path: HashMap<&str, usize> = HashMap::new();
    for step in steps {
        assert_eq!(step["status"], "done", "{step}");
        *by_path
            .entry(step["path"].as_str().expect("a path"))
            .or_default() += 1;
    }
    assert_eq!((steps.len(), by_path.len()), (2 * PAIRS, 2 * PAIRS));
}

/// Each call was made; only what was in flight when the process died was made again.
fn done_once_by_the_counter(counter: &str, kills: usize) {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    for line in counter.lines() {
        *calls.entry(line).or_default() += 1;
    }
    assert_eq!(calls.len(), PAIRS);
    let again: usize = calls.values().map(|count| count - 1).sum();
    assert!(again <= kills, "{again} calls were made again");
}
