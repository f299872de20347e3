//! Response bodies: converts bytes to values for a flow. Plain data; nothing here knows of values.

use super::content::charset;
use super::error::{Answer, HttpError, preview};
use crate::sse::{Event, Parser};

/// The way to read a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseAs {
    /// According to its content type.
    Auto,
    Bytes,
    Edn,
    Json,
    JsonLines,
    Events,
    Text,
    Xml,
    Yaml,
}

impl ResponseAs {
    /// The names in flows.
    pub const NAMES: &'static [&'static str] = &[
        "auto", "bytes", "edn", "json", "jsonl", "sse", "text", "xml", "yaml",
    ];

    pub fn from_name(name: &str) -> Option<ResponseAs> {
        Some(match name {
            "auto" => ResponseAs::Auto,
            "bytes" => ResponseAs::Bytes,
            "edn" => ResponseAs::Edn,
            "json" => ResponseAs::Json,
            "jsonl" => ResponseAs::JsonLines,
            "sse" => ResponseAs::Events,
            "text" => ResponseAs::Text,
            "xml" => ResponseAs::Xml,
            "yaml" => ResponseAs::Yaml,
            _ => return None,
        })
    }
}

/// A decoded body.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    Empty,
    Events(Vec<Event>),
    Text(String),
    /// Text still to be parsed in this format.
    Edn(String),
    Json(String),
    JsonLines(String),
    Xml(String),
    Yaml(String),
    Bytes,
}

/// Decodes a body.
pub fn decode(wanted: ResponseAs, host: &str, answer: &Answer) -> Result<Decoded, HttpError> {
    let bad = |wanted, cause: String| HttpError::Undecodable {
        host: host.to_string(),
        status: answer.status,
        wanted,
        cause,
        preview: preview(&answer.body),
    };
    if let Some(packing) = answer
        .header("content-encoding")
        .filter(|it| *it != "identity")
        && wanted != ResponseAs::Bytes
    {
        let cause = format!("it is compressed with {packing}, which was not requested");
        return Err(bad("readable", cause));
    }
    let text = || text(answer).map_err(|cause| bad("text", cause));
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
        ResponseAs::Json => Ok(Decoded::Json(text()?)),
        ResponseAs::JsonLines => Ok(Decoded::JsonLines(text()?)),
        ResponseAs::Events => {
            let mut parser = Parser::default();
            let mut events = parser.push(&answer.body);
            events.extend(parser.finish());
            Ok(Decoded::Events(events))
        }
        ResponseAs::Text => Ok(Decoded::Text(text()?)),
        ResponseAs::Edn => Ok(Decoded::Edn(text()?)),
        ResponseAs::Xml => Ok(Decoded::Xml(text()?)),
        ResponseAs::Yaml => Ok(Decoded::Yaml(text()?)),
        ResponseAs::Bytes => Ok(Decoded::Bytes),
    }
}

fn by_content_type(answer: &Answer) -> ResponseAs {
    let kind = media_type(answer);
    let is_text = |kind: &str| {
        kind.starts_with("text/")
            || matches!(
                kind,
                "application/javascript"
                    | "application/toml"
                    | "application/x-www-form-urlencoded"
                    | "application/xhtml+xml"
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
        "application/xml" | "text/xml" => ResponseAs::Xml,
        "application/x-yaml" | "application/yaml" | "text/x-yaml" | "text/yaml" => ResponseAs::Yaml,
        kind if is_text(kind) => ResponseAs::Text,
        kind if kind.ends_with("+xml") => ResponseAs::Xml,
        kind if kind.ends_with("+yaml") => ResponseAs::Yaml,
        // Without a content type: text if possible.
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

/// Decodes text with the encoding in its byte order mark or from the server, otherwise UTF-8. XML names its encoding in
/// its first line.
fn text(answer: &Answer) -> Result<String, String> {
    let header = answer.header("content-type").unwrap_or_default();
    let charset = charset(header).or_else(|| match media_type(answer) {
        kind if kind.ends_with("xml") => declared(&answer.body),
        _ => None,
    });
    let marked = encoding_rs::Encoding::for_bom(&answer.body);
    let encoding = match (marked, charset) {
        (Some((encoding, _)), _) => encoding,
        (None, Some(charset)) => encoding_rs::Encoding::for_label(charset.as_bytes())
            .ok_or_else(|| format!("its encoding `{charset}` is not known"))?,
        (None, None) => encoding_rs::UTF_8,
    };
    if encoding != encoding_rs::UTF_8 {
        let (text, wrong) = encoding.decode_with_bom_removal(&answer.body);
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

/// Returns the encoding that the first line of XML names.
fn declared(body: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    let (first, _) = start.strip_prefix("<?xml")?.split_once("?>")?;
    let (_, rest) = first.split_once("encoding")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|it| "\"'".contains(*it))?;
    let (name, _) = rest[1..].split_once(quote)?;
    Some(name.to_owned())
}
