//! Clojure's messages for the reader's errors: programs look for them in `ex-message`.

use super::{ReadError, code};
use crate::value::Class;

impl ReadError {
    /// Returns Clojure's message, if there is one that does not name the host's parts.
    pub(super) fn clojure_message(&self) -> Option<String> {
        let token = self.message.split('`').nth(1).unwrap_or("");
        let last = self.message.split('`').nth_back(1).unwrap_or("");
        Some(match self.code {
            code::OPEN_TEXT => "EOF while reading string".to_owned(),
            _ if self.at_end => "EOF while reading".to_owned(),
            code::UNOPENED => format!("Unmatched delimiter: {token}"),
            code::WRONG_CLOSER | code::NO_FORM => format!("Unmatched delimiter: {last}"),
            code::BAD_ESCAPE => format!("Unsupported escape character: {token}"),
            code::BAD_CHARACTER => format!("Unsupported character: {token}"),
            code::BAD_NUMBER if self.is_of(Class::ARITHMETIC) => "Divide by zero".to_owned(),
            code::BAD_NUMBER => format!("Invalid number: {token}"),
            code::BAD_NAME | code::UNKNOWN_ALIAS => format!("Invalid token: {token}"),
            code::ODD_MAP => "Map literal must contain an even number of forms".to_owned(),
            code::DUPLICATE_KEY | code::DUPLICATE_ITEM => format!("Duplicate key: {token}"),
            code::BAD_TAG => format!(
                "No reader function for tag {}",
                token.trim_start_matches('#')
            ),
            code::BAD_FUNCTION if self.related.is_some() => {
                "Nested #()s are not allowed".to_owned()
            }
            _ => return None,
        })
    }
}
