//! Numbers: longs with checked overflow, big integers, ratios, decimals and doubles.
//!
//! The VM's slow paths and the natives call these operations. Each has a fast path for two longs or two doubles; the
//! rest is in `arithmetic`. Contagion follows Clojure: long, big integer, ratio, decimal, double; the later kind wins.
//! An exception names the operand at fault, counted from 0.

mod arithmetic;
pub(crate) mod big;
mod bits;
mod convert;
pub(crate) mod decimal;
mod format;
mod parse;

use std::cmp::Ordering;

use super::exception::{Fault, NUMBER};
use super::meter;
use super::{BigDecimal, BigInt, BigRational, Class, Exception, Result, Signal, Value};

pub use arithmetic::{
    abs, add_promoting, check_size, inc_promoting, mul_promoting, neg_promoting, power,
    sub_promoting,
};
pub use bits::{
    bit_and, bit_not, bit_or, bit_xor, long_bits, shift_left, shift_right, unsigned_shift_right,
};
pub use convert::{
    float_to_big, lowest_bits, rationalize, shorten, to_big_decimal, to_big_int, to_float, to_int,
    to_int_in, to_short_float,
};
pub use decimal::plain as plain_decimal;
pub use decimal::{
    MathContext, RoundingMode, compare as compare_decimals, math_context, set_math_context,
};
pub(crate) use format::push_int;
pub use format::{format_float, java_float, write_decimal, write_float};
pub use format::{write_big, write_ratio};
pub use parse::{parse_big, parse_double, parse_long, parse_number};

/// A borrowed view of any number.
#[derive(Debug, Clone, Copy)]
pub enum Number<'a> {
    /// A 64-bit integer.
    Int(i64),
    /// An integer of arbitrary size.
    BigInt(&'a BigInt),
    /// A ratio.
    Ratio(&'a BigRational),
    /// A decimal.
    Decimal(&'a BigDecimal),
    /// A 64-bit floating-point number.
    Float(f64),
}

impl Value {
    /// Returns the number, if this value is a number.
    #[inline]
    pub fn as_number(&self) -> Option<Number<'_>> {
        Some(match self {
            Value::Int(int) => Number::Int(*int),
            Value::Float(float) => Number::Float(*float),
            Value::BigInt(int) => Number::BigInt(int),
            Value::Ratio(ratio) => Number::Ratio(ratio),
            Value::Decimal(decimal) => Number::Decimal(decimal),
            _ => return None,
        })
    }

    /// Tells whether this is a number of any kind.
    pub fn is_number(&self) -> bool {
        self.as_number().is_some()
    }
}

impl From<BigInt> for Value {
    fn from(int: BigInt) -> Self {
        Value::BigInt(std::rc::Rc::new(int))
    }
}

impl From<BigDecimal> for Value {
    fn from(decimal: BigDecimal) -> Self {
        Value::Decimal(std::rc::Rc::new(decimal))
    }
}

/// Converts to a ratio, or to a big integer if the denominator is 1.
impl From<BigRational> for Value {
    fn from(ratio: BigRational) -> Self {
        if ratio.is_integer() {
            Value::from(ratio.to_integer())
        } else {
            Value::Ratio(std::rc::Rc::new(ratio))
        }
    }
}

/// `+` of two numbers.
///
/// # Errors
/// When an operand is not a number, and on overflow of a long.
#[inline]
pub fn add(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(a + b)),
        _ => arithmetic::add(left, right),
    }
}

/// `-` of two numbers.
///
/// # Errors
/// As [`add`].
#[inline]
pub fn sub(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_sub(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(a - b)),
        _ => arithmetic::sub(left, right),
    }
}

/// `*` of two numbers.
///
/// # Errors
/// As [`add`].
#[inline]
pub fn mul(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_mul(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(a * b)),
        _ => arithmetic::mul(left, right),
    }
}

/// `/` of two numbers: a ratio if two integers do not divide.
///
/// # Errors
/// As [`add`]; when an exact number is divided by zero, or a decimal quotient does not terminate.
#[inline]
pub fn div(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) if *b != 0 && *b != -1 && a % b == 0 => {
            Ok(Value::Int(a / b))
        }
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(a / b)),
        _ => arithmetic::div(left, right),
    }
}

