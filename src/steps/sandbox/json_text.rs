//! JSON as other libraries read and write it: with functions for keys and values, and layouts of their own.

use std::fmt::Write;

use flowstone_lang::value::number::{write_decimal, write_float};
use flowstone_lang::value::{
    Class, Exception, PrintOptions, Result, Signal, Symbol, TextReader, Value,
};
use flowstone_lang::vm::Vm;
use serde_json::Value as Json;

use crate::json::{
    Build, JsonError, MAX_DEPTH, ReadError, name_text, number_float, read_first, to_json_with,
};

/// How a text is read.
pub(super) struct Reading {
    /// What becomes of a key, which is a string; strings stay without it.
    pub key: Option<Key>,
    /// What becomes of a value, given with its key.
    pub value: Option<Value>,
    /// Makes what an array is collected into, given the key above it.
    pub array: Option<Value>,
    /// Whether numbers with a fraction or an exponent become decimals.
    pub decimals: bool,
}

/// What becomes of a key.
pub(super) enum Key {
    /// A keyword.
    Keyword,
    /// What a function returns.
    Of(Value),
}

impl Reading {
    /// Reads the first JSON value of a text, and returns it with the place where it ends; nothing for a blank text.
    pub(super) fn first(&self, vm: &mut Vm, text: &str) -> Result<Option<(Value, usize)>> {
        let mut build = Building { vm, reading: self };
        read_first(text, &mut build).map_err(|error| match error {
            ReadError::Syntax(error) => not_json(&error),
            ReadError::Build(signal) => signal,
        })
    }
}

struct Building<'a> {
    vm: &'a mut Vm,
    reading: &'a Reading,
}

impl Build for Building<'_> {
    type Error = Signal;

    fn key(&mut self, text: &str) -> Result<Value> {
        match &self.reading.key {
            None => Ok(Value::from(text)),
            Some(Key::Keyword) => Ok(Value::keyword(text)),
            Some(Key::Of(function)) => self.vm.call(function, &[Value::from(text)]),
        }
    }

    fn entry(&mut self, key: &Value, value: Value) -> Result<Value> {
        match &self.reading.value {
            None => Ok(value),
            Some(function) => self.vm.call(function, &[key.clone(), value]),
        }
    }

    fn array(&mut self, above: &Value, items: Vec<Value>) -> Result<Value> {
        let vector = Value::vector(items);
        match &self.reading.array {
            None => Ok(vector),
            Some(function) => {
                let into = self.vm.call(function, std::slice::from_ref(above))?;
                call_core(self.vm, "into", &[into, vector])
            }
        }
    }

    fn decimals(&self) -> bool {
        self.reading.decimals
    }
}

/// Calls a function of `clojure.core`.
fn call_core(vm: &mut Vm, name: &str, args: &[Value]) -> Result<Value> {
    let name = Symbol::new(name);
    let var = vm.world().core.intern(name);
    if var.root().is_none() {
        // A function of the library is defined when it is first used.
        let loader = vm.world().loader();
        loader.load_definition(vm, Symbol::new("clojure.core"), name)?;
    }
    vm.call(&var.root().unwrap_or(Value::Nil), args)
}

/// Returns the exception for a text that is not JSON.
pub(super) fn not_json(error: &serde_json::Error) -> Signal {
    let why = error.to_string();
    let why = why.split(" at line ").next().unwrap_or(&why).to_owned();
    let (line, column) = (error.line(), error.column());
    Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0740",
        format!("this is not JSON: {why} (line {line}, column {column})"),
    )
    .with("line", Value::from(line))
    .into()
}

/// Takes what a reader has left, of standard input all of it; nothing for what is not a reader.
pub(super) fn rest_of(vm: &mut Vm, reader: &Value) -> Result<Option<String>> {
    if TextReader::of(reader).is_none() {
        return Ok(None);
    }
    let rest = call_core(vm, "slurp", std::slice::from_ref(reader))?;
    Ok(rest.as_str().map(str::to_owned))
}

