//! JSON text that keeps all digits of every number.
//!
//! [`Json`] cannot hold a number that fits neither an integer of 64 bits nor a double. A tree made by [`to_exact_json`]
//! has an object with one key, which data never uses, in its place; [`compact`] and [`pretty`] write its digits.

use std::fmt::Write as _;

use flowstone_lang::value::{BigDecimal, BigInt, Force, Unforced, Value};
use serde_json::Value as Json;

use super::read::is_number;
use super::{JsonError, Numbers, Writer};

/// The key of the object that represents a number.
const KEY: &str = "\u{1}number";

/// Returns a realised value as a tree for [`compact`] and [`pretty`].
///
/// # Errors
/// As [`super::to_json`].
pub fn to_exact_json(value: &Value) -> Result<Json, JsonError> {
    tree(&mut Unforced, value)
}

/// Returns a value as compact JSON text.
///
/// # Errors
/// As [`super::to_json`].
pub fn write(value: &Value) -> Result<String, JsonError> {
    Ok(compact(&tree(&mut Unforced, value)?))
}

/// Returns a value as compact JSON text and computes its lazy parts.
///
/// # Errors
/// As [`super::to_json_with`].
pub fn write_with(force: &mut dyn Force, value: &Value) -> Result<String, JsonError> {
    Ok(compact(&tree(force, value)?))
}

/// Returns a value as JSON text with one line for each entry and item, and computes its lazy parts.
///
/// # Errors
/// As [`super::to_json_with`].
pub fn write_pretty_with(force: &mut dyn Force, value: &Value) -> Result<String, JsonError> {
    Ok(pretty(&tree(force, value)?))
}

/// Returns a tree as compact text.
pub fn compact(json: &Json) -> String {
    text(json, None)
}

/// Returns a tree as text with one line for each entry and item.
pub fn pretty(json: &Json) -> String {
    text(json, Some(0))
}

/// Reads JSON as a tree for [`compact`] and [`pretty`]: they write each number as it was read.
///
/// # Errors
/// When the bytes are not JSON.
pub fn read_exact(bytes: &[u8]) -> Result<Json, serde_json::Error> {
    read_marked(bytes, |token| {
        let plain = serde_json::from_str::<serde_json::Number>(token).ok();
        plain.is_none_or(|plain| plain.to_string() != token)
    })
}

/// Reads JSON as a tree for [`compact`] and [`pretty`]: they write each integer as it was read, also one of more than 64 bits. Other
/// numbers are doubles.
///
/// # Errors
/// When the bytes are not JSON.
pub fn read_integers(bytes: &[u8]) -> Result<Json, serde_json::Error> {
    read_marked(bytes, is_large)
}

/// Returns the first integer of a JSON text that 64 bits cannot hold: readers of JSON round it without a word.
pub fn large_integer(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some((_, token, after)) = next_token(rest) {
        if is_large(token) {
            return Some(token);
        }
        rest = after;
    }
    None
}

/// Tells whether a token is an integer that 64 bits cannot hold.
fn is_large(token: &str) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    digits.len() > 18
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && token.parse::<i64>().is_err()
        && token.parse::<u64>().is_err()
}

/// Reads JSON, with the object of a number in place of the numbers that are marked.
fn read_marked(bytes: &[u8], is_marked: impl Fn(&str) -> bool) -> Result<Json, serde_json::Error> {
    let json = serde_json::from_slice(bytes)?;
    // Reading has checked that they are UTF-8.
    let mut rest = std::str::from_utf8(bytes).unwrap_or_default();
    let mut marked = String::new();
    let mut is_changed = false;
    while let Some((before, token, after)) = next_token(rest) {
        marked.push_str(before);
        match !token.starts_with('"') && is_marked(token) {
            false => marked.push_str(token),
            true => {
                marked.push_str(&number(token.to_owned()).to_string());
                is_changed = true;
            }
        }
        rest = after;
    }
    marked.push_str(rest);
    match is_changed {
        true => serde_json::from_str(&marked),
        false => Ok(json),
    }
}

/// Splits a JSON text at its first string or number.
fn next_token(text: &str) -> Option<(&str, &str, &str)> {
    let begin = text.find(|char: char| char == '"' || char == '-' || char.is_ascii_digit())?;
    let (before, rest) = text.split_at(begin);
    let end = match rest.starts_with('"') {
        true => text_end(rest),
        false => number_end(rest),
    };
    let (token, after) = rest.split_at(end);
    Some((before, token, after))
}

