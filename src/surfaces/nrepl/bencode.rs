//! Bencode, the encoding of nREPL's messages: integers, byte strings, lists and dictionaries.
//!
//! Own code, because what arrives in pieces must be refused as soon as it is malformed or exceeds a limit, before its
//! end has come.

use std::collections::BTreeMap;

use thiserror::Error;

/// Maximum size of a message in bytes.
pub const MESSAGE_MAX: usize = 16 << 20;
/// Maximum number of values in a message.
const VALUES_MAX: usize = 100_000;
/// Maximum nesting of lists and dictionaries.
const DEPTH_MAX: usize = 32;
/// Maximum number of digits of an integer or a length.
const DIGITS_MAX: usize = 20;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bencode {
    Int(i64),
    Text(String),
    List(Vec<Bencode>),
    Dict(Dict),
}

/// A dictionary. Its keys are written in their order, as the format requires.
pub type Dict = BTreeMap<String, Bencode>;

/// Why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BencodeError {
    #[error("expected a bencode dictionary, got the byte 0x{0:02x}")]
    Unexpected(u8),
    #[error(
        "an integer or a length has more than {DIGITS_MAX} digits, or something else between its digits"
    )]
    BadNumber,
    #[error("a message has more than {MESSAGE_MAX} bytes, or more than {VALUES_MAX} values")]
    TooLarge,
    #[error("a message is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    #[error("the key of a dictionary is not a string, or has no value")]
    BadKey,
}

impl Bencode {
    /// Returns the text of a value, if it is a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Bencode::Text(text) => Some(text),
            Bencode::Int(_) | Bencode::List(_) | Bencode::Dict(_) => None,
        }
    }
}

impl From<&str> for Bencode {
    fn from(text: &str) -> Bencode {
        Bencode::Text(text.to_owned())
    }
}

impl From<String> for Bencode {
    fn from(text: String) -> Bencode {
        Bencode::Text(text)
    }
}

impl FromIterator<Bencode> for Bencode {
    fn from_iter<T: IntoIterator<Item = Bencode>>(items: T) -> Bencode {
        Bencode::List(items.into_iter().collect())
    }
}

/// Reads messages from bytes that arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Where the next token of the first message begins.
    at: usize,
    /// How many values of the message were read.
    values: usize,
    /// The lists and dictionaries of the message that are still open.
    open: Vec<Open>,
}

/// A list or dictionary that has not ended.
#[derive(Debug)]
enum Open {
    List(Vec<Bencode>),
    Dict(Dict, Option<String>),
}

/// A piece of a message.
enum Token {
    Value(Bencode),
    OpenList,
    OpenDict,
    End,
}

impl Decoder {
    /// Adds bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message; `None` until all of it has arrived.
    ///
    /// # Errors
    /// When the bytes are not a message, or it exceeds a limit. The connection cannot be used after that.
    pub fn next(&mut self) -> Result<Option<Dict>, BencodeError> {
        loop {
            if self.at > MESSAGE_MAX {
                return Err(BencodeError::TooLarge);
            }
            let Some((token, length)) = token(&self.bytes[self.at..])? else {
                return Ok(None);
            };
            if self.open.is_empty() && !matches!(token, Token::OpenDict) {
                return Err(BencodeError::Unexpected(self.bytes[self.at]));
            }
            self.at += length;
            self.values += 1;
            if self.values > VALUES_MAX {
                return Err(BencodeError::TooLarge);
            }
            let ended = match token {
                Token::Value(value) => Some(value),
                Token::OpenList => {
                    self.open(Open::List(Vec::new()))?;
                    None
                }
                Token::OpenDict => {
                    self.open(Open::Dict(Dict::new(), None))?;
                    None
                }
                Token::End => match self.open.pop() {
                    Some(Open::List(items)) => Some(Bencode::List(items)),
                    Some(Open::Dict(dict, None)) => Some(Bencode::Dict(dict)),
                    Some(Open::Dict(_, Some(_))) | None => return Err(BencodeError::BadKey),
                },
            };
            let Some(value) = ended else { continue };
            match (self.open.last_mut(), value) {
                (None, Bencode::Dict(dict)) => {
                    self.bytes.drain(..self.at);
                    self.at = 0;
                    self.values = 0;
                    return Ok(Some(dict));
                }
                (None, _) => return Err(BencodeError::BadKey),
                (Some(Open::List(items)), value) => items.push(value),
                (Some(Open::Dict(dict, key)), value) => match (key.take(), value) {
                    (Some(key), value) => {
                        dict.insert(key, value);
                    }
                    (None, Bencode::Text(text)) => *key = Some(text),
                    (None, _) => return Err(BencodeError::BadKey),
                },
            }
        }
    }

    fn open(&mut self, open: Open) -> Result<(), BencodeError> {
        if self.open.len() == DEPTH_MAX {
            return Err(BencodeError::TooDeep);
        }
        self.open.push(open);
        Ok(())
    }
}

