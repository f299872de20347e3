//! The folder with the contents of blobs; each file is named by its hash.
//!
//! Bytes are written before the transaction that registers them: a crash between the two leaves a file without a name
//! in the registry, never a name without a file.

pub mod incoming;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use flowstone_model::blob::{BlobHash, BlobOp};
use flowstone_model::codec::digest_bytes;
use flowstone_model::ports::{BlobRow, Removed, StoreError, wall_clock_ms};
use flowstone_model::private;
use flowstone_model::rooted::open_regular;
use rusqlite::Connection;

use super::failure::{failed, rejected, with_hint};
use super::resource;

/// The tables of this part.
pub const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS resource (
    uri TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    filename TEXT,
    content_type TEXT,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS resource_hash ON resource (hash);
";

/// Makes a change and returns its result as EDN text. Must run in a transaction.
///
/// # Errors
/// When the database cannot be written.
pub fn apply(db: &Connection, op: &BlobOp, now_ms: i64) -> Result<String, StoreError> {
    let BlobOp::Register { blob, value } = op;
    resource::register(db, blob, now_ms)?;
    Ok(value.clone())
}

/// Returns the row of the blob that a resource name refers to.
///
/// # Errors
/// When the database cannot be read.
pub fn find(db: &Connection, uri: &str) -> Result<Option<BlobRow>, StoreError> {
    resource::from_blob(db, uri)
}

/// Writes bytes to the folder unless they exist there, and returns their hash.
///
/// # Errors
/// When the folder cannot be written.
pub fn put(folder: &Path, bytes: &[u8]) -> Result<BlobHash, StoreError> {
    let hash = BlobHash(digest_bytes(bytes));
    let path = place(folder, &hash)?;
    let parent = path.parent().unwrap_or(folder);
    private::make_folder(parent).map_err(|error| unwritable(parent, &error))?;
    let _lock = lock(folder, Sharing::Shared)?;
    if is_there(&path, bytes.len() as u64) {
        return Ok(hash);
    }
    let unfinished = parent.join(format!(".{}-{}", hash.0, std::process::id()));
    let written = private::create(&unfinished)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&unfinished, &path))
        // The entry of the file is durable only when its folder is.
        .and_then(|()| File::open(parent)?.sync_all());
    written.map_err(|error| {
        let _ = fs::remove_file(&unfinished);
        unwritable(&path, &error)
    })?;
    Ok(hash)
}

/// Tells whether a file is complete, and updates its time: the caller is about to refer to it.
fn is_there(path: &Path, length: u64) -> bool {
    let Ok(file) = File::options().write(true).open(path) else {
        return false;
    };
    let is_whole = file.metadata().is_ok_and(|found| found.len() == length);
    let now = Duration::from_millis(wall_clock_ms().max(0).cast_unsigned());
    is_whole && file.set_modified(UNIX_EPOCH + now).is_ok()
}

/// Returns the files of blobs that have no name and were last stored before a time, with their sizes.
pub(super) fn unnamed(
    db: &Connection,
    folder: &Path,
    older_than_ms: i64,
) -> Result<Vec<(PathBuf, u64)>, StoreError> {
    let mut found = Vec::new();
    // The folder does not exist before the first blob.
    let parts = fs::read_dir(folder).into_iter().flatten().flatten();
    for part in parts {
        let files = fs::read_dir(part.path()).into_iter().flatten().flatten();
        for path in files.map(|file| file.path()) {
            if let Some(bytes) = old_bytes(&path, older_than_ms)
                && !is_named(db, &path)?
            {
                found.push((path, bytes));
            }
        }
    }
    Ok(found)
}

/// Removes those of the given files that still have no name. Must run in a transaction, so that no process can name one
/// in the meantime; a process that stores such a blob waits for the lock, and then finds the file removed, or has
/// updated its time before.
pub(super) fn remove(
    db: &Connection,
    folder: &Path,
    files: &[PathBuf],
    older_than_ms: i64,
) -> Result<Removed, StoreError> {
    let _lock = lock(folder, Sharing::Alone)?;
    let mut all = Removed::default();
    for path in files {
        if let Some(bytes) = old_bytes(path, older_than_ms)
            && !is_named(db, path)?
            && fs::remove_file(path).is_ok()
        {
            all += Removed { count: 1, bytes };
        }
    }
    Ok(all)
}

