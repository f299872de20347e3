//! Changesets of `:files`: edits over a source tree, one row for each path.
//!
//! Each edit increments the revision of its changeset and writes it into its rows. So an edit that was made for an
//! earlier revision is compared with later ones: only changes of its own paths conflict.

use flowstone_model::changeset::{
    ChangesetEdit, ChangesetOp, FileState, NewChangeset, OnRace, Overlay, PathChange, Referenced,
};
use flowstone_model::ports::{Changesets, PortFuture, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::Sqlite;
use super::failure::{failed, rejected, with_hint};

impl Changesets for Sqlite {
    fn overlay(&self, id: &str) -> PortFuture<'_, Option<Overlay>> {
        let id = id.to_owned();
        self.read_settled(move |db| overlay(db, &id))
    }

    fn referenced(&self) -> PortFuture<'_, Referenced> {
        self.read_settled(referenced)
    }
}

/// The tables of this part.
pub(crate) const SCHEMA: &str = "
CREATE TABLE changeset (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    -- The hash of the manifest of its source tree.
    base TEXT NOT NULL,
    source TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
);
CREATE INDEX changeset_base ON changeset (base);
CREATE TABLE changeset_entry (
    changeset INTEGER NOT NULL REFERENCES changeset (num),
    path TEXT NOT NULL,
    -- In which it was written last.
    revision INTEGER NOT NULL,
    -- NULL where nothing is at the path any more.
    kind TEXT,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    executable INTEGER NOT NULL,
    target TEXT,
    moved_from TEXT,
    PRIMARY KEY (changeset, path)
) WITHOUT ROWID;
CREATE INDEX changeset_entry_hash ON changeset_entry (hash);
";

/// Makes a change and returns its result as EDN text. Must run in a transaction.
///
/// # Errors
/// [`StoreError::Rejected`] when the operation does not fit the changeset: then nothing is changed.
pub(crate) fn apply(db: &Connection, op: &ChangesetOp, now_ms: i64) -> Result<String, StoreError> {
    match op {
        ChangesetOp::Open(new) => open(db, new, now_ms),
        ChangesetOp::Edit(edit) => change(db, edit, now_ms),
    }
}

fn open(db: &Connection, new: &NewChangeset, now_ms: i64) -> Result<String, StoreError> {
    let added = db
        .prepare_cached(
            "INSERT OR IGNORE INTO changeset (id, base, source, revision, created_ms, updated_ms)
             VALUES (?1, ?2, ?3, 0, ?4, ?4)",
        )
        .and_then(|mut sql| sql.execute(params![new.id, new.base, new.source, now_ms]))
        .map_err(failed)?;
    match added {
        0 => Err(exists(&new.id)),
        _ => Ok(new.answer.clone()),
    }
}

/// Tells whether a changeset exists.
///
/// # Errors
/// When the database cannot be read.
pub(crate) fn has(db: &Connection, id: &str) -> Result<bool, StoreError> {
    db.prepare_cached("SELECT 1 FROM changeset WHERE id = ?1")
        .and_then(|mut sql| sql.exists([id]))
        .map_err(failed)
}

/// Adds a changeset with its current state, as a copy. All its changes count as made in its last revision.
///
/// # Errors
/// When the database cannot be written.
pub(crate) fn keep(db: &Connection, known: &Overlay, now_ms: i64) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO changeset (id, base, source, revision, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
        params![known.id, known.base, known.source, known.revision, now_ms],
    )
    .map_err(failed)?;
    let num = db.last_insert_rowid();
    let mut changes = known.changes.iter();
    changes.try_for_each(|change| write(db, num, known.revision, change))
}

/// Refuses a second changeset with the same id.
pub(crate) fn exists(id: &str) -> StoreError {
    let message = format!("the changeset `{id}` exists already");
    rejected("E0616", "conflict", message)
}

fn change(db: &Connection, edit: &ChangesetEdit, now_ms: i64) -> Result<String, StoreError> {
    let found = db
        .prepare_cached("SELECT num, revision FROM changeset WHERE id = ?1")
        .and_then(|mut sql| {
            sql.query_row([&edit.id], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })
            .optional()
        })
        .map_err(failed)?;
    let Some((num, revision)) = found else {
        return Err(unknown(&edit.id));
    };
    if revision > edit.seen {
        for change in &edit.changes {
            check_race(db, num, edit, &change.path)?;
        }
    }
    if edit.changes.is_empty() {
        return Ok(edit.answer.clone());
    }
    db.prepare_cached("UPDATE changeset SET revision = ?2, updated_ms = ?3 WHERE num = ?1")
        .and_then(|mut sql| sql.execute(params![num, revision + 1, now_ms]))
        .map_err(failed)?;
    for change in &edit.changes {
        write(db, num, revision + 1, change)?;
    }
    Ok(edit.answer.clone())
}

pub(crate) fn unknown(id: &str) -> StoreError {
    with_hint(
        rejected(
            "E0614",
            "not-found",
            format!("there is no changeset `{id}`"),
        ),
        "`:op :init-changeset` makes one; it may have been made in another project folder",
    )
}

