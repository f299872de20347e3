//! One step request as a state machine: its state is folded from its journal entries, and the next state follows from
//! an event.
//!
//! Nothing here awaits, reads a clock or accesses a store. [`next`] decides what an event adds to the journal and which
//! action follows. If the journal has everything that is needed, the action follows from the folded state alone, so a
//! run that continues and a run that resumes after a crash behave alike. `execute` performs the actions.

#![warn(clippy::wildcard_enum_match_arm)]

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

use crate::doubt::{OnDoubt, Resolution};
use crate::ids::RunId;
use crate::retry;
use crate::step::{StepError, WaitSpec};

pub(crate) use note::Note;
pub(crate) use probed::Probed;
pub(crate) use replied::{Reply, ReplyAction};

/// The state of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum State {
    /// The step is to be attempted.
    #[default]
    Asked,
    /// A person has to decide.
    AwaitingApproval(Question),
    /// An attempt is under way.
    Running {
        attempt: u32,
    },
    /// An attempt failed; the next one is due at this time.
    RetryAt {
        due_ms: i64,
    },
    /// The step waits for an answer or for a time.
    Waiting(WaitFor),
    /// The step waits for the end of a child run.
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
    /// A time, at which this value becomes the result.
    Time { due_ms: i64, value: Value },
}

/// A question to a person about a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub about: About,
    /// EDN text of the step's value, if it has one already.
    pub draft: Option<String>,
    /// EDN text of a journaled answer that was not acted on yet.
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

/// The end of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// EDN text of its value.
    Value(String),
    /// EDN text of its error.
    Error(String),
}

/// A request's state, with its counts of attempts and questions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    pub state: State,
    /// The number of attempts that were begun, as far as they are journaled.
    pub attempts: u32,
    /// The attempts that the retry policy does not count: those before a person chose to try again.
    pub base: u32,
    /// The number of times in a row that an attempt found no file handle.
    pub lacks: u32,
    /// The number of questions asked about the step.
    pub questions: u32,
    /// Whether a person approved that the step runs.
    pub is_approved: bool,
    /// Whether a person decided about the value, in which case it need not meet `:expect`.
    pub is_decided: bool,
    /// Whether the value was given by a person, or is nil because the step was skipped.
    pub is_given: bool,
    /// The last attempt to send the notification of the step's wait.
    pub notice: Notice,
    /// The number and the start of the last attempt of a step that performs nested steps.
    pub begun: Option<(u32, i64)>,
}

/// The delivery of a notification about a wait.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub attempts: u32,
    /// The time of the next attempt after a failure.
    pub due_ms: Option<i64>,
    /// Whether it was sent, or will not be tried again.
    pub is_over: bool,
}

/// The part of the step's config and type that decides its transitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy<'c> {
    /// Whether each attempt is journaled before it begins, because it changes something outside.
    pub journals_attempts: bool,
    pub retry: &'c retry::Policy,
    /// When the step has to end: no attempt begins then or later.
    pub deadline_ms: Option<i64>,
    pub on_error: OnError,
    pub on_doubt: &'c OnDoubt,
    /// Whether a person decides if the step may run.
    pub confirms: bool,
    /// Whether a person reviews the value.
    pub reviews: bool,
    /// Whether the value is checked or reviewed after it is journaled.
    pub drafts: bool,
    /// Whether `:persist` stores the value.
    pub persists: bool,
}

/// The consequence of a permanent failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    Fail,
    /// The value is nil.
    Skip,
    /// A person has to decide.
    Checkpoint,
}

/// An event of a request.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// An attempt, a wait or a child returned a value, as EDN text. `is_checked`: it meets `:expect`.
    Produced { text: String, is_checked: bool },
    /// The attempt requests a sleep, after which this value is the answer.
    Sleeps { until_ms: i64, value: Value },
    /// The attempt requests a wait for an answer.
    Suspends(Box<WaitSpec>),
    /// The attempt requests to wait for the end of a run that it started.
    Calls(RunId),
    /// An attempt failed. `random` decides the jitter of the next one.
    Failed {
        error: Box<StepError>,
        now_ms: i64,
        random: u64,
    },
    /// The process had no file handle for the attempt, so it was not made.
    NoHandle { error: Box<StepError>, now_ms: i64 },
    /// The step failed, and is not attempted again.
    GaveUp(Box<StepError>),
    /// The time of a retry or of a sleep has come. `text`: the value of the sleep, as EDN text.
    Due { text: String },
    /// A person answered the question. The answer is journaled.
    Replied(Box<Reply>),
    /// It is unknown whether an attempt was done, and another attempt may do it twice. `asks`: a person decides.
    Doubted { error: Box<StepError>, asks: bool },
    /// A probe has checked whether an attempt in doubt took effect.
    Probed(Probed),
    /// The draft meets `:expect`.
    Checked,
    /// The value is final, and is stored if `:persist` is set.
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
    /// Wait until this time.
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
    /// Check a draft against `:expect`.
    Check(String),
    /// Store a value if `:persist` is set.
    Accept(String),
    /// Answer the flow from the journal.
    Answer,
}

/// A question to a person.
#[derive(Debug, Clone)]
pub(crate) enum Asking {
    /// `problem`: why the previous answer was rejected.
    Confirm {
        problem: Option<String>,
    },
    Review {
        problem: Option<String>,
    },
    Failure(Box<StepError>),
    /// The previous answer was rejected.
    FailureAgain {
        /// The kind of the error in question.
        kind: String,
        message: String,
        error: Value,
    },
}

/// The result of an event: entries for the journal, and the action if the entries alone do not imply it.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// The entries to journal, in this order, in one batch.
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

/// Decides what an event adds to the journal, and which action follows.
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
    /// Decides what an event adds to the journal. State that is not journaled is changed here; the rest is changed by
    /// [`Progress::fold`] once it is written.
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
            Event::NoHandle { error, now_ms } => failed::no_handle(self, &error, now_ms),
            Event::GaveUp(error) => failed::for_good(error, policy),
            Event::Due { text } => due::decide(self, text, policy),
            Event::Replied(reply) => replied::decide(self, *reply, policy),
            Event::Doubted { error, asks } => doubted::decide(error, asks, policy),
            Event::Probed(probed) => probed::decide(self, probed, policy),
            Event::Checked => checked::decide(self, policy),
            Event::Accepted(text) => accepted::decide(text),
        }
    }

    /// Returns the action of this state.
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
                OnDoubt::Resolve(settle) => self.settle(*settle, policy),
            },
            State::Done(_) => Action::Answer,
        }
    }

    /// Returns the action for an attempt in doubt that is resolved without a probe.
    fn settle(&self, settle: Resolution, policy: &Policy<'_>) -> Action {
        match settle {
            Resolution::Retry if policy.confirms && !self.is_approved => {
                Action::Ask(Box::new(Asking::Confirm { problem: None }))
            }
            Resolution::Retry => Action::Perform {
                attempt: self.attempts + 1,
            },
            Resolution::Ask => Action::Doubt { asks: true },
            Resolution::Fail => Action::Doubt { asks: false },
        }
    }

    /// Begins the next attempt. Returns the entry that is journaled before it.
    pub(crate) fn begin_attempt(&mut self, policy: &Policy<'_>) -> Option<Note> {
        let attempt = self.attempts + 1;
        if policy.journals_attempts {
            return Some(Note::Intent { attempt });
        }
        self.attempts = attempt;
        self.state = State::Running { attempt };
        None
    }

    /// Returns the end of the request, if it has ended.
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

    /// Returns the EDN text of a draft.
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
