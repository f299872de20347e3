//! Decimal arithmetic with Java's scales: a decimal is an integer times a power of ten.
//!
//! A math context, set by `with-precision`, rounds every result; without one, a division must terminate.

use std::cell::Cell;
use std::cmp::Ordering;

use num_integer::Integer;
use num_traits::{Signed, Zero};

use super::big::{self, div_rem, ten_to, times_ten_to};
use super::{BigDecimal, BigInt, BigRational, Result, divide_by_zero};
use crate::value::{Class, Exception};

pub use bigdecimal::RoundingMode;

/// The precision and rounding of decimal results: `*math-context*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MathContext {
    /// Significant digits, at least 1.
    pub precision: u32,
    /// The rounding mode; `None` refuses to round: Java's UNNECESSARY.
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
    if let Some(context) = math_context() {
        if left.is_zero() || right.is_zero() {
            return add_zero(left, right, context);
        }
        // An operand far below the last digit of the result only affects rounding.
        if let Some(left) = aligned(left, right, context)? {
            return sum(&left, right);
        }
        if let Some(right) = aligned(right, left, context)? {
            return sum(left, &right);
        }
    }
    sum(left, right)
}

fn sum(left: &BigDecimal, right: &BigDecimal) -> Result<BigDecimal> {
    let (left, left_scale) = left.as_bigint_and_scale();
    let (right, right_scale) = right.as_bigint_and_scale();
    let scale = left_scale.max(right_scale);
    let sum = match left_scale.cmp(&right_scale) {
        Ordering::Equal => &*left + &*right,
        Ordering::Less => times_ten_to(&left, right_scale - left_scale)? + &*right,
        Ordering::Greater => &*left + times_ten_to(&right, left_scale - right_scale)?,
    };
    rounded(BigDecimal::new(sum, scale))
}

/// Returns Java's sum of two decimals of which one is zero, at the scale nearest to the larger one that the context
/// allows.
fn add_zero(left: &BigDecimal, right: &BigDecimal, context: MathContext) -> Result<BigDecimal> {
    let preferred = scale_of(left).max(scale_of(right));
    if left.is_zero() && right.is_zero() {
        return Ok(BigDecimal::new(BigInt::ZERO, preferred));
    }
    let result = rounded(if left.is_zero() { right } else { left }.clone())?;
    let (unscaled, scale) = result.as_bigint_and_exponent();
    match scale.cmp(&preferred) {
        Ordering::Equal => Ok(result),
        Ordering::Greater => stripped(unscaled, scale, preferred),
        Ordering::Less => {
            let room = i64::from(context.precision) - big::digit_count(&unscaled)?;
            let places = room.min(preferred - scale).max(0);
            let unscaled = times_ten_to(&unscaled, places)?;
            Ok(BigDecimal::new(unscaled, scale + places))
        }
    }
}

/// Returns a replacement for `small` if only its sign matters next to `large`: Java's `preAlign`.
fn aligned(
    small: &BigDecimal,
    large: &BigDecimal,
    context: MathContext,
) -> Result<Option<BigDecimal>> {
    let (small, small_scale) = small.as_bigint_and_scale();
    let (large, large_scale) = large.as_bigint_and_scale();
    // The scales alone decide nearly all sums.
    if small_scale - large_scale < 2 {
        return Ok(None);
    }
    let last = large_scale - big::digit_count(&large)? + i64::from(context.precision);
    let first = small_scale - big::digit_count(&small)? + 1;
    if first <= large_scale + 2 || first <= last + 2 {
        return Ok(None);
    }
    let sign = BigInt::from(if small.is_negative() { -1 } else { 1 });
    Ok(Some(BigDecimal::new(sign, large_scale.max(last) + 3)))
}

fn scale_of(decimal: &BigDecimal) -> i64 {
    decimal.as_bigint_and_scale().1
}

