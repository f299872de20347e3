//! Predicates of numbers, and conversions between their kinds.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::value::number::{MathContext, RoundingMode};
use crate::value::{
    Arity, BigInt, BigRational, Class, Exception, Native, Result, Symbol, Value, describe, number,
};
use crate::vm::{Args, Vm, wrong_type};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    BIGDEC,
    BIGINT,
    BIGINTEGER,
    BYTE,
    CHAR,
    DENOMINATOR,
    DOUBLE,
    FLOAT,
    INT,
    IS_DECIMAL,
    IS_DOUBLE,
    IS_EVEN,
    IS_FLOAT,
    IS_INFINITE,
    IS_INT,
    IS_INTEGER,
    IS_NAN,
    IS_NAT_INT,
    IS_NEG,
    IS_NEG_INT,
    IS_NUMBER,
    IS_ODD,
    IS_POS,
    IS_POS_INT,
    IS_RATIO,
    IS_RATIONAL,
    IS_ZERO,
    LONG,
    NUM,
    NUMERATOR,
    PARSE_BOOLEAN,
    PARSE_DOUBLE,
    PARSE_LONG,
    RAND,
    RAND_INT,
    RATIONALIZE,
    SHORT,
    UNCHECKED_BYTE,
    UNCHECKED_CHAR,
    UNCHECKED_DOUBLE,
    UNCHECKED_FLOAT,
    UNCHECKED_INT,
    UNCHECKED_LONG,
    UNCHECKED_SHORT,
    WITH_PRECISION,
];

const IS_NUMBER: Native = Native {
    name: "number?",
    usage: "(number? x)",
    doc: "Tells whether x is a number of any kind.",
    examples: &[("(number? 1/2)", "true"), (r#"(number? "1")"#, "false")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(args.get(0).is_number())),
};

const IS_INTEGER: Native = Native {
    name: "integer?",
    usage: "(integer? x)",
    doc: "Tells whether x is an integer: a 64-bit or a big one.",
    examples: &[("(integer? 1N)", "true"), ("(integer? 1.0)", "false")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Bool(matches!(
            args.get(0),
            Value::Int(_) | Value::BigInt(_)
        )))
    },
};

const IS_INT: Native = Native {
    name: "int?",
    usage: "(int? x)",
    doc: "Tells whether x is a 64-bit integer.",
    examples: &[("(int? 1)", "true"), ("(int? 1N)", "false")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(matches!(args.get(0), Value::Int(_)))),
};

const IS_POS_INT: Native = Native {
    name: "pos-int?",
    usage: "(pos-int? x)",
    doc: "Tells whether x is a 64-bit integer above 0.",
    examples: &[("(pos-int? 1)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Bool(
            matches!(args.get(0), Value::Int(int) if *int > 0),
        ))
    },
};

const IS_NEG_INT: Native = Native {
    name: "neg-int?",
    usage: "(neg-int? x)",
    doc: "Tells whether x is a 64-bit integer below 0.",
    examples: &[("(neg-int? -1)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Bool(
            matches!(args.get(0), Value::Int(int) if *int < 0),
        ))
    },
};

const IS_NAT_INT: Native = Native {
    name: "nat-int?",
    usage: "(nat-int? x)",
    doc: "Tells whether x is a 64-bit integer of 0 or more.",
    examples: &[("(nat-int? 0)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Bool(
            matches!(args.get(0), Value::Int(int) if *int >= 0),
        ))
    },
};

const IS_FLOAT: Native = Native {
    name: "float?",
    usage: "(float? x)",
    doc: "Tells whether x is a double.",
    examples: &[("(float? 1.5)", "true"), ("(float? 1.5M)", "false")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(matches!(args.get(0), Value::Float(_)))),
};

