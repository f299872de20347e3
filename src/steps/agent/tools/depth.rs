//! The maximum depth of delegation between agents. Without it, two agents with each other as tools would never end.

use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use crate::fields::Fields;

/// The default maximum.
pub(super) const MAX_DEPTH: i64 = 4;

/// The allowed values.
pub(super) const MOST: i64 = 16;

/// Checks the depth of an agent: 0 is one that the flow itself calls.
///
/// # Errors
/// E0835.
pub(crate) fn check_depth(cx: &StepContext, config: &Value) -> Result<(), StepError> {
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
