//! Scratch layers: what they change, and what they leave as it is.

use std::path::PathBuf;

use flowstone_engine::blob::{BlobOp, BlobRow};
use flowstone_engine::changeset::{
    ChangesetEdit, ChangesetOp, FileState, NewChangeset, OnRace, PathChange,
};
use flowstone_engine::ids::RunId;
use flowstone_engine::kv::{KvNumber, KvOp, KvSet};
use flowstone_engine::ports::{Ack, Batch, Change, Claim, ClaimBy, Durability, Entry, EntryKind};
use flowstone_engine::ports::{ResourceQuery, Scratch, StoreOp, Stores};
use flowstone_engine::table::{
    Cell, CreateTable, Filter, JoinSide, JoinSource, MaterializeJoin, Page, PageStart, Partitions,
    RightFields, RowChoice, RowsQuery, TableName, TableOp, TableQuery, TableTarget, WriteMode,
    WriteRows,
};

use crate::bench::{Bench, block_on};

use super::STORE;

const MOST: u64 = 4 << 20;

/// A project, and a layer over it.
struct World {
    bench: Bench,
    stores: Stores,
    folder: PathBuf,
}

impl World {
    fn new() -> World {
        let bench = Bench::over(STORE);
        World {
            stores: bench.stores(),
            folder: bench.home.path().join("layer"),
            bench,
        }
    }

    fn layer(&self) -> Scratch {
        let layer = self.stores.scratch.open(&self.stores, &self.folder, MOST);
        layer.expect("a layer")
    }

    /// Makes a change in the project itself.
    fn keep(&self, ops: Vec<StoreOp>) {
        let engine = self.bench.engine_over(self.stores.clone());
        let run = self.bench.start(&engine, "1");
        let claim = block_on(self.stores.runs.claim(&run, ClaimBy::Search, 0));
        let Ok(Claim::Taken { epoch }) = claim else {
            panic!("the run is not taken: {claim:?}");
        };
        for (number, op) in ops.into_iter().enumerate() {
            block_on(self.stores.journal.commit(batch(&run, epoch, number, op))).expect("a commit");
        }
    }
}

fn batch(run: &RunId, epoch: i64, number: usize, op: StoreOp) -> Batch {
    let entry = Entry {
        kind: EntryKind::Result,
        path: format!("step{number}"),
        what: "kv".to_owned(),
        digest: String::new(),
        request: Some(String::new()),
        payload: String::new(),
        at_ms: 1,
    };
    let op = Box::new(op);
    Batch {
        run: run.clone(),
        epoch,
        durability: Durability::Full,
        ack: Ack::Durable,
        now_ms: 1,
        changes: vec![Change::Perform { op, entry }],
    }
}

fn perform(layer: &Scratch, op: StoreOp) -> Result<String, String> {
    let done = block_on(layer.changes.perform(op, 10));
    done.map_err(|error| format!("{} {error}", error.code()))
}

fn set(key: &str, value: &str) -> StoreOp {
    StoreOp::Kv(KvOp::Set(KvSet {
        key: key.to_owned(),
        value: value.to_owned(),
        ttl_seconds: None,
        metadata: None,
        if_not_exists: false,
        answer: None,
        max_value: 1_000_000,
    }))
}

fn target(name: &str) -> TableTarget {
    TableTarget::from(TableName::Name(name.to_owned()))
}

fn write(table: TableTarget, rows: &[(i64, &str)], mode: WriteMode) -> StoreOp {
    let rows = rows.iter().map(|(id, what)| {
        let what = Cell::Text((*what).to_owned());
        vec![
            ("id".to_owned(), Cell::Long(*id)),
            ("what".to_owned(), what),
        ]
    });
    StoreOp::Table(Box::new(TableOp::Write(WriteRows {
        table,
        rows: rows.collect(),
        mode,
        key_fields: vec!["id".to_owned()],
        index_fields: vec!["what".to_owned()],
    })))
}

fn rows(stores: &Stores, table: TableTarget) -> String {
    let query = TableQuery::Rows(RowsQuery {
        table,
        select: vec!["id".to_owned(), "what".to_owned()],
        filter: Filter::ALL,
        sort: Vec::new(),
        page: Page {
            limit: 100,
            from: PageStart::Offset(0),
            total: true,
        },
    });
    match block_on(stores.tables.query(query)) {
        Ok(text) => text,
        Err(error) => format!("{} {error}", error.code()),
    }
}

