//! The inbox: signals that arrived before their wait, and those whose `dedup` is remembered.

use flowstone_model::ports::{
    Completion, SignalFilter, SignalRow, StoreError, WaitAnswer, WaitEnding,
};
use flowstone_model::rules::answers::{EarlySignal, SignalSlot, SignalState};
use rusqlite::{Connection, Row, params, params_from_iter};

use super::super::failure::failed;
use super::super::queue::execute;

/// Separates the roles of the sender of a signal.
const BETWEEN: char = '\n';

/// Tells whether a signal with this `dedup` exists.
pub(super) fn has(db: &Connection, slot: &SignalSlot, dedup: &str) -> Result<bool, StoreError> {
    db.prepare_cached(
        "SELECT 1 FROM inbox WHERE workspace = ?1 AND event = ?2 AND key = ?3 AND dedup = ?4",
    )
    .and_then(|mut sql| sql.exists(params![slot.workspace, slot.event, slot.key, dedup]))
    .map_err(failed)
}

/// Adds a signal.
pub(super) fn add(
    db: &Connection,
    slot: &SignalSlot,
    completion: &Completion,
    state: SignalState,
) -> Result<(), StoreError> {
    // Only the `dedup` of a taken signal is needed.
    let payload = match state {
        SignalState::Kept => completion.answer.payload.as_str(),
        SignalState::Taken | SignalState::Refused => "nil",
    };
    execute(
        db,
        "INSERT INTO inbox (workspace, event, key, dedup, payload, by, roles, state, at_ms, unattended)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            slot.workspace,
            slot.event,
            slot.key,
            completion.dedup,
            payload,
            completion.answer.by,
            completion.answer.roles.join(&BETWEEN.to_string()),
            state.name(),
            completion.now_ms,
            completion.answer.is_unattended
        ],
    )
}

/// Records that a wait took a signal, or refused it.
pub(super) fn settle(
    db: &Connection,
    num: i64,
    wait: &str,
    refusal: Option<String>,
) -> Result<(), StoreError> {
    let state = match refusal {
        Some(_) => SignalState::Refused,
        None => SignalState::Taken,
    };
    execute(
        db,
        "UPDATE inbox SET state = ?2, wait = ?3, refusal = ?4 WHERE num = ?1",
        params![num, state.name(), wait, refusal],
    )
}

/// Returns the kept signals of an event, or of none, under one key or under any.
pub(super) fn kept(
    db: &Connection,
    event: &str,
    key: Option<&str>,
) -> Result<Vec<EarlySignal>, StoreError> {
    const READ: &str = "SELECT num, event, key, payload, by, roles, unattended, workspace FROM inbox WHERE state = 'kept'";
    let condition = match key {
        Some(_) => "event = ? AND key = ?",
        None => "event = ?",
    };
    let mut sql = db
        .prepare_cached(&format!("{READ} AND {condition}"))
        .map_err(failed)?;
    let values = std::iter::once(event).chain(key);
    let rows = sql
        .query_map(params_from_iter(values), early)
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

fn early(row: &Row<'_>) -> rusqlite::Result<EarlySignal> {
    let roles: String = row.get(5)?;
    let roles = roles.split(BETWEEN).filter(|role| !role.is_empty());
    Ok(EarlySignal {
        num: row.get(0)?,
        slot: SignalSlot {
            workspace: row.get(7)?,
            event: row.get(1)?,
            key: row.get(2)?,
        },
        answer: WaitAnswer {
            payload: row.get(3)?,
            ending: WaitEnding::Answered,
            by: row.get(4)?,
            roles: roles.map(str::to_owned).collect(),
            digest: None,
            is_unattended: row.get(6)?,
        },
    })
}

/// Lists signals that no wait took.
pub(in super::super) fn signals(
    db: &Connection,
    filter: &SignalFilter,
) -> Result<Vec<SignalRow>, StoreError> {
    let mut sql =
        "SELECT event, key, dedup, payload, by, at_ms, wait, refusal, workspace FROM inbox WHERE "
            .to_owned();
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
    if let Some(workspace) = &filter.workspace {
        sql += " AND workspace = ?";
        values.push(workspace.clone());
    }
    sql += " ORDER BY num";
    let mut statement = db.prepare_cached(&sql).map_err(failed)?;
    let rows = statement
        .query_map(params_from_iter(values), |row| {
            let named = |text: String| Some(text).filter(|text| !text.is_empty());
            let (wait, refusal): (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
            Ok(SignalRow {
                workspace: row.get(8)?,
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
