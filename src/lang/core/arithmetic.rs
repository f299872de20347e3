//! Arithmetic and the order of numbers. The VM handles two longs itself; these functions handle all other cases.

use crate::value::{Arity, Native, Result, Signal, Value, number};
use crate::vm::Args;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ABS,
    ADD,
    ADD_PROMOTING,
    DEC,
    DEC_PROMOTING,
    DIV,
    EQUIVALENT,
    GREATER,
    GREATER_OR_EQUAL,
    INC,
    INC_PROMOTING,
    LESS,
    LESS_OR_EQUAL,
    MAX,
    MIN,
    MODULO,
    MUL,
    MUL_PROMOTING,
    QUOT,
    REM,
    SUB,
    SUB_PROMOTING,
    UNCHECKED_ADD,
    UNCHECKED_ADD_INT,
    UNCHECKED_DEC,
    UNCHECKED_DEC_INT,
    UNCHECKED_DIVIDE_INT,
    UNCHECKED_INC,
    UNCHECKED_INC_INT,
    UNCHECKED_MULTIPLY,
    UNCHECKED_MULTIPLY_INT,
    UNCHECKED_NEGATE,
    UNCHECKED_NEGATE_INT,
    UNCHECKED_REMAINDER_INT,
    UNCHECKED_SUBTRACT,
    UNCHECKED_SUBTRACT_INT,
];

pub(in crate::core) const ADD: Native = Native {
    name: "+",
    usage: "(+ & xs)",
    doc: "Returns the sum of the numbers; 0 without arguments. Throws when a sum of integers does not fit into 64 bits.",
    examples: &[("(+ 1 2 3)", "6"), ("(+ 1/2 0.5)", "1.0")],
    arity: Arity::at_least(0),
    run: |_, args| fold(&args, "+", 0, number::add),
};

const ADD_PROMOTING: Native = Native {
    name: "+'",
    usage: "(+' & xs)",
    doc: "Returns the sum of the numbers; changes to big integers if 64 bits are not enough.",
    examples: &[("(+' 9223372036854775807 1)", "9223372036854775808N")],
    arity: Arity::at_least(0),
    run: |_, args| fold(&args, "+'", 0, number::add_promoting),
};

const MUL: Native = Native {
    name: "*",
    usage: "(* & xs)",
    doc: "Returns the product of the numbers; 1 without arguments. Throws when a product of integers does not fit into 64 bits.",
    examples: &[("(* 2 3 4)", "24")],
    arity: Arity::at_least(0),
    run: |_, args| fold(&args, "*", 1, number::mul),
};

const MUL_PROMOTING: Native = Native {
    name: "*'",
    usage: "(*' & xs)",
    doc: "Returns the product of the numbers; changes to big integers if 64 bits are not enough.",
    examples: &[("(*' 9223372036854775807 2)", "18446744073709551614N")],
    arity: Arity::at_least(0),
    run: |_, args| fold(&args, "*'", 1, number::mul_promoting),
};

const SUB: Native = Native {
    name: "-",
    usage: "(- x)\n(- x y & more)",
    doc: "Subtracts the other numbers from the first; negates a single one.",
    examples: &[("(- 10 1 2)", "7"), ("(- 3)", "-3")],
    arity: Arity::at_least(1),
    run: |_, args| match args.len() {
        1 => number::neg(args.get(0)),
        _ => reduce(&args, "-", number::sub),
    },
};

const SUB_PROMOTING: Native = Native {
    name: "-'",
    usage: "(-' x)\n(-' x y & more)",
    doc: "Subtracts as - does, but changes to big integers if 64 bits are not enough.",
    examples: &[("(-' -9223372036854775808 1)", "-9223372036854775809N")],
    arity: Arity::at_least(1),
    run: |_, args| match args.len() {
        1 => number::neg_promoting(args.get(0)),
        _ => reduce(&args, "-'", number::sub_promoting),
    },
};

const DIV: Native = Native {
    name: "/",
    usage: "(/ x)\n(/ x y & more)",
    doc: "Divides the first number by the others; divides 1 by a single one. Integers that do not divide return a ratio.",
    examples: &[("(/ 6 3)", "2"), ("(/ 1 3)", "1/3"), ("(/ 1.0 4)", "0.25")],
    arity: Arity::at_least(1),
    run: |_, args| match args.len() {
        1 => one_by(args.get(0)),
        _ => reduce(&args, "/", number::div),
    },
};

