//! Text that is being written or read: the output of `with-out-str`, the input of `read` and `read-line`.
//!
//! Both are stored in [`Object::State`](super::Object::State): they are rare, and have no equality other than identity.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Object, Value};

/// How the reader treats reader conditionals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Conditionals {
    /// The branch of the first supported feature is read.
    #[default]
    Choose,
    /// They are read as values.
    Keep,
    /// They are refused with an error.
    Refuse,
}

/// The text written so far: `*out*` in `with-out-str`, a string writer, a string builder.
#[derive(Debug, Default)]
pub struct TextWriter {
    /// The whole text.
    pub text: RefCell<String>,
}

/// A text and the position up to which it was read.
#[derive(Debug)]
pub struct TextReader {
    text: RefCell<String>,
    at: Cell<usize>,
    /// Whether further lines come from the host's standard input.
    pub is_input: bool,
}

impl TextWriter {
    /// Returns the writer, if the value is one.
    pub fn of(value: &Value) -> Option<&TextWriter> {
        state(value)
    }

    /// Returns a new writer that holds a text, as a value.
    pub fn new_value(text: &str) -> Value {
        let writer = TextWriter {
            text: RefCell::new(text.to_owned()),
        };
        Value::Object(Rc::new(Object::State(Box::new(writer))))
    }
}

impl TextReader {
    /// Returns the reader, if the value is one.
    pub fn of(value: &Value) -> Option<&TextReader> {
        state(value)
    }

    /// Returns a new reader of a text, as a value.
    pub fn new_value(text: &str) -> Value {
        TextReader::value(text, false)
    }

    /// Returns the reader of the host's standard input, as a value.
    pub fn input_value() -> Value {
        TextReader::value("", true)
    }

    fn value(text: &str, is_input: bool) -> Value {
        let reader = TextReader {
            text: RefCell::new(text.to_owned()),
            at: Cell::new(0),
            is_input,
        };
        Value::Object(Rc::new(Object::State(Box::new(reader))))
    }

    /// Returns the text that was not read yet.
    pub fn rest(&self) -> String {
        self.text.borrow()[self.at.get()..].to_owned()
    }

    /// Advances by a number of bytes, which must end at a character boundary.
    pub fn advance(&self, bytes: usize) {
        self.at.set(self.at.get() + bytes);
    }

    /// Takes the next character.
    pub fn next_char(&self) -> Option<char> {
        let char = self.text.borrow()[self.at.get()..].chars().next()?;
        self.advance(char.len_utf8());
        Some(char)
    }

    /// Takes the rest of the line, without its terminator; `None` at the end of the text.
    pub fn next_line(&self) -> Option<String> {
        let text = self.text.borrow();
        let rest = &text[self.at.get()..];
        if rest.is_empty() {
            return None;
        }
        let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
        self.advance(length);
        let line = &rest[..length];
        let line = line.strip_suffix('\n').unwrap_or(line);
        Some(line.strip_suffix('\r').unwrap_or(line).to_owned())
    }

    /// Inserts a text before the unread text.
    pub fn unread(&self, text: &str) {
        let rest = self.rest();
        *self.text.borrow_mut() = format!("{text}{rest}");
        self.at.set(0);
    }

    /// Appends a line from standard input, and discards the text already read.
    pub fn feed(&self, line: &str) {
        let rest = self.rest();
        *self.text.borrow_mut() = format!("{rest}{line}\n");
        self.at.set(0);
    }
}

fn state<T: 'static>(value: &Value) -> Option<&T> {
    match value {
        Value::Object(object) => match &**object {
            Object::State(state) => state.downcast_ref(),
            _ => None,
        },
        _ => None,
    }
}
