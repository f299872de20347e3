//! Number tokens. Plain integers and doubles, which are nearly all of them, have a fast path; the grammar of all others
//! is in `value::number`.

use crate::value::Value;
use crate::value::number::parse_number;

/// Reads a token that starts like a number.
///
/// # Errors
/// A message that describes what is wrong with it.
#[inline]
pub(super) fn number(token: &str) -> Result<Value, String> {
    if let Some(int) = plain_int(token.as_bytes()) {
        return Ok(Value::Int(int));
    }
    if is_plain_float(token.as_bytes())
        && let Ok(float) = token.parse()
    {
        return Ok(Value::Float(float));
    }
    parse_number(token)
}

/// Reads a decimal integer that is too short to overflow, without leading zeros.
#[inline]
fn plain_int(token: &[u8]) -> Option<i64> {
    let (negative, digits) = match token {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.len() > 18 || (digits.len() > 1 && digits[0] == b'0') {
        return None;
    }
    let mut int: i64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        int = int * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -int } else { int })
}

/// Tells whether a token is digits with a point or an exponent, which Rust and Clojure read alike.
fn is_plain_float(token: &[u8]) -> bool {
    let mut has_mark = false;
    for (idx, byte) in token.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {}
            b'.' | b'e' | b'E' => has_mark = true,
            b'+' | b'-' if idx == 0 || matches!(token[idx - 1], b'e' | b'E') => {}
            _ => return false,
        }
    }
    has_mark
}
