//! What the hints `^long` and `^double` of parameters, results and fields do: numbers become integers or doubles.

use crate::value::{Arity, Native, Result, Value, number};
use crate::vm::Args;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[AS_DOUBLE, AS_LONG];

const AS_DOUBLE: Native = Native {
    name: "-as-double",
    usage: "(-as-double x)",
    doc: "Returns a number as a double: what the hint ^double does.",
    examples: &[("(-as-double 1)", "1.0"), ("((fn [^double x] x) 1)", "1.0")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_float(number_argument(&args)?, "double").map(Value::Float),
};

const AS_LONG: Native = Native {
    name: "-as-long",
    usage: "(-as-long x)",
    doc: "Returns a number as an integer of 64 bits, its fraction cut off: what the hint ^long does.",
    examples: &[("(-as-long 3.9)", "3"), ("((fn [^long x] x) 3.9)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_int(number_argument(&args)?, "long").map(Value::Int),
};

fn number_argument<'a>(args: &'a Args<'_>) -> Result<&'a Value> {
    match args.get(0) {
        value if value.is_number() => Ok(value),
        _ => Err(args.expected(0, "a number, as the hint says")),
    }
}
