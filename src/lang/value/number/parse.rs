//! Numbers from text: every number literal that Clojure's reader accepts.

use super::{BigDecimal, BigInt, Value, big};
use num_traits::Zero;

/// Parses a number literal: `12 -0x1F 017 2r101 12N 1.5M 1/3 1e-5`.
///
/// # Errors
/// A message that describes what is wrong with it.
pub fn parse_number(text: &str) -> Result<Value, String> {
    if let Some(int) = short_int(text) {
        return Ok(Value::Int(int));
    }
    let (negative, body) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if !body.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return Err(format!("Invalid number: {text}"));
    }
    integer(negative, body)
        .or_else(|| ratio(negative, body))
        .or_else(|| decimal_literal(text, body))
        .or_else(|| float(text, body))
        .ok_or_else(|| explain(text, body))?
        .map_err(|problem| format!("{problem}: {}", beginning(text)))
}

/// Parses a big integer: a sign and decimal digits.
pub fn parse_big(text: &str) -> Option<BigInt> {
    big::parse(text, 10)
}

/// The fast path: up to 18 decimal digits without a leading zero.
fn short_int(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes.first()? {
        b'-' => (true, &bytes[1..]),
        _ => (false, bytes),
    };
    if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let mut int = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        int = int * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -int } else { int })
}

/// Maximum number of digits of a literal; longer ones are refused.
const MOST_DIGITS: usize = 5_000_000;
const TOO_LONG: &str = "A number has at most 5,000,000 digits";

type Parsed = Option<Result<Value, &'static str>>;

fn integer(negative: bool, body: &str) -> Parsed {
    let (body, big) = match body.strip_suffix('N') {
        // `36rN` is a digit, not a suffix.
        Some(shorter) if !has_radix(body) => (shorter, true),
        _ => (body, false),
    };
    let bytes = body.as_bytes();
    let (radix, digits) = if bytes.len() > 2 && bytes[0] == b'0' && matches!(bytes[1], b'x' | b'X')
    {
        (16, &body[2..])
    } else if let Some(at) = body.find(['r', 'R'])
        && has_radix(body)
    {
        let radix: u32 = body[..at].parse().ok()?;
        if !(2..=36).contains(&radix) {
            return Some(Err("Radix out of range"));
        }
        (radix, &body[at + 1..])
    } else if bytes.len() > 1 && bytes[0] == b'0' {
        (8, &body[1..])
    } else {
        (10, body)
    };
    if digits.is_empty()
        || !digits
            .bytes()
            .all(|digit| char::from(digit).is_digit(radix))
    {
        return None;
    }
    let signed = if negative {
        format!("-{digits}")
    } else {
        digits.to_owned()
    };
    if !big && let Ok(int) = i64::from_str_radix(&signed, radix) {
        return Some(Ok(Value::Int(int)));
    }
    Some(big::parse(&signed, radix).map(Value::from).ok_or(TOO_LONG))
}

/// Tells whether the text starts like `2r` or `36R`.
fn has_radix(body: &str) -> bool {
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    (1..=2).contains(&digits) && matches!(body.as_bytes().get(digits), Some(b'r' | b'R'))
}

fn ratio(negative: bool, body: &str) -> Parsed {
    let (top, bottom) = body.split_once('/')?;
    let all_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(top) || !all_digits(bottom) {
        return None;
    }
    let (Some(top), Some(bottom)) = (big::parse(top, 10), big::parse(bottom, 10)) else {
        return Some(Err(TOO_LONG));
    };
    if bottom.is_zero() {
        return Some(Err("Divide by zero"));
    }
    let Ok(ratio) = big::reduced(if negative { -top } else { top }, bottom) else {
        return Some(Err(TOO_LONG));
    };
    Some(Ok(if ratio.is_integer() {
        let int = ratio.to_integer();
        i64::try_from(&int).map_or_else(|_| Value::from(int), Value::Int)
    } else {
        Value::from(ratio)
    }))
}

/// Tells whether the text is like `12 12.5 12. 12e5 1.5E-3`, without a sign.
fn is_decimal(body: &str) -> bool {
    let bytes = body.as_bytes();
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut at = digits(0);
    if at == 0 {
        return false;
    }
    if bytes.get(at) == Some(&b'.') {
        at += 1 + digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        let exponent = digits(at);
        if exponent == 0 {
            return false;
        }
        at += exponent;
    }
    at == bytes.len()
}