#[test]
fn keys_of_a_layer_are_seen_through_it_only() {
    let world = World::new();
    world.keep(vec![set("a:1", "1"), set("a:2", "2"), set("a:3", "3")]);
    let layer = world.layer();
    let increment = |key: &str| {
        let key = key.to_owned();
        StoreOp::Kv(KvOp::Increment {
            key,
            by: KvNumber::Int(5),
        })
    };
    let delete = |key: &str| {
        StoreOp::Kv(KvOp::Delete {
            key: key.to_owned(),
        })
    };
    let answer = perform(&layer, increment("a:1")).expect("a number");
    assert!(
        answer.contains(":value 6") && answer.contains(":previous 1"),
        "{answer}"
    );
    assert!(
        perform(&layer, delete("a:2"))
            .expect("deleted")
            .contains(":deleted? true")
    );
    assert!(
        perform(&layer, delete("a:2"))
            .expect("deleted")
            .contains(":deleted? false")
    );
    perform(&layer, set("a:4", "4")).expect("a value");
    let seen = |stores: &Stores| {
        let keys = block_on(stores.kv.list_keys("a:", 3, 10)).expect("keys");
        let values = ["a:1", "a:2", "a:3", "a:4"].map(|key| {
            let value = block_on(stores.kv.get(key, 10)).expect("a value");
            value.unwrap_or_default()
        });
        format!("{} {}", keys.join(" "), values.join(","))
    };
    assert_eq!(seen(&layer.stores), "a:1 a:3 a:4 6,,3,4");
    assert_eq!(seen(&world.stores), "a:1 a:2 a:3 1,2,3,");
    // What the layer has not touched is read from the project.
    world.keep(vec![set("a:1", "10"), set("a:3", "30")]);
    assert_eq!(seen(&layer.stores), "a:1 a:3 a:4 6,,30,4");
    let gone = block_on(
        layer
            .stores
            .resources
            .find("res://v1/ws/local/result/kv/a:2", 10),
    );
    assert_eq!(gone.expect("read"), None);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one world for all kinds of tables")]
fn tables_are_copied_with_their_keys_numbers_and_partitions() {
    let world = World::new();
    let partition = |key: &str| TableTarget {
        partitions: Partitions::Keys(vec![key.to_owned()]),
        ..target("parts")
    };
    world.keep(vec![
        write(
            target("notes"),
            &[(1, "a"), (2, "b"), (3, "c")],
            WriteMode::Insert,
        ),
        write(target("other"), &[(9, "z")], WriteMode::Insert),
        write(partition("north"), &[(1, "n")], WriteMode::Insert),
    ]);
    let before = [
        rows(&world.stores, target("notes")),
        rows(&world.stores, partition("north")),
    ];
    let layer = world.layer();
    assert_eq!(rows(&layer.stores, target("notes")), before[0]);
    let upsert = write(target("notes"), &[(2, "B"), (4, "d")], WriteMode::Upsert);
    let answer = perform(&layer, upsert).expect("rows");
    assert!(answer.contains(":rows-updated 1"), "{answer}");
    let again = write(target("notes"), &[(4, "d")], WriteMode::Insert);
    assert!(
        perform(&layer, again)
            .expect_err("the key is taken")
            .starts_with("E0625")
    );
    let delete = TableOp::Delete {
        table: target("notes"),
        rows: RowChoice::All,
    };
    let kept = rows(&layer.stores, target("notes"));
    for part in ["\"a\"", "\"B\"", "\"c\"", "\"d\""] {
        assert!(kept.contains(part), "{part}: {kept}");
    }
    perform(
        &layer,
        write(partition("south"), &[(1, "s")], WriteMode::Insert),
    )
    .expect("rows");
    assert!(rows(&layer.stores, partition("north")).contains("\"n\""));
    assert!(rows(&layer.stores, partition("south")).contains("\"s\""));
    // Numbers of rows are not given twice, and tables of the layer have numbers of their own.
    perform(&layer, StoreOp::Table(Box::new(delete))).expect("deleted");
    perform(
        &layer,
        write(target("notes"), &[(7, "x")], WriteMode::Insert),
    )
    .expect("a row");
    let fifth = TableQuery::Row {
        table: target("notes"),
        row: RowChoice::Id(5),
        select: Vec::new(),
    };
    let fifth = block_on(layer.stores.tables.query(fifth)).expect("the row");
    assert!(fifth.contains("\"x\""), "{fifth}");
    let create = TableOp::Create(CreateTable {
        name: "made".to_owned(),
        partitions: Vec::new(),
        columns: Vec::new(),
        key_fields: Vec::new(),
        index_fields: Vec::new(),
    });
    perform(&layer, StoreOp::Table(Box::new(create))).expect("a table");
    let names = |stores: &Stores| block_on(stores.tables.names()).expect("names").join(" ");
    assert_eq!(names(&layer.stores), "made notes other parts");
    // The project is as it was.
    assert_eq!(names(&world.stores), "notes other parts");
    let after = [
        rows(&world.stores, target("notes")),
        rows(&world.stores, partition("north")),
    ];
    assert_eq!(after, before);
    assert!(rows(&world.stores, partition("south")).starts_with("E0630"));
    let unknown = perform(
        &layer,
        StoreOp::Table(Box::new(TableOp::Delete {
            table: target("nots"),
            rows: RowChoice::All,
        })),
    );
    assert_eq!(
        unknown.expect_err("unknown"),
        "E0620 there is no table `nots`"
    );
}

#[test]
fn a_join_reads_the_layer_and_is_done_once() {
    let world = World::new();
    world.keep(vec![
        write(target("left"), &[(1, "a")], WriteMode::Insert),
        write(target("right"), &[(1, "b")], WriteMode::Insert),
    ]);
    let join = || {
        let side = |name: &str| JoinSide {
            source: JoinSource::Table(target(name)),
            select: Vec::new(),
            filter: Filter::ALL,
        };
        StoreOp::Table(Box::new(TableOp::Join(MaterializeJoin {
            left: side("left"),
            right: side("right"),
            on: vec![("id".to_owned(), "id".to_owned())],
            keep_unmatched: false,
            keep_left: None,
            right_fields: RightFields::These(Vec::new()),
            into: target("both"),
            mode: WriteMode::Insert,
            key_fields: Vec::new(),
            index_fields: Vec::new(),
            op_id: Some("once".to_owned()),
        })))
    };
    let layer = world.layer();
    perform(
        &layer,
        write(target("right"), &[(2, "c")], WriteMode::Insert),
    )
    .expect("a row");
    perform(
        &layer,
        write(target("left"), &[(2, "d")], WriteMode::Insert),
    )
    .expect("a row");
    let first = perform(&layer, join()).expect("a join");
    let both = rows(&layer.stores, target("both"));
    assert!(both.contains("\"a\"") && both.contains("\"d\""), "{both}");
    assert_eq!(perform(&layer, join()).expect("the first answer"), first);
    drop(layer);
    // A join that the project has done is known to the next layer.
    world.keep(vec![join()]);
    let layer = world.layer();
    perform(
        &layer,
        write(target("left"), &[(5, "e")], WriteMode::Insert),
    )
    .expect("a row");
    perform(&layer, join()).expect("the first answer");
    perform(&layer, join()).expect("the first answer again");
    assert!(!rows(&layer.stores, target("both")).contains("\"e\""));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one world for all kinds of blobs")]
fn blobs_and_changesets_of_a_layer_are_not_in_the_project() {
    let world = World::new();
    let open = |id: &str| {
        StoreOp::Changeset(ChangesetOp::Open(NewChangeset {
            id: id.to_owned(),
            base: "b".repeat(64),
            source: "res://v1/ws/local/bundle/source-tree/dir/b".to_owned(),
            answer: "{:opened true}".to_owned(),
        }))
    };
    let edit = |id: &str, seen: i64, path: &str| {
        StoreOp::Changeset(ChangesetOp::Edit(ChangesetEdit {
            id: id.to_owned(),
            seen,
            changes: vec![PathChange {
                path: path.to_owned(),
                now: Some(FileState {
                    kind: "file".to_owned(),
                    hash: "c".repeat(64),
                    size: 1,
                    lines: 1,
                    executable: false,
                    target: None,
                }),
                moved_from: None,
            }],
            on_race: OnRace::Fail,
            answer: "{:edited true}".to_owned(),
        }))
    };
    world.keep(vec![open("known"), edit("known", 0, "a.txt")]);
    let paths = |stores: &Stores, id: &str| {
        let overlay = block_on(stores.changesets.overlay(id)).expect("read");
        overlay.map(|it| {
            let paths: Vec<String> = it.changes.into_iter().map(|it| it.path).collect();
            format!("{} {}", it.revision, paths.join(" "))
        })
    };
    let layer = world.layer();
    assert_eq!(
        perform(&layer, edit("known", 1, "b.txt")).as_deref(),
        Ok("{:edited true}")
    );
    assert!(
        perform(&layer, open("known"))
            .expect_err("it exists")
            .starts_with("E0616")
    );
    perform(&layer, open("new")).expect("a changeset");
    assert_eq!(
        paths(&layer.stores, "known").as_deref(),
        Some("2 a.txt b.txt")
    );
    assert_eq!(paths(&layer.stores, "new").as_deref(), Some("0 "));
    assert_eq!(paths(&world.stores, "known").as_deref(), Some("1 a.txt"));
    assert_eq!(paths(&world.stores, "new"), None);
    // A blob of the project that the layer removes is gone there.
    let shared = "res://v1/ws/local/result/blob/shared";
    let put = block_on(world.stores.blobs.put(b"kept".to_vec())).expect("stored");
    let blob = BlobRow::new(shared, put, 4);
    block_on(world.stores.resources.register(blob, 1)).expect("registered");
    let is_there = |stores: &Stores| block_on(stores.blobs.find(shared)).expect("read").is_some();
    assert!(is_there(&layer.stores));
    assert!(block_on(layer.stores.resources.delete(shared, 10)).expect("deleted"));
    assert_eq!(
        (is_there(&layer.stores), is_there(&world.stores)),
        (false, true)
    );
    // Blobs: the bytes, the name, and the list of names.
    let hash = block_on(layer.stores.blobs.put(b"hello".to_vec())).expect("stored");
    let uri = "res://v1/ws/local/result/blob/x";
    let blob = Box::new(BlobRow::new(uri, hash.clone(), 5));
    let register = BlobOp::Register {
        blob,
        value: "{:kept true}".to_owned(),
    };
    assert_eq!(
        perform(&layer, StoreOp::Blob(register)).as_deref(),
        Ok("{:kept true}")
    );
    let seen = |stores: &Stores| {
        let bytes = block_on(stores.blobs.get(&hash)).ok();
        let row = block_on(stores.blobs.find(uri)).expect("read");
        (bytes, row.is_some())
    };
    assert_eq!(seen(&layer.stores), (Some(b"hello".to_vec()), true));
    assert_eq!(seen(&world.stores), (None, false));
    let mut listed = Vec::new();
    let mut query = ResourceQuery {
        limit: 1,
        now_ms: 10,
        ..ResourceQuery::default()
    };
    loop {
        let page = block_on(layer.stores.resources.list(query.clone())).expect("a page");
        listed.extend(page.rows.into_iter().map(|row| row.uri));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    listed.sort();
    let changeset = |id: &str| format!("res://v1/ws/local/bundle/changeset/files/{id}");
    assert_eq!(
        listed,
        [changeset("known"), changeset("new"), uri.to_owned()]
    );
}

#[test]
fn a_layer_is_bounded_and_removed_with_its_last_part() {
    let world = World::new();
    let layer = world.layer();
    let long = format!("\"{}\"", "x".repeat(500_000));
    let mut refused = None;
    for number in 0..20 {
        if let Err(error) = perform(&layer, set(&format!("k:{number}"), &long)) {
            refused = Some((number, error));
            break;
        }
    }
    let (number, error) = refused.expect("it is full");
    assert!(error.starts_with("E0648"), "{error}");
    // The refused change left nothing behind, and smaller ones still fit.
    let missing = block_on(layer.stores.kv.get(&format!("k:{number}"), 10)).expect("read");
    assert_eq!(missing, None);
    let large = block_on(layer.stores.blobs.put(vec![7; MOST as usize]));
    assert_eq!(large.expect_err("too large").code(), "E0648");
    let mut writer = block_on(layer.stores.blobs.begin()).expect("begun");
    let written = (0..5).map(|_| block_on(writer.write(&vec![7; 1 << 20])));
    let failed = written
        .into_iter()
        .find_map(Result::err)
        .expect("too large");
    assert_eq!(failed.code(), "E0648");
    drop(writer);
    assert!(world.folder.is_dir());
    let part = layer.stores.kv.clone();
    drop(layer);
    assert!(world.folder.is_dir(), "a part of it is in use");
    drop(part);
    assert!(!world.folder.exists());
}
