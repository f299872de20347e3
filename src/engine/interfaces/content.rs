//! Bodies of requests: JSON, forms, parts, and anything else as bytes.

use flowstone_lang::value::Value;
use serde_json::Value as Json;

use super::{InterfaceError, Received};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::json::{from_json, read_strictly};
use crate::resources::Upload;

/// Maximum size of a body in parts.
const PARTS_MAX: usize = 5 << 20;
/// Maximum number of parts.
const PARTS_COUNT: usize = 100;

/// The reference of something stored.
pub(super) type Stored = Option<Value>;

/// What a body holds.
#[derive(Debug)]
pub(super) enum Content {
    Nothing,
    Members(Vec<(String, Value)>),
    /// JSON that is not an object.
    Other(Value),
    Bytes {
        bytes: Vec<u8>,
        media: String,
    },
    Parts(Vec<Part>),
}

/// A part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub name: String,
    /// The name of a file; a field has none.
    pub file: Option<String>,
    pub media: Option<String>,
    pub bytes: Vec<u8>,
}

/// Reads a body by its type.
///
/// # Errors
/// When it is malformed, or of a type that cannot be read.
pub(super) fn read(received: &Received) -> Result<Content, InterfaceError> {
    let body = &received.body;
    if body.is_empty() {
        return Ok(Content::Nothing);
    }
    let kind = received.header("content-type").unwrap_or_default();
    let media = kind.split(';').next().unwrap_or_default().trim();
    let media = media.to_ascii_lowercase();
    match &*media {
        "" => match json(body) {
            Ok(content) => Ok(content),
            Err(_) => Err(InterfaceError::MediaType(media)),
        },
        "application/json" => json(body),
        "application/x-www-form-urlencoded" => form(body),
        "multipart/form-data" => {
            let boundary = parameter(kind, "boundary")
                .ok_or_else(|| malformed("the parts of the body have no boundary"))?;
            parts(body, &boundary).map(Content::Parts)
        }
        other if other.ends_with("+json") => json(body),
        _ => Ok(Content::Bytes {
            bytes: body.clone(),
            media,
        }),
    }
}

fn malformed(message: impl Into<String>) -> InterfaceError {
    InterfaceError::Malformed(message.into())
}

fn json(body: &[u8]) -> Result<Content, InterfaceError> {
    let text = std::str::from_utf8(body).map_err(|_| malformed("the body is not UTF-8"))?;
    let json = read_strictly(text);
    let json = json.map_err(|error| malformed(format!("the body is not JSON: {error}")))?;
    Ok(match json {
        Json::Object(members) => Content::Members(
            members
                .iter()
                .map(|(name, value)| (name.clone(), from_json(value)))
                .collect(),
        ),
        other => Content::Other(from_json(&other)),
    })
}

fn form(body: &[u8]) -> Result<Content, InterfaceError> {
    let text = std::str::from_utf8(body).map_err(|_| malformed("the body is not UTF-8"))?;
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let members = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = unescaped(name).zip(unescaped(value));
        let (name, value) = decoded.ok_or_else(|| malformed("the form has a malformed escape"))?;
        Ok((name, Value::from(value)))
    });
    members.collect::<Result<_, _>>().map(Content::Members)
}

/// Decodes the escapes of a query or a form; nothing if one is malformed.
pub(super) fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns a parameter of a header's value, such as `boundary`.
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut parts = value.split(';').skip(1);
    parts.find_map(|part| {
        let (known, value) = part.split_once('=')?;
        let is_it = known.trim().eq_ignore_ascii_case(name);
        let value = value.trim().trim_matches('"');
        (is_it && !value.is_empty()).then(|| value.to_owned())
    })
}

/// Reads the parts of a body of type `multipart/form-data`.
fn parts(body: &[u8], boundary: &str) -> Result<Vec<Part>, InterfaceError> {
    if body.len() > PARTS_MAX {
        let message = format!("a body in parts can have at most {PARTS_MAX} bytes");
        return Err(malformed(message));
    }
    let broken = || malformed("the parts of the body are malformed");
    let line = format!("--{boundary}");
    let mut rest = body.strip_prefix(line.as_bytes()).ok_or_else(broken)?;
    let between = format!("\r\n{line}");
    let mut found = Vec::new();
    while !rest.starts_with(b"--") {
        rest = rest.strip_prefix(b"\r\n").ok_or_else(broken)?;
        let end = position(rest, between.as_bytes()).ok_or_else(broken)?;
        let (part, after) = rest.split_at(end);
        let head = position(part, b"\r\n\r\n").ok_or_else(broken)?;
        let (head, bytes) = part.split_at(head);
        found.push(part_of(head, &bytes[4..]).ok_or_else(broken)?);
        if found.len() > PARTS_COUNT {
            return Err(malformed(format!(
                "a body can have at most {PARTS_COUNT} parts"
            )));
        }
        rest = &after[between.len()..];
    }
    Ok(found)
}

