//! Arithmetic on operands that differ in kind or do not fit into a long.

use std::borrow::Cow;
use std::cmp::Ordering;

use num_traits::{Signed, ToPrimitive, Zero};

use super::convert::{big_to_float, decimal_to_float, ratio_to_decimal, ratio_to_float};
use super::{
    BigDecimal, BigInt, BigRational, Number, Result, Value, big, both, decimal, divide_by_zero,
    not_a_number, overflow,
};
use crate::value::{Class, Exception};

/// Two operands converted to the later kind in the order of contagion.
enum Pair<'a> {
    Ints(i64, i64),
    Bigs(Cow<'a, BigInt>, Cow<'a, BigInt>),
    Ratios(Cow<'a, BigRational>, Cow<'a, BigRational>),
    Decimals(Cow<'a, BigDecimal>, Cow<'a, BigDecimal>),
    Floats(f64, f64),
}

fn pair<'a>(left: &'a Value, right: &'a Value, operation: &str) -> Result<Pair<'a>> {
    let (left, right) = both(left, right, operation)?;
    unify(left, right)
}

fn unify<'a>(left: Number<'a>, right: Number<'a>) -> Result<Pair<'a>> {
    use Number::{BigInt, Decimal, Float, Int, Ratio};
    Ok(match (left, right) {
        (Int(left), Int(right)) => Pair::Ints(left, right),
        (Float(_), _) | (_, Float(_)) => Pair::Floats(as_float(left), as_float(right)),
        (Decimal(_), _) | (_, Decimal(_)) => Pair::Decimals(as_decimal(left)?, as_decimal(right)?),
        (Ratio(_), _) | (_, Ratio(_)) => Pair::Ratios(as_ratio(left), as_ratio(right)),
        (BigInt(_), _) | (_, BigInt(_)) => Pair::Bigs(as_big(left), as_big(right)),
    })
}

pub(super) fn as_float(number: Number<'_>) -> f64 {
    match number {
        Number::Int(int) => int as f64,
        Number::Float(float) => float,
        Number::BigInt(int) => big_to_float(int),
        Number::Ratio(ratio) => ratio_to_float(ratio),
        Number::Decimal(decimal) => decimal_to_float(decimal),
    }
}

