//! A draft meets `:expect`: it is reviewed, or it is accepted.

use super::{Action, Asking, Decision, Policy, Progress};

pub(super) fn decide(progress: &Progress, policy: &Policy<'_>) -> Decision {
    Decision::then(match policy.reviews {
        true => Action::Ask(Box::new(Asking::Review { problem: None })),
        false => Action::Accept(progress.draft().unwrap_or("nil").to_owned()),
    })
}
