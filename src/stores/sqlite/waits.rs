//! Waits, and the inbox of signals that arrived before their wait, as rows. The rules are
//! [`flowstone_model::rules::answers`].
//!
//! Every query has an index: ten thousand open waits do not slow one down.

mod inbox;
mod named;

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Event, NewWait, StoreError, WaitEnding, WaitEvent, WaitFilter, WaitPlace, WaitRow, WaitState,
};
use flowstone_model::rules::{answers, jobs};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

use super::failure::{failed, rejected};
use super::feed;
use super::queue::Sql as Rows;
pub(super) use inbox::signals;

/// The tables of this part.
pub(super) const SCHEMA: &str = "
CREATE TABLE wait (
    id TEXT PRIMARY KEY,
    run INTEGER NOT NULL,
    path TEXT NOT NULL,
    key TEXT NOT NULL,
    token TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    deadline_ms INTEGER,
    details TEXT NOT NULL,
    payload TEXT,
    opened_ms INTEGER NOT NULL,
    UNIQUE (run, path)
);
CREATE INDEX wait_key ON wait (key);
CREATE INDEX wait_state ON wait (state) WHERE state <> 'closed';
CREATE TABLE inbox (
    num INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    dedup TEXT,
    payload TEXT NOT NULL,
    consumed INTEGER NOT NULL DEFAULT 0,
    at_ms INTEGER NOT NULL,
    UNIQUE (key, dedup)
);
";

/// The additions of format 2: the person who decided, the endings of waits, a digest of what was shown, events and
/// webhooks; a path can have another wait once its wait is closed. The inbox records the event, the sender, and the
/// wait that refused a signal.
pub(super) const FORMAT_2: &str = "
ALTER TABLE wait RENAME TO wait_old;
DROP INDEX wait_key;
DROP INDEX wait_state;
CREATE TABLE wait (
    id TEXT PRIMARY KEY,
    run INTEGER NOT NULL,
    path TEXT NOT NULL,
    key TEXT NOT NULL,
    token TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    deadline_ms INTEGER,
    details TEXT NOT NULL,
    digest TEXT NOT NULL DEFAULT '',
    payload TEXT,
    opened_ms INTEGER NOT NULL,
    ending TEXT,
    decided_by TEXT,
    decided_ms INTEGER,
    event TEXT,
    event_key TEXT,
    event_path TEXT,
    webhook TEXT
);
INSERT INTO wait (id, run, path, key, token, state, deadline_ms, details, payload, opened_ms, ending)
    SELECT id, run, path, key, token, state, deadline_ms, details, payload, opened_ms,
           CASE WHEN payload IS NULL THEN NULL ELSE 'answered' END
    FROM wait_old;
DROP TABLE wait_old;
CREATE UNIQUE INDEX wait_place ON wait (run, path) WHERE state <> 'closed';
CREATE INDEX wait_run ON wait (run, path);
CREATE INDEX wait_key ON wait (key, state, opened_ms);
CREATE INDEX wait_state ON wait (state) WHERE state <> 'closed';
CREATE INDEX wait_answered ON wait (run) WHERE state = 'completed';
CREATE INDEX wait_deadline ON wait (deadline_ms) WHERE state = 'open';
CREATE INDEX wait_event ON wait (event, event_key) WHERE state = 'open' AND event IS NOT NULL;
CREATE INDEX wait_event_path ON wait (event, event_path) WHERE state = 'open' AND event_path IS NOT NULL;
CREATE INDEX wait_webhook ON wait (webhook) WHERE webhook IS NOT NULL;
ALTER TABLE inbox RENAME TO inbox_old;
CREATE TABLE inbox (
    num INTEGER PRIMARY KEY,
    event TEXT NOT NULL DEFAULT '',
    key TEXT NOT NULL,
    dedup TEXT,
    payload TEXT NOT NULL,
    by TEXT,
    roles TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    wait TEXT,
    refusal TEXT,
    at_ms INTEGER NOT NULL,
    UNIQUE (event, key, dedup)
);
INSERT INTO inbox (num, key, dedup, payload, state, at_ms)
    SELECT num, key, dedup, payload, CASE consumed WHEN 0 THEN 'kept' ELSE 'taken' END, at_ms FROM inbox_old;
