//! The result of a tool, as plain data and as a value for flows and models.

use flowstone_flow::flow::McpAdapter;
use flowstone_lang::value::Value;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool as ServerTool};
use serde_json::Value as Json;

use crate::json;

/// A tool's answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub structured: Option<Json>,
    pub parts: Vec<Part>,
    /// Whether all integers of the structured answer have their digits.
    is_exact: bool,
}

/// A part of an answer. Contents that are not text are `data:` addresses, in the form that `:llm` accepts.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Text(String),
    Image {
        url: String,
    },
    Audio {
        url: String,
    },
    Resource {
        uri: String,
        mime_type: Option<String>,
        text: Option<String>,
        url: Option<String>,
    },
    Link {
        uri: String,
        name: String,
        description: Option<String>,
        mime_type: Option<String>,
    },
}

/// Maximum length of a text in an error, in characters.
const SHOWN: usize = 2000;

/// The least integer that 64 bits cannot hold as a negative one.
const LARGE: f64 = 9_223_372_036_854_775_808.0;

impl Answer {
    pub(super) fn of(result: CallToolResult) -> Answer {
        let mut answer = Answer {
            structured: result.structured_content.filter(|it| !it.is_null()),
            parts: result.content.into_iter().filter_map(part).collect(),
            is_exact: false,
        };
        if answer.is_rounded() {
            answer.restore();
        }
        answer
    }

    /// Tells whether the structured answer has a number that may have been an integer of more than 64 bits: the reader of messages
    /// makes doubles of them.
    pub(super) fn is_rounded(&self) -> bool {
        !self.is_exact && self.structured.as_ref().is_some_and(has_large)
    }

    /// Takes the digits of such integers from the text of the answer, which is the same data.
    fn restore(&mut self) {
        let texts = self.texts();
        let is_same = |text: &str| {
            serde_json::from_str::<Json>(text).is_ok_and(|it| Some(&it) == self.structured.as_ref())
        };
        if is_same(&texts)
            && let Ok(exact) = json::read_integers(texts.as_bytes())
        {
            self.structured = Some(exact);
            self.is_exact = true;
        }
    }

    /// Returns its texts, truncated if they are long.
    pub(super) fn text(&self) -> String {
        let whole = self.texts();
        let whole = match (whole.is_empty(), &self.structured) {
            (true, Some(data)) => json::compact(data),
            (true, None) => "no reason given".to_owned(),
            (false, _) => whole,
        };
        match whole.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{} ...", &whole[..end]),
            None => whole,
        }
    }

    fn texts(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image { .. } | Part::Audio { .. } | Part::Resource { .. } | Part::Link { .. } => {
                None
            }
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the step's value: `:content` is the structured answer, or else the text. `:parts` exist if there is more
    /// than text.
    pub(super) fn to_value(&self) -> Value {
        let content = match &self.structured {
            Some(data) => json::from_exact_json(data),
            None => Value::from(self.texts()),
        };
        let mut entries = vec![(Value::keyword("content"), content)];
        if self.parts.iter().any(|part| !matches!(part, Part::Text(_))) {
            let parts = self.parts.iter().map(Part::to_value);
            entries.push((Value::keyword("parts"), Value::vector(parts)));
        }
        Value::map(entries)
    }
}

/// Tells whether data has a double that is written like an integer of more than 64 bits.
fn has_large(data: &Json) -> bool {
    match data {
        Json::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            float.is_some_and(|it| it.fract() == 0.0 && it.abs() >= LARGE)
        }
        Json::Array(items) => items.iter().any(has_large),
        Json::Object(members) => members.values().any(has_large),
        Json::Null | Json::Bool(_) | Json::String(_) => false,
    }
}

