//! Nested steps that a step performs: an agent's turns and the calls of its tools.
//!
//! Each is a step of the run at a path below that of the outer one. The outer step is performed from its beginning
//! whenever the run resumes, and nested steps that have ended are answered from the journal. Once the result of the
//! outer step is journaled, its nested steps are no longer replayed.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use flowstone_lang::value::{Result as Evaluated, Signal, Span, Value};

use super::branch::{Branch, Waiting, WaitingNow};
use super::call::StepCall;
use super::underway::Underway;
use super::{Begun, Executor, Halt};
use crate::error::EngineError;
use crate::journal::{Recorded, nested_prefix};
use crate::ports::EntryKind;
use crate::step::{NestedAnswer, NestedRequest, NestedSteps, Outcome, StepError, error_of};

/// The outcome of a nested step.
struct Ended {
    answer: Evaluated<Value>,
    /// The value of the step that a packaged step wraps.
    wrapped: Option<Value>,
    ended_ms: Option<i64>,
    path: String,
}

type Inner = Result<Ended, Halt>;

/// The reason to leave the outer step before its end.
#[derive(Default)]
struct Leaving {
    is_interrupted: bool,
    suspended: Vec<Waiting>,
}

/// The nested steps of a step that are in progress.
struct Within<'d, 'a> {
    executor: &'d Executor<'a>,
    owner: Rc<Branch>,
    /// The branch of the nested steps, which counts their occurrences.
    place: Branch,
    underway: Underway<'d, Inner>,
    branches: BTreeMap<u64, Rc<Branch>>,
    leaving: Leaving,
    /// Set while all of them wait.
    waiting: Option<WaitingNow>,
}

impl Executor<'_> {
    /// Begins an attempt at a step that performs nested steps, and records its start.
    pub(super) fn nested(&self, call: &StepCall<'_>, attempt: u32) -> Rc<NestedSteps> {
        let began_ms = match call.begun.get() {
            Some((begun, at_ms)) if begun == attempt => at_ms,
            _ => {
                let payload = format!("{{:attempt {attempt}}}");
                let entry = call.entry(self, EntryKind::Begin, payload);
                let at_ms = entry.at_ms;
                self.shared.journal.append(entry);
                call.begun.set(Some((attempt, at_ms)));
                at_ms
            }
        };
        Rc::new(NestedSteps::begun_at(began_ms))
    }

    /// Awaits a step that performs nested steps, and performs those.
    pub(super) async fn with_nested(
        &self,
        call: &StepCall<'_>,
        attempt: u32,
        nested: &NestedSteps,
        mut performing: Pin<&mut impl Future<Output = Result<Outcome, StepError>>>,
    ) -> Result<Result<Outcome, StepError>, Halt> {
        let began = Instant::now();
        let mut within = Within {
            executor: self,
            owner: call.branch.clone(),
            place: Branch::nested(nested_prefix(&call.at, attempt), &call.branch),
            underway: Underway::new(),
            branches: BTreeMap::new(),
            leaving: Leaving::default(),
            waiting: None,
        };
        let limit = call.time_limit(self.now_ms());
        let mut timeout = pin!(async {
            match limit {
                Some(limit) => {
                    tokio::time::sleep(limit.duration).await;
                    limit.reached(call)
                }
                None => std::future::pending().await,
            }
        });
        let ended = poll_fn(|cx| {
            loop {
                if let Poll::Ready(outcome) = performing.as_mut().poll(cx) {
                    return Poll::Ready(Ok(Ok(outcome)));
                }
                within.begin(nested);
                let done = match within.underway.poll(cx) {
                    Poll::Ready(done) => done,
                    Poll::Pending => break,
                };
                for (id, ended) in done {
                    if let Err(halt) = within.take(nested, id, ended) {
                        return Poll::Ready(Err(halt));
                    }
                }
            }
            if let Some(halt) = within.left() {
                return Poll::Ready(Err(halt));
            }
            within.mark_waiting();
            timeout.as_mut().poll(cx).map(|late| Ok(Err(late)))
        });
        match ended.await? {
            Ok(outcome) => Ok(outcome.map_err(|error| match limit {
                Some(limit) => limit.or_reached(call, began, error),
                None => error,
            })),
            Err(late) => {
                // Open questions of nested steps must not be answered any more.
                self.give_up(call.at.clone());
                Ok(Err(late))
            }
        }
    }

    /// Commits ended nested steps before the next one begins: repeating one costs more than waiting for the disk.
    pub(super) async fn commit_nested(&self) -> Result<(), EngineError> {
        if self.shared.has_pending() {
            self.settle_now().await?;
        }
        Ok(())
    }

    /// Drops the journal entries of nested steps that will not be requested again: those of earlier attempts, or all if
    /// the journal has the result of the outer step or nothing is performed.
    pub(super) fn drop_nested(&self, call: &StepCall<'_>, recorded: Option<&Recorded>) {
        let attempts = recorded.map_or(0, |recorded| recorded.progress.attempts);
        let is_over = recorded.is_some_and(|recorded| recorded.end().is_some());
        let forgotten = match is_over || self.dry_run.is_some() {
            true => attempts + 1,
            false => attempts,
        };
        if forgotten > 0 {
            let mut history = self.shared.history.borrow_mut();
            history.take_nested(&call.at, forgotten);
        }
    }

    async fn inner(&self, branch: Rc<Branch>, nested: NestedRequest) -> Inner {
        let ended = self.inner_request(branch, nested).await;
        self.check_cut()?;
        ended
    }

    async fn inner_request(&self, branch: Rc<Branch>, nested: NestedRequest) -> Inner {
        let NestedRequest {
            kind, id, config, ..
        } = nested;
        let id = Value::from(id.as_str());
        let path = |asked: &StepCall<'_>| asked.at.clone();
        Ok(
            match self.begin_step(&branch, (&kind, &id), &config, Span::NONE)? {
                Begun::Replayed(asked) => {
                    self.check_recorded_cancel(asked.recorded.place)?;
                    let Some(end) = asked.recorded.end() else {
                        return Err(self.unfinished(&asked.call).into());
                    };
                    let answer = self.replayed(&asked.call, &asked.recorded, end)?;
                    Ended {
                        wrapped: wrapped(&asked.call, &answer),
                        answer: self.concluded(&asked.call, answer),
                        ended_ms: Some(asked.recorded.ended_ms),
                        path: path(&asked.call),
                    }
                }
                Begun::Live(mut asked) => {
                    self.check_interrupt()?;
                    self.check_recorded_cancel(usize::MAX)?;
                    self.check_cancel()?;
                    if self.replay_only {
                        return Err(self.unfinished(&asked.call).into());
                    }
                    let answer = self.perform_prepared(&mut asked).await?;
                    Ended {
                        wrapped: wrapped(&asked.call, &answer),
                        answer: self.concluded(&asked.call, answer),
                        ended_ms: asked.call.ended_ms.get(),
                        path: path(&asked.call),
                    }
                }
                // It was rejected before it had a path in the run.
                Begun::Now(answer) => Ended {
                    answer,
                    wrapped: None,
                    ended_ms: None,
                    path: id.as_str().unwrap_or_default().to_owned(),
                },
                Begun::Branches(_) | Begun::Turn => {
                    let message = "a step inside another is a step".to_owned();
                    return Err(EngineError::Internal(message).into());
                }
            },
        )
    }
}

