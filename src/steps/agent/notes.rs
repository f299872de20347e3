//! Values and texts in the form that memory, ledger and trace write.

use flowstone_lang::value::Value;

use crate::json::write;

/// Returns a map with these keywords.
pub(super) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let facts = facts.into_iter();
    Value::map(facts.map(|(key, value)| (Value::keyword(key), value)))
}

/// Returns a map with some entries added or replaced.
pub(super) fn with<'a>(map: &Value, more: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let own = map.as_map().into_iter().flat_map(|map| {
        map.iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<Vec<_>>()
    });
    let more = more
        .into_iter()
        .map(|(key, value)| (Value::keyword(key), value));
    Value::map(own.chain(more))
}

/// Returns a text, truncated to a number of characters, with a note about the rest.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => {
            let rest = text[at..].chars().count();
            format!("{}... ({rest} more characters)", &text[..at])
        }
    }
}

/// Formats an instant to the minute, in UTC.
pub(super) fn minute(millis: i64) -> String {
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => millis.to_string(),
    }
}

/// Returns text unchanged, and data as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Nil => String::new(),
        Value::Text(text) => text.as_str().to_owned(),
        data => match write(data) {
            Ok(text) => text,
            Err(_) => crate::text::brief(data),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 2), "äö... (2 more characters)");
    }

    #[test]
    fn an_instant_is_shown_to_the_minute() {
        assert_eq!(minute(1_772_323_261_000), "2026-03-01 00:01");
    }
}