const IS_DOUBLE: Native = Native {
    name: "double?",
    usage: "(double? x)",
    doc: "Tells whether x is a double.",
    examples: &[("(double? 1.5)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(matches!(args.get(0), Value::Float(_)))),
};

const IS_RATIO: Native = Native {
    name: "ratio?",
    usage: "(ratio? x)",
    doc: "Tells whether x is a ratio.",
    examples: &[("(ratio? 1/2)", "true"), ("(ratio? 4/2)", "false")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(matches!(args.get(0), Value::Ratio(_)))),
};

const IS_DECIMAL: Native = Native {
    name: "decimal?",
    usage: "(decimal? x)",
    doc: "Tells whether x is a decimal such as 1.5M.",
    examples: &[("(decimal? 1.5M)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(matches!(args.get(0), Value::Decimal(_)))),
};

const IS_RATIONAL: Native = Native {
    name: "rational?",
    usage: "(rational? x)",
    doc: "Tells whether x is exact: an integer, a ratio or a decimal.",
    examples: &[("(rational? 1/2)", "true"), ("(rational? 0.5)", "false")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Bool(
            args.get(0).is_number() && !matches!(args.get(0), Value::Float(_)),
        ))
    },
};

pub(in crate::core) const IS_ZERO: Native = Native {
    name: "zero?",
    usage: "(zero? num)",
    doc: "Tells whether num is 0.",
    examples: &[("(zero? 0.0)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| sign_is(&args, "zero?", Ordering::Equal),
};

pub(in crate::core) const IS_POS: Native = Native {
    name: "pos?",
    usage: "(pos? num)",
    doc: "Tells whether num is greater than 0.",
    examples: &[("(pos? 1)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| sign_is(&args, "pos?", Ordering::Greater),
};

pub(in crate::core) const IS_NEG: Native = Native {
    name: "neg?",
    usage: "(neg? num)",
    doc: "Tells whether num is less than 0.",
    examples: &[("(neg? -1/2)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| sign_is(&args, "neg?", Ordering::Less),
};

pub(in crate::core) const IS_EVEN: Native = Native {
    name: "even?",
    usage: "(even? n)",
    doc: "Tells whether the integer n is divisible by 2.",
    examples: &[("(even? 4)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(!is_odd(&args)?)),
};

pub(in crate::core) const IS_ODD: Native = Native {
    name: "odd?",
    usage: "(odd? n)",
    doc: "Tells whether the integer n is not divisible by 2.",
    examples: &[("(odd? 3)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(is_odd(&args)?)),
};

const IS_NAN: Native = Native {
    name: "NaN?",
    usage: "(NaN? num)",
    doc: "Tells whether num is the double NaN.",
    examples: &[("(NaN? ##NaN)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(number::to_float(args.get(0), "NaN?")?.is_nan())),
};

const IS_INFINITE: Native = Native {
    name: "infinite?",
    usage: "(infinite? num)",
    doc: "Tells whether num is ##Inf or ##-Inf.",
    examples: &[("(infinite? ##-Inf)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        let float = number::to_float(args.get(0), "infinite?")?;
        Ok(Value::Bool(float.is_infinite()))
    },
};

const NUMERATOR: Native = Native {
    name: "numerator",
    usage: "(numerator r)",
    doc: "Returns the numerator of a ratio.",
    examples: &[("(numerator 6/4)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| ratio(&args).map(|ratio| whole(ratio.numer())),
};

const DENOMINATOR: Native = Native {
    name: "denominator",
    usage: "(denominator r)",
    doc: "Returns the denominator of a ratio.",
    examples: &[("(denominator 6/4)", "2")],
    arity: Arity::exactly(1),
    run: |_, args| ratio(&args).map(|ratio| whole(ratio.denom())),
};

const RATIONALIZE: Native = Native {
    name: "rationalize",
    usage: "(rationalize num)",
    doc: "Returns the exact value of a double or decimal, by the digits that it prints.",
    examples: &[("(rationalize 1.5)", "3/2")],
    arity: Arity::exactly(1),
    run: |_, args| number::rationalize(args.get(0)),
};

const BIGINT: Native = Native {
    name: "bigint",
    usage: "(bigint x)",
    doc: "Returns a number, truncated, or the number in a string as a big integer.",
    examples: &[("(bigint 12)", "12N"), (r#"(bigint "99")"#, "99N")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_big_int(args.get(0), "bigint").map(Value::from),
};

const BIGINTEGER: Native = Native {
    name: "biginteger",
    usage: "(biginteger x)",
    doc: "Returns a number, truncated, or the number in a string as a big integer.",
    examples: &[("(biginteger 12)", "12N")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_big_int(args.get(0), "biginteger").map(Value::from),
};

const BIGDEC: Native = Native {
    name: "bigdec",
    usage: "(bigdec x)",
    doc: "Returns a number, or the number in a string, as a decimal.",
    examples: &[("(bigdec 0.5)", "0.5M")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_big_decimal(args.get(0), "bigdec").map(Value::from),
};

const LONG: Native = Native {
    name: "long",
    usage: "(long x)",
    doc: "Returns a number, truncated, or the code of a character, as a 64-bit integer.",
    examples: &[("(long 3.7)", "3"), ("(long \\a)", "97")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_int(args.get(0), "long").map(Value::Int),
};

pub(super) const INT: Native = Native {
    name: "int",
    usage: "(int x)",
    doc: "Returns a number, truncated, or the code of a character; throws when it does not fit into 32 bits.",
    examples: &[("(int 3.7)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| narrow(&args, i32::MIN as i64..=i32::MAX as i64, "int"),
};

const UNCHECKED_INT: Native = Native {
    name: "unchecked-int",
    usage: "(unchecked-int x)",
    doc: "Returns the lowest 32 bits of a number as an integer.",
    examples: &[("(unchecked-int 3)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Int(i64::from(match args.get(0) {
            // A value that is too large becomes the largest integer, as when a float is converted.
            Value::Float(float) => *float as i32,
            _ => unchecked(&args, "unchecked-int")? as i32,
        })))
    },
};

const SHORT: Native = Native {
    name: "short",
    usage: "(short x)",
    doc: "Returns a number, truncated, or the code of a character; throws when it does not fit into 16 bits.",
    examples: &[("(short 3.7)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| narrow(&args, i16::MIN as i64..=i16::MAX as i64, "short"),
};

const UNCHECKED_SHORT: Native = Native {
    name: "unchecked-short",
    usage: "(unchecked-short x)",
    doc: "Returns the lowest 16 bits of a number as an integer.",
    examples: &[("(unchecked-short 3)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Int(i64::from(
            unchecked(&args, "unchecked-short")? as i16
        )))
    },
};

const BYTE: Native = Native {
    name: "byte",
    usage: "(byte x)",
    doc: "Returns a number, truncated, or the code of a character; throws when it does not fit into 8 bits.",
    examples: &[("(byte 3.7)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| narrow(&args, i8::MIN as i64..=i8::MAX as i64, "byte"),
};

const UNCHECKED_BYTE: Native = Native {
    name: "unchecked-byte",
    usage: "(unchecked-byte x)",
    doc: "Returns the lowest 8 bits of a number as an integer.",
    examples: &[("(unchecked-byte 3)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Int(i64::from(
            unchecked(&args, "unchecked-byte")? as i8
        )))
    },
};

const UNCHECKED_LONG: Native = Native {
    name: "unchecked-long",
    usage: "(unchecked-long x)",
    doc: "Returns a number as a 64-bit integer, truncated if it does not fit.",
    examples: &[("(unchecked-long 3.7)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Int(unchecked(&args, "unchecked-long")?)),
};

const CHAR: Native = Native {
    name: "char",
    usage: "(char x)",
    doc: "Returns the character with a code, or a character itself.",
    examples: &[("(char 97)", "\\a")],
    arity: Arity::exactly(1),
    run: |_, args| to_char(&args, "char"),
};

const UNCHECKED_CHAR: Native = Native {
    name: "unchecked-char",
    usage: "(unchecked-char x)",
    doc: "Returns the character with a code.",
    examples: &[("(unchecked-char 97)", "\\a")],
    arity: Arity::exactly(1),
    run: |_, args| to_char(&args, "unchecked-char"),
};

pub(super) const DOUBLE: Native = Native {
    name: "double",
    usage: "(double x)",
    doc: "Returns a number as a double.",
    examples: &[("(double 1/2)", "0.5")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_float(args.get(0), "double").map(Value::Float),
};

const FLOAT: Native = Native {
    name: "float",
    usage: "(float x)",
    doc: "Returns a number as a double with the digits that a 32-bit float prints; throws when it does not fit into one.",
    examples: &[("(float 1/2)", "0.5"), ("(float 1/3)", "0.33333334")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_short_float(args.get(0), "float").map(Value::Float),
};

const UNCHECKED_DOUBLE: Native = Native {
    name: "unchecked-double",
    usage: "(unchecked-double x)",
    doc: "Returns a number as a double.",
    examples: &[("(unchecked-double 1/2)", "0.5")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_float(args.get(0), "unchecked-double").map(Value::Float),
};

const UNCHECKED_FLOAT: Native = Native {
    name: "unchecked-float",
    usage: "(unchecked-float x)",
    doc: "Returns a number as a double with the digits that a 32-bit float prints.",
    examples: &[
        ("(unchecked-float 1/2)", "0.5"),
        ("(unchecked-float 1e39)", "##Inf"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| {
        number::to_float(args.get(0), "unchecked-float")
            .map(|float| Value::Float(number::shorten(float)))
    },
};

const NUM: Native = Native {
    name: "num",
    usage: "(num x)",
    doc: "Returns a number unchanged.",
    examples: &[("(num 1)", "1")],
    arity: Arity::exactly(1),
    run: |_, mut args| match args.get(0).is_number() {
        true => Ok(args.take(0)),
        false => Err(number::not_a_number("num", args.get(0), 0)),
    },
};

const PARSE_LONG: Native = Native {
    name: "parse-long",
    usage: "(parse-long s)",
    doc: "Parses a string as an integer; nil if it is not one.",
    examples: &[
        (r#"(parse-long "-12")"#, "-12"),
        (r#"(parse-long "1.5")"#, "nil"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| Ok(number::parse_long(text(&args)?).map_or(Value::Nil, Value::Int)),
};

const PARSE_DOUBLE: Native = Native {
    name: "parse-double",
    usage: "(parse-double s)",
    doc: "Parses a string as a double; nil if it is not one.",
    examples: &[
        (r#"(parse-double "1.5")"#, "1.5"),
        (r#"(parse-double "x")"#, "nil"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| Ok(number::parse_double(text(&args)?).map_or(Value::Nil, Value::Float)),
};

const PARSE_BOOLEAN: Native = Native {
    name: "parse-boolean",
    usage: "(parse-boolean s)",
    doc: r#"Returns true for the string "true", false for "false", else nil."#,
    examples: &[
        (r#"(parse-boolean "true")"#, "true"),
        (r#"(parse-boolean "yes")"#, "nil"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(match text(&args)? {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Nil,
        })
    },
};

const RAND: Native = Native {
    name: "rand",
    usage: "(rand)\n(rand n)",
    doc: "Returns a random double from 0 up to but not including n (1 by default).",
    examples: &[("(< -1 (rand) 1)", "true")],
    arity: Arity::between(0, 1),
    run: |vm, args| {
        let random = random(vm)?;
        match args.len() {
            0 => Ok(Value::Float(random)),
            _ => Ok(Value::Float(
                random * number::to_float(args.get(0), "rand")?,
            )),
        }
    },
};

const RAND_INT: Native = Native {
    name: "rand-int",
    usage: "(rand-int n)",
    doc: "Returns a random integer from 0 up to but not including n.",
    examples: &[("(rand-int 1)", "0")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let limit = number::to_float(args.get(0), "rand-int")?;
        number::to_int(&Value::Float(random(vm)? * limit), "rand-int").map(Value::Int)
    },
};

const WITH_PRECISION: Native = Native {
    name: "-with-precision",
    usage: "(-with-precision precision rounding f)",
    doc: "Calls f; meanwhile decimals are rounded to precision digits. rounding is a symbol such as HALF_UP, or nil.",
    examples: &[("(-with-precision 3 nil (fn [] (/ 1M 3)))", "0.333M")],
    arity: Arity::exactly(3),
    run: with_precision,
};

fn sign_is(args: &Args<'_>, operation: &str, expected: Ordering) -> Result<Value> {
    let value = args.get(0);
    if !value.is_number() {
        return Err(number::not_a_number(operation, value, 0));
    }
    Ok(Value::Bool(number::sign(value) == Some(expected)))
}

fn is_odd(args: &Args<'_>) -> Result<bool> {
    match args.get(0) {
        Value::Int(int) => Ok(int & 1 == 1),
        Value::BigInt(int) => Ok(int.bit(0)),
        _ => Err(wrong_type(args.get(0), "an integer", 0)
            .of_class(Class::ILLEGAL_ARGUMENT)
            .into()),
    }
}

fn ratio<'a>(args: &'a Args<'_>) -> Result<&'a BigRational> {
    match args.get(0) {
        Value::Ratio(ratio) => Ok(ratio),
        _ => Err(args.expected(0, "a ratio")),
    }
}

fn whole(int: &BigInt) -> Value {
    i64::try_from(int).map_or_else(|_| Value::from(int.clone()), Value::Int)
}

fn narrow(args: &Args<'_>, range: RangeInclusive<i64>, name: &str) -> Result<Value> {
    number::to_int_in(args.get(0), range, name).map(Value::Int)
}

/// Returns the lowest 64 bits of a number, truncated.
fn unchecked(args: &Args<'_>, operation: &str) -> Result<i64> {
    number::lowest_bits(args.get(0), operation)
}

fn to_char(args: &Args<'_>, name: &str) -> Result<Value> {
    if let Value::Char(_) = args.get(0) {
        return Ok(args.get(0).clone());
    }
    let code = number::to_int_in(args.get(0), 0..=i64::from(u32::from(char::MAX)), name)?;
    u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .map(Value::Char)
        .ok_or_else(|| args.expected(0, "the code of a character"))
}

fn text<'a>(args: &'a Args<'_>) -> Result<&'a str> {
    match args.get(0) {
        Value::Text(text) => Ok(text),
        value => Err(Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0301",
            format!("expected a string, got {} as argument 1", describe(value)),
        )
        .argument(0)
        .into()),
    }
}

/// Returns a random double with 53 bits, from 0 up to 1.
pub(super) fn random(vm: &mut Vm) -> Result<f64> {
    Ok((vm.host().random()? >> 11) as f64 / (1u64 << 53) as f64)
}

fn with_precision(vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    let precision = args.index(0)?;
    let context = match u32::try_from(precision) {
        Ok(0) => None,
        Ok(precision) => Some(MathContext {
            precision,
            rounding: rounding(&args)?,
        }),
        Err(_) => return Err(args.expected(0, "a number of digits")),
    };
    let old = number::set_math_context(context);
    let result = vm.call(args.get(2), &[]);
    number::set_math_context(old);
    result
}

fn rounding(args: &Args<'_>) -> Result<Option<RoundingMode>> {
    let value = args.get(1);
    if value.is_nil() {
        return Ok(Some(RoundingMode::HalfUp));
    }
    let name = value.as_symbol().map(Symbol::name);
    Ok(Some(match name.as_deref() {
        Some("UNNECESSARY") => return Ok(None),
        Some("CEILING") => RoundingMode::Ceiling,
        Some("FLOOR") => RoundingMode::Floor,
        Some("HALF_UP") => RoundingMode::HalfUp,
        Some("HALF_DOWN") => RoundingMode::HalfDown,
        Some("HALF_EVEN") => RoundingMode::HalfEven,
        Some("UP") => RoundingMode::Up,
        Some("DOWN") => RoundingMode::Down,
        _ => {
            return Err(args.expected(
                1,
                "one of CEILING FLOOR HALF_UP HALF_DOWN HALF_EVEN UP DOWN UNNECESSARY",
            ));
        }
    }))
}
