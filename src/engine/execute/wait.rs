//! Waiting for a time or for an answer: in the process if the options allow it, otherwise as a row.

use flowstone_lang::value::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::branch::Waiting;
use super::call::StepCall;
use super::requests::{Performed, Request};
use super::{Executor, Halt};
use crate::codec;
use crate::error::EngineError;
use crate::observer::RunEvent;
use crate::ports::{
    BATCH_KEY, Change, Entry, EntryKind, JOB_KEY, NewWait, News, RunStatus, RunUpdate, StoreError,
    WaitEnding, WaitRow, WaitState,
};
use crate::state::{Event, Note};
use crate::step::{OnTimeout, StepError, WaitSpec};

/// The waits for which the execution stays in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stay {
    /// Neither timers nor answers, because the caller finds due runs itself.
    No,
    /// Pauses that are shorter than suspending and resuming would take.
    Briefly,
    /// Sleeps and retries, but no wait for an answer, even if it has a deadline.
    Sleeps,
    /// Sleeps and retries, but not answers from outside.
    #[default]
    Timers,
    /// All waits, including answers from outside.
    Always,
}

/// Maximum length of a pause in milliseconds that does not change the run's status.
const SHORT_MS: i64 = 1_000;
/// Interval at which a process that stays checks for an answer.
const POLL_EVERY_MS: i64 = 250;

/// The outcome of a wait.
pub(super) enum Waited {
    /// EDN text of the answer.
    Answered(String),
    TimedOut,
}

/// A run that stays in memory for a while.
struct Alive {
    /// One of the places for such runs.
    _permit: OwnedSemaphorePermit,
    /// How long after the wait has opened.
    millis: i64,
    /// Changes with the answer.
    news: Box<dyn News>,
}

impl Alive {
    fn lasts(&self, row: &WaitRow, now_ms: i64) -> bool {
        row.opened_ms.saturating_add(self.millis) > now_ms
    }
}