/// `quot`: the quotient, rounded towards zero.
///
/// # Errors
/// As [`add`]; when dividing by zero.
#[inline]
pub fn quot(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) if *b != 0 => {
            a.checked_div(*b).map(Value::Int).ok_or_else(overflow)
        }
        _ => arithmetic::quot(left, right),
    }
}

/// `rem`: the remainder of [`quot`], with the sign of `left`.
///
/// # Errors
/// As [`quot`].
#[inline]
pub fn rem(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) if *b != 0 => Ok(Value::Int(a.wrapping_rem(*b))),
        _ => arithmetic::rem(left, right, "rem"),
    }
}

/// `mod`: the remainder with the sign of `right`.
///
/// # Errors
/// As [`quot`].
#[inline]
pub fn modulo(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) if *b != 0 => {
            let rest = a.wrapping_rem(*b);
            Ok(Value::Int(if rest != 0 && (rest < 0) != (*b < 0) {
                rest + b
            } else {
                rest
            }))
        }
        _ => arithmetic::modulo(left, right),
    }
}

/// `-` of one number.
///
/// # Errors
/// As [`add`].
#[inline]
pub fn neg(value: &Value) -> Result<Value> {
    match value {
        Value::Int(int) => int.checked_neg().map(Value::Int).ok_or_else(overflow),
        Value::Float(float) => Ok(Value::Float(-float)),
        _ => arithmetic::neg(value),
    }
}

/// `inc`: adds one.
///
/// # Errors
/// As [`add`].
#[inline]
pub fn inc(value: &Value) -> Result<Value> {
    match value {
        Value::Int(int) => int.checked_add(1).map(Value::Int).ok_or_else(overflow),
        Value::Float(float) => Ok(Value::Float(float + 1.0)),
        _ => arithmetic::step(value, 1, "inc"),
    }
}

/// `dec`: subtracts one.
///
/// # Errors
/// As [`add`].
#[inline]
pub fn dec(value: &Value) -> Result<Value> {
    match value {
        Value::Int(int) => int.checked_sub(1).map(Value::Int).ok_or_else(overflow),
        Value::Float(float) => Ok(Value::Float(float - 1.0)),
        _ => arithmetic::step(value, -1, "dec"),
    }
}

macro_rules! relation {
    ($name:ident, $symbol:literal, $operator:tt, $test:ident) => {
        #[doc = concat!("`", $symbol, "` of two; false where one is NaN.")]
        /// ¶ # Errors When an operand is not a number.
        #[inline]
        pub fn $name(left: &Value, right: &Value) -> Result<bool> {
            match (left, right) {
                (Value::Int(a), Value::Int(b)) => Ok(a $operator b),
                (Value::Float(a), Value::Float(b)) => Ok(a $operator b),
                _ => Ok(order(left, right, $symbol)?.is_some_and(Ordering::$test)),
            }
        }
    };
}

relation!(less, "<", <, is_lt);
relation!(less_or_equal, "<=", <=, is_le);
relation!(greater, ">", >, is_gt);
relation!(greater_or_equal, ">=", >=, is_ge);

/// `==` of two numbers: equal by value, whatever their kinds.
///
/// # Errors
/// When an operand is not a number.
#[inline]
pub fn equivalent(left: &Value, right: &Value) -> Result<bool> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        (Value::Float(a), Value::Float(b)) => Ok(a == b),
        _ => Ok(order(left, right, "==")? == Some(Ordering::Equal)),
    }
}

/// Compares two numbers by value; `None` if one is NaN.
///
/// # Errors
/// When an operand is not a number; `operation` is the name of the caller.
pub fn order(left: &Value, right: &Value, operation: &str) -> Result<Option<Ordering>> {
    let (one, other) = both(left, right, operation)?;
    arithmetic::order(one, other)
}