/// Removes trailing zeros until the scale is `least`.
fn stripped(unscaled: BigInt, scale: i64, least: i64) -> Result<BigDecimal> {
    if unscaled.is_zero() {
        return Ok(BigDecimal::new(unscaled, least));
    }
    // A number has at most as many factors of ten as of two.
    let most = (scale - least).min(unscaled.trailing_zeros().unwrap_or(0) as i64);
    let (mut unscaled, mut scale) = (unscaled, scale);
    let mut left = most;
    let mut step = 1;
    while step * 2 <= left {
        step *= 2;
    }
    while step > 0 && left > 0 {
        if step <= left {
            let (shorter, rest) = div_rem(&unscaled, &ten_to(step)?)?;
            if rest.is_zero() {
                unscaled = shorter;
                scale -= step;
                left -= step;
                continue;
            }
        }
        step /= 2;
    }
    Ok(BigDecimal::new(unscaled, scale))
}

/// Returns a decimal without its trailing zeros.
///
/// # Errors
/// When a limit is reached.
pub(crate) fn without_zeros(decimal: &BigDecimal) -> Result<BigDecimal> {
    let (unscaled, scale) = decimal.as_bigint_and_exponent();
    if unscaled.is_zero() {
        return Ok(BigDecimal::zero());
    }
    stripped(unscaled, scale, i64::MIN / 2)
}

/// Compares two decimals by value.
///
/// # Errors
/// When a limit is met.
pub fn compare(left: &BigDecimal, right: &BigDecimal) -> Result<Ordering> {
    let (one, one_scale) = left.as_bigint_and_scale();
    let (other, other_scale) = right.as_bigint_and_scale();
    let signs = one.sign().cmp(&other.sign());
    if signs.is_ne() || one.is_zero() {
        return Ok(signs);
    }
    if one_scale == other_scale {
        return Ok(one.cmp(&other));
    }
    // The positions of the highest digits decide nearly all comparisons.
    let (one_length, other_length) = (length(&one) - one_scale, length(&other) - other_scale);
    if (one_length - other_length).abs() > 2 {
        let order = one_length.cmp(&other_length);
        return Ok(match one.is_negative() {
            true => order.reverse(),
            false => order,
        });
    }
    Ok(match one_scale < other_scale {
        true => times_ten_to(&one, other_scale - one_scale)?.cmp(&other),
        false => one
            .as_ref()
            .cmp(&times_ten_to(&other, one_scale - other_scale)?),
    })
}

/// Compares a decimal with a ratio by value.
///
/// # Errors
/// When a limit is met.
pub(super) fn compare_to_ratio(decimal: &BigDecimal, ratio: &BigRational) -> Result<Ordering> {
    let (unscaled, scale) = decimal.as_bigint_and_scale();
    let signs = unscaled.sign().cmp(&ratio.numer().sign());
    if signs.is_ne() || unscaled.is_zero() {
        return Ok(signs);
    }
    let lengths = length(&unscaled) - scale - length(ratio.numer()) + length(ratio.denom());
    if lengths.abs() > 3 {
        let order = lengths.cmp(&0);
        return Ok(match unscaled.is_negative() {
            true => order.reverse(),
            false => order,
        });
    }
    let one = big::mul(&unscaled, ratio.denom())?;
    Ok(match scale <= 0 {
        true => times_ten_to(&one, -scale)?.cmp(ratio.numer()),
        false => one.cmp(&times_ten_to(ratio.numer(), scale)?),
    })
}

/// Tells whether a decimal is certainly larger than any long.
pub(super) fn is_beyond_longs(decimal: &BigDecimal) -> bool {
    let (unscaled, scale) = decimal.as_bigint_and_scale();
    !unscaled.is_zero() && length(&unscaled) - scale > 20
}

/// Returns the number of digits, or one less.
fn length(int: &BigInt) -> i64 {
    (int.bits() as f64 * std::f64::consts::LOG10_2) as i64
}

pub(super) fn mul(left: &BigDecimal, right: &BigDecimal) -> Result<BigDecimal> {
    let (left, left_scale) = left.as_bigint_and_scale();
    let (right, right_scale) = right.as_bigint_and_scale();
    rounded(BigDecimal::new(
        big::mul(&left, &right)?,
        left_scale + right_scale,
    ))
}

pub(super) fn negate(decimal: &BigDecimal) -> BigDecimal {
    let (unscaled, scale) = decimal.as_bigint_and_exponent();
    BigDecimal::new(-unscaled, scale)
}