pub(in crate::core) const INC: Native = Native {
    name: "inc",
    usage: "(inc x)",
    doc: "Returns the number plus 1. Throws when an integer does not fit into 64 bits.",
    examples: &[("(inc 1)", "2")],
    arity: Arity::exactly(1),
    run: |_, args| number::inc(args.get(0)),
};

const INC_PROMOTING: Native = Native {
    name: "inc'",
    usage: "(inc' x)",
    doc: "Returns the number plus 1; changes to a big integer if 64 bits are not enough.",
    examples: &[("(inc' 9223372036854775807)", "9223372036854775808N")],
    arity: Arity::exactly(1),
    run: |_, args| number::inc_promoting(args.get(0), 1, "inc'"),
};

pub(in crate::core) const DEC: Native = Native {
    name: "dec",
    usage: "(dec x)",
    doc: "Returns the number minus 1. Throws when an integer does not fit into 64 bits.",
    examples: &[("(dec 1)", "0")],
    arity: Arity::exactly(1),
    run: |_, args| number::dec(args.get(0)),
};

const DEC_PROMOTING: Native = Native {
    name: "dec'",
    usage: "(dec' x)",
    doc: "Returns the number minus 1; changes to a big integer if 64 bits are not enough.",
    examples: &[("(dec' 1)", "0")],
    arity: Arity::exactly(1),
    run: |_, args| number::inc_promoting(args.get(0), -1, "dec'"),
};

pub(super) const ABS: Native = Native {
    name: "abs",
    usage: "(abs x)",
    doc: "Returns the absolute value of a number.",
    examples: &[("(abs -3)", "3"), ("(abs -1/2)", "1/2")],
    arity: Arity::exactly(1),
    run: |_, args| number::abs(args.get(0)),
};

const QUOT: Native = Native {
    name: "quot",
    usage: "(quot num div)",
    doc: "Returns the quotient, rounded towards zero.",
    examples: &[("(quot 7 2)", "3"), ("(quot -7 2)", "-3")],
    arity: Arity::exactly(2),
    run: |_, args| number::quot(args.get(0), args.get(1)),
};

const REM: Native = Native {
    name: "rem",
    usage: "(rem num div)",
    doc: "Returns the remainder of quot; it has the sign of num.",
    examples: &[("(rem -7 2)", "-1")],
    arity: Arity::exactly(2),
    run: |_, args| number::rem(args.get(0), args.get(1)),
};

const MODULO: Native = Native {
    name: "mod",
    usage: "(mod num div)",
    doc: "Returns the modulus; it has the sign of div.",
    examples: &[("(mod -7 2)", "1")],
    arity: Arity::exactly(2),
    run: |_, args| number::modulo(args.get(0), args.get(1)),
};

pub(super) const MAX: Native = Native {
    name: "max",
    usage: "(max x & more)",
    doc: "Returns the greatest of the numbers.",
    examples: &[("(max 1 3 2)", "3")],
    arity: Arity::at_least(1),
    run: |_, args| choose(&args, "max", number::greater),
};

pub(super) const MIN: Native = Native {
    name: "min",
    usage: "(min x & more)",
    doc: "Returns the least of the numbers.",
    examples: &[("(min 3 1 2)", "1")],
    arity: Arity::at_least(1),
    run: |_, args| choose(&args, "min", number::less),
};

const LESS: Native = Native {
    name: "<",
    usage: "(< x & more)",
    doc: "Tells whether each number is less than the next.",
    examples: &[("(< 1 2 3)", "true")],
    arity: Arity::at_least(1),
    run: |_, args| chain(&args, "<", number::less),
};

const LESS_OR_EQUAL: Native = Native {
    name: "<=",
    usage: "(<= x & more)",
    doc: "Tells whether no number is greater than the next.",
    examples: &[("(<= 1 2 3)", "true")],
    arity: Arity::at_least(1),
    run: |_, args| chain(&args, "<=", number::less_or_equal),
};

const GREATER: Native = Native {
    name: ">",
    usage: "(> x & more)",
    doc: "Tells whether each number is greater than the next.",
    examples: &[("(> 1 2 3)", "false")],
    arity: Arity::at_least(1),
    run: |_, args| chain(&args, ">", number::greater),
};

const GREATER_OR_EQUAL: Native = Native {
    name: ">=",
    usage: "(>= x & more)",
    doc: "Tells whether no number is less than the next.",
    examples: &[("(>= 1 2 3)", "false")],
    arity: Arity::at_least(1),
    run: |_, args| chain(&args, ">=", number::greater_or_equal),
};

