//! Converts values to the rows and cells of a table.

use flowstone_flow::codec;
use flowstone_flow::step::StepError;
use flowstone_flow::table::{Cell, Row};
use flowstone_lang::value::{Object, Value};

use crate::json::{items, name_text};
use crate::text::brief;

/// Converts a vector of maps to rows. `at` names their place in error messages.
pub(crate) fn rows(given: &Value, at: &str) -> Result<Vec<Row>, StepError> {
    let rows = match given {
        Value::Nil => None,
        Value::Map(_) => Some(vec![given.clone()]),
        given => items(given),
    };
    let Some(rows) = rows else {
        return Err(StepError::new(
            "E0764",
            "invalid",
            format!(
                "the rows of {at} are {}, not a vector of maps",
                given.kind()
            ),
        ));
    };
    let count = rows.len();
    rows.iter()
        .enumerate()
        .map(|(idx, row)| self::row(row, &format!("row {} of {count}", idx + 1)))
        .collect()
}

/// Converts a map to the cells of one row.
pub(crate) fn row(given: &Value, at: &str) -> Result<Row, StepError> {
    let entries = match given {
        Value::Map(map) => map.entries(),
        Value::Record(record) => &record.fields,
        other => {
            return Err(StepError::new(
                "E0764",
                "invalid",
                format!("{at} is {}, not a map: {}", other.kind(), brief(other)),
            )
            .hint("a row is a map of column and cell, as in `{:id 1 :name \"Ada\"}`"));
        }
    };
    let mut row: Row = Vec::with_capacity(entries.len());
    for (key, value) in entries.iter() {
        let Some(name) = name_text(key) else {
            return Err(StepError::new(
                "E0764",
                "invalid",
                format!(
                    "{at} has the key {}, but a column is named by a keyword or a string",
                    brief(key)
                ),
            ));
        };
        if row.iter().any(|(other, _)| *other == name) {
            return Err(StepError::new(
                "E0764",
                "invalid",
                format!("{at} has two cells for the column `{name}`"),
            )
            .hint("it has a keyword and a string of the same name"));
        }
        let cell = cell(value).map_err(|error| {
            StepError::new(
                "E0764",
                "invalid",
                format!("{at}, column `{name}`: {error}"),
            )
            .hint("a cell holds data, not functions")
        })?;
        row.push((name, cell));
    }
    Ok(row)
}

/// Converts a value to a cell.
///
/// # Errors
/// Returns an error if the value is not data, such as a function.
pub(super) fn cell(value: &Value) -> Result<Cell, codec::CodecError> {
    Ok(match value {
        Value::Nil => Cell::Nil,
        Value::Bool(bool) => Cell::Bool(*bool),
        Value::Int(int) => Cell::Long(*int),
        Value::Float(float) => Cell::Double(*float),
        Value::Decimal(decimal) => Cell::Decimal(decimal.to_plain_string()),
        Value::Text(text) => Cell::Text(text.as_str().to_owned()),
        Value::Keyword(keyword) => Cell::Keyword(keyword.parts().to_string()),
        Value::Object(object) if let Object::Inst(millis) = **object => Cell::Instant(millis),
        value => Cell::Data(codec::encode(value)?),
    })
}
