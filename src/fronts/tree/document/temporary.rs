//! Replaces documents by way of temporary files beside them, and removes those that a crash left.
//!
//! A process holds a lock on its temporary file while it writes, so a file that another process can lock is stale.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use flowstone_engine::rooted::Root;

/// The ending of the names of temporary files.
const ENDING: &str = ".tmp";
/// How many names are tried while other processes take new files for stale ones.
const TRIES: u32 = 100;

/// Replaces a file so that a reader sees the old text or the new one, also after a loss of power. The name itself is not
/// synced: a text that is older than the journal is written again.
pub(super) fn replace(root: &Root, path: &str, text: &str) -> io::Result<()> {
    let (mut file, temporary) = create(root, path)?;
    let written = file.write_all(text.as_bytes());
    let synced = written.and_then(|()| file.sync_data());
    let renamed = synced.and_then(|()| root.rename(&temporary, path));
    if renamed.is_err() {
        let _ = root.remove(&temporary);
    }
    renamed
}

/// Creates a temporary file that is locked. Returns it with its path.
fn create(root: &Root, path: &str) -> io::Result<(File, String)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (folder, name) = parts(path);
    let process = std::process::id();
    for _ in 0..TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{folder}.{name}.{process}-{number}{ENDING}");
        let file = match root.create(&temporary, 0o666) {
            // An earlier process with the same id left it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        };
        match file.try_lock() {
            // Between the creation and the lock, another process may have removed the file.
            Ok(()) if root.metadata(&temporary).is_ok() => return Ok((file, temporary)),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // Nobody can lock files here, so nobody removes them.
            Err(TryLockError::Error(_)) => return Ok((file, temporary)),
        }
    }
    let why = "other processes remove its temporary files";
    Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
}

/// Removes the temporary files of a document that no process writes.
pub(super) fn remove_stale(root: &Root, path: &str) {
    let (folder, name) = parts(path);
    let beginning = format!(".{name}.");
    let entries = std::fs::read_dir(root.path().join(folder));
    for entry in entries.into_iter().flatten().flatten() {
        let found = entry.file_name();
        let Some(found) = found.to_str().filter(|found| {
            let middle = found.strip_prefix(&*beginning);
            middle
                .and_then(|rest| rest.strip_suffix(ENDING))
                .is_some_and(is_of_process)
        }) else {
            continue;
        };
        let found = format!("{folder}{found}");
        let is_stale = root
            .file(&found)
            .is_ok_and(|file| file.try_lock().is_ok() && root.remove(&found).is_ok());
        if is_stale {
            tracing::debug!(file = %found, "a temporary file of a document was removed");
        }
    }
}

/// Tells whether a text is what [`create`] puts between the name of a document and the ending. Files of earlier versions have
/// no number.
fn is_of_process(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('-') {
        Some((process, number)) => digits(process) && digits(number),
        None => digits(text),
    }
}

/// Returns the folder of a path, with its slash, and the name.
fn parts(path: &str) -> (&str, &str) {
    let at = path.rfind('/').map_or(0, |at| at + 1);
    path.split_at(at)
}
