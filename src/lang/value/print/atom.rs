//! Values that hold no others, as written by `pr`, `print` and `str`.

use super::{PrintOptions, inst, print_value};
use crate::value::meter;
use crate::value::number::{
    java_float, push_int, write_big, write_decimal, write_float, write_ratio,
};
use crate::value::{Force, Object, Result, Symbol, TextReader, TextWriter, Value};

/// Writes a value that holds no others; returns false for any other value.
#[inline]
pub(super) fn write(out: &mut String, value: &Value, options: PrintOptions) -> bool {
    match value {
        Value::Nil => out.push_str("nil"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(int) => push_int(out, *int),
        Value::Float(float) => write_float(out, *float),
        Value::Keyword(keyword) => keyword.write_to(out),
        Value::Text(text) if options.readable => write_quoted(out, text),
        Value::Text(text) => out.push_str(text),
        Value::Symbol(symbol) => symbol.write_to(out),
        Value::Name(name) if !options.meta || value.meta().is_nil() => name.symbol.write_to(out),
        Value::Char(char) if options.readable => write_char(out, *char),
        Value::Char(char) => out.push(*char),
        Value::BigInt(int) => {
            write_big(out, int);
            out.push('N');
        }
        Value::Ratio(ratio) => write_ratio(out, ratio),
        Value::Decimal(decimal) => {
            write_decimal(out, decimal);
            out.push('M');
        }
        Value::Native(native) => write_function(out, native.name),
        Value::Fn(closure) => write_function(out, closure.proto.name()),
        Value::Var(var) => {
            out.push_str("#'");
            var.namespace.write_to(out);
            out.push('/');
            var.name.write_to(out);
        }
        Value::Object(object) => return write_object(out, object),
        // Metadata is written first, and the symbol after it.
        Value::Name(_) => return false,
        Value::Vector(_)
        | Value::Map(_)
        | Value::Set(_)
        | Value::List(_)
        | Value::Seq(_)
        | Value::Lazy(_)
        | Value::Record(_)
        | Value::Atom(_)
        | Value::Exception(_) => return false,
    }
    true
}

fn write_function(out: &mut String, name: &str) {
    out.push_str("#function[");
    out.push_str(name);
    out.push(']');
}

fn write_object(out: &mut String, object: &Object) -> bool {
    match object {
        Object::Regex { source, .. } => write_regex(out, source),
        Object::Inst(millis) => {
            out.push_str("#inst \"");
            inst::write_inst(out, *millis);
            out.push('"');
        }
        Object::Uuid(bits) => {
            out.push_str("#uuid \"");
            write_uuid(out, *bits);
            out.push('"');
        }
        Object::Class(class) => out.push_str(class.0.full_name),
        Object::RecordType(record_type) => write_class_name(out, record_type.name),
        Object::Namespace(namespace) => {
            out.push_str("#object[clojure.lang.Namespace \"");
            namespace.name.write_to(out);
            out.push_str("\"]");
        }
        Object::Bytes(bytes) => {
            out.push_str("#object[\"[B\" ");
            push_int(out, bytes.len() as i64);
            out.push(']');
        }
        Object::HostObject(object) => {
            out.push_str("#object[");
            out.push_str(object.class_name());
            out.push(' ');
            write_quoted(out, &object.text());
            out.push(']');
        }
        Object::Array(array) => {
            out.push_str("#object[\"");
            out.push_str(array.element.array_class());
            out.push_str("\" ");
            push_int(out, array.len() as i64);
            out.push(']');
        }
        Object::Host { kind, id, .. } => {
            out.push_str("#object[");
            let kind = kind.strip_prefix("a ").or_else(|| kind.strip_prefix("an "));
            out.push_str(kind.unwrap_or("host"));
            out.push(' ');
            out.push_str(&id.to_string());
            out.push(']');
        }
        Object::Function(function) => write_function(out, &function.name),
        Object::Instance(instance) if instance.instance_type.shape().is_some() => return false,
        Object::Instance(instance) => {
            out.push_str("#object[");
            write_class_name(out, instance.instance_type.name);
            out.push(']');
        }
        Object::State(state) => match state.downcast_ref::<TextWriter>() {
            Some(writer) => {
                out.push_str("#object[java.io.StringWriter ");
                write_quoted(out, &writer.text.borrow());
                out.push(']');
            }
            None if state.is::<TextReader>() => out.push_str("#object[java.io.PushbackReader]"),
            None => out.push_str("#object[state]"),
        },
        Object::Transient(_) => out.push_str("#object[transient]"),
        Object::Stop(_) => out.push_str("#object[stop]"),
        Object::Unbound(name) => {
            out.push_str("#object[clojure.lang.Var$Unbound \"Unbound: ");
            if let Some(name) = name.get() {
                out.push_str("#'");
                name.write_to(out);
            }
            out.push_str("\"]");
        }
        Object::Tagged { .. }
        | Object::Conditional { .. }
        | Object::Volatile(_)
        | Object::Delay(_)
        | Object::Reduced(_)
        | Object::Queue { .. } => return false,
    }
    true
}

/// Writes `my.ns/Point` as the class name `my.ns.Point`.
pub(super) fn write_class_name(out: &mut String, name: Symbol) {
    let parts = name.parts();
    if let Some(namespace) = &parts.namespace {
        out.push_str(&namespace.replace('-', "_"));
        out.push('.');
    }
    out.push_str(&parts.name);
}

fn escape(byte: u8) -> Option<&'static str> {
    Some(match byte {
        b'"' => "\\\"",
        b'\\' => "\\\\",
        b'\n' => "\\n",
        b'\t' => "\\t",
        b'\r' => "\\r",
        0x0c => "\\f",
        0x08 => "\\b",
        _ => return None,
    })
}

