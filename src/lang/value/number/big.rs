//! Arithmetic on large integers, in pieces that are paid for before they are computed, so that limits act in between.
//!
//! Small operands go to the library at once. The sizes of results are checked before anything is computed.

use std::cmp::Ordering;

use num_bigint::{BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::arithmetic::check_size;
use super::{BigInt, BigRational, Result};
use crate::value::meter;

/// Maximum size in bits of products that the library computes in one call.
const MUL_AT_ONCE: u64 = 1 << 20;
/// Maximum size in bits of divisors that the library handles in one call.
const DIV_AT_ONCE: u64 = 1 << 15;
/// Maximum size in bits of numbers whose common divisor the library computes in one call.
const GCD_AT_ONCE: u64 = 1 << 12;
/// Maximum number of digits that are written or read in one call.
const TEXT_AT_ONCE: usize = 1 << 12;
/// Cost of a common divisor of small numbers, in multiplications: the algorithm works bit by bit.
const GCD_ROUNDS: u64 = 64;
/// Bits of a word of the library.
const WORD: u64 = 64;

fn words(bits: u64) -> u64 {
    bits / WORD + 1
}

/// Pays for a number of multiplications of words.
fn pay(multiplications: u64) -> Result<()> {
    let units = u32::try_from(multiplications / 32).unwrap_or(u32::MAX);
    meter::spend_and_yield(units)
}

/// Size in bits up to which numbers cost hardly more than machine words.
const FREE: u64 = 1 << 8;

/// Pays for an operation that the library does in one call, on numbers of this size in bits.
fn pay_small(bits: u64, rounds: u64) -> Result<()> {
    match bits <= FREE {
        true => Ok(()),
        false => pay(words(bits) * words(bits) * rounds),
    }
}

/// `left * right`.
///
/// # Errors
/// When the product has too many digits, or a limit is met.
pub(crate) fn mul(left: &BigInt, right: &BigInt) -> Result<BigInt> {
    let bits = left.bits().saturating_add(right.bits());
    if bits <= GCD_AT_ONCE {
        pay_small(bits, 1)?;
        return Ok(left * right);
    }
    check_size(bits)?;
    let product = product(left.magnitude(), right.magnitude())?;
    Ok(BigInt::from_biguint(left.sign() * right.sign(), product))
}

fn product(left: &BigUint, right: &BigUint) -> Result<BigUint> {
    let (long, short) = match left.bits() >= right.bits() {
        true => (left, right),
        false => (right, left),
    };
    if long.bits() <= MUL_AT_ONCE || short.bits() <= WORD {
        pay(words(long.bits()) * words(short.bits()))?;
        return Ok(long * short);
    }
    let half = words(long.bits()) / 2 * WORD;
    let (long_high, long_low) = split(long, half);
    if short.bits() <= half {
        return Ok((product(&long_high, short)? << half) + product(&long_low, short)?);
    }
    let (short_high, short_low) = split(short, half);
    let high = product(&long_high, &short_high)?;
    let low = product(&long_low, &short_low)?;
    let middle = product(&(long_high + long_low), &(short_high + short_low))? - &high - &low;
    Ok((high << (2 * half)) + (middle << half) + low)
}

/// Splits a number into the bits from `at` on, and those below.
fn split(number: &BigUint, at: u64) -> (BigUint, BigUint) {
    let high = number >> at;
    let low = low_bits(number, at);
    (high, low)
}

fn low_bits(number: &BigUint, count: u64) -> BigUint {
    let whole = (count / WORD) as usize;
    let mut digits: Vec<u32> = Vec::with_capacity(2 * whole);
    digits.extend(number.iter_u32_digits().take(2 * whole));
    BigUint::new(digits)
}

/// Quotient and remainder, as Rust's `/` and `%` round. The divisor is not zero.
///
/// # Errors
/// When a limit is met.
pub(crate) fn div_rem(left: &BigInt, right: &BigInt) -> Result<(BigInt, BigInt)> {
    if left.bits() <= GCD_AT_ONCE {
        pay_small(left.bits(), 1)?;
        return Ok(left.div_rem(right));
    }
    let (quotient, rest) = divide(left.magnitude(), right.magnitude())?;
    let sign = left.sign() * right.sign();
    Ok((
        BigInt::from_biguint(sign, quotient),
        BigInt::from_biguint(left.sign(), rest),
    ))
}

fn divide(left: &BigUint, right: &BigUint) -> Result<(BigUint, BigUint)> {
    if left < right {
        return Ok((BigUint::ZERO, left.clone()));
    }
    if right.bits() <= WORD {
        pay(words(left.bits()) * 8)?;
        return Ok(left.div_rem(right));
    }
    if right.bits() <= DIV_AT_ONCE {
        return in_blocks(left, DIV_AT_ONCE, |block| {
            pay(words(block.bits()) * words(right.bits()))?;
            Ok(block.div_rem(right))
        });
    }
    // The divisor is scaled to a length that can be halved down to what the library takes, with its highest bit set.
    let mut halvings = 0;
    while right.bits() >> halvings > DIV_AT_ONCE {
        halvings += 1;
    }
    let unit = WORD << halvings;
    let length = right.bits().div_ceil(unit) * unit;
    let shift = length - right.bits();
    let divisor = right << shift;
    let (quotient, rest) = in_blocks(&(left << shift), length, |block| {
        two_by_one(block, &divisor, length)
    })?;
    Ok((quotient, rest >> shift))
}

/// Divides block by block from the top: `step` divides the remainder so far together with the next block.
fn in_blocks(
    left: &BigUint,
    length: u64,
    mut step: impl FnMut(&BigUint) -> Result<(BigUint, BigUint)>,
) -> Result<(BigUint, BigUint)> {
    let (mut quotient, mut rest) = (Vec::new(), BigUint::ZERO);
    let digits: Vec<u32> = left.iter_u32_digits().collect();
    let block = (length / 32) as usize;
    for part in digits.chunks(block).rev() {
        let (next, left) = step(&((rest << length) + BigUint::new(part.to_vec())))?;
        rest = left;
        quotient.push(next);
    }
    // Each block has its own position, so the blocks are joined, not added.
    let mut joined = Vec::with_capacity(digits.len());
    for part in quotient.iter().rev() {
        let start = joined.len();
        joined.extend(part.iter_u32_digits());
        joined.resize(start + block, 0);
    }
    Ok((BigUint::new(joined), rest))
}

/// Divides a number of up to twice the divisor's length, as Burnikel and Ziegler do.
fn two_by_one(left: &BigUint, right: &BigUint, length: u64) -> Result<(BigUint, BigUint)> {
    if length <= DIV_AT_ONCE || !length.is_multiple_of(2 * WORD) {
        pay(words(length) * words(length))?;
        return Ok(left.div_rem(right));
    }
    let half = length / 2;
    let (high, low) = three_by_two(&(left >> half), right, half)?;
    let next = (low << half) + low_bits(left, half);
    let (second, rest) = three_by_two(&next, right, half)?;
    Ok(((high << half) + second, rest))
}

fn three_by_two(left: &BigUint, right: &BigUint, half: u64) -> Result<(BigUint, BigUint)> {
    let (right_high, right_low) = split(right, half);
    let top = left >> half;
    let (mut quotient, high) = if &top >> half < right_high {
        two_by_one(&top, &right_high, half)?
    } else {
        let most = (BigUint::one() << half) - 1u32;
        let rest = &top - (&right_high << half) + &right_high;
        (most, rest)
    };
    let taken = product(&quotient, &right_low)?;
    let mut rest = BigInt::from((high << half) + low_bits(left, half)) - BigInt::from(taken);
    let divisor = BigInt::from(right.clone());
    while rest.is_negative() {
        quotient -= 1u32;
        rest += &divisor;
    }
    let rest = rest.to_biguint().unwrap_or_default();
    Ok((quotient, rest))
}

/// The greatest common divisor, never negative.
///
/// # Errors
/// When a limit is met.
pub(crate) fn gcd(left: &BigInt, right: &BigInt) -> Result<BigInt> {
    let (mut left, mut right) = match left.magnitude() >= right.magnitude() {
        true => (left.abs(), right.abs()),
        false => (right.abs(), left.abs()),
    };
    // Lehmer's algorithm: several steps of Euclid's algorithm are taken on the highest bits alone.
    while right.bits() > GCD_AT_ONCE {
        pay(words(left.bits()) * 16)?;
        let step = match left.bits() - right.bits() < 32 {
            true => highest_steps(&left, &right),
            false => None,
        };
        (left, right) = match step {
            Some([a, b, c, d]) => (&left * a + &right * b, &left * c + &right * d),
            None => {
                let rest = div_rem(&left, &right)?.1;
                (right, rest)
            }
        };
    }
    if right.is_zero() {
        return Ok(left);
    }
    let rest = div_rem(&left, &right)?.1;
    pay_small(right.bits(), GCD_ROUNDS)?;
    Ok(right.gcd(&rest))
}

/// Returns the factors of several steps of Euclid's algorithm, as far as the highest 62 bits determine them.
fn highest_steps(left: &BigInt, right: &BigInt) -> Option<[i64; 4]> {
    let shift = left.bits() - 62;
    let mut x = (left >> shift).to_i128()?;
    let mut y = (right >> shift).to_i128()?;
    let (mut a, mut b, mut c, mut d) = (1_i128, 0_i128, 0_i128, 1_i128);
    loop {
        if y + c == 0 || y + d == 0 {
            break;
        }
        let quotient = (x + a) / (y + c);
        if quotient != (x + b) / (y + d) {
            break;
        }
        let next = [a - quotient * c, b - quotient * d];
        if next
            .iter()
            .any(|factor| factor.abs() > i128::from(i64::MAX))
        {
            break;
        }
        (a, c) = (c, next[0]);
        (b, d) = (d, next[1]);
        (x, y) = (y, x - quotient * y);
    }
    if b == 0 {
        return None;
    }
    let small = |factor: i128| i64::try_from(factor).ok();
    Some([small(a)?, small(b)?, small(c)?, small(d)?])
}

/// Returns `left` modulo a modulus, never negative.
///
/// # Errors
/// When a limit is reached.
pub(crate) fn modulo(left: &BigInt, modulus: &BigInt) -> Result<BigInt> {
    let rest = div_rem(left, modulus)?.1;
    Ok(match rest.is_negative() {
        true => rest + modulus,
        false => rest,
    })
}

/// Returns `base` to the power of a non-negative exponent, modulo a modulus.
///
/// # Errors
/// When a limit is reached.
pub(crate) fn mod_pow(base: &BigInt, exponent: &BigInt, modulus: &BigInt) -> Result<BigInt> {
    let size = exponent.bits().max(modulus.bits());
    if size <= GCD_AT_ONCE / 2 {
        pay(words(modulus.bits()).pow(2) * exponent.bits())?;
        return Ok(modulo(base, modulus)?.modpow(exponent, modulus));
    }
    let base = modulo(base, modulus)?;
    let mut result = modulo(&BigInt::one(), modulus)?;
    for bit in (0..exponent.bits()).rev() {
        pay(words(modulus.bits()))?;
        result = modulo(&mul(&result, &result)?, modulus)?;
        if exponent.bit(bit) {
            result = modulo(&mul(&result, &base)?, modulus)?;
        }
    }
    Ok(result)
}

/// Returns the multiplicative inverse of `number` modulo a modulus; `None` if they have a common divisor.
///
/// # Errors
/// When a limit is reached.
pub(crate) fn mod_inverse(number: &BigInt, modulus: &BigInt) -> Result<Option<BigInt>> {
    let (mut left, mut right) = (modulus.clone(), modulo(number, modulus)?);
    let (mut before, mut factor) = (BigInt::ZERO, BigInt::one());
    while !right.is_zero() {
        pay(words(left.bits()) * 4)?;
        let (quotient, rest) = div_rem(&left, &right)?;
        let next = before - mul(&quotient, &factor)?;
        (left, right) = (right, rest);
        (before, factor) = (factor, next);
    }
    match left.is_one() {
        true => modulo(&before, modulus).map(Some),
        false => Ok(None),
    }
}

/// Returns the integer square root of a non-negative number.
///
/// # Errors
/// When a limit is reached.
pub(crate) fn sqrt(number: &BigInt) -> Result<BigInt> {
    if number.bits() <= GCD_AT_ONCE {
        return Ok(number.sqrt());
    }
    // Newton's method, from above: the first guess that does not shrink is the root.
    let mut root = BigInt::one() << number.bits().div_ceil(2);
    loop {
        let next = (&root + div_rem(number, &root)?.0) >> 1u32;
        if next >= root {
            return Ok(root);
        }
        root = next;
    }
}

/// Raises a number to a power.
///
/// # Errors
/// When the power has too many digits, or a limit is reached.
pub(crate) fn pow(base: &BigInt, exponent: u32) -> Result<BigInt> {
    // The powers of 0, 1 and -1 do not grow.
    if base.bits() > 1 {
        let bits = (base.bits() - 1).saturating_mul(u64::from(exponent));
        check_size(bits)?;
    }
    if base.bits() <= 1 || base.bits().saturating_mul(u64::from(exponent)) <= GCD_AT_ONCE {
        return Ok(base.pow(exponent));
    }
    let mut result = BigInt::one();
    for bit in (0..u32::BITS - exponent.leading_zeros()).rev() {
        result = mul(&result, &result)?;
        if exponent & (1 << bit) != 0 {
            result = mul(&result, base)?;
        }
    }
    Ok(result)
}

/// Returns `10` to a power; 1 for a negative one.
///
/// # Errors
/// As [`pow`].
pub(crate) fn ten_to(exponent: i64) -> Result<BigInt> {
    let Ok(exponent) = u64::try_from(exponent) else {
        return Ok(BigInt::one());
    };
    // log2(10) is a little more than 3.32.
    check_size(exponent.saturating_mul(332) / 100)?;
    let exponent = u32::try_from(exponent).unwrap_or(u32::MAX);
    Ok(pow(&BigInt::from(5), exponent)? << exponent)
}

/// `number * 10^places`.
///
/// # Errors
/// As [`pow`].
pub(crate) fn times_ten_to(number: &BigInt, places: i64) -> Result<BigInt> {
    if number.is_zero() || places <= 0 {
        return Ok(number.clone());
    }
    check_size(
        number
            .bits()
            .saturating_add(places.unsigned_abs().saturating_mul(332) / 100),
    )?;
    mul(number, &ten_to(places)?)
}

/// Returns the number of decimal digits; 1 for zero.
///
/// # Errors
/// When a limit is reached.
pub(crate) fn digit_count(number: &BigInt) -> Result<i64> {
    if number.is_zero() {
        return Ok(1);
    }
    let least = ((number.bits() - 1) as f64 * std::f64::consts::LOG10_2) as i64;
    // The estimate may be off by one, and the number may begin with another digit.
    let mut count = least.max(1);
    let mut power = ten_to(count)?;
    while number.magnitude() >= power.magnitude() {
        count += 1;
        power *= 10;
    }
    Ok(count)
}

/// Writes the decimal digits of a number, with its sign.
///
/// # Errors
/// When a limit is reached; some digits may have been written then.
pub(crate) fn write(out: &mut String, number: &BigInt) -> Result<()> {
    use std::fmt::Write;
    if number.bits() <= GCD_AT_ONCE {
        pay_small(number.bits(), 1)?;
        let _ = write!(out, "{number}");
        return Ok(());
    }
    if number.is_negative() {
        out.push('-');
    }
    let powers = powers_for(number.bits() as usize * 302 / 1000)?;
    write_part(out, number.magnitude(), &powers, false)
}

/// Returns `10^TEXT_AT_ONCE` and its repeated squares, up to half of the digits.
fn powers_for(digits: usize) -> Result<Vec<BigInt>> {
    let mut powers = Vec::new();
    let mut covered = TEXT_AT_ONCE;
    while covered < digits + 1 {
        let next = match powers.last() {
            None => ten_to(TEXT_AT_ONCE as i64)?,
            Some(last) => mul(last, last)?,
        };
        powers.push(next);
        covered *= 2;
    }
    Ok(powers)
}

/// `padded`: whether to pad with leading zeros to the number of digits that the powers cover.
fn write_part(out: &mut String, number: &BigUint, powers: &[BigInt], padded: bool) -> Result<()> {
    let Some((power, smaller)) = powers.split_last() else {
        pay(words(number.bits()).pow(2) * 8)?;
        let digits = number.to_string();
        if padded {
            let missing = TEXT_AT_ONCE.saturating_sub(digits.len());
            out.extend(std::iter::repeat_n('0', missing));
        }
        out.push_str(&digits);
        return Ok(());
    };
    let (high, low) = divide(number, power.magnitude())?;
    if padded || !high.is_zero() {
        write_part(out, &high, smaller, padded)?;
        write_part(out, &low, smaller, true)
    } else {
        write_part(out, &low, smaller, false)
    }
}

/// Parses digits in a base, with an optional sign; `None` for any other text, and when a limit is reached.
pub(crate) fn parse(text: &str, radix: u32) -> Option<BigInt> {
    if text.len() <= TEXT_AT_ONCE {
        return BigInt::parse_bytes(text.as_bytes(), radix);
    }
    let (sign, digits) = match text.as_bytes()[0] {
        b'-' => (Sign::Minus, &text[1..]),
        b'+' => (Sign::Plus, &text[1..]),
        _ => (Sign::Plus, text),
    };
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let bits = (digits.len() as f64 * f64::from(radix).log2()) as u64;
    check_size(bits).ok()?;
    let mut powers = vec![pow(&BigInt::from(radix), TEXT_AT_ONCE as u32).ok()?];
    while TEXT_AT_ONCE << powers.len() < digits.len() {
        let last = powers.last()?;
        powers.push(mul(last, last).ok()?);
    }
    let number = parse_part(digits, radix, &powers)?;
    Some(if sign == Sign::Minus { -number } else { number })
}

fn parse_part(digits: &str, radix: u32, powers: &[BigInt]) -> Option<BigInt> {
    if digits.len() <= TEXT_AT_ONCE {
        pay(words(digits.len() as u64 * 4).pow(2)).ok()?;
        return BigInt::parse_bytes(digits.as_bytes(), radix);
    }
    let (power, smaller) = powers.split_last()?;
    let low = TEXT_AT_ONCE << smaller.len();
    if digits.len() <= low {
        return parse_part(digits, radix, smaller);
    }
    let (high, rest) = digits.split_at(digits.len() - low);
    let high = mul(&parse_part(high, radix, smaller)?, power).ok()?;
    Some(high + parse_part(rest, radix, smaller)?)
}

/// Returns a ratio in lowest terms. The denominator is not zero.
///
/// # Errors
/// When a limit is met.
pub(crate) fn reduced(top: BigInt, bottom: BigInt) -> Result<BigRational> {
    let bits = top.bits().max(bottom.bits());
    if bits <= GCD_AT_ONCE {
        pay_small(bits, GCD_ROUNDS)?;
        return Ok(BigRational::new(top, bottom));
    }
    let common = gcd(&top, &bottom)?;
    let (mut top, mut bottom) = match common.is_one() {
        true => (top, bottom),
        false => (div_rem(&top, &common)?.0, div_rem(&bottom, &common)?.0),
    };
    if bottom.is_negative() {
        (top, bottom) = (-top, -bottom);
    }
    Ok(BigRational::new_raw(top, bottom))
}

/// `left + right`.
///
/// # Errors
/// When the sum has too many digits, or a limit is met.
pub(crate) fn add_ratios(left: &BigRational, right: &BigRational) -> Result<BigRational> {
    let top = mul(left.numer(), right.denom())? + mul(right.numer(), left.denom())?;
    reduced(top, mul(left.denom(), right.denom())?)
}

/// `left * right`.
///
/// # Errors
/// As [`add_ratios`].
pub(crate) fn mul_ratios(left: &BigRational, right: &BigRational) -> Result<BigRational> {
    let top = mul(left.numer(), right.numer())?;
    reduced(top, mul(left.denom(), right.denom())?)
}

/// Returns `left / right`; `right` is not zero.
///
/// # Errors
/// As [`add_ratios`].
pub(crate) fn div_ratios(left: &BigRational, right: &BigRational) -> Result<BigRational> {
    let top = mul(left.numer(), right.denom())?;
    reduced(top, mul(left.denom(), right.numer())?)
}

/// Returns the whole part of a ratio, rounded towards zero.
///
/// # Errors
/// When a limit is reached.
pub(crate) fn whole(ratio: &BigRational) -> Result<BigInt> {
    Ok(div_rem(ratio.numer(), ratio.denom())?.0)
}

/// Compares two ratios.
///
/// # Errors
/// When a limit is met.
pub(crate) fn compare_ratios(left: &BigRational, right: &BigRational) -> Result<Ordering> {
    let signs = left.numer().sign().cmp(&right.numer().sign());
    if signs.is_ne() {
        return Ok(signs);
    }
    let one = mul(left.numer(), right.denom())?;
    Ok(one.cmp(&mul(right.numer(), left.denom())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a pseudo-random number of this size in bits.
    fn number(bits: u64, seed: u64) -> BigInt {
        let mut state = seed;
        let digits = (0..bits.div_ceil(32)).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(seed | 1);
            (state >> 33) as u32
        });
        BigInt::from(BigUint::new(digits.collect()) | BigUint::one())
    }

    const SIZES: [u64; 8] = [1, 63, 5_000, 40_000, 70_001, 300_017, 524_288, 1_100_000];

    #[test]
    fn products_and_quotients_are_those_of_the_library() {
        for left in SIZES.map(|bits| number(bits, 7)) {
            for right in SIZES.map(|bits| number(bits, 11)) {
                let product = &left * &right;
                assert!(mul(&left, &-&right).is_ok_and(|it| it == -&product));
                let more = &product + &left / 3u32;
                let (quotient, rest) = div_rem(&-&more, &right).expect("no limit is set");
                assert!(rest.magnitude() < right.magnitude());
                assert_eq!(&quotient * &right + &rest, -&more);
            }
        }
    }

    #[test]
    fn division_is_correct_for_divisors_with_extreme_digits() {
        for bits in [40_000_u64, 65_536, 131_072, 140_000] {
            let ones = (BigInt::one() << bits) - 1;
            let power = BigInt::one() << bits;
            for right in [&ones, &power, &(&power + 1)] {
                for left in [
                    &ones * &ones,
                    &power * &power - 1,
                    &ones << 64_u32,
                    &power * 3,
                ] {
                    let (quotient, rest) = div_rem(&left, right).expect("no limit is set");
                    assert!(rest < *right && !rest.is_negative());
                    assert_eq!(quotient * right + rest, left);
                }
            }
        }
    }

    #[test]
    fn common_divisors_are_those_of_the_library() {
        for bits in [100, 5_000, 20_000, 33_333] {
            let common = number(bits / 3 + 1, 3);
            let (left, right) = (&common * number(bits, 5), &common * number(bits / 2, 13));
            assert_eq!(
                gcd(&left, &-&right).expect("no limit is set"),
                left.gcd(&right)
            );
            assert_eq!(
                gcd(&right, &left).expect("no limit is set"),
                left.gcd(&right)
            );
        }
        let left = number(9_000, 5);
        assert_eq!(gcd(&left, &BigInt::ZERO).expect("no limit is set"), left);
    }

    #[test]
    fn roots_and_modular_powers_are_those_of_the_library() {
        let (base, exponent, modulus) = (number(3_000, 3), number(2_100, 5), number(2_500, 7));
        let power = mod_pow(&-&base, &exponent, &modulus).expect("no limit is set");
        let expected = (-&base).modpow(&exponent, &modulus).mod_floor(&modulus);
        assert_eq!(power, expected);
        let inverse = mod_inverse(&base, &modulus).expect("no limit is set");
        assert_eq!(inverse, base.modinv(&modulus));
        for bits in [5_000, 9_001] {
            let square = number(bits, 9);
            assert_eq!(sqrt(&square).expect("no limit is set"), square.sqrt());
        }
    }

    #[test]
    fn digits_are_written_and_read_back() {
        for bits in [64, 13_000, 14_000, 30_000, 100_000, 200_000] {
            let number = -number(bits, 17);
            let mut text = String::new();
            write(&mut text, &number).expect("no limit is set");
            assert_eq!(text, number.to_string());
            assert_eq!(parse(&text, 10), Some(number.clone()));
            assert_eq!(
                digit_count(&number).expect("no limit is set"),
                text.len() as i64 - 1
            );
        }
        for places in [4_096_i64, 8_192, 8_191, 20_000] {
            let power = ten_to(places).expect("no limit is set");
            let mut text = String::new();
            write(&mut text, &power).expect("no limit is set");
            assert_eq!(text.len() as i64, places + 1);
            assert!(text.starts_with('1') && text[1..].bytes().all(|byte| byte == b'0'));
            assert_eq!(digit_count(&power).expect("no limit is set"), places + 1);
            assert_eq!(digit_count(&(power - 1)).expect("no limit is set"), places);
        }
    }

    #[test]
    fn results_of_too_many_digits_are_refused_before_they_are_computed() {
        assert!(ten_to(999_999_999).is_err());
        assert!(pow(&BigInt::from(3), u32::MAX).is_err());
        assert!(pow(&BigInt::from(-1), u32::MAX).is_ok_and(|it| it == BigInt::from(-1)));
        assert!(times_ten_to(&BigInt::ZERO, i64::MAX).is_ok_and(|it| it.is_zero()));
    }
}
