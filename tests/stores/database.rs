//! Tests that read the files of the database, beyond what the ports return.

use std::fs;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use expect_test::expect;
use flowstone_engine::blob::{BlobHash, BlobOp, BlobRow};
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{
    Ack, Batch, Change, Claim, ClaimBy, Durability, Entry, EntryKind, RunStatus, StoreOp, Target,
};
use flowstone_engine::{Answering, Engine, codec};

use crate::bench::{Bench, block_on, outcome};
use crate::search::{keep, titles};
use crate::upkeep::{DAY, gc};
use crate::waits::{DOOR, answer_text, edn, waits};

#[test]
fn a_journal_that_does_not_match_stops_the_run() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "[(flow/step :write :a {:value 1}) (flow/step :hold :door {})]",
    );
    assert!(outcome(&engine, &run).starts_with("waiting"));
    drop(engine);
    let db = rusqlite::Connection::open(bench.home.path().join("home/flowstone.db"))
        .expect("a database");
    db.execute("UPDATE journal SET digest = 'other' WHERE path = 'a'", [])
        .expect("changed");
    drop(db);
    let engine = bench.engine();
    let found = outcome(&engine, &run).replace(run.as_str(), "RUN");
    expect![[r#"
        error E0501 the run RUN asks for something else than before at step `a`
          journal: :write {:value 1}
          now:     :write {:value 1}"#]]
    .assert_eq(&found);
    // The run is unchanged for a build that understands it.
    let row = block_on(engine.find_run(run.as_str())).expect("a run");
    assert_eq!(row.status, RunStatus::Waiting);
}

#[test]
fn large_values_are_kept_out_of_line() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(let [text (apply str (repeat 5000 \"abc\"))
               x (flow/step :write :big {:value text})
               y (flow/step :write :again {:value text})
               _ (flow/step :hold :door {})]
           [(count x) (= x y)])",
    );
    assert!(outcome(&engine, &run).starts_with("waiting"));
    let answer = codec::decode("{:action 1}").expect("EDN");
    block_on(engine.complete_wait("door", &answer, false)).expect("answered");
    expect!["[15000 true]"].assert_eq(&outcome(&engine, &run));
    drop(engine);
    let db = rusqlite::Connection::open(bench.home.path().join("home/flowstone.db"))
        .expect("a database");
    let count: i64 = db
        .query_row("SELECT count(*) FROM payload", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(count, 1);
}

#[test]
fn a_token_is_valid_only_for_what_was_shown() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, DOOR);
    outcome(&engine, &run);
    let row = waits(&engine).remove(0);
    let token = block_on(engine.stores().waits.token(&row.id)).expect("readable");
    let token = token.expect("a token");
    assert_eq!(token.len(), 32, "128 bits");
    let file = bench.home.path().join("home/flowstone.db");
    let db = rusqlite::Connection::open(file).expect("a database");
    let show = |details: &str| {
        db.execute(
            "UPDATE wait SET details = ?2 WHERE id = ?1",
            [&row.id, details],
        )
        .expect("changed")
    };
    show(&row.details.replace("door", "vault"));
    let answer = edn("{:action :approve}");
    let found = answer_text(block_on(engine.complete_wait(&token, &answer, false)));
    assert_eq!(found, "E0526");
    show(&row.details);
    let seen = |digest: &str| Answering {
        digest: Some(digest.to_owned()),
        ..Answering::default()
    };
    let give = |how: Answering| {
        answer_text(block_on(engine.answer_waits(
            Target::Name(token.clone()),
            &answer,
            how,
        )))
    };
    assert_eq!(give(seen("0000000000")), "E0526");
    assert_eq!(give(seen(&row.digest)), "answered 1");
    assert_eq!(give(seen(&row.digest)), "E0515");
    outcome(&engine, &run);
    // The same question in the next run has a different token.
    let next = bench.start(&engine, DOOR);
    outcome(&engine, &next);
    let id = waits(&engine)[0].id.clone();
    let other = block_on(engine.stores().waits.token(&id)).expect("readable");
    assert_ne!(other, Some(token));
}

#[test]
fn queries_for_waits_use_an_index() {
    let bench = Bench::new();
    drop(bench.engine());
    let db = rusqlite::Connection::open(bench.home.path().join("home/flowstone.db"));
    let db = db.expect("a database");
    let from = "FROM wait JOIN run ON run.num = wait.run WHERE";
    for condition in [
        "wait.id = 'a'",
        "wait.token = 'a'",
        "wait.key = 'a' AND wait.state = 'open' ORDER BY wait.opened_ms, wait.id",
        "wait.key = 'a' ORDER BY wait.opened_ms DESC, wait.rowid DESC LIMIT 1",
        "wait.id >= 'a' AND wait.id < 'b' ORDER BY wait.id LIMIT 6",
        "wait.run = (SELECT num FROM run WHERE id = 'a') AND wait.path = 'b'",
        "wait.state = 'open' AND wait.event = 'a' AND wait.event_key = 'b'",
        "wait.state = 'open' AND wait.event = 'a' AND wait.event_key IS NULL",
        "1 AND wait.state = 'open' AND run.id = 'a' ORDER BY wait.opened_ms, wait.id",
    ] {
        let mut plan = db
            .prepare(&format!(
                "EXPLAIN QUERY PLAN SELECT wait.id {from} {condition}"
            ))
            .expect("a question");
        let lines = plan.query_map([], |row| row.get::<_, String>(3));
        let lines: Vec<String> = lines
            .expect("a plan")
            .map(|line| line.expect("a line"))
            .collect();
        assert!(
            !lines.iter().any(|line| line.starts_with("SCAN")),
            "{condition}: {lines:?}"
        );
    }
}