fn part_of(head: &[u8], bytes: &[u8]) -> Option<Part> {
    let head = std::str::from_utf8(head).ok()?;
    let header = |wanted: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let found = lines.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.trim())
    };
    let disposition = header("content-disposition")?;
    Some(Part {
        name: parameter(disposition, "name")?,
        file: parameter(disposition, "filename"),
        media: header("content-type").map(str::to_owned),
        bytes: bytes.to_vec(),
    })
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// Returns what a JSON body has at a path, as text.
pub(super) fn at(received: &Received, path: &[String]) -> Option<String> {
    let json: Json = serde_json::from_slice(&received.body).ok()?;
    let found = path.iter().try_fold(&json, |at, part| at.get(part))?;
    match found {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

/// Stores bytes and returns the reference that a run finds in its input.
pub(super) async fn store(
    engine: &Engine,
    name: &str,
    media: Option<String>,
    bytes: &[u8],
) -> Result<Value, EngineError> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name: String = name.chars().filter(|char| !char.is_control()).collect();
    let upload = Upload {
        name: match name.trim_matches('.') {
            "" => "body".to_owned(),
            _ => name.chars().take(200).collect(),
        },
        content_type: media,
        folder: None,
        replace: false,
        search: None,
    };
    let row = engine.upload(&upload, bytes).await?;
    let text = |text: &str| Value::from(text);
    let size = row.size.and_then(|size| i64::try_from(size).ok());
    let entries = [
        ("uri", Some(text(&row.uri))),
        ("content-type", row.content_type.as_deref().map(text)),
        ("size-bytes", size.map(Value::Int)),
        ("filename", Some(text(&upload.name))),
    ];
    let entries = entries
        .into_iter()
        .filter_map(|(key, value)| Some((Value::keyword(key), value?)));
    Ok(Value::map(entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(media: &str, body: &str) -> String {
        let received = Received {
            headers: vec![("content-type".to_owned(), media.as_bytes().to_vec())],
            body: body.as_bytes().to_vec(),
            ..Received::default()
        };
        let shown = |members: Vec<(String, Value)>| {
            let value = members
                .into_iter()
                .map(|(name, value)| (Value::from(name), value));
            crate::codec::encode(&Value::map(value)).expect("EDN")
        };
        match read(&received) {
            Ok(Content::Nothing) => "nothing".to_owned(),
            Ok(Content::Members(members)) => shown(members),
            Ok(Content::Other(value)) => {
                format!("other {}", crate::codec::encode(&value).expect("EDN"))
            }
            Ok(Content::Bytes { bytes, media }) => format!("{} bytes of {media}", bytes.len()),
            Ok(Content::Parts(parts)) => parts
                .iter()
                .map(|part| format!("{} {:?} {}", part.name, part.file, part.bytes.len()))
                .collect::<Vec<_>>()
                .join("; "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn bodies_are_read_by_their_type() {
        for (media, body, expected) in [
            ("application/json", "", "nothing"),
            ("application/json; charset=utf-8", "{\"a\": 1}", "{\"a\" 1}"),
            ("application/problem+json", "[1]", "other [1]"),
            ("", "{\"a\": 1}", "{\"a\" 1}"),
            ("", "hello", "a body of type `` cannot be read"),
            (
                "application/x-www-form-urlencoded",
                "a=1+2&b=%C3%A4",
                "{\"a\" \"1 2\" \"b\" \"ä\"}",
            ),
            (
                "application/x-www-form-urlencoded",
                "a=%zz",
                "the form has a malformed escape",
            ),
            ("text/csv", "a,b", "3 bytes of text/csv"),
        ] {
            assert_eq!(read_as(media, body), expected, "{media} {body}");
        }
        assert!(
            read_as("application/json", "{\"a\":1,\"a\":2}").starts_with("the body is not JSON")
        );
    }

    #[test]
    fn parts_are_fields_and_files() {
        let media = "multipart/form-data; boundary=x";
        let body = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n12\r\n--x\r\n\
                    content-disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\nContent-Type: text/plain\r\n\r\n\
                    --\r\n\r\n--x--\r\n";
        assert_eq!(read_as(media, body), "a None 2; f Some(\"n.txt\") 4");
        for broken in [
            "",
            "--y\r\n",
            "--x\r\n",
            "--x\r\n\r\n--x--",
            &body[..body.len() - 6],
        ] {
            if !broken.is_empty() {
                assert_eq!(
                    read_as(media, broken),
                    "the parts of the body are malformed"
                );
            }
        }
        assert_eq!(
            read_as("multipart/form-data", body),
            "the parts of the body have no boundary"
        );
    }
}