/// Writes a string in quotes, with escapes.
fn write_quoted(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        // Only ASCII characters are escaped, so the slices end at character boundaries.
        if (byte < b' ' || byte == b'"' || byte == b'\\')
            && let Some(escaped) = escape(byte)
        {
            out.push_str(&text[start..at]);
            out.push_str(escaped);
            start = at + 1;
        }
    }
    out.push_str(&text[start..]);
    out.push('"');
}

fn write_char(out: &mut String, char: char) {
    out.push('\\');
    match char {
        '\n' => out.push_str("newline"),
        ' ' => out.push_str("space"),
        '\t' => out.push_str("tab"),
        '\r' => out.push_str("return"),
        '\u{c}' => out.push_str("formfeed"),
        '\u{8}' => out.push_str("backspace"),
        char if char.is_control() => out.push_str(&format!("u{:04x}", char as u32)),
        char => out.push(char),
    }
}

/// Writes a pattern between quotes; a bare quote in it gets a backslash.
fn write_regex(out: &mut String, source: &str) {
    out.push_str("#\"");
    let mut escaped = false;
    for char in source.chars() {
        if char == '"' && !escaped {
            out.push('\\');
        }
        escaped = char == '\\' && !escaped;
        out.push(char);
    }
    out.push('"');
}

fn write_uuid(out: &mut String, bits: u128) {
    let hex = format!("{bits:032x}");
    for (idx, range) in [0..8, 8..12, 12..16, 16..20, 20..32]
        .into_iter()
        .enumerate()
    {
        if idx > 0 {
            out.push('-');
        }
        out.push_str(&hex[range]);
    }
}

/// Appends a text, and pays for each megabyte of it.
fn write_text(out: &mut String, text: &str) -> Result<()> {
    const LONG: usize = 1 << 20;
    let mut rest = text;
    while rest.len() > LONG {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(LONG));
        out.push_str(piece);
        meter::spend(LONG as u32 / 64)?;
        rest = more;
    }
    out.push_str(rest);
    Ok(())
}

/// Appends a value as `str` writes it: nothing for nil, strings and characters unquoted, numbers without `N` and `M`,
/// everything else as `pr` prints it.
///
/// # Errors
/// As [`print_value`].
pub fn write_str(out: &mut String, force: &mut dyn Force, value: &Value) -> Result<()> {
    let options = PrintOptions {
        extended: force.is_print_extended(),
        ..PrintOptions::READABLE
    };
    match value {
        Value::Nil => {}
        Value::Text(text) => write_text(out, text)?,
        Value::Char(char) => out.push(*char),
        Value::Float(float) if !float.is_finite() => out.push_str(&java_float(*float)),
        Value::BigInt(int) => {
            write_big(out, int);
            meter::stopped()?;
        }
        Value::Decimal(decimal) => {
            write_decimal(out, decimal);
            meter::stopped()?;
        }
        Value::Exception(exception) => {
            out.push_str(exception.class.0.full_name);
            if let Some(message) = &exception.message {
                out.push_str(": ");
                out.push_str(message);
            }
            if !exception.data.is_nil() {
                out.push(' ');
                print_value(out, force, &exception.data, PrintOptions::READABLE)?;
            }
        }
        Value::Object(object) => match &**object {
            Object::Regex { source, .. } => out.push_str(source),
            Object::State(state) if let Some(writer) = state.downcast_ref::<TextWriter>() => {
                out.push_str(&writer.text.borrow());
            }
            Object::Uuid(bits) => write_uuid(out, *bits),
            Object::Inst(millis) => inst::write_java_date(out, *millis),
            Object::Namespace(namespace) => namespace.name.write_to(out),
            Object::HostObject(object) => out.push_str(&object.text()),
            Object::Class(class) => {
                out.push_str("class ");
                out.push_str(class.0.full_name);
            }
            Object::Instance(_) => match force.own_text(value)? {
                Some(text) => out.push_str(&text),
                None => print_value(out, force, value, options)?,
            },
            _ => print_value(out, force, value, options)?,
        },
        Value::Record(_) => match force.own_text(value)? {
            Some(text) => out.push_str(&text),
            None => print_value(out, force, value, options)?,
        },
        _ => print_value(out, force, value, options)?,
    }
    Ok(())
}
