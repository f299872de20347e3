//! How deep agents may hand work to agents. Two that have each other as tools would never end.

use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use crate::fields::Fields;

/// How deep, where nobody says it.
pub const MAX_DEPTH: i64 = 4;

/// What may be said.
pub const MOST: i64 = 16;

/// Checks that an agent is not too deep in delegations: 0 is one that the flow calls itself.
///
/// # Errors
/// E0835.
pub fn check_depth(cx: &StepContext, config: &Value) -> Result<(), StepError> {
    let own = Fields::new(config).int("max-depth", 0, MOST)?;
    let of_project = cx
        .settings()
        .get("agent")
        .and_then(|agent| agent.get("max-depth")?.as_int());
    let most = own.or(of_project).unwrap_or(MAX_DEPTH);
    if i64::from(cx.level()) <= most {
        return Ok(());
    }
    let message = format!(
        "agents have handed this on {} times, and {most} is the most: do it yourself, or say that it cannot be done",
        cx.level()
    );
    Err(StepError::new("E0835", "too-deep", message).hint(
        "`:max-depth` of the agent, or `:agent {:max-depth 6}` in flowstone.edn, allows more",
    ))
}
