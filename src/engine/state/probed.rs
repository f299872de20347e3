//! A probe has checked whether an attempt in doubt took effect.

use super::{Decision, Note, Policy, Progress, doubted};
use crate::doubt::Resolution;
use crate::step::StepError;

/// The finding of a probe.
#[derive(Debug, Clone)]
pub(crate) enum Probed {
    /// The attempt was done, and this is its value, as EDN text.
    Done(String),
    NotDone,
    /// The probe failed, so the attempt in doubt is resolved without it.
    Failed {
        settle: Resolution,
        error: Box<StepError>,
    },
}

pub(super) fn decide(progress: &Progress, probed: Probed, policy: &Policy<'_>) -> Decision {
    match probed {
        Probed::Done(text) => Decision {
            notes: vec![
                Note::Probe { done: true },
                match policy.drafts || policy.persists {
                    true => Note::Draft(text),
                    false => Note::Result(text),
                },
            ],
            then: None,
        },
        Probed::NotDone => Decision::note(Note::Probe { done: false }),
        Probed::Failed { settle, error } => match settle {
            Resolution::Ask => doubted::decide(error, true, policy),
            Resolution::Fail => doubted::decide(error, false, policy),
            Resolution::Retry => Decision::then(progress.settle(Resolution::Retry, policy)),
        },
    }
}
