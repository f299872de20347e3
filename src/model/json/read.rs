//! JSON text to values, without an intermediate tree.
//!
//! Numbers keep their value: an integer of any size is an integer, a decimal is the nearest double, or an exact decimal
//! if the caller asks for that. Errors are described by `serde_json`, so that all messages have one style.

use std::borrow::Cow;
use std::convert::Infallible;

use flowstone_lang::value::{BigDecimal, BigInt, Value, meter};
use serde::de::{Error as _, IgnoredAny};
use serde_json::{Deserializer, Error, Value as Json};

use super::MAX_DEPTH;

/// Maximum number of digits: the time to read more grows with their square.
const MAX_DIGITS: usize = 10_000;

/// Turns the parts of a JSON text into values.
pub trait Build {
    type Error;

    /// Returns the value for a key of an object.
    ///
    /// # Errors
    /// The error that a function of the user throws.
    fn key(&mut self, text: &str) -> Result<Value, Self::Error>;

    /// Returns the value for the value of an object's entry.
    ///
    /// # Errors
    /// As [`Build::key`].
    fn entry(&mut self, _key: &Value, value: Value) -> Result<Value, Self::Error> {
        Ok(value)
    }

    /// Returns the value for an array; `above` is the key of the entry that contains it, or nil.
    ///
    /// # Errors
    /// As [`Build::key`].
    fn array(&mut self, _above: &Value, items: Vec<Value>) -> Result<Value, Self::Error> {
        Ok(Value::vector(items))
    }

    /// Tells whether numbers with a fraction or an exponent become decimals.
    fn decimals(&self) -> bool {
        false
    }
}

/// The reason why a text could not be read.
#[derive(Debug)]
pub enum ReadError<E> {
    /// The text is not JSON.
    Syntax(Error),
    /// A function of the user failed.
    Build(E),
}

/// Reads a JSON text: objects as maps with keyword keys, arrays as vectors.
///
/// # Errors
/// When the text is not JSON.
pub fn read(text: &str) -> Result<Value, Error> {
    plain(text, Value::keyword)
}

/// Reads JSON bytes as [`read`] does.
///
/// # Errors
/// When they are not JSON, or not UTF-8.
pub fn read_bytes(bytes: &[u8]) -> Result<Value, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => read(text),
        Err(wrong) => Err(serde_json::from_slice::<Json>(bytes)
            .err()
            .unwrap_or_else(|| Error::custom(wrong))),
    }
}

/// Reads a JSON text whose object keys stay strings.
///
/// # Errors
/// As [`read`].
pub fn read_with_string_keys(text: &str) -> Result<Value, Error> {
    plain(text, |key| Value::from(key))
}

/// Reads values that follow one another, such as JSON Lines.
///
/// # Errors
/// As [`read`].
pub fn read_all(mut text: &str) -> Result<Vec<Value>, Error> {
    let mut values = Vec::new();
    loop {
        match read_first(text, &mut Keys(Value::keyword)) {
            Ok(None) => return Ok(values),
            Ok(Some((value, end))) => {
                values.push(value);
                text = &text[end..];
            }
            Err(ReadError::Syntax(error)) => return Err(error),
            Err(ReadError::Build(never)) => match never {},
        }
    }
}

/// Reads the first JSON value of a text, and returns it with the place where it ends; `None` for a blank text.
///
/// # Errors
/// When the text does not begin with JSON, or a function of the user fails.
pub fn read_first<B: Build>(
    text: &str,
    build: &mut B,
) -> Result<Option<(Value, usize)>, ReadError<B::Error>> {
    let mut parser = Parser::new(text, build);
    parser.skip_blanks();
    if parser.at == text.len() {
        return Ok(None);
    }
    let begin = parser.peek();
    let read = parser.value(&Value::Nil).and_then(|value| {
        let is_open = matches!(begin, Some(b'"' | b'[' | b'{'));
        match parser.peek() {
            Some(next) if !is_open && !b" \t\n\r\"[]{},:".contains(&next) => Err(Stop::Syntax),
            _ => Ok(value),
        }
    });
    match read {
        Ok(value) => Ok(Some((value, parser.at))),
        Err(Stop::Build(error)) => Err(ReadError::Build(error)),
        Err(Stop::Limit) => Err(ReadError::Syntax(stopped())),
        Err(Stop::Syntax) => {
            let tree = Deserializer::from_str(text).into_iter::<Json>().next();
            let error = explained(tree.and_then(Result::err), || {
                let mut ignored = Deserializer::from_str(text).into_iter::<IgnoredAny>();
                ignored.next()?.err()
            });
            Err(ReadError::Syntax(error))
        }
    }
}

fn plain<F: Fn(&str) -> Value>(text: &str, key: F) -> Result<Value, Error> {
    let mut build = Keys(key);
    let mut parser = Parser::new(text, &mut build);
    let read = parser.value(&Value::Nil).and_then(|value| {
        parser.skip_blanks();
        match parser.at == text.len() {
            true => Ok(value),
            false => Err(Stop::Syntax),
        }
    });
    match read {
        Ok(value) => Ok(value),
        Err(Stop::Build(never)) => match never {},
        Err(Stop::Limit) => Err(stopped()),
        Err(Stop::Syntax) => {
            let tree = serde_json::from_str::<Json>(text).err();
            Err(explained(tree, || {
                serde_json::from_str::<IgnoredAny>(text).err()
            }))
        }
    }
}