/// Returns where a string ends that a text begins with.
fn text_end(text: &str) -> usize {
    let mut is_escaped = true; // The quote that begins it does not end it.
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = !is_escaped && byte == b'\\';
        is_end
    });
    end.map_or(text.len(), |end| end + 1)
}

fn number_end(text: &str) -> usize {
    let is_part = |char: char| matches!(char, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
    text.find(|char| !is_part(char)).unwrap_or(text.len())
}

/// Returns a tree made by [`to_exact_json`] as a value. Do not pass trees that others made.
pub fn from_exact_json(json: &Json) -> Value {
    if let Some(digits) = digits(json) {
        let int = || {
            digits
                .parse::<BigInt>()
                .ok()
                .map(|int| Value::BigInt(int.into()))
        };
        let decimal = || {
            digits
                .parse::<BigDecimal>()
                .ok()
                .map(|it| Value::Decimal(it.into()))
        };
        return int().or_else(decimal).unwrap_or(Value::Nil);
    }
    match json {
        Json::Array(items) => Value::vector(items.iter().map(from_exact_json)),
        Json::Object(entries) => Value::map(
            entries
                .iter()
                .map(|(key, value)| (Value::keyword(key), from_exact_json(value))),
        ),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => super::from_json(json),
    }
}

/// Returns the object that represents a number with these digits.
pub(super) fn number(digits: String) -> Json {
    Json::Object(
        [(KEY.to_owned(), Json::String(digits))]
            .into_iter()
            .collect(),
    )
}

fn tree(force: &mut dyn Force, value: &Value) -> Result<Json, JsonError> {
    Writer {
        force,
        path: Vec::new(),
        numbers: Numbers::Exact,
        written: 0,
        root: value,
    }
    .write(value)
}

fn text(json: &Json, indent: Option<usize>) -> String {
    match (has_exact(json), indent) {
        (false, None) => json.to_string(),
        (false, Some(_)) => format!("{json:#}"),
        (true, indent) => {
            let mut out = String::new();
            put(&mut out, json, indent);
            out
        }
    }
}

/// Tells whether a tree represents a number.
pub fn is_exact(json: &Json) -> bool {
    digits(json).is_some()
}

fn digits(json: &Json) -> Option<&str> {
    let object = json.as_object().filter(|object| object.len() == 1)?;
    object.get(KEY)?.as_str().filter(|text| is_number(text))
}

fn has_exact(json: &Json) -> bool {
    match json {
        Json::Array(items) => items.iter().any(has_exact),
        Json::Object(entries) => is_exact(json) || entries.values().any(has_exact),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn put(out: &mut String, json: &Json, indent: Option<usize>) {
    let inner = indent.map(|indent| indent + 1);
    match json {
        Json::Array(items) if !items.is_empty() => {
            out.push('[');
            for (idx, item) in items.iter().enumerate() {
                begin(out, idx, inner);
                put(out, item, inner);
            }
            line(out, indent);
            out.push(']');
        }
        Json::Object(entries) if !entries.is_empty() => {
            if let Some(digits) = digits(json) {
                return out.push_str(digits);
            }
            out.push('{');
            for (idx, (key, value)) in entries.iter().enumerate() {
                begin(out, idx, inner);
                let colon = if indent.is_some() { ": " } else { ":" };
                let _ = write!(out, "{}{colon}", Json::from(key.as_str()));
                put(out, value, inner);
            }
            line(out, indent);
            out.push('}');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}

fn begin(out: &mut String, idx: usize, indent: Option<usize>) {
    if idx > 0 {
        out.push(',');
    }
    line(out, indent);
}

fn line(out: &mut String, indent: Option<usize>) {
    if let Some(indent) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", indent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_more_than_64_bits_are_found() {
        for (text, expected) in [
            ("[18446744073709551615, -9223372036854775808]", None),
            (
                "{\"a\": [1, 18446744073709551616]}",
                Some("18446744073709551616"),
            ),
            ("-9223372036854775809", Some("-9223372036854775809")),
            (
                "[\"18446744073709551616\", \"\\\"18446744073709551616\"]",
                None,
            ),
            (
                "[1e30, 18446744073709551616.0, 18446744073709551616e0]",
                None,
            ),
        ] {
            assert_eq!(large_integer(text), expected, "{text}");
        }
    }

    #[test]
    fn integers_keep_their_digits_and_other_numbers_are_doubles() {
        let text = "{\"a\":[18446744073709551616,1.50,7]}";
        let json = read_integers(text.as_bytes()).expect("JSON");
        assert_eq!(compact(&json), "{\"a\":[18446744073709551616,1.5,7]}");
        assert_eq!(json["a"][1], 1.5);
    }
}