fn as_decimal(number: Number<'_>) -> Result<Cow<'_, BigDecimal>> {
    Ok(match number {
        Number::Decimal(decimal) => Cow::Borrowed(decimal),
        Number::Ratio(ratio) => Cow::Owned(ratio_to_decimal(ratio)?),
        Number::Int(_) | Number::BigInt(_) | Number::Float(_) => {
            Cow::Owned(BigDecimal::new(as_big(number).into_owned(), 0))
        }
    })
}

fn as_ratio(number: Number<'_>) -> Cow<'_, BigRational> {
    match number {
        Number::Ratio(ratio) => Cow::Borrowed(ratio),
        other => Cow::Owned(BigRational::from_integer(as_big(other).into_owned())),
    }
}

/// Returns an integer as a big integer. Other kinds of numbers are never converted with this.
fn as_big(number: Number<'_>) -> Cow<'_, BigInt> {
    match number {
        Number::BigInt(int) => Cow::Borrowed(int),
        Number::Int(int) => Cow::Owned(BigInt::from(int)),
        Number::Ratio(_) | Number::Decimal(_) | Number::Float(_) => Cow::Owned(BigInt::ZERO),
    }
}

pub(super) fn add(left: &Value, right: &Value) -> Result<Value> {
    Ok(match pair(left, right, "+")? {
        Pair::Ints(left, right) => Value::Int(left.checked_add(right).ok_or_else(overflow)?),
        Pair::Bigs(left, right) => Value::from(&*left + &*right),
        Pair::Ratios(left, right) => Value::from(big::add_ratios(&left, &right)?),
        Pair::Decimals(left, right) => Value::from(decimal::add(&left, &right)?),
        Pair::Floats(left, right) => Value::Float(left + right),
    })
}

pub(super) fn sub(left: &Value, right: &Value) -> Result<Value> {
    Ok(match pair(left, right, "-")? {
        Pair::Ints(left, right) => Value::Int(left.checked_sub(right).ok_or_else(overflow)?),
        Pair::Bigs(left, right) => Value::from(&*left - &*right),
        Pair::Ratios(left, right) => Value::from(big::add_ratios(&left, &negated(&right))?),
        Pair::Decimals(left, right) => Value::from(decimal::add(&left, &decimal::negate(&right))?),
        Pair::Floats(left, right) => Value::Float(left - right),
    })
}

pub(super) fn mul(left: &Value, right: &Value) -> Result<Value> {
    Ok(match pair(left, right, "*")? {
        Pair::Ints(left, right) => Value::Int(left.checked_mul(right).ok_or_else(overflow)?),
        Pair::Bigs(left, right) => Value::from(big::mul(&left, &right)?),
        Pair::Ratios(left, right) => Value::from(big::mul_ratios(&left, &right)?),
        Pair::Decimals(left, right) => Value::from(decimal::mul(&left, &right)?),
        Pair::Floats(left, right) => Value::Float(left * right),
    })
}

/// Maximum number of binary digits of an exact number: about five million decimal digits. A product of such numbers
/// takes less than a second, so that a run can be stopped.
const MOST_BITS: u64 = 1 << 24;

/// Rejects an exact number with more than a maximum number of binary digits.
///
/// # Errors
/// When that exceeds the maximum.
pub fn check_size(bits: u64) -> Result<()> {
    if bits <= MOST_BITS {
        return Ok(());
    }
    let message = "BigInteger would overflow supported range";
    Err(Exception::new(Class::ARITHMETIC, "E0327", message)
        .hint("an exact number has at most 5,000,000 digits; a float such as 1e300 may be enough")
        .into())
}

fn negated(ratio: &BigRational) -> BigRational {
    BigRational::new_raw(-ratio.numer(), ratio.denom().clone())
}

#[cold]
pub(super) fn div(left: &Value, right: &Value) -> Result<Value> {
    Ok(match pair(left, right, "/")? {
        Pair::Floats(left, right) => Value::Float(left / right),
        Pair::Ints(_, 0) => return Err(divide_by_zero()),
        // A quotient of longs is a long if they divide.
        Pair::Ints(left, right) => match left.checked_rem(right) {
            Some(0) => Value::Int(left.checked_div(right).ok_or_else(overflow)?),
            None => return Err(overflow()),
            Some(_) => Value::from(BigRational::new(left.into(), right.into())),
        },
        Pair::Bigs(_, right) if right.is_zero() => return Err(divide_by_zero()),
        Pair::Bigs(left, right) => {
            Value::from(big::reduced(left.into_owned(), right.into_owned())?)
        }
        Pair::Ratios(_, right) if right.is_zero() => return Err(divide_by_zero()),
        Pair::Ratios(left, right) => Value::from(big::div_ratios(&left, &right)?),
        Pair::Decimals(left, right) => Value::from(decimal::div(&left, &right)?),
    })
}

pub(super) fn quot(left: &Value, right: &Value) -> Result<Value> {
    Ok(match pair(left, right, "quot")? {
        Pair::Ints(_, 0) => return Err(divide_by_zero()),
        Pair::Ints(left, right) => Value::Int(left.checked_div(right).ok_or_else(overflow)?),
        Pair::Bigs(_, right) if right.is_zero() => return Err(divide_by_zero()),
        Pair::Bigs(left, right) => Value::from(big::div_rem(&left, &right)?.0),
        Pair::Ratios(_, right) if right.is_zero() => return Err(divide_by_zero()),
        Pair::Ratios(left, right) => Value::from(big::whole(&big::div_ratios(&left, &right)?)?),
        Pair::Decimals(left, right) => Value::from(decimal::quot(&left, &right)?),
        Pair::Floats(left, right) => Value::Float(quot_floats(left, right)?),
    })
}

fn quot_floats(left: f64, right: f64) -> Result<f64> {
    if right == 0.0 {
        return Err(divide_by_zero());
    }
    let quotient = left / right;
    if !quotient.is_finite() {
        return Err(Exception::new(Class::NUMBER_FORMAT, "E0323", "Infinite or NaN").into());
    }
    // A quotient that fits into a long is converted through one, which has no negative zero.
    Ok(match quotient.trunc() {
        0.0 => 0.0,
        whole => whole,
    })
}

pub(super) fn rem(left: &Value, right: &Value, operation: &str) -> Result<Value> {
    Ok(match pair(left, right, operation)? {
        Pair::Ints(_, 0) => return Err(divide_by_zero()),
        Pair::Ints(left, right) => Value::Int(left.wrapping_rem(right)),
        Pair::Bigs(_, right) if right.is_zero() => return Err(divide_by_zero()),
        Pair::Bigs(left, right) => Value::from(big::div_rem(&left, &right)?.1),
        Pair::Ratios(_, right) if right.is_zero() => return Err(divide_by_zero()),
        Pair::Ratios(left, right) => {
            let quotient = big::whole(&big::div_ratios(&left, &right)?)?;
            let taken = big::mul_ratios(&BigRational::from_integer(quotient), &right)?;
            Value::from(big::add_ratios(&left, &negated(&taken))?)
        }
        Pair::Decimals(left, right) => {
            let quotient = decimal::quot(&left, &right)?;
            let taken = decimal::mul(&quotient, &right)?;
            Value::from(decimal::add(&left, &decimal::negate(&taken))?)
        }
        Pair::Floats(left, right) => {
            let quotient = quot_floats(left, right)?;
            Value::Float(left - quotient * right)
        }
    })
}

pub(super) fn modulo(left: &Value, right: &Value) -> Result<Value> {
    let rest = rem(left, right, "mod")?;
    let (of_rest, of_right) = (super::sign(&rest), super::sign(right));
    if of_rest == Some(Ordering::Equal)
        || (of_rest == Some(Ordering::Greater)) == (of_right == Some(Ordering::Greater))
    {
        return Ok(rest);
    }
    super::add(&rest, right)
}

pub(super) fn neg(value: &Value) -> Result<Value> {
    match value.as_number() {
        None => Err(not_a_number("-", value, 0)),
        Some(Number::Int(int)) => int.checked_neg().map(Value::Int).ok_or_else(overflow),
        Some(Number::BigInt(int)) => Ok(Value::from(-int)),
        Some(Number::Ratio(ratio)) => Ok(Value::from(-ratio)),
        Some(Number::Decimal(decimal)) => Ok(Value::from(decimal::negate(decimal))),
        Some(Number::Float(float)) => Ok(Value::Float(-float)),
    }
}

/// Adds 1 or -1.
pub(super) fn step(value: &Value, step: i64, operation: &str) -> Result<Value> {
    if !value.is_number() {
        return Err(not_a_number(operation, value, 0));
    }
    add(value, &Value::Int(step))
}

/// `abs`; the absolute value of the least long does not fit, so it is returned unchanged.
///
/// # Errors
/// When this is not a number.
pub fn abs(value: &Value) -> Result<Value> {
    match value.as_number() {
        None => Err(not_a_number("abs", value, 0)),
        Some(Number::Int(int)) => Ok(Value::Int(int.wrapping_abs())),
        Some(Number::BigInt(int)) => Ok(Value::from(int.abs())),
        Some(Number::Ratio(ratio)) => Ok(Value::from(ratio.abs())),
        Some(Number::Decimal(decimal)) => Ok(Value::from(decimal.abs())),
        Some(Number::Float(float)) => Ok(Value::Float(float.abs())),
    }
}

macro_rules! promoting {
    ($name:ident, $checked:ident, $plain:ident, $symbol:literal, $operator:tt) => {
        #[doc = concat!("`", $symbol, "` of two: a big integer where a long does not suffice.")]
        /// ¶ # Errors When an operand is not a number.
        pub fn $name(left: &Value, right: &Value) -> Result<Value> {
            match (left, right) {
                (Value::Int(left), Value::Int(right)) => Ok(match left.$checked(*right) {
                    Some(int) => Value::Int(int),
                    None => Value::from(BigInt::from(*left) $operator BigInt::from(*right)),
                }),
                _ => super::$plain(left, right),
            }
        }
    };
}

promoting!(add_promoting, checked_add, add, "+'", +);
promoting!(sub_promoting, checked_sub, sub, "-'", -);
promoting!(mul_promoting, checked_mul, mul, "*'", *);

/// `-'` of one number.
///
/// # Errors
/// When this is not a number.
pub fn neg_promoting(value: &Value) -> Result<Value> {
    match value {
        Value::Int(i64::MIN) => Ok(Value::from(-BigInt::from(i64::MIN))),
        _ => super::neg(value),
    }
}

/// `inc'` for a step of 1, `dec'` for -1.
///
/// # Errors
/// When this is not a number.
pub fn inc_promoting(value: &Value, by: i64, operation: &str) -> Result<Value> {
    if !value.is_number() {
        return Err(not_a_number(operation, value, 0));
    }
    add_promoting(value, &Value::Int(by))
}

/// Raises an exact integer to a whole power.
///
/// # Errors
/// When the power has too many digits, or a limit is reached.
pub fn power(base: &BigInt, exponent: u32) -> Result<BigInt> {
    big::pow(base, exponent)
}

/// Compares by value; `None` if one is NaN.
///
/// # Errors
/// When a limit is reached.
pub(super) fn order(left: Number<'_>, right: Number<'_>) -> Result<Option<Ordering>> {
    Ok(match (left, right) {
        // A ratio and a decimal are compared exactly, even if the ratio has no decimal representation.
        (Number::Ratio(ratio), Number::Decimal(decimal)) => {
            Some(decimal::compare_to_ratio(decimal, ratio)?.reverse())
        }
        (Number::Decimal(decimal), Number::Ratio(ratio)) => {
            Some(decimal::compare_to_ratio(decimal, ratio)?)
        }
        (Number::BigInt(left), Number::Int(right)) => Some(match left.to_i64() {
            Some(left) => left.cmp(&right),
            None => left.sign().cmp(&num_bigint::Sign::NoSign),
        }),
        (Number::Int(_), Number::BigInt(_)) => order(right, left)?.map(Ordering::reverse),
        _ => match unify(left, right)? {
            Pair::Ints(left, right) => Some(left.cmp(&right)),
            Pair::Bigs(left, right) => Some(left.cmp(&right)),
            Pair::Ratios(left, right) => Some(big::compare_ratios(&left, &right)?),
            Pair::Decimals(left, right) => Some(decimal::compare(&left, &right)?),
            Pair::Floats(left, right) => left.partial_cmp(&right),
        },
    })
}