const EQUIVALENT: Native = Native {
    name: "==",
    usage: "(== x & more)",
    doc: "Tells whether all numbers have the same value, whatever their kinds.",
    examples: &[("(== 1 1.0 1N)", "true"), ("(= 1 1.0)", "false")],
    arity: Arity::at_least(1),
    run: |_, args| chain(&args, "==", number::equivalent),
};

const UNCHECKED_ADD: Native = Native {
    name: "unchecked-add",
    usage: "(unchecked-add x y)",
    doc: "Returns the result in 64 bits, wrapped around if it does not fit.",
    examples: &[(
        "(unchecked-add 9223372036854775807 1)",
        "-9223372036854775808",
    )],
    arity: Arity::exactly(2),
    run: |_, args| match (args.get(0), args.get(1)) {
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(x.wrapping_add(*y))),
        (x, y) => number::add(x, y),
    },
};

const UNCHECKED_ADD_INT: Native = Native {
    name: "unchecked-add-int",
    usage: "(unchecked-add-int x y)",
    doc: "Returns the result in 32 bits, wrapped around if it does not fit.",
    examples: &[("(unchecked-add-int 3 4)", "7")],
    arity: Arity::exactly(2),
    run: |_, args| match (args.get(0), args.get(1)) {
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(i64::from(x.wrapping_add(*y) as i32))),
        (x, y) => number::add(x, y),
    },
};

const UNCHECKED_SUBTRACT: Native = Native {
    name: "unchecked-subtract",
    usage: "(unchecked-subtract x y)",
    doc: "Returns the result in 64 bits, wrapped around if it does not fit.",
    examples: &[("(unchecked-subtract 5 7)", "-2")],
    arity: Arity::exactly(2),
    run: |_, args| match (args.get(0), args.get(1)) {
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(x.wrapping_sub(*y))),
        (x, y) => number::sub(x, y),
    },
};

const UNCHECKED_SUBTRACT_INT: Native = Native {
    name: "unchecked-subtract-int",
    usage: "(unchecked-subtract-int x y)",
    doc: "Returns the result in 32 bits, wrapped around if it does not fit.",
    examples: &[("(unchecked-subtract-int 3 4)", "-1")],
    arity: Arity::exactly(2),
    run: |_, args| match (args.get(0), args.get(1)) {
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(i64::from(x.wrapping_sub(*y) as i32))),
        (x, y) => number::sub(x, y),
    },
};

const UNCHECKED_MULTIPLY: Native = Native {
    name: "unchecked-multiply",
    usage: "(unchecked-multiply x y)",
    doc: "Returns the result in 64 bits, wrapped around if it does not fit.",
    examples: &[("(unchecked-multiply 3 4)", "12")],
    arity: Arity::exactly(2),
    run: |_, args| match (args.get(0), args.get(1)) {
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(x.wrapping_mul(*y))),
        (x, y) => number::mul(x, y),
    },
};

const UNCHECKED_MULTIPLY_INT: Native = Native {
    name: "unchecked-multiply-int",
    usage: "(unchecked-multiply-int x y)",
    doc: "Returns the result in 32 bits, wrapped around if it does not fit.",
    examples: &[("(unchecked-multiply-int 3 4)", "12")],
    arity: Arity::exactly(2),
    run: |_, args| match (args.get(0), args.get(1)) {
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(i64::from(x.wrapping_mul(*y) as i32))),
        (x, y) => number::mul(x, y),
    },
};

const UNCHECKED_INC: Native = Native {
    name: "unchecked-inc",
    usage: "(unchecked-inc x)",
    doc: "Returns the result wrapped around if it does not fit.",
    examples: &[("(unchecked-inc 5)", "6")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Int(x) => Ok(Value::Int(x.wrapping_add(1))),
        x => number::inc(x),
    },
};

const UNCHECKED_INC_INT: Native = Native {
    name: "unchecked-inc-int",
    usage: "(unchecked-inc-int x)",
    doc: "Returns the result wrapped around if it does not fit.",
    examples: &[("(unchecked-inc-int 5)", "6")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Int(x) => Ok(Value::Int(i64::from(x.wrapping_add(1) as i32))),
        x => number::inc(x),
    },
};

const UNCHECKED_DEC: Native = Native {
    name: "unchecked-dec",
    usage: "(unchecked-dec x)",
    doc: "Returns the result wrapped around if it does not fit.",
    examples: &[("(unchecked-dec 5)", "4")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Int(x) => Ok(Value::Int(x.wrapping_sub(1))),
        x => number::dec(x),
    },
};

