//! Answers to waits: which waits a name or an event refers to, who may answer, and which answer counts.
//!
//! Whether a wait takes an answer is decided by [`judge`].

use super::rows::WaitRows;
use crate::installation::Side;
use crate::ports::{
    Completion, NewWait, Refusal, StoreError, Target, WaitAnswer, WaitEnding, WaitRow, WaitState,
    WaitsAnswer,
};
use crate::registry::DEFAULT_WORKSPACE;
use crate::waits::{AnswerRules, Answered, event_key, is_for, judge};

/// Maximum number of ids that are listed if the beginning of an id is ambiguous.
const LISTED: usize = 6;

/// The waits that a name refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// An id, a token, or the beginning of exactly one id.
    One(Box<WaitRow>),
    /// The open waits of a key; if none is open, the last one.
    Key(Vec<WaitRow>),
    /// The beginning of several ids.
    Several(Vec<WaitRow>),
    Nothing,
}

impl Named {
    /// Returns the waits that were found.
    pub fn rows(&self) -> &[WaitRow] {
        match self {
            Named::One(row) => std::slice::from_ref(row),
            Named::Key(rows) | Named::Several(rows) => rows,
            Named::Nothing => &[],
        }
    }
}

/// Finds what a name refers to: an id, a token, a key, or the beginning of an id, in this order.
///
/// # Errors
/// When the store fails.
pub fn named<R: WaitRows>(rows: &mut R, name: &str) -> Result<Named, StoreError> {
    if let Some(row) = rows.wait_by_id(name)? {
        return Ok(Named::One(Box::new(row)));
    }
    if let Some(row) = rows.wait_by_token(name)? {
        return Ok(Named::One(Box::new(row)));
    }
    let open = rows.open_waits_of_key(name)?;
    if !open.is_empty() {
        return Ok(Named::Key(open));
    }
    if let Some(last) = rows.last_wait_of_key(name)? {
        return Ok(Named::Key(vec![last]));
    }
    if name.is_empty() {
        return Ok(Named::Nothing);
    }
    let mut found = rows.waits_by_prefix(name, LISTED)?;
    Ok(match found.len() {
        0 => Named::Nothing,
        1 => Named::One(Box::new(found.remove(0))),
        _ => Named::Several(found),
    })
}

/// The inbox slot of a signal: its workspace, the name of its event and its key, the last two empty if it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalSlot {
    /// Only waits of this workspace take it.
    pub workspace: String,
    pub event: String,
    pub key: String,
}

/// The state of a signal in the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalState {
    /// The signal waits for its wait.
    Kept,
    /// A wait took the signal; only its `dedup` matters.
    Taken,
    /// A wait refused the signal.
    Refused,
}

impl SignalState {
    /// Returns the name of the state in the store.
    pub fn name(self) -> &'static str {
        match self {
            SignalState::Kept => "kept",
            SignalState::Taken => "taken",
            SignalState::Refused => "refused",
        }
    }
}

/// A signal that arrived before its wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlySignal {
    pub num: i64,
    pub slot: SignalSlot,
    pub answer: WaitAnswer,
}

impl EarlySignal {
    fn key(&self) -> Option<&str> {
        Some(&*self.slot.key).filter(|key| !key.is_empty())
    }

    fn target(&self) -> Target {
        match self.slot.event.is_empty() {
            true => Target::Name(self.slot.key.clone()),
            false => Target::Event {
                name: self.slot.event.clone(),
                key: self.key().map(str::to_owned),
            },
        }
    }
}

/// The judgement of an answer by the waits that it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The completed waits, with their new state.
    pub completed: Vec<WaitRow>,
    pub refused: Vec<(WaitRow, Refusal)>,
    /// The last wait that was found, in any state.
    last: Option<WaitRow>,
}

