//! Rules for answers to waits: who may answer, and which answers are valid.
//!
//! Stores call this inside the transaction that takes the answer, so that all stores decide alike.

mod answer;
mod judge;
mod links;
mod row;
mod rules;
mod shown;

pub(crate) use judge::conditions;
pub use judge::{accepts, actions, event_key, is_approval, is_for, judge, roles, shown_digest};
pub use links::{LinkTarget, LinkTemplate, VARIABLES};
pub use row::{
    Answered, CHILD_KEY, Refusal, Target, WaitAnswer, WaitEnding, WaitEvent, WaitRow, WaitState,
};
pub use rules::{AnswerRule, AnswerRules};
pub use shown::{Shown, shown};

/// Returns names as a list in the form of a flow.
pub fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
    names.join(", ")
}
