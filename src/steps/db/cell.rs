//! Values between a flow and a database: plain data, which may cross threads and be recorded.

use std::str::FromStr as _;

use flowstone_lang::value::{BigDecimal, BigInt, Object, Value};
use serde::{Deserialize, Serialize};

use crate::json;
use crate::text::brief;

/// How deep lists may be nested: arrays of PostgreSQL have at most six dimensions.
pub(crate) const DEPTH_MAX: usize = 16;

/// What a list as a parameter is answered with, where the database has no arrays.
pub(crate) const NO_LIST: &str = "`:params` has a list, which is one value here: write one `?` for each of its items, or pass it as JSON text";

/// A parameter of a statement, or a field of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that has more than 64 bits.
    Big(String),
    Float(#[serde(with = "bits")] f64),
    Decimal(String),
    /// Text, and dates and times as ISO 8601 writes them.
    Text(String),
    #[serde(with = "base64_text")]
    Bytes(Vec<u8>),
    Uuid(String),
    /// Milliseconds since 1970; only of a parameter.
    Instant(i64),
    /// A document of JSON.
    Json(String),
    List(Vec<Cell>),
}

/// The answer to a statement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// The number of rows that the statement changed.
    pub affected: u64,
    /// The number that the database gave to an inserted row, if it reports it.
    pub last_id: Option<i64>,
}

impl Cell {
    /// Converts a value of a flow to a parameter.
    ///
    /// # Errors
    /// A description of a value that no database takes.
    pub(crate) fn of_value(value: &Value) -> Result<Cell, String> {
        Cell::nested(value, 0)
    }

    fn nested(value: &Value, depth: usize) -> Result<Cell, String> {
        if depth > DEPTH_MAX {
            return Err(format!("a list is nested deeper than {DEPTH_MAX}"));
        }
        Ok(match value {
            Value::Nil => Cell::Null,
            Value::Bool(it) => Cell::Bool(*it),
            Value::Int(it) => Cell::Int(*it),
            Value::Float(it) => Cell::Float(*it),
            Value::BigInt(it) => Cell::Big(it.to_string()),
            Value::Decimal(it) => Cell::Decimal(it.to_plain_string()),
            Value::Text(it) => Cell::Text(it.as_str().to_owned()),
            Value::Char(it) => Cell::Text(it.to_string()),
            Value::Keyword(it) => Cell::Text(it.parts().to_string()),
            Value::Map(_) | Value::Record(_) => Cell::Json(json_text(value)?),
            Value::Vector(_) | Value::List(_) | Value::Set(_) | Value::Seq(_) | Value::Lazy(_) => {
                let items = json::items(value).ok_or_else(|| unfit(value))?;
                let cells = items.iter().map(|item| Cell::nested(item, depth + 1));
                Cell::List(cells.collect::<Result<_, _>>()?)
            }
            Value::Object(object) => match &**object {
                Object::Uuid(bits) => Cell::Uuid(json::uuid_text(*bits)),
                Object::Inst(millis) => Cell::Instant(*millis),
                Object::Bytes(bytes) => Cell::Bytes(bytes.to_vec()),
                _ => return Err(unfit(value)),
            },
            other => return Err(unfit(other)),
        })
    }

    /// Converts a field to a value of the flow.
    ///
    /// # Errors
    /// A description of a text that is not what its type says.
    pub(crate) fn into_value(self) -> Result<Value, String> {
        Ok(match self {
            Cell::Null => Value::Nil,
            Cell::Bool(it) => Value::Bool(it),
            Cell::Int(it) => Value::Int(it),
            Cell::Float(it) => Value::Float(it),
            Cell::Big(text) => match text.parse::<i64>() {
                Ok(int) => Value::Int(int),
                Err(_) => {
                    Value::from(BigInt::from_str(&text).map_err(|_| misread("an integer", &text))?)
                }
            },
            Cell::Decimal(text) => {
                Value::from(BigDecimal::from_str(&text).map_err(|_| misread("a decimal", &text))?)
            }
            Cell::Instant(_) => Value::from(self.instant_text('T', "Z").unwrap_or_default()),
            Cell::Text(text) => Value::from(text),
            Cell::Bytes(bytes) => Object::Bytes(bytes.into_boxed_slice()).into(),
            Cell::Uuid(text) => {
                let bits = json::uuid_bits(&text).ok_or_else(|| misread("a uuid", &text))?;
                Object::Uuid(bits).into()
            }
            Cell::Json(text) => json::read(&text).map_err(|_| misread("JSON", &text))?,
            Cell::List(items) => Value::vector(
                items
                    .into_iter()
                    .map(Cell::into_value)
                    .collect::<Result<Vec<_>, _>>()?,
            ),
        })
    }

    /// Returns the memory that its content takes, for limits.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Cell::Null | Cell::Bool(_) => 1,
            Cell::Int(_) | Cell::Float(_) | Cell::Instant(_) => 8,
            Cell::Big(text)
            | Cell::Decimal(text)
            | Cell::Text(text)
            | Cell::Uuid(text)
            | Cell::Json(text) => text.len() as u64,
            Cell::Bytes(bytes) => bytes.len() as u64,
            Cell::List(items) => items.iter().map(|it| it.size() + 8).sum(),
        }
    }

    /// Returns an instant as text, in UTC.
    pub(crate) fn instant_text(&self, between: char, end: &str) -> Option<String> {
        let Cell::Instant(millis) = self else {
            return None;
        };
        let at = jiff::Timestamp::from_millisecond(*millis).ok()?;
        let at = at.to_zoned(jiff::tz::TimeZone::UTC).datetime();
        Some(format!("{}{between}{}{end}", at.date(), at.time()))
    }

    /// Returns a parameter as JSON, for columns that hold documents.
    pub(crate) fn to_json(&self) -> String {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Cell::Null => "null".to_owned(),
            Cell::Bool(it) => it.to_string(),
            Cell::Int(it) => it.to_string(),
            Cell::Big(digits) | Cell::Decimal(digits) => digits.clone(),
            Cell::Float(it) => serde_json::Value::from(*it).to_string(),
            Cell::Text(it) | Cell::Uuid(it) => text(it),
            Cell::Instant(_) => text(&self.instant_text('T', "Z").unwrap_or_default()),
            Cell::Bytes(bytes) => text(&base64_text::encode(bytes)),
            Cell::Json(it) => it.clone(),
            Cell::List(items) => {
                let items: Vec<String> = items.iter().map(Cell::to_json).collect();
                format!("[{}]", items.join(","))
            }
        }
    }
}

fn json_text(value: &Value) -> Result<String, String> {
    let json = json::to_json(value).map_err(|error| error.to_string())?;
    Ok(json.to_string())
}

fn unfit(value: &Value) -> String {
    format!("{} is not a value that a database takes", brief(value))
}

fn misread(kind: &str, text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    format!("`{start}` is not {kind} that a flow can hold")
}

/// Floats as their bits: JSON has neither infinities nor NaN.
mod bits {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(float: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(float.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// Bytes as base64.
mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn encode(bytes: &[u8]) -> String {
        STANDARD.encode(bytes)
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}
