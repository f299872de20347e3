//! `BigInteger/...` and `BigDecimal/...`: big integers are integers with an `N` here, decimals those with
//! an `M`.

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::value::number::{RoundingMode, big, decimal, divide_by_zero, overflow, parse_number};
use crate::value::{Arity, Class, Exception, HostConstant, Native, Result, Signal, Value};
use crate::vm::Args;

pub(super) const INTEGER_FNS: &[Native] = &[
    Native {
        name: "new",
        usage: "(BigInteger. s)\n(BigInteger. s radix)",
        doc: "Parses a string as a big integer in a radix (10); throws if the string is not an integer.",
        examples: &[(r#"(BigInteger. "ff" 16)"#, "255N")],
        arity: Arity::between(1, 2),
        run: |_, args| {
            let text = args.text(0)?.as_str();
            let radix = if args.len() == 2 { args.int(1)? } else { 10 };
            let radix = u32::try_from(radix).unwrap_or(0).clamp(2, 36);
            match big::parse(text, radix) {
                Some(int) => Ok(int.into()),
                None => Err(not_a_number(text)),
            }
        },
    },
    Native {
        name: "valueOf",
        usage: "(BigInteger/valueOf n)",
        doc: "Returns an integer as a big integer.",
        examples: &[("(BigInteger/valueOf 5)", "5N")],
        arity: Arity::exactly(1),
        run: |_, args| args.big_int(0).map(Value::from),
    },
];

pub(super) const DECIMAL_FNS: &[Native] = &[
    Native {
        name: "new",
        usage: "(BigDecimal. x)",
        doc: "Parses a string, or converts a number, to a decimal; throws if the string is not a number.",
        examples: &[(r#"(BigDecimal. "1.50")"#, "1.50M")],
        arity: Arity::exactly(1),
        run: |_, args| match args.get(0) {
            Value::Text(text) => {
                let read = parse_number(&format!("{}M", text.as_str()));
                read.map_err(|_| not_a_number(text.as_str()))
            }
            Value::Float(float) => exactly(*float),
            number => Ok(crate::value::number::to_big_decimal(number, "BigDecimal")?.into()),
        },
    },
    Native {
        name: "valueOf",
        usage: "(BigDecimal/valueOf x)\n(BigDecimal/valueOf n scale)",
        doc: "Returns a number as a decimal; with two integers, the second is the number of decimal places.",
        examples: &[
            ("(BigDecimal/valueOf 15 1)", "1.5M"),
            ("(BigDecimal/valueOf 0.1)", "0.1M"),
        ],
        arity: Arity::between(1, 2),
        run: |_, args| {
            if args.len() == 2 {
                return Ok(BigDecimal::new(args.big_int(0)?, args.int(1)?).into());
            }
            Ok(crate::value::number::to_big_decimal(args.get(0), "BigDecimal/valueOf")?.into())
        },
    },
];

/// Methods of both classes.
pub(super) const METHODS: &[Native] = &[
    Native {
        name: ".bitLength",
        usage: "(.bitLength n)",
        doc: "Returns the number of bits that a big integer needs, without its sign.",
        examples: &[("(.bitLength 255N)", "8")],
        arity: Arity::exactly(1),
        run: |_, args| {
            let int = args.big_int(0)?;
            let int = if int.is_negative() { -int - 1 } else { int };
            Ok(Value::Int(int.bits() as i64))
        },
    },
    Native {
        name: ".gcd",
        usage: "(.gcd n other)",
        doc: "Returns the greatest common divisor of two big integers.",
        examples: &[("(.gcd 12N 18N)", "6N")],
        arity: Arity::exactly(2),
        run: |_, args| Ok(big::gcd(&args.big_int(0)?, &args.big_int(1)?)?.into()),
    },
    Native {
        name: ".isProbablePrime",
        usage: "(.isProbablePrime n certainty)",
        doc: "Tells whether a big integer is probably prime, after 40 rounds.",
        examples: &[
            ("(.isProbablePrime 97N 10)", "true"),
            ("(.isProbablePrime 91N 10)", "false"),
        ],
        arity: Arity::exactly(2),
        run: |_, args| is_prime(&args.big_int(0)?.abs()).map(Value::Bool),
    },
    Native {
        name: ".mod",
        usage: "(.mod n modulus)",
        doc: "Returns the remainder of dividing a big integer by another, never negative.",
        examples: &[("(.mod -7N 3N)", "2N")],
        arity: Arity::exactly(2),
        run: |_, args| {
            let modulus = args.big_int(1)?;
            if !modulus.is_positive() {
                return Err(not_positive());
            }
            big::modulo(&args.big_int(0)?, &modulus).map(Value::from)
        },
    },
    Native {
        name: ".modInverse",
        usage: "(.modInverse n modulus)",
        doc: "Returns the multiplicative inverse of n modulo another big integer.",
        examples: &[("(.modInverse 3N 11N)", "4N")],
        arity: Arity::exactly(2),
        run: |_, args| {
            let modulus = args.big_int(1)?;
            if !modulus.is_positive() {
                return Err(not_positive());
            }
            match big::mod_inverse(&args.big_int(0)?, &modulus)? {
                Some(inverse) => Ok(inverse.into()),
                None => Err(arithmetic("BigInteger not invertible.")),
            }
        },
    },
    Native {
        name: ".modPow",
        usage: "(.modPow n exponent modulus)",
        doc: "Returns n to the power of an exponent, modulo another big integer.",
        examples: &[("(.modPow 3N 4N 5N)", "1N")],
        arity: Arity::exactly(3),
        run: |_, args| {
            let modulus = args.big_int(2)?;
            if !modulus.is_positive() {
                return Err(not_positive());
            }
            let exponent = args.big_int(1)?;
            let base = args.big_int(0)?;
            if exponent.is_negative() {
                let inverse = big::mod_inverse(&base, &modulus)?;
                let inverse = inverse.ok_or_else(|| arithmetic("BigInteger not invertible."))?;
                return big::mod_pow(&inverse, &-exponent, &modulus).map(Value::from);
            }
            big::mod_pow(&base, &exponent, &modulus).map(Value::from)
        },
    },
    Native {
        name: ".pow",
        usage: "(.pow n exponent)",
        doc: "Returns a big integer or decimal to the power of an integer.",
        examples: &[
            ("(.pow 2N 70)", "1180591620717411303424N"),
            ("(.pow 1.1M 2)", "1.21M"),
        ],
        arity: Arity::exactly(2),
        run: |_, args| {
            let exponent = u32::try_from(args.int(1)?).ok().filter(|n| *n <= 1_000_000);
            let exponent = exponent
                .ok_or_else(|| arithmetic("Invalid operation: an exponent is from 0 to 1000000"))?;
            match args.get(0) {
                Value::Decimal(of) => {
                    let (unscaled, scale) = of.as_bigint_and_exponent();
                    let scale = scale
                        .checked_mul(i64::from(exponent))
                        .ok_or_else(overflow)?;
                    Ok(BigDecimal::new(big::pow(&unscaled, exponent)?, scale).into())
                }
                _ => {
                    let base = args.big_int(0)?;
                    big::pow(&base, exponent).map(Value::from)
                }
            }
        },
    },
    Native {
        name: ".precision",
        usage: "(.precision decimal)",
        doc: "Returns the number of digits of a decimal.",
        examples: &[("(.precision 1.50M)", "3")],
        arity: Arity::exactly(1),
        run: |_, args| {
            let (unscaled, _) = of(&args, 0)?.as_bigint_and_exponent();
            big::digit_count(&unscaled).map(Value::Int)
        },
    },
    Native {
        name: ".scale",
        usage: "(.scale decimal)",
        doc: "Returns the number of decimal places of a decimal.",
        examples: &[("(.scale 1.50M)", "2")],
        arity: Arity::exactly(1),
        run: |_, args| Ok(Value::Int(of(&args, 0)?.as_bigint_and_exponent().1)),
    },
    Native {
        name: ".setScale",
        usage: "(.setScale decimal places)\n(.setScale decimal places rounding)",
        doc: "Returns a decimal with a number of places after the point, rounded by a mode of \
              java.math.RoundingMode; without one it throws when digits would be lost.",
        examples: &[
            (
                "(.setScale 1.555M 2 java.math.RoundingMode/HALF_UP)",
                "1.56M",
            ),
            ("(.setScale 1.5M 2)", "1.50M"),
        ],
        arity: Arity::between(2, 3),
        run: |_, args| {
            let mode = if args.len() == 3 {
                Some(rounding(&args, 2)?)
            } else {
                None
            };
            rescaled(of(&args, 0)?, args.int(1)?, mode).map(Value::from)
        },
    },
    Native {
        name: ".sqrt",
        usage: "(.sqrt n)",
        doc: "Returns the integer square root of a big integer.",
        examples: &[("(.sqrt 17N)", "4N")],
        arity: Arity::exactly(1),
        run: |_, args| {
            let int = args.big_int(0)?;
            if int.is_negative() {
                return Err(arithmetic("Negative BigInteger"));
            }
            big::sqrt(&int).map(Value::from)
        },
    },
    Native {
        name: ".stripTrailingZeros",
        usage: "(.stripTrailingZeros decimal)",
        doc: "Returns a decimal without its trailing zeros.",
        examples: &[("(.stripTrailingZeros 1.500M)", "1.5M")],
        arity: Arity::exactly(1),
        run: |_, args| {
            let given = of(&args, 0)?;
            decimal::without_zeros(given).map(Value::from)
        },
    },
    Native {
        name: ".toPlainString",
        usage: "(.toPlainString decimal)",
        doc: "Returns a decimal as text without an exponent.",
        examples: &[(r"(.toPlainString 1E+3M)", "\"1000\"")],
        arity: Arity::exactly(1),
        run: |_, args| {
            let given = of(&args, 0)?;
            decimal::plain(given).map(Value::from)
        },
    },
    Native {
        name: ".unscaledValue",
        usage: "(.unscaledValue decimal)",
        doc: "Returns the digits of a decimal as a big integer.",
        examples: &[("(.unscaledValue 1.50M)", "150N")],
        arity: Arity::exactly(1),
        run: |_, args| Ok(of(&args, 0)?.as_bigint_and_exponent().0.into()),
    },
    Native {
        name: "-ordinal",
        usage: "(-ordinal constant)",
        doc: "Returns the index of a constant in its host class, from 0.",
        examples: &[],
        arity: Arity::exactly(1),
        run: |_, args| match args.get(0).as_host::<&'static HostConstant>() {
            Some(constant) => Ok(Value::Int(i64::from(constant.ordinal))),
            None => Err(args.expected(0, "a constant of a class")),
        },
    },
    Native {
        name: "-divide",
        usage: "(-divide a b)\n(-divide a b rounding)\n(-divide a b scale rounding)",
        doc: "Divides as the method `divide` of big integers and decimals does.",
        examples: &[],
        arity: Arity::between(2, 4),
        run: |_, args| divide(&args),
    },
];

const fn mode(name: &'static str, ordinal: u8) -> HostConstant {
    HostConstant {
        class: "java.math.RoundingMode",
        name,
        ordinal,
    }
}

/// The constants of `java.math.RoundingMode`, in its order.
pub(super) static ROUNDING: [HostConstant; 8] = [
    mode("UP", 0),
    mode("DOWN", 1),
    mode("CEILING", 2),
    mode("FLOOR", 3),
    mode("HALF_UP", 4),
    mode("HALF_DOWN", 5),
    mode("HALF_EVEN", 6),
    mode("UNNECESSARY", 7),
];

/// Returns the constants of these classes: class, name and value.
pub(super) fn constants() -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    let integers = [("ZERO", 0), ("ONE", 1), ("TWO", 2), ("TEN", 10)];
    let decimals =
        integers.map(|(name, int)| ("BigDecimal", name, Value::from(BigDecimal::from(int))));
    let integers = integers.map(|(name, int)| ("BigInteger", name, Value::from(BigInt::from(int))));
    let modes = ROUNDING
        .iter()
        .map(|mode| ("RoundingMode", mode.name, Value::host(mode)));
    integers.into_iter().chain(decimals).chain(modes)
}

/// Returns a rounding mode given as a constant, or as a number such as `BigDecimal/ROUND_HALF_UP`; `None` for
/// UNNECESSARY.
fn rounding(args: &Args<'_>, idx: usize) -> Result<Option<RoundingMode>> {
    let ordinal = match args.get(idx) {
        Value::Int(int) => u8::try_from(*int).ok(),
        value => value
            .as_host::<&'static HostConstant>()
            .filter(|constant| constant.class == "java.math.RoundingMode")
            .map(|constant| constant.ordinal),
    };
    Ok(Some(match ordinal {
        Some(0) => RoundingMode::Up,
        Some(1) => RoundingMode::Down,
        Some(2) => RoundingMode::Ceiling,
        Some(3) => RoundingMode::Floor,
        Some(4) => RoundingMode::HalfUp,
        Some(5) => RoundingMode::HalfDown,
        Some(6) => RoundingMode::HalfEven,
        Some(7) => return Ok(None),
        _ => return Err(args.expected(idx, "a java.math.RoundingMode")),
    }))
}

fn rescaled(
    given: &BigDecimal,
    scale: i64,
    mode: Option<Option<RoundingMode>>,
) -> Result<BigDecimal> {
    if scale.abs() > 1_000_000 {
        return Err(arithmetic("a scale is from -1000000 to 1000000"));
    }
    if let Some(Some(mode)) = mode {
        return decimal::with_scale(given, scale, mode);
    }
    let exact = decimal::with_scale(given, scale, RoundingMode::Down)?;
    if decimal::compare(&exact, given)?.is_eq() {
        Ok(exact)
    } else {
        Err(arithmetic("Rounding necessary"))
    }
}

fn divide(args: &Args<'_>) -> Result<Value> {
    if !matches!(args.get(0), Value::Decimal(_)) {
        let divisor = args.big_int(1)?;
        if divisor.is_zero() {
            return Err(divide_by_zero());
        }
        return Ok(big::div_rem(&args.big_int(0)?, &divisor)?.0.into());
    }
    let (left, right) = (of(args, 0)?, of(args, 1)?);
    if right.is_zero() {
        return Err(divide_by_zero());
    }
    let (scale, mode) = match args.len() {
        2 => return crate::value::number::div(args.get(0), args.get(1)),
        3 => (left.as_bigint_and_exponent().1, rounding(args, 2)?),
        _ => (args.int(2)?, rounding(args, 3)?),
    };
    if scale.abs() > 1_000_000 {
        return Err(arithmetic("a scale is from -1000000 to 1000000"));
    }
    // Two more digits than requested, and one that tells whether any others follow, determine every rounding mode.
    let (dividend, left_scale) = left.as_bigint_and_exponent();
    let (divisor, right_scale) = right.as_bigint_and_exponent();
    let shift = scale + 2 + right_scale - left_scale;
    let dividend = big::times_ten_to(&dividend, shift)?;
    let divisor = big::times_ten_to(&divisor, -shift)?;
    let (quotient, rest) = big::div_rem(&dividend, &divisor)?;
    let sign = if (left.is_negative()) == (right.is_negative()) {
        1
    } else {
        -1
    };
    let marked = quotient * 10 + if rest.is_zero() { 0 } else { sign };
    let exact = BigDecimal::new(marked, scale + 3);
    rescaled(&exact, scale, Some(mode)).map(Value::from)
}

fn of<'a>(args: &'a Args<'_>, idx: usize) -> Result<&'a BigDecimal> {
    match args.get(idx) {
        Value::Decimal(decimal) => Ok(decimal),
        _ => Err(args.expected(idx, "a decimal")),
    }
}

/// Returns all digits of a double, as the constructor does.
fn exactly(float: f64) -> Result<Value> {
    match BigDecimal::try_from(float) {
        Ok(exact) => Ok(exact.into()),
        Err(_) => Err(not_a_number(&float.to_string())),
    }
}

/// Runs Miller and Rabin's test with the first primes as witnesses, which is exact below 3.3e24.
fn is_prime(n: &BigInt) -> Result<bool> {
    const WITNESSES: [u32; 40] = [
        2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89,
        97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173,
    ];
    let one = BigInt::from(1);
    if *n <= one {
        return Ok(false);
    }
    if let Some(small) = n.to_u32()
        && WITNESSES.contains(&small)
    {
        return Ok(true);
    }
    if WITNESSES.iter().any(|prime| (n % prime).is_zero()) {
        return Ok(false);
    }
    let below: BigInt = n - 1;
    let twos = below.trailing_zeros().unwrap_or(0);
    let odd = &below >> twos;
    for witness in WITNESSES {
        let mut power = big::mod_pow(&BigInt::from(witness), &odd, n)?;
        let mut passes = power == one || power == below;
        for _ in 1..twos {
            if passes {
                break;
            }
            power = big::modulo(&big::mul(&power, &power)?, n)?;
            passes = power == below;
        }
        if !passes {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cold]
fn not_positive() -> Signal {
    arithmetic("BigInteger: modulus not positive")
}

#[cold]
fn arithmetic(message: &str) -> Signal {
    Exception::new(Class::ARITHMETIC, "E0360", message).into()
}

#[cold]
fn not_a_number(text: &str) -> Signal {
    let message = format!("For input string: \"{text}\"");
    Exception::new(Class::NUMBER_FORMAT, "E0323", message)
        .argument(0)
        .hint("`parse-long`, `parse-double` and `bigdec` read numbers from text")
        .into()
}
