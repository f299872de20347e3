//! Admission: whether a new run starts, waits in the queue, replaces others or is refused.

use super::jobs;
use super::queue::{Promotion, SlotRows};
use super::rows::Rows;
use super::run_tree;
use crate::ids::RunId;
use crate::ports::RunStatus;
use crate::ports::{
    Admission, LimitRule, NewRun, OnConflict, OnNewVersion, SlotRule, StartDecision, StartRules,
    StoreError,
};

/// A run that called another one, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub slot: Option<String>,
    pub program: String,
    pub limit: Option<String>,
    /// The run that called this one.
    pub parent: Option<RunId>,
    pub is_over: bool,
}

/// Determines whether a new run would have to wait for one of its callers, which wait for it.
#[derive(Debug)]
pub struct Deadlock<'a> {
    program: &'a str,
    rules: &'a StartRules,
    /// Number of callers so far that count for the limit of the new run.
    in_limit: u32,
}

impl<'a> Deadlock<'a> {
    pub fn new(program: &'a str, rules: &'a StartRules) -> Deadlock<'a> {
        Deadlock {
            program,
            rules,
            in_limit: 0,
        }
    }

    /// Adds the next caller, nearest first, and tells whether the new run would wait for it.
    pub fn is_caused_by(&mut self, caller: &Caller) -> bool {
        if caller.is_over {
            return false;
        }
        let in_slot = self.rules.slot.as_ref().is_some_and(|slot| {
            let is_apart = slot.on_new_version == OnNewVersion::Coexist;
            caller.slot.as_ref() == Some(&slot.name)
                && (!is_apart || caller.program == self.program)
        });
        let limit = self.rules.limit.as_ref();
        let counts = |limit: &&LimitRule| caller.limit.as_ref() == Some(&limit.name);
        self.in_limit += u32::from(limit.filter(counts).is_some());
        let is_full = limit
            .and_then(|limit| limit.concurrency)
            .is_some_and(|most| self.in_limit >= most);
        in_slot || is_full
    }
}

/// The runs in the slot of a new run, live or queued.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// A run of the same version.
    pub same: Option<RunId>,
    /// A run of another version.
    pub other: Option<RunId>,
}

impl Others {
    /// Returns the first run of either kind; live runs come first.
    pub fn of(rows: &SlotRows, program: &str) -> Others {
        let live = rows.live.iter().map(|run| (&run.program, &run.run));
        let queued = rows.heads.iter().map(|head| (&head.program, &head.run));
        let mut others = Others::default();
        for (version, run) in live.chain(queued) {
            let found = match version == program {
                true => &mut others.same,
                false => &mut others.other,
            };
            found.get_or_insert_with(|| run.clone());
        }
        others
    }

    /// Returns the run because of which the rule of a slot refuses a new one.
    pub fn refuses(&self, slot: &SlotRule) -> Option<&RunId> {
        match slot.on_conflict {
            OnConflict::Reject => self.same.as_ref(),
            OnConflict::CancelRunning | OnConflict::Queue => None,
        }
    }
}

/// Runs of a slot that a new run replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced<'a> {
    pub slot: &'a str,
    /// The version of the new run.
    pub program: &'a str,
    pub versions: Versions,
    pub reason: String,
}

/// The versions of a flow that a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// The version of the new run.
    Same,
    /// All other versions.
    Other,
}

impl Replaced<'_> {
    /// Tells whether runs of a version are replaced.
    pub fn includes(&self, program: &str) -> bool {
        match self.versions {
            Versions::Same => program == self.program,
            Versions::Other => program != self.program,
        }
    }
}

/// Returns the runs that a new run replaces by the rule of its slot.
pub fn replaced<'a>(slot: &'a SlotRule, run: &'a NewRun) -> Vec<Replaced<'a>> {
    let of = |versions, reason| Replaced {
        slot: &slot.name,
        program: &run.program.hash,
        versions,
        reason,
    };
    let mut replaced = Vec::new();
    if slot.on_new_version == OnNewVersion::Supersede {
        let reason = format!("superseded by run {}, of a newer version", run.id);
        replaced.push(of(Versions::Other, reason));
    }
    if slot.on_conflict == OnConflict::CancelRunning {
        let reason = format!("replaced by run {}", run.id);
        replaced.push(of(Versions::Same, reason));
    }
    replaced
}

