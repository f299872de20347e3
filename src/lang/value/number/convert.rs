//! Conversions between kinds of numbers, with Java's ranges and rounding.

use num_traits::{FromPrimitive, ToPrimitive, Zero};

use super::{
    BigDecimal, BigInt, BigRational, Number, Result, Value, big, decimal, divide_by_zero,
    format_float, not_a_number,
};
use crate::value::{Class, Exception, Signal};

/// Returns the nearest double.
pub(super) fn big_to_float(int: &BigInt) -> f64 {
    int.to_f64().unwrap_or(f64::NAN)
}

/// Returns the nearest double.
pub(super) fn decimal_to_float(decimal: &BigDecimal) -> f64 {
    /// A double is determined by its first 768 digits, and by whether any others follow.
    const DECISIVE: i64 = 800;
    let (mut unscaled, mut scale) = decimal.as_bigint_and_exponent();
    let excess = (unscaled.bits() as f64 * std::f64::consts::LOG10_2) as i64 - DECISIVE;
    if excess > DECISIVE {
        let divided = big::ten_to(excess).and_then(|power| big::div_rem(&unscaled, &power));
        // If a limit is reached, the machine stops the evaluation.
        let Ok((first, rest)) = divided else {
            return f64::NAN;
        };
        unscaled = first * 10 + (rest.sign() as i8 as i64 - 1);
        scale -= excess - 1;
    }
    format!("{unscaled}e{}", -scale).parse().unwrap_or(f64::NAN)
}

/// Returns the double nearest to the ratio's first 16 digits, as Clojure does.
pub(super) fn ratio_to_float(ratio: &BigRational) -> f64 {
    const DIGITS: i64 = 18;
    let (top, bottom) = (ratio.numer(), ratio.denom());
    let length = |int: &BigInt| (int.bits() as f64 * std::f64::consts::LOG10_2) as i64;
    let shift = DIGITS + length(bottom) - length(top);
    let divided = if shift >= 0 {
        big::times_ten_to(top, shift).and_then(|top| big::div_rem(&top, bottom))
    } else {
        big::times_ten_to(bottom, -shift).and_then(|bottom| big::div_rem(top, &bottom))
    };
    // If a limit is reached, the machine stops the evaluation.
    let Ok((quotient, rest)) = divided else {
        return f64::NAN;
    };
    // The last digit is never zero if there is a remainder, so that rounding does not see a tie.
    let sticky = BigInt::from(rest.sign() as i8 as i64 - 1);
    let long = BigDecimal::new(quotient * 10 + sticky, shift + 1);
    let short = decimal::round_to(&long, 16, decimal::RoundingMode::HalfEven);
    short.map_or(f64::NAN, |short| decimal_to_float(&short))
}

/// Returns the decimal of a ratio, if it has one.
pub(super) fn ratio_to_decimal(ratio: &BigRational) -> Result<BigDecimal> {
    decimal::div(
        &BigDecimal::new(ratio.numer().clone(), 0),
        &BigDecimal::new(ratio.denom().clone(), 0),
    )
}

/// Truncates a double to an integer; `None` for NaN and the infinities.
pub fn float_to_big(float: f64) -> Option<BigInt> {
    BigInt::from_f64(float.trunc())
}

/// Returns the double of a number: `double`.
///
/// # Errors
/// When this is not a number.
pub fn to_float(value: &Value, operation: &str) -> Result<f64> {
    value
        .as_number()
        .map(super::arithmetic::as_float)
        .ok_or_else(|| not_a_number(operation, value, 0))
}

/// Converts a number to the double that prints the same digits as a 32-bit float: `float`.
///
/// # Errors
/// When this is not a number, or out of range.
pub fn to_short_float(value: &Value, operation: &str) -> Result<f64> {
    let float = to_float(value, operation)?;
    if float.abs() > f64::from(f32::MAX) {
        return Err(out_of_range(value, "float"));
    }
    Ok(shorten(float))
}

/// Rounds to 32-bit precision; the result prints the same digits as such a float.
pub fn shorten(float: f64) -> f64 {
    let short = float as f32;
    if !short.is_finite() {
        return f64::from(short);
    }
    short.to_string().parse().unwrap_or(float)
}

/// Returns the lowest 64 bits of a number, truncated, or the code of a character.
///
/// # Errors
/// When this is neither.
pub fn lowest_bits(value: &Value, operation: &str) -> Result<i64> {
    match value {
        Value::Int(int) => Ok(*int),
        Value::Float(float) => Ok(*float as i64),
        Value::Char(char) => Ok(i64::from(*char as u32)),
        value => {
            let big = to_big_int(value, operation)?;
            let low = big.iter_u64_digits().next().unwrap_or(0) as i64;
            Ok(if big.sign() == num_bigint::Sign::Minus {
                low.wrapping_neg()
            } else {
                low
            })
        }
    }
}

