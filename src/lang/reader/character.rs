//! Character literals: `\a`, `\newline`, `\u0041`, `\o101`.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while_m_n};
use nom::character::complete::alpha1;
use nom::combinator::{all_consuming, map_opt};
use nom::sequence::preceded;
use nom::{IResult, Parser};

use crate::value::{Span, Value};

use super::{ReadError, Reader};

/// The names of characters without a visible form.
pub(super) const NAMES: &[(&str, char)] = &[
    ("newline", '\n'),
    ("space", ' '),
    ("tab", '\t'),
    ("backspace", '\u{8}'),
    ("formfeed", '\u{c}'),
    ("return", '\r'),
];

impl Reader<'_> {
    /// Reads a character literal.
    pub(super) fn character(&mut self) -> Result<(Value, Span), ReadError> {
        let start = self.at;
        let Some(first) = self.text[start + 1..].chars().next() else {
            return Err(self.lone_backslash(start));
        };
        // The first character may be a delimiter: `\(` is a character.
        let rest = self.token_from(start + 1 + first.len_utf8());
        let end = start + 1 + first.len_utf8() + rest.len();
        let token = &self.text[start + 1..end];
        let char = if rest.is_empty() {
            first
        } else {
            match all_consuming(character).parse(token) {
                Ok((_, char)) => char,
                // Text after a backslash that another dialect accepts is not checked.
                Err(_) if self.quiet > 0 => first,
                Err(_) => return Err(self.bad_character(token, start, end)),
            }
        };
        self.at = end;
        Ok((Value::Char(char), self.span(start, end)))
    }
}

/// Parses the text after the backslash if it is longer than one character.
fn character(token: &str) -> IResult<&str, char> {
    alt((named, unicode, octal)).parse(token)
}

fn named(token: &str) -> IResult<&str, char> {
    map_opt(alpha1, |token: &str| {
        NAMES
            .iter()
            .find(|(name, _)| *name == token)
            .map(|(_, char)| *char)
    })
    .parse(token)
}

fn unicode(token: &str) -> IResult<&str, char> {
    let digits = take_while_m_n(4, 4, |char: char| char.is_ascii_hexdigit());
    map_opt(preceded(tag("u"), digits), |digits: &str| {
        char::from_u32(u32::from_str_radix(digits, 16).ok()?)
    })
    .parse(token)
}

fn octal(token: &str) -> IResult<&str, char> {
    let digits = take_while_m_n(1, 3, |char: char| ('0'..='7').contains(&char));
    map_opt(preceded(tag("o"), digits), |digits: &str| {
        u8::from_str_radix(digits, 8).ok().map(char::from)
    })
    .parse(token)
}
