//! Loss of power: acknowledged changes survive at FULL; at NORMAL only the last ones may be missing.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::kv::{KvNumber, KvOp};
use flowstone_engine::ports::{
    Ack, Batch, Change, Claim, ClaimBy, Durability, Entry, EntryKind, NewRun, Program, StoreOp,
    Stores,
};
use flowstone_stores::{Options, open};
use rusqlite::{Connection, OpenFlags};

use crate::bench::block_on;
use crate::lossy::{self, Image};

/// Number of batches in one test, each with two entries and a change of the project's own stores.
const BATCHES: u64 = 60;
/// Payloads from this batch on are too large for their rows.
const LARGE_FROM: u64 = 40;

fn run() -> RunId {
    RunId::from_text("power")
}

fn new_run() -> NewRun {
    NewRun {
        id: run(),
        program: Program {
            hash: "p".to_owned(),
            source: "{}".to_owned(),
            engine_abi: 1,
        },
        flow: "power".to_owned(),
        input: "nil".to_owned(),
        now_ms: 1,
        external_id: None,
        seed: 1,
        invocation: None,
        key: None,
        priority: 0,
        bindings: None,
        started_by: "manual".to_owned(),
        origin: None,
        parent: None,
        deadline_ms: None,
        trace: None,
        version: None,
        is_taken: false,
    }
}

fn entry(number: u64) -> Entry {
    let filling = if number < LARGE_FROM { 300 } else { 9_000 };
    Entry {
        kind: EntryKind::Result,
        path: format!("s#{number}"),
        what: "put".to_owned(),
        digest: String::new(),
        request: None,
        payload: format!("\"{number} {}\"", "x".repeat(filling)),
        at_ms: 1,
    }
}

fn batch(number: u64, epoch: i64, durability: Durability) -> Batch {
    let op = StoreOp::Kv(KvOp::Increment {
        key: "count".to_owned(),
        by: KvNumber::Int(1),
    });
    Batch {
        run: run(),
        epoch,
        durability,
        ack: Ack::Durable,
        now_ms: 1,
        changes: vec![
            Change::Append(entry(number)),
            Change::Perform {
                op: Box::new(op),
                entry: Entry {
                    path: format!("k#{number}"),
                    ..entry(number)
                },
            },
        ],
    }
}

/// Writes batch after batch, and records which were acknowledged. Every third one is posted without waiting.
async fn write(stores: &Stores, database: &Path, durability: Durability, acknowledged: &AtomicU64) {
    stores.runs.create(new_run()).await.expect("created");
    let Claim::Taken { epoch } = stores
        .runs
        .claim(&run(), ClaimBy::Search, 1)
        .await
        .expect("asked")
    else {
        panic!("the run is free");
    };
    let flags = OpenFlags::default();
    let other = Connection::open_with_flags_and_vfs(database, flags, lossy::NAME).expect("opens");
    for number in 1..=BATCHES {
        let batch = batch(number, epoch, durability);
        if number % 3 == 0 {
            stores.journal.post(batch).expect("handed over");
            continue;
        }
        stores.journal.commit(batch).await.expect("committed");
        acknowledged.store(number, Ordering::SeqCst);
        // At intervals, the log is copied into the file and restarted.
        if number % 7 == 0 {
            other
                .query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))
                .expect("a checkpoint");
        }
    }
}

/// Opens the remaining files, and returns the number of batches in them: without gaps, and with their changes of the
/// stores.
fn batches_left(image: &Image) -> u64 {
    let folder = tempfile::tempdir_in(scratch()).expect("a folder");
    image.restore(folder.path());
    let stores = open(folder.path(), &Options::default()).expect("what is left opens");
    let entries = block_on(stores.journal.load(&run())).expect("the journal is read");
    let count = entries.len() as u64 / 2;
    for (idx, pair) in entries.chunks(2).enumerate() {
        let number = idx as u64 + 1;
        assert_eq!(pair[0], entry(number));
        assert_eq!(pair[1].path, format!("k#{number}"));
    }
    let counted = block_on(stores.kv.get("count", 2)).expect("the key is read");
    let counted = counted.map_or(0, |text| {
        codec::decode(&text)
            .expect("EDN")
            .as_int()
            .expect("a number")
    });
    assert_eq!(counted.cast_unsigned(), count, "both or none");
    drop(stores);
    let db = Connection::open(folder.path().join("flowstone.db")).expect("opens");
    let whole: String = db
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("checked");
    assert_eq!(whole, "ok");
    count
}

/// Returns a folder in which syncs cost nothing, if there is one.
pub fn scratch() -> std::path::PathBuf {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    }
}

/// Writes on the lossy file layer, and returns for each image how many batches were acknowledged and how many are left.
fn lose_power(
    durability: Durability,
    acknowledged: &'static AtomicU64,
    note: fn() -> u64,
) -> Vec<(u64, u64)> {
    let folder = tempfile::tempdir_in(scratch()).expect("a folder");
    let home = folder.path().canonicalize().expect("a path");
    let options = Options {
        vfs: Some(lossy::NAME.to_owned()),
        ..Options::default()
    };
    lossy::watch(&home, 9, note);
    let stores = open(&home, &options).expect("opens");
    block_on(write(
        &stores,
        &home.join("flowstone.db"),
        durability,
        acknowledged,
    ));
    drop(stores);
    let images = lossy::images(&home);
    assert!(images.len() > 50, "{} images", images.len());
    images
        .iter()
        .map(|image| (image.note, batches_left(image)))
        .collect()
}

#[test]
fn full_durability_keeps_every_acknowledged_change() {
    static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);
    let left = lose_power(Durability::Full, &ACKNOWLEDGED, || {
        ACKNOWLEDGED.load(Ordering::SeqCst)
    });
    for (acknowledged, left) in &left {
        assert!(
            left >= acknowledged,
            "{left} left, {acknowledged} acknowledged"
        );
    }
    assert!(
        left.iter()
            .any(|(acknowledged, _)| *acknowledged > BATCHES - 5)
    );
}

#[test]
fn relaxed_durability_loses_only_the_last_changes() {
    static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);
    let left = lose_power(Durability::Relaxed, &ACKNOWLEDGED, || {
        ACKNOWLEDGED.load(Ordering::SeqCst)
    });
    // Gaps were checked before. The layer does lose writes: some image lacks a batch.
    assert!(left.iter().any(|(acknowledged, left)| left < acknowledged));
    assert!(left.iter().any(|(_, left)| *left > 0));
}
