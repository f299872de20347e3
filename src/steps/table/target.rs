//! Reads which table a step uses, and which of its partitions.

use flowstone_flow::step::StepError;
use flowstone_flow::table::{Partitions, TableName, TableTarget};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::json::{items, name_text};
use crate::resource;
use crate::text::brief;

/// Reads the `:table` of a step: a name, a `res://` name, or a map with one of them and optionally `:partitions`.
pub(crate) fn target(given: &Value) -> Result<TableTarget, StepError> {
    Ok(TableTarget {
        name: table_name(given)?,
        partitions: match given.get("partitions") {
            Some(given) if !given.is_nil() => partitions(given)?,
            _ => Partitions::Unnamed,
        },
    })
}

fn table_name(given: &Value) -> Result<TableName, StepError> {
    if let Some(uri) = resource::uri(given) {
        let id = uri
            .split_once("/table/")
            .map(|(_, id)| id)
            .filter(|id| !id.is_empty());
        return match id {
            Some(id) => Ok(id
                .parse()
                .map_or_else(|_| TableName::Name(id.to_owned()), TableName::Id)),
            None => Err(
                StepError::config("E0764", format!("`{uri}` is not the name of a table"))
                    .hint("it looks like `res://v1/ws/local/result/table/7`"),
            ),
        };
    }
    let name = match given {
        Value::Map(_) => given
            .get("ref")
            .or_else(|| given.get("table"))
            .or_else(|| given.get("name"))
            .and_then(name_text),
        given => name_text(given),
    };
    match name {
        Some(name) => Ok(TableName::Name(name)),
        None => Err(StepError::config(
            "E0764",
            format!("`:table` is a name or a reference, not {}", brief(given)),
        )
        .hint(
            "as in `:table \"orders\"`, or the value of a step with `:persist {:type :table ...}`",
        )),
    }
}

/// Reads `:partitions`: `{:key "a"}`, `{:keys ["a" "b"]}`, or `{:keys :all}`.
pub(crate) fn partitions(given: &Value) -> Result<Partitions, StepError> {
    let wrong = |what: String| {
        StepError::config("E0720", what).hint(
            "as in `:partitions {:key \"2026-03\"}`, or `{:keys [\"2026-02\" \"2026-03\"]}` to read several",
        )
    };
    if given.as_map().is_none() {
        return Err(wrong(format!(
            "`:partitions` is a map, not {}",
            brief(given)
        )));
    }
    let fields = Fields::nested(":partitions", given)?;
    fields.only(&["key", "keys"])?;
    let named = |value: &Value| {
        name_text(value).ok_or_else(|| {
            wrong(format!(
                "a partition is named by a string, not {}",
                brief(value)
            ))
        })
    };
    let keys = match (fields.get("key"), fields.get("keys")) {
        (Some(key), None) => vec![named(key)?],
        (None, Some(keys)) if name_text(keys).as_deref() == Some("all") => {
            return Ok(Partitions::All);
        }
        (None, Some(keys)) => match items(keys) {
            Some(keys) => keys.iter().map(named).collect::<Result<_, _>>()?,
            None => {
                return Err(wrong(format!(
                    "`:keys` is a vector of names, not {}",
                    brief(keys)
                )));
            }
        },
        (Some(_), Some(_)) => {
            return Err(wrong(
                "`:partitions` takes `:key` or `:keys`, not both".to_owned(),
            ));
        }
        (None, None) => return Err(wrong("`:partitions` names no partition".to_owned())),
    };
    if keys.is_empty() {
        return Err(wrong("`:partitions` names no partition".to_owned()));
    }
    if let Some((_, twice)) = keys
        .iter()
        .enumerate()
        .find(|(idx, key)| keys[..*idx].contains(key))
    {
        return Err(wrong(format!("`:partitions` names `{twice}` twice")));
    }
    Ok(Partitions::Keys(keys))
}