/// Decides for each of the waits whether it takes the answer.
pub fn decide(completion: &Completion, found: &[WaitRow]) -> Verdict {
    let mut verdict = Verdict {
        last: found.last().cloned(),
        ..Verdict::default()
    };
    let Completion {
        answer,
        target,
        rules,
        now_ms,
        ..
    } = completion;
    for row in found.iter().filter(|row| row.state == WaitState::Open) {
        match judged(row, answer, target, *rules, *now_ms) {
            Ok(payload) => verdict.completed.push(WaitRow {
                state: WaitState::Completed,
                payload: Some(payload),
                ending: Some(answer.ending),
                decided_by: answer.by.clone(),
                decided_ms: Some(*now_ms),
                ..row.clone()
            }),
            Err(refusal) => verdict.refused.push((row.clone(), refusal)),
        }
    }
    verdict
}

/// Returns the payload in the form that the wait expects, if the wait and the fronts take the answer.
fn judged(
    row: &WaitRow,
    answer: &WaitAnswer,
    target: &Target,
    rules: AnswerRules,
    now_ms: i64,
) -> Result<String, Refusal> {
    let payload = judge(row, answer, target, now_ms)?;
    if answer.ending == WaitEnding::Answered {
        rules.check(row, &payload)?;
    }
    Ok(payload)
}

impl Verdict {
    /// Tells whether the answer is kept for a wait that opens later: no wait is open, or the deadlines of all have
    /// passed and they are about to close.
    pub fn is_for_later(&self) -> bool {
        let is_late = |(_, why): &(WaitRow, Refusal)| matches!(why, Refusal::Expired { .. });
        self.completed.is_empty() && self.refused.iter().all(is_late)
    }

    fn into_answer(self) -> WaitsAnswer {
        match (
            self.completed.is_empty(),
            self.refused.is_empty(),
            self.last,
        ) {
            (false, _, _) => WaitsAnswer::Completed {
                waits: self.completed,
                refused: self.refused,
            },
            (true, false, _) => WaitsAnswer::Refused(self.refused),
            (true, true, Some(last)) => WaitsAnswer::AlreadyDecided(Box::new(last)),
            (true, true, None) => WaitsAnswer::Missing,
        }
    }
}

/// Completes the waits that a target names: one by id, token or beginning of an id; all open ones by key or event. Waits of
/// another workspace than that of the sender do not exist for it.
/// Must run in one transaction.
///
/// # Errors
/// When the store fails.
pub fn complete<R: WaitRows>(
    rows: &mut R,
    completion: &Completion,
) -> Result<WaitsAnswer, StoreError> {
    let is_within = |row: &WaitRow| match &completion.workspace {
        Some(workspace) => Side::of(workspace, &row.flow).is_installer(),
        None => true,
    };
    let (found, is_key) = match &completion.target {
        Target::Name(name) => match named(rows, name)? {
            // The ends of children and jobs are reported under their keys, by the engine alone.
            Named::One(row) if !row.is_question() => (Vec::new(), false),
            Named::One(row) => (vec![*row], false),
            Named::Key(rows) => (rows, true),
            Named::Several(rows) => {
                let rows = rows.into_iter().filter(is_within);
                let ids = rows.map(|row| row.id).collect();
                return Ok(WaitsAnswer::Ambiguous(ids));
            }
            Named::Nothing => (Vec::new(), true),
        },
        Target::Event { name, key } => {
            let payload = &completion.answer.payload;
            (of_event(rows, name, key.as_deref(), payload)?, true)
        }
    };
    let found: Vec<WaitRow> = found.into_iter().filter(is_within).collect();
    let slot = slot(completion, &found, is_key);
    if let Some(dedup) = &completion.dedup
        && rows.has_signal(&slot, dedup)?
    {
        return Ok(WaitsAnswer::Duplicate);
    }
    let verdict = decide(completion, &found);
    let may_keep = completion.keep && is_key && completion.answer.ending == WaitEnding::Answered;
    if may_keep && verdict.is_for_later() {
        rows.add_signal(&slot, completion, SignalState::Kept)?;
        return Ok(WaitsAnswer::Kept);
    }
    for row in &verdict.completed {
        rows.set_answered(
            &row.id,
            &Answered {
                payload: row.payload.clone().unwrap_or_default(),
                ending: completion.answer.ending,
                by: completion.answer.by.clone(),
                at_ms: completion.now_ms,
            },
        )?;
    }
    if !verdict.completed.is_empty() && completion.dedup.is_some() {
        rows.add_signal(&slot, completion, SignalState::Taken)?;
    }
    Ok(verdict.into_answer())
}

