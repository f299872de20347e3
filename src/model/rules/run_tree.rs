//! Run trees: the effects of the end of a run on its parent and its children.

use super::answers;
use super::jobs;
use super::queue::{self, Withdrawn};
use super::rows::Rows;
use crate::ids::RunId;
use crate::ports::{
    AnswerRules, CHILD_KEY, Completion, Durability, ParentClose, RunStatus, StoreError, Target,
    WaitAnswer, WaitEnding,
};

/// A run in a run tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub num: i64,
    pub id: RunId,
    pub status: RunStatus,
    pub has_parent: bool,
    pub close: ParentClose,
}

/// The effect on a child when its parent ends or gives it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The child continues.
    Continues,
    /// The child is asked to cancel; a queued one is cancelled at once.
    AskedToCancel,
    /// The child is ended at once, and its own children by their policies.
    Ended,
}

/// Decides the effect on a child when its parent ends or gives it up.
pub fn fate(child: &Member) -> Fate {
    match child.close {
        _ if child.status.is_final() => Fate::Continues,
        ParentClose::Abandon => Fate::Continues,
        ParentClose::RequestCancel => Fate::AskedToCancel,
        ParentClose::Terminate => Fate::Ended,
    }
}

/// Returns the signal that reports the end of a child to its parent. It has an effect only once, however often it is
/// sent.
pub fn end_of_child(child: &RunId, status: RunStatus, now_ms: i64) -> Completion {
    let payload = format!("{{:status :{}}}", status.name());
    signal(
        &format!("{CHILD_KEY}{child}"),
        child.as_str(),
        payload,
        now_ms,
    )
}

/// Returns a completion that is kept until its wait opens; of several with the same `dedup` the first one counts.
pub fn signal(key: &str, dedup: &str, payload: String, now_ms: i64) -> Completion {
    Completion {
        target: Target::Name(key.to_owned()),
        answer: WaitAnswer {
            payload,
            ending: WaitEnding::Answered,
            by: None,
            roles: Vec::new(),
            digest: None,
            is_unattended: false,
        },
        workspace: None,
        dedup: Some(dedup.to_owned()),
        keep: true,
        durability: Durability::Full,
        rules: AnswerRules::default(),
        now_ms,
    }
}

/// Ends a run at once. Returns the status that it had; a finished run stays as it is.
///
/// # Errors
/// When the store fails.
pub fn terminate<R: Rows>(
    rows: &mut R,
    run: &RunId,
    reason: &str,
    now_ms: i64,
) -> Result<Option<RunStatus>, StoreError> {
    let Some(found) = rows.member(run)? else {
        return Ok(None);
    };
    let before = found.status;
    if !before.is_final() {
        end(rows, found, reason, now_ms)?;
    }
    Ok(Some(before))
}

/// Ends children of a run by their policies: all of them when the run is over, or the one that it gives up.
///
/// # Errors
/// When the store fails.
pub fn close_children<R: Rows>(
    rows: &mut R,
    run: &RunId,
    only: Option<&RunId>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let reason = match only {
        Some(_) => format!("its parent {run} gave it up"),
        None => over(run),
    };
    let mut children = rows.open_children(run.as_str())?;
    children.retain(|child| only.is_none_or(|only| *only == child.id));
    for child in children {
        match fate(&child) {
            Fate::Continues => {}
            Fate::AskedToCancel => request_cancel(rows, &child.id, &reason, now_ms)?,
            Fate::Ended => end(rows, child, &reason, now_ms)?,
        }
    }
    Ok(())
}

fn over(parent: &RunId) -> String {
    format!("its parent {parent} has ended")
}

/// Ends a run and those of its descendants that end with it.
fn end<R: Rows>(rows: &mut R, run: Member, reason: &str, now_ms: i64) -> Result<(), StoreError> {
    let mut left = vec![(run, reason.to_owned())];
    while let Some((run, reason)) = left.pop() {
        rows.terminate(run.num, &reason, now_ms)?;
        rows.close_waits(run.num)?;
        ended(rows, run.num, RunStatus::Terminated, now_ms)?;
        if run.has_parent {
            answers::complete(rows, &end_of_child(&run.id, RunStatus::Terminated, now_ms))?;
        }
        let why = over(&run.id);
        for child in rows.open_children(run.id.as_str())? {
            match fate(&child) {
                Fate::Continues => {}
                Fate::AskedToCancel => request_cancel(rows, &child.id, &why, now_ms)?,
                Fate::Ended => left.push((child, why.clone())),
            }
        }
    }
    Ok(())
}

/// Asks a run to cancel; a queued one is cancelled at once.
///
/// # Errors
/// When the store fails.
pub fn request_cancel<R: Rows>(
    rows: &mut R,
    run: &RunId,
    reason: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    match queue::withdraw(rows, run, reason, now_ms)? {
        true => Ok(()),
        // Jobs that the run submits from now on, to clean up, are left.
        false if rows.ask_to_cancel(run, reason, now_ms)? => jobs::cancel_all(rows, run, now_ms),
        false => Ok(()),
    }
}

/// Releases the slot and the limit of a run that has ended, and cancels its jobs unless it completed. Must run in the
/// transaction that ends the run.
///
/// # Errors
/// When the store fails.
pub fn ended<R: Rows>(
    rows: &mut R,
    num: i64,
    status: RunStatus,
    now_ms: i64,
) -> Result<(), StoreError> {
    if status != RunStatus::Completed {
        let run = rows.id_of(num)?;
        jobs::cancel_all(rows, &run, now_ms)?;
    }
    queue::ended(rows, num, now_ms)
}

/// Cancels a queued run and notifies its parent. The caller settles its slot and its limit.
pub(super) fn cancel_queued<R: Rows>(
    rows: &mut R,
    run: &RunId,
    reason: &str,
    now_ms: i64,
) -> Result<Option<Withdrawn>, StoreError> {
    let withdrawn = rows.cancel_queued(run, reason, now_ms)?;
    if withdrawn.as_ref().is_some_and(|it| it.has_parent) {
        answers::complete(rows, &end_of_child(run, RunStatus::Cancelled, now_ms))?;
    }
    Ok(withdrawn)
}

#[cfg(test)]
mod tests;