fn decimal_literal(text: &str, body: &str) -> Parsed {
    let body = body.strip_suffix('M')?;
    if !is_decimal(body) {
        return None;
    }
    Some(
        decimal(&text[..text.len() - 1])
            .map(Value::from)
            .ok_or(if body.len() > MOST_DIGITS {
                TOO_LONG
            } else {
                "Exponent out of range"
            }),
    )
}

/// Parses a text that Java's `BigDecimal` constructor accepts, keeping the scale.
pub(super) fn decimal(text: &str) -> Option<BigDecimal> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = String::with_capacity(mantissa.len());
    digits.push_str(whole.strip_prefix('+').unwrap_or(whole));
    digits.push_str(fraction);
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let unscaled = big::parse(&digits, 10)?;
    Some(BigDecimal::new(
        unscaled,
        fraction.len() as i64 - i64::from(exponent),
    ))
}

fn float(text: &str, body: &str) -> Parsed {
    if !is_decimal(body) || body.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    Some(text.parse().map(Value::Float).map_err(|_| "Invalid number"))
}

/// Returns the first digits of a number, for messages.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cold]
fn explain(text: &str, body: &str) -> String {
    let text = beginning(text);
    if body.len() > 1 && body.starts_with('0') && body.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!(
            "Invalid number: {text} (a leading zero means octal, which has no digits 8 and 9)"
        );
    }
    format!("Invalid number: {text}")
}

/// `parse-long`: an optional sign and decimal digits.
pub fn parse_long(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// `parse-double`: a text that Java's `Double.valueOf` accepts.
pub fn parse_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|char: char| char <= ' ');
    let is_negative = text.starts_with('-');
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    match body {
        "NaN" => return Some(f64::NAN),
        "Infinity" if is_negative => return Some(f64::NEG_INFINITY),
        "Infinity" => return Some(f64::INFINITY),
        _ => {}
    }
    let body = body.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(body);
    let magnitude = match body.strip_prefix("0x").or(body.strip_prefix("0X")) {
        Some(hexadecimal) => parse_hexadecimal(hexadecimal)?,
        None => parse_decimal(body)?,
    };
    Some(if is_negative { -magnitude } else { magnitude })
}

fn parse_decimal(digits: &str) -> Option<f64> {
    let numeric = digits
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    if !numeric || !digits.starts_with(|char: char| char.is_ascii_digit() || char == '.') {
        return None;
    }
    digits.parse().ok()
}

/// Parses hexadecimal digits with a mandatory binary exponent, such as `1.8p3`.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let exponent = parse_exponent(exponent)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The leading 60 bits, and whether any bit below them is set, are enough to round.
    let (mut bits, mut scale, mut is_more) = (0u64, 0i64, false);
    for char in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(char.to_digit(16)?);
        if bits >> 56 == 0 {
            bits = bits << 4 | digit;
        } else {
            is_more |= digit != 0;
            scale += 4;
        }
    }
    scale -= 4 * i64::try_from(fraction.len()).ok()?;
    let bits = bits << 1 | u64::from(is_more);
    Some(scaled(bits, scale.saturating_add(exponent) - 1))
}

/// Parses a sign and digits; a number that is too large becomes larger than any valid exponent.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse().unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
    Some(if text.starts_with('-') { -size } else { size })
}

/// Returns `bits` times two to the power of `exponent`, rounded to the nearest double, ties to even.
fn scaled(bits: u64, exponent: i64) -> f64 {
    const FRACTION: i64 = 52;
    const LEAST: i64 = -1022;
    if bits == 0 {
        return 0.0;
    }
    let width = i64::from(64 - bits.leading_zeros());
    let top = exponent.saturating_add(width - 1);
    if top > 1023 {
        return f64::INFINITY;
    }
    let kept = if top >= LEAST {
        FRACTION + 1
    } else {
        (FRACTION + 1).saturating_add(top - LEAST)
    };
    let dropped = width - kept.max(-1);
    let mantissa = match u32::try_from(dropped) {
        Err(_) => bits << dropped.unsigned_abs(),
        Ok(0) => bits,
        Ok(dropped) if dropped > width as u32 => 0,
        Ok(dropped) => {
            let half = 1u64 << (dropped - 1);
            let below = bits & (half | (half - 1));
            let mantissa = bits.checked_shr(dropped).unwrap_or(0);
            let is_up = below > half || below == half && mantissa & 1 == 1;
            mantissa + u64::from(is_up)
        }
    };
    // A mantissa that rounds up to one more bit correctly carries into the exponent.
    if top >= LEAST {
        let biased = (top + 1023).unsigned_abs() << FRACTION;
        f64::from_bits(biased + (mantissa - (1 << FRACTION)))
    } else {
        f64::from_bits(mantissa)
    }
}
