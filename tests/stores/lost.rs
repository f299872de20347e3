//! A home folder whose database was lost is refused, and is not taken for a new one.

use std::fs;
use std::path::{Path, PathBuf};

use flowstone_engine::ports::{RunFilter, StoreError};
use flowstone_stores::Options;

use crate::bench::{Bench, block_on, outcome};

const FLOW: &str = "(flow/step :write :a {:value 1})";

fn home(bench: &Bench) -> PathBuf {
    bench.home.path().join("home")
}

/// Returns a home folder with a finished run.
fn used() -> Bench {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, FLOW);
    assert_eq!(outcome(&engine, &run), "1");
    drop(engine);
    bench
}

/// Returns a copy of a home folder in the state that a killed process leaves: nothing was copied from the log.
fn killed(bench: &Bench) -> Bench {
    let engine = bench.engine();
    let run = bench.start(&engine, FLOW);
    assert_eq!(outcome(&engine, &run), "1");
    let copy = Bench::new();
    copy_folder(&home(bench), &home(&copy));
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).expect("a copy")),
        }
    }
}

fn count(bench: &Bench) -> usize {
    let stores = bench.stores();
    block_on(stores.runs.list(RunFilter::default()))
        .expect("a list")
        .len()
}

fn lost(bench: &Bench) -> String {
    for must_exist in [true, false] {
        let options = Options {
            must_exist,
            ..Options::default()
        };
        let opened = flowstone_stores::open(&home(bench), &options);
        let Err(StoreError::Lost { .. }) = opened else {
            panic!("must_exist {must_exist}: {:?}", opened.err());
        };
    }
    let error = bench.try_stores().err().expect("refused");
    assert_eq!(error.code(), "E0619");
    let text = error.to_string();
    let detail = text.rsplit_once("lost: ").expect("a reason").1;
    detail.to_owned()
}

#[test]
fn an_empty_or_missing_database_is_lost() {
    let bench = used();
    let path = home(&bench).join("flowstone.db");
    fs::write(&path, "").expect("a file");
    assert_eq!(lost(&bench), "the file is empty");
    fs::remove_file(&path).expect("removed");
    assert_eq!(lost(&bench), "the file is gone");
    assert!(!path.exists(), "none is made in its place");
    // Replaces it by an empty database.
    let db = rusqlite::Connection::open(&path).expect("a database");
    db.execute_batch("PRAGMA application_id = 1181511543; CREATE TABLE x (y); DROP TABLE x;")
        .expect("a database");
    drop(db);
    assert_eq!(lost(&bench), "it is empty");
    // Without the marker it is a new project.
    fs::remove_dir_all(home(&bench)).expect("removed");
    assert_eq!(count(&bench), 0);
}

#[test]
fn a_log_that_is_missing_after_a_kill_is_lost() {
    let bench = killed(&used());
    let log = home(&bench).join("flowstone.db-wal");
    let saved = fs::read(&log).expect("a log");
    fs::remove_file(&log).expect("removed");
    let missing = "its log flowstone.db-wal is missing, which holds the latest changes";
    assert_eq!(lost(&bench), missing);
    assert!(!log.exists(), "none is made in its place");
    fs::write(&log, saved).expect("a file");
    assert_eq!(count(&bench), 2);
    // The first process of a home folder was killed.
    let young = killed(&Bench::new());
    fs::remove_file(home(&young).join("flowstone.db-wal")).expect("removed");
    assert_eq!(lost(&young), missing);
}

#[test]
fn a_copied_log_may_be_missing() {
    let bench = used();
    for _ in 0..3 {
        fs::remove_file(home(&bench).join("flowstone.db-wal")).expect("a log");
        let _ = fs::remove_file(home(&bench).join("flowstone.db-shm"));
        assert_eq!(count(&bench), 1);
    }
}

#[test]
fn two_processes_that_end_at_once_leave_an_empty_log() {
    let bench = used();
    let (one, other) = (bench.stores(), bench.stores());
    let threads = [one, other].map(|stores| std::thread::spawn(move || drop(stores)));
    for thread in threads {
        thread.join().expect("it leaves");
    }
    let marker = fs::read_to_string(home(&bench).join("database.edn")).expect("a marker");
    assert_eq!(marker, "{:log :closed}\n");
    let log = fs::metadata(home(&bench).join("flowstone.db-wal")).expect("a log");
    assert_eq!(log.len(), 0);
}

#[test]
fn a_read_only_home_can_be_read() {
    let options = Options {
        read_only: true,
        must_exist: true,
        ..Options::default()
    };
    for bench in [used(), killed(&used())] {
        let before = names(&home(&bench));
        let expected = match fs::read_to_string(home(&bench).join("database.edn")) {
            Ok(text) if text.contains("open") => 2,
            _ => 1,
        };
        let stores = flowstone_stores::open(&home(&bench), &options).expect("it is read");
        let runs = block_on(stores.runs.list(RunFilter::default())).expect("a list");
        assert_eq!(runs.len(), expected);
        let claimed = block_on(stores.runs.claim(
            &runs[0].id,
            flowstone_engine::ports::ClaimBy::Search,
            0,
        ));
        assert!(
            matches!(claimed, Err(StoreError::ReadOnly { .. })),
            "{claimed:?}"
        );
        drop(stores);
        assert_eq!(names(&home(&bench)), before, "nothing is left");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
