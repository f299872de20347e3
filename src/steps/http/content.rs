//! The body of a request from a step's config: data, text, bytes, forms, parts, or the contents of a resource.

use flowstone_flow::diagnostic::Diagnostic;
use flowstone_flow::ports::ResourceRow;
use flowstone_flow::resource::Tier;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use super::body::{Body, Part};
use crate::connections::text_pairs;
use crate::fields::Fields;
use crate::{json, literal, resource};

/// The default content type of bytes.
const OCTETS: &str = "application/octet-stream";

/// Maximum size of a retained blob in a body.
const MOST_RETAINED: u64 = 10 << 20;
/// Maximum size of an ephemeral blob in a body.
const MOST_EPHEMERAL: u64 = 20 << 20;

/// The keys that set the body of a request.
pub(super) const BODIES: &[&str] = &["body", "body-from-ref", "form", "json", "multipart"];

pub(super) fn has_body(fields: Fields<'_>) -> bool {
    BODIES.iter().any(|key| fields.has(key))
}

/// Returns the body that a config describes. `most`: the configured limit for loading a reference.
pub(super) async fn body(
    cx: &StepContext,
    fields: Fields<'_>,
    most: Option<u64>,
) -> Result<Option<Body>, StepError> {
    let given: Vec<&str> = BODIES
        .iter()
        .copied()
        .filter(|key| fields.has(key))
        .collect();
    let content_type = fields.text("content-type")?;
    let mut body = match given.as_slice() {
        [] if content_type.is_some() => {
            let message = "`:content-type` needs a body";
            return Err(StepError::config("E0738", message));
        }
        [] => return Ok(None),
        // `:body` and `:json` may both be given; `:json` wins.
        ["body", "json"] | ["json"] => Body::json(as_json(":json", fields.get("json"))?),
        ["body"] => raw(fields, content_type)?,
        ["body-from-ref"] => {
            let reference = fields.get("body-from-ref").unwrap_or(&Value::Nil);
            let (row, bytes) = limited(cx, reference, most).await?;
            Body::new(bytes, row.content_type.unwrap_or_else(|| OCTETS.into()))
        }
        ["form"] => {
            let form = fields.map("form")?.cloned().unwrap_or(Value::Nil);
            Body::form(&text_pairs(":form", &form)?)
        }
        ["multipart"] => return multipart(cx, fields, most, content_type).await.map(Some),
        several => return Err(too_many(several)),
    };
    if let Some(content_type) = content_type {
        body.content_type = content_type.to_owned();
    }
    Ok(Some(body))
}

fn too_many(given: &[&str]) -> StepError {
    let given = crate::fields::listed(given);
    StepError::config(
        "E0738",
        format!("a request has one body, and this has {given}"),
    )
}

/// Returns the error for a written config with several bodies. A computed body may be nil.
pub(super) fn several(config: &Value) -> Option<(&'static str, Diagnostic)> {
    let is_given = |key: &str| {
        config.get(key).is_some_and(|value| match value {
            Value::Map(_) | Value::Vector(_) => true,
            value => !value.is_nil() && literal::is_known(value),
        })
    };
    let given: Vec<&'static str> = BODIES.iter().copied().filter(|key| is_given(key)).collect();
    match given.as_slice() {
        [] | [_] => None,
        ["body", "json"] => {
            let warning = Diagnostic::warning("E0738", "`:body` is not sent: `:json` wins over it");
            Some(("body", warning.hint("leave one of them out")))
        }
        [.., last] => Some((last, literal::finding(too_many(&given)))),
    }
}

fn raw(fields: Fields<'_>, content_type: Option<&str>) -> Result<Body, StepError> {
    match fields.get("body") {
        Some(Value::Text(text)) => {
            let bytes = encoded(text, content_type)?;
            Ok(Body::new(bytes, "text/plain; charset=utf-8"))
        }
        Some(value) if let Some(bytes) = value.as_bytes() => {
            Ok(Body::new(bytes.into_owned(), OCTETS))
        }
        other => {
            let kind = other.map_or("nothing", Value::kind);
            let error =
                StepError::config("E0738", format!("`:body` takes text or bytes, not {kind}"));
            Err(match other.and_then(resource::uri) {
                Some(_) => error.hint("`:body-from-ref` sends the contents behind a reference"),
                None => error.hint("`:json` sends data"),
            })
        }
    }
}

