//! Files that are not Flowstone databases: they cause named errors, and stay unchanged.

use std::fs;

use crate::bench::{Bench, outcome};

fn refused(bench: &Bench) -> &'static str {
    let path = bench.home.path().join("home/flowstone.db");
    let before = fs::read(&path).expect("a file");
    let error = bench.try_stores().err().expect("refused");
    assert_eq!(fs::read(&path).expect("a file"), before, "left as it is");
    assert!(error.to_string().contains("flowstone.db"), "{error}");
    assert!(error.hint().is_some());
    error.code()
}

fn with_file(bytes: &[u8]) -> Bench {
    let bench = Bench::new();
    let home = bench.home.path().join("home");
    fs::create_dir_all(&home).expect("a folder");
    fs::write(home.join("flowstone.db"), bytes).expect("a file");
    bench
}

#[test]
fn a_text_file_is_not_a_database() {
    assert_eq!(refused(&with_file(b"hello")), "E0601");
    assert_eq!(refused(&with_file(&vec![b'x'; 10_000])), "E0601");
}

#[test]
fn a_database_of_another_program_is_refused() {
    let bench = with_file(b"");
    let path = bench.home.path().join("home/flowstone.db");
    let db = rusqlite::Connection::open(&path).expect("a database");
    db.execute_batch("CREATE TABLE theirs (x)")
        .expect("a table");
    drop(db);
    assert_eq!(refused(&bench), "E0601");
}

#[test]
fn a_database_of_a_later_build_is_too_new() {
    let bench = Bench::new();
    drop(bench.stores());
    let path = bench.home.path().join("home/flowstone.db");
    let db = rusqlite::Connection::open(&path).expect("a database");
    db.pragma_update(None, "user_version", 999).expect("set");
    drop(db);
    assert_eq!(refused(&bench), "E0603");
}

#[test]
fn a_truncated_database_is_damaged() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/step :write :a {:value 1})");
    assert_eq!(outcome(&engine, &run), "1");
    drop(engine);
    let path = bench.home.path().join("home/flowstone.db");
    let bytes = fs::read(&path).expect("a file");
    for length in [50, 100, 4096, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).expect("a file");
        let code = refused(&bench);
        assert!(["E0601", "E0602"].contains(&code), "{length}: {code}");
    }
}

#[test]
fn a_database_with_a_hole_is_damaged() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/step :write :a {:value 1})");
    assert_eq!(outcome(&engine, &run), "1");
    drop(engine);
    let path = bench.home.path().join("home/flowstone.db");
    let mut bytes = fs::read(&path).expect("a file");
    bytes[100..].fill(0xa5);
    fs::write(&path, &bytes).expect("a file");
    assert_eq!(refused(&bench), "E0602");
}