/// Truncates a number or takes the code of a character: `long`.
///
/// # Errors
/// When this is neither, or out of range.
pub fn to_int(value: &Value, operation: &str) -> Result<i64> {
    if let Value::Char(char) = value {
        return Ok(i64::from(*char as u32));
    }
    let out_of_range = || out_of_range(value, "long");
    match value.as_number() {
        None => Err(not_a_number(operation, value, 0)),
        Some(Number::Int(int)) => Ok(int),
        Some(Number::Float(float)) => {
            if float.is_nan() {
                Ok(0)
            } else if (-9_223_372_036_854_775_808.0..=9_223_372_036_854_775_807.0).contains(&float)
            {
                Ok(float as i64)
            } else {
                Err(out_of_range())
            }
        }
        Some(Number::BigInt(int)) => int.to_i64().ok_or_else(out_of_range),
        Some(Number::Ratio(ratio)) => big::whole(ratio)?.to_i64().ok_or_else(out_of_range),
        Some(Number::Decimal(decimal)) if decimal::is_beyond_longs(decimal) => Err(out_of_range()),
        Some(Number::Decimal(decimal)) => {
            decimal::whole(decimal)?.to_i64().ok_or_else(out_of_range)
        }
    }
}

/// Like [`to_int`], for a smaller type: `name` is `int`, `short`, `byte` or `char`.
///
/// # Errors
/// As [`to_int`].
pub fn to_int_in(value: &Value, range: std::ops::RangeInclusive<i64>, name: &str) -> Result<i64> {
    if let Value::Float(float) = value
        && (*float < *range.start() as f64 || *float > *range.end() as f64)
    {
        return Err(out_of_range(value, name));
    }
    match to_int(value, name) {
        Ok(int) if range.contains(&int) => Ok(int),
        Ok(_) => Err(out_of_range(value, name)),
        Err(_) if value.is_number() => Err(out_of_range(value, name)),
        Err(error) => Err(error),
    }
}

#[cold]
fn out_of_range(value: &Value, name: &str) -> Signal {
    let shown = match value {
        Value::Float(float) => super::java_float(*float),
        _ => crate::value::print::brief(value),
    };
    Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0326",
        format!("Value out of range for {name}: {shown}"),
    )
    .argument(0)
    .into()
}

/// `bigint`: truncates a number or reads a string.
///
/// # Errors
/// When this is neither, or has no integer.
pub fn to_big_int(value: &Value, operation: &str) -> Result<BigInt> {
    match value.as_number() {
        Some(Number::Int(int)) => Ok(BigInt::from(int)),
        Some(Number::BigInt(int)) => Ok(int.clone()),
        Some(Number::Ratio(ratio)) => big::whole(ratio),
        Some(Number::Decimal(decimal)) => decimal::whole(decimal),
        // Converted through the digits that it prints, like the decimal of a double.
        Some(Number::Float(float)) if float.is_finite() => {
            let decimal = super::parse::decimal(&format_float(float));
            let decimal = decimal.ok_or_else(|| no_number(value))?;
            decimal::whole(&decimal)
        }
        Some(Number::Float(_)) => Err(no_number(value)),
        None => match value.as_str() {
            Some(text) => big::parse(text, 10).ok_or_else(|| no_number(value)),
            None => Err(not_a_number(operation, value, 0)),
        },
    }
}

/// `bigdec`: converts a number or reads a string.
///
/// # Errors
/// When this is neither, or has no decimal.
pub fn to_big_decimal(value: &Value, operation: &str) -> Result<BigDecimal> {
    match value.as_number() {
        Some(Number::Int(int)) => Ok(BigDecimal::new(BigInt::from(int), 0)),
        Some(Number::BigInt(int)) => Ok(BigDecimal::new(int.clone(), 0)),
        Some(Number::Ratio(ratio)) => ratio_to_decimal(ratio),
        Some(Number::Decimal(decimal)) => Ok(decimal.clone()),
        Some(Number::Float(float)) if float.is_finite() => {
            super::parse::decimal(&format_float(float)).ok_or_else(|| no_number(value))
        }
        Some(Number::Float(_)) => Err(no_number(value)),
        None => match value.as_str() {
            Some(text) => super::parse::decimal(text).ok_or_else(|| no_number(value)),
            None => Err(not_a_number(operation, value, 0)),
        },
    }
}

#[cold]
fn no_number(value: &Value) -> Signal {
    Exception::new(
        Class::NUMBER_FORMAT,
        "E0323",
        format!(
            "cannot convert {} to a number",
            crate::value::print::brief(value)
        ),
    )
    .argument(0)
    .into()
}

/// `rationalize`: the exact ratio of a decimal, or of the digits that a double prints.
///
/// # Errors
/// When this is not a number, or infinite.
pub fn rationalize(value: &Value) -> Result<Value> {
    match value.as_number() {
        None => Err(not_a_number("rationalize", value, 0)),
        Some(Number::Float(_) | Number::Decimal(_)) => {
            let ratio = decimal::to_ratio(&to_big_decimal(value, "rationalize")?)?;
            if ratio.denom().is_zero() {
                return Err(divide_by_zero());
            }
            Ok(Value::from(ratio))
        }
        Some(Number::Int(_) | Number::BigInt(_) | Number::Ratio(_)) => Ok(value.clone()),
    }
}
