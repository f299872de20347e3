//! The form of a value for a model: complete if it is short, otherwise with its long parts cut, and a note on how to
//! read the rest.

use flowstone_flow::json::to_json;
use flowstone_flow::step::StepContext;
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use crate::json::from_json;

/// Default maximum size of a result, in characters of JSON.
pub(super) const MOST_CHARS: usize = 20_000;

/// Returns the maximum size of a result in this project, in characters of JSON: `:agent {:max-result-chars n}`.
pub(crate) fn most_chars(cx: &StepContext) -> usize {
    let configured = cx
        .settings()
        .get("agent")
        .and_then(|agent| agent.get("max-result-chars")?.as_int());
    configured
        .and_then(|chars| usize::try_from(chars).ok())
        .unwrap_or(MOST_CHARS)
}

/// Shortens a value so that its JSON has at most `most` characters, plus a few for the notes.
pub(crate) fn within(value: Value, most: usize) -> Value {
    let Ok(json) = to_json(&value) else {
        return Value::from(crate::text::brief(&value));
    };
    if chars(&json) <= most {
        return value;
    }
    // Texts are cut first, then lists, each to the largest size that fits.
    let texts = (most / 2).max(200);
    let mut cut = json;
    let mut limits = (texts, usize::MAX);
    for _ in 0..40 {
        let tried = shorten(&cut, limits);
        if chars(&tried) <= most {
            cut = tried;
            return from_json(&cut);
        }
        limits = match limits {
            (text, items) if text > 400 => (text * 2 / 3, items),
            (text, usize::MAX) => (text, longest_list(&cut).max(2)),
            (text, items) if items > 1 => (text, items * 2 / 3),
            (text, items) => (text * 2 / 3, items),
        };
        if limits.0 < 20 {
            break;
        }
    }
    let text = cut.to_string();
    Value::from(beginning(&text, most))
}

fn chars(json: &Json) -> usize {
    json.to_string().chars().count()
}

fn longest_list(json: &Json) -> usize {
    match json {
        Json::Array(items) => items
            .iter()
            .map(longest_list)
            .max()
            .unwrap_or(0)
            .max(items.len()),
        Json::Object(map) => map.values().map(longest_list).max().unwrap_or(0),
        _ => 0,
    }
}

fn shorten(json: &Json, (text, items): (usize, usize)) -> Json {
    match json {
        // A reference is only useful as a whole.
        Json::String(given) if given.starts_with("res://") => json.clone(),
        Json::String(given) => Json::from(beginning(given, text)),
        Json::Array(given) => {
            let kept = given
                .iter()
                .take(items)
                .map(|item| shorten(item, (text, items)));
            let left = given.len().saturating_sub(items);
            let note = (left > 0).then(|| {
                Json::from(format!(
                    "[{left} more are not shown: ask for fewer, or for the next part]"
                ))
            });
            Json::Array(kept.chain(note).collect())
        }
        Json::Object(map) => Json::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), shorten(value, (text, items))))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn beginning(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let kept = &text[..end];
    let left = text[end..].chars().count();
    let lines = kept.lines().count();
    match lines > 1 {
        true => format!(
            "{kept} [... {left} more characters, from line {lines} on: read on with start_line and end_line]"
        ),
        false => format!("{kept} [... {left} more characters: ask for a part]"),
    }
}
