//! Writers and readers of text as values: string writers, string builders, and readers for `read`.
//!
//! The constructors are in namespaces with the host's names, so that `(java.io.StringReader. s)` finds one.

use super::print::write_to;
use crate::value::{
    Arity, Class, Exception, Native, Result, Signal, TextReader, TextWriter, Value,
};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    APPEND,
    READ_ALL,
    READ_CHAR,
    READ_FORM,
    READ_LINE_OF,
    TEXT_READER,
    UNREAD,
    WRITE,
];

/// `clojure.edn/read`.
pub(super) const EDN_FNS: &[Native] = &[EDN_READ];

/// The constructors of the classes that write.
pub(super) const WRITER_FNS: &[Native] = &[NEW_WRITER];

/// The constructors of the classes that read.
pub(super) const READER_FNS: &[Native] = &[NEW_READER];

const NEW_WRITER: Native = Native {
    name: "new",
    usage: "(StringWriter.)\n(StringBuilder. text)",
    doc: "Returns a new writer, which collects the text written to it; str returns its text.",
    examples: &[(
        r#"(let [w (StringBuilder. "a")] (.append w "b") (str w))"#,
        r#""ab""#,
    )],
    arity: Arity::between(0, 1),
    run: |_, args| {
        let text = match args.as_slice() {
            [Value::Text(text)] => text.as_str().to_owned(),
            _ => String::new(),
        };
        Ok(TextWriter::new_value(&text))
    },
};

const NEW_READER: Native = Native {
    name: "new",
    usage: "(StringReader. text)\n(PushbackReader. reader)",
    doc: "Returns a reader over a text, or the reader itself: every reader can unread text.",
    examples: &[(
        r#"(read (java.io.PushbackReader. (java.io.StringReader. "[1] 2")))"#,
        "[1]",
    )],
    arity: Arity::between(1, 2),
    run: new_reader,
};

fn new_reader(_vm: &mut Vm, mut args: Args<'_>) -> Result<Value> {
    if TextReader::of(args.get(0)).is_some() {
        return Ok(args.take(0));
    }
    let text = args.text(0)?;
    Ok(TextReader::new_value(text.as_str()))
}

const TEXT_READER: Native = Native {
    name: "-text-reader",
    usage: "(-text-reader text)",
    doc: "Returns a reader over a text: the value to which with-in-str binds *in*.",
    examples: &[],
    arity: Arity::exactly(1),
    run: new_reader,
};

const WRITE: Native = Native {
    name: "-write",
    usage: "(-write writer x)",
    doc: "Writes a string, or the character with a code, to a writer or stream.",
    examples: &[(r#"(with-out-str (-write *out* "a"))"#, r#""a""#)],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let text = match args.get(1) {
            Value::Int(code) => match u32::try_from(*code).ok().and_then(char::from_u32) {
                Some(char) => char.to_string(),
                None => return Err(args.expected(1, "the number of a character")),
            },
            Value::Text(text) => text.as_str().to_owned(),
            _ => return Err(args.expected(1, "a string")),
        };
        write_to(vm, args.get(0), &text)?;
        Ok(Value::Nil)
    },
};

pub(super) const APPEND: Native = Native {
    name: "-append",
    usage: "(-append writer x)",
    doc: "Writes the text of x, as str returns it, to a writer or stream, and returns the writer.",
    examples: &[],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let mut text = String::new();
        let item = args.get(1).clone();
        match item {
            Value::Nil => text.push_str("null"),
            item => crate::value::write_str(&mut text, vm, &item)?,
        }
        write_to(vm, args.get(0), &text)?;
        Ok(args.take(0))
    },
};

const READ_LINE_OF: Native = Native {
    name: "-read-line",
    usage: "(-read-line reader)",
    doc: "Returns the next line of a reader, or nil at its end.",
    examples: &[(
        r#"(with-in-str "a\nb" [(-read-line *in*) (-read-line *in*) (-read-line *in*)])"#,
        r#"["a" "b" nil]"#,
    )],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let reader = reader(&args, 0)?;
        if let Some(line) = reader.next_line() {
            return Ok(Value::from(line));
        }
        if !reader.is_input {
            return Ok(Value::Nil);
        }
        Ok(input_line(vm)?.map_or(Value::Nil, Value::from))
    },
};

const READ_CHAR: Native = Native {
    name: "-read-char",
    usage: "(-read-char reader)",
    doc: "Returns the code of the next character of a reader, or -1 at its end.",
    examples: &[(
        r#"(with-in-str "a" [(-read-char *in*) (-read-char *in*)])"#,
        "[97 -1]",
    )],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let reader = reader(&args, 0)?;
        let mut next = reader.next_char();
        if next.is_none() && feed(vm, reader)? {
            next = reader.next_char();
        }
        Ok(Value::Int(
            next.map_or(-1, |char| i64::from(u32::from(char))),
        ))
    },
};