fn is_named(db: &Connection, path: &Path) -> Result<bool, StoreError> {
    let hash = path.file_name().unwrap_or_default().to_string_lossy();
    db.prepare_cached(
        "SELECT 1 FROM resource WHERE hash = ?1 UNION ALL SELECT 1 FROM changeset WHERE base = ?1",
    )
    .and_then(|mut sql| sql.exists([&hash]))
    .map_err(failed)
}

/// Returns the size of a file that was last modified before a time; `None` for a newer one.
fn old_bytes(path: &Path, older_than_ms: i64) -> Option<u64> {
    let about = fs::metadata(path).ok()?;
    let touched = about.modified().ok()?;
    let touched = touched.duration_since(UNIX_EPOCH).ok()?;
    let is_old = i64::try_from(touched.as_millis()).ok()? < older_than_ms;
    (is_old && about.is_file()).then_some(about.len())
}

/// Who else may hold the lock of the folder at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// Other processes that store blobs.
    Shared,
    /// No other process.
    Alone,
}

/// Locks the folder until the returned file is closed.
fn lock(folder: &Path, sharing: Sharing) -> Result<File, StoreError> {
    let path = folder.join(".lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| unwritable(&path, &error))?;
    let locked = match sharing {
        Sharing::Shared => file.lock_shared(),
        Sharing::Alone => file.lock(),
    };
    locked.map_err(|error| unwritable(&path, &error))?;
    Ok(file)
}

/// Reads a regular file; a fifo or device in its place is refused.
fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = open_regular(path)?;
    let size = file.metadata()?.len();
    bytes.reserve_exact(usize::try_from(size).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the bytes of a blob and verifies their hash.
///
/// # Errors
/// [`StoreError::Rejected`] with kind `not-found` when the blob does not exist; [`StoreError::Damaged`] when its
/// contents have changed.
pub fn get(folder: &Path, hash: &BlobHash) -> Result<Vec<u8>, StoreError> {
    let path = place(folder, hash)?;
    let bytes = read_whole(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => missing(hash),
        _ => StoreError::of_reading(&path, &error),
    })?;
    if digest_bytes(&bytes) != hash.0 {
        return Err(StoreError::Damaged {
            path: path.display().to_string(),
            detail: "its contents do not match its hash".to_owned(),
        });
    }
    Ok(bytes)
}

/// Reads some bytes of a blob.
///
/// # Errors
/// As [`get`], but changed contents are not detected.
pub fn part(
    folder: &Path,
    hash: &BlobHash,
    start: u64,
    length: usize,
) -> Result<Vec<u8>, StoreError> {
    use std::io::{Seek as _, SeekFrom};
    let path = place(folder, hash)?;
    let read = || {
        let mut file = open_regular(&path)?;
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => missing(hash),
        _ => StoreError::of_reading(&path, &error),
    })
}

/// The error for a blob that does not exist.
pub(crate) fn missing(hash: &BlobHash) -> StoreError {
    let message = format!("the blob {} does not exist", hash.0);
    with_hint(
        rejected("E0607", "not-found", message),
        "it was removed, or the folder of a run was copied without its blobs",
    )
}

/// Returns the path `ab/abcdef...`, so that no folder becomes too large.
pub(super) fn place(folder: &Path, hash: &BlobHash) -> Result<PathBuf, StoreError> {
    let well_formed = hash.0.len() == 64 && hash.0.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !well_formed {
        return Err(rejected(
            "E0607",
            "not-found",
            format!("`{}` is not the name of a blob", hash.0),
        ));
    }
    Ok(folder.join(&hash.0[..2]).join(&hash.0))
}

fn unwritable(path: &Path, error: &std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull => StoreError::Full {
            path: path.display().to_string(),
        },
        _ => StoreError::of_reading(path, error),
    }
}
