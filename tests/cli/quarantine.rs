//! Runs that end the process which executes them are put in quarantine.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

/// A server that kills who asks it, for as long as it is armed.
struct Killer {
    server: Server,
    target: Arc<AtomicU32>,
    armed: Arc<AtomicBool>,
}

impl Killer {
    fn new() -> Killer {
        let target = Arc::new(AtomicU32::new(0));
        let armed = Arc::new(AtomicBool::new(true));
        let (aim, is_armed) = (target.clone(), armed.clone());
        let server = Server::start(move |_, _| {
            if is_armed.load(Ordering::SeqCst) {
                let id = aim.load(Ordering::SeqCst).to_string();
                let status = Command::new("kill").args(["-9", &id]).status();
                assert!(status.is_ok_and(|status| status.success()), "kill -9 {id}");
            }
            Answer::Json("{\"ok\": true}".to_owned())
        });
        Killer {
            server,
            target,
            armed,
        }
    }

    fn flow(&self) -> String {
        let url = self.server.url("/");
        format!(
            "(do (flow/step :kv :first {{:operation :set :key \"a\" :value 1}})
                 (flow/step :http :deadly {{:url \"{url}\" :method :post :json {{}} :on-doubt :retry}})
                 :alive)"
        )
    }

    fn run(&self, scratch: &Scratch, args: &[&str]) -> Ran {
        let child = scratch
            .command(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        self.target.store(child.id(), Ordering::SeqCst);
        Ran::of(child)
    }
}

fn only_run(scratch: &Scratch) -> Value {
    let runs = scratch.run(&["runs", "list", "--json"]).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "{runs}");
    runs["runs"][0].clone()
}

#[test]
fn a_run_that_ends_its_worker_three_times_is_resumed_only_by_name() {
    let (scratch, killer) = (Scratch::with_local_servers(), Killer::new());
    scratch.write("flow.edn", killer.flow());
    let serve: &[&str] = &["serve", "--until-idle"];
    let all: &[&str] = &["runs", "resume", "--all", "--quiet"];
    for args in [&["run", "flow.edn", "--quiet"], serve, all] {
        assert_eq!(killer.run(&scratch, args).code, None, "{args:?}");
        assert_eq!(only_run(&scratch)["quarantine"], Value::Null);
    }
    // From here on nobody executes it unless it is named.
    let served = killer.run(&scratch, serve);
    assert!(
        served.err.contains("is skipped") && served.err.contains("E0990"),
        "{served:?}"
    );
    served.ok();
    let run = only_run(&scratch);
    let reason = run["quarantine"].as_str().unwrap_or_default();
    assert!(reason.contains("ended 3 times in a row"), "{run}");
    killer.run(&scratch, all).ok();
    let again = killer.run(&scratch, &["run", "flow.edn", "--json"]);
    assert_eq!(again.json()["error"]["code"], json!("E0990"), "{again:?}");
    let id = run["id"].as_str().expect("an id");
    let cancelled = killer.run(&scratch, &["runs", "cancel", id]);
    assert!(cancelled.err.contains("E0990") && cancelled.err.contains("--force"));
    let shown = scratch.run(&["runs", "show", id]).ok();
    assert!(shown.contains("quarantined: the process"), "{shown}");
    assert!(scratch.run(&["runs", "list"]).ok().contains("quarantined"));
    // Named, it is counted afresh.
    for _ in 0..2 {
        let resumed = killer.run(&scratch, &["runs", "resume", id]);
        assert_eq!(resumed.code, None);
    }
    killer.armed.store(false, Ordering::SeqCst);
    killer.run(&scratch, serve).ok();
    assert_eq!(only_run(&scratch)["status"], "completed");
}

#[test]
fn the_number_of_crashes_is_a_setting_and_a_quarantined_run_can_be_ended() {
    let (scratch, killer) = (Scratch::with_local_servers(), Killer::new());
    scratch.write("flow.edn", killer.flow());
    scratch.write(
        "flowstone.edn",
        "{:limits {:crashes 1} :allow {:net [\"127.0.0.1\"]}}",
    );
    assert_eq!(killer.run(&scratch, &["run", "flow.edn"]).code, None);
    let again = killer.run(&scratch, &["run", "flow.edn", "--json"]);
    assert_eq!(again.json()["error"]["code"], json!("E0990"), "{again:?}");
    let run = only_run(&scratch);
    let id = run["id"].as_str().expect("an id");
    scratch.run(&["runs", "cancel", id, "--force"]).ok();
    assert_eq!(only_run(&scratch)["status"], "terminated");
}

#[test]
fn runs_that_only_wait_are_not_blamed() {
    let (scratch, killer) = (Scratch::with_local_servers(), Killer::new());
    scratch.write("flow.edn", killer.flow());
    scratch.write(
        "flowstone.edn",
        "{:limits {:crashes 1} :allow {:net [\"127.0.0.1\"]}}",
    );
    scratch.write("waits.edn", "(flow/step :wait :door {:key \"door\"})");
    assert_eq!(scratch.run(&["run", "waits.edn", "--quiet"]).code, Some(3));
    assert_eq!(killer.run(&scratch, &["run", "flow.edn"]).code, None);
    killer.run(&scratch, &["serve", "--until-idle"]).ok();
    let runs = scratch.run(&["runs", "list", "--json"]).json();
    let marks: Vec<bool> = runs["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["quarantine"].is_null())
        .collect();
    assert_eq!(marks, [false, true], "{runs}");
}
