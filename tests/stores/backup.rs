//! Backups that are made while other processes write, and the findings of a verification.

use std::fs;
use std::path::PathBuf;

use flowstone_engine::ports::{RunFilter, StoreError, Verified};
use flowstone_stores::Options;

use crate::bench::{Bench, block_on, outcome};

/// Large values, a blob, and steps of the project's own stores.
const FLOW: &str = "(do (dotimes [n 20] (flow/step :put :n {:value n}))
    (flow/step :write :large {:value (apply str (repeat 4000 \"0123456789\"))})
    :done)";

fn home(bench: &Bench) -> PathBuf {
    bench.home.path().join("home")
}

fn used() -> Bench {
    let bench = Bench::new();
    let engine = bench.engine();
    for _ in 0..3 {
        let run = bench.start(&engine, FLOW);
        assert_eq!(outcome(&engine, &run), ":done");
    }
    let stores = engine.stores();
    let hash = block_on(stores.blobs.put(b"some bytes".to_vec())).expect("a blob");
    drop(engine);
    // The name of the blob is a row of the registry.
    let db = rusqlite::Connection::open(home(&bench).join("flowstone.db")).expect("a database");
    db.execute(
        "INSERT INTO resource (uri, hash, size, created_ms) VALUES ('res://x', ?1, 10, 1)",
        [&hash.0],
    )
    .expect("a row");
    drop(db);
    bench
}

fn verified(bench: &Bench) -> Verified {
    block_on(bench.stores().upkeep.verify()).expect("it is looked at")
}

fn flaws(bench: &Bench) -> Vec<String> {
    let found = verified(bench).flaws.into_iter();
    found
        .map(|flaw| format!("{}: {}", flaw.what, flaw.detail))
        .collect()
}

#[test]
fn a_backup_is_a_complete_home() {
    let bench = used();
    let (stores, place) = (bench.stores(), bench.home.path().join("copy"));
    let copied = block_on(stores.upkeep.backup(&place)).expect("it is copied");
    assert_eq!(copied.runs, 3);
    let again = block_on(stores.upkeep.backup(&place));
    assert!(
        matches!(again, Err(StoreError::BackupPlace { .. })),
        "{again:?}"
    );
    let inside = block_on(stores.upkeep.backup(&home(&bench).join("copy")));
    assert!(
        matches!(inside, Err(StoreError::BackupPlace { .. })),
        "{inside:?}"
    );
    let options = Options {
        must_exist: true,
        ..Options::default()
    };
    let copy = flowstone_stores::open(&place, &options).expect("it opens");
    let (of, now) = (
        verified(&bench),
        block_on(copy.upkeep.verify()).expect("it is whole"),
    );
    assert_eq!(now, of);
    assert!(now.flaws.is_empty(), "{now:?}");
    assert!(
        now.payloads > 0 && now.blobs == 1 && now.entries > 60,
        "{now:?}"
    );
    for run in block_on(stores.runs.list(RunFilter::default())).expect("runs") {
        let one = block_on(stores.journal.load(&run.id)).expect("a journal");
        let other = block_on(copy.journal.load(&run.id)).expect("a journal");
        assert_eq!(one, other);
    }
    let left = fs::read_dir(bench.home.path()).expect("a folder").flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().contains(".part"));
    assert_eq!(left.count(), 0);
}

#[test]
fn backups_made_while_runs_are_executed_are_complete() {
    let bench = used();
    let stores = bench.stores();
    let engine = bench.engine();
    for nth in 0..5 {
        let place = bench.home.path().join(format!("copy{nth}"));
        let run = bench.start(&engine, FLOW);
        let upkeep = stores.upkeep.clone();
        let at = place.clone();
        let copying = std::thread::spawn(move || block_on(upkeep.backup(&at)).expect("a copy"));
        assert_eq!(outcome(&engine, &run), ":done");
        let copied = copying.join().expect("it is copied");
        let copy = flowstone_stores::open(&place, &Options::default()).expect("it opens");
        let found = block_on(copy.upkeep.verify()).expect("it is looked at");
        assert_eq!(
            (found.flaws.len(), found.runs),
            (0, copied.runs),
            "{found:?}"
        );
    }
}

#[test]
fn verification_names_what_is_wrong() {
    let change = |sql: &str| {
        let bench = used();
        let db = rusqlite::Connection::open(home(&bench).join("flowstone.db")).expect("a database");
        db.execute_batch(sql).expect("changed");
        drop(db);
        let mut found = flaws(&bench);
        found.dedup();
        found
    };
    assert!(change("").is_empty());
    let cases = [
        (
            "UPDATE program SET source = source || ' '",
            "program: its text does not match its digest",
        ),
        (
            "UPDATE piece SET bytes = x'41'",
            "value: its text does not match its digest",
        ),
        (
            "DELETE FROM piece",
            "value: a piece of a payload is missing",
        ),
        ("DELETE FROM payload", "journal: its value is missing"),
        (
            "DELETE FROM journal WHERE id = (SELECT min(id) + 3 FROM journal)",
            "journal: entries before it are missing",
        ),
        (
            "UPDATE journal SET payload = '{:a' WHERE payload IS NOT NULL",
            "journal: its value cannot be read",
        ),
        ("DELETE FROM run", "journal: it belongs to no run"),
        (
            "UPDATE resource SET hash = replace(hash, substr(hash, 1, 1), 'f')",
            "blob: its file is missing",
        ),
    ];
    for (sql, expected) in cases {
        let found = change(sql);
        assert!(
            found.iter().any(|it| it.contains(expected)),
            "{sql}: {found:?}"
        );
    }
}

#[test]
fn verification_looks_into_blobs_and_pages() {
    let bench = used();
    let part = fs::read_dir(home(&bench).join("blobs"))
        .expect("blobs")
        .flatten();
    let part = part
        .map(|entry| entry.path())
        .find(|path| path.is_dir())
        .expect("a folder");
    let blob = fs::read_dir(part)
        .expect("a folder")
        .flatten()
        .next()
        .expect("a blob")
        .path();
    fs::write(&blob, "other bytes").expect("written");
    assert_eq!(flaws(&bench), ["blob: its contents do not match its hash"]);
    let place = bench.home.path().join("copy");
    fs::remove_file(blob).expect("removed");
    let copied = block_on(bench.stores().upkeep.backup(&place));
    assert!(
        matches!(copied, Err(StoreError::Damaged { .. })),
        "{copied:?}"
    );
    assert!(!place.exists());
    // Damages a page of the journal.
    let path = home(&bench).join("flowstone.db");
    let db = rusqlite::Connection::open(&path).expect("a database");
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'journal'";
    let page: u32 = db.query_row(sql, [], |row| row.get(0)).expect("a page");
    let page = usize::try_from(page).expect("a small number");
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .expect("one file");
    drop(db);
    let mut bytes = fs::read(&path).expect("a file");
    bytes[(page - 1) * 4096..page * 4096].fill(0xa5);
    fs::write(&path, bytes).expect("written");
    let found = match bench.try_stores() {
        Ok(stores) => {
            block_on(stores.upkeep.verify())
                .expect("it is looked at")
                .flaws
        }
        Err(error) => panic!("{error}"),
    };
    assert!(
        found.iter().any(|flaw| flaw.what == "database"),
        "{found:?}"
    );
}
