//! Two processes on one database: each executes runs of its own, and neither takes the other's.

use std::process::Stdio;

use crate::program::Scratch;
use crate::server::{Answer, Server};

#[test]
fn two_processes_execute_different_runs_and_never_the_same() {
    let server = Server::start(|_, _| Answer::Hang(Vec::new()));
    let scratch = Scratch::with_local_servers();
    let flow = |url: &str| {
        format!("(flow/step :http :ask {{:url \"{url}\" :method :post :on-doubt :retry}})")
    };
    scratch.write("slow.edn", flow(&server.url("/slow")));
    scratch.write(
        "quick.edn",
        "(:value (flow/step :kv :count {:operation :increment :key \"n\"}))",
    );
    let mut first = scratch
        .command(&["run", "slow.edn", "--quiet"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    // The call says that the run is under way.
    while server.requests().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(
        scratch.run(&["run", "quick.edn", "--quiet"]).ok().trim(),
        "1"
    );
    let runs = scratch
        .run(&["runs", "list", "--status", "running", "--json"])
        .json();
    let id = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    let refused = scratch.run(&["runs", "resume", &id]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("E0504"), "{}", refused.err);
    let owner = format!("process {}", first.id());
    assert!(refused.err.contains(&owner), "{owner}: {}", refused.err);
    // No run is left to resume.
    assert_eq!(
        scratch.run(&["runs", "resume", "--all", "--quiet"]).code,
        Some(0)
    );
    assert_eq!(server.requests().len(), 1);
    // When the process is gone, the run is free at once.
    first.kill().expect("it is killed");
    first.wait().expect("it ends");
    let runs = scratch.run(&["runs", "cancel", &id, "--json"]);
    assert_eq!(runs.code, Some(0), "{runs:?}");
}

#[test]
fn a_home_that_cannot_be_used_is_an_error_before_anything_runs() {
    let scratch = Scratch::with_local_servers();
    scratch.write(
        "flow.edn",
        "(flow/step :kv :count {:operation :increment :key \"n\"})",
    );
    scratch.write("file", "mine");
    std::fs::create_dir_all(scratch.path().join("folder/flowstone.db")).expect("a folder");
    for home in ["file", "folder"] {
        let ran = scratch.run(&["run", "flow.edn", "--home", home]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.err.contains("E0604") && ran.err.contains(home),
            "{}",
            ran.err
        );
    }
    assert_eq!(scratch.read("file"), "mine");
}

/// A limit on the size of files is a disk that takes no more.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_takes_no_more_stops_a_run_that_goes_on_later() {
    let scratch = Scratch::with_local_servers();
    scratch.write(
        "flow.edn",
        "(let [text (apply str (repeat 3000 \"0123456789\"))]
           (doseq [n (range 40)]
             (flow/step :kv :keep {:operation :set :key (str \"k\" n) :value (str n text)})
             (flow/step :kv :count {:operation :increment :key \"n\"}))
           (:value (flow/step :kv :look {:operation :get :key \"n\"})))",
    );
    let limited = "ulimit -f 1400; exec \"$0\" run flow.edn --quiet";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_flowstone")]);
    command
        .current_dir(scratch.path())
        .env("HOME", scratch.path());
    let stopped = crate::program::Ran::to_the_end(&mut command);
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert!(
        stopped.err.contains("E0608") || stopped.err.contains("E0606"),
        "{}",
        stopped.err
    );
    let ran = scratch.run(&["runs", "resume", "--all", "--quiet"]).ok();
    assert!(ran.trim().ends_with("40"), "{ran}");
}
