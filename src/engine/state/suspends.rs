//! An attempt asks to wait for an answer.

use super::{Action, Decision};
use crate::step::WaitSpec;

pub(super) fn decide(spec: Box<WaitSpec>) -> Decision {
    Decision::then(Action::OpenWait(spec))
}
