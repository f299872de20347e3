//! `Boolean/...`, `Double/...`, `Integer/...`, `Long/...`: parsing text as Java does, which throws if the text is not a
//! number.

use super::number;
use crate::value::number::parse_double;
use crate::value::{Arity, Class, Exception, Native, Result, Signal, Value};
use crate::vm::Args;

pub(super) const BOOLEAN_FNS: &[Native] = &[
    Native {
        name: "new",
        usage: "(Boolean. x)",
        doc: "Returns x if it is true or false; else tells whether the string x is \"true\", in upper or lower case.",
        examples: &[("(Boolean. true)", "true")],
        arity: Arity::exactly(1),
        run: |vm, args| (BOOLEAN_FNS[2].run)(vm, args),
    },
    Native {
        name: "parseBoolean",
        usage: "(Boolean/parseBoolean s)",
        doc: r#"Tells whether the string is "true", in upper or lower case."#,
        examples: &[
            (r#"(Boolean/parseBoolean "True")"#, "true"),
            (r#"(Boolean/parseBoolean "yes")"#, "false"),
        ],
        arity: Arity::exactly(1),
        run: |_, args| boolean(&args),
    },
    Native {
        name: "valueOf",
        usage: "(Boolean/valueOf x)",
        doc: r#"Returns x if it is true or false; else tells whether the string x is "true", in upper or lower case."#,
        examples: &[(r#"(Boolean/valueOf "true")"#, "true")],
        arity: Arity::exactly(1),
        run: |_, mut args| match args.get(0) {
            Value::Bool(_) => Ok(args.take(0)),
            _ => boolean(&args),
        },
    },
];

pub(super) const DOUBLE_FNS: &[Native] = &[
    Native {
        name: "new",
        usage: "(Double. x)",
        doc: "Returns a number as a double, or parses a string as a double; throws if the string is not a number.",
        examples: &[(r#"(Double. "1.5")"#, "1.5")],
        arity: Arity::exactly(1),
        run: |vm, args| (DOUBLE_FNS[2].run)(vm, args),
    },
    Native {
        name: "parseDouble",
        usage: "(Double/parseDouble s)",
        doc: "Parses a string as a double; throws if the string is not a number.",
        examples: &[(r#"(Double/parseDouble "1.5")"#, "1.5")],
        arity: Arity::exactly(1),
        run: |_, args| double(&args),
    },
    Native {
        name: "valueOf",
        usage: "(Double/valueOf x)",
        doc: "Returns a number as a double, or parses a string as a double; throws if the string is not a number.",
        examples: &[(r#"(Double/valueOf "2")"#, "2.0")],
        arity: Arity::exactly(1),
        run: |vm, args| match args.get(0) {
            Value::Text(_) => double(&args),
            _ => (number::DOUBLE.run)(vm, args),
        },
    },
];

pub(super) const INTEGER_FNS: &[Native] = &[
    Native {
        name: "parseInt",
        usage: "(Integer/parseInt s)\n(Integer/parseInt s radix)",
        doc: "Parses a string as an integer in a radix (10); throws if the string is not an integer, or does not fit into 32 bits.",
        examples: &[
            (r#"(Integer/parseInt "-12")"#, "-12"),
            (r#"(Integer/parseInt "ff" 16)"#, "255"),
        ],
        arity: Arity::between(1, 2),
        run: |_, args| integer(&args, INT),
    },
    Native {
        name: "valueOf",
        usage: "(Integer/valueOf x)\n(Integer/valueOf s radix)",
        doc: "Returns an integer, or parses a string as an integer; throws if the string is not an integer, or does not fit into 32 bits.",
        examples: &[(r#"(Integer/valueOf "12")"#, "12")],
        arity: Arity::between(1, 2),
        run: |vm, args| match args.get(0) {
            Value::Int(_) if args.len() == 1 => (number::INT.run)(vm, args),
            _ => integer(&args, INT),
        },
    },
];

pub(super) const LONG_FNS: &[Native] = &[
    Native {
        name: "parseLong",
        usage: "(Long/parseLong s)\n(Long/parseLong s radix)",
        doc: "Parses a string as an integer in a radix (10); throws if the string is not an integer.",
        examples: &[
            (r#"(Long/parseLong "-12")"#, "-12"),
            (r#"(Long/parseLong "101" 2)"#, "5"),
        ],
        arity: Arity::between(1, 2),
        run: |_, args| integer(&args, LONG),
    },
    Native {
        name: "valueOf",
        usage: "(Long/valueOf x)\n(Long/valueOf s radix)",
        doc: "Returns an integer, or parses a string as an integer; throws if the string is not an integer.",
        examples: &[(r#"(Long/valueOf "12")"#, "12")],
        arity: Arity::between(1, 2),
        run: |_, mut args| match args.get(0) {
            Value::Int(_) if args.len() == 1 => Ok(args.take(0)),
            _ => integer(&args, LONG),
        },
    },
];

/// Implements `(Integer. x)` and `(Long. x)`.
pub(super) fn make(class: &str, args: &Args<'_>) -> Result<Value> {
    let range = if class == "Integer" { INT } else { LONG };
    match args.get(0) {
        Value::Int(int) if range.contains(int) => Ok(Value::Int(*int)),
        Value::Int(_) => Err(args.expected(0, "an integer of 32 bits")),
        _ => integer(args, range),
    }
}

pub(super) const FLOAT_FNS: &[Native] = &[
    Native {
        name: "parseFloat",
        usage: "(Float/parseFloat s)",
        doc: "Parses a string as a number, rounded to the precision of a float; throws if the string is not a number.",
        examples: &[(r#"(Float/parseFloat "1.5")"#, "1.5")],
        arity: Arity::exactly(1),
        run: |_, args| double(&args).map(to_single),
    },
    Native {
        name: "valueOf",
        usage: "(Float/valueOf x)",
        doc: "Returns a number, or parses a string as one, rounded to the precision of a float.",
        examples: &[(r#"(Float/valueOf "2")"#, "2.0")],
        arity: Arity::exactly(1),
        run: |vm, args| (DOUBLE_FNS[2].run)(vm, args).map(to_single),
    },
];

fn to_single(value: Value) -> Value {
    match value {
        Value::Float(float) => Value::Float(f64::from(float as f32)),
        other => other,
    }
}

type Range = std::ops::RangeInclusive<i64>;

const INT: Range = i32::MIN as i64..=i32::MAX as i64;
const LONG: Range = i64::MIN..=i64::MAX;

/// Parses a boolean; nil is false, as in Java.
fn boolean(args: &Args<'_>) -> Result<Value> {
    match args.get(0) {
        Value::Nil => Ok(Value::Bool(false)),
        _ => Ok(Value::Bool(
            args.text(0)?.as_str().eq_ignore_ascii_case("true"),
        )),
    }
}

fn double(args: &Args<'_>) -> Result<Value> {
    let text = args.text(0)?.as_str().trim_matches(|char| char <= ' ');
    if text.is_empty() {
        return Err(number_format("empty String".to_owned()));
    }
    parse_double(text)
        .map(Value::Float)
        .ok_or_else(|| for_input(text))
}

fn integer(args: &Args<'_>, range: Range) -> Result<Value> {
    if args.get(0).is_nil() {
        return Err(number_format("Cannot parse null string: null".to_owned()));
    }
    let text = args.text(0)?.as_str();
    let radix = if args.len() == 2 { radix(args)? } else { 10 };
    match i64::from_str_radix(text, radix) {
        Ok(int) if range.contains(&int) => Ok(Value::Int(int)),
        _ if radix == 10 => Err(for_input(text)),
        _ => Err(number_format(format!(
            "For input string: \"{text}\" under radix {radix}"
        ))),
    }
}

fn radix(args: &Args<'_>) -> Result<u32> {
    match args.int(1)? {
        radix @ 2..=36 => Ok(radix as u32),
        radix @ ..2 => Err(number_format(format!(
            "radix {radix} less than Character.MIN_RADIX"
        ))),
        radix => Err(number_format(format!(
            "radix {radix} greater than Character.MAX_RADIX"
        ))),
    }
}

#[cold]
fn for_input(text: &str) -> Signal {
    number_format(format!("For input string: \"{text}\""))
}

#[cold]
fn number_format(message: String) -> Signal {
    Exception::new(Class::NUMBER_FORMAT, "E0323", message)
        .argument(0)
        .hint("`parse-long` and `parse-double` return nil for text that is not a number")
        .into()
}
