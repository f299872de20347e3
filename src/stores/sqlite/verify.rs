//! Verification of everything stored: whether the database is intact, texts match their digests, and files exist.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flowstone_model::blob::BlobHash;
use flowstone_model::codec::{self, Digester, digest_bytes};
use flowstone_model::ports::{Flaw, StoreError, Verified};
use rusqlite::Connection;

use super::failure::failed;
use super::journal::PLACE_BITS;
use super::{blob, payload};

/// The entries of all journals, without the events between them.
const ENTRIES: &str = "journal WHERE kind <> 'event'";
/// Maximum number of flaws of one kind that are named.
const MOST: usize = 100;

/// Checks the whole database and the files that it names. Takes as long as reading all of it.
pub(super) fn verify(db: &Connection, blobs: &Path) -> Result<Verified, StoreError> {
    let mut found = Verified::default();
    let flaws = &mut found.flaws;
    let result = integrity(db, flaws);
    noted(result, flaws)?;
    found.runs = noted(count(db, "run"), flaws)?;
    found.entries = noted(count(db, ENTRIES), flaws)?;
    found.programs = noted(programs(db, flaws), flaws)?;
    found.payloads = noted(payloads(db, flaws), flaws)?;
    noted(journals(db, flaws), flaws)?;
    noted(texts(db, flaws), flaws)?;
    noted(cells(db, flaws), flaws)?;
    found.blobs = noted(count(db, &format!("({NAMED})")), flaws)?;
    let missing = noted(missing_blobs(db, blobs), flaws)?;
    flaws.extend(missing);
    noted(changed_blobs(db, blobs, flaws), flaws)?;
    Ok(found)
}

/// Records that a part of the database cannot be read.
fn noted<T: Default>(
    result: Result<T, StoreError>,
    flaws: &mut Vec<Flaw>,
) -> Result<T, StoreError> {
    match result {
        Err(StoreError::Damaged { detail, .. }) => {
            let known = flaws.iter().any(|flaw| flaw.detail == detail);
            if !known {
                flaws.push(flaw("database", "flowstone.db", &detail));
            }
            Ok(T::default())
        }
        result => result,
    }
}

pub(super) fn count(db: &Connection, table: &str) -> Result<u64, StoreError> {
    let count = db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
        row.get::<_, i64>(0)
    });
    Ok(u64::try_from(count.map_err(failed)?).unwrap_or(0))
}

/// Adds the flaws that SQLite itself finds.
fn integrity(db: &Connection, flaws: &mut Vec<Flaw>) -> Result<(), StoreError> {
    let mut sql = db
        .prepare(&format!("PRAGMA integrity_check({MOST})"))
        .map_err(failed)?;
    let mut rows = sql.query([]).map_err(failed)?;
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                let message: String = row.get(0).map_err(failed)?;
                if message != "ok" {
                    flaws.push(flaw("database", "flowstone.db", &message));
                }
            }
            Ok(None) => return Ok(()),
            // The database is so damaged that it cannot even be scanned.
            Err(error) => {
                flaws.push(flaw("database", "flowstone.db", &error.to_string()));
                return Ok(());
            }
        }
    }
}

fn programs(db: &Connection, flaws: &mut Vec<Flaw>) -> Result<u64, StoreError> {
    // The program of an interactive prompt has a name instead of a digest.
    let sql = "SELECT hash, source FROM program WHERE length(hash) = 64";
    each(db, sql, flaws, |row| {
        let (hash, source): (String, String) = (row.get(0)?, row.get(1)?);
        let is_changed = digest_bytes(source.as_bytes()) != hash;
        Ok(is_changed.then(|| flaw("program", &hash, "its text does not match its digest")))
    })
}

fn payloads(db: &Connection, flaws: &mut Vec<Flaw>) -> Result<u64, StoreError> {
    let sql = "SELECT hash, text, parts FROM payload";
    each(db, sql, flaws, |row| {
        let (hash, text): (String, String) = (row.get(0)?, row.get(1)?);
        let text = match row.get::<_, Option<Vec<u8>>>(2)? {
            None => Ok(text),
            Some(parts) => payload::assemble(db, &parts),
        };
        Ok(match text {
            Ok(text) if digest_bytes(text.as_bytes()) == hash => None,
            Ok(_) => Some(flaw("value", &hash, "its text does not match its digest")),
            Err(StoreError::Damaged { detail, .. }) => Some(flaw("value", &hash, &detail)),
            Err(error) => Some(flaw("value", &hash, &error.to_string())),
        })
    })
}

/// Checks that entries are numbered without gaps, name an existing value, and hold readable text.
fn journals(db: &Connection, flaws: &mut Vec<Flaw>) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT coalesce(run.id, 'run ' || (journal.id >> {PLACE_BITS})), journal.path, run.id IS NULL,
                journal.blob IS NOT NULL AND payload.hash IS NULL, journal.payload, journal.blob IS NULL,
                journal.id - coalesce(lag(journal.id) OVER (PARTITION BY journal.id >> {PLACE_BITS}
                                                            ORDER BY journal.id), journal.id - 1)
         FROM journal LEFT JOIN run ON run.num = journal.id >> {PLACE_BITS}
                      LEFT JOIN payload ON payload.hash = journal.blob"
    );
    each(db, &sql, flaws, |row| {
        let (run, path): (String, String) = (row.get(0)?, row.get(1)?);
        let payload: Option<String> = row.get(4)?;
        let is_read = payload.is_none_or(|text| text.is_empty() || codec::decode(&text).is_ok());
        let why = if row.get(2)? {
            "it belongs to no run"
        } else if row.get(3)? {
            "its value is missing"
        } else if row.get::<_, i64>(6)? != 1 {
            "entries before it are missing"
        } else if !is_read {
            "its value cannot be read"
        } else {
            return Ok(None);
        };
        Ok(Some(flaw("journal", &format!("{run} {path}"), why)))
    })
    .map(drop)
}

