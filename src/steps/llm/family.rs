//! The contract of a wire format: pure functions from calls to bodies, and from bodies and events to replies.
//!
//! One file per format. The providers of each format, with their small differences, are in the [`Dialect`]s.

use reqwest::Url;
use serde_json::{Map, Value as Json};

use super::call::{Call, Delta, Output, Reply};
use super::dialect::Dialect;
use super::error::LlmError;
use super::frames::Frames;
use super::provider_tool::ProviderToolKind;
use crate::json;
use crate::sse;

/// A wire format.
pub trait Family: Sync {
    /// Returns the name in flows: `chat-completions-compatible`, `anthropic` ...
    fn id(&self) -> &'static str;

    /// Returns the address of a streamed call. `base` ends without a slash.
    fn address(&self, base: &Url, call: &Call) -> Url;

    /// Returns the constant headers.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the content types of files, other than images, that messages may have.
    fn files(&self, _dialect: &Dialect) -> &'static [&'static str] {
        &[]
    }

    /// Returns the options of a tool that the provider runs; `None` if it has no such tool.
    fn provider_tool_options(&self, _kind: ProviderToolKind) -> Option<&'static [&'static str]> {
        None
    }

    /// Returns the value of the header that enables features of this call, with its name.
    fn features(&self, _call: &Call) -> Option<(&'static str, String)> {
        None
    }

    /// Tells whether it supports stop sequences. Otherwise the answer is cut here.
    fn stops(&self) -> bool {
        true
    }

    /// Returns the fields of the call that it does not support and that can be ignored.
    fn leaves_out(&self, _call: &Call) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns the fields of the call that the requested model does not support.
    fn refuses(&self, _call: &Call) -> Vec<&'static str> {
        Vec::new()
    }

    /// Tells whether requests may be signed for AWS.
    fn is_signed(&self) -> bool {
        false
    }

    /// Returns how its streams are divided into events.
    fn frames(&self) -> Frames {
        Frames::Sse
    }

    /// Returns the body of a streamed call.
    fn encode(&self, call: &Call, dialect: &Dialect) -> Json;

    /// Reads a whole answer, from a server that does not stream.
    ///
    /// # Errors
    /// Fails if it is an error, or not an answer of this format.
    fn decode(&self, provider: &str, body: &[u8]) -> Result<Reply, LlmError>;

    /// Begins to join a streamed answer.
    fn stream(&self, provider: &str) -> Box<dyn Stream>;
}

/// A streamed answer under construction.
pub trait Stream {
    /// Adds one event, and returns what it adds to the answer.
    ///
    /// # Errors
    /// Fails if it is an error, or not an event of this format.
    fn push(&mut self, event: &sse::Event) -> Result<Vec<Delta>, LlmError>;

    /// Tells whether the stream is complete.
    fn is_done(&self) -> bool;

    /// Returns the number of characters of text so far.
    fn chars(&self) -> usize;

    /// Returns the reply, at the end of the stream.
    ///
    /// # Errors
    /// Fails if the stream ended before the answer was complete.
    fn finish(self: Box<Self>) -> Result<Reply, LlmError>;
}

/// The tool by which a model answers, in formats that get data with a schema in this way.
pub const ANSWER_TOOL: &str = "flowstone_answer";

/// The same for data that is not an object: it is under `answer`, because the arguments of a tool are an object.
pub const ANSWER_VALUE_TOOL: &str = "flowstone_answer_value";

/// Marks a system message in the middle of a conversation, for formats that only allow a user's message there.
pub fn aside(text: &str) -> String {
    format!("<system>\n{text}\n</system>")
}

/// Returns an instruction about the format of the answer, for models that cannot be constrained to it.
pub fn instructions(output: &Output) -> Option<String> {
    const ONE: &str = "Answer with one JSON document and nothing else.";
    match output {
        Output::Json => Some(ONE.to_string()),
        Output::Schema { schema, .. } => {
            Some(format!("{ONE} It must satisfy this JSON Schema:\n{schema}"))
        }
        Output::Text | Output::Raw(_) => None,
    }
}

/// Converts 1.0 to 1, as a person would write it.
pub fn number(number: f64) -> Json {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => Json::from(number as i64),
        false => Json::from(number),
    }
}

/// Merges a field of the step into a body: maps are merged, nil removes a key, other values replace it. Tools are added
/// to those of the call, so that a provider's own tools can be added.
pub fn lay_over(body: &mut Map<String, Json>, key: &str, value: &Json) {
    match (body.get_mut(key), value) {
        (_, Json::Null) => {
            body.remove(key);
        }
        (Some(Json::Object(under)), Json::Object(over)) => {
            for (key, value) in over {
                lay_over(under, key, value);
            }
        }
        (Some(Json::Array(own)), Json::Array(more)) if key == "tools" => {
            own.extend(more.iter().cloned());
        }
        _ => {
            body.insert(key.to_string(), value.clone());
        }
    }
}

/// Returns the type and the Base64 text of a `data:` address; `None` for other addresses.
pub fn data_url(url: &str) -> Option<(String, String)> {
    use base64::Engine as _;
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind_of = |kind: &str| match kind.split(';').next() {
        None | Some("") => "text/plain".to_string(),
        Some(kind) => kind.to_ascii_lowercase(),
    };
    if let Some(kind) = kind.strip_suffix(";base64") {
        return Some((kind_of(kind), data.to_string()));
    }
    let text = base64::engine::general_purpose::STANDARD.encode(unescaped(data));
    Some((kind_of(kind), text))
}

/// Decodes percent-encoded bytes.
fn unescaped(text: &str) -> Vec<u8> {
    let digit = |at: Option<&u8>| at.and_then(|it| char::from(*it).to_digit(16));
    let (bytes, mut at, mut plain) = (text.as_bytes(), 0, Vec::new());
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, _, _) => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    plain
}

/// Parses JSON from a provider. Its texts are made by [`json::compact`], so that large integers keep their digits.
pub fn parsed(provider: &str, what: &str, text: &[u8]) -> Result<Json, LlmError> {
    json::read_integers(text)
        .map_err(|error| malformed(provider, &format!("{what} is not JSON ({error})"), text))
}

/// Reads a count of tokens; an impossible count is ignored.
pub fn count(json: Option<&Json>) -> Option<i64> {
    const MOST: i64 = 1 << 50;
    let count = json.and_then(Json::as_i64)?;
    (0..=MOST).contains(&count).then_some(count)
}

/// Reads a text field. Returns `None` if it is missing or null.
///
/// # Errors
/// Fails if it is something else, because its meaning is not known.
pub fn text_of<'a>(
    provider: &str,
    json: &'a Json,
    key: &str,
    whole: &[u8],
) -> Result<Option<&'a str>, LlmError> {
    match json.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => {
            let cause = format!("its `{key}` is not text");
            Err(malformed(provider, &cause, whole))
        }
    }
}

/// Returns the error for text that does not match the format.
pub fn malformed(provider: &str, cause: &str, text: &[u8]) -> LlmError {
    LlmError::Malformed {
        provider: provider.to_string(),
        cause: cause.to_string(),
        preview: crate::http::error::preview(text),
    }
}

/// Appends segments to the path of an address.
pub fn below(base: &Url, segments: &str) -> Url {
    let mut url = base.clone();
    let path = format!("{}/{segments}", base.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}
