//! A person replied to a question about a step.

use flowstone_lang::value::Value;

use super::{About, Action, Asking, Decision, Note, Policy, Progress, failed};
use crate::step::StepError;

/// A reply, with the results of checking its value.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub about: About,
    pub action: ReplyAction,
}

/// The decision of a person.
#[derive(Debug, Clone)]
pub(crate) enum ReplyAction {
    /// The step may run, or its value is accepted.
    Approve,
    /// The step may not be performed: it was rejected, or no reply arrived in time and a timeout means failure.
    Reject(Box<StepError>),
    /// The step is attempted again.
    Retry,
    /// The step fails with the error of the question, as EDN text.
    Abort { error: String },
    /// The value is nil.
    Skip,
    /// This value is used instead, as EDN text.
    Use(String),
    /// The reply is not one of the actions, or its value does not meet `:expect`: the question is asked again.
    Again {
        problem: String,
        /// For a question after a failure, the kind of its error, and that error.
        failure: Option<(String, Value)>,
    },
}

pub(super) fn decide(progress: &mut Progress, reply: Reply, policy: &Policy<'_>) -> Decision {
    match reply.action {
        ReplyAction::Approve => match reply.about {
            About::Review => {
                Decision::then(Action::Accept(progress.draft().unwrap_or("nil").to_owned()))
            }
            About::Confirm | About::Failure => Decision::default(),
        },
        ReplyAction::Reject(error) => failed::for_good(error, policy),
        ReplyAction::Retry => Decision::default(),
        ReplyAction::Abort { error } => Decision::note(Note::Error(error)),
        ReplyAction::Skip => given(progress, "nil".to_owned()),
        ReplyAction::Use(text) if reply.about == About::Review => {
            Decision::then(Action::Accept(text))
        }
        ReplyAction::Use(text) => given(progress, text),
        ReplyAction::Again { problem, failure } => Decision::then(Action::Ask(Box::new(
            asked_again(reply.about, problem, failure),
        ))),
    }
}

fn asked_again(about: About, problem: String, failure: Option<(String, Value)>) -> Asking {
    match about {
        About::Confirm => Asking::Confirm {
            problem: Some(problem),
        },
        About::Review => Asking::Review {
            problem: Some(problem),
        },
        About::Failure => {
            let (kind, error) = failure.unwrap_or((String::new(), Value::Nil));
            Asking::FailureAgain {
                kind,
                message: problem,
                error,
            }
        }
    }
}

/// Accepts a value that a person gave in place of the step's own.
fn given(progress: &mut Progress, text: String) -> Decision {
    progress.is_given = true;
    Decision::note(Note::Result(text))
}
