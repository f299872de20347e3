//! A value was produced by an attempt, by an answer to a wait, or by a child run.

use super::{Decision, Note, Policy};

pub(super) fn decide(text: String, is_checked: bool, policy: &Policy<'_>) -> Decision {
    Decision::note(match policy.reviews || (policy.drafts && !is_checked) {
        true => Note::Draft(text),
        false => Note::Result(text),
    })
}
