//! Printing to the host's output, or into the string that `with-out-str` collects.

use crate::value::{
    Arity, Class, Exception, Native, Object, PrintOptions, Result, Symbol, TextWriter, Value,
    describe, print_default,
};
use crate::vm::{Args, Stream, Vm};

pub(super) const FNS: &[Native] = &[
    CAPTURED,
    FLUSH,
    NEWLINE,
    PR,
    PR_STR,
    PRINT,
    PRINT_DEFAULT,
    PRINT_STR,
    PRINTLN,
    PRINTLN_STR,
    PRN,
    PRN_STR,
];

/// Returns the dynamic vars that control how and where to print.
pub(super) fn vars() -> Vec<(&'static str, Value)> {
    vec![
        ("*err*", stream_value(ERROR_STREAM)),
        ("*flush-on-newline*", Value::Bool(true)),
        ("*out*", stream_value(OUT_STREAM)),
        ("*print-dup*", Value::Bool(false)),
        ("*print-length*", Value::Nil),
        ("*print-level*", Value::Nil),
        ("*print-meta*", Value::Bool(false)),
        ("*print-namespace-maps*", Value::Bool(false)),
        ("*print-readably*", Value::Bool(true)),
    ]
}

const STREAM: &str = "a stream";
const OUT_STREAM: u64 = 1;
const ERROR_STREAM: u64 = 2;

fn stream_value(id: u64) -> Value {
    Object::Host {
        kind: STREAM,
        id,
        data: Value::Nil,
    }
    .into()
}

/// The options of a printing function.
#[derive(Clone, Copy)]
struct Style {
    readable: bool,
    line: bool,
}

const DATA: Style = Style {
    readable: true,
    line: false,
};
const DATA_LINE: Style = Style { line: true, ..DATA };
const WORDS: Style = Style {
    readable: false,
    line: false,
};
const WORDS_LINE: Style = Style {
    line: true,
    ..WORDS
};

