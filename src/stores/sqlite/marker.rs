//! The marker: a file beside the database that records its existence, so that a lost database is not taken for a new
//! project.
//!
//! It also records whether the write-ahead log may contain data that the database file lacks: from the time a process
//! opens the database until the last process has copied the log into the file. A process that opens or leaves the
//! database holds a lock on this file while it does so.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flowstone_model::ports::StoreError;
use flowstone_model::private;
use rusqlite::Connection;

use super::owner::Owner;

/// The name of the file in the home folder.
pub(super) const FILE: &str = "database.edn";
const OPEN: &str = "{:log :open}\n";
pub(super) const CLOSED: &str = "{:log :closed}\n";

/// The state that the marker records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerState {
    /// No database has been created in this folder.
    Nothing,
    /// A database exists, and its log holds nothing that the file lacks.
    Closed,
    /// A database exists, and its log belongs to it.
    Open,
}

/// The marker, locked while the database is opened or left.
pub(super) struct Marker {
    file: File,
    pub state: MarkerState,
}

impl Marker {
    /// Locks the marker of a home folder, and creates it if necessary. A home folder that cannot be written has no
    /// marker.
    pub(super) fn lock(home: &Path) -> Result<Marker, StoreError> {
        let path = home.join(FILE);
        let failed = |error: std::io::Error| StoreError::of_file(&path, &error);
        let mut file = private::open(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let state = parse(&text);
        Ok(Marker { file, state })
    }

    /// Records that the database is open.
    pub(super) fn opened(mut self, path: &Path) {
        // Without a log, nothing can be missing yet.
        if log_of(path).exists() {
            self.write(OPEN);
        }
    }

    /// Writes the state. If that fails, a later loss may go undetected; nothing else depends on it.
    fn write(&mut self, text: &str) {
        let _ = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(text.as_bytes()));
    }
}

/// Returns the state of a home folder's marker, without changing the file.
pub(super) fn read(home: &Path) -> MarkerState {
    let text = fs::read(home.join(FILE));
    text.map_or(MarkerState::Nothing, |text| parse(&text))
}

/// Parses a marker. A damaged one still means that a database exists.
fn parse(text: &[u8]) -> MarkerState {
    match text {
        b"" => MarkerState::Nothing,
        text if text == OPEN.as_bytes() => MarkerState::Open,
        _ => MarkerState::Closed,
    }
}

/// Returns the path of the write-ahead log.
pub(super) fn log_of(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

/// Refuses to open the remains of a lost database.
pub(super) fn check(state: MarkerState, path: &Path) -> Result<(), StoreError> {
    if state == MarkerState::Nothing {
        return Ok(());
    }
    let lost = |detail: &str| {
        Err(StoreError::Lost {
            path: path.display().to_string(),
            detail: detail.to_owned(),
        })
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => lost("the file is gone"),
        Ok(about) if about.len() == 0 => lost("the file is empty"),
        _ if state == MarkerState::Open && !log_of(path).exists() => {
            lost("its log flowstone.db-wal is missing, which holds the latest changes")
        }
        _ => Ok(()),
    }
}

/// Leaves the database: the last process copies the log into the file and records that.
pub(super) fn leave(home: &Path, db: &Connection, owner: &Arc<Owner>) {
    let Ok(mut marker) = Marker::lock(home) else {
        return;
    };
    owner.leave();
    if owner.has_others() || db.busy_timeout(Duration::ZERO).is_err() {
        return;
    }
    let busy = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0)
    });
    if busy == Ok(0) {
        marker.write(CLOSED);
    }
}
