//! What a wire format is: pure functions from calls to bodies, and from bodies and events to replies.
//!
//! One file a format. Who speaks which, and with what small differences, stands in the [`Dialect`]s.

use reqwest::Url;
use serde_json::{Map, Value as Json};

use super::call::{Call, Delta, Output, Reply};
use super::dialect::Dialect;
use super::error::LlmError;
use super::frames::Frames;
use crate::sse;

/// A wire format.
pub trait Family: Sync {
    /// What flows call it: `chat-completions-compatible`, `anthropic` ...
    fn id(&self) -> &'static str;

    /// Returns where a streamed call goes. `base` ends without a slash.
    fn address(&self, base: &Url, call: &Call) -> Url;

    /// Returns the headers that are always the same.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Tells whether it has stop sequences. Where it has none, the answer is cut here.
    fn stops(&self) -> bool {
        true
    }

    /// Returns the fields of the call that it has no place for and that an answer does without.
    fn leaves_out(&self, _call: &Call) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns the fields of the call that the model asked does not take.
    fn refuses(&self, _call: &Call) -> Vec<&'static str> {
        Vec::new()
    }

    /// Tells whether requests may be signed, as AWS wants it.
    fn is_signed(&self) -> bool {
        false
    }

    /// Returns how its streams are cut into events.
    fn frames(&self) -> Frames {
        Frames::Sse
    }

    /// Returns the body of a streamed call.
    fn encode(&self, call: &Call, dialect: &Dialect) -> Json;

    /// Reads a whole answer, from a server that does not stream.
    ///
    /// # Errors
    /// When it is an error, or no answer of this format.
    fn decode(&self, provider: &str, body: &[u8]) -> Result<Reply, LlmError>;

    /// Begins to put a streamed answer together.
    fn stream(&self, provider: &str) -> Box<dyn Stream>;
}

/// A streamed answer being put together.
pub trait Stream {
    /// Takes one event and returns what it adds.
    ///
    /// # Errors
    /// When it is an error, or no event of this format.
    fn push(&mut self, event: &sse::Event) -> Result<Vec<Delta>, LlmError>;

    /// Tells whether nothing more is to come.
    fn is_done(&self) -> bool;

    /// Returns how many characters of text have come.
    fn chars(&self) -> usize;

    /// Returns the reply, at the end of the stream.
    ///
    /// # Errors
    /// When the stream broke off before its end.
    fn finish(self: Box<Self>) -> Result<Reply, LlmError>;
}

/// The tool that a model answers with, where that is how a format gets data by a schema.
pub const ANSWER_TOOL: &str = "flowstone_answer";

/// The same for data that is no object: it stands under `answer`, since a tool takes an object.
pub const ANSWER_VALUE_TOOL: &str = "flowstone_answer_value";

/// Says what the system says in the middle of a conversation, where a format has only a user's place for it.
pub fn aside(text: &str) -> String {
    format!("<system>\n{text}\n</system>")
}

/// Tells a model that cannot be held to a form which form the answer has.
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

/// Writes 1.0 as 1: what a person would write.
pub fn number(number: f64) -> Json {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => Json::from(number as i64),
        false => Json::from(number),
    }
}

/// Lays what a step adds over a body: maps into maps, nothing (`nil`) takes away, all else replaces. Tools stand beside
/// those of the call: a provider's own ones are added so.
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

/// Returns type and Base64 text of a `data:` address; None for other addresses.
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

/// Returns bytes that are written in percent.
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

/// Reads JSON that came from a provider.
pub fn parsed(provider: &str, what: &str, text: &[u8]) -> Result<Json, LlmError> {
    serde_json::from_slice(text)
        .map_err(|error| malformed(provider, &format!("{what} is not JSON ({error})"), text))
}

/// Reads a count of tokens; an impossible count is ignored.
pub fn count(json: Option<&Json>) -> Option<i64> {
    const MOST: i64 = 1 << 50;
    let count = json.and_then(Json::as_i64)?;
    (0..=MOST).contains(&count).then_some(count)
}

/// Reads a field that holds text. One that is missing or null is `None`.
///
/// # Errors
/// When it holds something else: what that would mean is not known, so that it is not taken for nothing.
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

/// Says that something is not of the format.
pub fn malformed(provider: &str, cause: &str, text: &[u8]) -> LlmError {
    LlmError::Malformed {
        provider: provider.to_string(),
        cause: cause.to_string(),
        preview: crate::http::error::preview(text),
    }
}

/// Adds segments to the path of an address.
pub fn below(base: &Url, segments: &str) -> Url {
    let mut url = base.clone();
    let path = format!("{}/{segments}", base.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}