DROP TABLE inbox_old;
CREATE INDEX inbox_kept ON inbox (event, key) WHERE state = 'kept';
CREATE INDEX inbox_wait ON inbox (wait) WHERE state = 'refused';
";

/// The addition of format 18: signals are for the waits of one workspace, and so are their names against repetition.
pub(super) const FORMAT_18: &str = "
ALTER TABLE inbox RENAME TO inbox_old;
CREATE TABLE inbox (
    num INTEGER PRIMARY KEY,
    workspace TEXT NOT NULL DEFAULT 'default',
    event TEXT NOT NULL DEFAULT '',
    key TEXT NOT NULL,
    dedup TEXT,
    payload TEXT NOT NULL,
    by TEXT,
    roles TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    wait TEXT,
    refusal TEXT,
    at_ms INTEGER NOT NULL,
    unattended INTEGER NOT NULL DEFAULT 0,
    UNIQUE (workspace, event, key, dedup)
);
INSERT INTO inbox (num, event, key, dedup, payload, by, roles, state, wait, refusal, at_ms, unattended)
    SELECT num, event, key, dedup, payload, by, roles, state, wait, refusal, at_ms, unattended FROM inbox_old;
DROP TABLE inbox_old;
CREATE INDEX inbox_kept ON inbox (event, key) WHERE state = 'kept';
CREATE INDEX inbox_wait ON inbox (wait) WHERE state = 'refused';
";

const COLUMNS: &str = "wait.id, run.id, run.flow, wait.path, wait.key, wait.state, wait.deadline_ms, wait.details, \
                       wait.digest, wait.payload, wait.opened_ms, wait.ending, wait.decided_by, wait.decided_ms, \
                       wait.event, wait.event_key, wait.event_path, wait.webhook";

pub(super) fn name(state: WaitState) -> &'static str {
    match state {
        WaitState::Open => "open",
        WaitState::Completed => "completed",
        WaitState::Closed => "closed",
    }
}

/// Opens a wait; an early answer that matches completes it.
pub(super) fn open(
    db: &Connection,
    run: i64,
    wait: &NewWait,
    now_ms: i64,
) -> Result<(), StoreError> {
    let event = wait.event.as_ref();
    db.prepare_cached(
        "INSERT INTO wait (id, run, path, key, token, state, deadline_ms, details, digest, opened_ms, event,
                           event_key, event_path, webhook)
         VALUES (?1, ?2, ?3, ?4, ?5, 'open', ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            wait.id,
            run,
            wait.path,
            wait.key,
            wait.token,
            wait.deadline_ms,
            wait.details,
            wait.digest,
            now_ms,
            event.map(|event| &event.name),
            event.and_then(|event| event.key.as_ref()),
            event.and_then(|event| event.path.as_ref()),
            wait.webhook
        ])
    })
    .map_err(failed)?;
    feed::add_with_above(db, run, &wait.key, Event::wait_opened(wait, now_ms))?;
    jobs::answer_if_ended(&mut Rows::new(db), wait, now_ms)?;
    answers::take_early(&mut Rows::new(db), wait, now_ms)
}

