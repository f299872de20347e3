//! The queue in front of slots and limits: which run starts next, and when.
//!
//! A queued run first waits for its slot. The next run of a slot keeps the slot free for itself and waits for its
//! limit, if it has one. So a run acquires slot and limit in a fixed order, and the end of a run concerns only the
//! heads of two queues, however long these are. Usage is read from the rows of live runs; there are no counters.

use super::rows::{QueueRows, Rows};
use super::run_tree;
use crate::ids::RunId;
use crate::ports::{QueuePlace, QueueReason, RateRule, StoreError};

/// Maximum number of live runs that are listed for a run that waits for them.
const NAMED: usize = 8;

/// A live run in a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    pub program: String,
    pub run: RunId,
}

/// The first run in a slot's queue, of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub program: String,
    pub run: RunId,
    pub num: i64,
    pub priority: i64,
    /// Runs of other versions do not occupy the slot for this run.
    pub apart: bool,
    pub limit: Option<String>,
}

/// The runs in a slot: for each version at most one live run and the first queued one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotRows {
    pub live: Vec<Occupant>,
    pub heads: Vec<Head>,
}

/// The queued runs that get a slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotTurn {
    /// Runs that start at once.
    pub start: Vec<i64>,
    /// Runs that are next and wait for their limit.
    pub next: Vec<(i64, String)>,
}

/// Decides which queued runs get a slot that has no next run yet.
pub fn slot_turn(rows: &SlotRows) -> SlotTurn {
    let mut holders: Vec<&str> = rows.live.iter().map(|run| &*run.program).collect();
    let mut heads: Vec<&Head> = rows.heads.iter().collect();
    heads.sort_by_key(|head| (std::cmp::Reverse(head.priority), head.num));
    let mut turn = SlotTurn::default();
    for head in heads {
        let is_taken = match head.apart {
            true => holders.contains(&&*head.program),
            false => !holders.is_empty(),
        };
        if is_taken {
            continue;
        }
        holders.push(&head.program);
        match &head.limit {
            None => turn.start.push(head.num),
            Some(limit) => turn.next.push((head.num, limit.clone())),
        }
    }
    turn
}

/// The first run that waits for a limit, with the bounds of that limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited {
    pub num: i64,
    /// Maximum number of live runs.
    pub runs: Option<u32>,
    pub rate: Option<RateRule>,
}

impl Limited {
    /// Tells whether the limit has its maximum of live runs.
    pub fn is_full(&self, live: u32) -> bool {
        self.runs.is_some_and(|runs| live >= runs)
    }
}

/// Returns when a rate allows another start, unless that is now. `earlier`: the start that is `rate.max` starts ago.
pub fn rate_due(rate: RateRule, earlier: Option<i64>, now_ms: i64) -> Option<i64> {
    let due_ms = earlier?.saturating_add(rate.per_ms);
    (due_ms > now_ms).then_some(due_ms)
}

/// A queued run that was cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawn {
    pub num: i64,
    pub limit: Option<String>,
    pub has_parent: bool,
}

/// Starts queued runs, at one instant.
pub(super) struct Promotion<'a, R> {
    pub rows: &'a mut R,
    pub now_ms: i64,
    /// The numbers of the runs that were started.
    pub started: Vec<i64>,
}

