//! A draft passed its checks, its review and its `:persist`: it is the result.

use super::{Decision, Note};

pub(super) fn decide(text: String) -> Decision {
    Decision::note(Note::Result(text))
}
