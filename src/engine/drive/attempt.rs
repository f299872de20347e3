//! Attempts at a step: intent, effect, result; and again where that may help.
//!
//! What takes much room and does not last is in boxes, so that a step that sleeps or waits takes little: there may be
//! thousands of them.

use std::future::Future;
use std::time::{Duration, Instant};

use flowstone_lang::value::{Exception, Map, Result as Evaluated, Signal, Stop, Value};

use super::call::{OnError, StepCall, exception_at, preview};
use super::confirm::refused;
use super::{Answer, Driver, Halt};
use crate::asker::{Permission, PermissionQuestion};
use crate::codec;
use crate::error::EngineError;
use crate::expect;
use crate::history::{Approval, Recorded, Timer};
use crate::ids::RunId;
use crate::limits;
use crate::observer::RunEvent;
use crate::ports::{Change, Entry, EntryKind, StoreError, StoreOp};
use crate::step::{Effect, Outcome, Retry, StepError};

/// How long an interrupted run lets an effect outside finish, so that it is not in doubt.
const GRACE: Duration = Duration::from_secs(5);

/// How long a step waits for a file handle at first, and at most.
const LACK: Duration = Duration::from_millis(250);
const LONGEST_LACK: Duration = Duration::from_secs(15);
/// The number of waits after which they no longer grow.
const MOST_LACKS: u32 = 8;
/// How often the store is asked whether the run is cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often a step is performed again because somebody else was faster.
const RACES: u32 = 100;

/// What an attempt came to.
pub(super) enum Attempted {
    /// The step's value as EDN text; journaled or pending.
    Value(String),
    /// The same, with something still to be done about it.
    Draft(String),
    Parked(Box<crate::step::WaitSpec>),
    Child(RunId),
    Sleeping {
        until_ms: i64,
        value: Value,
    },
    Failed(StepError),
}