/// Returns the slot of a signal. One of the operator, who has no workspace, is for the workspace of the home.
fn slot(completion: &Completion, found: &[WaitRow], is_key: bool) -> SignalSlot {
    let workspace = completion.workspace.clone();
    let workspace = workspace.unwrap_or_else(|| DEFAULT_WORKSPACE.to_owned());
    match &completion.target {
        Target::Name(name) => SignalSlot {
            workspace,
            event: String::new(),
            key: match found.first() {
                Some(row) if !is_key => row.key.clone(),
                _ => name.clone(),
            },
        },
        Target::Event { name, key } => SignalSlot {
            workspace,
            event: name.clone(),
            key: key.clone().unwrap_or_default(),
        },
    }
}

/// Returns the open waits that an event is for.
fn of_event<R: WaitRows>(
    rows: &mut R,
    name: &str,
    key: Option<&str>,
    payload: &str,
) -> Result<Vec<WaitRow>, StoreError> {
    let mut found = rows.open_waits_of_event(name, None, None)?;
    if key.is_some() {
        found.extend(rows.open_waits_of_event(name, key, None)?);
        return Ok(found);
    }
    for path in rows.event_paths(name)? {
        if let Some(key) = event_key(&path, payload) {
            found.extend(rows.open_waits_of_event(name, Some(&key), Some(&path))?);
        }
    }
    Ok(found)
}

/// Gives a wait that was just opened the first early signal that it takes. The wait refuses the signals before that one
/// permanently.
///
/// # Errors
/// When the store fails.
pub fn take_early<R: WaitRows>(
    rows: &mut R,
    wait: &NewWait,
    now_ms: i64,
) -> Result<(), StoreError> {
    let mut early = early(rows, wait)?;
    if early.is_empty() {
        return Ok(());
    }
    let Some(row) = rows.wait_by_id(&wait.id)? else {
        return Err(StoreError::Internal("a new wait was not found".to_owned()));
    };
    // The ends of children and jobs are of no workspace: the engine reports them, under keys of its own.
    early.retain(|signal| {
        !row.is_question() || Side::of(&signal.slot.workspace, &row.flow).is_installer()
    });
    for signal in early {
        match judged(&row, &signal.answer, &signal.target(), wait.rules, now_ms) {
            Ok(payload) => {
                rows.settle_signal(signal.num, &wait.id, None)?;
                let answered = Answered {
                    payload,
                    ending: WaitEnding::Answered,
                    by: signal.answer.by,
                    at_ms: now_ms,
                };
                return rows.set_answered(&wait.id, &answered);
            }
            Err(refusal) => rows.settle_signal(signal.num, &wait.id, Some(refusal.message()))?,
        }
    }
    Ok(())
}

/// Returns the signals that a new wait may take, the oldest first.
fn early<R: WaitRows>(rows: &mut R, wait: &NewWait) -> Result<Vec<EarlySignal>, StoreError> {
    let mut found = rows.kept_signals("", Some(&wait.key))?;
    if let Some(event) = &wait.event {
        match &event.key {
            Some(key) => {
                found.extend(rows.kept_signals(&event.name, Some(key))?);
                found.extend(rows.kept_signals(&event.name, Some(""))?);
            }
            None => found.extend(rows.kept_signals(&event.name, None)?),
        }
        found.retain(|signal| {
            let (slot, payload) = (&signal.slot, &signal.answer.payload);
            slot.event.is_empty() || is_for(event, &slot.event, signal.key(), payload)
        });
    }
    found.sort_unstable_by_key(|signal| signal.num);
    Ok(found)
}

#[cfg(test)]
mod tests;