/// Encodes text with the encoding that its content type names.
fn encoded(text: &str, content_type: Option<&str>) -> Result<Vec<u8>, StepError> {
    let Some(charset) = content_type.and_then(charset) else {
        return Ok(text.as_bytes().to_vec());
    };
    let encoding = encoding_rs::Encoding::for_label(charset.as_bytes());
    match encoding.map(|encoding| encoding.encode(text)) {
        Some((bytes, _, false)) => Ok(bytes.into_owned()),
        Some(_) => Err(StepError::config(
            "E0738",
            format!("`:body` has characters that {charset} does not have"),
        )
        .hint("send it as utf-8")),
        None => Err(StepError::config(
            "E0738",
            format!("the encoding `{charset}` of `:content-type` is not known"),
        )),
    }
}

fn as_json(key: &str, value: Option<&Value>) -> Result<String, StepError> {
    json::write(value.unwrap_or(&Value::Nil))
        .map_err(|error| StepError::config("E0738", format!("`{key}`: {error}")))
}

async fn multipart(
    cx: &StepContext,
    fields: Fields<'_>,
    most: Option<u64>,
    content_type: Option<&str>,
) -> Result<Body, StepError> {
    let parts = fields.get("multipart").and_then(json::items);
    let mut made = Vec::new();
    for value in parts.unwrap_or_default() {
        made.push(part(cx, &value, most).await?);
    }
    if made.is_empty() {
        return Err(StepError::config("E0738", "`:multipart` has no part"));
    }
    let mut body = Body::multipart(&made);
    match content_type {
        None => {}
        // The boundary is part of the content type.
        Some(content_type)
            if content_type.starts_with("multipart/") && !content_type.contains("boundary") =>
        {
            body.content_type = body
                .content_type
                .replacen("multipart/form-data", content_type, 1);
        }
        Some(content_type) => {
            let message = format!("`{content_type}` is not a content type of `:multipart`");
            return Err(StepError::config("E0738", message)
                .hint("leave it out, or name another kind without a boundary, such as \"multipart/related\""));
        }
    }
    Ok(body)
}

async fn part(cx: &StepContext, value: &Value, most: Option<u64>) -> Result<Part, StepError> {
    let fields = Fields::nested(":multipart part", value)?;
    fields.only(&["name", "filename", "content-type", "content", "from-ref"])?;
    let name = fields
        .name("name")?
        .ok_or_else(|| StepError::config("E0738", "a part of `:multipart` needs a `:name`"))?;
    let mut part = Part {
        name: name.to_string(),
        filename: None,
        content_type: None,
        bytes: Vec::new(),
    };
    match (fields.get("content"), fields.get("from-ref")) {
        (Some(Value::Text(text)), None) => part.bytes = text.as_bytes().to_vec(),
        (Some(value), None) if let Some(bytes) = value.as_bytes() => {
            part.bytes = bytes.into_owned();
            part.content_type = Some(OCTETS.to_owned());
        }
        (Some(data), None) => {
            part.bytes = as_json(":content", Some(data))?.into_bytes();
            part.content_type = Some("application/json".to_owned());
        }
        (None, Some(reference)) => {
            let (row, bytes) = limited(cx, reference, most).await?;
            part.bytes = bytes;
            part.filename = row.name;
            part.content_type = row.content_type.or_else(|| Some(OCTETS.to_owned()));
        }
        (Some(_), Some(_)) => {
            return Err(StepError::config(
                "E0738",
                format!("the part `{name}` takes `:content` or `:from-ref`, not both"),
            ));
        }
        (None, None) => {
            return Err(StepError::config(
                "E0738",
                format!("the part `{name}` needs `:content` or `:from-ref`"),
            ));
        }
    }
    if let Some(filename) = fields.text("filename")? {
        part.filename = Some(filename.to_owned());
    }
    if let Some(content_type) = fields.text("content-type")? {
        part.content_type = Some(content_type.to_owned());
    }
    Ok(part)
}

/// Loads the contents to send, if they are not too large for memory.
async fn limited(
    cx: &StepContext,
    reference: &Value,
    most: Option<u64>,
) -> Result<(ResourceRow, Vec<u8>), StepError> {
    let uri = resource::uri(reference);
    let row = match &uri {
        Some(uri) => cx.resource(uri).await?.filter(|row| row.gone.is_none()),
        None => None,
    };
    let most = most.unwrap_or(match row.as_ref().map(|row| row.tier) {
        Some(Tier::Ephemeral) => MOST_EPHEMERAL,
        Some(Tier::Retained) | None => MOST_RETAINED,
    });
    if let Some(row) = row
        && let Some(size) = row.size.filter(|size| *size > most)
    {
        return Err(StepError::new(
            "E0746",
            "too-large",
            format!(
                "`{}` has {} bytes, and a request takes {most} from a reference",
                row.uri, size
            ),
        )
        .hint("raise it in flowstone.edn: {:http {:max-body-from-ref n}}"));
    }
    resource::bytes(cx, reference).await
}

/// Returns the encoding that a content type names.
pub(super) fn charset(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches('"').to_string())
    })
}
