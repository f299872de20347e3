//! Decimal arithmetic with Java's scales: a decimal is an integer times a power of ten.
//!
//! A math context, set by `with-precision`, rounds every result; without one division must end.

use std::cell::Cell;
use std::cmp::Ordering;

use num_integer::Integer;
use num_traits::{Signed, Zero};

use super::{BigDecimal, BigInt, BigRational, Result, divide_by_zero};
use crate::value::{Class, Exception};

pub use bigdecimal::RoundingMode;

/// How decimal results are rounded: `*math-context*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MathContext {
    /// Significant digits, at least 1.
    pub precision: u32,
    /// Which way to round; `None` refuses to: Java's UNNECESSARY.
    pub rounding: Option<RoundingMode>,
}

thread_local! {
    static CONTEXT: Cell<Option<MathContext>> = const { Cell::new(None) };
}

/// Returns the math context of this thread.
pub fn math_context() -> Option<MathContext> {
    CONTEXT.get()
}

/// Sets the math context of this thread and returns the old one.
pub fn set_math_context(context: Option<MathContext>) -> Option<MathContext> {
    CONTEXT.replace(context)
}

pub(super) fn add(left: &BigDecimal, right: &BigDecimal) -> Result<BigDecimal> {
    let (left, left_scale) = left.as_bigint_and_scale();
    let (right, right_scale) = right.as_bigint_and_scale();
    let scale = left_scale.max(right_scale);
    let sum = match left_scale.cmp(&right_scale) {
        Ordering::Equal => &*left + &*right,
        Ordering::Less => &*left * ten_to(right_scale - left_scale) + &*right,
        Ordering::Greater => &*left + &*right * ten_to(left_scale - right_scale),
    };
    rounded(BigDecimal::new(sum, scale))
}

pub(super) fn mul(left: &BigDecimal, right: &BigDecimal) -> Result<BigDecimal> {
    let (left, left_scale) = left.as_bigint_and_scale();
    let (right, right_scale) = right.as_bigint_and_scale();
    rounded(BigDecimal::new(&*left * &*right, left_scale + right_scale))
}

pub(super) fn negate(decimal: &BigDecimal) -> BigDecimal {
    let (unscaled, scale) = decimal.as_bigint_and_exponent();
    BigDecimal::new(-unscaled, scale)
}

/// The exact quotient at the smallest scale that holds it, but not below the difference of the scales.
pub(super) fn div(left: &BigDecimal, right: &BigDecimal) -> Result<BigDecimal> {
    let (left, left_scale) = left.as_bigint_and_exponent();
    let (right, right_scale) = right.as_bigint_and_exponent();
    if right.is_zero() {
        return Err(divide_by_zero());
    }
    let preferred = left_scale - right_scale;
    if left.is_zero() {
        return Ok(BigDecimal::new(left, preferred));
    }
    let common = left.gcd(&right);
    let (mut top, mut bottom) = (left / &common, right / &common);
    if bottom.is_negative() {
        (top, bottom) = (-top, -bottom);
    }
    if let Some(shift) = digits_to_divide(&bottom) {
        let quotient = top * ten_to(shift) / bottom;
        return rounded(BigDecimal::new(quotient, preferred + shift));
    }
    let Some(context) = math_context() else {
        return Err(Exception::new(
            Class::ARITHMETIC,
            "E0324",
            "Non-terminating decimal expansion; no exact representable decimal result.",
        )
        .hint("`(with-precision 10 (/ 1M 3))` rounds; `(/ 1 3)` is an exact ratio")
        .into());
    };
    // Three more digits than asked for, the last of them odd, so that no rounding takes this for a tie.
    let shift = i64::from(context.precision) + 3 + digit_count(&bottom) - digit_count(&top);
    let (top, bottom, scale) = if shift >= 0 {
        (top * ten_to(shift), bottom, preferred + shift)
    } else {
        (top, bottom * ten_to(-shift), preferred + shift)
    };
    let (quotient, rest) = top.div_rem(&bottom);
    let sticky = BigInt::from(if rest.is_negative() { -1 } else { 1 });
    rounded(BigDecimal::new(quotient * 10 + sticky, scale + 1))
}

