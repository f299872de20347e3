//! Completing waits: what a target means, who takes the answer, and who was first.

use flowstone_model::ports::{
    Completion, Refusal, StoreError, Target, WaitEnding, WaitRow, WaitState, WaitsAnswer,
};
use flowstone_model::waits::{event_key, judge};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params};

use super::super::failure::failed;
use super::{inbox, select};

/// So many ids are told of those that have the same beginning.
const TOLD: i64 = 6;

/// What a name means.
pub(super) enum Named {
    /// An id, a token, or the beginning of one id.
    One(Box<WaitRow>),
    /// The open waits of a key; where none is open, the last that was.
    Key(Vec<WaitRow>),
    Several(Vec<WaitRow>),
    Nothing,
}

impl Named {
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let rows: &[WaitRow] = match self {
            Named::One(row) => std::slice::from_ref(row),
            Named::Key(rows) | Named::Several(rows) => rows,
            Named::Nothing => &[],
        };
        rows.iter().map(|row| row.id.as_str())
    }
}

/// Finds what a name means: an id, a token, a key, or the beginning of an id, in this order.
pub(super) fn named(db: &Connection, name: &str) -> Result<Named, StoreError> {
    let text = || Sql::Text(name.to_owned());
    let one = |condition: &str| -> Result<Option<WaitRow>, StoreError> {
        Ok(select(db, condition, [text()])?.into_iter().next())
    };
    for condition in ["wait.id = ?1", "wait.token = ?1"] {
        if let Some(row) = one(condition)? {
            return Ok(Named::One(Box::new(row)));
        }
    }
    let open = select(
        db,
        "wait.key = ?1 AND wait.state = 'open' ORDER BY wait.opened_ms, wait.id",
        [text()],
    )?;
    if !open.is_empty() {
        return Ok(Named::Key(open));
    }
    if let Some(last) = one("wait.key = ?1 ORDER BY wait.opened_ms DESC, wait.rowid DESC LIMIT 1")?
    {
        return Ok(Named::Key(vec![last]));
    }
    if name.is_empty() {
        return Ok(Named::Nothing);
    }
    let mut found = select(
        db,
        "wait.id >= ?1 AND wait.id < ?2 ORDER BY wait.id LIMIT ?3",
        [
            text(),
            Sql::Text(format!("{name}\u{10ffff}")),
            Sql::Integer(TOLD),
        ],
    )?;
    Ok(match found.len() {
        0 => Named::Nothing,
        1 => Named::One(Box::new(found.remove(0))),
        _ => Named::Several(found),
    })
}

/// Completes what a target names: one wait by id, token or beginning of an id; all open ones by key or event.
pub(in super::super) fn complete(
    db: &Connection,
    completion: &Completion,
) -> Result<WaitsAnswer, StoreError> {
    let (found, is_key) = match &completion.target {
        Target::Name(name) => match named(db, name)? {
            Named::One(row) => (vec![*row], false),
            Named::Key(rows) => (rows, true),
            Named::Several(rows) => {
                let ids = rows.into_iter().map(|row| row.id).collect();
                return Ok(WaitsAnswer::Ambiguous(ids));
            }
            Named::Nothing => (Vec::new(), true),
        },
        Target::Event { name, key } => (
            of_event(db, name, key.as_deref(), &completion.answer.payload)?,
            true,
        ),
    };
    let slot = slot(completion, &found, is_key);
    if inbox::is_known(db, &slot, completion)? {
        return Ok(WaitsAnswer::Duplicate);
    }
    let answer = decide(db, completion, &found)?;
    let may_keep = completion.keep && is_key && completion.answer.ending == WaitEnding::Answered;
    match answer {
        // Its time is over, and nobody has looked yet: what is said now is for the next.
        WaitsAnswer::Refused(refused)
            if may_keep
                && refused
                    .iter()
                    .all(|(_, why)| matches!(why, Refusal::Expired { .. })) =>
        {
            inbox::keep(db, &slot, completion)
        }
        WaitsAnswer::AlreadyDecided(_) | WaitsAnswer::Missing if may_keep => {
            inbox::keep(db, &slot, completion)
        }
        WaitsAnswer::Completed { .. } => {
            inbox::remember(db, &slot, completion)?;
            Ok(answer)
        }
        answer => Ok(answer),
    }
}

/// Under what the inbox knows a signal: the name of its event or nothing, and its key or nothing.
pub(super) struct Slot {
    pub event: String,
    pub key: String,
}