fn part(block: ContentBlock) -> Option<Part> {
    let data_url = |mime: &str, data: &str| format!("data:{mime};base64,{data}");
    Some(match block {
        ContentBlock::Text(text) => Part::Text(text.text),
        ContentBlock::Image(image) => Part::Image {
            url: data_url(&image.mime_type, &image.data),
        },
        ContentBlock::Audio(audio) => Part::Audio {
            url: data_url(&audio.mime_type, &audio.data),
        },
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents {
                uri,
                mime_type,
                text,
                ..
            } => Part::Resource {
                uri,
                mime_type,
                text: Some(text),
                url: None,
            },
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => Part::Resource {
                uri,
                url: Some(data_url(
                    mime_type.as_deref().unwrap_or("application/octet-stream"),
                    &blob,
                )),
                mime_type,
                text: None,
            },
            // Kinds of a later revision.
            _ => return None,
        },
        ContentBlock::ResourceLink(link) => Part::Link {
            uri: link.uri,
            name: link.name,
            description: link.description,
            mime_type: link.mime_type,
        },
        _ => return None,
    })
}

impl Part {
    fn to_value(&self) -> Value {
        let optional = |text: &Option<String>| text.as_deref().map(Value::from);
        let entries = match self {
            Part::Text(text) => vec![
                ("type", Some(Value::keyword("text"))),
                ("text", Some(Value::from(text.as_str()))),
            ],
            Part::Image { url } => vec![
                ("type", Some(Value::keyword("image"))),
                ("url", Some(Value::from(url.as_str()))),
            ],
            Part::Audio { url } => vec![
                ("type", Some(Value::keyword("audio"))),
                ("url", Some(Value::from(url.as_str()))),
            ],
            Part::Resource {
                uri,
                mime_type,
                text,
                url,
            } => vec![
                ("type", Some(Value::keyword("resource"))),
                ("uri", Some(Value::from(uri.as_str()))),
                ("mime-type", optional(mime_type)),
                ("text", optional(text)),
                ("url", optional(url)),
            ],
            Part::Link {
                uri,
                name,
                description,
                mime_type,
            } => vec![
                ("type", Some(Value::keyword("resource-link"))),
                ("uri", Some(Value::from(uri.as_str()))),
                ("name", Some(Value::from(name.as_str()))),
                ("description", optional(description)),
                ("mime-type", optional(mime_type)),
            ],
        };
        let entries = entries
            .into_iter()
            .filter_map(|(key, value)| Some((Value::keyword(key), value?)));
        Value::map(entries)
    }
}

/// Returns the step's value for a model: text or data. Contents that are not text have a line each.
pub(crate) fn for_model(value: &Value) -> Value {
    let Some(parts) = value.get("parts").and_then(Value::as_vector) else {
        return value.get("content").cloned().unwrap_or(Value::Nil);
    };
    let texts = parts.iter().map(|part| {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let name = text("uri").or(text("name"));
        match (name, text("text").or(text("description"))) {
            (Some(name), Some(text)) => format!("{name}:\n{text}"),
            (None, Some(text)) => text.to_owned(),
            (Some(name), None) => name.to_owned(),
            (None, None) => "[contents that are not text]".to_owned(),
        }
    });
    let structured = value.get("content").filter(|it| it.as_str().is_none());
    let data = structured.and_then(|data| json::to_json(data).ok());
    let data = data.map(|data| data.to_string());
    let texts: Vec<String> = data.into_iter().chain(texts).collect();
    Value::from(texts.join("\n"))
}

/// Returns a tool in the form of `:list-tools`.
pub(super) fn listed(adapter: &McpAdapter, tool: &ServerTool) -> Value {
    let description = tool.description.as_deref().or(tool.title.as_deref());
    let hinted = tool.annotations.as_ref().and_then(|it| it.read_only_hint);
    let known = adapter.tool(&tool.name).and_then(|it| it.read_only);
    let schema = Json::Object((*tool.input_schema).clone());
    Value::map([
        (Value::keyword("name"), Value::from(&*tool.name)),
        (
            Value::keyword("description"),
            Value::from(description.unwrap_or_default()),
        ),
        (Value::keyword("input-schema"), json::from_json(&schema)),
        (
            Value::keyword("read-only?"),
            Value::Bool(known.or(hinted).unwrap_or(false)),
        ),
    ])
}
