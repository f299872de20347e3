//! Strings and the source of regexes.

use memchr::{memchr, memchr2};

use crate::value::{Span, Value};

use super::{ReadError, Reader};

impl<'a> Reader<'a> {
    /// Reads a string.
    pub(super) fn string(&mut self) -> Result<(Value, Span), ReadError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let from = start + 1;
        let Some(stop) = memchr2(b'"', b'\\', &bytes[from..]).map(|idx| from + idx) else {
            return Err(self.unclosed_string(start, "string"));
        };
        if bytes[stop] == b'"' {
            self.at = stop + 1;
            let value = Value::text(&self.text[from..stop]);
            return Ok((value, self.span(start, self.at)));
        }
        let (text, end) = self.escaped_string(start, stop)?;
        self.at = end;
        Ok((Value::text(text), self.span(start, end)))
    }

    /// Reads the rest of a string whose first backslash is at `at`.
    fn escaped_string(&self, start: usize, mut at: usize) -> Result<(String, usize), ReadError> {
        let bytes = self.text.as_bytes();
        let mut out = String::from(&self.text[start + 1..at]);
        loop {
            match bytes.get(at) {
                None => return Err(self.unclosed_string(start, "string")),
                Some(b'"') => return Ok((out, at + 1)),
                Some(b'\\') => {
                    let (char, length) = self.escape(start, at)?;
                    out.push(char);
                    at += length;
                }
                Some(_) => {
                    let rest = &bytes[at..];
                    let stop = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    out.push_str(&self.text[at..at + stop]);
                    at += stop;
                }
            }
        }
    }

    /// Reads the escape at `at`: the character, and its length in bytes.
    fn escape(&self, start: usize, at: usize) -> Result<(char, usize), ReadError> {
        let rest = &self.text[at + 1..];
        let Some(char) = rest.chars().next() else {
            return Err(self.unclosed_string(start, "string"));
        };
        Ok(match char {
            'n' => ('\n', 2),
            't' => ('\t', 2),
            'r' => ('\r', 2),
            'b' => ('\u{8}', 2),
            'f' => ('\u{c}', 2),
            '"' | '\\' => (char, 2),
            'u' => self.unicode_escape(at)?,
            '0'..='7' => {
                let digits = rest
                    .bytes()
                    .take(3)
                    .take_while(|byte| (b'0'..=b'7').contains(byte))
                    .count();
                match u8::from_str_radix(&rest[..digits], 8) {
                    Ok(code) => (char::from(code), 1 + digits),
                    Err(_) => return Err(self.bad_escape(at, 1 + digits, "octal")),
                }
            }
            _ => return Err(self.bad_escape(at, 1 + char.len_utf8(), "")),
        })
    }

    /// Reads `\uXXXX`; the two halves of a surrogate pair form one character.
    fn unicode_escape(&self, at: usize) -> Result<(char, usize), ReadError> {
        let Some(unit) = unicode_unit(&self.text[at..]) else {
            let length = self.text[at..]
                .char_indices()
                .skip(2)
                .take(4)
                .take_while(|(_, char)| char.is_ascii_hexdigit())
                .count();
            return Err(self.bad_escape(at, 2 + length, "unicode"));
        };
        if let Some(char) = char::from_u32(unit) {
            return Ok((char, 6));
        }
        let low = self.text.get(at + 6..).and_then(unicode_unit);
        match low.and_then(|low| char::decode_utf16([unit as u16, low as u16]).next()) {
            Some(Ok(char)) => Ok((char, 12)),
            _ => Err(self.bad_escape(at, 6, "surrogate")),
        }
    }

    /// Returns the text between the quotes of a regex, including backslashes, and its end.
    pub(super) fn regex_source(&self) -> Result<(&'a str, usize), ReadError> {
        let bytes = self.text.as_bytes();
        let from = self.at + 2;
        let mut at = from;
        while let Some(idx) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or(&[])) {
            at += idx;
            if bytes[at] == b'"' {
                return Ok((&self.text[from..at], at + 1));
            }
            at += 2;
        }
        Err(self.unclosed_string(self.at, "regex"))
    }

    /// Tells whether a quote follows anywhere from `at` on.
    pub(super) fn has_quote_after(&self, at: usize) -> bool {
        memchr(b'"', self.text.as_bytes().get(at..).unwrap_or(&[])).is_some()
    }
}

/// Returns the number of `\uXXXX` at the start of a text.
fn unicode_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, 16).ok())
        .flatten()
}
