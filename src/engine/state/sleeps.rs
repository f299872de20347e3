//! An attempt asks to sleep.

use flowstone_lang::value::Value;

use super::{Decision, Note, Progress};

pub(super) fn decide(progress: &Progress, until_ms: i64, value: Value) -> Decision {
    Decision::note(Note::Sleep {
        attempt: progress.attempts,
        due_ms: until_ms,
        value,
    })
}