const UNCHECKED_DEC_INT: Native = Native {
    name: "unchecked-dec-int",
    usage: "(unchecked-dec-int x)",
    doc: "Returns the result wrapped around if it does not fit.",
    examples: &[("(unchecked-dec-int 5)", "4")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Int(x) => Ok(Value::Int(i64::from(x.wrapping_sub(1) as i32))),
        x => number::dec(x),
    },
};

const UNCHECKED_NEGATE: Native = Native {
    name: "unchecked-negate",
    usage: "(unchecked-negate x)",
    doc: "Returns the result wrapped around if it does not fit.",
    examples: &[("(unchecked-negate 5)", "-5")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Int(x) => Ok(Value::Int(x.wrapping_neg())),
        x => number::neg(x),
    },
};

const UNCHECKED_NEGATE_INT: Native = Native {
    name: "unchecked-negate-int",
    usage: "(unchecked-negate-int x)",
    doc: "Returns the result wrapped around if it does not fit.",
    examples: &[("(unchecked-negate-int 5)", "-5")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Int(x) => Ok(Value::Int(i64::from(x.wrapping_neg() as i32))),
        x => number::neg(x),
    },
};

const UNCHECKED_DIVIDE_INT: Native = Native {
    name: "unchecked-divide-int",
    usage: "(unchecked-divide-int x y)",
    doc: "Divides integers, rounding towards zero.",
    examples: &[("(unchecked-divide-int 7 2)", "3")],
    arity: Arity::exactly(2),
    run: |_, args| number::quot(args.get(0), args.get(1)),
};

const UNCHECKED_REMAINDER_INT: Native = Native {
    name: "unchecked-remainder-int",
    usage: "(unchecked-remainder-int x y)",
    doc: "Returns the remainder of an integer division.",
    examples: &[("(unchecked-remainder-int 7 2)", "1")],
    arity: Arity::exactly(2),
    run: |_, args| number::rem(args.get(0), args.get(1)),
};

/// Returns the sum or product of the arguments.
fn fold(
    args: &Args<'_>,
    operation: &str,
    start: i64,
    combine: fn(&Value, &Value) -> Result<Value>,
) -> Result<Value> {
    match args.as_slice() {
        [] => Ok(Value::Int(start)),
        [one] if one.is_number() => Ok(one.clone()),
        [one] => Err(number::not_a_number(operation, one, 0)),
        _ => reduce(args, operation, combine),
    }
}

/// Combines the arguments from left to right.
fn reduce(
    args: &Args<'_>,
    operation: &str,
    combine: fn(&Value, &Value) -> Result<Value>,
) -> Result<Value> {
    if let [left, right] = args.as_slice() {
        return combine(left, right);
    }
    let mut result = args.get(0).clone();
    for item in args.from(1) {
        result = combine(&result, item).map_err(|error| blame(args, operation, error))?;
    }
    Ok(result)
}

/// Returns the error with the argument of the whole call that is not a number.
#[cold]
fn blame(args: &Args<'_>, operation: &str, error: Signal) -> Signal {
    match args.as_slice().iter().position(|item| !item.is_number()) {
        Some(idx) => number::not_a_number(operation, args.get(idx), idx),
        None => error,
    }
}

fn one_by(value: &Value) -> Result<Value> {
    number::div(&Value::Int(1), value).map_err(|error| {
        if value.is_number() {
            error
        } else {
            number::not_a_number("/", value, 0)
        }
    })
}

/// Returns the preferred argument; NaN if any argument is NaN.
fn choose(
    args: &Args<'_>,
    operation: &str,
    prefer: fn(&Value, &Value) -> Result<bool>,
) -> Result<Value> {
    let mut best = args.get(0);
    if args.len() > 1 && !best.is_number() {
        return Err(number::not_a_number(operation, best, 0));
    }
    for (idx, item) in args.from(1).iter().enumerate() {
        if !item.is_number() {
            return Err(number::not_a_number(operation, item, idx + 1));
        }
        let is_nan = |value: &Value| matches!(value, Value::Float(float) if float.is_nan());
        if !is_nan(best) && (is_nan(item) || !prefer(best, item)?) {
            best = item;
        }
    }
    Ok(best.clone())
}

/// Tells whether a relation holds between all adjacent arguments.
fn chain(
    args: &Args<'_>,
    operation: &str,
    holds: fn(&Value, &Value) -> Result<bool>,
) -> Result<Value> {
    if let [left, right] = args.as_slice() {
        return holds(left, right).map(Value::Bool);
    }
    for (left, right) in args.as_slice().iter().zip(args.from(1)) {
        if !holds(left, right).map_err(|error| blame(args, operation, error))? {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}
