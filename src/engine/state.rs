//! One step request as a state machine: its state is folded from its journal entries, and the next state from an event.
//!
//! Nothing here awaits, reads a clock or knows a store. [`next`] says what an event adds to the journal and what is
//! done then. The action follows from the folded state alone wherever the journal has all that is needed, so a run
//! that continues and a run that resumes after a crash take the same way. `execute` performs the actions.

mod accepted;
mod calls;
mod checked;
mod doubted;
mod due;
mod failed;
mod fold;
mod note;
mod probed;
mod produced;
mod replied;
mod sleeps;
mod suspends;

use flowstone_lang::value::Value;

use crate::doubt::{OnDoubt, Settle};
use crate::ids::RunId;
use crate::retry;
use crate::step::{StepError, WaitSpec};

pub(crate) use note::Note;
pub(crate) use probed::Probed;
pub(crate) use replied::{Reply, ReplyAction};

/// The state of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum State {
    /// It is to be attempted.
    #[default]
    Asked,
    /// A person decides.
    AwaitingApproval(Question),
    /// An attempt is under way.
    Running {
        attempt: u32,
    },
    /// It failed, and is attempted again at this time.
    RetryAt {
        due_ms: i64,
    },
    /// The step waits for an answer or for a time.
    Waiting(WaitFor),
    /// A child run is to end.
    Child(RunId),
    /// EDN text of a value that is checked or reviewed before it becomes the result.
    Draft(String),
    /// The process ended during an attempt that may have changed something outside.
    InDoubt,
    Done(End),
}

/// The kinds of waits of a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WaitFor {
    /// An answer to the wait that the step opened.
    Answer,
    /// A time; then this value is the result.
    Time { due_ms: i64, value: Value },
}

/// A question to a person about a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub about: About,
    /// EDN text of the step's value, where it has one already.
    pub draft: Option<String>,
    /// EDN text of a journaled answer that nothing was done about yet.
    pub answer: Option<String>,
}

/// The subject of a question to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// Whether the step may run.
    Confirm,
    /// How to continue after a failure.
    Failure,
    /// Whether its value is good.
    Review,
}

impl About {
    /// The `:kind` of the journal's timer entry.
    pub(crate) fn timer(self) -> &'static str {
        match self {
            About::Confirm => "confirm",
            About::Failure => "question",
            About::Review => "review",
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// EDN text of its value.
    Value(String),
    /// EDN text of its error.
    Error(String),
}

/// A request's state, with what is counted over its attempts and questions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    pub state: State,
    /// The number of attempts that were begun, as far as the journal has them.
    pub attempts: u32,
    /// The attempts that the retry policy does not count: those before a person chose to try again.
    pub base: u32,
    /// The number of times in a row that an attempt found no file handle.
    pub lacks: u32,
    /// The number of questions asked about the step.
    pub questions: u32,
    /// A person approved that the step runs.
    pub is_approved: bool,
    /// A person decided about the value, so it need not be what the flow expects.
    pub is_decided: bool,
    /// The value is one that a person gave, or nil because the step was skipped.
    pub is_given: bool,
    /// The last attempt to send the notification of the step's wait.
    pub notice: Notice,
    /// The last attempt of a step that performs other steps, and when it began.
    pub begun: Option<(u32, i64)>,
}

/// The delivery of a notification about a wait.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub attempts: u32,
    /// When it is tried again after a failure.
    pub due_ms: Option<i64>,
    /// It was sent, or is not tried again.
    pub is_over: bool,
}

/// The part of the step's config and type that decides its transitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy<'c> {
    /// Each attempt is journaled before it begins, because it changes something outside.
    pub journals_attempts: bool,
    pub retry: &'c retry::Policy,
    pub on_error: OnError,
    pub on_doubt: &'c OnDoubt,
    /// A person decides whether the step may run.
    pub confirms: bool,
    /// A person decides whether the value is good.
    pub reviews: bool,
    /// The value is checked or reviewed after it is journaled.
    pub drafts: bool,
    /// The value is stored by `:persist`.
    pub persists: bool,
}

/// The consequence of a permanent failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    Fail,
    /// The value is nil.
    Skip,
    /// A person decides.
    Checkpoint,
}

