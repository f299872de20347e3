//! Runs that earlier builds made: this build replays and continues them. See `tests/golden/README.md`.

use std::path::{Path, PathBuf};

use crate::program::{Ran, Scratch};
use crate::tidy::root;

fn folder() -> PathBuf {
    root().join("tests/golden")
}

/// Returns the folders with a flow, sorted.
fn cases() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("the folder is there");
    let mut cases: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    if std::env::var_os("MAKE_GOLDEN").is_some() {
        for case in &cases {
            make(case);
        }
    }
    cases
}

fn text(case: &Path, name: &str) -> String {
    std::fs::read_to_string(case.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn project(case: &Path) -> Scratch {
    let scratch = Scratch::new();
    for entry in std::fs::read_dir(case).expect("it is listed") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        scratch.write(&name, std::fs::read(&path).expect("it is listed"));
    }
    scratch
}

/// Writes the runs of a case that has none.
fn make(case: &Path) {
    if case.join("finished.run").exists() {
        return;
    }
    let scratch = project(case);
    let ran = scratch.run(&["run", "flow.edn", "--input", "@input.edn", "--json"]);
    let run = ran.json()["run"].as_str().expect("a run").to_owned();
    let export = |name: &str| {
        scratch
            .run(&["runs", "export", &run, name, "--children"])
            .ok();
        std::fs::copy(scratch.path().join(name), case.join(name)).expect("a file");
    };
    let is_open = ran.json()["status"] == "waiting";
    if is_open {
        export("waiting.run");
    }
    let result = answer_all(&scratch, &run);
    std::fs::write(case.join("expected.edn"), result + "\n").expect("a file");
    export("finished.run");
}

/// Answers waits until the run is over, and returns its result as EDN text.
fn answer_all(scratch: &Scratch, run: &str) -> String {
    for _ in 0..20 {
        let ran = scratch.run(&["runs", "resume", run, "--quiet"]);
        if ran.code == Some(0) {
            return one_line(&ran);
        }
        if ran.code == Some(1) {
            let row = scratch.run(&["runs", "show", run, "--json"]).json();
            return row["status"].as_str().unwrap_or_default().to_owned();
        }
        let waits = scratch.run(&["waits", "list", "--json"]).json();
        let waits = waits["waits"].as_array().expect("a list").clone();
        assert!(!waits.is_empty(), "it can go on: {ran:?}");
        for wait in waits {
            let id = wait["id"].as_str().expect("an id");
            let value = ["--value", "@answer.edn", "--no-resume", "--quiet"];
            let answer = [&["waits", "complete", id][..], &value].concat();
            scratch.run(&answer).ok();
        }
    }
    panic!("the run does not end");
}

fn one_line(ran: &Ran) -> String {
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    words.join(" ")
}

/// Moves the deadlines of open waits far ahead: a day after the runs were made, their waits are over.
fn postpone(db: &rusqlite::Connection) {
    const YEAR_2200: i64 = 7_258_118_400_000;
    let changed = db.execute(
        "UPDATE wait SET deadline_ms = ?1 WHERE state = 'open' AND deadline_ms IS NOT NULL",
        [YEAR_2200],
    );
    changed.expect("the waits are changed");
}

fn database(scratch: &Scratch) -> rusqlite::Connection {
    let path = scratch.path().join(".flowstone/flowstone.db");
    rusqlite::Connection::open(path).expect("a database")
}

#[test]
fn finished_runs_are_replayed() {
    for case in cases() {
        let scratch = project(&case);
        let ran = scratch.run(&["runs", "replay", "finished.run"]);
        assert_eq!(ran.code, Some(0), "{}: {ran:?}", case.display());
        assert!(ran.out.contains("the same end"), "{ran:?}");
        assert!(!scratch.path().join(".flowstone").exists());
    }
}

#[test]
fn waiting_runs_go_on() {
    for case in cases() {
        if !case.join("waiting.run").exists() {
            continue;
        }
        let scratch = project(&case);
        let imported = scratch.run(&["runs", "import", "waiting.run", "--json"]);
        let run = imported.json()["runs"][0].as_str().map(str::to_owned);
        let run = run.unwrap_or_else(|| panic!("{}: {imported:?}", case.display()));
        postpone(&database(&scratch));
        let result = answer_all(&scratch, &run);
        assert_eq!(
            result,
            text(&case, "expected.edn").trim_end(),
            "{}",
            case.display()
        );
        scratch.run(&["runs", "replay", &run]).ok();
    }
}

#[test]
fn a_database_of_the_first_format_is_brought_up_to_date() {
    let scratch = Scratch::new();
    scratch.write(".flowstone/owners/none", "");
    let db = database(&scratch);
    let sql = std::fs::read_to_string(folder().join("format-1.sql")).expect("it is in the tree");
    db.execute_batch(&sql).expect("SQL");
    db.execute_batch(
        "PRAGMA application_id = 1181511543; PRAGMA user_version = 1; PRAGMA journal_mode = WAL",
    )
    .expect("SQL");
    postpone(&db);
    drop(db);
    let runs = scratch.run(&["runs", "list", "--json"]).json();
    let statuses: Vec<&str> = runs["runs"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|run| run["status"].as_str())
        .collect();
    assert_eq!(statuses, ["waiting", "completed"]);
    assert_eq!(runs["runs"][0]["quarantine"], serde_json::Value::Null);
    let over = runs["runs"][1]["id"].as_str().expect("an id");
    scratch.run(&["runs", "replay", over]).ok();
    let value = ["--value", "{:action :go}", "--quiet"];
    let answer = [&["waits", "complete", "door"][..], &value].concat();
    let answered = scratch.run(&answer).ok();
    assert_eq!(answered.trim(), "{:length 8200, :ok {:action :go}}");
    let shown = scratch.run(&["runs", "show", over]).ok();
    assert!(shown.contains("before the wait"), "{shown}");
}