/// Puts back what was not read of a reader's text.
pub(super) fn unread(reader: &Value, rest: &str) {
    if let Some(reader) = TextReader::of(reader) {
        reader.unread(rest);
    }
}

/// Writes a text to a writer, such as `*out*`.
pub(super) fn write_to(vm: &mut Vm, writer: &Value, text: String) -> Result<Value> {
    call_core(vm, "-write", &[writer.clone(), Value::from(text)])
}

/// How a value is written.
pub(super) struct Writing {
    /// Makes the text of a key; the spelling of a name is its default.
    pub key: Option<Value>,
    /// What becomes of a value, given with its key.
    pub value: Option<Value>,
    /// Whether a keyword loses its namespace.
    pub short_names: bool,
    pub layout: Layout,
    /// Whether characters beyond ASCII are written as `\uXXXX`.
    pub escapes_unicode: bool,
    /// Whether `/` is written as `\/`.
    pub escapes_slashes: bool,
}

/// Where blanks and line ends are put.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Compact,
    /// `"a": 1`, an entry and an item a line.
    Lines,
    /// `"a" : 1`, an entry a line, arrays in one.
    Spaced,
}

/// How deep a value is in others, and how far its lines are indented.
#[derive(Clone, Copy, Default)]
struct Level {
    depth: usize,
    indent: usize,
}

impl Level {
    fn object(self) -> Level {
        Level {
            depth: self.depth + 1,
            indent: self.indent + 1,
        }
    }

    /// An array that is written in one line indents nothing.
    fn array(self, layout: Layout) -> Level {
        let indent = match layout {
            Layout::Spaced => self.indent,
            Layout::Compact | Layout::Lines => self.indent + 1,
        };
        let depth = self.depth + 1;
        Level { depth, indent }
    }
}

impl Writing {
    /// Returns a value as JSON text.
    pub(super) fn text(&self, vm: &mut Vm, value: &Value) -> Result<String> {
        let mut out = String::new();
        self.write(vm, &mut out, value, Level::default())?;
        Ok(out)
    }

    fn write(&self, vm: &mut Vm, out: &mut String, value: &Value, level: Level) -> Result<()> {
        if level.depth > MAX_DEPTH {
            return Err(refused(&JsonError::TooDeep {
                path: String::new(),
            }));
        }
        vm.charge(1)?;
        match value {
            Value::Map(map) => {
                let entries: Vec<(Value, Value)> = map.iter().map(cloned).collect();
                self.object(vm, out, entries, level)
            }
            Value::Record(record) => {
                let entries: Vec<(Value, Value)> = record.fields.iter().map(cloned).collect();
                self.object(vm, out, entries, level)
            }
            Value::Vector(_) | Value::Set(_) | Value::List(_) | Value::Seq(_) | Value::Lazy(_) => {
                let items = vm.items(value.clone())?;
                self.array(vm, out, &items, level)
            }
            Value::Keyword(_) | Value::Symbol(_) | Value::Name(_) => {
                self.string(out, &self.name(value));
                Ok(())
            }
            Value::Float(float) if float.is_finite() => {
                write_float(out, *float);
                Ok(())
            }
            Value::Ratio(_) => {
                write_float(out, number_float(value).unwrap_or(f64::NAN));
                Ok(())
            }
            Value::BigInt(int) => {
                out.push_str(&int.to_string());
                Ok(())
            }
            Value::Decimal(decimal) => {
                write_decimal(out, decimal);
                Ok(())
            }
            value => {
                let json = to_json_with(vm, value).map_err(|error| refused(&error))?;
                match json {
                    Json::String(text) => self.string(out, &text),
                    json => {
                        let _ = write!(out, "{json}");
                    }
                }
                Ok(())
            }
        }
    }