impl Executor<'_> {
    /// Waits until a time. `value`: the answer of a step that sleeps.
    pub(super) async fn sleep(
        &self,
        request: &mut Request<'_, '_>,
        until_ms: i64,
        value: Option<Value>,
    ) -> Result<Performed, Halt> {
        request.since_ms = Some(self.now_ms());
        self.pause(request.call, until_ms).await?;
        let text = match value {
            Some(value) => codec::encode(&value).map_err(EngineError::from)?,
            None => String::new(),
        };
        Ok(Performed::Event(Event::Due { text }))
    }

    /// Waits until a time, here or by suspending.
    pub(super) async fn pause(&self, call: &StepCall<'_>, due_ms: i64) -> Result<(), Halt> {
        let left = due_ms - self.now_ms();
        if left <= 0 {
            self.awake();
            return Ok(());
        }
        let reason = format!("`{}` until {}", call.title, codec::instant(due_ms));
        let stays = match self.options.stay {
            Stay::No => false,
            Stay::Briefly => left <= SHORT_MS,
            Stay::Sleeps | Stay::Timers | Stay::Always => true,
        };
        if stays && left <= SHORT_MS {
            self.shared.journal.post()?;
        } else {
            self.mark_waiting(call, &reason, Some(due_ms), Vec::new())
                .await?;
        }
        let is_short = stays && left <= SHORT_MS;
        let waiting = Waiting {
            reason,
            due_ms: Some(due_ms),
            stays,
        };
        if !stays {
            while self.now_ms() < due_ms {
                self.poll_again(call, &waiting).await?;
            }
        } else {
            let _waiting = (!is_short).then(|| call.branch.wait(waiting));
            let clock = self.engine.services.clock.clone();
            let until_ms = self.bounded(Some(due_ms)).unwrap_or(due_ms);
            tokio::select! {
                biased;
                () = clock.sleep_until(until_ms) => {}
                halt = self.halted() => return Err(halt),
            }
            if until_ms < due_ms {
                self.check_cancel()?;
            }
        }
        self.awake();
        Ok(())
    }

    /// If the process does not stay for the wait of a branch: suspends, or waits briefly while other branches of the
    /// run are active.
    pub(super) async fn poll_again(
        &self,
        call: &StepCall<'_>,
        waiting: &Waiting,
    ) -> Result<(), Halt> {
        if call.branch.is_main() {
            return Err(Halt::Suspended {
                reason: waiting.reason.clone(),
                due_ms: waiting.due_ms,
            });
        }
        let _waiting = call.branch.wait(waiting.clone());
        tokio::select! {
            biased;
            halt = self.halted() => Err(halt),
            () = self.polls.notified() => Ok(()),
        }
    }

    /// Writes the waits of all branches to the run's row.
    pub(super) fn write_waits(&self, reason: &str, due_ms: Option<i64>) -> Result<(), StoreError> {
        self.shared
            .journal
            .push(waits_for(reason, self.bounded(due_ms)));
        self.is_waiting.set(true);
        self.shared.journal.post()
    }

    /// Marks a branch as waiting. The run's row says so when all branches wait: see [`Self::write_waits`].
    pub(super) async fn mark_waiting(
        &self,
        call: &StepCall<'_>,
        reason: &str,
        due_ms: Option<i64>,
        mut changes: Vec<Change>,
    ) -> Result<(), StoreError> {
        if call.branch.is_main() {
            changes.push(waits_for(reason, self.bounded(due_ms)));
            self.is_waiting.set(true);
        } else if changes.is_empty() {
            return self.shared.journal.post();
        }
        self.shared.journal.commit(changes).await?;
        Ok(())
    }

    /// Journals an entry about a wait that stays open, and the time at which to act on it again.
    pub(super) async fn note_waiting(
        &self,
        call: &StepCall<'_>,
        due_ms: Option<i64>,
        entry: Entry,
    ) -> Result<(), StoreError> {
        let reason = format!("`{}` waits for an answer", call.title);
        self.mark_waiting(call, &reason, due_ms, vec![Change::Append(entry)])
            .await
    }

    /// Marks the run as running again, if its row has the status of waiting.
    pub(super) fn awake(&self) {
        if self.is_waiting.replace(false) {
            self.shared.journal.push(Change::Update(RunUpdate {
                status: RunStatus::Running,
                wait_reason: None,
                due_ms: None,
                result: None,
                error: None,
            }));
        }
    }

    /// Opens the wait of a step.
    pub(super) async fn start_wait(
        &self,
        request: &mut Request<'_, '_>,
        spec: WaitSpec,
    ) -> Result<Performed, Halt> {
        let call = request.call;
        let (on_timeout, default) = match &spec.on_timeout {
            OnTimeout::Fail => ("fail", Value::Nil),
            OnTimeout::Continue(value) => ("continue", value.clone()),
        };
        let details = Value::map([
            (Value::keyword("step"), Value::from(call.path.step.as_str())),
            (Value::keyword("title"), Value::from(call.title.as_str())),
            (Value::keyword("on-timeout"), Value::keyword(on_timeout)),
            (Value::keyword("default-value"), default),
            (Value::keyword("validation"), spec.validation),
            (Value::keyword("show"), spec.details),
        ]);
        let details = match codec::encode(&details) {
            Ok(text) => self.scope.redact_strings(text),
            Err(error) => {
                let message = format!("what the wait shows cannot be stored: {error}");
                let error = StepError::new(error.code(), "invalid", message);
                return Ok(Performed::failed(error));
            }
        };
        let key = spec
            .key
            .unwrap_or_else(|| format!("{}/{}", self.pass_name(), call.at));
        let wait = NewWait {
            event: spec.event,
            webhook: spec.webhook,
            ..self.new_wait(call.at.clone(), key, spec.deadline_ms, details)
        };
        let note = Note::Wait {
            attempt: request.progress.attempts,
        };
        self.open_wait(request, note, wait).await?;
        Ok(Performed::Moved)
    }

    pub(super) fn new_wait(
        &self,
        path: String,
        key: String,
        deadline_ms: Option<i64>,
        details: String,
    ) -> NewWait {
        let random = &self.engine.services.random;
        let id = crate::ids::RunId::new(self.now_ms(), random.next());
        NewWait {
            id: format!("w{id}"),
            digest: crate::waits::shown_digest(&key, &details),
            path,
            key,
            token: format!("{:016x}{:016x}", random.next(), random.next()),
            deadline_ms,
            details,
            event: None,
            webhook: None,
            rules: self.engine.services.answer_rules,
        }
    }

    /// Journals that a request waits for an answer and opens the wait, in one commit.
    pub(super) async fn open_wait(
        &self,
        request: &mut Request<'_, '_>,
        note: Note,
        wait: NewWait,
    ) -> Result<(), Halt> {
        let call = request.call;
        self.shared.journal.usage().waits(&wait.path)?;
        let text = note.into_payload(|error| self.error_text(call, error));
        let entry = call.entry(self, EntryKind::Timer, text.clone());
        let reason = waits_for_key(call, &wait.key);
        let due_ms = wait.deadline_ms;
        let changes = vec![Change::Append(entry), Change::OpenWait(Box::new(wait))];
        self.mark_waiting(call, &reason, due_ms, changes).await?;
        request.progress.fold(EntryKind::Timer, text);
        Ok(())
    }

    /// Waits for the answer to a step's own wait.
    pub(super) async fn wait(&self, request: &mut Request<'_, '_>) -> Result<Performed, Halt> {
        let call = request.call;
        self.shared.journal.usage().waits(&call.at)?;
        let since_ms = self.now_ms();
        loop {
            let notice = &mut request.progress.notice;
            let wake_ms = Box::pin(self.notify(call, notice)).await?;
            let attempts = request.progress.attempts;
            let found = self.poll_answer(call, &call.at, attempts, wake_ms).await?;
            let Some((row, waited)) = found else {
                continue;
            };
            let end = match waited {
                Waited::Answered(text) => answered_value(&row, text),
                Waited::TimedOut => timeout_value(&row),
            };
            let text = match end {
                Ok(text) => text,
                Err(error) => {
                    if !self.close_wait(&row, Vec::new()).await? {
                        continue;
                    }
                    return Ok(Performed::failed(error));
                }
            };
            let kind = match request.policy.drafts {
                true => EntryKind::Draft,
                false => EntryKind::Result,
            };
            let entry = call.entry(self, kind, text.clone());
            if !self.close_wait(&row, vec![entry]).await? {
                call.branch.set_sequence(None);
                continue;
            }
            if call.metering.is_some() {
                let value = self.decode(&text)?;
                let cost = self.cost(call, Some(&value));
                cost.into_iter()
                    .for_each(|cost| self.shared.journal.append(cost));
            }
            let event = Event::Produced {
                text,
                is_checked: false,
            };
            return Ok(Performed::Journaled { event, since_ms });
        }
    }

    /// Closes a wait with the given result, unless it has changed. `false`: it was answered in the meantime.
    pub(super) async fn close_wait(
        &self,
        row: &WaitRow,
        entries: Vec<Entry>,
    ) -> Result<bool, Halt> {
        self.awake();
        self.shared.journal.usage().closed(&row.path);
        let closing = Change::CloseWait {
            path: row.path.clone(),
            seen: row.state,
        };
        let mut changes = vec![closing];
        changes.extend(entries.into_iter().map(Change::Append));
        // In a separate batch: a conflict must not roll back earlier finished entries.
        self.shared.journal.post()?;
        // A change of the project's own stores: it is on disk before any external effect starts.
        match self.shared.journal.apply(changes).await {
            Ok(_) => Ok(true),
            Err(StoreError::Rejected {
                kind: "conflict", ..
            }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the wait at a path is answered or its deadline has passed: here, or by suspending.
    pub(super) async fn await_answer(
        &self,
        call: &StepCall<'_>,
        path: &str,
        attempt: u32,
    ) -> Result<(WaitRow, Waited), Halt> {
        loop {
            if let Some(found) = self.poll_answer(call, path, attempt, None).await? {
                return Ok(found);
            }
        }
    }

    /// Like [`Self::await_answer`]; at `wake_ms` there is other work to do, and `None` is returned.
    async fn poll_answer(
        &self,
        call: &StepCall<'_>,
        path: &str,
        attempt: u32,
        wake_ms: Option<i64>,
    ) -> Result<Option<(WaitRow, Waited)>, Halt> {
        let mut is_told = false;
        let mut alive = self.kept_alive(call);
        loop {
            if let Some(alive) = &mut alive {
                alive.news.mark_seen();
            }
            let mut row = self.find_wait(path).await?;
            if row.is_for_job() && row.state == WaitState::Open {
                // The lease of its worker may have expired.
                let jobs = &self.engine.services.stores.jobs;
                if jobs.expire(self.now_ms()).await? > 0 {
                    row = self.find_wait(path).await?;
                }
            }
            match (row.state, &row.payload) {
                (WaitState::Completed, Some(payload)) => {
                    let payload = payload.clone();
                    return Ok(Some((row, Waited::Answered(payload))));
                }
                (WaitState::Open, _) => {}
                // Its deadline has passed, and the process ended before it could journal the consequence.
                (WaitState::Closed, Some(payload)) if row.ending == Some(WaitEnding::Cancelled) => {
                    let payload = payload.clone();
                    return Ok(Some((row, Waited::Answered(payload))));
                }
                (WaitState::Closed, _) if row.deadline_ms.is_some() => {
                    return Ok(Some((row, Waited::TimedOut)));
                }
                (WaitState::Completed | WaitState::Closed, _) => {
                    let message = format!("the wait of `{path}` was closed without an answer");
                    return Err(EngineError::Internal(message).into());
                }
            }
            let now_ms = self.now_ms();
            if row.deadline_ms.is_some_and(|deadline| deadline <= now_ms) {
                return Ok(Some((row, Waited::TimedOut)));
            }
            if wake_ms.is_some_and(|wake| wake <= now_ms) {
                return Ok(None);
            }
            if !is_told {
                is_told = true;
                self.emit(&RunEvent::StepWaiting {
                    step: call.note(attempt),
                    wait: Box::new(row.clone()),
                });
            }
            let stays = match (self.options.stay, wake_ms) {
                (Stay::Always, _) => true,
                (Stay::Timers, wake) => wake.is_some(),
                (Stay::Briefly, wake) => wake.is_some_and(|wake| wake - now_ms <= SHORT_MS),
                (Stay::No | Stay::Sleeps, _) => false,
            };
            let stays = stays
                || alive
                    .as_ref()
                    .is_some_and(|alive| alive.lasts(&row, now_ms));
            let due_ms = [row.deadline_ms, wake_ms].into_iter().flatten().min();
            let waiting = Waiting {
                reason: waits_for_key(call, &row.key),
                due_ms,
                stays,
            };
            if !waiting.stays {
                self.poll_again(call, &waiting).await?;
                continue;
            }
            let _waiting = call.branch.wait(waiting);
            let next = now_ms + POLL_EVERY_MS;
            let due_ms = due_ms.map_or(next, |due| due.min(next));
            self.rest(due_ms, alive.as_mut()).await?;
        }
    }

    /// Waits until a time, or until something about the run has changed.
    async fn rest(&self, due_ms: i64, alive: Option<&mut Alive>) -> Result<(), Halt> {
        let clock = self.engine.services.clock.clone();
        let news = async {
            match alive {
                Some(alive) => alive.news.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = clock.sleep_until(due_ms) => Ok(()),
            () = news => Ok(()),
            halt = self.halted() => Err(halt),
        }
    }

    /// Returns what keeps the run in memory for a quick answer to a step's wait, if the step asks for that and few runs do.
    fn kept_alive(&self, call: &StepCall<'_>) -> Option<Alive> {
        let room = self.options.keep_alive.clone()?;
        let long = call.step.keep_alive(&call.config)?;
        let _permit = room.try_acquire_owned().ok()?;
        Some(Alive {
            _permit,
            millis: crate::duration::millis(long),
            news: self.engine.services.stores.feed.watch(&self.scope.run),
        })
    }

    pub(super) async fn find_wait(&self, path: &str) -> Result<WaitRow, Halt> {
        let waits = &self.engine.services.stores.waits;
        let row = waits.at(&self.scope.run, path).await?;
        row.ok_or_else(|| EngineError::Internal(format!("the wait of `{path}` is missing")).into())
    }
}

/// Describes what a step waits for.
fn waits_for_key(call: &StepCall<'_>, key: &str) -> String {
    let title = &call.title;
    if let Some(job) = key.strip_prefix(JOB_KEY) {
        return format!("`{title}` waits for the job {job}");
    }
    match key.strip_prefix(BATCH_KEY) {
        Some(batch) => format!("`{title}` waits for the jobs of the batch {batch}"),
        None => format!("`{title}` waits for an answer"),
    }
}

fn waits_for(reason: &str, due_ms: Option<i64>) -> Change {
    Change::Update(RunUpdate {
        status: RunStatus::Waiting,
        wait_reason: Some(reason.to_owned()),
        due_ms,
        result: None,
        error: None,
    })
}

/// Returns the value of a wait that was answered or cancelled.
fn answered_value(row: &WaitRow, text: String) -> Result<String, StepError> {
    if row.ending != Some(WaitEnding::Cancelled) {
        return Ok(text);
    }
    let note = codec::decode(&text).unwrap_or(Value::Nil);
    let reason = note.get("reason").filter(|reason| !reason.is_nil());
    let text = reason.and_then(Value::as_str);
    let because = text.map_or_else(String::new, |text| format!(": {text}"));
    let message = format!("the wait `{}` was cancelled{because}", row.key);
    let mut error = StepError::new("E0529", "cancelled", message).with("key", row.key.as_str());
    if let Some(text) = text {
        error = error.with("reason", text);
    }
    Err(match &row.decided_by {
        Some(by) => error.with("by", by.as_str()),
        None => error,
    })
}

/// Returns the value of a wait that timed out.
fn timeout_value(row: &WaitRow) -> Result<String, StepError> {
    let details = codec::decode(&row.details).unwrap_or(Value::Nil);
    if details.get("on-timeout") == Some(&Value::keyword("continue")) {
        let default = details.get("default-value").cloned().unwrap_or(Value::Nil);
        return Ok(codec::encode(&default).unwrap_or_else(|_| "nil".to_owned()));
    }
    if row.is_for_job() {
        return Err(job_timeout(&row.key));
    }
    Err(StepError::new(
        "E0523",
        "timeout",
        format!("nobody answered the wait `{}` in time", row.key),
    )
    .with("key", row.key.as_str())
    .hint("`:on-timeout :continue` with a `:default-value` lets the flow continue"))
}

/// Returns the error of a step whose wait for a job timed out.
fn job_timeout(key: &str) -> StepError {
    let (what, name, id) = match key.strip_prefix(JOB_KEY) {
        Some(job) => ("the job", "job-id", job),
        None => {
            let batch = key.strip_prefix(BATCH_KEY).unwrap_or(key);
            ("the batch of jobs", "batch-id", batch)
        }
    };
    let message = format!("{what} {id} did not end in time");
    StepError::new("E0539", "timeout", message)
        .with(name, id)
        .hint("it stays as it is, and can be awaited again; `flowstone jobs list` shows whether a worker has it")
}

pub(super) fn sleeps_too_long(call: &StepCall<'_>, millis: i64) -> StepError {
    let timeout = call.timeout.unwrap_or_default().as_secs_f64();
    let asked = millis as f64 / 1000.0;
    StepError::new(
        "E0535",
        "timeout",
        format!("the step is to sleep {asked} s, which is longer than its timeout of {timeout} s"),
    )
    .hint("leave out `:timeout`, or sleep less")
}
