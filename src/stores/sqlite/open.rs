//! Opening the database file: checks of its header, settings of a connection, and the steps between formats.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flowstone_model::ports::StoreError;
use flowstone_model::private;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::failure::{failed, located, unopened};
use super::marker::{self, MarkerState};
use super::{
    Options, agenda, blob, changeset, delivery, feed, installation, jobs, journal, kv, payload,
    queue, registry, resource, runs, schedule, search, table, token, triggers, upkeep, waits,
};

/// The name of the file in the home folder.
pub(super) const FILE: &str = "flowstone.db";
/// The application id of our files: `Flow`.
const APPLICATION: i64 = 0x466c_6f77;
/// The format of this build: the number of [`STEPS`] that a file has been through. Raised when an older build cannot
/// work with the file.
const FORMAT: i64 = STEPS.len() as i64;
/// The statements that take a file from each format to the next, by part. A released step is never changed.
const STEPS: &[&[&str]] = &[
    &[
        runs::SCHEMA,
        journal::SCHEMA,
        waits::SCHEMA,
        kv::SCHEMA,
        table::SCHEMA,
        blob::SCHEMA,
    ],
    &[
        runs::FORMAT_2,
        waits::FORMAT_2,
        queue::FORMAT_2,
        agenda::SCHEMA,
        schedule::SCHEMA,
        upkeep::SCHEMA,
        payload::FORMAT_2,
    ],
    &[
        table::FORMAT_3,
        resource::SCHEMA,
        changeset::SCHEMA,
        search::SCHEMA,
    ],
    &[runs::FORMAT_4],
    &[runs::FORMAT_5],
    &[runs::FORMAT_6],
    &[token::SCHEMA],
    &[feed::FORMAT_8],
    &[jobs::SCHEMA],
    &[delivery::SCHEMA],
    &[runs::FORMAT_11],
    &[runs::FORMAT_12],
    &[search::FORMAT_13],
    &[registry::SCHEMA, runs::FORMAT_14],
    &[triggers::SCHEMA],
    &[runs::FORMAT_16],
    &[installation::SCHEMA],
    &[waits::FORMAT_18],
];
/// The objects and rows of a new file: what all [`STEPS`] together make of an empty one. Making it at once takes a third of
/// the time. A test compares both, and writes this file when `UPDATE_EXPECT` is set.
const NEWEST: &str = include_str!("newest.sql");
/// Maximum time that another process may lock the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time between the creation of the folder and that of the file.
const CREATION_TIME: Duration = Duration::from_millis(300);
/// Number of pages in the log before it is copied into the file.
const CHECKPOINT_PAGES: i64 = 2000;

/// Creates the home folder, and returns the path of the database in it.
pub(super) fn prepare_home(home: &Path, options: &Options) -> Result<PathBuf, StoreError> {
    let path = home.join(FILE);
    if options.must_exist && !exists_soon(home, &path) {
        marker::check(marker::read(home), &path)?;
        return Err(StoreError::Unreachable {
            path: path.display().to_string(),
            detail: "there is no such file".to_owned(),
        });
    }
    private::make_folder(home).map_err(|error| StoreError::of_file(home, &error))?;
    if private::close_to_others(home).unwrap_or(false) {
        tracing::info!(home = %home.display(), "the project's data is no longer open to other users");
    }
    Ok(path)
}

/// Tells whether the file exists; if only its folder does, waits briefly for another process to create it.
fn exists_soon(home: &Path, path: &Path) -> bool {
    let begun = Instant::now();
    while !path.exists() {
        if !home.is_dir() || begun.elapsed() > CREATION_TIME {
            return false;
        }
        std::thread::sleep(CREATION_TIME / 20);
    }
    true
}