const UNREAD: Native = Native {
    name: "-unread",
    usage: "(-unread reader x)",
    doc: "Puts back a string, or the character with a code, to be read again.",
    examples: &[(
        r#"(with-in-str "b" (-unread *in* 97) (-read-line *in*))"#,
        r#""ab""#,
    )],
    arity: Arity::exactly(2),
    run: |_, args| {
        let reader = reader(&args, 0)?;
        match args.get(1) {
            Value::Int(code) => match u32::try_from(*code).ok().and_then(char::from_u32) {
                Some(char) => reader.unread(char.encode_utf8(&mut [0; 4])),
                None => return Err(args.expected(1, "the number of a character")),
            },
            Value::Char(char) => reader.unread(char.encode_utf8(&mut [0; 4])),
            _ => reader.unread(args.text(1)?.as_str()),
        }
        Ok(Value::Nil)
    },
};

const READ_ALL: Native = Native {
    name: "-read-all",
    usage: "(-read-all reader)",
    doc: "Returns the rest of a reader's text.",
    examples: &[(r#"(with-in-str "a\nb" (-read-all *in*))"#, r#""a\nb""#)],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let reader = reader(&args, 0)?;
        read_all(vm, reader)
    },
};

/// Returns the rest of a reader's text.
pub(super) fn read_all(vm: &mut Vm, reader: &TextReader) -> Result<Value> {
    while feed(vm, reader)? {}
    let rest = reader.rest();
    reader.advance(rest.len());
    Ok(Value::from(rest))
}

const READ_FORM: Native = Native {
    name: "-read-form",
    usage: "(-read-form reader opts)",
    doc: "Reads the next form of a reader as code: a vector of the form and its text, or nil at the end.",
    examples: &[(
        r#"(with-in-str "(a) b" (-read-form *in* {}))"#,
        r#"[(a) "(a)"]"#,
    )],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let how = super::read::how(vm, args.get(1))?;
        let reader = reader(&args, 0)?;
        from_reader(vm, reader, |vm, text| {
            let loader = vm.world().loader();
            loader.read(vm, "<read>", text, &how)
        })
    },
};

const EDN_READ: Native = Native {
    name: "read",
    usage: "(read)\n(read stream)\n(read opts stream)",
    doc: "Reads the next form of a reader (*in*) as data. The options are those of read-string; without :eof the end is an error.",
    examples: &[(
        r#"(with-in-str "{:a 1} 2" [(clojure.edn/read) (clojure.edn/read)])"#,
        "[{:a 1} 2]",
    )],
    arity: Arity::between(0, 2),
    run: |vm, args| {
        let options = super::read::edn_options(&args)?;
        let source = match args.as_slice().last() {
            Some(source) => source.clone(),
            None => super::print::core_var(vm, "*in*").unwrap_or(Value::Nil),
        };
        let Some(reader) = TextReader::of(&source) else {
            let last = args.len().saturating_sub(1);
            return Err(args.expected(last, "a reader"));
        };
        let read = from_reader(vm, reader, |vm, text| {
            super::read::edn_form(vm, text, &options)
        })?;
        match read {
            Value::Vector(parts) => Ok(parts.iter().next().cloned().unwrap_or(Value::Nil)),
            _ => super::read::at_end(&options, None),
        }
    },
};

/// Reads a form from a reader; from standard input, reads the lines that the form needs.
fn from_reader(
    vm: &mut Vm,
    reader: &TextReader,
    read: impl Fn(&mut Vm, &str) -> Result<Option<(Value, usize)>>,
) -> Result<Value> {
    loop {
        let rest = reader.rest();
        let found = if rest.trim_start().is_empty() {
            Ok(None)
        } else {
            read(vm, &rest)
        };
        match found {
            Ok(Some((form, length))) => {
                reader.advance(length);
                let text = Value::from(&rest[..length]);
                return Ok(Value::vector([form, text]));
            }
            Ok(None) => {
                if !feed(vm, reader)? {
                    reader.advance(rest.len());
                    return Ok(Value::Nil);
                }
            }
            Err(signal) => {
                if !(is_unfinished(&signal) && feed(vm, reader)?) {
                    return Err(signal);
                }
            }
        }
    }
}

/// Tells whether more text could complete the form of a reader's error.
fn is_unfinished(signal: &Signal) -> bool {
    match signal {
        Signal::Throw(exception) => exception
            .data
            .get("at-end")
            .is_some_and(|at_end| at_end.is_truthy()),
        Signal::Stop(_) => false,
    }
}

/// Appends a line of standard input to its reader; returns false at the end of the input.
fn feed(vm: &mut Vm, reader: &TextReader) -> Result<bool> {
    if !reader.is_input {
        return Ok(false);
    }
    Ok(match input_line(vm)? {
        Some(line) => {
            reader.feed(&line);
            true
        }
        None => false,
    })
}

fn input_line(vm: &mut Vm) -> Result<Option<String>> {
    vm.host().read_line().map_err(|why| {
        let message = format!("cannot read a line: {why}");
        Exception::new(Class::IO_EXCEPTION, "E0385", message).into()
    })
}

fn reader<'a>(args: &'a Args<'_>, idx: usize) -> Result<&'a TextReader> {
    TextReader::of(args.get(idx)).ok_or_else(|| args.expected(idx, "a reader, such as *in*"))
}
