//! A retry is due, or a sleep is over.

use super::{Decision, Policy, Progress, State, WaitFor, produced};

pub(super) fn decide(progress: &mut Progress, text: String, policy: &Policy<'_>) -> Decision {
    match &progress.state {
        State::Waiting(WaitFor::Time { .. }) => produced::decide(text, false, policy),
        State::RetryAt { .. } => {
            progress.state = State::Asked;
            Decision::default()
        }
        State::Asked
        | State::AwaitingApproval(_)
        | State::Running { .. }
        | State::Waiting(WaitFor::Answer)
        | State::Child(_)
        | State::Draft(_)
        | State::InDoubt
        | State::Done(_) => Decision::default(),
    }
}