/// Opens the connection that writes.
pub(super) fn connect(
    path: &Path,
    options: &Options,
    state: MarkerState,
) -> Result<Connection, StoreError> {
    check_header(path)?;
    let place = |error: rusqlite::Error| located(failed(error), path);
    let db = connection(path, options)?;
    // SQLite gives the log the permissions of the database.
    for file in [path.to_path_buf(), marker::log_of(path)] {
        private::close_to_others(&file).ok();
    }
    if db.is_readonly("main").map_err(place)? {
        return Err(StoreError::ReadOnly {
            path: path.display().to_string(),
        });
    }
    let is_new = is_empty(&db).map_err(place)?;
    if is_new && state != MarkerState::Nothing {
        return Err(StoreError::Lost {
            path: path.display().to_string(),
            detail: "it is empty".to_owned(),
        });
    }
    if is_new {
        db.pragma_update(None, "application_id", APPLICATION)
            .map_err(place)?;
    }
    let number = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if number("application_id").map_err(place)? != APPLICATION {
        return Err(StoreError::NotADatabase {
            path: path.display().to_string(),
        });
    }
    let found = number("user_version").map_err(place)?;
    if found > FORMAT {
        return Err(StoreError::TooNew {
            path: path.display().to_string(),
            found,
            known: FORMAT,
        });
    }
    db.pragma_update(None, "journal_mode", "WAL")
        .map_err(place)?;
    db.pragma_update(None, "synchronous", "FULL")
        .map_err(place)?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
        .map_err(place)?;
    if found < FORMAT {
        bring_up_to_date(&db).map_err(place)?;
    }
    Ok(db)
}

/// Opens a connection that cannot change anything, and needs no file except the database and its log.
pub(super) fn connect_read_only(path: &Path) -> Result<Connection, StoreError> {
    check_header(path)?;
    let place = |error: rusqlite::Error| located(failed(error), path);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let plain = Connection::open_with_flags(path, flags).and_then(|db| {
        is_empty(&db)?;
        Ok(db)
    });
    let db = match plain {
        Ok(db) => db,
        // Without a log, and where no process can write, the file is complete.
        Err(_) if fs::metadata(marker::log_of(path)).map_or(0, |log| log.len()) == 0 => {
            let mut uri = "file:".to_owned();
            for char in path.display().to_string().chars() {
                match char {
                    '?' | '#' | '%' => uri += &format!("%{:02x}", u32::from(char)),
                    char => uri.push(char),
                }
            }
            Connection::open_with_flags(format!("{uri}?immutable=1"), flags).map_err(place)?
        }
        Err(error) => return Err(place(error)),
    };
    check_format(&db, path)?;
    prepared(db, path)
}

/// Refuses a file of another program, of a later format, or of an earlier one that would have to be changed.
fn check_format(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let shown = || path.display().to_string();
    let number = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let place = |error: rusqlite::Error| located(failed(error), path);
    if number("application_id").map_err(place)? != APPLICATION {
        return Err(StoreError::NotADatabase { path: shown() });
    }
    match number("user_version").map_err(place)? {
        found if found > FORMAT => Err(StoreError::TooNew {
            path: shown(),
            found,
            known: FORMAT,
        }),
        found if found < FORMAT => Err(StoreError::ReadOnly { path: shown() }),
        _ => Ok(()),
    }
}

/// Opens a connection that only reads.
pub(super) fn connect_reader(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    let db = connection(path, options)?;
    db.pragma_update(None, "query_only", true)
        .map_err(|error| located(failed(error), path))?;
    Ok(db)
}

/// Opens a connection that may write, to a file in the current format.
pub(super) fn connection(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    let flags = OpenFlags::default();
    let opened = match &options.vfs {
        None => Connection::open_with_flags(path, flags),
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str()),
    };
    let db = opened.map_err(|error| unopened(&error, path))?;
    prepared(db, path)
}

