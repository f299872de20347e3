//! Text that is being written or read: what `with-out-str` collects, what `read` and `read-line` take from.
//!
//! Both are kept in [`Object::State`](super::Object::State): they are seldom met, and have no equality but
//! identity.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Object, Value};

/// What reading does with reader conditionals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Conditionals {
    /// The branch of the first feature that is there.
    #[default]
    Choose,
    /// They stay as they are, as values.
    Keep,
    /// They are errors.
    Refuse,
}

/// What was written so far: `*out*` in `with-out-str`, a string writer, a string builder.
#[derive(Debug, Default)]
pub struct TextWriter {
    /// All of it.
    pub text: RefCell<String>,
}

/// A text and how far it was read.
#[derive(Debug)]
pub struct TextReader {
    text: RefCell<String>,
    at: Cell<usize>,
    /// Whether more lines come from the host's standard input.
    pub is_input: bool,
}

impl TextWriter {
    /// Returns the writer that a value is, if it is one.
    pub fn of(value: &Value) -> Option<&TextWriter> {
        state(value)
    }

    /// Returns a new one with a text, as a value.
    pub fn new_value(text: &str) -> Value {
        let writer = TextWriter {
            text: RefCell::new(text.to_owned()),
        };
        Value::Object(Rc::new(Object::State(Box::new(writer))))
    }
}

impl TextReader {
    /// Returns the reader that a value is, if it is one.
    pub fn of(value: &Value) -> Option<&TextReader> {
        state(value)
    }

    /// Returns a new one over a text, as a value.
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

    /// Moves forward by a number of bytes, which end at a character.
    pub fn advance(&self, bytes: usize) {
        self.at.set(self.at.get() + bytes);
    }

    /// Takes the next character.
    pub fn next_char(&self) -> Option<char> {
        let char = self.text.borrow()[self.at.get()..].chars().next()?;
        self.advance(char.len_utf8());
        Some(char)
    }

    /// Takes what is left of the line, without its end; `None` at the end of the text.
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

    /// Puts a text before what was not read yet.
    pub fn unread(&self, text: &str) {
        let rest = self.rest();
        *self.text.borrow_mut() = format!("{text}{rest}");
        self.at.set(0);
    }

    /// Adds a line that came from standard input, and forgets what was read.
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
