//! Tokens without delimiters: numbers, keywords, symbols, `nil`, `true`, `false`.

use crate::value::{Keyword, Span, Symbol, Value};

use super::build::placed_name;
use super::number::number;
use super::{ReadContext, ReadError, Reader};

impl Reader<'_> {
    /// Reads a token that does not begin with a macro character.
    pub(super) fn token(&mut self, cx: &mut dyn ReadContext) -> Result<(Value, Span), ReadError> {
        let start = self.at;
        let token = self.token_from(start);
        let end = start + token.len();
        let span = self.span(start, end);
        let bytes = token.as_bytes();
        let value = match bytes {
            [b':', rest @ ..] => match rest.first() {
                Some(b':') => self.auto_keyword(&token[2..], span, cx)?,
                _ => self.keyword(&token[1..], span)?,
            },
            [b'0'..=b'9', ..] | [b'+' | b'-', b'0'..=b'9', ..] => return self.number(token),
            b"nil" => Value::Nil,
            b"true" => Value::Bool(true),
            b"false" => Value::Bool(false),
            [b'%', ..] if self.function.is_some() => {
                let symbol = self.parameter(token, span, cx)?;
                placed_name(symbol, span)
            }
            _ => self.symbol(token, span)?,
        };
        self.at = end;
        Ok((value, span))
    }

    fn number(&mut self, token: &str) -> Result<(Value, Span), ReadError> {
        let start = self.at;
        let (read, length) = match number(token) {
            Ok(value) => (Ok(value), token.len()),
            // A number ends where a name would continue: `1#_x` is `1` followed by a discarded form.
            Err(wrong) => match token
                .find(['#', '\'', '%'])
                .map(|end| (number(&token[..end]), end))
            {
                Some((Ok(value), end)) => (Ok(value), end),
                _ => (Err(wrong), token.len()),
            },
        };
        let span = self.span(start, start + length);
        self.at = start + length;
        match read {
            Ok(value) => Ok((value, span)),
            Err(wrong) => Err(self.bad_number(token, span, &wrong)),
        }
    }

    #[inline]
    fn keyword(&self, name: &str, span: Span) -> Result<Value, ReadError> {
        if is_name(name) {
            Ok(Value::Keyword(Keyword::new(name)))
        } else {
            Err(self.bad_keyword(name, span))
        }
    }

    fn auto_keyword(
        &self,
        name: &str,
        span: Span,
        cx: &dyn ReadContext,
    ) -> Result<Value, ReadError> {
        if !self.is_code() {
            return Err(self.code_in_data(
                span.start as usize,
                token_length(span),
                "`::` (the current namespace)",
            ));
        }
        if !is_name(name) || name.starts_with(':') {
            return Err(self.bad_keyword(name, span));
        }
        let (namespace, name) = match name.split_once('/') {
            Some((alias, name)) if !alias.is_empty() => match cx.resolve_alias(alias) {
                Some(namespace) => (namespace, name),
                None if self.quiet > 0 => (alias.to_owned(), name),
                None => {
                    let start = span.start as usize + 2;
                    return Err(self.unknown_alias(alias, start, start + alias.len()));
                }
            },
            _ => (cx.current_namespace(), name),
        };
        Ok(Value::Keyword(Keyword::with_namespace(
            Some(&namespace),
            name,
        )))
    }

    fn symbol(&self, token: &str, span: Span) -> Result<Value, ReadError> {
        if token.starts_with('\'') && !self.is_code() {
            return Err(self.code_in_data(span.start as usize, 1, "this"));
        }
        if !is_name(token) || token.ends_with(':') || after_slash_is_number(token) {
            return Err(self.bad_symbol(token, span));
        }
        let symbol = Symbol::new(token);
        Ok(if self.is_code() {
            placed_name(symbol, span)
        } else {
            Value::Symbol(symbol)
        })
    }
}

fn token_length(span: Span) -> usize {
    (span.end - span.start) as usize
}

/// Tells whether a name, without the colon of a keyword, has the shape `name` or `namespace/name`.
#[inline]
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    if *last == b':' || (bytes.len() > 1 && *first == b'/') {
        return false;
    }
    if *last == b'/' && bytes.len() > 1 {
        // Only the name `/` itself may follow a namespace: `clojure.core//`.
        return bytes.len() > 2 && bytes[bytes.len() - 2] == b'/';
    }
    let mut previous = 0;
    for byte in bytes {
        if previous == b':' && matches!(*byte, b':' | b'/') {
            return false;
        }
        previous = *byte;
    }
    true
}

/// Tells whether the name part of a symbol, as in `a/1x`, starts like a number. `String/1`, the class of an array, is a
/// symbol.
fn after_slash_is_number(token: &str) -> bool {
    match token.rsplit_once('/') {
        Some((_, name)) => match name.as_bytes() {
            [b'1'..=b'9'] => false,
            [first, ..] => first.is_ascii_digit(),
            [] => false,
        },
        None => false,
    }
}