/// Reads one token; `None` if its end has not arrived. Bytes that are not UTF-8 become replacement characters.
fn token(bytes: &[u8]) -> Result<Option<(Token, usize)>, BencodeError> {
    let Some(first) = bytes.first() else {
        return Ok(None);
    };
    match first {
        b'd' => Ok(Some((Token::OpenDict, 1))),
        b'l' => Ok(Some((Token::OpenList, 1))),
        b'e' => Ok(Some((Token::End, 1))),
        b'i' => {
            let Some((number, length)) = number(&bytes[1..], b'e')? else {
                return Ok(None);
            };
            Ok(Some((Token::Value(Bencode::Int(number)), 1 + length)))
        }
        b'0'..=b'9' => {
            let Some((count, length)) = number(bytes, b':')? else {
                return Ok(None);
            };
            let count = usize::try_from(count).map_err(|_| BencodeError::BadNumber)?;
            if count > MESSAGE_MAX {
                return Err(BencodeError::TooLarge);
            }
            let text = bytes.get(length..length + count);
            Ok(text.map(|text| {
                let text = String::from_utf8_lossy(text).into_owned();
                (Token::Value(Bencode::Text(text)), length + count)
            }))
        }
        other => Err(BencodeError::Unexpected(*other)),
    }
}

/// Reads digits up to `end`. Returns the number, and the number of bytes with the end.
fn number(bytes: &[u8], end: u8) -> Result<Option<(i64, usize)>, BencodeError> {
    let window = &bytes[..bytes.len().min(DIGITS_MAX + 1)];
    let Some(at) = window.iter().position(|byte| *byte == end) else {
        let is_number =
            |(at, byte): (usize, &u8)| byte.is_ascii_digit() || (at == 0 && *byte == b'-');
        let is_open = window.iter().enumerate().all(is_number) && window.len() <= DIGITS_MAX;
        return if is_open {
            Ok(None)
        } else {
            Err(BencodeError::BadNumber)
        };
    };
    let text = std::str::from_utf8(&window[..at]).map_err(|_| BencodeError::BadNumber)?;
    if text.starts_with('+') {
        return Err(BencodeError::BadNumber);
    }
    let number = text.parse().map_err(|_| BencodeError::BadNumber)?;
    Ok(Some((number, at + 1)))
}

/// Writes a message.
pub fn encode(dict: &Dict) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    write_dict(&mut out, dict);
    out
}

fn write(out: &mut Vec<u8>, value: &Bencode) {
    match value {
        Bencode::Int(number) => out.extend_from_slice(format!("i{number}e").as_bytes()),
        Bencode::Text(text) => write_text(out, text),
        Bencode::List(items) => {
            out.push(b'l');
            items.iter().for_each(|item| write(out, item));
            out.push(b'e');
        }
        Bencode::Dict(dict) => write_dict(out, dict),
    }
}

fn write_dict(out: &mut Vec<u8>, dict: &Dict) {
    out.push(b'd');
    for (key, value) in dict {
        write_text(out, key);
        write(out, value);
    }
    out.push(b'e');
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(format!("{}:", text.len()).as_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(bytes: &[u8]) -> Result<Option<Dict>, BencodeError> {
        let mut decoder = Decoder::default();
        decoder.push(bytes);
        decoder.next()
    }

    #[test]
    fn messages_are_read_from_pieces_of_any_size() {
        let bytes = "d4:code10:(+ 1 \u{e9} 2)2:id1:14:listli-3e0:d1:ai0eeee";
        let two = format!("{bytes}{bytes}");
        for size in 1..two.len() {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for piece in two.as_bytes().chunks(size) {
                decoder.push(piece);
                while let Some(dict) = decoder.next().expect("well-formed") {
                    found.push(dict);
                }
            }
            assert_eq!(found.len(), 2, "pieces of {size} bytes");
            assert_eq!(found[0], found[1]);
            assert_eq!(found[0]["code"], Bencode::from("(+ 1 \u{e9} 2)"));
            assert_eq!(encode(&found[0]), bytes.as_bytes());
        }
    }

    #[test]
    fn malformed_messages_are_refused() {
        let unexpected = |byte| Err(BencodeError::Unexpected(byte));
        assert_eq!(first(b"GET / HTTP/1.1\r\n"), unexpected(b'G'));
        assert_eq!(first(b"i1e"), unexpected(b'i'));
        assert_eq!(first(b"e"), unexpected(b'e'));
        assert_eq!(first(b"d1:a1:b"), Ok(None));
        assert_eq!(first(b"di1e1:ae"), Err(BencodeError::BadKey));
        assert_eq!(first(b"d1:ae"), Err(BencodeError::BadKey));
        assert_eq!(first(b"d1:ai1x"), Err(BencodeError::BadNumber));
        assert_eq!(first(b"d1:ai--1e"), Err(BencodeError::BadNumber));
        assert_eq!(
            first(&[b"d1:ai".as_slice(), &[b'1'; 30]].concat()),
            Err(BencodeError::BadNumber)
        );
    }

    #[test]
    fn limits_are_enforced_before_the_message_has_arrived() {
        assert_eq!(first(b"d1:a99999999999:"), Err(BencodeError::TooLarge));
        assert_eq!(
            first(&[b"d1:a".as_slice(), &[b'l'; 40]].concat()),
            Err(BencodeError::TooDeep)
        );
        let item = [b"1000000:".as_slice(), &vec![b'x'; 1_000_000]].concat();
        let mut decoder = Decoder::default();
        decoder.push(b"d1:al");
        let refused = (0..20).find_map(|_| {
            decoder.push(&item);
            decoder.next().err()
        });
        assert_eq!(refused, Some(BencodeError::TooLarge));
    }
}
