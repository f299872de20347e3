//! It is unknown whether an attempt was done.

use super::{Action, Asking, Decision, Policy, failed};
use crate::step::StepError;

pub(super) fn decide(error: Box<StepError>, asks: bool, policy: &Policy<'_>) -> Decision {
    match asks {
        true => Decision::then(Action::Ask(Box::new(Asking::Failure(error)))),
        false => failed::for_good(error, policy),
    }
}
