//! Answers to questions about steps: text or JSON is converted to a decision, or refused.

use flowstone_lang::value::{Map, Value};

use super::row::Refusal;
use super::{actions, listed};
use crate::names::name_of;

/// Actions that require a `:value`.
const WITH_VALUE: &[&str] = &["edit", "use"];

/// Checks the answer to a question about a step, and returns it as a map with its action as a keyword.
///
/// # Errors
/// When the wait does not offer the action, or the action lacks its value.
pub(super) fn check(details: &Value, payload: &Value) -> Result<Value, Refusal> {
    let invalid = |problem: String| Refusal::Invalid {
        problems: vec![problem],
    };
    let offered = actions(details);
    let given = match payload.as_map() {
        Some(_) => payload.get("action").unwrap_or(&Value::Nil),
        None => payload,
    };
    let action = match given {
        Value::Keyword(_) | Value::Text(_) => name_of(given).unwrap_or_else(|| "".into()),
        _ => {
            return Err(invalid(format!(
                "it needs an `:action`, one of {}, such as {{:action :{}}}",
                listed(&offered),
                offered.first().map_or("approve", String::as_str)
            )));
        }
    };
    let action = action.trim_start_matches(':');
    if !offered.iter().any(|known| known == action) {
        return Err(Refusal::NotOffered {
            action: action.to_owned(),
            offered,
        });
    }
    let value_key = Value::keyword("value");
    let has_value = payload
        .as_map()
        .is_some_and(|map| map.get(&value_key).is_some());
    if WITH_VALUE.contains(&action) && !has_value {
        return Err(invalid(format!(
            "`:{action}` needs a `:value`: {{:action :{action} :value ...}}"
        )));
    }
    let mut entries = payload
        .as_map()
        .map_or_else(Default::default, |map| map.entries().clone());
    entries.insert(Value::keyword("action"), Value::keyword(action));
    Ok(Value::Map(std::rc::Rc::new(Map::new(entries))))
}
