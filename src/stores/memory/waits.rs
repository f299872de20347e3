//! Waits and the inbox of signals in memory. The rules are [`flowstone_model::rules::answers`].

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Completion, Event, NewWait, PortFuture, SignalFilter, SignalRow, StoreError, WaitEnding,
    WaitFilter, WaitRow, WaitState, Waits, WaitsAnswer,
};
use flowstone_model::rules::answers::{self, EarlySignal, SignalSlot, SignalState};
use flowstone_model::rules::jobs;
use flowstone_model::rules::rows::WaitRows;
use flowstone_model::waits::Answered;

use super::state::{Signal, Wait, next};
use super::{News, Session, Tx};
use crate::failure::rejected;

impl Waits for Session {
    fn list(&self, filter: WaitFilter) -> PortFuture<'_, Vec<WaitRow>> {
        self.read(|tx| {
            let named = match &filter.target {
                Some(target) => Some(answers::named(tx, target)?),
                None => None,
            };
            let is_named = |row: &WaitRow| {
                let named = named.as_ref();
                named.is_none_or(|named| named.rows().iter().any(|it| it.id == row.id))
            };
            let mut found = tx.waits(|row| fits(row, &filter) && is_named(row));
            if let Some(last) = filter.last {
                found.drain(..found.len().saturating_sub(last));
            }
            Ok(found)
        })
    }

    fn at(&self, run: &RunId, path: &str) -> PortFuture<'_, Option<WaitRow>> {
        self.read(|tx| {
            let Some(num) = tx.state.number(run) else {
                return Ok(None);
            };
            let waits = tx.state.waits_of(num);
            let here = waits.filter(|(_, wait)| wait.row.path == path);
            let last = here.max_by_key(|(seq, wait)| (wait.row.state != WaitState::Closed, *seq));
            Ok(last.map(|(_, wait)| wait.row.clone()))
        })
    }

    fn token(&self, id: &str) -> PortFuture<'_, Option<String>> {
        self.read(|tx| {
            let found = tx.state.waits.values().find(|wait| wait.row.id == id);
            Ok(found.map(|wait| wait.token.clone()))
        })
    }

    fn complete(&self, completion: Completion) -> PortFuture<'_, WaitsAnswer> {
        self.write(News::Some, |tx| answers::complete(tx, &completion))
    }

    fn signals(&self, filter: SignalFilter) -> PortFuture<'_, Vec<SignalRow>> {
        self.read(|tx| {
            let signals = tx.state.inbox.values();
            let fitting = signals.filter(|signal| is_listed(signal, &filter));
            Ok(fitting.map(signal_row).collect())
        })
    }
}

fn fits(row: &WaitRow, filter: &WaitFilter) -> bool {
    let is_narrow = filter.run.is_some()
        || filter.target.is_some()
        || filter.key.is_some()
        || filter.webhook.is_some();
    let in_state = match (filter.all, is_narrow) {
        (false, _) => row.state == WaitState::Open,
        (true, false) => row.state != WaitState::Closed,
        (true, true) => true,
    };
    let is = |wanted: &Option<String>, found: Option<&str>| match wanted {
        Some(wanted) => found == Some(wanted),
        None => true,
    };
    in_state
        && filter.run.as_ref().is_none_or(|run| *run == row.run)
        && is(&filter.flow, Some(&row.flow))
        && is(&filter.key, Some(&row.key))
        && is(&filter.webhook, row.webhook.as_deref())
}

fn is_listed(signal: &Signal, filter: &SignalFilter) -> bool {
    let in_state = match &filter.refused_by {
        Some(wait) => signal.state == SignalState::Refused && signal.wait.as_ref() == Some(wait),
        None => signal.state != SignalState::Taken,
    };
    let SignalSlot { workspace, key, .. } = &signal.early.slot;
    let is = |wanted: &Option<String>, found: &String| {
        wanted.as_ref().is_none_or(|wanted| wanted == found)
    };
    in_state && is(&filter.key, key) && is(&filter.workspace, workspace)
}

fn signal_row(signal: &Signal) -> SignalRow {
    let named = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let EarlySignal { slot, answer, .. } = &signal.early;
    SignalRow {
        workspace: slot.workspace.clone(),
        event: named(&slot.event),
        key: named(&slot.key),
        dedup: signal.dedup.clone(),
        payload: answer.payload.clone(),
        by: answer.by.clone(),
        at_ms: signal.at_ms,
        refused: signal.wait.clone().zip(signal.refusal.clone()),
    }
}

