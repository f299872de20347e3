//! `Character/...` and `String/...`: kinds of characters, and the text of any value.

use super::{format, string};
use crate::value::{Arity, Native, Result, Value, is_digit, is_letter, write_str};
use crate::vm::{Args, Vm, wrong_type};

pub(super) const CHARACTER_FNS: &[Native] = &[
    Native {
        name: "isDigit",
        usage: "(Character/isDigit c)",
        doc: "Tells whether a character, or the character of a code, is a digit.",
        examples: &[(r"(Character/isDigit \7)", "true")],
        arity: Arity::exactly(1),
        run: |_, args| test(&args, is_digit),
    },
    Native {
        name: "isLetter",
        usage: "(Character/isLetter c)",
        doc: "Tells whether a character, or the character of a code, is a letter.",
        examples: &[
            (r"(Character/isLetter \é)", "true"),
            (r"(Character/isLetter \7)", "false"),
        ],
        arity: Arity::exactly(1),
        run: |_, args| test(&args, is_letter),
    },
    Native {
        name: "isLetterOrDigit",
        usage: "(Character/isLetterOrDigit c)",
        doc: "Tells whether a character, or the character of a code, is a letter or a digit.",
        examples: &[(r"(Character/isLetterOrDigit \_)", "false")],
        arity: Arity::exactly(1),
        run: |_, args| test(&args, |char| is_letter(char) || is_digit(char)),
    },
    Native {
        name: "isLowerCase",
        usage: "(Character/isLowerCase c)",
        doc: "Tells whether a character, or the character of a code, is a lower case letter.",
        examples: &[(r"(Character/isLowerCase \a)", "true")],
        arity: Arity::exactly(1),
        run: |_, args| test(&args, char::is_lowercase),
    },
    Native {
        name: "isUpperCase",
        usage: "(Character/isUpperCase c)",
        doc: "Tells whether a character, or the character of a code, is an upper case letter.",
        examples: &[(r"(Character/isUpperCase \a)", "false")],
        arity: Arity::exactly(1),
        run: |_, args| test(&args, char::is_uppercase),
    },
    Native {
        name: "isWhitespace",
        usage: "(Character/isWhitespace c)",
        doc: "Tells whether a character, or the character of a code, is whitespace.",
        examples: &[(r"(Character/isWhitespace \tab)", "true")],
        arity: Arity::exactly(1),
        run: |_, args| test(&args, string::is_whitespace),
    },
    Native {
        name: "toLowerCase",
        usage: "(Character/toLowerCase c)",
        doc: "Returns a character in lower case; for a code, a code.",
        examples: &[(r"(Character/toLowerCase \A)", r"\a")],
        arity: Arity::exactly(1),
        run: |_, args| {
            change(&args, |char| match char {
                'İ' => 'i',
                char => only(char.to_lowercase()).unwrap_or(char),
            })
        },
    },
    Native {
        name: "toUpperCase",
        usage: "(Character/toUpperCase c)",
        doc: "Returns a character in upper case; for a code, a code.",
        examples: &[
            (r"(Character/toUpperCase \a)", r"\A"),
            ("(Character/toUpperCase 97)", "65"),
        ],
        arity: Arity::exactly(1),
        run: |_, args| change(&args, |char| only(char.to_uppercase()).unwrap_or(char)),
    },
];

pub(super) const STRING_FNS: &[Native] = &[
    Native {
        name: "format",
        usage: "(String/format fmt args)",
        doc: "Returns fmt with each directive replaced by one of the collection args, as format does.",
        examples: &[(r#"(String/format "%s-%d" ["a" 1])"#, r#""a-1""#)],
        arity: Arity::exactly(2),
        run: |vm, mut args| {
            let mut all = vec![args.take(0)];
            all.extend(vm.items(args.take(1))?);
            (format::FORMAT.run)(vm, Args::new(&mut all))
        },
    },
    Native {
        name: "join",
        usage: "(String/join separator coll)",
        doc: "Returns the strings of coll, joined, with separator between them.",
        examples: &[(r#"(String/join ", " ["a" "b"])"#, r#""a, b""#)],
        arity: Arity::exactly(2),
        run: join,
    },
    Native {
        name: "valueOf",
        usage: "(String/valueOf x)",
        doc: "Returns the text of x, as str does; null for nil.",
        examples: &[
            ("(String/valueOf 1.5)", r#""1.5""#),
            ("(String/valueOf nil)", r#""null""#),
        ],
        arity: Arity::exactly(1),
        run: |vm, args| match args.get(0) {
            Value::Nil => Ok(Value::from("null")),
            value => {
                let mut out = String::new();
                write_str(&mut out, vm, value)?;
                Ok(Value::from(out))
            }
        },
    },
];

fn join(vm: &mut Vm, mut args: Args<'_>) -> Result<Value> {
    let separator = args.text(0)?.clone();
    let mut items = vm.iter(args.take(1))?;
    let mut out = String::new();
    let mut first = true;
    while let Some(item) = items.next(vm)? {
        if !first {
            out.push_str(separator.as_str());
        }
        first = false;
        match &item {
            Value::Text(text) => out.push_str(text.as_str()),
            Value::Nil => out.push_str("null"),
            other => {
                return Err(wrong_type(other, "strings", 1)
                    .hint("`clojure.string/join` takes anything")
                    .into());
            }
        }
    }
    Ok(Value::from(out))
}

fn test(args: &Args<'_>, holds: fn(char) -> bool) -> Result<Value> {
    character(args).map(|char| Value::Bool(holds(char)))
}

/// Applies a function to a character, or to the character of a code point.
fn change(args: &Args<'_>, change: fn(char) -> char) -> Result<Value> {
    let changed = change(character(args)?);
    Ok(match args.get(0) {
        Value::Int(_) => Value::Int(i64::from(u32::from(changed))),
        _ => Value::Char(changed),
    })
}

pub(super) fn character(args: &Args<'_>) -> Result<char> {
    let char = match args.get(0) {
        Value::Char(char) => Some(*char),
        Value::Int(code) => u32::try_from(*code).ok().and_then(char::from_u32),
        _ => None,
    };
    char.ok_or_else(|| args.expected(0, "a character or the code of one"))
}

/// Java maps one character to one: if the mapping has several characters, the character is unchanged.
fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}