/// Closes a wait that is in the state that the caller saw.
pub(super) fn close(
    db: &Connection,
    run: i64,
    path: &str,
    seen: WaitState,
    now_ms: i64,
) -> Result<(), StoreError> {
    // The caller closes an open wait because its deadline has passed.
    let sql = match seen {
        WaitState::Open => {
            "UPDATE wait SET state = 'closed', ending = 'timed-out', decided_ms = ?4
             WHERE run = ?1 AND path = ?2 AND state = ?3"
        }
        WaitState::Completed | WaitState::Closed => {
            "UPDATE wait SET state = 'closed', decided_ms = coalesce(decided_ms, ?4)
             WHERE run = ?1 AND path = ?2 AND state = ?3"
        }
    };
    let changed = db
        .prepare_cached(sql)
        .and_then(|mut sql| sql.execute(params![run, path, name(seen), now_ms]))
        .map_err(failed)?;
    if changed == 0 {
        let message = format!("the wait at `{path}` is no longer {}", name(seen));
        return Err(rejected("E0515", "conflict", message));
    }
    match seen {
        WaitState::Open => timed_out(db, run, path, now_ms),
        WaitState::Completed | WaitState::Closed => Ok(()),
    }
}

/// Records that the wait at a path that was closed last timed out.
fn timed_out(db: &Connection, run: i64, path: &str, now_ms: i64) -> Result<(), StoreError> {
    let (key, event) = db
        .prepare_cached(
            "SELECT id, key FROM wait WHERE run = ?1 AND path = ?2 AND ending = 'timed-out'
             ORDER BY rowid DESC LIMIT 1",
        )
        .and_then(|mut sql| {
            sql.query_row(params![run, path], |row| {
                let (id, key): (String, String) = (row.get(0)?, row.get(1)?);
                let wait = WaitPlace {
                    id: &id,
                    path,
                    key: &key,
                };
                let event = Event::wait_timed_out(&wait, now_ms);
                Ok((key, event))
            })
        })
        .map_err(failed)?;
    feed::add_with_above(db, run, &key, event)
}

/// Closes all waits of a finished run.
pub(super) fn close_all(db: &Connection, run: i64) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE wait SET state = 'closed' WHERE run = ?1 AND state <> 'closed'")
        .and_then(|mut sql| sql.execute([run]))
        .map_err(failed)?;
    Ok(())
}

/// Closes the waits of a step: its own wait and the questions about it. Returns their keys.
pub(super) fn close_of(db: &Connection, run: i64, path: &str) -> Result<Vec<String>, StoreError> {
    let mut sql = db
        .prepare_cached(
            "UPDATE wait SET state = 'closed' WHERE run = ?1 AND state <> 'closed' \
             AND (path = ?2 OR substr(path, 1, length(?2) + 1) IN (?2 || '?', ?2 || '/', ?2 || '~')) \
             RETURNING key",
        )
        .map_err(failed)?;
    let keys = sql.query_map(params![run, path], |row| row.get(0));
    keys.map_err(failed)?
        .collect::<rusqlite::Result<Vec<_>>>()
        .map_err(failed)
}

/// Removes all waits of a run, so that a run that is continued as new forever does not grow.
pub(super) fn forget(db: &Connection, run: i64) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM wait WHERE run = ?1")
        .and_then(|mut sql| sql.execute([run]))
        .map_err(failed)?;
    Ok(())
}

pub(super) fn token(db: &Connection, id: &str) -> Result<Option<String>, StoreError> {
    db.prepare_cached("SELECT token FROM wait WHERE id = ?1")
        .and_then(|mut sql| sql.query_row([id], |row| row.get(0)).optional())
        .map_err(failed)
}

/// Returns the wait of a run at a path: the one that is not closed, otherwise the last one.
pub(super) fn at(db: &Connection, run: &RunId, path: &str) -> Result<Option<WaitRow>, StoreError> {
    let found = select(
        db,
        "wait.run = (SELECT num FROM run WHERE id = ?1) AND wait.path = ?2
         ORDER BY wait.state = 'closed', wait.rowid DESC LIMIT 1",
        [Sql::Text(run.to_string()), Sql::Text(path.to_owned())],
    )?;
    Ok(found.into_iter().next())
}

