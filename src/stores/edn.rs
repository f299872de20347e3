//! EDN text of results, assembled from parts that are text already.

use flowstone_lang::value::Value;
use flowstone_model::codec::encode;

/// Returns a string literal.
pub(crate) fn text(text: &str) -> String {
    encode(&Value::from(text)).unwrap_or_else(|_| "\"\"".to_owned())
}

/// Returns a keyword literal. For a name that cannot be a literal, returns the tagged form that the codec reads back as
/// a keyword.
pub(crate) fn keyword(name: &str) -> String {
    encode(&Value::keyword(name)).unwrap_or_else(|_| ":?".to_owned())
}

/// Returns a vector of literals.
pub(crate) fn vector<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::from("[");
    for (idx, item) in items.into_iter().enumerate() {
        if idx > 0 {
            out.push(' ');
        }
        out.push_str(item.as_ref());
    }
    out.push(']');
    out
}

/// A map under construction. Keys are names that the stores choose.
pub(crate) struct MapText(String);

impl MapText {
    pub(crate) fn new() -> MapText {
        MapText("{".to_owned())
    }

    /// Adds an entry whose value is EDN text.
    pub(crate) fn raw(mut self, key: &str, value: &str) -> MapText {
        if self.0.len() > 1 {
            self.0.push(' ');
        }
        self.0.push(':');
        self.0.push_str(key);
        self.0.push(' ');
        self.0.push_str(value);
        self
    }

    pub(crate) fn text(self, key: &str, value: &str) -> MapText {
        let value = text(value);
        self.raw(key, &value)
    }

    pub(crate) fn count(self, key: &str, value: usize) -> MapText {
        self.raw(key, &value.to_string())
    }

    pub(crate) fn bool(self, key: &str, value: bool) -> MapText {
        self.raw(key, if value { "true" } else { "false" })
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
