//! Numbers in format strings: digits with their sign, groups and padding.

use std::str::FromStr;

use bigdecimal::RoundingMode;
use num_traits::{Signed, Zero};

use crate::value::number::{self, big::digit_count};
use crate::value::{BigDecimal, Result, Value};

use super::directive::Directive;
use super::padded;

/// A number without its sign.
pub(super) struct Digits {
    negative: bool,
    text: String,
    /// Whether this is `Infinity` or `NaN`, which are neither grouped nor padded with zeros.
    is_word: bool,
}

/// Returns the decimal digits of an integer.
pub(super) fn decimal_digits(value: &Value) -> Option<Digits> {
    let text = match value {
        Value::Int(int) => int.to_string(),
        Value::BigInt(int) => {
            let mut digits = String::new();
            number::write_big(&mut digits, int);
            digits
        }
        _ => return None,
    };
    let digits = text.strip_prefix('-');
    Some(Digits {
        negative: digits.is_some(),
        text: digits.unwrap_or(&text).to_owned(),
        is_word: false,
    })
}

/// Returns the digits of an integer in base 8 or 16; of a negative long, those of its two's complement.
pub(super) fn radix_digits(value: &Value, radix: u32) -> Option<String> {
    match (value, radix) {
        (Value::Int(int), 8) => Some(format!("{int:o}")),
        (Value::Int(int), _) => Some(format!("{int:x}")),
        (Value::BigInt(int), radix) => Some(int.to_str_radix(radix)),
        _ => None,
    }
}

/// Adds the prefix of a base before digits, and pads to the width.
pub(super) fn framed_radix(digits: String, radix: u32, directive: &Directive<'_>) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits.to_owned()),
        None => ("", digits),
    };
    let prefix = match (directive.flags.alternate, radix) {
        (true, 8) => "0",
        (true, _) => "0x",
        (false, _) => "",
    };
    let mut text = format!("{sign}{prefix}{digits}");
    if directive.flags.zero {
        let missing = directive.width.unwrap_or(0).saturating_sub(text.len());
        text = format!("{sign}{prefix}{}{digits}", "0".repeat(missing));
    }
    padded(text, directive)
}

/// Returns the digits that `%f`, `%e` and `%g` write.
///
/// # Errors
/// When there are too many digits, or a limit is reached.
pub(super) fn float_digits(value: &Value, directive: &Directive<'_>) -> Result<Option<Digits>> {
    let decimal = match value {
        Value::Float(float) if !float.is_finite() => {
            let text = if float.is_nan() { "NaN" } else { "Infinity" };
            return Ok(Some(Digits {
                negative: *float < 0.0,
                text: text.to_owned(),
                is_word: true,
            }));
        }
        // Java rounds the shortest digits that identify the double.
        Value::Float(float) => BigDecimal::from_str(&format!("{float:e}")).unwrap_or_default(),
        Value::Decimal(decimal) => (**decimal).clone(),
        _ => return Ok(None),
    };
    let negative =
        decimal.is_negative() || matches!(value, Value::Float(float) if float.is_sign_negative());
    let decimal = decimal.abs();
    let precision = directive.precision.unwrap_or(6);
    let text = match directive.conversion.to_ascii_lowercase() {
        'e' => scientific(&decimal, precision)?,
        'g' => general(&decimal, precision.max(1))?,
        _ => fixed(&decimal, precision)?,
    };
    Ok(Some(Digits {
        negative,
        text,
        is_word: false,
    }))
}

fn rounded(decimal: &BigDecimal, scale: i64) -> Result<BigDecimal> {
    number::decimal::with_scale(decimal, scale, RoundingMode::HalfUp)
}

fn fixed(decimal: &BigDecimal, precision: usize) -> Result<String> {
    number::plain_decimal(&rounded(decimal, precision as i64)?)
}

fn scientific(decimal: &BigDecimal, precision: usize) -> Result<String> {
    if decimal.is_zero() {
        return Ok(format!("{}e+00", fixed(decimal, precision)?));
    }
    let mut exponent = exponent(decimal)?;
    let mut shortened = rounded(decimal, precision as i64 - exponent)?;
    // Rounding 9.99 up adds a digit in front.
    if self::exponent(&shortened)? > exponent {
        exponent += 1;
        shortened = rounded(decimal, precision as i64 - exponent)?;
    }
    let mut digits = String::new();
    number::write_big(&mut digits, &shortened.as_bigint_and_scale().0);
    if digits.is_empty() {
        digits.push('0');
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    Ok(format!("{first}{point}{rest}e{sign}{:02}", exponent.abs()))
}

fn general(decimal: &BigDecimal, precision: usize) -> Result<String> {
    if decimal.is_zero() {
        return fixed(decimal, precision - 1);
    }
    let shortened = rounded(decimal, precision as i64 - 1 - exponent(decimal)?)?;
    let exponent = exponent(&shortened)?;
    if (-4..precision as i64).contains(&exponent) {
        fixed(decimal, (precision as i64 - 1 - exponent).max(0) as usize)
    } else {
        scientific(decimal, precision - 1)
    }
}

/// Returns the power of ten of the first digit.
fn exponent(decimal: &BigDecimal) -> Result<i64> {
    let (digits, scale) = decimal.as_bigint_and_scale();
    Ok(digit_count(&digits)? - 1 - scale)
}

/// Adds sign and groups to digits, and pads to the width.
pub(super) fn framed(digits: &Digits, directive: &Directive<'_>) -> String {
    let flags = directive.flags;
    let (before, after) = match digits.negative {
        true if flags.parentheses => ("(", ")"),
        true => ("-", ""),
        false if flags.plus => ("+", ""),
        false if flags.space => (" ", ""),
        false => ("", ""),
    };
    let mut text = if flags.group && !digits.is_word {
        grouped(&digits.text)
    } else {
        digits.text.clone()
    };
    if flags.zero && !digits.is_word {
        let taken = before.len() + text.len() + after.len();
        let missing = directive.width.unwrap_or(0).saturating_sub(taken);
        text.insert_str(0, &"0".repeat(missing));
    }
    padded(format!("{before}{text}{after}"), directive)
}

/// Inserts a comma before every three digits of the whole part.
fn grouped(text: &str) -> String {
    let whole = text.find(['.', 'e']).unwrap_or(text.len());
    let mut out = String::with_capacity(text.len() + whole / 3);
    for (idx, char) in text[..whole].chars().enumerate() {
        if idx > 0 && (whole - idx).is_multiple_of(3) {
            out.push(',');
        }
        out.push(char);
    }
    out.push_str(&text[whole..]);
    out
}
