//! Pieces of flow text.

use flowstone_engine::codec;
use flowstone_engine::json::from_json;
use serde_json::{Map, Value as Json};

/// The lines of a text.
#[derive(Debug, Default)]
pub(crate) struct Lines(String);

impl Lines {
    pub(crate) fn line(&mut self, indent: usize, text: &str) {
        self.line_of(indent, &[text]);
    }

    /// Adds a line that consists of several texts.
    pub(crate) fn line_of(&mut self, indent: usize, texts: &[&str]) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.extend(std::iter::repeat_n(' ', indent));
        texts.iter().for_each(|text| self.0.push_str(text));
    }

    /// Adds text to the last line.
    pub(crate) fn close(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// Adds a key with a vector, one item a line; adds nothing if there are no items.
    pub(crate) fn list(&mut self, key: &str, items: &[String]) {
        let Some((first, rest)) = items.split_first() else {
            return;
        };
        self.line(1, &format!("{key} [{first}"));
        for item in rest {
            self.line(key.len() + 3, item);
        }
        self.close("]");
    }

    pub(crate) fn text(self) -> String {
        self.0 + "\n"
    }
}

/// Returns a text as a literal.
pub(crate) fn quoted(text: &str) -> String {
    codec::encode_text(text)
}

/// Returns a keyword as a literal. The name consists of word characters.
pub(crate) fn keyword(name: &str) -> String {
    format!(":{name}")
}

/// Returns JSON as a literal of the language. Member names become keywords if possible, else strings.
pub(crate) fn edn(value: &Json) -> String {
    match value {
        Json::Null => "nil".to_owned(),
        Json::Bool(flag) => flag.to_string(),
        Json::Number(_) => codec::encode(&from_json(value)).unwrap_or_else(|_| value.to_string()),
        Json::String(text) => quoted(text),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(edn).collect();
            format!("[{}]", items.join(" "))
        }
        Json::Object(members) => object(members),
    }
}

/// Returns a JSON object as a literal of the language.
pub(crate) fn object(members: &Map<String, Json>) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("{} {}", key(name), edn(value)))
        .collect();
    format!("{{{}}}", members.join(" "))
}

fn key(name: &str) -> String {
    let is_first = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$');
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-');
    match name.as_bytes().first().is_some_and(is_first) && name.bytes().all(is_word) {
        true => keyword(name),
        false => quoted(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_that_are_not_keywords_are_strings() {
        let value = json!({"a-b": [1, 1.5, null, true], "$ref": "x", "a b": 1, "x} (evil) {": 2, "": 3, "1": 4, "a/b": 5});
        let expected =
            r#"{:a-b [1 1.5 nil true] :$ref "x" "a b" 1 "x} (evil) {" 2 "" 3 "1" 4 "a/b" 5}"#;
        assert_eq!(edn(&value), expected);
    }
}