impl<'a, R: QueueRows> Promotion<'a, R> {
    pub(super) fn new(rows: &'a mut R, now_ms: i64) -> Promotion<'a, R> {
        Promotion {
            rows,
            now_ms,
            started: Vec::new(),
        }
    }

    /// Gives a slot to the next runs. A run that was next and has not begun is considered again: a run with a higher
    /// priority may have been added.
    pub(super) fn settle_slot(&mut self, slot: &str) -> Result<(), StoreError> {
        let mut limits = self.rows.clear_next(slot)?;
        let turn = slot_turn(&self.rows.slot(slot)?);
        for num in turn.start {
            self.start(num)?;
        }
        for (num, limit) in turn.next {
            self.rows.set_next(num)?;
            limits.push(Some(limit));
        }
        limits.sort_unstable();
        limits.dedup();
        for limit in limits {
            self.settle_limit(limit.as_deref())?;
        }
        Ok(())
    }

    /// Starts the runs that a limit allows, and records when the next one may start.
    pub(super) fn settle_limit(&mut self, limit: Option<&str>) -> Result<(), StoreError> {
        let Some(limit) = limit else {
            return Ok(());
        };
        self.rows.clear_due(limit)?;
        while let Some(first) = self.rows.first_in_limit(limit)? {
            let live = match first.runs {
                Some(most) => self.rows.live_in_limit(limit, most)?,
                None => 0,
            };
            if first.is_full(live) {
                return Ok(());
            }
            if let Some(rate) = first.rate {
                // After the clock was set back, starts are delayed by at most the interval of the rate.
                self.rows.cap_starts(limit, self.now_ms)?;
                let earlier = self.rows.earlier_start(limit, rate.max)?;
                if let Some(due_ms) = rate_due(rate, earlier, self.now_ms) {
                    return self.rows.set_due(first.num, due_ms);
                }
            }
            self.start(first.num)?;
        }
        Ok(())
    }

    fn start(&mut self, num: i64) -> Result<(), StoreError> {
        self.rows.start(num, self.now_ms)?;
        self.started.push(num);
        Ok(())
    }
}

/// Starts the queued runs whose time has come, and returns them.
///
/// # Errors
/// When the store fails.
pub fn promote<R: QueueRows>(rows: &mut R, now_ms: i64) -> Result<Vec<RunId>, StoreError> {
    let due = rows.due_limits(now_ms)?;
    let mut promotion = Promotion::new(rows, now_ms);
    for limit in &due {
        promotion.settle_limit(Some(limit))?;
    }
    let started = promotion.started;
    started.into_iter().map(|num| rows.id_of(num)).collect()
}

/// Releases the slot and the limit of a finished run. Must run in the transaction that ends the run.
///
/// # Errors
/// When the store fails.
pub fn ended<R: QueueRows>(rows: &mut R, num: i64, now_ms: i64) -> Result<(), StoreError> {
    let (slot, limit) = rows.needs(num)?;
    let mut promotion = Promotion::new(rows, now_ms);
    if let Some(slot) = slot {
        promotion.settle_slot(&slot)?;
    }
    promotion.settle_limit(limit.as_deref())
}

/// Cancels a run that has not begun, which needs no executor. Returns whether the run was queued.
///
/// # Errors
/// When the store fails.
pub fn withdraw<R: Rows>(
    rows: &mut R,
    run: &RunId,
    reason: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let withdrawn = run_tree::cancel_queued(rows, run, reason, now_ms)?;
    if let Some(withdrawn) = &withdrawn {
        ended(rows, withdrawn.num, now_ms)?;
    }
    Ok(withdrawn.is_some())
}

/// A queued run that is next, with the state of its limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitView {
    /// Maximum number of live runs.
    pub runs: Option<u32>,
    pub due_ms: Option<i64>,
    /// The live runs of the limit, the oldest first.
    pub live: Vec<RunId>,
    /// Number of runs that start before it.
    pub ahead: u32,
}

/// Returns the place of a queued run that has its slot.
pub fn place_before_limit(view: LimitView) -> QueuePlace {
    let is_full = view
        .runs
        .is_some_and(|runs| view.live.len() >= runs as usize);
    let (waits_for, behind) = match is_full {
        true => (QueueReason::Limit, named(view.live)),
        false => (QueueReason::Rate, Vec::new()),
    };
    QueuePlace {
        waits_for,
        position: view.ahead + 1,
        behind,
        due_ms: view.due_ms,
    }
}

/// Returns the place of a queued run that waits for its slot. `behind`: the runs that hold it, or are next.
pub fn place_before_slot(behind: Vec<RunId>, ahead: u32) -> QueuePlace {
    QueuePlace {
        waits_for: QueueReason::Slot,
        position: ahead + 1,
        behind: named(behind),
        due_ms: None,
    }
}

fn named(mut runs: Vec<RunId>) -> Vec<RunId> {
    runs.truncate(NAMED);
    runs
}

#[cfg(test)]
mod tests;