/// Returns the exact quotient at the smallest scale that can represent it, but at least the difference of the scales.
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
    let common = big::gcd(&left, &right)?;
    let mut top = div_rem(&left, &common)?.0;
    let mut bottom = div_rem(&right, &common)?.0;
    if bottom.is_negative() {
        (top, bottom) = (-top, -bottom);
    }
    if let Some(shift) = digits_to_divide(&bottom)? {
        let quotient = div_rem(&times_ten_to(&top, shift)?, &bottom)?.0;
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
    // Three more digits than requested, the last of them odd, so that rounding does not see a tie.
    let shift =
        i64::from(context.precision) + 3 + big::digit_count(&bottom)? - big::digit_count(&top)?;
    let (top, bottom, scale) = if shift >= 0 {
        (times_ten_to(&top, shift)?, bottom, preferred + shift)
    } else {
        (top, times_ten_to(&bottom, -shift)?, preferred + shift)
    };
    let (quotient, rest) = div_rem(&top, &bottom)?;
    let sticky = BigInt::from(if rest.is_negative() { -1 } else { 1 });
    rounded(BigDecimal::new(quotient * 10 + sticky, scale + 1))
}

/// Returns the whole part of the quotient, at Java's preferred scale.
pub(super) fn quot(left: &BigDecimal, right: &BigDecimal) -> Result<BigDecimal> {
    let (one, one_scale) = left.as_bigint_and_exponent();
    let (other, other_scale) = right.as_bigint_and_exponent();
    if other.is_zero() {
        return Err(divide_by_zero());
    }
    let preferred = one_scale - other_scale;
    let order = compare(&left.abs(), &right.abs())?;
    if order == Ordering::Less {
        return Ok(BigDecimal::new(BigInt::ZERO, preferred));
    }
    let quotient = match one_scale.cmp(&other_scale) {
        Ordering::Greater => div_rem(&one, &times_ten_to(&other, preferred)?)?.0,
        Ordering::Less => div_rem(&times_ten_to(&one, -preferred)?, &other)?.0,
        Ordering::Equal => div_rem(&one, &other)?.0,
    };
    if preferred >= 0 {
        return Ok(BigDecimal::new(
            times_ten_to(&quotient, preferred)?,
            preferred,
        ));
    }
    stripped(quotient, 0, preferred)
}

/// Returns the exact ratio of a decimal.
///
/// # Errors
/// When the ratio has too many digits, or a limit is met.
pub(super) fn to_ratio(decimal: &BigDecimal) -> Result<BigRational> {
    let (unscaled, scale) = decimal.as_bigint_and_exponent();
    if scale >= 0 {
        big::reduced(unscaled, ten_to(scale)?)
    } else {
        Ok(BigRational::from_integer(times_ten_to(&unscaled, -scale)?))
    }
}

/// Returns the whole part of a decimal, rounded towards zero.
///
/// # Errors
/// When it has too many digits, or a limit is reached.
pub(super) fn whole(decimal: &BigDecimal) -> Result<BigInt> {
    let (unscaled, scale) = decimal.as_bigint_and_exponent();
    if scale <= 0 {
        return times_ten_to(&unscaled, -scale);
    }
    if length(&unscaled) + 1 < scale {
        return Ok(BigInt::ZERO);
    }
    Ok(div_rem(&unscaled, &ten_to(scale)?)?.0)
}