impl Tx<'_> {
    /// Returns waits, the oldest first.
    fn waits(&self, condition: impl Fn(&WaitRow) -> bool) -> Vec<WaitRow> {
        let waits = self.state.waits.values().map(|wait| &wait.row);
        let mut found: Vec<WaitRow> = waits.filter(|row| condition(row)).cloned().collect();
        found.sort_by(|one, other| (one.opened_ms, &one.id).cmp(&(other.opened_ms, &other.id)));
        found
    }

    fn wait_mut(&mut self, condition: impl Fn(&Wait) -> bool) -> Option<&mut Wait> {
        let found = self.state.waits.iter().find(|(_, wait)| condition(wait));
        let seq = found.map(|(seq, _)| *seq)?;
        self.state.waits.get_mut(&seq)
    }

    /// Opens a wait; an early signal that matches completes it.
    pub(super) fn open_wait(
        &mut self,
        num: i64,
        wait: &NewWait,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let Some(run) = self.state.runs.get(&num) else {
            return Err(StoreError::Internal(format!("there is no run {num}")));
        };
        let row = WaitRow {
            id: wait.id.clone(),
            run: run.row.id.clone(),
            flow: run.row.flow.clone(),
            path: wait.path.clone(),
            key: wait.key.clone(),
            state: WaitState::Open,
            deadline_ms: wait.deadline_ms,
            details: wait.details.clone(),
            digest: wait.digest.clone(),
            payload: None,
            opened_ms: now_ms,
            ending: None,
            decided_by: None,
            decided_ms: None,
            event: wait.event.clone(),
            webhook: wait.webhook.clone(),
        };
        self.add_wait(num, row, wait.token.clone())?;
        self.state
            .add_event_with_above(num, &wait.key, Event::wait_opened(wait, now_ms));
        jobs::answer_if_ended(self, wait, now_ms)?;
        answers::take_early(self, wait, now_ms)
    }

    pub(super) fn add_wait(
        &mut self,
        run: i64,
        row: WaitRow,
        token: String,
    ) -> Result<(), StoreError> {
        let is_taken = self.state.waits.values().any(|wait| {
            let in_place = wait.run == run && wait.row.path == row.path;
            let is_open = |state| state != WaitState::Closed;
            wait.row.id == row.id
                || wait.token == token
                || (in_place && is_open(wait.row.state) && is_open(row.state))
        });
        if is_taken {
            let message = format!("there are two waits {} or two at `{}`", row.id, row.path);
            return Err(StoreError::Internal(message));
        }
        let seq = next(&self.state.waits);
        self.state.waits.insert(seq, Wait { run, row, token });
        Ok(())
    }

    /// Closes a wait that is in the state that the caller saw.
    pub(super) fn close_wait(
        &mut self,
        num: i64,
        path: &str,
        seen: WaitState,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let is_seen =
            |wait: &Wait| wait.run == num && wait.row.path == path && wait.row.state == seen;
        let Some(wait) = self.wait_mut(is_seen) else {
            let name = match seen {
                WaitState::Open => "open",
                WaitState::Completed => "completed",
                WaitState::Closed => "closed",
            };
            let message = format!("the wait at `{path}` is no longer {name}");
            return Err(rejected("E0515", "conflict", message));
        };
        wait.row.state = WaitState::Closed;
        match seen {
            // The caller closes an open wait because its deadline has passed.
            WaitState::Open => {
                wait.row.ending = Some(WaitEnding::TimedOut);
                wait.row.decided_ms = Some(now_ms);
                let row = wait.row.clone();
                self.note_timed_out(num, &row, now_ms);
            }
            WaitState::Completed | WaitState::Closed => {
                wait.row.decided_ms.get_or_insert(now_ms);
            }
        }
        Ok(())
    }

    /// Closes the waits of a step: its own wait and the questions about it. Returns their keys.
    pub(super) fn close_waits_of(&mut self, num: i64, path: &str) -> Vec<String> {
        let mut keys = Vec::new();
        let is_of = |wait: &Wait| {
            let rest = wait.row.path.strip_prefix(path);
            wait.run == num
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['?', '/', '~']))
        };
        while let Some(wait) =
            self.wait_mut(|wait| is_of(wait) && wait.row.state != WaitState::Closed)
        {
            wait.row.state = WaitState::Closed;
            keys.push(wait.row.key.clone());
        }
        keys
    }
}

