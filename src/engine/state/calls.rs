//! An attempt started a child run, whose end is its value.

use super::{Action, Decision};
use crate::ids::RunId;

pub(super) fn decide(run: RunId) -> Decision {
    Decision::then(Action::StartChild(run))
}
