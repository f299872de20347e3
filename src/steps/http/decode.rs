//! Response bodies: bytes to what a flow works with. Plain data; nothing here knows of values.

use serde_json::Value as Json;

use super::error::{Answer, HttpError, preview};
use crate::sse::{Event, Parser};

/// How to take a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseAs {
    /// By its content type.
    Auto,
    Bytes,
    Edn,
    Json,
    JsonLines,
    Events,
    Text,
}

impl ResponseAs {
    /// The names that flows use.
    pub const NAMES: &'static [&'static str] =
        &["auto", "bytes", "edn", "json", "jsonl", "sse", "text"];

    pub fn from_name(name: &str) -> Option<ResponseAs> {
        Some(match name {
            "auto" => ResponseAs::Auto,
            "bytes" => ResponseAs::Bytes,
            "edn" => ResponseAs::Edn,
            "json" => ResponseAs::Json,
            "jsonl" => ResponseAs::JsonLines,
            "sse" => ResponseAs::Events,
            "text" => ResponseAs::Text,
            _ => return None,
        })
    }
}

/// A body, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    Empty,
    Json(Json),
    JsonLines(Vec<Json>),
    Events(Vec<Event>),
    Text(String),
    /// EDN text, not read yet.
    Edn(String),
    Bytes,
}

/// Takes a body apart.
pub fn decode(wanted: ResponseAs, host: &str, answer: &Answer) -> Result<Decoded, HttpError> {
    let bad = |wanted, cause: String| HttpError::Undecodable {
        host: host.to_string(),
        status: answer.status,
        wanted,
        cause,
        preview: preview(&answer.body),
    };
    let text = || text(answer).map_err(|cause| bad("text", cause));
    let json = |text: &str| {
        serde_json::from_str::<Json>(text).map_err(|error| bad("JSON", error.to_string()))
    };
    if wanted == ResponseAs::Bytes {
        return Ok(Decoded::Bytes);
    }
    if answer.body.is_empty() {
        return match wanted {
            ResponseAs::Json if answer.status != 204 => Err(bad("JSON", "it is empty".into())),
            ResponseAs::Text => Ok(Decoded::Text(String::new())),
            _ => Ok(Decoded::Empty),
        };
    }
    match wanted {
        ResponseAs::Auto => decode(by_content_type(answer), host, answer),
        ResponseAs::Json => Ok(Decoded::Json(json(text()?.trim_start_matches('\u{feff}'))?)),
        ResponseAs::JsonLines => {
            let text = text()?;
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            Ok(Decoded::JsonLines(
                lines.map(json).collect::<Result<_, _>>()?,
            ))
        }
        ResponseAs::Events => {
            let mut parser = Parser::default();
            let mut events = parser.push(&answer.body);
            events.extend(parser.finish());
            Ok(Decoded::Events(events))
        }
        ResponseAs::Text => Ok(Decoded::Text(text()?)),
        ResponseAs::Edn => Ok(Decoded::Edn(text()?)),
        ResponseAs::Bytes => Ok(Decoded::Bytes),
    }
}

fn by_content_type(answer: &Answer) -> ResponseAs {
    let kind = media_type(answer);
    let is_text = |kind: &str| {
        kind.starts_with("text/")
            || ["+xml", "+yaml"].iter().any(|end| kind.ends_with(end))
            || matches!(
                kind,
                "application/javascript"
                    | "application/toml"
                    | "application/x-www-form-urlencoded"
                    | "application/x-yaml"
                    | "application/xml"
                    | "application/yaml"
                    | "image/svg+xml"
            )
    };
    match kind.as_str() {
        "text/event-stream" => ResponseAs::Events,
        "application/edn" => ResponseAs::Edn,
        "application/jsonl"
        | "application/jsonlines"
        | "application/x-ndjson"
        | "application/x-jsonlines" => ResponseAs::JsonLines,
        kind if kind == "application/json" || kind == "text/json" || kind.ends_with("+json") => {
            ResponseAs::Json
        }
        kind if is_text(kind) => ResponseAs::Text,
        // A server that does not say: text if it can be.
        "" if std::str::from_utf8(&answer.body).is_ok() => ResponseAs::Text,
        _ => ResponseAs::Bytes,
    }
}

/// Returns the content type without its parameters, in lower case.
pub fn media_type(answer: &Answer) -> String {
    let header = answer.header("content-type").unwrap_or_default();
    header
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// Reads text in the encoding that the server names, else as UTF-8.
fn text(answer: &Answer) -> Result<String, String> {
    let header = answer.header("content-type").unwrap_or_default();
    let charset = header.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches('"').to_string())
    });
    if let Some(charset) = charset
        && !charset.eq_ignore_ascii_case("utf-8")
    {
        let encoding = encoding_rs::Encoding::for_label(charset.as_bytes())
            .ok_or_else(|| format!("its encoding `{charset}` is not known"))?;
        let (text, _, wrong) = encoding.decode(&answer.body);
        return match wrong {
            true => Err(format!("it is not valid {}", encoding.name())),
            false => Ok(text.into_owned()),
        };
    }
    match std::str::from_utf8(&answer.body) {
        Ok(text) => Ok(text.trim_start_matches('\u{feff}').to_string()),
        Err(error) => Err(format!(
            "it is not valid UTF-8, from byte {} on",
            error.valid_up_to()
        )),
    }
}