pub(super) fn list(db: &Connection, filter: &WaitFilter) -> Result<Vec<WaitRow>, StoreError> {
    let mut sql = "1".to_owned();
    let mut values: Vec<Sql> = Vec::new();
    let mut equal = |sql: &mut String, column: &str, value: Option<String>| {
        if let Some(value) = value {
            *sql += &format!(" AND {column} = ?");
            values.push(Sql::Text(value));
        }
    };
    let is_narrow = filter.run.is_some()
        || filter.target.is_some()
        || filter.key.is_some()
        || filter.webhook.is_some();
    if !filter.all {
        // The second condition makes the index of waits that are not closed usable.
        sql += " AND wait.state = 'open' AND wait.state <> 'closed'";
    } else if !is_narrow {
        sql += " AND wait.state <> 'closed'";
    }
    equal(
        &mut sql,
        "run.id",
        filter.run.as_ref().map(ToString::to_string),
    );
    equal(&mut sql, "run.flow", filter.flow.clone());
    equal(&mut sql, "wait.key", filter.key.clone());
    equal(&mut sql, "wait.webhook", filter.webhook.clone());
    if let Some(target) = &filter.target {
        let named = answers::named(&mut Rows::new(db), target)?;
        sql += " AND wait.id IN (SELECT value FROM json_each(?))";
        let ids: Vec<&str> = named.rows().iter().map(|row| &*row.id).collect();
        values.push(Sql::Text(json_list(&ids)));
    }
    // A run may have thousands of closed waits. SQLite prefers the index that has them, too.
    let table = match filter.run.is_some() && !filter.all {
        true => "wait INDEXED BY wait_place",
        false => "wait",
    };
    let Some(last) = filter.last else {
        sql += " ORDER BY wait.opened_ms, wait.id";
        return select_from(db, table, &sql, values);
    };
    sql += &format!(" ORDER BY wait.rowid DESC LIMIT {last}");
    let mut found = select_from(db, table, &sql, values)?;
    found.reverse();
    Ok(found)
}

/// Returns ids or keys as a JSON list.
fn json_list(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts
        .iter()
        .map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        .collect();
    format!("[{}]", quoted.join(","))
}

fn select(
    db: &Connection,
    condition: &str,
    values: impl IntoIterator<Item = Sql>,
) -> Result<Vec<WaitRow>, StoreError> {
    select_from(db, "wait", condition, values)
}

/// As [`select`]. `table`: the table of waits, at times with the index to use.
fn select_from(
    db: &Connection,
    table: &str,
    condition: &str,
    values: impl IntoIterator<Item = Sql>,
) -> Result<Vec<WaitRow>, StoreError> {
    let sql =
        format!("SELECT {COLUMNS} FROM {table} JOIN run ON run.num = wait.run WHERE {condition}");
    let mut statement = db.prepare_cached(&sql).map_err(failed)?;
    let rows = statement
        .query_map(params_from_iter(values), wait_row)
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

fn wait_row(row: &Row<'_>) -> rusqlite::Result<WaitRow> {
    let state: String = row.get(5)?;
    let ending: Option<String> = row.get(11)?;
    let event: Option<String> = row.get(14)?;
    Ok(WaitRow {
        id: row.get(0)?,
        run: RunId::from_text(row.get::<_, String>(1)?),
        flow: row.get(2)?,
        path: row.get(3)?,
        key: row.get(4)?,
        state: match state.as_str() {
            "open" => WaitState::Open,
            "completed" => WaitState::Completed,
            _ => WaitState::Closed,
        },
        deadline_ms: row.get(6)?,
        details: row.get(7)?,
        digest: row.get(8)?,
        payload: row.get(9)?,
        opened_ms: row.get(10)?,
        ending: ending.and_then(|name| WaitEnding::from_name(&name)),
        decided_by: row.get(12)?,
        decided_ms: row.get(13)?,
        event: match event {
            Some(name) => Some(WaitEvent {
                name,
                key: row.get(15)?,
                path: row.get(16)?,
            }),
            None => None,
        },
        webhook: row.get(17)?,
    })
}