fn prepared(db: Connection, path: &Path) -> Result<Connection, StoreError> {
    let place = |error: rusqlite::Error| located(failed(error), path);
    // The log file stays: a missing log means that it was lost.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(place)?;
    db.busy_timeout(BUSY_TIMEOUT).map_err(place)?;
    // Otherwise statements whose values the planner has inspected, because of an index with a condition, are prepared
    // again for each new value.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(place)?;
    db.set_prepared_statement_cache_capacity(128);
    table::prepare(&db).map_err(|error| located(error, path))?;
    runs::prepare(&db).map_err(place)?;
    resource::prepare(&db).map_err(place)?;
    Ok(db)
}

/// Opens an empty database in memory.
pub(crate) fn in_memory() -> Result<Connection, StoreError> {
    made(Connection::open_in_memory().map_err(failed)?)
}

/// Opens an empty database that nobody else opens and that need not survive the process. `most_bytes` is its largest size.
pub(crate) fn for_scratch(path: &Path, most_bytes: i64) -> Result<Connection, StoreError> {
    let db = Connection::open(path).map_err(|error| unopened(&error, path))?;
    let place = |error: rusqlite::Error| located(failed(error), path);
    db.pragma_update(None, "journal_mode", "MEMORY")
        .map_err(place)?;
    db.pragma_update(None, "synchronous", "OFF")
        .map_err(place)?;
    let page: i64 = db
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .map_err(place)?;
    db.pragma_update(None, "max_page_count", most_bytes / page.max(1))
        .map_err(place)?;
    made(db)
}

fn made(db: Connection) -> Result<Connection, StoreError> {
    table::prepare(&db)?;
    runs::prepare(&db).map_err(failed)?;
    resource::prepare(&db).map_err(failed)?;
    bring_up_to_date(&db).map_err(failed)?;
    Ok(db)
}

fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })
}

/// Performs the steps that the file has not been through, all or none. Another process may have been faster.
fn bring_up_to_date(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    let stepped = db
        .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
        .and_then(|found| {
            match found == 0 && is_empty(db)? {
                true => db.execute_batch(NEWEST)?,
                false => perform_steps(db, found)?,
            }
            db.pragma_update(None, "user_version", FORMAT.max(found))
        });
    match stepped {
        Ok(()) => db.execute_batch("COMMIT"),
        Err(error) => {
            // Without memory or space, SQLite has already rolled it back.
            db.execute_batch("ROLLBACK").ok();
            Err(error)
        }
    }
}

fn perform_steps(db: &Connection, found: i64) -> rusqlite::Result<()> {
    let done = usize::try_from(found).unwrap_or(0);
    let mut steps = STEPS.iter().skip(done);
    steps.try_for_each(|parts| db.execute_batch(&parts.join("\n")))
}

