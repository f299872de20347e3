//! `StringBuilder`: text that grows in place. `str` returns its content.

use std::cell::RefCell;

use crate::value::{Arity, HostObject, Native, Result, Value, write_str};
use crate::vm::{Args, Vm};

/// The text so far, and the name of the class.
struct StringBuilder(RefCell<String>, &'static str);

/// Returns the content of a string builder; `None` for any other value.
pub(super) fn text_in(value: &Value) -> Option<String> {
    let builder: &StringBuilder = value.as_host()?;
    Some(builder.text())
}

impl HostObject for StringBuilder {
    fn class_name(&self) -> &'static str {
        self.1
    }

    fn text(&self) -> String {
        self.0.borrow().clone()
    }
}

pub(super) const BUILDER_FNS: &[Native] = &[Native {
    name: "new",
    usage: "(StringBuilder.)\n(StringBuilder. text-or-capacity)",
    doc: "Returns a string builder with an initial text.",
    examples: &[(r#"(str (.append (StringBuilder. "a") "b"))"#, r#""ab""#)],
    arity: Arity::between(0, 1),
    run: |vm, args| new_builder(vm, &args, "java.lang.StringBuilder"),
}];

pub(super) const BUFFER_FNS: &[Native] = &[Native {
    name: "new",
    usage: "(StringBuffer.)\n(StringBuffer. text-or-capacity)",
    doc: "Returns a string buffer with an initial text: a string builder under another name.",
    examples: &[(r#"(str (.append (StringBuffer. "a") "b"))"#, r#""ab""#)],
    arity: Arity::between(0, 1),
    run: |vm, args| new_builder(vm, &args, "java.lang.StringBuffer"),
}];

fn new_builder(vm: &mut Vm, args: &Args<'_>, class: &'static str) -> Result<Value> {
    let mut text = String::new();
    if !args.is_empty() && !matches!(args.get(0), Value::Int(_)) {
        write_str(&mut text, vm, args.get(0))?;
    }
    Ok(Value::host(StringBuilder(RefCell::new(text), class)))
}

pub(super) const METHODS: &[Native] = &[
    Native {
        name: ".reverse",
        usage: "(.reverse builder)",
        doc: "Reverses the characters of a string builder, and returns the builder.",
        examples: &[(r#"(str (.reverse (StringBuilder. "abc")))"#, r#""cba""#)],
        arity: Arity::exactly(1),
        run: |_, mut args| {
            let turned: String = builder(&args)?.0.borrow().chars().rev().collect();
            builder(&args)?.0.replace(turned);
            Ok(args.take(0))
        },
    },
    Native {
        name: ".append",
        usage: "(.append builder x)\n(.append builder text start end)",
        doc: "Appends the text of x, as str returns it, or a part of a text to a string builder, and returns the builder.",
        examples: &[(
            r#"(str (doto (StringBuilder.) (.append "a") (.append 1)))"#,
            r#""a1""#,
        )],
        arity: Arity::between(2, 4),
        run: append,
    },
    Native {
        name: ".deleteCharAt",
        usage: "(.deleteCharAt builder idx)",
        doc: "Removes the character at an index of a string builder, and returns the builder.",
        examples: &[(
            r#"(str (.deleteCharAt (StringBuilder. "abc") 1))"#,
            r#""ac""#,
        )],
        arity: Arity::exactly(2),
        run: |_, mut args| {
            let builder = builder(&args)?;
            let start = offset(&args, &builder.0.borrow(), 1)?;
            let mut text = builder.0.borrow_mut();
            if start == text.len() {
                return Err(args.expected(1, "an index in the builder"));
            }
            text.remove(start);
            drop(text);
            Ok(args.take(0))
        },
    },
    Native {
        name: ".insert",
        usage: "(.insert builder idx x)",
        doc: "Inserts the text of x, as str returns it, at an index of a string builder, and returns the builder.",
        examples: &[(r#"(str (.insert (StringBuilder. "ac") 1 "b"))"#, r#""abc""#)],
        arity: Arity::exactly(3),
        run: |vm, mut args| {
            let mut more = String::new();
            write_str(&mut more, vm, args.get(2))?;
            let builder = builder(&args)?;
            let at = offset(&args, &builder.0.borrow(), 1)?;
            builder.0.borrow_mut().insert_str(at, &more);
            Ok(args.take(0))
        },
    },
    Native {
        name: ".setLength",
        usage: "(.setLength builder n)",
        doc: "Truncates a string builder to n characters, or pads it with zero characters.",
        examples: &[(
            r#"(let [b (StringBuilder. "abc")] (.setLength b 1) (str b))"#,
            r#""a""#,
        )],
        arity: Arity::exactly(2),
        run: |_, args| {
            let wanted = args.index(1)?;
            let mut text = builder(&args)?.0.borrow_mut();
            let count = text.chars().count();
            if wanted > count {
                text.extend(std::iter::repeat_n('\0', (wanted - count).min(100_000_000)));
            } else if let Some((at, _)) = text.char_indices().nth(wanted) {
                text.truncate(at);
            }
            Ok(Value::Nil)
        },
    },
];

fn append(vm: &mut Vm, mut args: Args<'_>) -> Result<Value> {
    if args.len() == 2 && builder(&args).is_err() {
        // Writers accept `.append` as well.
        return (super::streams::APPEND.run)(vm, args);
    }
    let mut more = String::new();
    match args.get(1) {
        Value::Nil => more.push_str("null"),
        value => write_str(&mut more, vm, value)?,
    }
    if args.len() == 3 {
        return Err(args.expected(2, "a start and an end"));
    }
    if args.len() == 4 {
        let (start, end) = (offset(&args, &more, 2)?, offset(&args, &more, 3)?);
        more = more.get(start..end).unwrap_or_default().to_owned();
    }
    builder(&args)?.0.borrow_mut().push_str(&more);
    Ok(args.take(0))
}

fn builder<'a>(args: &'a Args<'_>) -> Result<&'a StringBuilder> {
    args.get(0)
        .as_host()
        .ok_or_else(|| args.expected(0, "a StringBuilder"))
}

/// Returns the byte offset of the character at an index argument; the index of the end is valid.
fn offset(args: &Args<'_>, text: &str, idx: usize) -> Result<usize> {
    let wanted = args.index(idx)?;
    let ends = text.char_indices().map(|(at, _)| at);
    ends.chain([text.len()])
        .nth(wanted)
        .ok_or_else(|| args.expected(idx, "an index in the text"))
}
