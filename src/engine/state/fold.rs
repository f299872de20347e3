//! The state of a request folded from its journal entries.

use std::rc::Rc;

use flowstone_lang::value::Value;

use super::{About, End, Notice, Progress, Question, State, WaitFor};
use crate::codec;
use crate::flow::name_of;
use crate::ids::RunId;
use crate::ports::EntryKind;

impl Progress {
    /// Applies an entry of the journal.
    pub(crate) fn fold(&mut self, kind: EntryKind, payload: String) {
        match kind {
            EntryKind::Intent => {
                self.attempts += 1;
                self.state = State::Running {
                    attempt: self.attempts,
                };
            }
            EntryKind::Result | EntryKind::Note => {
                self.state = State::Done(End::Value(payload));
            }
            EntryKind::Error => self.state = State::Done(End::Error(payload)),
            EntryKind::Draft => {
                // Attempts that change nothing outside have no entry of their own.
                if matches!(self.state, State::Asked | State::RetryAt { .. }) {
                    self.attempts += 1;
                }
                self.state = State::Draft(payload);
            }
            EntryKind::Timer => self.wait_for(&payload),
            EntryKind::Signal => self.answered(&payload),
            EntryKind::Begin | EntryKind::Cost | EntryKind::Reuse | EntryKind::Log => {}
        }
    }

    /// Returns the progress of a request that has ended.
    pub(crate) fn ended(end: End) -> Progress {
        Progress {
            state: State::Done(end),
            ..Progress::default()
        }
    }

    /// Applies the entry that an attempt at performing nested steps began.
    pub(crate) fn begin(&mut self, payload: &str, at_ms: i64) {
        let note = codec::decode(payload).unwrap_or(Value::Nil);
        let attempt = note.get("attempt").and_then(Value::as_int);
        let attempt = attempt.and_then(|attempt| u32::try_from(attempt).ok());
        self.begun = attempt.map(|attempt| (attempt, at_ms));
    }

    /// Applies the end of the process: an attempt that was in progress may or may not have been done.
    pub(crate) fn lose_process(&mut self) {
        if matches!(self.state, State::Running { .. }) {
            self.state = State::InDoubt;
        }
    }

    /// Removes the outcome, so that the step is attempted again with a fresh retry policy.
    pub(crate) fn restart(&mut self) {
        self.base = self.attempts;
        self.state = State::Asked;
    }

    fn wait_for(&mut self, payload: &str) {
        let note = codec::decode(payload).unwrap_or(Value::Nil);
        let number = |key: &str| note.get(key).and_then(Value::as_int);
        let attempts = number("attempt").and_then(|number| u32::try_from(number).ok());
        let kind = note.get("kind").and_then(name_of);
        if kind.as_deref() == Some("notify") {
            self.notice = Notice {
                attempts: attempts.unwrap_or(0),
                due_ms: number("due"),
                is_over: number("due").is_none(),
            };
            return;
        }
        self.attempts = attempts.unwrap_or(self.attempts);
        let due_ms = number("due").unwrap_or(0);
        let is_lack = note.get("lack") == Some(&Value::Bool(true));
        self.lacks = if is_lack { self.lacks + 1 } else { 0 };
        self.base += u32::from(is_lack);
        self.state = match kind.as_deref() {
            Some("retry") => State::RetryAt { due_ms },
            Some("sleep") => State::Waiting(WaitFor::Time {
                due_ms,
                value: note.get("value").cloned().unwrap_or(Value::Nil),
            }),
            Some("child") => State::Child(RunId::from_text(
                note.get("run").and_then(Value::as_str).unwrap_or(""),
            )),
            Some("question") => self.asked(About::Failure),
            Some("confirm") => self.asked(About::Confirm),
            Some("review") => self.asked(About::Review),
            _ => State::Waiting(WaitFor::Answer),
        };
    }

    fn asked(&mut self, about: About) -> State {
        self.questions += 1;
        State::AwaitingApproval(Question {
            about,
            draft: self.take_draft(),
            answer: None,
        })
    }

    fn take_draft(&mut self) -> Option<String> {
        match std::mem::take(&mut self.state) {
            State::Draft(text) => Some(text),
            State::AwaitingApproval(question) => question.draft,
            State::Asked
            | State::Running { .. }
            | State::RetryAt { .. }
            | State::Waiting(_)
            | State::Child(_)
            | State::InDoubt
            | State::Done(_) => None,
        }
    }

    /// Applies a person's answer, or the finding of a probe.
    fn answered(&mut self, payload: &str) {
        self.state = match std::mem::take(&mut self.state) {
            State::AwaitingApproval(question) => self.replied(question, payload),
            // The value that a probe found follows.
            State::InDoubt | State::Running { .. } if was_done(payload) => State::InDoubt,
            // Entries about a draft or a result do not change it.
            state @ (State::Draft(_) | State::Done(_)) => state,
            State::Asked
            | State::Running { .. }
            | State::RetryAt { .. }
            | State::Waiting(_)
            | State::Child(_)
            | State::InDoubt => State::Asked,
        };
    }

    fn replied(&mut self, question: Question, payload: &str) -> State {
        let action = action(payload);
        let answered = Question {
            answer: Some(payload.to_owned()),
            ..question
        };
        match (question.about, action.as_deref()) {
            (About::Confirm, Some("approve")) => {
                self.is_approved = true;
                State::Asked
            }
            (About::Confirm, Some("reject" | "timeout")) => State::AwaitingApproval(answered),
            (About::Confirm, _) => State::Asked,
            (About::Review, _) => {
                self.is_decided = true;
                State::AwaitingApproval(answered)
            }
            (About::Failure, action) => {
                self.is_decided = true;
                self.is_given = matches!(action, Some("skip" | "use"));
                if action == Some("retry") {
                    self.base = self.attempts;
                    return State::Asked;
                }
                State::AwaitingApproval(answered)
            }
        }
    }
}

/// Tells whether a probe found that an attempt was done.
fn was_done(payload: &str) -> bool {
    let note = codec::decode(payload).unwrap_or(Value::Nil);
    note.get("done?") == Some(&Value::Bool(true))
}

/// Returns the action in an answer.
fn action(payload: &str) -> Option<Rc<str>> {
    let answer = codec::decode(payload).ok()?;
    name_of(answer.get("action").unwrap_or(&answer))
}
