//! Which answers the wait of a tree takes from any surface: those that the tools of a driver could give.

use flowstone_engine::ports::WaitRow;
use flowstone_lang::value::Value;
use flowstone_model::json::{items, name_text, to_json};
use serde_json::{Map, Value as Json};

use super::position::var_at;
use super::scope;

/// Maximum nesting depth of a value that is looked at; `$VAR` takes less.
const DEPTH: usize = 128;

/// Checks an answer to the wait of a tree's driver, as [`AnswerRule`](flowstone_model::waits::AnswerRule) does.
///
/// # Errors
/// The reason why the answer is refused.
pub fn check_answer(wait: &WaitRow, answer: &Value) -> Result<(), String> {
    let op = answer.get("op").and_then(name_text);
    let is_checked = matches!(
        op.as_deref(),
        Some("eval" | "submit" | "think" | "var-write")
    );
    let Some(var) = is_checked.then(|| var_at(wait)).flatten() else {
        return Ok(());
    };
    for name in ["note", "thought"] {
        if let Some(text) = answer.get(name).and_then(Value::as_str) {
            scope::note(name, text).map_err(|error| error.to_string())?;
        }
    }
    if op.as_deref() != Some("var-write") {
        return Ok(());
    }
    let keys = answer.get("path").and_then(items).unwrap_or_default();
    let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
    scope::check_apart(&keys).map_err(|error| error.to_string())?;
    let value = plain(answer.get("value").unwrap_or(&Value::Nil), 0)?;
    scope::check_write(&var?, &keys, &value).map_err(|error| error.to_string())
}

/// Returns a value as JSON, if that says the same.
fn plain(value: &Value, depth: usize) -> Result<Json, String> {
    if depth > DEPTH {
        return Err(format!("the value is nested more than {DEPTH} deep"));
    }
    match value {
        Value::Map(map) => {
            let mut members = Map::new();
            for (key, value) in map.iter() {
                let name = match key {
                    Value::Text(_) | Value::Keyword(_) => name_text(key).unwrap_or_default(),
                    key => return Err(format!("a key of the value is {}, not a text", key.kind())),
                };
                if members.contains_key(&name) {
                    return Err(format!("the value has the key `{name}` twice"));
                }
                members.insert(name, plain(value, depth + 1)?);
            }
            Ok(Json::Object(members))
        }
        Value::Vector(_) | Value::List(_) => {
            let items = items(value).unwrap_or_default();
            let items: Result<Vec<Json>, String> =
                items.iter().map(|item| plain(item, depth + 1)).collect();
            items.map(Json::Array)
        }
        value => match (value, to_json(value)) {
            (Value::Text(_), Ok(json)) => Ok(json),
            (Value::BigInt(_) | Value::Decimal(_), Ok(Json::String(digits))) => Err(format!(
                "the number {} would be rounded: write it as a text",
                digits.chars().take(100).collect::<String>()
            )),
            (_, Ok(json)) if !json.is_string() && !json.is_array() && !json.is_object() => Ok(json),
            (_, Err(error)) => Err(error.to_string()),
            (value, Ok(_)) => Err(format!(
                "{} cannot be stored in $VAR: write it as a text",
                value.kind()
            )),
        },
    }
}
