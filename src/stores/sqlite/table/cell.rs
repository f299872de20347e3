//! Cells: how SQLite stores each type of column, and how a cell is returned.
//!
//! | type | stored as | returned as |
//! |---|---|---|
//! | boolean | 0 or 1 | true or false |
//! | date | text `2026-01-31` | that text |
//! | decimal | text, compared as a number | decimal |
//! | double | integer or real, as given | integer or double |
//! | enum | text, keywords with their colon | keyword or string, as given |
//! | json | EDN text | the same data |
//! | long | integer | integer |
//! | string | text | string |
//! | timestamp | milliseconds | instant |

use std::cmp::Ordering;
use std::str::FromStr as _;

use flowstone_lang::value::{BigDecimal, Object, Value};
use flowstone_model::codec::{decode, encode};
use flowstone_model::json::{compact, instant_millis, to_exact_json};
use flowstone_model::table::{Cell, ColumnType};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value as Sql;

use crate::edn;

/// Registers the order of decimals and the functions over data on a connection.
pub(super) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.create_collation("flowstone_decimal", compare_decimals)?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("flowstone_contains", 2, flags, |args| {
        let (data, item): (Option<String>, String) = (args.get(0)?, args.get(1)?);
        Ok(data.is_some_and(|data| contains(&data, &item)))
    })
}

fn compare_decimals(left: &str, right: &str) -> Ordering {
    match (BigDecimal::from_str(left), BigDecimal::from_str(right)) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        _ => left.cmp(right),
    }
}

/// Tells whether a vector, list or set has an item, a map has a key, or a string has a substring.
fn contains(data: &str, item: &str) -> bool {
    let (Ok(data), Ok(item)) = (decode(data), decode(item)) else {
        return false;
    };
    match &data {
        Value::Vector(vector) => vector.iter().any(|found| same(found, &item)),
        Value::Set(set) => set.iter().any(|found| same(found, &item)),
        Value::List(list) => list.iter().any(|found| same(found, &item)),
        Value::Map(map) => map.iter().any(|(found, _)| same(found, &item)),
        Value::Text(text) => item.as_str().is_some_and(|item| text.contains(item)),
        _ => false,
    }
}

/// Compares values; a keyword equals the string of its name.
fn same(left: &Value, right: &Value) -> bool {
    let name = |value: &Value| match value {
        Value::Keyword(keyword) => Some(keyword.parts().to_string()),
        value => value.as_str().map(str::to_owned),
    };
    match (name(left), name(right)) {
        (Some(left), Some(right)) => left == right,
        _ => left == right,
    }
}

/// Returns the cell for a value; `None` if the value is not data.
pub(super) fn from_value(value: &Value) -> Option<Cell> {
    Some(match value {
        Value::Nil => Cell::Nil,
        Value::Bool(bool) => Cell::Bool(*bool),
        Value::Int(int) => Cell::Long(*int),
        Value::Float(float) => Cell::Double(*float),
        Value::Decimal(decimal) => Cell::Decimal(decimal.to_plain_string()),
        Value::Text(text) => Cell::Text(text.as_str().to_owned()),
        Value::Keyword(keyword) => Cell::Keyword(keyword.parts().to_string()),
        Value::Object(object) if let Object::Inst(millis) = **object => Cell::Instant(millis),
        value => Cell::Data(encode(value).ok()?),
    })
}

/// Returns the type that a cell suggests; `None` for nil.
pub(super) fn infer(cell: &Cell) -> Option<ColumnType> {
    Some(match cell {
        Cell::Nil => return None,
        Cell::Bool(_) => ColumnType::Boolean,
        Cell::Long(_) => ColumnType::Long,
        Cell::Double(_) => ColumnType::Double,
        Cell::Decimal(_) => ColumnType::Decimal,
        Cell::Text(_) => ColumnType::String,
        Cell::Keyword(_) => ColumnType::Enum,
        Cell::Instant(_) => ColumnType::Timestamp,
        Cell::Data(_) => ColumnType::Json,
    })
}

/// Returns the type that holds the cells of two types without loss.
pub(super) fn unify(left: ColumnType, right: ColumnType) -> Option<ColumnType> {
    use ColumnType::{Decimal, Double, Enum, Long, String};
    Some(match (left, right) {
        (left, right) if left == right => left,
        (Long, Double) | (Double, Long) => Double,
        (Long, Decimal) | (Decimal, Long) => Decimal,
        (Enum, String) | (String, Enum) => Enum,
        _ => return None,
    })
}

/// Returns the stored form of a cell in a column of this type; `None` if the cell does not fit.
pub(super) fn to_sql(type_: ColumnType, cell: &Cell) -> Option<Sql> {
    Some(match (type_, cell) {
        (_, Cell::Nil) => Sql::Null,
        (ColumnType::Json, cell) => Sql::Text(data_text(cell)?),
        (ColumnType::Boolean, Cell::Bool(bool)) => Sql::Integer(i64::from(*bool)),
        (ColumnType::Long | ColumnType::Double, Cell::Long(long)) => Sql::Integer(*long),
        (ColumnType::Double, Cell::Double(double)) if !double.is_nan() => Sql::Real(*double),
        (ColumnType::Decimal, Cell::Decimal(digits)) => Sql::Text(digits.clone()),
        (ColumnType::Decimal, Cell::Long(long)) => Sql::Text(long.to_string()),
        (ColumnType::String, Cell::Text(text)) => Sql::Text(text.clone()),
        (ColumnType::Enum, Cell::Keyword(name)) => Sql::Text(format!(":{name}")),
        (ColumnType::Enum, Cell::Text(text)) => Sql::Text(enum_text(text)),
        (ColumnType::Date, Cell::Text(text)) => Sql::Text(date_text(text)?),
        (ColumnType::Date, Cell::Instant(millis)) => Sql::Text(civil(*millis)?.date().to_string()),
        (ColumnType::Timestamp, Cell::Instant(millis)) => Sql::Integer(*millis),
        (ColumnType::Timestamp, Cell::Text(text)) => Sql::Integer(instant_millis(text)?),
        _ => return None,
    })
}

