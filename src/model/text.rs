//! Texts for error messages: printed values, and the nearest of some names.

pub use crate::diagnostic::nearest;
use flowstone_lang::value::{PrintOptions, Unforced, Value, print_value};

const BRIEF_CHARS: usize = 120;

/// Returns the printed form of a value, truncated if it is long.
pub fn brief(value: &Value) -> String {
    let mut text = String::new();
    if print_value(&mut text, &mut Unforced, value, PrintOptions::BRIEF).is_err() {
        return value.kind().to_owned();
    }
    match text.char_indices().nth(BRIEF_CHARS) {
        Some((at, _)) => {
            text.truncate(at);
            text + " ..."
        }
        None => text,
    }
}

/// Returns the complete printed form of a value, which can be read again.
pub fn printed(value: &Value) -> String {
    let mut text = String::new();
    match print_value(&mut text, &mut Unforced, value, PrintOptions::READABLE) {
        Ok(_) => text,
        Err(_) => value.kind().to_owned(),
    }
}