/// An event of a request.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// An attempt, a wait or a child gave a value, as EDN text. `is_checked`: it is what the flow expects.
    Produced { text: String, is_checked: bool },
    /// The attempt asks to sleep, and then to answer with this value.
    Sleeps { until_ms: i64, value: Value },
    /// The attempt asks to wait for an answer.
    Suspends(Box<WaitSpec>),
    /// The attempt asks for the end of a run that it started.
    Calls(RunId),
    /// An attempt failed. `random` decides the jitter of the next one.
    Failed {
        error: Box<StepError>,
        now_ms: i64,
        random: u64,
    },
    /// The process had no file handle for the attempt, so nothing was done.
    Lacked { error: Box<StepError>, now_ms: i64 },
    /// The step failed, and another attempt is out of the question.
    GaveUp(Box<StepError>),
    /// The time of a retry or of a sleep has come. `text`: the value of the sleep, as EDN text.
    Due { text: String },
    /// A person answered the question. The answer is journaled.
    Replied(Box<Reply>),
    /// Nobody can know whether an attempt was done, and doing it again may do it twice. `asks`: a person decides.
    Doubted { error: Box<StepError>, asks: bool },
    /// A probe has checked whether an attempt in doubt took effect.
    Probed(Probed),
    /// The draft is what the flow expects.
    Checked,
    /// Nothing is left to do about the value, which is stored where the flow asks for that.
    Accepted(String),
}

/// The action that the executor performs next.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Perform the step.
    Perform { attempt: u32 },
    /// Ask a person, and journal the question.
    Ask(Box<Asking>),
    /// Wait for the reply to the open question.
    AwaitReply(About),
    /// Act on a reply that is journaled.
    Judge { about: About, answer: String },
    /// Do nothing until this time.
    Sleep { until_ms: i64, value: Option<Value> },
    /// Open a wait, and journal it.
    OpenWait(Box<WaitSpec>),
    /// Wait for the answer to the step's own wait.
    AwaitWait,
    /// Journal that a child run is called.
    StartChild(RunId),
    /// Wait for the end of a child run.
    AwaitChild(RunId),
    /// Check whether an attempt in doubt took effect.
    Probe,
    /// Report that the outcome of an attempt is unknown. `asks`: a person decides.
    Doubt { asks: bool },
    /// Check a draft against what the flow expects.
    Check(String),
    /// Store a value where the flow asks for that.
    Accept(String),
    /// Answer the flow with what the journal has.
    Answer,
}

/// A question to a person.
#[derive(Debug, Clone)]
pub(crate) enum Asking {
    /// `problem`: why the answer before was not taken.
    Confirm {
        problem: Option<String>,
    },
    Review {
        problem: Option<String>,
    },
    Failure(Box<StepError>),
    /// The answer before was not taken.
    FailureAgain {
        /// The kind of the error that the question is about.
        kind: String,
        message: String,
        error: Value,
    },
}

/// The result of an event: entries for the journal, and the action if the entries alone do not imply it.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// Journaled in this order, in one batch.
    pub notes: Vec<Note>,
    pub then: Option<Action>,
}

impl Decision {
    fn note(note: Note) -> Decision {
        Decision {
            notes: vec![note],
            then: None,
        }
    }

    fn then(action: Action) -> Decision {
        Decision {
            notes: Vec::new(),
            then: Some(action),
        }
    }
}

/// Decides what an event adds to the journal, and what is done then.
#[cfg(test)]
pub(crate) fn next(
    progress: &mut Progress,
    event: Event,
    policy: &Policy<'_>,
) -> (Vec<Note>, Action) {
    let decision = progress.decide(event, policy);
    for note in decision.notes.clone() {
        let kind = note.kind();
        progress.fold(kind, note.into_payload(|error| error.message.clone()));
    }
    let action = decision.then.unwrap_or_else(|| progress.action(policy));
    (decision.notes, action)
}