/// Returns the stored form of a string in an enum column: a string that looks like a keyword is marked.
pub(super) fn enum_text(text: &str) -> String {
    match text.starts_with([':', '\\']) {
        true => format!("\\{text}"),
        false => text.to_owned(),
    }
}

/// Returns the stored form of a date; `None` if the text is not a date.
pub(super) fn date_text(text: &str) -> Option<String> {
    (text.len() == 10)
        .then(|| text.parse::<Date>().ok())?
        .map(|date| date.to_string())
}

/// Returns the fields from year to second of an instant, in UTC.
pub(super) fn civil(millis: i64) -> Option<DateTime> {
    let timestamp = Timestamp::from_millisecond(millis).ok()?;
    Some(timestamp.to_zoned(TimeZone::UTC).datetime())
}

/// Returns a cell as EDN text, in the form of json columns and results.
pub(super) fn data_text(cell: &Cell) -> Option<String> {
    Some(match cell {
        Cell::Nil => "nil".to_owned(),
        Cell::Bool(bool) => bool.to_string(),
        Cell::Long(long) => long.to_string(),
        Cell::Double(double) => encode(&Value::Float(*double)).ok()?,
        Cell::Decimal(digits) => decimal_edn(digits),
        Cell::Text(text) => edn::text(text),
        Cell::Keyword(name) => edn::keyword(name),
        Cell::Instant(millis) => encode(&Object::Inst(*millis).into()).ok()?,
        Cell::Data(text) => text.clone(),
    })
}

/// Returns a stored cell as EDN text.
pub(super) fn to_edn(type_: ColumnType, kept: &Sql) -> String {
    match (type_, kept) {
        (_, Sql::Null) => "nil".to_owned(),
        (ColumnType::Boolean, Sql::Integer(bit)) => (*bit != 0).to_string(),
        (ColumnType::Timestamp, Sql::Integer(millis)) => {
            encode(&Object::Inst(*millis).into()).unwrap_or_else(|_| millis.to_string())
        }
        (_, Sql::Integer(long)) => long.to_string(),
        (_, Sql::Real(double)) => {
            encode(&Value::Float(*double)).unwrap_or_else(|_| double.to_string())
        }
        (ColumnType::Decimal, Sql::Text(digits)) => decimal_edn(digits),
        (ColumnType::Json, Sql::Text(text)) => text.clone(),
        (ColumnType::Enum, Sql::Text(text)) => {
            match (text.strip_prefix(':'), text.strip_prefix('\\')) {
                (Some(name), _) => edn::keyword(name),
                (None, Some(text)) => edn::text(text),
                (None, None) => edn::text(text),
            }
        }
        (_, Sql::Text(text)) => edn::text(text),
        (_, Sql::Blob(_)) => "nil".to_owned(),
    }
}

/// Returns a stored cell as plain text, for CSV.
pub(super) fn to_plain(type_: ColumnType, kept: &Sql) -> String {
    match (type_, kept) {
        (_, Sql::Null) => String::new(),
        (ColumnType::Enum, Sql::Text(text)) => {
            text.strip_prefix([':', '\\']).unwrap_or(text).to_owned()
        }
        (ColumnType::Timestamp, Sql::Integer(millis)) => match Timestamp::from_millisecond(*millis)
        {
            Ok(timestamp) => timestamp.to_string(),
            Err(_) => millis.to_string(),
        },
        (ColumnType::Json, Sql::Text(text)) => {
            match decode(text).map(|value| to_exact_json(&value)) {
                Ok(Ok(serde_json::Value::String(text))) => text,
                Ok(Ok(json)) => compact(&json),
                _ => text.clone(),
            }
        }
        (_, Sql::Text(text)) => text.clone(),
        (type_, kept) => to_edn(type_, kept),
    }
}

fn decimal_edn(digits: &str) -> String {
    match BigDecimal::from_str(digits) {
        Ok(decimal) => {
            encode(&Value::Decimal(decimal.into())).unwrap_or_else(|_| format!("{digits}M"))
        }
        Err(_) => edn::text(digits),
    }
}

/// Returns a cell in the form of error messages, with its kind.
pub(super) fn shown(cell: &Cell) -> String {
    let kind = match cell {
        Cell::Nil => return "nil".to_owned(),
        Cell::Bool(_) => "a boolean",
        Cell::Long(_) => "an integer",
        Cell::Double(_) => "a double",
        Cell::Decimal(_) => "a decimal",
        Cell::Text(_) => "a string",
        Cell::Keyword(_) => "a keyword",
        Cell::Instant(_) => "an instant",
        Cell::Data(_) => "data",
    };
    let text = data_text(cell).unwrap_or_default();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{} ... ({kind})", &text[..at]),
        None => format!("{text} ({kind})"),
    }
}

/// Describes the cells that a column of this type holds.
pub(super) fn holds(type_: ColumnType) -> &'static str {
    match type_ {
        ColumnType::Boolean => "booleans",
        ColumnType::Date => "dates such as \"2026-01-31\"",
        ColumnType::Decimal => "decimals",
        ColumnType::Double => "doubles",
        ColumnType::Enum => "keywords or strings",
        ColumnType::Json => "any data",
        ColumnType::Long => "integers",
        ColumnType::String => "strings",
        ColumnType::Timestamp => "instants",
    }
}
