//! `Double/...` and `Float/...`: properties of doubles. There is no float type: floats are doubles rounded to float
//! precision.

use crate::value::number::{format_float, java_float, to_float};
use crate::value::{Arity, Native, Result, Value};
use crate::vm::Args;

/// The functions of both classes.
macro_rules! floats {
    ($constant:ident $class:literal) => {
        pub(super) const $constant: &[Native] = &[
            test!($class "isNaN" "is NaN" "##NaN", f64::is_nan),
            test!($class "isInfinite" "is infinite" "##Inf", f64::is_infinite),
            test!($class "isFinite" "is neither infinite nor NaN" "1.5", f64::is_finite),
            Native {
                name: "compare",
                usage: concat!("(", $class, "/compare a b)"),
                doc: "Returns -1, 0 or 1, as a is less than, equal to or greater than b; NaN is greater than all others, -0.0 is less than 0.0.",
                examples: &[(concat!("(", $class, "/compare 1.0 2.0)"), "-1")],
                arity: Arity::exactly(2),
                run: |_, args| Ok(Value::Int(order(float(&args, 0)?, float(&args, 1)?))),
            },
            Native {
                name: "toString",
                usage: concat!("(", $class, "/toString x)"),
                doc: "Returns a double as text.",
                examples: &[(concat!("(", $class, "/toString 1.5)"), "\"1.5\"")],
                arity: Arity::exactly(1),
                run: |_, args| {
                    let float = float(&args, 0)?;
                    let shown = if float.is_finite() { format_float(float) } else { java_float(float) };
                    Ok(Value::text(shown))
                },
            },
            fold!($class "max" "the greater of a and b" "2.0", |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }),
            fold!($class "min" "the lesser of a and b" "1.0", |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }),
            fold!($class "sum" "the sum of a and b" "3.0", |a: f64, b: f64| a + b),
        ];
    };
}

macro_rules! test {
    ($class:literal $name:literal $doc:literal $given:literal, $test:expr) => {
        Native {
            name: $name,
            usage: concat!("(", $class, "/", $name, " x)"),
            doc: concat!("Tells whether a double ", $doc, "."),
            examples: &[(concat!("(", $class, "/", $name, " ", $given, ")"), "true")],
            arity: Arity::exactly(1),
            run: |_, args| Ok(Value::Bool($test(float(&args, 0)?))),
        }
    };
}

macro_rules! fold {
    ($class:literal $name:literal $doc:literal $result:literal, $fold:expr) => {
        Native {
            name: $name,
            usage: concat!("(", $class, "/", $name, " a b)"),
            doc: concat!("Returns ", $doc, "."),
            examples: &[(concat!("(", $class, "/", $name, " 1.0 2.0)"), $result)],
            arity: Arity::exactly(2),
            run: |_, args| Ok(Value::Float($fold(float(&args, 0)?, float(&args, 1)?))),
        }
    };
}

floats!(DOUBLE_FNS "Double");
floats!(FLOAT_FNS "Float");

/// Functions on the bits of doubles.
pub(super) const BIT_FNS: &[Native] = &[
    Native {
        name: "doubleToLongBits",
        usage: "(Double/doubleToLongBits x)",
        doc: "Returns the bits of a double as an integer; all NaN have the same bits.",
        examples: &[("(Double/doubleToLongBits 1.0)", "4607182418800017408")],
        arity: Arity::exactly(1),
        run: |_, args| {
            let float = float(&args, 0)?;
            let bits = if float.is_nan() {
                0x7ff8_0000_0000_0000
            } else {
                float.to_bits()
            };
            Ok(Value::Int(bits as i64))
        },
    },
    Native {
        name: "longBitsToDouble",
        usage: "(Double/longBitsToDouble n)",
        doc: "Returns the double with the bits of an integer.",
        examples: &[("(Double/longBitsToDouble 4607182418800017408)", "1.0")],
        arity: Arity::exactly(1),
        run: |_, args| Ok(Value::Float(f64::from_bits(args.int(0)? as u64))),
    },
];

fn float(args: &Args<'_>, idx: usize) -> Result<f64> {
    match args.get(idx) {
        Value::Float(float) => Ok(*float),
        number if number.is_number() => to_float(number, "double"),
        _ => Err(args.expected(idx, "a number")),
    }
}

/// Compares two doubles in Java's total order.
fn order(left: f64, right: f64) -> i64 {
    match (left.is_nan(), right.is_nan()) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => -1,
        (false, false) => left.total_cmp(&right) as i64,
    }
}