/// Checks the header before SQLite opens the file: a file that is not a complete database is not touched.
fn check_header(path: &Path) -> Result<(), StoreError> {
    let shown = || path.display().to_string();
    let unreachable = |error: std::io::Error| StoreError::of_file(path, &error);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreachable(error)),
    };
    let length = file.metadata().map_err(unreachable)?.len();
    if length == 0 {
        return Ok(());
    }
    let mut header = [0; 100];
    let is_short = length < 100;
    if !is_short {
        file.read_exact(&mut header).map_err(unreachable)?;
    }
    if is_short || &header[..16] != b"SQLite format 3\0" {
        return Err(StoreError::NotADatabase { path: shown() });
    }
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    let expected = page * u64::from(pages);
    // While the log has pages that are not in the file yet, the file may be shorter than its header states.
    let log = path.with_extension("db-wal");
    let has_log = fs::metadata(log).is_ok_and(|log| log.len() > 0);
    if length < expected && !has_log {
        return Err(StoreError::Damaged {
            path: shown(),
            detail: format!("it is truncated: it has {length} of {expected} bytes"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::types::Value;
    use rusqlite::{Connection, StatementStatus};

    use super::{
        MarkerState, NEWEST, Options, connect, perform_steps, prepare_home, resource, table,
    };

    /// Returns an empty database with the functions that the steps use.
    fn empty() -> Connection {
        let db = Connection::open_in_memory().expect("a database");
        table::prepare(&db).expect("functions");
        resource::prepare(&db).expect("functions");
        super::runs::prepare(&db).expect("functions");
        db
    }

    /// Returns the statements that make the objects and rows of a database. SQLite makes the tables of an index of words, and
    /// the indexes of keys, itself.
    fn statements(db: &Connection) -> String {
        let mut sql = db
            .prepare(
                "SELECT type, name, sql FROM sqlite_schema AS it WHERE sql IS NOT NULL AND substr(name, 1, 7) <> 'sqlite_' AND NOT EXISTS (
                     SELECT 1 FROM sqlite_schema AS words
                     WHERE words.sql LIKE 'CREATE VIRTUAL%' AND it.type = 'table'
                         AND substr(it.name, 1, length(words.name) + 1) = words.name || '_')
                 ORDER BY rowid",
            )
            .expect("a statement");
        let objects = sql.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let objects: Vec<(String, String, String)> =
            objects.and_then(Iterator::collect).expect("objects");
        let mut text = String::new();
        for (kind, name, sql) in objects {
            text += &format!("{sql};\n");
            if kind == "table" && !sql.starts_with("CREATE VIRTUAL") {
                text += &rows(db, &name);
            }
        }
        text
    }

    fn rows(db: &Connection, table: &str) -> String {
        let mut sql = db
            .prepare(&format!("SELECT * FROM {table}"))
            .expect("a statement");
        let columns = sql.column_count();
        let mut rows = sql.query([]).expect("rows");
        let mut text = String::new();
        while let Some(row) = rows.next().expect("a row") {
            let values = (0..columns).map(|idx| match row.get(idx).expect("a value") {
                Value::Null => "NULL".to_owned(),
                Value::Integer(int) => int.to_string(),
                Value::Real(real) => real.to_string(),
                Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
                Value::Blob(_) => unreachable!("no step adds bytes"),
            });
            let values: Vec<String> = values.collect();
            text += &format!("INSERT INTO {table} VALUES ({});\n", values.join(", "));
        }
        text
    }

    #[test]
    fn a_new_file_equals_one_that_has_been_through_all_steps() {
        let stepped = empty();
        perform_steps(&stepped, 0).expect("steps");
        let expected = statements(&stepped);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sqlite/newest.sql");
            std::fs::write(path, &expected).expect("written");
            return;
        }
        assert_eq!(NEWEST, expected, "update with UPDATE_EXPECT=1");
        let new = empty();
        new.execute_batch(NEWEST).expect("a new database");
        assert_eq!(statements(&new), expected);
        let names = |db: &Connection| -> Vec<String> {
            let mut sql = db.prepare("SELECT name FROM sqlite_schema ORDER BY name");
            let sql = sql.as_mut().expect("a statement");
            let names = sql
                .query_map([], |row| row.get(0))
                .and_then(Iterator::collect);
            names.expect("names")
        };
        assert_eq!(names(&new), names(&stepped));
    }

    /// A statement is prepared once, although the index of open waits can be used for some values and not for others.
    #[test]
    fn new_values_do_not_prepare_a_statement_again() {
        let home = tempfile::tempdir().expect("a folder");
        let path = prepare_home(home.path(), &Options::default()).expect("a path");
        let db = connect(&path, &Options::default(), MarkerState::Nothing).expect("a database");
        let mut sql = db
            .prepare("UPDATE wait SET state = 'closed' WHERE run = ?1 AND path = ?2 AND state = ?3")
            .expect("a statement");
        for (run, state) in [(1, "open"), (2, "completed"), (3, "open")] {
            sql.execute((run, "gate", state)).expect("executed");
        }
        assert_eq!(sql.get_status(StatementStatus::RePrepare), 0);
    }
}
