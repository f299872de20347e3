//! The conversions of the hints `^long` and `^double` of parameters, results and fields to integers or doubles.

use crate::value::{Arity, Class, Exception, Native, Result, Value, describe, number};
use crate::vm::Args;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[AS_DOUBLE, AS_LONG];

const AS_DOUBLE: Native = Native {
    name: "-as-double",
    usage: "(-as-double x)",
    doc: "Returns a number as a double: the effect of the hint ^double.",
    examples: &[("(-as-double 1)", "1.0"), ("((fn [^double x] x) 1)", "1.0")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_float(number_argument(&args, "^double")?, "double").map(Value::Float),
};

const AS_LONG: Native = Native {
    name: "-as-long",
    usage: "(-as-long x)",
    doc: "Returns a number as a 64-bit integer, truncated: the effect of the hint ^long.",
    examples: &[("(-as-long 3.9)", "3"), ("((fn [^long x] x) 3.9)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| number::to_int(number_argument(&args, "^long")?, "long").map(Value::Int),
};

fn number_argument<'a>(args: &'a Args<'_>, hint: &str) -> Result<&'a Value> {
    match args.get(0) {
        value if value.is_number() => Ok(value),
        value => {
            let message = format!("the hint {hint} needs a number, got {}", describe(value));
            Err(Exception::new(Class::CLASS_CAST, "E0301", message)
                .argument(0)
                .hint("remove the hint if values other than numbers are possible")
                .into())
        }
    }
}