impl Progress {
    /// Decides what an event adds to the journal. What the journal does not keep is changed here; the rest is changed
    /// by [`Progress::fold`] once it is written.
    pub(crate) fn decide(&mut self, event: Event, policy: &Policy<'_>) -> Decision {
        match event {
            Event::Produced { text, is_checked } => produced::decide(text, is_checked, policy),
            Event::Sleeps { until_ms, value } => sleeps::decide(self, until_ms, value),
            Event::Suspends(spec) => suspends::decide(spec),
            Event::Calls(run) => calls::decide(run),
            Event::Failed {
                error,
                now_ms,
                random,
            } => failed::decide(self, error, (now_ms, random), policy),
            Event::Lacked { error, now_ms } => failed::lacked(self, &error, now_ms),
            Event::GaveUp(error) => failed::for_good(error, policy),
            Event::Due { text } => due::decide(self, text, policy),
            Event::Replied(reply) => replied::decide(self, *reply, policy),
            Event::Doubted { error, asks } => doubted::decide(error, asks, policy),
            Event::Probed(probed) => probed::decide(self, probed, policy),
            Event::Checked => checked::decide(self, policy),
            Event::Accepted(text) => accepted::decide(text),
        }
    }

    /// Returns what is done in this state.
    pub(crate) fn action(&self, policy: &Policy<'_>) -> Action {
        match &self.state {
            State::Asked if policy.confirms && !self.is_approved => {
                Action::Ask(Box::new(Asking::Confirm { problem: None }))
            }
            State::Asked | State::Running { .. } => Action::Perform {
                attempt: self.attempts + 1,
            },
            State::AwaitingApproval(question) => match &question.answer {
                None => Action::AwaitReply(question.about),
                Some(answer) => Action::Judge {
                    about: question.about,
                    answer: answer.clone(),
                },
            },
            State::RetryAt { due_ms } => Action::Sleep {
                until_ms: *due_ms,
                value: None,
            },
            State::Waiting(WaitFor::Time { due_ms, value }) => Action::Sleep {
                until_ms: *due_ms,
                value: Some(value.clone()),
            },
            State::Waiting(WaitFor::Answer) => Action::AwaitWait,
            State::Child(run) => Action::AwaitChild(run.clone()),
            State::Draft(text) => Action::Check(text.clone()),
            State::InDoubt => match policy.on_doubt {
                OnDoubt::Probe(_) => Action::Probe,
                OnDoubt::Settle(settle) => self.settle(*settle, policy),
            },
            State::Done(_) => Action::Answer,
        }
    }

    /// Returns what is done about an attempt in doubt without looking.
    fn settle(&self, settle: Settle, policy: &Policy<'_>) -> Action {
        match settle {
            Settle::Retry if policy.confirms && !self.is_approved => {
                Action::Ask(Box::new(Asking::Confirm { problem: None }))
            }
            Settle::Retry => Action::Perform {
                attempt: self.attempts + 1,
            },
            Settle::Ask => Action::Doubt { asks: true },
            Settle::Fail => Action::Doubt { asks: false },
        }
    }

    /// Begins the next attempt. Returns what is journaled before it.
    pub(crate) fn begin_attempt(&mut self, policy: &Policy<'_>) -> Option<Note> {
        let attempt = self.attempts + 1;
        if policy.journals_attempts {
            return Some(Note::Intent { attempt });
        }
        self.attempts = attempt;
        self.state = State::Running { attempt };
        None
    }

    /// Returns how it ended, if it did.
    pub(crate) fn end(&self) -> Option<&End> {
        match &self.state {
            State::Done(end) => Some(end),
            State::Asked
            | State::AwaitingApproval(_)
            | State::Running { .. }
            | State::RetryAt { .. }
            | State::Waiting(_)
            | State::Child(_)
            | State::Draft(_)
            | State::InDoubt => None,
        }
    }

    /// Returns EDN text of the value that is not the result yet.
    pub(crate) fn draft(&self) -> Option<&str> {
        match &self.state {
            State::Draft(text) => Some(text),
            State::AwaitingApproval(question) => question.draft.as_deref(),
            State::Asked
            | State::Running { .. }
            | State::RetryAt { .. }
            | State::Waiting(_)
            | State::Child(_)
            | State::InDoubt
            | State::Done(_) => None,
        }
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
