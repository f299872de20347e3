//! Secrets in EDN text: replaced token by token, so that the result can be read.

use std::fmt::Write as _;

use super::{Redactor, SECRET};
use crate::codec;

/// Bytes that end a token other than a string.
const ENDS: &[u8] = b" ,\n\t\r()[]{}\"";

/// Whether keys, names and numbers are redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tokens {
    Kept,
    Redacted,
}

/// Returns EDN text without secrets. The text contains at least one.
pub(super) fn clean(redactor: &Redactor, text: &str, tokens: Tokens) -> String {
    let mut cleaner = Cleaner {
        redactor,
        tokens,
        text,
        at: 0,
        out: String::with_capacity(text.len()),
        tag: None,
    };
    while cleaner.at < text.len() {
        cleaner.next();
    }
    cleaner.out
}

struct Cleaner<'a> {
    redactor: &'a Redactor,
    tokens: Tokens,
    text: &'a str,
    at: usize,
    out: String,
    /// The start of the next form's tag in the output, and its name.
    tag: Option<(usize, &'a str)>,
}

impl<'a> Cleaner<'a> {
    fn next(&mut self) {
        let bytes = self.text.as_bytes();
        match bytes[self.at] {
            b'"' => self.string(),
            b' ' | b',' | b'\n' | b'\t' | b'\r' => self.copy(1),
            b'(' | b')' | b'[' | b']' | b'{' | b'}' => {
                self.tag = None;
                self.copy(1);
            }
            _ => self.token(),
        }
    }

    fn copy(&mut self, count: usize) {
        self.out.push_str(&self.text[self.at..self.at + count]);
        self.at += count;
    }

    fn string(&mut self) {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = (end + 1).min(bytes.len());
        self.at = end;
        let tag = self.tag.take();
        let literal = &self.text[start..end];
        let Ok(content) = codec::decode(literal) else {
            // The codec does not write this: the text was cut.
            self.out.push_str(&self.redactor.text(literal.to_owned()));
            return;
        };
        let content = content.as_str().unwrap_or_default();
        let clean = match tag {
            Some((_, "#flowstone/bytes")) => self.hex(content),
            _ => self.redactor.text(content.to_owned()),
        };
        if clean == content {
            self.out.push_str(literal);
            return;
        }
        // `#uuid "[secret]"` could not be read.
        if let Some((at, "#inst" | "#uuid")) = tag {
            self.out.truncate(at);
        }
        self.write(&clean);
    }

    /// Redacts bytes that are written as hexadecimal digits.
    fn hex(&self, digits: &str) -> String {
        let bytes: Option<Vec<u8>> = (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(digits.get(at * 2..at * 2 + 2)?, 16).ok())
            .collect();
        let Some(bytes) = bytes else {
            return self.redactor.text(digits.to_owned());
        };
        let clean = self.redactor.bytes(bytes);
        clean.iter().fold(String::new(), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
    }

    fn token(&mut self) {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        // The first byte of a character always belongs to it, even if it is a bracket or a quote.
        let skip = if rest[0] == b'\\' { 2 } else { 1 };
        let skip = skip.min(rest.len());
        let length = rest[skip..].iter().position(|byte| ENDS.contains(byte));
        let mut end = start + length.map_or(rest.len(), |length| length + skip);
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        let token = &self.text[start..end];
        self.at = end;
        if token.starts_with('#') && !token.starts_with("##") {
            self.tag = Some((self.out.len(), token));
            self.out.push_str(token);
            return;
        }
        self.tag = None;
        let is_number = token
            .trim_start_matches(['-', '+'])
            .starts_with(|char: char| char.is_ascii_digit());
        let is_secret = match is_number {
            true => self.redactor.is_number(token),
            false => self.redactor.holds(token),
        };
        if self.tokens == Tokens::Kept || !is_secret {
            self.out.push_str(token);
            return;
        }
        let name = token.strip_prefix(':');
        match name {
            // A keyword stays a keyword.
            Some(name) => {
                self.out.push_str("#flowstone/keyword ");
                let clean = self.redactor.text(name.to_owned());
                self.write(&clean);
            }
            None if is_number => self.write(SECRET),
            None => {
                let clean = self.redactor.text(token.to_owned());
                self.write(&clean);
            }
        }
    }

    fn write(&mut self, text: &str) {
        let literal = codec::encode(&text.into());
        self.out
            .push_str(&literal.expect("text can be written down"));
    }
}