/// Refuses a path if it, a folder that contains it, or a path below it was changed after the revision of the edit.
fn check_race(
    db: &Connection,
    num: i64,
    edit: &ChangesetEdit,
    path: &str,
) -> Result<(), StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT path FROM changeset_entry WHERE changeset = ?1 AND revision > ?2 AND path >= ?3 AND path < ?4",
        )
        .map_err(failed)?;
    let mut changed = |from: &str, to: &str| -> Result<Option<String>, StoreError> {
        sql.query_row(params![num, edit.seen, from, to], |row| row.get(0))
            .optional()
            .map_err(failed)
    };
    // `/` is followed by `0`, and no text sorts between a text and the same text with a NUL appended.
    let inside = changed(&format!("{path}/"), &format!("{path}0"))?;
    let itself = |end: usize| (path[..end].to_owned(), format!("{}\0", &path[..end]));
    let ends = path
        .match_indices('/')
        .map(|(at, _)| at)
        .chain([path.len()]);
    let mut found = inside;
    for end in ends {
        if found.is_none() {
            let (from, to) = itself(end);
            found = changed(&from, &to)?;
        }
    }
    let Some(other) = found else {
        return Ok(());
    };
    Err(raced(edit.on_race, &other))
}

/// Refuses an edit of a path that was changed in the meantime.
pub(crate) fn raced(on_race: OnRace, path: &str) -> StoreError {
    let message = format!("`{path}` was changed by another process while this step was running");
    match on_race {
        OnRace::Repeat => rejected("E0615", StoreError::RACED, message),
        OnRace::Fail => with_hint(
            rejected("E0615", "conflict", message),
            "read it again and decide; nothing was written",
        ),
    }
}

fn write(db: &Connection, num: i64, revision: i64, change: &PathChange) -> Result<(), StoreError> {
    let now = change.now.as_ref();
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    db.prepare_cached(
        "INSERT OR REPLACE INTO changeset_entry
           (changeset, path, revision, kind, hash, size, lines, executable, target, moved_from)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            num,
            change.path,
            revision,
            now.map(|it| it.kind.as_str()),
            now.map_or("", |it| it.hash.as_str()),
            now.map_or(0, |it| number(it.size)),
            now.map_or(0, |it| number(it.lines)),
            now.is_some_and(|it| it.executable),
            now.and_then(|it| it.target.as_deref()),
            change.moved_from
        ])
    })
    .map(drop)
    .map_err(failed)
}

/// Returns the current state of a changeset with all its changes.
///
/// # Errors
/// When the database cannot be read.
pub(crate) fn overlay(db: &Connection, id: &str) -> Result<Option<Overlay>, StoreError> {
    // Both queries read the same snapshot.
    let snapshot = db.unchecked_transaction().map_err(failed)?;
    let found = snapshot
        .prepare_cached("SELECT num, base, source, revision FROM changeset WHERE id = ?1")
        .and_then(|mut sql| {
            sql.query_row([id], |row| {
                let overlay = Overlay {
                    id: id.to_owned(),
                    base: row.get(1)?,
                    source: row.get(2)?,
                    revision: row.get(3)?,
                    changes: Vec::new(),
                };
                Ok((row.get::<_, i64>(0)?, overlay))
            })
            .optional()
        })
        .map_err(failed)?;
    let Some((num, mut overlay)) = found else {
        return Ok(None);
    };
    overlay.changes = snapshot
        .prepare_cached(
            "SELECT path, kind, hash, size, lines, executable, target, moved_from
             FROM changeset_entry WHERE changeset = ?1 ORDER BY path",
        )
        .and_then(|mut sql| sql.query_map([num], path_change)?.collect())
        .map_err(failed)?;
    Ok(Some(overlay))
}

fn path_change(row: &Row<'_>) -> rusqlite::Result<PathChange> {
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    let now = match row.get::<_, Option<String>>(1)? {
        None => None,
        Some(kind) => Some(FileState {
            kind,
            hash: row.get(2)?,
            size: unsigned(row.get(3)?),
            lines: unsigned(row.get(4)?),
            executable: row.get(5)?,
            target: row.get(6)?,
        }),
    };
    Ok(PathChange {
        path: row.get(0)?,
        now,
        moved_from: row.get(7)?,
    })
}

/// Returns the objects and trees that changesets refer to.
///
/// # Errors
/// When the database cannot be read.
pub(crate) fn referenced(db: &Connection) -> Result<Referenced, StoreError> {
    let all = |query: &str| {
        db.prepare_cached(query)
            .and_then(|mut sql| {
                sql.query_map([], |row| row.get(0))?
                    .collect::<rusqlite::Result<Vec<String>>>()
            })
            .map_err(failed)
    };
    Ok(Referenced {
        objects: all("SELECT DISTINCT hash FROM changeset_entry WHERE hash <> '' ORDER BY 1")?,
        trees: all("SELECT DISTINCT base FROM changeset ORDER BY 1")?,
    })
}
