//! Values from and to the `Edn` of the crate `edn-rs`, with the feature `edn-rs`.
//!
//! That crate keeps the keys of maps as plain text, so keys go through [`decode_key`]: text that reads as a keyword,
//! number, character, collection, boolean or nil becomes that value; any other text is a string. A value that would not
//! survive the round trip is an error during conversion, never a silent change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use edn_rs::{Edn, List, Map, Set, Vector};

use flowstone_lang::reader::read_data;
use flowstone_lang::value::{Object, PrintOptions, SeqView, Unforced, Value, brief, print_value};

/// The reason why a value has no counterpart on the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdnError(String);

impl fmt::Display for EdnError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for EdnError {}

/// Returns the value of an `Edn`.
///
/// # Errors
/// For an `Empty` inside a collection, and for text that is not a keyword, symbol, ratio or tag.
pub fn to_value(edn: &Edn) -> Result<Value, EdnError> {
    Ok(match edn {
        Edn::Nil | Edn::Empty => Value::Nil,
        Edn::Bool(bool) => Value::Bool(*bool),
        Edn::Int(int) => Value::Int(*int),
        Edn::UInt(int) => read(&int.to_string())?,
        Edn::Double(double) => double_value(double)?,
        Edn::Char(char) => Value::Char(*char),
        Edn::Str(text) => Value::from(text.as_str()),
        Edn::Key(text) | Edn::Symbol(text) | Edn::Rational(text) => read(text)?,
        Edn::Vector(items) => Value::vector(values(&items.clone().to_vec())?),
        Edn::List(items) => Value::list(values(&items.clone().to_vec())?),
        Edn::Set(items) => {
            let items: Vec<Edn> = items.clone().to_set().into_iter().collect();
            Value::set(values(&items)?)
        }
        Edn::Map(map) => {
            let entries = map.clone().to_map();
            let entries = entries
                .iter()
                .map(|(key, value)| Ok((decode_key(key), to_value(value)?)));
            Value::map(entries.collect::<Result<Vec<_>, EdnError>>()?)
        }
        Edn::Tagged(tag, form) => {
            let form = to_value(form)?;
            read(&format!("#{} {form}", tag.trim_start_matches('#')))?
        }
        other => return Err(EdnError(format!("`{other}` has an unknown kind"))),
    })
}

/// Returns the `Edn` of a value.
///
/// # Errors
/// For functions, atoms and similar values, for integers and decimals that `edn-rs` cannot hold, for keys that would
/// not survive the round trip, and for sequences that are not computed.
pub fn from_value(value: &Value) -> Result<Edn, EdnError> {
    Ok(match value {
        Value::Nil => Edn::Nil,
        Value::Bool(bool) => Edn::Bool(*bool),
        // Like that crate's own reader.
        Value::Int(int) => u64::try_from(*int).map_or(Edn::Int(*int), Edn::UInt),
        Value::BigInt(int) => Edn::UInt(u64::try_from(&**int).map_err(|_| unknown(value))?),
        Value::Float(float) => Edn::Double((*float).into()),
        Value::Char(char) => Edn::Char(*char),
        Value::Text(text) => Edn::Str(text.as_str().to_owned()),
        Value::Keyword(_) => Edn::Key(value.to_string()),
        Value::Symbol(_) | Value::Name(_) => Edn::Symbol(value.to_string()),
        Value::Ratio(_) => Edn::Rational(value.to_string()),
        Value::Vector(vector) => Edn::Vector(Vector::new(edns(vector.iter())?)),
        Value::Set(set) => {
            let items: BTreeSet<Edn> = edns(set.iter())?.into_iter().collect();
            Edn::Set(Set::new(items))
        }
        Value::Map(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| Ok((encode_key(key)?, from_value(value)?)));
            Edn::Map(Map::new(
                entries.collect::<Result<BTreeMap<_, _>, EdnError>>()?,
            ))
        }
        Value::List(_) | Value::Seq(_) | Value::Lazy(_) => {
            let items = items(value)?;
            Edn::List(List::new(edns(items.iter())?))
        }
        Value::Object(object) => match &**object {
            Object::Tagged { tag, form } => {
                Edn::Tagged(tag.to_string(), Box::new(from_value(form)?))
            }
            Object::Inst(_) | Object::Uuid(_) => {
                let shown = printed(value);
                let (tag, text) = shown.split_once(' ').ok_or_else(|| unknown(value))?;
                let text = text.trim_matches('"').to_owned();
                let tag = tag.trim_start_matches('#').to_owned();
                Edn::Tagged(tag, Box::new(Edn::Str(text)))
            }
            _ => return Err(unknown(value)),
        },
        _ => return Err(unknown(value)),
    })
}

/// Returns the value of a key's text.
fn decode_key(text: &str) -> Value {
    match read_data(text) {
        Ok(value) if value.as_symbol().is_none() && value.as_str().is_none() => value,
        _ => Value::from(text),
    }
}

/// Returns the text of a key, if it identifies only that key.
fn encode_key(key: &Value) -> Result<String, EdnError> {
    let text = match key {
        Value::Text(text) => text.as_str().to_owned(),
        key => printed(key),
    };
    if decode_key(&text) == *key {
        return Ok(text);
    }
    Err(EdnError(format!(
        "the key {} would come back as {}: edn-rs keeps keys as plain text",
        brief(key),
        brief(&decode_key(&text))
    )))
}

fn read(text: &str) -> Result<Value, EdnError> {
    read_data(text).map_err(|error| EdnError(format!("`{text}`: {}", error.message)))
}

/// The number itself is private there, and its text is exact.
fn double_value(double: &edn_rs::edn::Double) -> Result<Value, EdnError> {
    let text = double.to_string();
    text.parse()
        .map(Value::Float)
        .map_err(|_| EdnError(format!("`{text}` is not a double")))
}

fn values(items: &[Edn]) -> Result<Vec<Value>, EdnError> {
    items
        .iter()
        .map(|item| match item {
            Edn::Empty => Err(EdnError("`Empty` represents no value".to_owned())),
            item => to_value(item),
        })
        .collect()
}

fn edns<'a>(items: impl Iterator<Item = &'a Value>) -> Result<Vec<Edn>, EdnError> {
    items.map(from_value).collect()
}

/// Returns the items of a computed sequence.
fn items(value: &Value) -> Result<Vec<Value>, EdnError> {
    let mut items = Vec::new();
    let mut rest = value.clone();
    loop {
        let (first, next) = match &rest {
            Value::List(list) if list.is_empty() => return Ok(items),
            Value::List(list) => (list.first.clone(), list.rest.clone()),
            Value::Seq(view) => (view.first(), SeqView::rest(view)),
            Value::Lazy(lazy) => {
                rest = lazy.realised().ok_or_else(|| unknown(value))?;
                continue;
            }
            _ => return Ok(items),
        };
        items.push(first);
        rest = next;
    }
}

fn printed(value: &Value) -> String {
    let mut out = String::new();
    // The printed value needs no computation.
    let _ = print_value(&mut out, &mut Unforced, value, PrintOptions::READABLE);
    out
}

fn unknown(value: &Value) -> EdnError {
    EdnError(format!(
        "{} ({}) has no counterpart in edn-rs",
        brief(value),
        value.kind()
    ))
}
