//! Pieces of flow text.

use flowstone_engine::codec;
use flowstone_engine::json::from_json;
use flowstone_lang::value::Value;
use serde_json::Value as Json;

/// Lines of a text.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<String>);

impl Lines {
    pub fn line(&mut self, indent: usize, text: &str) {
        self.0.push(format!("{}{text}", " ".repeat(indent)));
    }

    /// Adds text to the last line.
    pub fn close(&mut self, text: &str) {
        if let Some(last) = self.0.last_mut() {
            last.push_str(text);
        }
    }

    /// Adds a key with a vector, one item a line; nothing without items.
    pub fn list(&mut self, key: &str, items: &[String]) {
        let Some((first, rest)) = items.split_first() else {
            return;
        };
        self.line(1, &format!("{key} [{first}"));
        for item in rest {
            self.line(key.len() + 3, item);
        }
        self.close("]");
    }

    pub fn text(self) -> String {
        self.0.join("\n") + "\n"
    }
}

/// Returns a text as a literal.
pub(super) fn quoted(text: &str) -> String {
    let written = codec::encode(&Value::from(text));
    written.unwrap_or_else(|_| "\"\"".to_owned())
}

/// Returns a keyword as a literal. The name consists of word characters.
pub(super) fn keyword(name: &str) -> String {
    format!(":{name}")
}

/// Returns JSON as a literal of the language, with keywords for names of members.
pub(super) fn edn(value: &Json) -> String {
    codec::encode(&from_json(value)).unwrap_or_else(|_| "nil".to_owned())
}