/// Compares two numbers as `compare` does, NaN equal to everything; `None` if one is not a number.
pub fn compare_numbers(left: &Value, right: &Value) -> Option<Ordering> {
    let (left, right) = (left.as_number()?, right.as_number()?);
    // If a limit is reached, the machine stops the evaluation.
    let order = meter::without_yielding(|| arithmetic::order(left, right));
    Some(order.ok().flatten().unwrap_or(Ordering::Equal))
}

/// Tells whether two values are numbers of one category (integer, ratio, decimal, double) and equal, as `=` compares
/// them.
pub(super) fn same_number(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::BigInt(left), Value::BigInt(right)) => left == right,
        (Value::Int(int), Value::BigInt(big)) | (Value::BigInt(big), Value::Int(int)) => {
            i64::try_from(&**big).is_ok_and(|big| big == *int)
        }
        (Value::Ratio(left), Value::Ratio(right)) => left == right,
        (Value::Decimal(left), Value::Decimal(right)) => {
            meter::without_yielding(|| decimal::compare(left, right).is_ok_and(Ordering::is_eq))
        }
        _ => false,
    }
}

/// Compares a number with zero; `None` if the value is not a number.
pub fn sign(value: &Value) -> Option<Ordering> {
    use num_traits::Signed;
    Some(match value.as_number()? {
        Number::Int(int) => int.cmp(&0),
        Number::Float(float) => float.partial_cmp(&0.0)?,
        Number::BigInt(int) => int.sign().cmp(&num_bigint::Sign::NoSign),
        Number::Ratio(ratio) if ratio.is_negative() => Ordering::Less,
        Number::Ratio(_) => Ordering::Greater,
        Number::Decimal(decimal) => decimal.sign().cmp(&num_bigint::Sign::NoSign),
    })
}

fn both<'a>(
    left: &'a Value,
    right: &'a Value,
    operation: &str,
) -> Result<(Number<'a>, Number<'a>)> {
    match (left.as_number(), right.as_number()) {
        (Some(left), Some(right)) => Ok((left, right)),
        (None, _) => Err(not_a_number(operation, left, 0)),
        (_, None) => Err(not_a_number(operation, right, 1)),
    }
}

/// Returns the exception for an operand that is not a number: `argument` counts from 0.
#[cold]
pub fn not_a_number(operation: &str, value: &Value, argument: usize) -> Signal {
    let class = if value.is_nil() {
        Class::NULL_POINTER
    } else {
        Class::CLASS_CAST
    };
    let mut fault = Fault::of(value, NUMBER, argument);
    fault.function = Some(operation.into());
    let mut exception = Exception::new(class, "E0301", fault.sentence().unwrap_or_default());
    exception.fault = Some(fault);
    if value.is_nil() {
        return exception
            .hint("a look-up that finds nothing returns nil; (or x 0) returns a number instead")
            .into();
    }
    if value
        .as_str()
        .is_some_and(|text| parse_number(text).is_ok())
    {
        return exception
            .hint("a string is not a number: `parse-long` and `parse-double` read one")
            .into();
    }
    let hint = match value {
        Value::Text(_) => "a string is not a number; str joins strings",
        Value::Keyword(_) => "a keyword is not a number; (:key map) looks it up in a map",
        Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Lazy(_) | Value::Set(_) => {
            "a collection is not a number; (reduce + coll) adds its items, (count coll) counts them"
        }
        _ => "arithmetic needs numbers: check where this value comes from",
    };
    exception.hint(hint).into()
}

/// Returns the exception for a long that overflows.
#[cold]
pub fn overflow() -> Signal {
    Exception::new(Class::ARITHMETIC, "E0321", "integer overflow")
        .hint("+' -' *' inc' dec' change to big integers instead; so does a literal such as 1N")
        .into()
}

/// Returns the exception for a division by zero.
#[cold]
pub fn divide_by_zero() -> Signal {
    Exception::new(Class::ARITHMETIC, "E0322", "Divide by zero")
        .argument(1)
        .got(&Value::Int(0))
        .hint("check first whether the divisor is 0: (when-not (zero? n) (/ total n))")
        .into()
}
