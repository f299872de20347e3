use std::fs;

use flowstone_engine::blob::{BlobHash, BlobOp, BlobRow};
use flowstone_engine::ports::{BlobWriter as _, StoreError};
use flowstone_stores::sqlite::blob::incoming::begin;
use flowstone_stores::sqlite::blob::{SCHEMA, apply, find, get, put};

fn file_of(folder: &std::path::Path, hash: &BlobHash) -> std::path::PathBuf {
    folder.join(&hash.0[..2]).join(&hash.0)
}

#[test]
fn bytes_are_read_back_by_their_hash() {
    let folder = tempfile::tempdir().expect("a folder");
    for bytes in [b"".as_slice(), b"hello", &[0, 255, 10]] {
        let hash = put(folder.path(), bytes).expect("written");
        assert_eq!(put(folder.path(), bytes).expect("written again"), hash);
        assert_eq!(get(folder.path(), &hash).expect("read"), bytes);
        let beside = fs::read_dir(folder.path().join(&hash.0[..2])).expect("a folder");
        assert_eq!(beside.count(), 1, "nothing unfinished is left");
    }
}

#[tokio::test]
async fn a_blob_can_be_written_in_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let large = vec![7; 3 << 20];
    for parts in [
        vec![],
        vec![b"hello".as_slice()],
        vec![b"a", &large, b"", b"z"],
    ] {
        let mut writer = Box::new(begin(folder.path()).expect("begun"));
        for part in &parts {
            writer.write(part).await.expect("written");
        }
        let whole = parts.concat();
        let stored = writer.finish().await.expect("finished");
        assert_eq!(stored.hash, put(folder.path(), &whole).expect("put"));
        assert_eq!(stored.size, whole.len() as u64);
        assert_eq!(get(folder.path(), &stored.hash).expect("read"), whole);
    }
}

#[tokio::test]
async fn an_unfinished_blob_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = begin(folder.path()).expect("begun");
    writer.write(&vec![7; 3 << 20]).await.expect("written");
    let files = || fs::read_dir(folder.path().join("incoming")).expect("a folder");
    assert_eq!(files().count(), 1);
    drop(writer);
    assert_eq!(files().count(), 0);
}

#[test]
fn a_changed_blob_is_detected_and_repaired() {
    let folder = tempfile::tempdir().expect("a folder");
    let hash = put(folder.path(), b"hello").expect("written");
    fs::write(file_of(folder.path(), &hash), b"hell").expect("cut off");
    assert!(matches!(
        get(folder.path(), &hash),
        Err(StoreError::Damaged { .. })
    ));
    put(folder.path(), b"hello").expect("written again");
    assert_eq!(get(folder.path(), &hash).expect("read"), b"hello");
}

#[test]
fn names_other_than_hashes_do_not_reach_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = "0".repeat(64);
    for name in ["", "..", "../../etc/passwd", "zz", &long] {
        let error = get(folder.path(), &BlobHash(name.to_owned())).expect_err("refused");
        assert_eq!(error.code(), "E0607", "{name}");
    }
}

#[test]
fn a_name_refers_to_its_latest_contents() {
    let db = rusqlite::Connection::open_in_memory().expect("a database");
    db.execute_batch(SCHEMA).expect("tables");
    db.execute_batch(flowstone_stores::sqlite::resource::SCHEMA)
        .expect("columns");
    for (hash, now) in [("a", 1), ("b", 2)] {
        let blob = BlobRow {
            filename: Some("f.txt".to_owned()),
            ..BlobRow::new("res://x", BlobHash(hash.to_owned()), 5)
        };
        let op = BlobOp::Register {
            blob: Box::new(blob),
            value: ":value".to_owned(),
        };
        assert_eq!(apply(&db, &op, now).expect("registered"), ":value");
    }
    let row = find(&db, "res://x").expect("read").expect("found");
    assert_eq!(
        (row.hash.0.as_str(), row.size, row.filename.as_deref()),
        ("b", 5, Some("f.txt"))
    );
    assert!(find(&db, "res://x' OR '1'='1").expect("read").is_none());
}

/// A full disk: `/dev/full` refuses every write, with the error of a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_no_partial_blob() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().expect("a folder");
    let bytes = vec![7; 3 << 20];
    let hash = put(folder.path(), &bytes).expect("written");
    let file = file_of(folder.path(), &hash);
    let parent = file.parent().expect("a folder").to_owned();
    fs::remove_file(&file).expect("removed");
    let unfinished = parent.join(format!(".{}-{}", hash.0, std::process::id()));
    symlink("/dev/full", &unfinished).expect("a link");
    let error = put(folder.path(), &bytes).expect_err("no space");
    assert_eq!(error.code(), "E0606");
    assert_eq!(fs::read_dir(&parent).expect("a folder").count(), 0);
    assert_eq!(
        get(folder.path(), &hash).expect_err("nothing").code(),
        "E0607"
    );
    // The same for a blob that arrives in parts.
    let incoming = folder.path().join("incoming");
    fs::create_dir_all(&incoming).expect("a folder");
    for count in 0..1_000 {
        let name = format!("{}-{count}", std::process::id());
        symlink("/dev/full", incoming.join(name)).expect("a link");
    }
    let links = || fs::read_dir(&incoming).expect("a folder").count();
    let before = links();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let error = runtime.block_on(async {
        let mut writer = begin(folder.path()).expect("begun");
        writer.write(&bytes).await?;
        Box::new(writer).finish().await
    });
    assert_eq!(error.expect_err("no space").code(), "E0606");
    assert_eq!(links(), before - 1, "the unfinished one went");
}
