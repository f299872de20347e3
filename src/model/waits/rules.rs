//! Rules of fronts for the answers to their own waits, beside the `:validation` that a wait has itself.

use std::fmt;

use flowstone_lang::value::Value;

use super::row::{Refusal, WaitRow};
use crate::codec;

/// Judges an answer that the wait itself would take. It accepts all answers to the waits of other fronts.
///
/// The error is the reason why the answer is refused.
pub type AnswerRule = fn(&WaitRow, &Value) -> Result<(), String>;

/// The rules of all fronts. They apply inside the transaction that takes an answer, wherever the answer came from.
#[derive(Clone, Copy, Default)]
pub struct AnswerRules(&'static [AnswerRule]);

impl AnswerRules {
    /// Returns these rules.
    pub const fn new(rules: &'static [AnswerRule]) -> AnswerRules {
        AnswerRules(rules)
    }

    /// Checks a payload, given as EDN text.
    ///
    /// # Errors
    /// The refusal of the first rule that does not accept it.
    pub(crate) fn check(self, row: &WaitRow, payload: &str) -> Result<(), Refusal> {
        let invalid = |problem: String| Refusal::Invalid {
            problems: vec![problem],
        };
        if self.0.is_empty() {
            return Ok(());
        }
        let value = codec::decode(payload).map_err(|error| invalid(error.to_string()))?;
        let mut rules = self.0.iter();
        rules.try_for_each(|rule| rule(row, &value).map_err(invalid))
    }
}

impl PartialEq for AnswerRules {
    fn eq(&self, other: &AnswerRules) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for AnswerRules {}

impl fmt::Debug for AnswerRules {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "AnswerRules({})", self.0.len())
    }
}