impl WaitRows for Tx<'_> {
    fn wait_by_id(&mut self, id: &str) -> Result<Option<WaitRow>, StoreError> {
        Ok(self.waits(|row| row.id == id).pop())
    }

    fn wait_by_token(&mut self, token: &str) -> Result<Option<WaitRow>, StoreError> {
        let found = self.state.waits.values().find(|wait| wait.token == token);
        Ok(found.map(|wait| wait.row.clone()))
    }

    fn waits_by_prefix(&mut self, prefix: &str, most: usize) -> Result<Vec<WaitRow>, StoreError> {
        let mut found = self.waits(|row| row.id.starts_with(prefix));
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.truncate(most);
        Ok(found)
    }

    fn open_waits_of_key(&mut self, key: &str) -> Result<Vec<WaitRow>, StoreError> {
        Ok(self.waits(|row| row.key == key && row.state == WaitState::Open))
    }

    fn last_wait_of_key(&mut self, key: &str) -> Result<Option<WaitRow>, StoreError> {
        let waits = self.state.waits.iter();
        let of_key = waits.filter(|(_, wait)| wait.row.key == key);
        let last = of_key.max_by_key(|(seq, wait)| (wait.row.opened_ms, **seq));
        Ok(last.map(|(_, wait)| wait.row.clone()))
    }

    fn open_waits_of_event(
        &mut self,
        event: &str,
        key: Option<&str>,
        path: Option<&str>,
    ) -> Result<Vec<WaitRow>, StoreError> {
        let waits = self.state.waits.values().filter(|wait| wait.is_open());
        let found = waits.filter(|wait| {
            wait.row.event.as_ref().is_some_and(|wanted| {
                let at_path = key.is_none() || path.is_none() || wanted.path.as_deref() == path;
                wanted.name == event && wanted.key.as_deref() == key && at_path
            })
        });
        Ok(found.map(|wait| wait.row.clone()).collect())
    }

    fn event_paths(&mut self, event: &str) -> Result<Vec<String>, StoreError> {
        let waits = self.state.waits.values().filter(|wait| wait.is_open());
        let events = waits.filter_map(|wait| wait.row.event.as_ref());
        let of_name = events.filter(|wanted| wanted.name == event);
        let mut paths: Vec<String> = of_name.filter_map(|wanted| wanted.path.clone()).collect();
        paths.sort_unstable();
        paths.dedup();
        Ok(paths)
    }

    fn set_answered(&mut self, id: &str, answered: &Answered) -> Result<(), StoreError> {
        let is_in_time =
            |deadline: Option<i64>| deadline.is_none_or(|deadline| deadline > answered.at_ms);
        let open =
            |wait: &Wait| wait.row.id == id && wait.is_open() && is_in_time(wait.row.deadline_ms);
        let Some(wait) = self.wait_mut(open) else {
            let message = format!("the wait {id} changed inside a transaction");
            return Err(StoreError::Internal(message));
        };
        wait.row.state = WaitState::Completed;
        wait.row.payload = Some(answered.payload.clone());
        wait.row.ending = Some(answered.ending);
        wait.row.decided_by.clone_from(&answered.by);
        wait.row.decided_ms = Some(answered.at_ms);
        let (num, row) = (wait.run, wait.row.clone());
        self.note_answered(num, &row, answered);
        Ok(())
    }

    fn has_signal(&mut self, slot: &SignalSlot, dedup: &str) -> Result<bool, StoreError> {
        let mut signals = self.state.inbox.values();
        Ok(signals
            .any(|signal| signal.early.slot == *slot && signal.dedup.as_deref() == Some(dedup)))
    }

    fn add_signal(
        &mut self,
        slot: &SignalSlot,
        completion: &Completion,
        state: SignalState,
    ) -> Result<(), StoreError> {
        let num = next(&self.state.inbox);
        let mut answer = completion.answer.clone();
        answer.digest = None;
        if state != SignalState::Kept {
            // Only the `dedup` of a taken signal is needed.
            "nil".clone_into(&mut answer.payload);
        }
        let signal = Signal {
            early: EarlySignal {
                num,
                slot: slot.clone(),
                answer,
            },
            state,
            dedup: completion.dedup.clone(),
            wait: None,
            refusal: None,
            at_ms: completion.now_ms,
        };
        self.state.inbox.insert(num, signal);
        Ok(())
    }

    fn kept_signals(
        &mut self,
        event: &str,
        key: Option<&str>,
    ) -> Result<Vec<EarlySignal>, StoreError> {
        let signals = self.state.inbox.values();
        let kept = signals.filter(|signal| {
            let slot = &signal.early.slot;
            let has_key = key.is_none_or(|key| slot.key == key);
            signal.state == SignalState::Kept && slot.event == event && has_key
        });
        Ok(kept.map(|signal| signal.early.clone()).collect())
    }

    fn settle_signal(
        &mut self,
        num: i64,
        wait: &str,
        refusal: Option<String>,
    ) -> Result<(), StoreError> {
        if let Some(signal) = self.state.inbox.get_mut(&num) {
            signal.state = match refusal {
                Some(_) => SignalState::Refused,
                None => SignalState::Taken,
            };
            signal.wait = Some(wait.to_owned());
            signal.refusal = refusal;
        }
        Ok(())
    }
}
