//! Further functions of `Character/...`: digits in a radix, kinds of characters, characters as text.

use super::host_text;
use crate::value::{Arity, Native, Result, Value};
use crate::vm::Args;

pub(super) const MORE_FNS: &[Native] = &[
    Native {
        name: "compare",
        usage: "(Character/compare a b)",
        doc: "Returns the difference of the codes of two characters.",
        examples: &[(r"(Character/compare \b \a)", "1")],
        arity: Arity::exactly(2),
        run: |_, args| {
            let code = |idx| match args.get(idx) {
                Value::Char(char) => Ok(i64::from(u32::from(*char))),
                _ => Err(args.expected(idx, "a character")),
            };
            Ok(Value::Int(code(0)? - code(1)?))
        },
    },
    Native {
        name: "digit",
        usage: "(Character/digit c radix)",
        doc: "Returns the value of a digit in a radix; -1 if it is not a digit.",
        examples: &[
            (r"(Character/digit \f 16)", "15"),
            (r"(Character/digit \9 8)", "-1"),
        ],
        arity: Arity::exactly(2),
        run: |_, args| {
            let radix = u32::try_from(args.int(1)?).ok();
            let radix = radix.filter(|radix| (2..=36).contains(radix));
            let char = host_text::character(&args)?;
            let digit = radix.and_then(|radix| char.to_digit(radix));
            Ok(Value::Int(digit.map_or(-1, i64::from)))
        },
    },
    Native {
        name: "forDigit",
        usage: "(Character/forDigit digit radix)",
        doc: "Returns the digit of a value in a radix.",
        examples: &[(r"(Character/forDigit 11 16)", r"\b")],
        arity: Arity::exactly(2),
        run: |_, args| {
            let radix = u32::try_from(args.int(1)?).ok();
            let radix = radix.filter(|radix| (2..=36).contains(radix));
            let digit = u32::try_from(args.int(0)?).ok();
            let char = digit
                .zip(radix)
                .and_then(|(digit, radix)| char::from_digit(digit, radix));
            Ok(Value::Char(char.unwrap_or('\0')))
        },
    },
    Native {
        name: "getNumericValue",
        usage: "(Character/getNumericValue c)",
        doc: "Returns the value of a digit or letter, 10 for a and A; -1 for anything else.",
        examples: &[(r"(Character/getNumericValue \7)", "7")],
        arity: Arity::exactly(1),
        run: |_, args| {
            let digit = host_text::character(&args)?.to_digit(36);
            Ok(Value::Int(digit.map_or(-1, i64::from)))
        },
    },
    test(
        "isAlphabetic",
        "(Character/isAlphabetic c)",
        "Tells whether a character, or the character of a code, is alphabetic.",
        &[("(Character/isAlphabetic 97)", "true")],
        |_, args| is(&args, char::is_alphabetic),
    ),
    test(
        "isISOControl",
        "(Character/isISOControl c)",
        "Tells whether a character, or the character of a code, is a control character.",
        &[(r"(Character/isISOControl \tab)", "true")],
        |_, args| is(&args, char::is_control),
    ),
    test(
        "isSpaceChar",
        "(Character/isSpaceChar c)",
        "Tells whether a character, or the character of a code, is a space in Unicode; a tab is not.",
        &[(r"(Character/isSpaceChar \space)", "true")],
        |_, args| is(&args, |char| char.is_whitespace() && !char.is_control()),
    ),
    test(
        "toString",
        "(Character/toString c)",
        "Returns a character, or the character of a code, as a string.",
        &[(r"(Character/toString \a)", r#""a""#)],
        |_, args| Ok(Value::text(host_text::character(&args)?.to_string())),
    ),
    test(
        "valueOf",
        "(Character/valueOf c)",
        "Returns a character.",
        &[(r"(Character/valueOf \a)", r"\a")],
        |_, args| host_text::character(&args).map(Value::Char),
    ),
];

const fn test(
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    examples: &'static [(&'static str, &'static str)],
    run: fn(&mut crate::vm::Vm, Args<'_>) -> Result<Value>,
) -> Native {
    Native {
        name,
        usage,
        doc,
        examples,
        arity: Arity::exactly(1),
        run,
    }
}

fn is(args: &Args<'_>, holds: fn(char) -> bool) -> Result<Value> {
    Ok(Value::Bool(holds(host_text::character(args)?)))
}
