//! Reads JSON that people write. What other readers change silently is refused: a member that is there twice, and an integer
//! whose digits would be rounded.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flowstone_model::json::large_integer;
use serde_json::Value as Json;

/// The reason why a text is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonTextError {
    #[error("it is not JSON: {0}")]
    Syntax(String),
    #[error("the member `{name}` is there twice: at {first} and at {second}")]
    Twice {
        name: String,
        first: Spot,
        second: Spot,
    },
    #[error(
        "the integer {digits} at {at} has more than 64 bits, so it would be rounded: write it as a text"
    )]
    Digits { digits: String, at: Spot },
}

/// A place in a text, counted from 1; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    pub line: usize,
    pub column: usize,
}

impl std::fmt::Display for Spot {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "line {}, column {}", self.line, self.column)
    }
}

/// Reads a JSON text.
///
/// # Errors
/// When the text is not JSON, an object has a member twice, or an integer has more than 64 bits.
pub fn read(text: &str) -> Result<Json, JsonTextError> {
    let json =
        serde_json::from_str(text).map_err(|error| JsonTextError::Syntax(error.to_string()))?;
    check(text)?;
    Ok(json)
}

/// Checks a text that another reader has read as JSON.
///
/// # Errors
/// When an object has a member twice, or an integer has more than 64 bits.
pub fn check(text: &str) -> Result<(), JsonTextError> {
    Scan { text, at: 0 }.check()
}

/// Returns the first integer of more than 64 bits in a JSON text, which readers round. Floats, such as `1e22`, are not integers.
pub fn long_integer(text: &str) -> Option<String> {
    large_integer(text).map(str::to_owned)
}

/// Walks over a text that is JSON.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn check(mut self) -> Result<(), JsonTextError> {
        // The names of each open object with their places; `None` for an array.
        let mut open: Vec<Option<BTreeMap<Cow<'a, str>, usize>>> = Vec::new();
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'{' => open.push(Some(BTreeMap::new())),
                b'[' => open.push(None),
                b'}' | b']' => drop(open.pop()),
                b'"' => {
                    let place = self.at;
                    let string = self.string();
                    if self.is_name()
                        && let Some(Some(names)) = open.last_mut()
                    {
                        self.note(names, unescaped(string), place)?;
                    }
                    continue;
                }
                b'-' | b'0'..=b'9' => {
                    self.number()?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Returns the string that begins here as it is written, and moves behind it.
    fn string(&mut self) -> &'a str {
        let begin = self.at;
        let mut is_escaped = false;
        let inner = self.text.as_bytes().iter().skip(begin + 1);
        let length = inner.take_while(|byte| {
            let is_end = **byte == b'"' && !is_escaped;
            is_escaped = **byte == b'\\' && !is_escaped;
            !is_end
        });
        self.at = begin + length.count() + 2;
        self.text.get(begin..self.at).unwrap_or_default()
    }

    /// Tells whether the string that ended here is the name of a member.
    fn is_name(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        rest.trim_start().starts_with(':')
    }

    fn note(
        &self,
        names: &mut BTreeMap<Cow<'a, str>, usize>,
        name: Cow<'a, str>,
        place: usize,
    ) -> Result<(), JsonTextError> {
        match names.get(&name) {
            None => {
                names.insert(name, place);
                Ok(())
            }
            Some(first) => Err(JsonTextError::Twice {
                name: name.chars().take(100).collect(),
                first: self.spot(*first),
                second: self.spot(place),
            }),
        }
    }

    fn number(&mut self) -> Result<(), JsonTextError> {
        let begin = self.at;
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let bytes = self.text.as_bytes().iter().skip(begin);
        self.at += bytes.take_while(is_part).count();
        let digits = self.text.get(begin..self.at).unwrap_or_default();
        let is_float = digits.contains(['.', 'e', 'E']);
        if is_float || digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok() {
            return Ok(());
        }
        Err(JsonTextError::Digits {
            digits: digits.chars().take(100).collect(),
            at: self.spot(begin),
        })
    }

    fn spot(&self, at: usize) -> Spot {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        Spot {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

/// Returns the text of a string that is written with its quotes.
fn unescaped(string: &str) -> Cow<'_, str> {
    let inner = string
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.contains('\\') => Cow::Borrowed(inner),
        _ => Cow::Owned(serde_json::from_str(string).unwrap_or_default()),
    }
}