/// Returns the error that describes a text: the one of reading it as a tree, or, if that stops at a number beyond the
/// range of doubles, the one of reading it without numbers. `serde_json` accepts everything that this reader accepts,
/// and numbers with too many digits.
fn explained(tree: Option<Error>, ignored: impl FnOnce() -> Option<Error>) -> Error {
    let is_range = |error: &Error| error.to_string().starts_with("number out of range");
    tree.filter(|error| !is_range(error))
        .or_else(ignored)
        .unwrap_or_else(|| Error::custom(format!("a number has more than {MAX_DIGITS} digits")))
}

fn stopped() -> Error {
    Error::custom("reading was stopped by a limit")
}

struct Keys<F>(F);

impl<F: Fn(&str) -> Value> Build for Keys<F> {
    type Error = Infallible;

    fn key(&mut self, text: &str) -> Result<Value, Infallible> {
        Ok((self.0)(text))
    }
}

enum Stop<E> {
    /// The evaluation that reads has reached a limit: the machine stops immediately after.
    Limit,
    Syntax,
    Build(E),
}

struct Parser<'a, B> {
    text: &'a str,
    at: usize,
    depth: usize,
    build: &'a mut B,
}

impl<'a, B: Build> Parser<'a, B> {
    fn new(text: &'a str, build: &'a mut B) -> Self {
        let (at, depth) = (0, 0);
        Parser {
            text,
            at,
            depth,
            build,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, above: &Value) -> Result<Value, Stop<B::Error>> {
        self.skip_blanks();
        meter::spend_watched(1).map_err(|_| Stop::Limit)?;
        match self.peek() {
            Some(b'"') => Ok(Value::from(&*self.string()?)),
            Some(b'{') => self.nested(|parser| parser.object()),
            Some(b'[') => self.nested(|parser| parser.array(above)),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Nil),
            Some(_) => self.number().ok_or(Stop::Syntax),
            None => Err(Stop::Syntax),
        }
    }

    fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Value, Stop<B::Error>>,
    ) -> Result<Value, Stop<B::Error>> {
        self.depth += 1;
        if self.depth >= MAX_DEPTH {
            return Err(Stop::Syntax);
        }
        self.at += 1;
        let value = inner(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Stop<B::Error>> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(Stop::Syntax);
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, Stop<B::Error>> {
        let mut entries = Vec::new();
        self.skip_blanks();
        if self.take(b'}') {
            return Ok(Value::map(entries));
        }
        loop {
            self.skip_blanks();
            let key = self.string()?;
            let key = self.build.key(&key).map_err(Stop::Build)?;
            self.skip_blanks();
            if !self.take(b':') {
                return Err(Stop::Syntax);
            }
            let value = self.value(&key)?;
            let value = self.build.entry(&key, value).map_err(Stop::Build)?;
            entries.push((key, value));
            self.skip_blanks();
            if self.take(b'}') {
                return Ok(Value::map(entries));
            }
            if !self.take(b',') {
                return Err(Stop::Syntax);
            }
        }
    }

    fn array(&mut self, above: &Value) -> Result<Value, Stop<B::Error>> {
        let mut items = Vec::new();
        self.skip_blanks();
        if !self.take(b']') {
            loop {
                items.push(self.value(above)?);
                self.skip_blanks();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(Stop::Syntax);
                }
            }
        }
        self.build.array(above, items).map_err(Stop::Build)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Stop<B::Error>> {
        let begin = self.at;
        if !self.take(b'"') {
            return Err(Stop::Syntax);
        }
        let mut is_escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    self.at += 2;
                }
                Some(byte) if byte >= b' ' => self.at += 1,
                _ => return Err(Stop::Syntax),
            }
        }
        self.at += 1;
        let text: &'a str = self.text;
        // The byte after a backslash may be in the middle of a character: then the escape is invalid.
        let quoted = text.get(begin..self.at).ok_or(Stop::Syntax)?;
        match is_escaped {
            false => Ok(Cow::Borrowed(&quoted[1..quoted.len() - 1])),
            true => serde_json::from_str(quoted)
                .map(Cow::Owned)
                .map_err(|_| Stop::Syntax),
        }
    }

    fn number(&mut self) -> Option<Value> {
        let begin = self.at;
        let shape = number_shape(&self.text.as_bytes()[begin..])?;
        self.at += shape.length;
        let text = &self.text[begin..self.at];
        let is_long = text.len() > MAX_DIGITS;
        if shape.is_whole {
            return match text.parse() {
                Ok(int) => Some(Value::Int(int)),
                Err(_) if is_long => None,
                Err(_) => Some(Value::BigInt(text.parse::<BigInt>().ok()?.into())),
            };
        }
        if self.build.decimals() && !is_long {
            return Some(Value::Decimal(text.parse::<BigDecimal>().ok()?.into()));
        }
        text.parse().ok().map(Value::Float)
    }
}

struct NumberShape {
    length: usize,
    /// Tells whether the number has neither a fraction nor an exponent.
    is_whole: bool,
}

/// Returns the shape of the number at the beginning of some bytes.
fn number_shape(bytes: &[u8]) -> Option<NumberShape> {
    let digits = |from: usize| {
        let count = bytes[from..]
            .iter()
            .take_while(|it| it.is_ascii_digit())
            .count();
        (count > 0).then_some(from + count)
    };
    let begin = usize::from(bytes.first() == Some(&b'-'));
    let mut at = match bytes.get(begin) {
        Some(b'0') => begin + 1,
        _ => digits(begin)?,
    };
    if bytes[begin] == b'0' && bytes.get(at).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let whole = at;
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let is_signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits(at + 1 + usize::from(is_signed))?;
    }
    Some(NumberShape {
        length: at,
        is_whole: at == whole,
    })
}

/// Tells whether a text is a JSON number and nothing else.
pub(super) fn is_number(text: &str) -> bool {
    number_shape(text.as_bytes()).is_some_and(|shape| shape.length == text.len())
}
