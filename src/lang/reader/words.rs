//! What Clojure's reader says of the same mistake: programs look for these words in `ex-message`.

use super::ReadError;
use crate::value::Class;

impl ReadError {
    /// Returns Clojure's message, where it has one that names nothing of the host.
    pub(super) fn clojure_words(&self) -> Option<String> {
        let token = self.message.split('`').nth(1).unwrap_or("");
        let last = self.message.split('`').nth_back(1).unwrap_or("");
        Some(match self.code {
            "E0104" => "EOF while reading string".to_owned(),
            _ if self.at_end => "EOF while reading".to_owned(),
            "E0102" => format!("Unmatched delimiter: {token}"),
            "E0103" | "E0116" => format!("Unmatched delimiter: {last}"),
            "E0105" => format!("Unsupported escape character: {token}"),
            "E0106" => format!("Unsupported character: {token}"),
            "E0107" if self.is_of(Class::ARITHMETIC) => "Divide by zero".to_owned(),
            "E0107" => format!("Invalid number: {token}"),
            "E0108" | "E0120" => format!("Invalid token: {token}"),
            "E0109" => "Map literal must contain an even number of forms".to_owned(),
            "E0110" | "E0111" => format!("Duplicate key: {token}"),
            "E0119" => format!(
                "No reader function for tag {}",
                token.trim_start_matches('#')
            ),
            "E0122" if self.related.is_some() => "Nested #()s are not allowed".to_owned(),
            _ => return None,
        })
    }
}
