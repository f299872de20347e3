//! Executing a request: performs the actions of its state machine, and journals their results.
//!
//! [`crate::state`] decides; here its actions are performed. Each of them is boxed, so that a request that sleeps or
//! waits takes little memory: there may be thousands of them.

use flowstone_lang::value::{Result as Evaluated, Signal, Span, Value};
use tracing::Instrument as _;

use super::call::{StepCall, preview};
use super::handles::Attempt;
use super::{Answer, Executor, Halt, trace};
use crate::codec;
use crate::error::EngineError;
use crate::observer::RunEvent;
use crate::ports::{Entry, EntryKind, StoreError};
use crate::state::{Action, Asking, Decision, End, Event, Note, Policy, Progress};
use crate::step::StepError;

/// The result of performing an action.
pub(super) enum Performed {
    /// The event is not journaled yet.
    Event(Event),
    /// The event is journaled, because a value or a wait was stored together with its entry. `since_ms`: its start.
    Journaled { event: Event, since_ms: i64 },
    /// The request is in another state, which is journaled.
    Moved,
    /// The run is stopped in a way that the flow cannot see.
    Stopped(Signal),
}

impl Performed {
    pub(super) fn failed(error: StepError) -> Performed {
        Performed::Event(Event::GaveUp(Box::new(error)))
    }
}

/// A request in progress.
pub(super) struct Request<'c, 'd> {
    pub call: &'c StepCall<'d>,
    pub policy: Policy<'c>,
    pub progress: Progress,
    /// The place in the flow's code where the error of the failed request was thrown.
    origin: Option<Span>,
    /// The start of the action whose result comes next.
    pub since_ms: Option<i64>,
    /// The reason why the run stops once the failed attempt is journaled.
    pub shortage: Option<StoreError>,
    /// The attempt in progress, until its outcome is journaled.
    pub under_way: Option<Attempt>,
}

