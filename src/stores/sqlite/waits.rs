//! Waits, and the inbox of answers that came before theirs.

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{
    Completion, NewWait, StoreError, WaitFilter, WaitRow, WaitState, WaitsAnswer,
};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

use super::failure::{failed, rejected};

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

/// What the second format adds: who decided and how, and a digest of what was shown.
pub(super) const FORMAT_2: &str = "
ALTER TABLE wait ADD COLUMN digest TEXT;
ALTER TABLE wait ADD COLUMN decided_by TEXT;
ALTER TABLE wait ADD COLUMN decided_ms INTEGER;
CREATE INDEX wait_deadline ON wait (deadline_ms) WHERE state = 'open';
CREATE INDEX inbox_new ON inbox (key) WHERE consumed = 0;
";

const COLUMNS: &str = "wait.id, run.id, run.flow, wait.path, wait.key, wait.token, wait.state, wait.deadline_ms, \
                       wait.details, wait.payload, wait.opened_ms";

pub(super) fn name(state: WaitState) -> &'static str {
    match state {
        WaitState::Open => "open",
        WaitState::Completed => "completed",
        WaitState::Closed => "closed",
    }
}

/// Opens a wait; an answer that is there already completes it.
pub(super) fn open(
    db: &Connection,
    run: i64,
    wait: &NewWait,
    now_ms: i64,
) -> Result<(), StoreError> {
    let early = db
        .prepare_cached(
            "SELECT num, payload FROM inbox WHERE key = ?1 AND consumed = 0 ORDER BY num LIMIT 1",
        )
        .and_then(|mut sql| {
            sql.query_row([&wait.key], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })
            .optional()
        })
        .map_err(failed)?;
    let (state, payload) = match early {
        None => (WaitState::Open, None),
        Some((num, payload)) => {
            db.prepare_cached("UPDATE inbox SET consumed = 1 WHERE num = ?1")
                .and_then(|mut sql| sql.execute([num]))
                .map_err(failed)?;
            (WaitState::Completed, Some(payload))
        }
    };
    db.prepare_cached(
        "INSERT INTO wait (id, run, path, key, token, state, deadline_ms, details, payload, opened_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            wait.id,
            run,
            wait.path,
            wait.key,
            wait.token,
            name(state),
            wait.deadline_ms,
            wait.details,
            payload,
            now_ms
        ])
    })
    .map_err(failed)?;
    Ok(())
}

/// Closes a wait that is as the sender saw it.
pub(super) fn close(
    db: &Connection,
    run: i64,
    path: &str,
    seen: WaitState,
) -> Result<(), StoreError> {
    let changed = db
        .prepare_cached(
            "UPDATE wait SET state = 'closed' WHERE run = ?1 AND path = ?2 AND state = ?3",
        )
        .and_then(|mut sql| sql.execute(params![run, path, name(seen)]))
        .map_err(failed)?;
    if changed == 0 {
        let words = format!("the wait at `{path}` is not {} any more", name(seen));
        return Err(rejected("E0515", "conflict", words));
    }
    Ok(())
}

/// Closes what a run that is over waited for.
pub(super) fn close_all(db: &Connection, run: i64) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE wait SET state = 'closed' WHERE run = ?1 AND state <> 'closed'")
        .and_then(|mut sql| sql.execute([run]))
        .map_err(failed)?;
    Ok(())
}

/// Forgets all that a run waited for: its places are used again.
pub(super) fn forget(db: &Connection, run: i64) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM wait WHERE run = ?1")
        .and_then(|mut sql| sql.execute([run]))
        .map_err(failed)?;
    Ok(())
}

/// Completes what is open under a key, or keeps the payload for a wait that opens later; once for each `dedup`.
pub(super) fn signal(
    db: &Connection,
    key: &str,
    dedup: &str,
    payload: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let is_new = db
        .prepare_cached(
            "INSERT OR IGNORE INTO inbox (key, dedup, payload, at_ms) VALUES (?1, ?2, ?3, ?4)",
        )
        .and_then(|mut sql| sql.execute(params![key, dedup, payload, now_ms]))
        .map_err(failed)?;
    if is_new == 0 {
        return Ok(());
    }
    let completed = db
        .prepare_cached(
            "UPDATE wait SET state = 'completed', payload = ?2 WHERE key = ?1 AND state = 'open'",
        )
        .and_then(|mut sql| sql.execute([key, payload]))
        .map_err(failed)?;
    if completed > 0 {
        db.prepare_cached("UPDATE inbox SET consumed = 1 WHERE key = ?1 AND dedup = ?2")
            .and_then(|mut sql| sql.execute([key, dedup]))
            .map_err(failed)?;
    }
    Ok(())
}