/// The columns that hold one value each, as EDN text: the kind of row, its name, the table, the column.
const TEXTS: &[(&str, &str, &str, &str)] = &[
    ("job", "id", "job", "error"),
    ("job", "id", "job", "metadata"),
    ("job", "id", "job", "payload"),
    ("job", "id", "job", "progress"),
    ("job", "id", "job", "result"),
    ("key", "key", "kv", "metadata"),
    ("key", "key", "kv", "value"),
    ("run", "id", "run", "error"),
    ("run", "id", "run", "input"),
    ("run", "id", "run", "result"),
    ("signal", "key", "inbox", "payload"),
    ("wait", "id", "wait", "details"),
];

/// Checks that values in the database itself can be read.
fn texts(db: &Connection, flaws: &mut Vec<Flaw>) -> Result<(), StoreError> {
    for (what, name, table, column) in TEXTS {
        let sql = format!("SELECT {name}, {column} FROM {table} WHERE {column} IS NOT NULL");
        each(db, &sql, flaws, |row| {
            let (name, text): (String, String) = (row.get(0)?, row.get(1)?);
            let is_read = text.is_empty() || codec::decode(&text).is_ok();
            Ok((!is_read).then(|| flaw(what, &name, &format!("its {column} cannot be read"))))
        })?;
    }
    Ok(())
}

/// Checks that cells of tables that hold data can be read.
fn cells(db: &Connection, flaws: &mut Vec<Flaw>) -> Result<(), StoreError> {
    let mut columns: Vec<(i64, i64, String, String)> = Vec::new();
    let sql = "SELECT table_registry.id, idx, table_registry.name, table_column.name
               FROM table_column JOIN table_registry ON table_registry.id = table_id WHERE type = 'json'";
    each(db, sql, flaws, |row| {
        columns.push((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        Ok(None)
    })?;
    for (id, idx, table, column) in columns {
        let sql = format!("SELECT row_id, c{idx} FROM t_{id} WHERE c{idx} IS NOT NULL");
        each(db, &sql, flaws, |row| {
            let (number, text): (i64, String) = (row.get(0)?, row.get(1)?);
            let is_read = codec::decode(&text).is_ok();
            let why = || format!("`{column}` of row {number} cannot be read");
            Ok((!is_read).then(|| flaw("table", &table, &why())))
        })?;
    }
    Ok(())
}

/// The blobs that have a name.
const NAMED: &str = "SELECT DISTINCT hash FROM resource WHERE gone IS NULL AND length(hash) = 64";

/// Finds blobs that have a name and no file.
pub(super) fn missing_blobs(db: &Connection, folder: &Path) -> Result<Vec<Flaw>, StoreError> {
    let mut flaws = Vec::new();
    each(db, NAMED, &mut flaws, |row| {
        let hash = BlobHash(row.get(0)?);
        let is_there = blob::place(folder, &hash).is_ok_and(|path| path.is_file());
        Ok((!is_there).then(|| flaw("blob", &hash.0, "its file is missing")))
    })?;
    Ok(flaws)
}

fn changed_blobs(db: &Connection, folder: &Path, flaws: &mut Vec<Flaw>) -> Result<(), StoreError> {
    each(db, NAMED, flaws, |row| {
        let hash = BlobHash(row.get(0)?);
        let opened = blob::place(folder, &hash).ok().map(File::open);
        let Some(Ok(file)) = opened else {
            return Ok(None);
        };
        Ok(match digest_of(file) {
            Ok(digest) if digest == hash.0 => None,
            Ok(_) => Some(flaw("blob", &hash.0, "its contents do not match its hash")),
            Err(error) => Some(flaw("blob", &hash.0, &error.to_string())),
        })
    })
    .map(drop)
}

fn digest_of(mut file: File) -> std::io::Result<String> {
    let mut digester = Digester::default();
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(digester.finish()),
            length => digester.add(&part[..length]),
        }
    }
}

/// Checks each row; returns the number of rows. Only the first flaws are named.
fn each(
    db: &Connection,
    sql: &str,
    flaws: &mut Vec<Flaw>,
    mut check: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<Option<Flaw>>,
) -> Result<u64, StoreError> {
    let mut sql = db.prepare(sql).map_err(failed)?;
    let mut rows = sql.query([]).map_err(failed)?;
    let (mut count, mut named) = (0, 0);
    loop {
        let found = match rows.next() {
            Ok(Some(row)) => check(row),
            Ok(None) => return Ok(count),
            Err(error) => Err(error),
        };
        count += 1;
        match found {
            Ok(None) => {}
            Ok(Some(flaw)) => {
                named += 1;
                if named <= MOST {
                    flaws.push(flaw);
                }
            }
            // The following rows cannot be reached.
            Err(error) => {
                flaws.push(flaw("database", "flowstone.db", &error.to_string()));
                return Ok(count);
            }
        }
    }
}

fn flaw(what: &'static str, name: &str, detail: &str) -> Flaw {
    Flaw {
        what,
        name: name.to_owned(),
        detail: detail.to_owned(),
    }
}