/// The whole part of the quotient, at Java's preferred scale.
pub(super) fn quot(left: &BigDecimal, right: &BigDecimal) -> Result<BigDecimal> {
    let (one, one_scale) = left.as_bigint_and_exponent();
    let (other, other_scale) = right.as_bigint_and_exponent();
    if other.is_zero() {
        return Err(divide_by_zero());
    }
    let preferred = one_scale - other_scale;
    let mut quotient = match one_scale.cmp(&other_scale) {
        Ordering::Greater => one / (other * ten_to(preferred)),
        Ordering::Less => one * ten_to(-preferred) / other,
        Ordering::Equal => one / other,
    };
    if quotient.is_zero() {
        return Ok(BigDecimal::new(quotient, preferred));
    }
    if preferred >= 0 {
        return Ok(BigDecimal::new(quotient * ten_to(preferred), preferred));
    }
    let mut scale = 0;
    while scale > preferred {
        let (shorter, digit) = quotient.div_rem(&BigInt::from(10));
        if !digit.is_zero() {
            break;
        }
        quotient = shorter;
        scale -= 1;
    }
    Ok(BigDecimal::new(quotient, scale))
}

pub(super) fn to_ratio(decimal: &BigDecimal) -> BigRational {
    let (unscaled, scale) = decimal.as_bigint_and_exponent();
    if scale >= 0 {
        BigRational::new(unscaled, ten_to(scale))
    } else {
        BigRational::from_integer(unscaled * ten_to(-scale))
    }
}

/// Rounds to a number of significant digits; what fits stays as it is.
pub(super) fn round_to(decimal: &BigDecimal, precision: u32, mode: RoundingMode) -> BigDecimal {
    let (unscaled, scale) = decimal.as_bigint_and_scale();
    let excess = digit_count(&unscaled) - i64::from(precision);
    if excess <= 0 {
        return decimal.clone();
    }
    let shorter = decimal.with_scale_round(scale - excess, mode);
    // 9.99 to two digits is 10.0: one more digit goes.
    let (unscaled, scale) = shorter.as_bigint_and_scale();
    let excess = digit_count(&unscaled) - i64::from(precision);
    if excess <= 0 {
        return shorter;
    }
    shorter.with_scale_round(scale - excess, mode)
}

/// Rounds by the math context of this thread.
fn rounded(decimal: BigDecimal) -> Result<BigDecimal> {
    let Some(context) = math_context() else {
        return Ok(decimal);
    };
    if let Some(mode) = context.rounding {
        return Ok(round_to(&decimal, context.precision, mode));
    }
    let shorter = round_to(&decimal, context.precision, RoundingMode::Down);
    if shorter == decimal {
        return Ok(shorter);
    }
    Err(
        Exception::new(Class::ARITHMETIC, "E0324", "Rounding necessary")
            .hint("give with-precision more digits, or another :rounding than UNNECESSARY")
            .into(),
    )
}

fn digit_count(int: &BigInt) -> i64 {
    if int.is_zero() {
        return 1;
    }
    let mut count = (int.bits() as f64 * std::f64::consts::LOG10_2) as i64;
    let magnitude = int.abs();
    while magnitude >= ten_to(count) {
        count += 1;
    }
    count.max(1)
}

/// The number of decimal places that dividing by this needs; `None` where the expansion never ends.
fn digits_to_divide(divisor: &BigInt) -> Option<i64> {
    let twos = divisor.trailing_zeros().unwrap_or(0);
    let mut rest = divisor >> twos;
    let mut fives = 0u64;
    let five = BigInt::from(5);
    loop {
        let (quotient, left) = rest.div_rem(&five);
        if !left.is_zero() {
            break;
        }
        rest = quotient;
        fives += 1;
    }
    (rest == BigInt::from(1)).then(|| twos.max(fives) as i64)
}

pub(super) fn ten_to(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent.max(0)).unwrap_or(u32::MAX))
}