pub(super) fn list(db: &Connection, filter: &WaitFilter) -> Result<Vec<WaitRow>, StoreError> {
    let mut sql = format!("SELECT {COLUMNS} FROM wait JOIN run ON run.num = wait.run WHERE 1");
    let mut values: Vec<Sql> = Vec::new();
    if !filter.all {
        sql += " AND wait.state = 'open'";
    } else if filter.run.is_none() && filter.target.is_none() {
        sql += " AND wait.state <> 'closed'";
    }
    if let Some(run) = &filter.run {
        sql += " AND run.id = ?";
        values.push(Sql::Text(run.to_string()));
    }
    if let Some(target) = &filter.target {
        sql += " AND (wait.id = ? OR wait.token = ? OR wait.key = ? OR substr(wait.id, 1, length(?)) = ?)";
        values.extend(vec![Sql::Text(target.clone()); 5]);
    }
    sql += " ORDER BY wait.opened_ms, wait.id";
    let mut statement = db.prepare_cached(&sql).map_err(failed)?;
    let rows = statement
        .query_map(params_from_iter(values), wait_row)
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

fn wait_row(row: &Row<'_>) -> rusqlite::Result<WaitRow> {
    let state: String = row.get(6)?;
    Ok(WaitRow {
        id: row.get(0)?,
        run: RunId::from_text(row.get::<_, String>(1)?),
        flow: row.get(2)?,
        path: row.get(3)?,
        key: row.get(4)?,
        token: row.get(5)?,
        state: match state.as_str() {
            "open" => WaitState::Open,
            "completed" => WaitState::Completed,
            _ => WaitState::Closed,
        },
        deadline_ms: row.get(7)?,
        details: row.get(8)?,
        payload: row.get(9)?,
        opened_ms: row.get(10)?,
    })
}

/// Completes what a target names: one wait by id, token or beginning of an id; all open ones by key.
pub(super) fn complete(
    db: &Connection,
    completion: &Completion,
) -> Result<WaitsAnswer, StoreError> {
    let filter = WaitFilter {
        target: Some(completion.target.clone()),
        all: true,
        ..WaitFilter::default()
    };
    let found = list(db, &filter)?;
    let target = &completion.target;
    let exact = |row: &&WaitRow| row.id == *target || row.token == *target;
    let meant: Vec<&WaitRow> = if let Some(row) = found.iter().find(exact) {
        vec![row]
    } else if found.iter().any(|row| row.key == *target) {
        found.iter().filter(|row| row.key == *target).collect()
    } else if let [row] = &found[..] {
        vec![row]
    } else {
        Vec::new()
    };
    let open: Vec<&WaitRow> = meant
        .iter()
        .copied()
        .filter(|row| row.state == WaitState::Open)
        .collect();
    let is_key = !found.iter().any(|row| exact(&row));
    match (open.is_empty(), meant.last()) {
        (false, _) => {}
        (true, _) if completion.keep && is_key => {
            keep(db, completion)?;
            return Ok(WaitsAnswer::Kept);
        }
        (true, Some(decided)) => {
            return Ok(WaitsAnswer::AlreadyDecided(Box::new((*decided).clone())));
        }
        (true, None) => return Ok(WaitsAnswer::Missing),
    }
    for row in &open {
        db.prepare_cached(
            "UPDATE wait SET state = 'completed', payload = ?2 WHERE id = ?1 AND state = 'open'",
        )
        .and_then(|mut sql| sql.execute([&row.id, &completion.payload]))
        .map_err(failed)?;
    }
    Ok(WaitsAnswer::Completed(open.into_iter().cloned().collect()))
}

fn keep(db: &Connection, completion: &Completion) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT OR IGNORE INTO inbox (key, dedup, payload, at_ms) VALUES (?1, ?2, ?3, ?4)",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            completion.target,
            completion.dedup,
            completion.payload,
            completion.now_ms
        ])
    })
    .map_err(failed)?;
    Ok(())
}
