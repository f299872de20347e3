//! Encoding of data in the format of a content type.

use flowstone_flow::codec;
use flowstone_flow::resource::media::Format;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use crate::json::{compact, items, pretty, read, to_exact_json, write as write_json};
use crate::persist::code::UNFIT;

/// Encodes data.
pub(super) fn write(cx: &StepContext, value: &Value, format: Format) -> Result<Vec<u8>, StepError> {
    let text = match format {
        Format::Edn | Format::Text => edn(value)?,
        Format::Json => compact(&json(value)?),
        // JSON is valid YAML.
        Format::Yaml => format!("{}\n", pretty(&json(value)?)),
        Format::JsonLines => {
            let lines = items(value).filter(|_| value.as_map().is_none());
            let lines = lines.ok_or_else(|| {
                wrong(format!(
                    "JSON Lines need a vector, but the result is {}",
                    value.kind()
                ))
            })?;
            let mut text = String::new();
            for line in &lines {
                text.push_str(&compact(&json(line)?));
                text.push('\n');
            }
            text
        }
        Format::Csv => table(cx, value, ",")?,
        Format::Tsv => table(cx, value, "\t")?,
    };
    Ok(text.into_bytes())
}

/// Tells whether a value is equal after it was written as JSON and read back.
pub(super) fn is_plain(value: &Value) -> bool {
    let text = |value: &Value| codec::encode(value).ok();
    match write_json(value).ok().and_then(|text| read(&text).ok()) {
        Some(read) => text(value).is_some() && text(value) == text(&read),
        None => false,
    }
}

/// Tells whether a text is valid for the content type of its file name.
pub(super) fn holds(content_type: &str, text: &str) -> bool {
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    match Format::of(content_type) {
        Some(Format::Json) => is_json(text),
        Some(Format::JsonLines) => text
            .lines()
            .all(|line| line.trim().is_empty() || is_json(line)),
        // A text is also a valid value, such as a symbol, and would be read back as that.
        Some(Format::Edn) => false,
        Some(Format::Csv | Format::Text | Format::Tsv | Format::Yaml) => true,
        None => {
            let kind = content_type;
            kind.starts_with("text/") || kind.ends_with("xml")
        }
    }
}

/// Returns the error for data in a content type that only other programs can write.
pub(super) fn not_data(value: &Value, content_type: &str) -> StepError {
    wrong(format!(
        "the result is {}, which cannot be stored as {content_type}",
        value.kind()
    ))
    .hint("convert it to text or bytes first, or store it as JSON, CSV, YAML or EDN")
}

fn wrong(message: String) -> StepError {
    StepError::new(UNFIT, "invalid", message)
}

fn edn(value: &Value) -> Result<String, StepError> {
    codec::encode(value).map_err(|error| {
        StepError::new(
            error.code(),
            "invalid",
            format!("the result cannot be stored: {error}"),
        )
    })
}

fn json(value: &Value) -> Result<serde_json::Value, StepError> {
    to_exact_json(value).map_err(|error| wrong(error.to_string()))
}

/// Encodes rows with the language's own function.
fn table(cx: &StepContext, rows: &Value, separator: &str) -> Result<String, StepError> {
    if rows.as_map().is_some() || items(rows).is_none() || rows.is_nil() {
        return Err(wrong(format!(
            "a table needs a vector of maps or of vectors, but the result is {}",
            rows.kind()
        )));
    }
    let code =
        Value::from("(fn [rows separator] (flow.util/write-csv rows {:separator separator}))");
    let written = cx.call_at_once(
        &cx.function(&code)?,
        &[rows.clone(), Value::from(separator)],
    );
    let written = written.map_err(|error| {
        let mut wrong = wrong(format!("the result cannot be stored: {}", error.message));
        wrong.hints = error.hints;
        wrong
    })?;
    Ok(written.as_str().unwrap_or_default().to_owned())
}