/// Returns a decimal with a number of places, rounded if it has more.
///
/// # Errors
/// When the result has too many digits, or a limit is met.
pub(crate) fn with_scale(
    decimal: &BigDecimal,
    scale: i64,
    mode: RoundingMode,
) -> Result<BigDecimal> {
    let (unscaled, old) = decimal.as_bigint_and_exponent();
    let excess = old - scale;
    if excess <= 0 {
        return Ok(BigDecimal::new(times_ten_to(&unscaled, -excess)?, scale));
    }
    let (mut quotient, is_exact, half) = if length(&unscaled) + 2 < excess {
        // The value is less than a tenth of the last place.
        (BigInt::ZERO, unscaled.is_zero(), Ordering::Less)
    } else {
        let power = ten_to(excess)?;
        let (quotient, rest) = div_rem(&unscaled, &power)?;
        let half = (rest.abs() * 2u32).cmp(&power);
        (quotient, rest.is_zero(), half)
    };
    let is_negative = unscaled.is_negative();
    let away = match mode {
        RoundingMode::Up => true,
        RoundingMode::Down => false,
        RoundingMode::Ceiling => !is_negative,
        RoundingMode::Floor => is_negative,
        RoundingMode::HalfUp => half.is_ge(),
        RoundingMode::HalfDown => half.is_gt(),
        RoundingMode::HalfEven => half.is_gt() || half.is_eq() && quotient.is_odd(),
    };
    if away && !is_exact {
        quotient += if is_negative { -1 } else { 1 };
    }
    Ok(BigDecimal::new(quotient, scale))
}

/// Returns a decimal's text without an exponent.
///
/// # Errors
/// When it has too many digits, or a limit is reached.
pub fn plain(decimal: &BigDecimal) -> Result<String> {
    let (unscaled, scale) = decimal.as_bigint_and_exponent();
    let places = usize::try_from(scale).unwrap_or(0);
    let unscaled = times_ten_to(&unscaled, -scale)?;
    super::arithmetic::check_size(places as u64)?;
    let mut digits = String::new();
    big::write(&mut digits, &unscaled.abs())?;
    if digits.len() <= places {
        digits.insert_str(0, &"0".repeat(places + 1 - digits.len()));
    }
    if places > 0 {
        digits.insert(digits.len() - places, '.');
    }
    if unscaled.is_negative() {
        digits.insert(0, '-');
    }
    Ok(digits)
}

/// Rounds to a number of significant digits; a decimal with fewer digits is unchanged.
pub(super) fn round_to(
    decimal: &BigDecimal,
    precision: u32,
    mode: RoundingMode,
) -> Result<BigDecimal> {
    let (unscaled, scale) = decimal.as_bigint_and_scale();
    let excess = big::digit_count(&unscaled)? - i64::from(precision);
    if excess <= 0 {
        return Ok(decimal.clone());
    }
    let shorter = with_scale(decimal, scale - excess, mode)?;
    // 9.99 rounded to two digits is 10.0, so one more digit must be removed.
    let (unscaled, scale) = shorter.as_bigint_and_scale();
    let excess = big::digit_count(&unscaled)? - i64::from(precision);
    if excess <= 0 {
        return Ok(shorter);
    }
    with_scale(&shorter, scale - excess, mode)
}

/// Rounds by the math context of this thread.
fn rounded(decimal: BigDecimal) -> Result<BigDecimal> {
    let Some(context) = math_context() else {
        return Ok(decimal);
    };
    if let Some(mode) = context.rounding {
        return round_to(&decimal, context.precision, mode);
    }
    let shorter = round_to(&decimal, context.precision, RoundingMode::Down)?;
    if compare(&shorter, &decimal)?.is_eq() {
        return Ok(shorter);
    }
    Err(
        Exception::new(Class::ARITHMETIC, "E0324", "Rounding necessary")
            .hint("give with-precision more digits, or a :rounding other than UNNECESSARY")
            .into(),
    )
}

/// Returns the number of decimal places of `1 / divisor`; `None` if the expansion does not terminate.
fn digits_to_divide(divisor: &BigInt) -> Result<Option<i64>> {
    let twos = divisor.trailing_zeros().unwrap_or(0);
    let mut rest = divisor >> twos;
    let mut fives = 0u64;
    // Large powers come first, so that few divisions are needed for a divisor of many digits.
    let mut step = (rest.bits() / 2).next_power_of_two();
    while step > 0 {
        if step * 2 <= rest.bits() {
            let power = big::pow(&BigInt::from(5), u32::try_from(step).unwrap_or(u32::MAX))?;
            let (quotient, left) = div_rem(&rest, &power)?;
            if left.is_zero() {
                rest = quotient;
                fives += step;
                continue;
            }
        }
        step /= 2;
    }
    Ok((rest == BigInt::from(1)).then(|| twos.max(fives) as i64))
}