    fn name(&self, value: &Value) -> String {
        let name = name_text(value).unwrap_or_default();
        match name.split_once('/') {
            Some((_, short)) if self.short_names && !short.is_empty() => short.to_owned(),
            _ => name,
        }
    }

    fn key(&self, vm: &mut Vm, key: &Value) -> Result<String> {
        if let Some(function) = &self.key {
            let made = vm.call(function, std::slice::from_ref(key))?;
            return match &made {
                Value::Text(text) => Ok(text.as_str().to_owned()),
                Value::Keyword(_) | Value::Symbol(_) | Value::Name(_) => Ok(self.name(&made)),
                made => vm.print(made, PrintOptions::PLAIN),
            };
        }
        match key {
            Value::Nil => Err(bad("a key of an object cannot be nil")),
            Value::Keyword(_) | Value::Symbol(_) | Value::Name(_) => Ok(self.name(key)),
            key => vm.print(key, PrintOptions::PLAIN),
        }
    }

    fn object(
        &self,
        vm: &mut Vm,
        out: &mut String,
        entries: Vec<(Value, Value)>,
        level: Level,
    ) -> Result<()> {
        out.push('{');
        let mut is_first = true;
        for (key, mut value) in entries {
            if let Some(function) = &self.value {
                value = vm.call(function, &[key.clone(), value])?;
                // A function that returns itself leaves the entry out.
                let is_left_out = call_core(vm, "identical?", &[value.clone(), function.clone()])?;
                if is_left_out.is_truthy() {
                    continue;
                }
            }
            let key = self.key(vm, &key)?;
            if !std::mem::replace(&mut is_first, false) {
                out.push(',');
            }
            self.line(out, level.object(), true);
            self.string(out, &key);
            out.push_str(match self.layout {
                Layout::Compact => ":",
                Layout::Lines => ": ",
                Layout::Spaced => " : ",
            });
            self.write(vm, out, &value, level.object())?;
        }
        if !is_first {
            self.line(out, level, true);
        } else if self.layout == Layout::Spaced {
            out.push(' ');
        }
        out.push('}');
        Ok(())
    }

    fn array(&self, vm: &mut Vm, out: &mut String, items: &[Value], level: Level) -> Result<()> {
        let inner = level.array(self.layout);
        out.push('[');
        for (idx, item) in items.iter().enumerate() {
            if idx > 0 {
                out.push(',');
            }
            self.line(out, inner, false);
            self.write(vm, out, item, inner)?;
        }
        if !items.is_empty() || self.layout == Layout::Spaced {
            self.line(out, level, false);
        }
        out.push(']');
        Ok(())
    }

    /// Begins a line, or what stands for one.
    fn line(&self, out: &mut String, level: Level, is_object: bool) {
        match self.layout {
            Layout::Compact => {}
            Layout::Spaced if !is_object => out.push(' '),
            Layout::Lines | Layout::Spaced => {
                out.push('\n');
                out.extend(std::iter::repeat_n("  ", level.indent));
            }
        }
    }

    fn string(&self, out: &mut String, text: &str) {
        let quoted = Json::from(text).to_string();
        for char in quoted.chars() {
            match char {
                '/' if self.escapes_slashes => out.push_str("\\/"),
                char if self.escapes_unicode && !char.is_ascii() => {
                    for unit in char.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                char => out.push(char),
            }
        }
    }
}

fn cloned((key, value): (&Value, &Value)) -> (Value, Value) {
    (key.clone(), value.clone())
}

fn refused(error: &JsonError) -> Signal {
    match error {
        JsonError::Signal(signal) => signal.clone(),
        error => Exception::new(Class::ILLEGAL_ARGUMENT, "E0740", error.to_string())
            .argument(0)
            .into(),
    }
}

fn bad(message: &str) -> Signal {
    Exception::new(Class::ILLEGAL_ARGUMENT, "E0740", message.to_owned())
        .argument(0)
        .into()
}