impl Driver<'_> {
    /// Goes on with a step that was begun in an earlier drive.
    pub(super) async fn go_on(&self, call: &StepCall<'_>, recorded: Recorded) -> Answer {
        call.attempts.set(recorded.attempts);
        call.begun.set(recorded.begun);
        match recorded.timer.clone() {
            Some(Timer::Sleep { due_ms, value }) => {
                return self.sleep(call, recorded, due_ms, value).await;
            }
            Some(Timer::Retry { due_ms }) => self.pause(call, due_ms).await?,
            Some(Timer::Child { run }) => {
                let attempted = Box::pin(self.await_child(call, recorded.attempts, run)).await?;
                return self.attempted(call, recorded, attempted).await;
            }
            Some(Timer::Wait) => {
                self.shared.ledger.usage().waits(&call.at)?;
                return self.wait(call, recorded).await;
            }
            Some(Timer::Question) => return Box::pin(self.decide(call, recorded)).await,
            Some(Timer::Confirm) => return Box::pin(self.confirmed(call, recorded)).await,
            Some(Timer::Review) => return Box::pin(self.reviewed(call, recorded)).await,
            None => {}
        }
        if recorded.draft.is_some() {
            return Box::pin(self.drafted(call, recorded)).await;
        }
        if let Approval::Refused(answer) = &recorded.approval {
            let error = refused(call, "confirm", answer);
            return Box::pin(self.failed(call, recorded, error)).await;
        }
        if recorded.in_flight {
            return Box::pin(self.settle_doubt(call, recorded)).await;
        }
        self.start_step(call, recorded).await
    }

    /// Attempts the step until it succeeds or there is no point in trying again.
    pub(super) async fn attempts(&self, call: &StepCall<'_>, mut recorded: Recorded) -> Answer {
        recorded.attempts += 1;
        call.attempts.set(recorded.attempts);
        let attempted = Box::pin(self.attempt(call, recorded.attempts)).await?;
        self.attempted(call, recorded, attempted).await
    }

    /// Goes on after an attempt.
    async fn attempted(
        &self,
        call: &StepCall<'_>,
        mut recorded: Recorded,
        mut attempted: Attempted,
    ) -> Answer {
        let mut lacks = 0;
        loop {
            let attempt = recorded.attempts;
            match attempted {
                Attempted::Child(run) => {
                    attempted = Box::pin(self.call_child(call, attempt, run)).await?;
                    continue;
                }
                Attempted::Value(text) => {
                    let value = self.decode(&text)?;
                    return Ok(Ok(value));
                }
                Attempted::Draft(text) => {
                    recorded.draft = Some(text);
                    return Box::pin(self.drafted(call, recorded)).await;
                }
                Attempted::Parked(spec) => return self.park(call, recorded, *spec).await,
                Attempted::Sleeping { until_ms, value } => {
                    return self.start_sleep(call, recorded, until_ms, value).await;
                }
                // Not for the flow to catch.
                Attempted::Failed(error) if error.code == StepError::OUT_OF_MEMORY => {
                    return Ok(Err(Stop::OutOfMemory(error.message).into()));
                }
                // Nothing was done: it waits for a handle, as long as it takes, and no attempt is lost.
                Attempted::Failed(error) if error.code == StoreError::NO_HANDLE => {
                    let delay = LACK.saturating_mul(1 << lacks).min(LONGEST_LACK);
                    lacks = (lacks + 1).min(MOST_LACKS);
                    recorded.base += 1;
                    self.retry_later(call, attempt, &error, delay).await?;
                }
                Attempted::Failed(error) => {
                    let round = attempt - recorded.base;
                    let random = self.engine.services.random.next();
                    let Some(delay) = call.policy.delay(round, &error, random) else {
                        return Box::pin(self.failed(call, recorded, error)).await;
                    };
                    self.retry_later(call, attempt, &error, delay).await?;
                }
            }
            recorded.attempts += 1;
            call.attempts.set(recorded.attempts);
            attempted = Box::pin(self.attempt(call, recorded.attempts)).await?;
        }
    }

    async fn attempt(&self, call: &StepCall<'_>, attempt: u32) -> Result<Attempted, Halt> {
        self.check_interrupt()?;
        match call.effect {
            Effect::External => {
                let payload = self.attempt_payload(attempt);
                let intent = call.entry(self, EntryKind::Intent, payload);
                let changes = vec![Change::Append(intent)];
                self.shared.ledger.commit(changes).await?;
            }
            // Reading may take long: what was finished before is handed over meanwhile.
            // What an agent has paid for is not paid for twice.
            Effect::Read if call.line.is_inside() => self.settle_inside().await?,
            Effect::Read => self.shared.ledger.post()?,
            Effect::OwnStore | Effect::Pure | Effect::Steps => {}
        }
        let started_ms = self.now_ms();
        call.started_ms.set(Some(started_ms));
        self.emit(&RunEvent::StepStarted(call.note(attempt)));
        let desk = (call.effect == Effect::Steps).then(|| self.desk(call, attempt));
        let cx = match &desk {
            Some(desk) => call.context(self, attempt).with_desk(desk.clone()),
            None => call.context(self, attempt),
        };
        let mut races = 0;
        let done = loop {
            let performing = async {
                if let Some((persist, config)) = self.persistence(call)? {
                    persist.check(cx.kind(), &config)?;
                }
                let outcome = call.step.run(&cx, call.config.clone()).await?;
                self.accept(call, &cx, outcome).await
            };
            let outcome = match &desk {
                Some(desk) => self.with_inside(call, attempt, desk, performing).await?,
                None => self.guarded(call, performing).await?,
            };
            self.check_cut()?;
            let done = match outcome {
                Ok(done) => self.settle(call, done).await?,
                Err(error) if self.is_allowed_now(call, &error) => continue,
                Err(error) => match self.is_full(call, &error) {
                    Some(full) => return Err(full.into()),
                    None => Attempted::Failed(error),
                },
            };
            match &done {
                // Nothing was done or journaled: somebody else has changed what the step had looked at.
                // What was done outside is not done again for it.
                Attempted::Failed(error)
                    if error.kind == StoreError::RACED
                        && races < RACES
                        && !matches!(call.effect, Effect::External | Effect::Steps) =>
                {
                    races += 1;
                }
                _ => break done,
            }
        };
        self.scope.gate.end_attempt();
        if let Attempted::Value(text) = &done {
            self.emit(&RunEvent::StepFinished {
                step: call.note(attempt),
                millis: self.now_ms() - started_ms,
                preview: preview(text),
            });
        }
        Ok(done)
    }

    /// Asks a person whether the flow may do what nothing allows. Nothing was done yet: with permission the step is
    /// performed again.
    fn is_allowed_now(&self, call: &StepCall<'_>, error: &StepError) -> bool {
        let Some(missing) = error.missing.as_deref() else {
            return false;
        };
        let gate = &self.scope.gate;
        if !self.options.asker.can_ask() || !gate.is_new_question(missing) {
            return false;
        }
        let path = call.path.to_string();
        let answer = self.options.asker.ask(PermissionQuestion {
            flow: &self.scope.flow.slug,
            step: &path,
            kind: call.step.spec().kind,
            missing,
        });
        match answer {
            Permission::No => return false,
            Permission::Once => gate.grant(missing, true),
            Permission::Run => gate.grant(missing, false),
        }
        true
    }

    /// Tells whether a step that may be done again found no space on the disk. That is nobody's mistake: the run stops
    /// there, as it does where the database finds none, and goes on from there when there is some.
    fn is_full(&self, call: &StepCall<'_>, error: &StepError) -> Option<StoreError> {
        let may_repeat = call.effect != Effect::External || call.step.repeats_safely(&call.config);
        let path = error.message.strip_prefix(StoreError::NO_SPACE)?;
        (may_repeat && error.code == "E0606").then(|| StoreError::Full {
            path: path.to_owned(),
        })
    }

    fn attempt_payload(&self, attempt: u32) -> String {
        format!("{{:attempt {attempt}}}")
    }

    /// Checks what a step hands back, and has it persisted where the flow asks for that.
    pub(super) async fn accept(
        &self,
        call: &StepCall<'_>,
        cx: &crate::step::StepContext,
        outcome: Outcome,
    ) -> Result<Outcome, StepError> {
        let persist = self.persistence(call)?;
        let value = match (outcome, &persist) {
            (Outcome::Value(value), _) => value,
            (outcome, None) => return Ok(outcome),
            // What it comes to is persisted.
            (outcome @ Outcome::Child(_), Some(_)) => return Ok(outcome),
            (Outcome::Commit(_) | Outcome::Park(_) | Outcome::Sleep { .. }, Some(_)) => {
                let message = format!("the result of a `:{}` step cannot be persisted", cx.kind());
                return Err(StepError::config("E0714", message)
                    .hint("persist it with a `:function` step that follows"));
            }
        };
        if let Some(expectation) = call.config.get("expect")
            && let Some(judged) = call.step.judged(&value)
        {
            expect::check(cx, expectation, &judged).await?;
        }
        let Some((persist, config)) = persist else {
            return Ok(Outcome::Value(value));
        };
        // What somebody is to look at is stored when they have.
        if call.review.is_some() {
            return Ok(Outcome::Value(value));
        }
        let op = persist.persist(cx, &config, value).await?;
        Ok(Outcome::Commit(op))
    }

    /// Returns what persists the result and its config, where the flow asks for that.
    pub(super) fn persistence<'c>(
        &'c self,
        call: &'c StepCall<'_>,
    ) -> Result<Option<(&'c dyn crate::step::Persist, Value)>, StepError> {
        let config = call.config.get("persist");
        let Some(config) = config.filter(|config| !config.is_nil()) else {
            return Ok(None);
        };
        match &self.engine.persist {
            Some(persist) => Ok(Some((&**persist, found_by_search(call, config)))),
            None => Err(StepError::config("E0714", "`:persist` cannot be used here")),
        }
    }

    /// Journals what an attempt came to.
    pub(super) async fn settle(
        &self,
        call: &StepCall<'_>,
        outcome: Outcome,
    ) -> Result<Attempted, Halt> {
        Ok(match outcome {
            Outcome::Value(value) => match codec::encode(&value) {
                Ok(text) if text.len() > self.limits().result => {
                    self.shared.heap.within(|| drop(value));
                    Attempted::Failed(self.too_large(text.len()))
                }
                Ok(text) => {
                    let text = self.scope.redact_edn(text);
                    let is_draft = call.review.is_some();
                    self.value_entries(call, &value, text.clone(), is_draft);
                    self.shared.heap.within(|| drop(value));
                    self.shared.ledger.relieve()?;
                    match is_draft {
                        true => Attempted::Draft(text),
                        false => Attempted::Value(text),
                    }
                }
                Err(error) => {
                    let message = format!("the result of the step cannot be stored: {error}");
                    let failed = StepError::new(error.code(), "invalid", message);
                    Attempted::Failed(match error.hint() {
                        Some(hint) => failed.hint(hint),
                        None => failed,
                    })
                }
            },
            Outcome::Commit(op) => match self.perform(call, op).await {
                Ok(text) if drafts(call) => Attempted::Draft(text),
                Ok(text) => Attempted::Value(text),
                Err(error @ StoreError::Rejected { .. }) => {
                    call.line.set_ticket(None);
                    Attempted::Failed(error.into())
                }
                Err(error) => return Err(error.into()),
            },
            Outcome::Child(run) => Attempted::Child(run),
            Outcome::Park(spec) => Attempted::Parked(spec),
            Outcome::Sleep { until_ms, value } => Attempted::Sleeping { until_ms, value },
        })
    }

    /// Returns the error of a step whose result is larger than the run allows.
    fn too_large(&self, bytes: usize) -> StepError {
        let most = limits::RESULT.shown(self.limits().result as u64);
        let message =
            format!("the result of the step has {bytes} bytes, and at most {most} are allowed");
        StepError::new(limits::RESULT.code, "too-large", message).hint(
            "keep large data in files, tables and blobs and return a reference, or raise `:limits {:result ...}`",
        )
    }

    /// Journals a step's value, and what it cost.
    pub(super) fn value_entries(
        &self,
        call: &StepCall<'_>,
        value: &Value,
        text: String,
        is_draft: bool,
    ) {
        let kind = match is_draft {
            true => EntryKind::Draft,
            false => EntryKind::Result,
        };
        self.shared.ledger.append(call.entry(self, kind, text));
        if let Some(cost) = self.cost(call, Some(value)) {
            self.shared.ledger.append(cost);
        }
    }

    /// Returns the entry that says what a step cost. `value` is its value, where that is known yet.
    pub(super) fn cost(&self, call: &StepCall<'_>, value: Option<&Value>) -> Option<Entry> {
        let metering = call.metering.as_ref()?;
        let cx = call.context(self, call.attempts.get());
        let line = metering.line(&cx, value)?;
        let text = codec::encode(&line).unwrap_or_else(|_| "{}".to_owned());
        Some(call.entry(self, EntryKind::Cost, self.scope.redact_strings(text)))
    }

    pub(super) async fn perform(
        &self,
        call: &StepCall<'_>,
        op: StoreOp,
    ) -> Result<String, StoreError> {
        let kind = match drafts(call) {
            true => EntryKind::Draft,
            false => EntryKind::Result,
        };
        let cost = self.cost(call, None);
        let is_metered = cost.is_some();
        let text = self.perform_as(call, kind, op, cost).await?;
        if call.metering.is_some() && !is_metered {
            // The quantity is in the value.
            let value = codec::decode(&text).unwrap_or(Value::Nil);
            if let Some(cost) = self.cost(call, Some(&value)) {
                self.shared.ledger.append(cost);
            }
        }
        Ok(text)
    }

    /// Has the store do something, with an entry of that kind for what it gives.
    pub(super) async fn perform_as(
        &self,
        call: &StepCall<'_>,
        kind: EntryKind,
        op: StoreOp,
        cost: Option<Entry>,
    ) -> Result<String, StoreError> {
        let entry = call.entry(self, kind, String::new());
        let mut changes = vec![Change::Perform {
            op: Box::new(op),
            entry,
        }];
        changes.extend(cost.map(Change::Append));
        // Alone: what is wrong with the operation must not undo what was finished before it.
        self.shared.ledger.post()?;
        let mut receipt = self.shared.ledger.apply(changes).await?;
        receipt
            .results
            .pop()
            .ok_or_else(|| StoreError::Internal("an operation gave no result".to_owned()))
    }

    /// Awaits an effect, its timeout, an interrupt and a cancel.
    pub(super) async fn guarded(
        &self,
        call: &StepCall<'_>,
        performing: impl Future<Output = Result<Outcome, StepError>>,
    ) -> Result<Result<Outcome, StepError>, Halt> {
        let mut performing = std::pin::pin!(performing);
        let began = Instant::now();
        // Code that computed until its time was over.
        let over = |error: StepError| match call.timeout {
            Some(timeout) if error.code == "E0702" && began.elapsed() >= timeout => timed_out(call),
            _ => error,
        };
        let timeout = async {
            match call.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            outcome = &mut performing => Ok(outcome.map_err(over)),
            () = timeout => Ok(Err(timed_out(call))),
            halt = self.halted() => {
                // An effect under way outside is let finish, so that nobody has to guess.
                if call.effect == Effect::External && matches!(halt, Halt::Interrupted)
                    && let Ok(outcome) = tokio::time::timeout(GRACE, performing).await
                {
                    return Ok(outcome);
                }
                Err(halt)
            }
        }
    }

    /// Returns when the run is to be interrupted or cancelled.
    pub(super) async fn halted(&self) -> Halt {
        if self.is_beside.get() {
            // Whoever drives several lines looks for all of them.
            self.left().await;
            return Halt::Interrupted;
        }
        let cancel = async {
            loop {
                if let Err(halt) = self.look_for_cancel().await {
                    return halt;
                }
                self.options.interrupt.news(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            () = self.options.interrupt.wait() => Halt::Interrupted,
            halt = cancel => halt,
        }
    }

    /// Checks again what a journaled value must satisfy: what the store made of it was not seen before.
    pub(super) fn expected(&self, call: &StepCall<'_>, value: Value) -> Evaluated<Value> {
        match self.fits(call, &value) {
            Ok(()) => Ok(value),
            Err(_) if call.on_error == OnError::Skip => {
                call.is_given.set(true);
                Ok(Value::Nil)
            }
            Err(error) => Err(self.exception(call, &error).into()),
        }
    }

    /// Checks a value against the step's `:expect`. Of what is persisted, the value itself was checked, not the
    /// reference to it.
    pub(super) fn fits(&self, call: &StepCall<'_>, value: &Value) -> Result<(), StepError> {
        match call.config.get("expect") {
            Some(expectation) if !call.has("persist") => {
                let Some(judged) = call.step.judged(value) else {
                    return Ok(());
                };
                let cx = call.context(self, call.attempts.get());
                expect::check_at_once(&cx, expectation, &judged)
            }
            _ => Ok(()),
        }
    }

    /// Ends a step that failed for good, as its `:on-error` says.
    pub(super) async fn failed(
        &self,
        call: &StepCall<'_>,
        recorded: Recorded,
        error: StepError,
    ) -> Answer {
        self.check_cut()?;
        let started_ms = call.started_ms.get();
        self.emit(&RunEvent::StepFailed {
            step: call.note(recorded.attempts),
            millis: started_ms.map_or(0, |started| (self.now_ms() - started).max(0)),
            code: error.code,
            message: self.scope.redact(error.message.clone()),
        });
        if call.on_error == OnError::Checkpoint {
            return self.ask(call, recorded, &error).await;
        }
        self.end_with_error(call, &error)
    }

    /// Journals the error of a step, and returns what the flow sees of it.
    pub(super) fn end_with_error(&self, call: &StepCall<'_>, error: &StepError) -> Answer {
        let text = self.error_text(call, error);
        if call.on_error == OnError::Skip {
            let note = "{:kind :skip}".to_owned();
            let entry = call.entry(self, EntryKind::Signal, note);
            self.shared.ledger.append(entry);
        }
        let entry = call.entry(self, EntryKind::Error, text.clone());
        self.shared.ledger.append(entry);
        let answer = self.raised(call, &text);
        if let (Ok(Err(Signal::Throw(exception))), Some(place)) = (&answer, error.place.as_deref())
        {
            // The journal keeps no places: they mean something while this session lives.
            exception.origin.borrow_mut().span = Some(*place);
        }
        answer
    }

    /// Returns what the flow sees of a failed step.
    fn exception(&self, call: &StepCall<'_>, error: &StepError) -> Exception {
        let exception = exception_at(error, &call.path, call.attempts.get());
        match &call.packaged {
            Some(packaged) => exception.with("packaged", Value::keyword(&packaged.id)),
            None => exception,
        }
    }

    pub(super) fn error_text(&self, call: &StepCall<'_>, error: &StepError) -> String {
        let exception = self.exception(call, error);
        let text = codec::encode(&exception.into()).or_else(|_| {
            // Its data is not data; the words are kept.
            let plain = StepError {
                data: Value::Nil,
                ..error.clone()
            };
            codec::encode(&self.exception(call, &plain).into())
        });
        self.scope
            .redact_edn(text.expect("words can be written down"))
    }

    async fn retry_later(
        &self,
        call: &StepCall<'_>,
        attempt: u32,
        error: &StepError,
        delay: Duration,
    ) -> Result<(), Halt> {
        let due_ms = self.now_ms().saturating_add(crate::duration::millis(delay));
        let note = Value::map([
            (Value::keyword("kind"), Value::keyword("retry")),
            (Value::keyword("attempt"), Value::Int(i64::from(attempt))),
            (Value::keyword("due"), Value::Int(due_ms)),
            (
                Value::keyword("message"),
                Value::from(error.message.as_str()),
            ),
        ]);
        let text = codec::encode(&note).map_err(EngineError::from)?;
        let entry = call.entry(self, EntryKind::Timer, self.scope.redact_strings(text));
        self.shared.ledger.append(entry);
        self.emit(&RunEvent::StepRetrying {
            step: call.note(attempt),
            due_ms,
            message: self.scope.redact(error.message.clone()),
        });
        self.pause(call, due_ms).await
    }
}

/// Adds what `:auto-search-index?` of a step says about a blob that it stores: whether it is found by its contents.
fn found_by_search(call: &StepCall<'_>, persist: &Value) -> Value {
    let Some(Value::Bool(has_contents)) = call.config.get("auto-search-index?") else {
        return persist.clone();
    };
    let is_blob = persist
        .get("type")
        .and_then(crate::flow::name_of)
        .is_some_and(|it| &*it == "blob");
    let entry = persist.get("search-index").filter(|it| !it.is_nil());
    let given = match entry {
        None => Vec::new(),
        Some(Value::Map(map)) => entries(map),
        Some(_) => return persist.clone(),
    };
    let Value::Map(map) = persist else {
        return persist.clone();
    };
    if !is_blob {
        return persist.clone();
    }
    // What the entry itself says wins.
    let said = (Value::keyword("contents"), Value::Bool(*has_contents));
    let entry = Value::map([said].into_iter().chain(given));
    let index = (Value::keyword("search-index"), entry);
    Value::map(entries(map).into_iter().chain([index]))
}

fn entries(map: &Map) -> Vec<(Value, Value)> {
    map.iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

pub(super) fn timed_out(call: &StepCall<'_>) -> StepError {
    let seconds = call.timeout.unwrap_or_default().as_secs_f64();
    StepError::new(
        "E0520",
        "timeout",
        format!("the step did not finish within its timeout of {seconds} s"),
    )
    .retry(Retry::Backoff)
    .hint("give it more time with `:timeout`, or another try with `:retry`")
}

/// Tells whether what the store or somebody else makes the value of is to be looked at before it is the result.
pub(super) fn drafts(call: &StepCall<'_>) -> bool {
    call.review.is_some() || (call.has("expect") && !call.has("persist"))
}
