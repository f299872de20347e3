//! Judging an answer to a wait: who may answer, and what an answer may be.
//!
//! Stores call this inside the transaction that takes the answer, so that every store judges alike.

mod answer;
mod judge;
mod links;
mod row;
mod shown;

pub use judge::{accepts, actions, event_key, is_approval, is_for, judge, roles, shown_digest};
pub use links::{LinkTarget, LinkTemplate, VARIABLES};
pub use row::{
    Answered, CHILD_KEY, Refusal, Target, WaitAnswer, WaitEnding, WaitEvent, WaitRow, WaitState,
};
pub use shown::{Shown, shown};

/// Names as they are written in a flow.
pub fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
    names.join(", ")
}
