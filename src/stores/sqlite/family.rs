//! Runs that hang together: what becomes of a run's parent and children when it is ended.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{CHILD_KEY, ParentClose, RunStatus, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::failed;
use super::{queue, waits};

/// A run as far as its end matters to others.
struct Member {
    num: i64,
    id: String,
    status: RunStatus,
    has_parent: bool,
    close: ParentClose,
}

const MEMBER: &str = "SELECT num, id, status, parent, parent_close FROM run";

fn member(row: &rusqlite::Row<'_>) -> rusqlite::Result<Member> {
    let status: String = row.get(2)?;
    let close: Option<String> = row.get(4)?;
    Ok(Member {
        num: row.get(0)?,
        id: row.get(1)?,
        status: RunStatus::from_name(&status).unwrap_or(RunStatus::Failed),
        has_parent: row.get::<_, Option<String>>(3)?.is_some(),
        close: close
            .and_then(|name| ParentClose::from_name(&name))
            .unwrap_or_default(),
    })
}

/// Ends a run at once. Returns the status that it had.
pub(super) fn terminate(
    db: &Connection,
    run: &RunId,
    reason: &str,
    now_ms: i64,
) -> Result<Option<RunStatus>, StoreError> {
    let found = db
        .prepare_cached(&format!("{MEMBER} WHERE id = ?1"))
        .and_then(|mut sql| sql.query_row([run.as_str()], member).optional())
        .map_err(failed)?;
    let Some(found) = found else {
        return Ok(None);
    };
    let before = found.status;
    if !before.is_final() {
        end(db, found, reason, now_ms)?;
    }
    Ok(Some(before))
}

/// Ends children of a run by their policies: all when it is over, or the one that it gives up.
pub(super) fn close_children(
    db: &Connection,
    run: &str,
    only: Option<&RunId>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let reason = match only {
        Some(_) => format!("its parent {run} needs it no more"),
        None => format!("its parent {run} is over"),
    };
    let mut children = open_children(db, run)?;
    children.retain(|child| only.is_none_or(|only| only.as_str() == child.id));
    for child in children {
        match child.close {
            ParentClose::Abandon => {}
            ParentClose::RequestCancel => request_cancel(db, &child, &reason, now_ms)?,
            ParentClose::Terminate => end(db, child, &reason, now_ms)?,
        }
    }
    Ok(())
}

/// Ends a run and whatever of its descendants is to end with it.
fn end(db: &Connection, run: Member, reason: &str, now_ms: i64) -> Result<(), StoreError> {
    let mut left = vec![(run, reason.to_owned())];
    while let Some((run, reason)) = left.pop() {
        let status = RunStatus::Terminated.name();
        db.prepare_cached(
            "UPDATE run SET status = ?2, cancel = coalesce(cancel, ?3), force = 1, wait_reason = NULL, due_ms = NULL,
                            updated_ms = ?4, ended_ms = ?4, lease_epoch = lease_epoch + 1, lease_owner = NULL
             WHERE num = ?1",
        )
        .and_then(|mut sql| sql.execute(params![run.num, status, reason, now_ms]))
        .map_err(failed)?;
        waits::close_all(db, run.num)?;
        queue::ended(db, run.num, now_ms)?;
        if run.has_parent {
            tell_parent(db, &run.id, status, now_ms)?;
        }
        let why = format!("its parent {} is over", run.id);
        for child in open_children(db, &run.id)? {
            match child.close {
                ParentClose::Abandon => {}
                ParentClose::RequestCancel => request_cancel(db, &child, &why, now_ms)?,
                ParentClose::Terminate => left.push((child, why.clone())),
            }
        }
    }
    Ok(())
}

/// Lets the run that waits for this child go on.
pub(super) fn tell_parent(
    db: &Connection,
    child: &str,
    status: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let key = format!("{CHILD_KEY}{child}");
    let payload = format!("{{:status :{status}}}");
    waits::signal(db, &key, child, &payload, now_ms)
}

fn open_children(db: &Connection, run: &str) -> Result<Vec<Member>, StoreError> {
    let mut sql = db
        .prepare_cached(&format!("{MEMBER} WHERE parent = ?1 ORDER BY num"))
        .map_err(failed)?;
    let rows = sql.query_map([run], member).map_err(failed)?;
    let mut children = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
    children.retain(|child| !child.status.is_final());
    Ok(children)
}

fn request_cancel(
    db: &Connection,
    run: &Member,
    reason: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    if queue::withdraw(db, &RunId::from_text(&*run.id), reason, now_ms)? {
        return Ok(());
    }
    db.prepare_cached(
        "UPDATE run SET cancel = ?2, updated_ms = ?3 WHERE num = ?1 AND cancel IS NULL",
    )
    .and_then(|mut sql| sql.execute(params![run.num, reason, now_ms]))
    .map_err(failed)?;
    Ok(())
}