fn wrapped(call: &StepCall<'_>, answer: &Evaluated<Value>) -> Option<Value> {
    let value = answer.as_ref().ok()?;
    call.packaged.is_some().then(|| value.clone())
}

impl<'d> Within<'d, '_> {
    /// Begins the pending requests for nested steps.
    fn begin(&mut self, nested: &NestedSteps) {
        if self.leaving.is_interrupted {
            return;
        }
        let executor = self.executor;
        while let Some((id, request)) = nested.take_asked() {
            let branch = self.place.twin(&request);
            self.branches.insert(id, branch.clone());
            // Boxed, because it may contain further steps that perform nested steps.
            self.underway
                .add(id, Box::pin(executor.inner(branch, request)));
        }
    }

    /// Takes the result of a nested step.
    fn take(&mut self, nested: &NestedSteps, id: u64, ended: Inner) -> Result<(), Halt> {
        let branch = self.branches.remove(&id);
        let ended = match ended {
            Ok(ended) => ended,
            Err(Halt::Interrupted) => {
                self.leaving.is_interrupted = true;
                return Ok(());
            }
            Err(Halt::Suspended { reason, due_ms }) => {
                self.leaving.suspended.push(Waiting {
                    reason,
                    due_ms,
                    stays: false,
                });
                return Ok(());
            }
            Err(halt) => {
                // Their children must be notified as well.
                let branches = branch.iter().chain(self.branches.values());
                branches.for_each(|branch| self.executor.leave_child(branch));
                return Err(halt);
            }
        };
        let result = match ended.answer {
            Ok(value) => Ok(value),
            Err(Signal::Throw(exception)) => Err(error_of(&exception)),
            Err(Signal::Stop(stop)) => {
                let branches = branch.iter().chain(self.branches.values());
                branches.for_each(|branch| self.executor.leave_child(branch));
                return Err(Halt::Stopped((*stop).clone()));
            }
        };
        nested.answer(
            id,
            NestedAnswer {
                result,
                wrapped: ended.wrapped,
                ended_ms: ended.ended_ms,
                path: ended.path,
            },
        );
        Ok(())
    }

    /// Returns the reason to leave the outer step, once no nested step is in progress.
    fn left(&mut self) -> Option<Halt> {
        if !self.underway.is_empty() {
            return None;
        }
        if self.leaving.is_interrupted {
            return Some(Halt::Interrupted);
        }
        let suspended = std::mem::take(&mut self.leaving.suspended);
        let reason = suspended.first()?.reason.clone();
        let due_ms = suspended.iter().filter_map(|wait| wait.due_ms).min();
        // A nested step that ended after another began to wait has set the run's row to running again.
        if self.place.is_main()
            && !self.executor.is_waiting.get()
            && let Err(error) = self.executor.write_waits(&reason, due_ms)
        {
            return Some(error.into());
        }
        Some(Halt::Suspended { reason, due_ms })
    }

    /// Marks the outer step's branch as waiting if all nested steps in progress wait.
    fn mark_waiting(&mut self) {
        let waits = self.branches.values().map(|branch| branch.waiting());
        let waits: Option<Vec<Waiting>> = waits.collect();
        let Some(waits) = waits.filter(|waits| !waits.is_empty()) else {
            self.waiting = None;
            return;
        };
        let reasons: Vec<&str> = waits.iter().map(|wait| &*wait.reason).collect();
        let all = Waiting {
            reason: reasons.join("; "),
            due_ms: waits.iter().filter_map(|wait| wait.due_ms).min(),
            stays: waits.iter().any(|wait| wait.stays),
        };
        if self.owner.waiting().as_ref() != Some(&all) {
            self.waiting = None;
            self.waiting = Some(self.owner.wait(all));
        }
    }
}
