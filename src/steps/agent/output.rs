//! `:output-persist` of an agent: the answer as a resource, under `:persisted-ref` of the result.

use flowstone_flow::resource::media::{self, Format};
use flowstone_flow::step::{Field, FieldType, NestedRequest, Persist as _, StepContext, StepError};
use flowstone_lang::value::Value;

use super::notes::{facts, plain, with};
use crate::fields::Fields;
use crate::persist::PersistResult;

/// The keys of `:output-persist`.
pub(super) const FIELD: FieldType = FieldType::Either(&[
    FieldType::Bool,
    FieldType::Keys(&[
        Field::optional(
            "content-type",
            FieldType::Text,
            "The content type. Default: JSON, Markdown or plain text, by the content.",
        )
        .or_nil(),
        Field::optional(
            "name",
            FieldType::Text,
            "The file name. Default: that of the step.",
        )
        .or_nil(),
        Field::optional("type", FieldType::Name, "`:blob`.").or_nil(),
    ]),
]);
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// The parsed `:output-persist`.
#[derive(Debug)]
pub(super) struct OutputPersist {
    name: Option<String>,
    content_type: Option<String>,
    /// The default name of the resource.
    step: String,
}

impl OutputPersist {
    /// Reads `:output-persist`; `None` if it is off.
    pub(super) fn read(
        cx: &StepContext,
        given: &Value,
    ) -> Result<Option<OutputPersist>, StepError> {
        let nothing = Value::map([]);
        let given = match given {
            Value::Bool(false) => return Ok(None),
            Value::Bool(true) => &nothing,
            given => given,
        };
        let fields = Fields::nested(":output-persist", given)?;
        if let Some(type_) = fields.name("type")?
            && &*type_ != "blob"
        {
            return Err(StepError::config(
                "E0850",
                format!("`:output-persist` has no `:type :{type_}`"),
            )
            .hint("there is `:blob`; for a key or a table give the step a `:persist`"));
        }
        let output = OutputPersist {
            name: fields.text("name")?.map(str::to_owned),
            content_type: fields.text("content-type")?.map(str::to_owned),
            step: cx.step_id().to_owned(),
        };
        // A wrong `:output` is reported before anything was paid for.
        let kind = output.wanted().unwrap_or(TEXT);
        PersistResult.check("function", &output.persist(kind))?;
        Ok(Some(output))
    }

    /// Returns the step that stores the content.
    pub(super) fn step(&self, content: &Value) -> NestedRequest {
        let kind = self.wanted().unwrap_or_else(|| content_type(content));
        // Data is written in the format of its type or file name, and as text if neither is a data format.
        let stored = match (content, Format::of(kind)) {
            (Value::Text(_), _) => content.clone(),
            (data, Some(Format::Text) | None) => Value::from(plain(data)),
            (data, Some(_)) => data.clone(),
        };
        stored_as("output", stored, self.persist(kind))
    }

    /// Returns the content type that the flow sets, directly or with the file's name.
    fn wanted(&self) -> Option<&str> {
        let by_name = || media::of_name(self.name.as_deref()?);
        self.content_type.as_deref().or_else(by_name)
    }

    fn persist(&self, kind: &str) -> Value {
        let name = self.name.clone();
        let name = name.unwrap_or_else(|| format!("{}.{}", self.step, extension(kind)));
        blob(&name, kind)
    }
}

/// Returns the `:persist` of a blob.
pub(super) fn blob(name: &str, content_type: &str) -> Value {
    facts([
        ("type", Value::keyword("blob")),
        ("filename", Value::from(name)),
        ("content-type", Value::from(content_type)),
    ])
}

/// Returns a step that returns a value, so that the value is visible in the run.
pub(super) fn keep(id: &str, value: Value) -> NestedRequest {
    NestedRequest::new("function", id, giving(value))
}

/// Returns a step that stores a value with `:persist`.
pub(super) fn stored_as(id: &str, value: Value, persist: Value) -> NestedRequest {
    let config = with(&giving(value), [("persist", persist)]);
    NestedRequest::new("function", id, config)
}

fn giving(value: Value) -> Value {
    facts([
        ("code", Value::from("(fn [input] (:value input))")),
        ("input", facts([("value", value)])),
    ])
}

/// Returns the content type of a value.
fn content_type(content: &Value) -> &'static str {
    let Value::Text(text) = content else {
        return JSON;
    };
    let text = text.as_str().trim();
    let is_document = text.starts_with(['{', '[']);
    match text {
        text if is_document && serde_json::from_str::<serde_json::Value>(text).is_ok() => JSON,
        text if is_markdown(text) => MARKDOWN,
        _ => TEXT,
    }
}

/// Tells whether a text has features of Markdown: headings, fences, lists, tables, links, bold words.
fn is_markdown(text: &str) -> bool {
    let is_heading = |line: &str| {
        let rest = line.trim_start_matches('#');
        let level = line.len() - rest.len();
        (1..=6).contains(&level) && rest.starts_with(' ')
    };
    let mut bullets = 0;
    for line in text.lines() {
        let line = line.trim_start();
        let is_rule = line.starts_with("|-") || line.starts_with("| -") || line.starts_with("|:");
        if is_heading(line) || line.starts_with("```") || is_rule {
            return true;
        }
        if line.starts_with("- ") || line.starts_with("* ") || is_numbered(line) {
            bullets += 1;
        }
    }
    let has_link = text.contains("](") && text.contains('[');
    bullets >= 2 || has_link || text.matches("**").count() >= 2
}

fn is_numbered(line: &str) -> bool {
    let rest = line.trim_start_matches(|char: char| char.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(". ")
}

fn extension(kind: &str) -> &'static str {
    if let Some(extension) = Format::of(kind).and_then(Format::extension) {
        return extension;
    }
    match media::essence(kind).as_str() {
        "text/html" => "html",
        "text/markdown" => "md",
        _ => "txt",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_follows_from_the_content() {
        let cases = [
            ("", TEXT),
            ("Done.", TEXT),
            ("It costs 5. That is 2 * 3 - 1.", TEXT),
            ("#hashtag", TEXT),
            ("- only one", TEXT),
            ("{\"a\": 1}", JSON),
            (" [1, 2]\n", JSON),
            ("{not json}", TEXT),
            ("# Report\n\nFine.", MARKDOWN),
            ("Two things:\n- a\n- b", MARKDOWN),
            ("1. a\n2. b", MARKDOWN),
            ("```\ncode\n```", MARKDOWN),
            ("See [the page](https://example.com).", MARKDOWN),
            ("It is **very** good.", MARKDOWN),
            ("a | b\n|---|---|\n1 | 2", MARKDOWN),
        ];
        for (content, expected) in cases {
            assert_eq!(content_type(&Value::from(content)), expected, "{content:?}");
        }
        assert_eq!(content_type(&facts([("a", Value::Int(1))])), JSON);
    }
}