const PR: Native = Native {
    name: "pr",
    usage: "(pr & xs)",
    doc: "Prints each x so that it can be read back, with a space between them.",
    examples: &[(r#"(with-out-str (pr "a" :b))"#, r#""\"a\" :b""#)],
    arity: Arity::at_least(0),
    run: |vm, args| print(vm, &args, DATA),
};

const PRN: Native = Native {
    name: "prn",
    usage: "(prn & xs)",
    doc: "Prints like pr and ends the line.",
    examples: &[(r#"(with-out-str (prn "a"))"#, r#""\"a\"\n""#)],
    arity: Arity::at_least(0),
    run: |vm, args| print(vm, &args, DATA_LINE),
};

const PRINT: Native = Native {
    name: "print",
    usage: "(print & xs)",
    doc: "Prints each x for people, strings without quotes, with a space between them.",
    examples: &[(r#"(with-out-str (print "a" :b))"#, r#""a :b""#)],
    arity: Arity::at_least(0),
    run: |vm, args| print(vm, &args, WORDS),
};

const PRINTLN: Native = Native {
    name: "println",
    usage: "(println & xs)",
    doc: "Prints like print and ends the line.",
    examples: &[(r#"(with-out-str (println "a" 1))"#, r#""a 1\n""#)],
    arity: Arity::at_least(0),
    run: |vm, args| print(vm, &args, WORDS_LINE),
};

const PR_STR: Native = Native {
    name: "pr-str",
    usage: "(pr-str & xs)",
    doc: "Returns the text that pr would print.",
    examples: &[(r#"(pr-str "a" [\b])"#, r#""\"a\" [\\b]""#)],
    arity: Arity::at_least(0),
    run: |vm, args| shown(vm, &args, DATA).map(Value::from),
};

const PRN_STR: Native = Native {
    name: "prn-str",
    usage: "(prn-str & xs)",
    doc: "Returns the text that prn would print.",
    examples: &[("(prn-str 1)", r#""1\n""#)],
    arity: Arity::at_least(0),
    run: |vm, args| shown(vm, &args, DATA_LINE).map(Value::from),
};

const PRINT_STR: Native = Native {
    name: "print-str",
    usage: "(print-str & xs)",
    doc: "Returns the text that print would print.",
    examples: &[(r#"(print-str "a" 1)"#, r#""a 1""#)],
    arity: Arity::at_least(0),
    run: |vm, args| shown(vm, &args, WORDS).map(Value::from),
};

const PRINTLN_STR: Native = Native {
    name: "println-str",
    usage: "(println-str & xs)",
    doc: "Returns the text that println would print.",
    examples: &[(r#"(println-str "a")"#, r#""a\n""#)],
    arity: Arity::at_least(0),
    run: |vm, args| shown(vm, &args, WORDS_LINE).map(Value::from),
};

const NEWLINE: Native = Native {
    name: "newline",
    usage: "(newline)",
    doc: "Prints the end of a line.",
    examples: &[(r"(with-out-str (newline))", r#""\n""#)],
    arity: Arity::exactly(0),
    run: |vm, _| {
        write(vm, "\n")?;
        Ok(Value::Nil)
    },
};

const FLUSH: Native = Native {
    name: "flush",
    usage: "(flush)",
    doc: "Does nothing: printed text reaches the output in order without it.",
    examples: &[("(flush)", "nil")],
    arity: Arity::exactly(0),
    run: |_, _| Ok(Value::Nil),
};

const PRINT_DEFAULT: Native = Native {
    name: "-print-default",
    usage: "(-print-default x writer)",
    doc: "Prints x to a writer, ignoring the program's own methods for it.",
    examples: &[("(with-out-str (-print-default [1] *out*))", r#""[1]""#)],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let options = options(vm, true);
        let mut out = String::new();
        let value = args.get(0).clone();
        print_default(&mut out, vm, &value, options)?;
        write_to(vm, args.get(1), &out)?;
        Ok(Value::Nil)
    },
};

const CAPTURED: Native = Native {
    name: "-captured",
    usage: "(-captured f)",
    doc: "Calls f and returns the text that it printed: the function behind with-out-str.",
    examples: &[("(-captured (fn [] (print 1)))", r#""1""#)],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let function = args.take(0);
        let writer = TextWriter::new_value("");
        let depth = vm.binding_depth();
        let out = vm.world().core.intern(Symbol::new("*out*"));
        vm.bind(out, writer.clone());
        let result = vm.call(&function, &[]);
        vm.unbind(vm.binding_depth().saturating_sub(depth));
        result?;
        let text = TextWriter::of(&writer).map(|writer| writer.text.take());
        Ok(Value::from(text.unwrap_or_default()))
    },
};

fn print(vm: &mut Vm, args: &Args<'_>, style: Style) -> Result<Value> {
    let text = shown(vm, args, style)?;
    write(vm, &text)?;
    Ok(Value::Nil)
}

/// Writes text to the value of `*out*`.
fn write(vm: &mut Vm, text: &str) -> Result<()> {
    let out = core_var(vm, "*out*").unwrap_or(Value::Nil);
    write_to(vm, &out, text)
}

/// Writes text to a writer or stream.
pub(super) fn write_to(vm: &mut Vm, out: &Value, text: &str) -> Result<()> {
    if let Some(writer) = TextWriter::of(out) {
        writer.text.borrow_mut().push_str(text);
        return Ok(());
    }
    if let Value::Object(object) = out {
        match &**object {
            Object::Host {
                kind: STREAM,
                id: OUT_STREAM,
                ..
            } => return vm.write(Stream::Out, text),
            Object::Host {
                kind: STREAM,
                id: ERROR_STREAM,
                ..
            } => {
                return vm.write(Stream::Error, text);
            }
            Object::Instance(_) => {
                let text = Value::from(text);
                if vm.call_own_method(out, "write", &[text])?.is_some() {
                    return Ok(());
                }
            }
            _ => {}
        }
    }
    let message = format!("cannot write to {}, which is not a stream", describe(out));
    Err(Exception::new(Class::CLASS_CAST, "E0385", message)
        .hint("bind `*out*` to `*out*` or `*err*`, or use `with-out-str`")
        .into())
}

/// Returns the arguments printed, with a space between them.
fn shown(vm: &mut Vm, args: &Args<'_>, style: Style) -> Result<String> {
    let options = options(vm, style.readable);
    let mut out = String::new();
    for (idx, value) in args.as_slice().iter().enumerate() {
        if idx > 0 {
            out.push(' ');
        }
        crate::value::print_value(&mut out, vm, value, options)?;
    }
    if style.line {
        out.push('\n');
    }
    Ok(out)
}

/// Returns the printing options, from the `*print-...*` vars.
pub(crate) fn options(vm: &mut Vm, readable: bool) -> PrintOptions {
    let limit = |value: Option<Value>| match value {
        Some(Value::Int(limit)) => Some(usize::try_from(limit).unwrap_or(0)),
        _ => None,
    };
    let is_set = |value: Option<Value>| value.is_some_and(|value| value.is_truthy());
    let readably = core_var(vm, "*print-readably*").is_none_or(|value| value.is_truthy());
    let is_dup = is_set(core_var(vm, "*print-dup*"));
    PrintOptions {
        readable: is_dup || (readable && readably),
        length: limit(core_var(vm, "*print-length*")),
        level: limit(core_var(vm, "*print-level*")),
        meta: is_dup || is_set(core_var(vm, "*print-meta*")),
        namespace_maps: is_set(core_var(vm, "*print-namespace-maps*")),
        extended: vm.world().print_extended.get(),
    }
}

/// Returns the current value of a var of `clojure.core`; `None` if it is not defined.
pub(super) fn core_var(vm: &mut Vm, name: &str) -> Option<Value> {
    let var = vm.world().core.lookup(Symbol::new(name))?;
    vm.var_value(&var).ok()
}