/// A database from before the index is indexed by the first search.
#[test]
fn an_older_database_is_indexed_when_it_is_asked() {
    let bench = Bench::new();
    let home = bench.home.path().join("home");
    {
        let stores = bench.stores();
        block_on(keep(&stores, "old.txt", "walrus", None));
    }
    // As in a database from before the index: the resource is only in the list of those to be indexed.
    let db = rusqlite::Connection::open(home.join("flowstone.db")).expect("opened");
    let listed: i64 = db
        .query_row("SELECT count(*) FROM search_todo", [], |row| row.get(0))
        .expect("counted");
    assert_eq!(listed, 1);
    drop(db);
    let stores = bench.stores();
    assert_eq!(block_on(titles(&stores, "walrus")), "old.txt");
    drop(Arc::new(stores));
}

#[test]
fn blobs_are_removed_with_their_last_name() {
    let bench = Bench::new();
    let engine = bench.engine();
    let stores = engine.stores().clone();
    let put = |text: &str| block_on(stores.blobs.put(text.as_bytes().to_vec())).expect("put");
    let run = bench.start(&engine, "[1 (flow/step :hold :door {})]");
    outcome(&engine, &run);
    let (named, shared) = (put("named"), put("shared"));
    commit(&engine, &run, register(&named, "res://v1/a"));
    commit(&engine, &run, register(&shared, "res://v1/b"));
    put("nameless");
    let kept = bench.start(&engine, "[:see \"res://v1/b\"]");
    outcome(&engine, &kept);
    // Makes the files old.
    for part in fs::read_dir(bench.home.path().join("home/blobs"))
        .expect("a folder")
        .flatten()
    {
        for file in fs::read_dir(part.path()).into_iter().flatten().flatten() {
            let file = fs::File::options()
                .write(true)
                .open(file.path())
                .expect("a file");
            file.set_modified(UNIX_EPOCH).expect("set");
        }
    }
    bench.clock.advance(40 * DAY);
    // Stored again: a row is about to refer to it.
    put("fresh");
    let report = gc(&engine, 30);
    assert_eq!((report.resources, report.blobs.count), (0, 1), "{report:?}");
    block_on(stores.runs.terminate(&run, "enough", 0)).expect("it ends");
    bench.clock.advance(40 * DAY);
    let report = gc(&engine, 30);
    assert_eq!((report.resources, report.blobs.count), (1, 1), "{report:?}");
    let found = |uri: &str| {
        block_on(stores.blobs.find(uri))
            .expect("an answer")
            .is_some()
    };
    assert_eq!((found("res://v1/a"), found("res://v1/b")), (false, true));
    assert_eq!(
        block_on(stores.blobs.get(&shared)).expect("bytes"),
        b"shared"
    );
}

/// Commits a change of a run as the process that executes it.
fn commit(engine: &Engine, run: &RunId, change: Change) {
    let stores = engine.stores();
    let Claim::Taken { epoch, .. } =
        block_on(stores.runs.claim(run, ClaimBy::Search, 0)).expect("claimed")
    else {
        panic!("somebody has the run");
    };
    let batch = Batch {
        run: run.clone(),
        epoch,
        durability: Durability::Full,
        ack: Ack::Durable,
        now_ms: 0,
        changes: vec![change],
    };
    block_on(stores.journal.commit(batch)).expect("committed");
    block_on(stores.runs.release(run, epoch)).expect("released");
}

fn register(hash: &BlobHash, uri: &str) -> Change {
    Change::Perform {
        op: Box::new(StoreOp::Blob(BlobOp::Register {
            blob: Box::new(BlobRow::new(uri, hash.clone(), 1)),
            value: format!("{{:uri \"{uri}\"}}"),
        })),
        entry: Entry {
            kind: EntryKind::Result,
            path: uri.to_owned(),
            what: "pure".to_owned(),
            digest: String::new(),
            request: None,
            payload: String::new(),
            at_ms: 0,
        },
    }
}

#[test]
fn a_worker_without_due_runs_begins_no_transaction() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/step :hold :door {})");
    assert!(outcome(&engine, &run).starts_with("waiting"));
    let commits = || {
        let counts = block_on(engine.stores().upkeep.counts()).expect("counts");
        counts.commits.counts.iter().sum::<u64>()
    };
    let take = || block_on(engine.stores().agenda.take(bench.clock_ms(), 9)).expect("taken");
    let before = commits();
    assert_eq!((take().len(), commits()), (0, before));
    let wait = waits(&engine).remove(0);
    let one = edn("{:action :approve}");
    let answer = engine.answer_waits(Target::Name(wait.id), &one, Answering::default());
    block_on(answer).expect("answered");
    assert_eq!((take().len(), commits()), (1, before + 2));
}