/// Returns the decision about a new run.
pub fn decision(is_started: bool, slot: Option<&SlotRule>, others: &Others) -> StartDecision {
    let policy = slot
        .filter(|_| others.other.is_some())
        .map(|slot| slot.on_new_version);
    match (is_started, policy) {
        (true, Some(OnNewVersion::Coexist)) => StartDecision::Coexisted,
        (true, _) => StartDecision::Started,
        (false, Some(OnNewVersion::Drain)) => StartDecision::Blocked,
        (false, _) => StartDecision::Queued,
    }
}

/// Adds a run and decides whether it starts. Must run in one transaction.
///
/// # Errors
/// When the store fails.
pub fn admit<R: Rows>(
    rows: &mut R,
    run: &NewRun,
    rules: &StartRules,
) -> Result<Admission, StoreError> {
    if let Some(found) = rows.by_external_id(run)? {
        return Ok(admitted(found, StartDecision::Deduped, Vec::new()));
    }
    if rules.slot.is_none() && rules.limit.is_none() {
        let id = rows.insert(run, RunStatus::Running)?;
        return Ok(admitted(id, StartDecision::Started, Vec::new()));
    }
    if let Some(caller) = caller_in_the_way(rows, run, rules)? {
        return Ok(Admission::WaitsForCaller { caller });
    }
    let slot = rules.slot.as_ref();
    let others = match slot {
        Some(slot) => Others::of(&rows.slot(&slot.name)?, &run.program.hash),
        None => Others::default(),
    };
    if let Some(by) = slot.and_then(|slot| others.refuses(slot)) {
        return Ok(Admission::Taken { by: by.clone() });
    }
    let id = rows.insert(run, RunStatus::Queued)?;
    let num = rows.write_rules(&id, rules)?;
    let mut cancelled = Vec::new();
    for replaced in slot.iter().flat_map(|slot| replaced(slot, run)) {
        cancelled.extend(cancel(rows, &replaced, num, run.now_ms)?);
    }
    let mut promotion = Promotion::new(rows, run.now_ms);
    match slot {
        Some(slot) => promotion.settle_slot(&slot.name)?,
        None => {
            promotion.rows.set_next(num)?;
            promotion.settle_limit(rules.limit.as_ref().map(|limit| &*limit.name))?;
        }
    }
    let is_started = promotion.started.contains(&num);
    Ok(admitted(id, decision(is_started, slot, &others), cancelled))
}

fn admitted(run: RunId, decision: StartDecision, replaced: Vec<RunId>) -> Admission {
    Admission::Admitted {
        run,
        decision,
        replaced,
    }
}

/// Finds the nearest caller of a new run that the run would have to wait for.
fn caller_in_the_way<R: Rows>(
    rows: &mut R,
    run: &NewRun,
    rules: &StartRules,
) -> Result<Option<RunId>, StoreError> {
    let mut deadlock = Deadlock::new(&run.program.hash, rules);
    let mut above = run.parent.as_ref().map(|parent| parent.run.clone());
    while let Some(id) = above {
        let Some(caller) = rows.caller(&id)? else {
            return Ok(None);
        };
        if deadlock.is_caused_by(&caller) {
            return Ok(Some(id));
        }
        above = caller.parent;
    }
    Ok(None)
}

/// Cancels the queued runs that a new run replaces, and asks the live ones to cancel.
fn cancel<R: Rows>(
    rows: &mut R,
    replaced: &Replaced<'_>,
    num: i64,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let mut cancelled = rows.cancel_live(replaced, now_ms)?;
    for run in &cancelled {
        jobs::cancel_all(rows, run, now_ms)?;
    }
    let mut limits: Vec<String> = Vec::new();
    for head in rows.slot(replaced.slot)?.heads {
        if !replaced.includes(&head.program) {
            continue;
        }
        for id in rows.queued(replaced.slot, &head.program, num)? {
            // The slot is settled once by the caller, after all cancellations.
            let withdrawn = run_tree::cancel_queued(rows, &id, &replaced.reason, now_ms)?;
            limits.extend(
                withdrawn
                    .and_then(|it| it.limit)
                    .filter(|limit| !limits.contains(limit)),
            );
            cancelled.push(id);
        }
    }
    let mut promotion = Promotion::new(rows, now_ms);
    for limit in &limits {
        promotion.settle_limit(Some(limit))?;
    }
    Ok(cancelled)
}

#[cfg(test)]
mod tests;
