//! Signals that came before their wait, and those whose `dedup` is remembered.

use flowstone_model::ports::{
    Completion, NewWait, SignalFilter, SignalRow, StoreError, Target, WaitAnswer, WaitEnding,
    WaitsAnswer,
};
use flowstone_model::waits::{is_for, judge};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, params, params_from_iter};

use super::super::failure::failed;
use super::complete::Slot;
use super::select;

/// Stands between the roles of who sent a signal.
const BETWEEN: char = '\n';

/// Tells whether a signal with this `dedup` was taken before.
pub(super) fn is_known(
    db: &Connection,
    slot: &Slot,
    completion: &Completion,
) -> Result<bool, StoreError> {
    let Some(dedup) = &completion.dedup else {
        return Ok(false);
    };
    db.prepare_cached("SELECT 1 FROM inbox WHERE event = ?1 AND key = ?2 AND dedup = ?3")
        .and_then(|mut sql| sql.exists(params![slot.event, slot.key, dedup]))
        .map_err(failed)
}

/// Keeps a signal for a wait that comes.
pub(super) fn keep(
    db: &Connection,
    slot: &Slot,
    completion: &Completion,
) -> Result<WaitsAnswer, StoreError> {
    insert(db, slot, completion, "kept")?;
    Ok(WaitsAnswer::Kept)
}

/// Remembers the `dedup` of a signal that waits have taken.
pub(super) fn remember(
    db: &Connection,
    slot: &Slot,
    completion: &Completion,
) -> Result<(), StoreError> {
    match completion.dedup {
        Some(_) => insert(db, slot, completion, "taken"),
        None => Ok(()),
    }
}

fn insert(
    db: &Connection,
    slot: &Slot,
    completion: &Completion,
    state: &str,
) -> Result<(), StoreError> {
    // What is only remembered needs no payload.
    let payload = match state {
        "kept" => completion.answer.payload.as_str(),
        _ => "nil",
    };
    db.prepare_cached(
        "INSERT INTO inbox (event, key, dedup, payload, by, roles, state, at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            slot.event,
            slot.key,
            completion.dedup,
            payload,
            completion.answer.by,
            completion.answer.roles.join(&BETWEEN.to_string()),
            state,
            completion.now_ms
        ])
    })
    .map_err(failed)?;
    Ok(())
}

/// An early signal.
struct Early {
    num: i64,
    event: String,
    key: String,
    answer: WaitAnswer,
}

/// Gives a wait that was just opened the first early signal that fits. One that does not is put aside, with why.
pub(super) fn take_early(db: &Connection, wait: &NewWait, now_ms: i64) -> Result<(), StoreError> {
    let early = early(db, wait)?;
    if early.is_empty() {
        return Ok(());
    }
    let rows = select(db, "wait.id = ?1", [Sql::Text(wait.id.clone())])?;
    let Some(row) = rows.into_iter().next() else {
        return Err(StoreError::Internal("a new wait is not there".to_owned()));
    };
    for signal in early {
        let target = match signal.event.is_empty() {
            true => Target::Name(signal.key),
            false => Target::Event {
                name: signal.event,
                key: Some(signal.key).filter(|key| !key.is_empty()),
            },
        };
        match judge(&row, &signal.answer, &target, now_ms) {
            Ok(payload) => {
                settle(db, signal.num, "taken", &wait.id, None)?;
                db.prepare_cached(
                    "UPDATE wait SET state = 'completed', payload = ?2, ending = 'answered', decided_by = ?3,
                                     decided_ms = ?4
                     WHERE id = ?1",
                )
                .and_then(|mut sql| sql.execute(params![wait.id, payload, signal.answer.by, now_ms]))
                .map_err(failed)?;
                return Ok(());
            }
            Err(refusal) => {
                settle(db, signal.num, "refused", &wait.id, Some(refusal.words()))?;
            }
        }
    }
    Ok(())
}

fn settle(
    db: &Connection,
    num: i64,
    state: &str,
    wait: &str,
    refusal: Option<String>,
) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE inbox SET state = ?2, wait = ?3, refusal = ?4 WHERE num = ?1")
        .and_then(|mut sql| sql.execute(params![num, state, wait, refusal]))
        .map_err(failed)?;
    Ok(())
}

/// Returns the signals that a wait could take, in the order they came.
fn early(db: &Connection, wait: &NewWait) -> Result<Vec<Early>, StoreError> {
    const READ: &str = "SELECT num, event, key, payload, by, roles FROM inbox WHERE state = 'kept'";
    let mut found: Vec<Early> = Vec::new();
    let mut read = |condition: &str, values: &[&str]| -> Result<(), StoreError> {
        let mut sql = db
            .prepare_cached(&format!("{READ} AND {condition}"))
            .map_err(failed)?;
        let rows = sql
            .query_map(params_from_iter(values), early_row)
            .map_err(failed)?;
        for row in rows {
            found.push(row.map_err(failed)?);
        }
        Ok(())
    };
    read("event = '' AND key = ?1", &[&wait.key])?;
    if let Some(event) = &wait.event {
        match &event.key {
            Some(key) => {
                read("event = ?1 AND key = ?2", &[&event.name, key])?;
                read("event = ?1 AND key = ''", &[&event.name])?;
            }
            None => read("event = ?1", &[&event.name])?,
        }
        found.retain(|signal| {
            let key = Some(signal.key.as_str()).filter(|key| !key.is_empty());
            signal.event.is_empty() || is_for(event, &signal.event, key, &signal.answer.payload)
        });
    }
    found.sort_unstable_by_key(|signal| signal.num);
    Ok(found)
}

fn early_row(row: &Row<'_>) -> rusqlite::Result<Early> {
    let roles: String = row.get(5)?;
    Ok(Early {
        num: row.get(0)?,
        event: row.get(1)?,
        key: row.get(2)?,
        answer: WaitAnswer {
            payload: row.get(3)?,
            ending: WaitEnding::Answered,
            by: row.get(4)?,
            roles: roles
                .split(BETWEEN)
                .filter(|role| !role.is_empty())
                .map(str::to_owned)
                .collect(),
            digest: None,
        },
    })
}

/// Lists signals that no wait took.
pub(in super::super) fn signals(
    db: &Connection,
    filter: &SignalFilter,
) -> Result<Vec<SignalRow>, StoreError> {
    let mut sql =
        "SELECT event, key, dedup, payload, by, at_ms, wait, refusal FROM inbox WHERE ".to_owned();
    let mut values = Vec::new();
    match &filter.refused_by {
        Some(wait) => {
            sql += "state = 'refused' AND wait = ?";
            values.push(wait.clone());
        }
        None => sql += "state <> 'taken'",
    }
    if let Some(key) = &filter.key {
        sql += " AND key = ?";
        values.push(key.clone());
    }
    sql += " ORDER BY num";
    let mut statement = db.prepare_cached(&sql).map_err(failed)?;
    let rows = statement
        .query_map(params_from_iter(values), |row| {
            let named = |text: String| Some(text).filter(|text| !text.is_empty());
            let (wait, refusal): (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
            Ok(SignalRow {
                event: named(row.get(0)?),
                key: named(row.get(1)?),
                dedup: row.get(2)?,
                payload: row.get(3)?,
                by: row.get(4)?,
                at_ms: row.get(5)?,
                refused: wait.zip(refusal),
            })
        })
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}