impl Executor<'_> {
    /// Executes a request from the state of its journal entries until it has an answer.
    pub(super) async fn execute(&self, call: &StepCall<'_>, progress: Progress) -> Answer {
        let mut request = Request {
            call,
            policy: call.policy(),
            progress,
            origin: None,
            since_ms: None,
            shortage: None,
            under_way: None,
        };
        call.begun.set(request.progress.begun);
        let mut action = request.progress.action(&request.policy);
        loop {
            call.attempts.set(request.progress.attempts);
            if matches!(action, Action::Answer) {
                return self.ended(request);
            }
            request.under_way = None;
            let performed = self.perform_action(&mut request, action).await?;
            self.check_cut()?;
            action = match performed {
                Performed::Moved => request.progress.action(&request.policy),
                Performed::Stopped(stop) => return Ok(Err(stop)),
                Performed::Event(event) => {
                    let is_metered = matches!(
                        event,
                        Event::Produced { .. } | Event::Due { .. } | Event::Probed(_)
                    );
                    let decision = request.progress.decide(event, &request.policy);
                    let next = self.journal(&mut request, decision, is_metered)?;
                    if let Some(shortage) = request.shortage.take() {
                        self.shared.journal.post()?;
                        return Err(shortage.into());
                    }
                    next
                }
                Performed::Journaled { event, since_ms } => {
                    request.since_ms = Some(since_ms);
                    let decision = request.progress.decide(event, &request.policy);
                    self.fold(&mut request, decision)
                }
            };
        }
    }

    async fn perform_action(
        &self,
        request: &mut Request<'_, '_>,
        action: Action,
    ) -> Result<Performed, Halt> {
        match action {
            Action::Perform { attempt } => {
                let span = trace::attempt(attempt);
                Box::pin(self.attempt(request, attempt).instrument(span)).await
            }
            Action::Sleep { until_ms, value } => {
                Box::pin(self.sleep(request, until_ms, value)).await
            }
            Action::OpenWait(spec) => Box::pin(self.start_wait(request, *spec)).await,
            Action::AwaitWait => Box::pin(self.wait(request)).await,
            Action::StartChild(run) => self.start_child(request, run),
            Action::AwaitChild(run) => Box::pin(self.await_child(request, run)).await,
            Action::Ask(asking) => Box::pin(self.ask(request, *asking)).await,
            Action::AwaitReply(about) => Box::pin(self.await_reply(request, about)).await,
            Action::Judge { about, answer } => self.judge(request, about, answer),
            Action::Probe => Box::pin(self.probe(request)).await,
            Action::Doubt { asks } => Ok(Performed::Event(Event::Doubted {
                error: Box::new(super::probe::in_doubt(request.call, None)),
                asks,
            })),
            Action::Check(text) => self.check(request, &text),
            Action::Accept(text) => Box::pin(self.accept_draft(request, text)).await,
            Action::Answer => {
                Err(EngineError::Internal("an answer is returned, not performed".to_owned()).into())
            }
        }
    }

    /// Journals a decision, and returns the next action.
    fn journal(
        &self,
        request: &mut Request<'_, '_>,
        decision: Decision,
        is_metered: bool,
    ) -> Result<Action, Halt> {
        for note in decision.notes {
            self.announce(request, &note);
            let call = request.call;
            if let Note::Failed(error) = &note {
                request.origin = error.place.as_deref().copied();
            }
            let is_value = matches!(note, Note::Result(_) | Note::Draft(_));
            let kind = note.kind();
            let is_retry = matches!(note, Note::Retry { .. });
            let text = note.into_payload(|error| self.error_text(call, error));
            let text = match is_retry {
                true => self.scope.redact_strings(text),
                false => text,
            };
            let cost = match is_value && is_metered && call.metering.is_some() {
                true => self.cost(call, Some(&self.decode(&text)?)),
                false => None,
            };
            request.progress.fold(kind, text.clone());
            self.shared.journal.append(call.entry(self, kind, text));
            if let Some(cost) = cost {
                self.shared.journal.append(cost);
            }
            if is_value {
                self.shared.journal.flush_if_large()?;
            }
        }
        Ok(self.next_action(request, decision.then))
    }

    /// Applies a decision that is journaled already.
    fn fold(&self, request: &mut Request<'_, '_>, decision: Decision) -> Action {
        for note in decision.notes {
            self.announce(request, &note);
            let call = request.call;
            let kind = note.kind();
            let text = note.into_payload(|error| self.error_text(call, error));
            request.progress.fold(kind, text);
        }
        self.next_action(request, decision.then)
    }

    fn next_action(&self, request: &Request<'_, '_>, then: Option<Action>) -> Action {
        if let Some(Action::Ask(asking)) = &then
            && let Asking::Failure(error) = &**asking
        {
            self.announce_failure(request, error);
        }
        then.unwrap_or_else(|| request.progress.action(&request.policy))
    }

    /// Reports a transition to the run's observer.
    fn announce(&self, request: &Request<'_, '_>, note: &Note) {
        let call = request.call;
        match note {
            Note::Result(text) if !request.progress.is_given => {
                let since_ms = request.since_ms;
                self.emit(&RunEvent::StepFinished {
                    step: call.note(call.attempts.get()),
                    millis: since_ms.map_or(0, |since| (self.now_ms() - since).max(0)),
                    preview: preview(text),
                });
            }
            Note::Failed(error) => self.announce_failure(request, error),
            Note::Retry {
                due_ms,
                message,
                code,
                ..
            } => self.emit(&RunEvent::StepRetrying {
                step: call.note(call.attempts.get()),
                due_ms: *due_ms,
                code,
                message: self.scope.redact(message.clone()),
            }),
            Note::Sleep { due_ms, .. } => self.emit(&RunEvent::StepSleeping {
                step: call.note(call.attempts.get()),
                until_ms: *due_ms,
            }),
            Note::Result(_)
            | Note::Child { .. }
            | Note::Draft(_)
            | Note::Error(_)
            | Note::Intent { .. }
            | Note::Probe { .. }
            | Note::Question { .. }
            | Note::Skip
            | Note::Wait { .. } => {}
        }
    }

    fn announce_failure(&self, request: &Request<'_, '_>, error: &StepError) {
        let call = request.call;
        let started_ms = call.started_ms.get();
        self.emit(&RunEvent::StepFailed {
            step: call.note(call.attempts.get()),
            millis: started_ms.map_or(0, |started| (self.now_ms() - started).max(0)),
            code: error.code,
            message: self.scope.redact(error.message.clone()),
        });
    }

    /// Returns the answer of a request that ended in this execution.
    fn ended(&self, request: Request<'_, '_>) -> Answer {
        let call = request.call;
        call.is_given.set(request.progress.is_given);
        let text = match request.progress.end() {
            Some(End::Value(text)) => return Ok(Ok(self.decode(text)?)),
            Some(End::Error(text)) => text,
            None => {
                let message = "a request without an end has no answer".to_owned();
                return Err(EngineError::Internal(message).into());
            }
        };
        let answer = self.raised(call, text);
        if let (Ok(Err(Signal::Throw(exception))), Some(place)) = (&answer, request.origin) {
            // The journal keeps no places, because they are valid only while this session lives.
            exception.origin.borrow_mut().span = Some(place);
        }
        answer
    }

    /// Returns the entry about the cost of a step. `value` is its value, if it is known yet.
    pub(super) fn cost(&self, call: &StepCall<'_>, value: Option<&Value>) -> Option<Entry> {
        let metering = call.metering.as_ref()?;
        let cx = call.context(self, call.attempts.get());
        let line = metering.line(&cx, value)?;
        let text = codec::encode(&line).unwrap_or_else(|_| "{}".to_owned());
        Some(call.entry(self, EntryKind::Cost, self.scope.redact_strings(text)))
    }

    /// Checks a journaled value against `:expect` again, because the store's result was not checked before.
    pub(super) fn expected(&self, call: &StepCall<'_>, value: Value) -> Evaluated<Value> {
        match self.fits(call, &value) {
            Ok(()) => Ok(value),
            Err(_) if call.on_error == crate::state::OnError::Skip => {
                call.is_given.set(true);
                Ok(Value::Nil)
            }
            Err(error) => Err(self.exception(call, &error).into()),
        }
    }
}