fn slot(completion: &Completion, found: &[WaitRow], is_key: bool) -> Slot {
    match &completion.target {
        Target::Name(name) => Slot {
            event: String::new(),
            key: match found.first() {
                Some(row) if !is_key => row.key.clone(),
                _ => name.clone(),
            },
        },
        Target::Event { name, key } => Slot {
            event: name.clone(),
            key: key.clone().unwrap_or_default(),
        },
    }
}

/// Returns the open waits that an event is for.
fn of_event(
    db: &Connection,
    name: &str,
    key: Option<&str>,
    payload: &str,
) -> Result<Vec<WaitRow>, StoreError> {
    let text = |text: &str| Sql::Text(text.to_owned());
    let mut found = select(
        db,
        "wait.state = 'open' AND wait.event = ?1 AND wait.event_key IS NULL",
        [text(name)],
    )?;
    match key {
        Some(key) => found.extend(select(
            db,
            "wait.state = 'open' AND wait.event = ?1 AND wait.event_key = ?2",
            [text(name), text(key)],
        )?),
        None => {
            for path in event_paths(db, name)? {
                let Some(key) = event_key(&path, payload) else {
                    continue;
                };
                found.extend(select(
                    db,
                    "wait.state = 'open' AND wait.event = ?1 AND wait.event_key = ?2 AND wait.event_path = ?3",
                    [text(name), text(&key), text(&path)],
                )?);
            }
        }
    }
    Ok(found)
}

/// Returns the places of keys in an event's payload that open waits name, each once.
fn event_paths(db: &Connection, name: &str) -> Result<Vec<String>, StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT event_path FROM wait
             WHERE state = 'open' AND event = ?1 AND event_path IS NOT NULL AND event_path > ?2
             ORDER BY event_path LIMIT 1",
        )
        .map_err(failed)?;
    let mut paths: Vec<String> = Vec::new();
    loop {
        let last = paths.last().map_or("", String::as_str);
        let mut rows = sql.query([name, last]).map_err(failed)?;
        match rows.next().map_err(failed)? {
            Some(row) => paths.push(row.get(0).map_err(failed)?),
            None => return Ok(paths),
        }
    }
}

/// Gives the answer to each of the waits that takes it.
fn decide(
    db: &Connection,
    completion: &Completion,
    found: &[WaitRow],
) -> Result<WaitsAnswer, StoreError> {
    let (mut waits, mut refused) = (Vec::new(), Vec::new());
    for row in found.iter().filter(|row| row.state == WaitState::Open) {
        match judge(
            row,
            &completion.answer,
            &completion.target,
            completion.now_ms,
        ) {
            Ok(payload) => {
                set_completed(db, row, completion, &payload)?;
                waits.push(WaitRow {
                    state: WaitState::Completed,
                    payload: Some(payload),
                    ending: Some(completion.answer.ending),
                    decided_by: completion.answer.by.clone(),
                    decided_ms: Some(completion.now_ms),
                    ..row.clone()
                });
            }
            Err(refusal) => refused.push((row.clone(), refusal)),
        }
    }
    Ok(match (waits.is_empty(), refused.is_empty(), found.last()) {
        (false, _, _) => WaitsAnswer::Completed { waits, refused },
        (true, false, _) => WaitsAnswer::Refused(refused),
        (true, true, Some(last)) => WaitsAnswer::AlreadyDecided(Box::new(last.clone())),
        (true, true, None) => WaitsAnswer::Missing,
    })
}

fn set_completed(
    db: &Connection,
    row: &WaitRow,
    completion: &Completion,
    payload: &str,
) -> Result<(), StoreError> {
    let changed = db
        .prepare_cached(
            "UPDATE wait SET state = 'completed', payload = ?2, ending = ?3, decided_by = ?4, decided_ms = ?5
             WHERE id = ?1 AND state = 'open' AND (deadline_ms IS NULL OR deadline_ms > ?5)",
        )
        .and_then(|mut sql| {
            sql.execute(params![
                row.id,
                payload,
                completion.answer.ending.name(),
                completion.answer.by,
                completion.now_ms
            ])
        })
        .map_err(failed)?;
    match changed {
        1 => Ok(()),
        _ => Err(StoreError::Internal(format!(
            "the wait {} changed inside a transaction",
            row.id
        ))),
    }
}
