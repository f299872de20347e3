//! The file of one exchange: the request and its response, in a form that people can read and edit.
//!
//! A body is written as JSON if it is JSON, else as lines of text, else as base64. The chunks of a stream stay apart.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_flow::ports::{ResponseEnd, ResponseFault, ResponseHead};
use serde_json::{Map, Value as Json, json};

use super::{RecordingError, not_json, unknown};
use crate::http::error::header;

/// An exchange without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exchange {
    pub number: u32,
    /// The path of the step that sent the request.
    pub step: String,
    pub at: String,
    pub request: RecordedRequest,
    /// `None` if the process died before the response ended.
    pub answer: Option<Answered>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answered {
    pub head: Option<ResponseHead>,
    pub chunks: Vec<Vec<u8>>,
    pub end: ResponseEnd,
}

/// Parts of the content types of streams, whose chunks stay separate.
const STREAMS: &[&str] = &["event-stream", "eventstream", "jsonl", "ndjson"];

impl Exchange {
    /// Returns the name of the exchange's file.
    pub(super) fn file_name(&self) -> String {
        let plain = |it: char| match it {
            '/' => '.',
            it if it.is_ascii_alphanumeric() || "._-".contains(it) => it,
            _ => '-',
        };
        let step: String = self.step.chars().map(plain).take(80).collect();
        format!("{:04}-{step}.json", self.number)
    }

    pub(super) fn to_json(&self) -> Json {
        let mut request = Map::new();
        request.insert("method".into(), json!(self.request.method));
        request.insert("url".into(), json!(self.request.url));
        request.insert("headers".into(), headers_json(&self.request.headers));
        if let Ok(body) = serde_json::from_slice::<Json>(&self.request.body)
            && (body.is_object() || body.is_array())
        {
            request.insert("json".into(), body);
        } else if !self.request.body.is_empty() {
            add_bytes(&mut request, &self.request.body);
        }
        let mut whole = Map::new();
        whole.insert("exchange".into(), json!(self.number));
        whole.insert("step".into(), json!(self.step));
        whole.insert("at".into(), json!(self.at));
        whole.insert("request".into(), Json::Object(request));
        if let Some(answer) = &self.answer {
            if let Some(head) = &answer.head {
                let response = response_json(head, &answer.chunks, &self.request.url);
                whole.insert("response".into(), response);
            }
            whole.insert("end".into(), end_json(&answer.end));
        }
        Json::Object(whole)
    }

    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Exchange, RecordingError> {
        let wrong = |cause: String| RecordingError::Wrong {
            path: path.display().to_string(),
            cause,
        };
        let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let json: Json = serde_json::from_slice(&text).map_err(|error| wrong(not_json(&error)))?;
        of_json(&json).map_err(wrong)
    }
}

fn headers_json(headers: &[(String, String)]) -> Json {
    let mut map = Map::new();
    for (name, value) in headers {
        match map.get_mut(name) {
            None => {
                map.insert(name.clone(), json!(value));
            }
            Some(Json::Array(values)) => values.push(json!(value)),
            Some(first) => *first = json!([first.clone(), value]),
        }
    }
    Json::Object(map)
}

fn response_json(head: &ResponseHead, chunks: &[Vec<u8>], asked: &str) -> Json {
    let mut map = Map::new();
    map.insert("status".into(), json!(head.status));
    if head.url != asked {
        map.insert("url".into(), json!(head.url));
    }
    map.insert("headers".into(), headers_json(&head.headers));
    let kind = header(&head.headers, "content-type").unwrap_or_default();
    if STREAMS.iter().any(|it| kind.contains(it)) {
        let chunks = chunks.iter().map(|chunk| match std::str::from_utf8(chunk) {
            Ok(text) => json!(text),
            Err(_) => json!({"base64": STANDARD.encode(chunk)}),
        });
        map.insert("chunks".into(), chunks.collect());
        return Json::Object(map);
    }
    let body = chunks.concat();
    if body.is_empty() {
        return Json::Object(map);
    }
    // A flow may read the text itself, so it is written as JSON only if its exact white space can be restored.
    if let Ok(json) = serde_json::from_slice::<Json>(&body)
        && (json.is_object() || json.is_array())
    {
        if json.to_string().as_bytes() == body {
            map.insert("json".into(), json);
            return Json::Object(map);
        }
        if serde_json::to_string_pretty(&json).is_ok_and(|text| text.as_bytes() == body) {
            map.insert("indent".into(), json!(2));
            map.insert("json".into(), json);
            return Json::Object(map);
        }
    }
    add_bytes(&mut map, &body);
    Json::Object(map)
}

/// Adds a body that is not JSON: text, as a list if it has several lines, or bytes as base64.
fn add_bytes(map: &mut Map<String, Json>, body: &[u8]) {
    let Ok(text) = std::str::from_utf8(body) else {
        map.insert("base64".into(), json!(STANDARD.encode(body)));
        return;
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let value = match lines.as_slice() {
        [only] => json!(only),
        lines => json!(lines),
    };
    map.insert("text".into(), value);
}

fn end_json(end: &ResponseEnd) -> Json {
    match end {
        ResponseEnd::Complete => json!("complete"),
        ResponseEnd::Unread => json!("unread"),
        ResponseEnd::Failed(fault) => {
            json!({"kind": fault.kind, "message": fault.message, "passing": fault.is_transient})
        }
    }
}

fn of_json(json: &Json) -> Result<Exchange, String> {
    let whole = object(json, "the file")?;
    known(
        whole,
        "",
        &["at", "end", "exchange", "request", "response", "step"],
    )?;
    let asked = object(&json["request"], "`request`")?;
    known(
        asked,
        "request ",
        &["base64", "headers", "json", "method", "text", "url"],
    )?;
    let request = RecordedRequest {
        method: text(&json["request"]["method"], "`method` of the request")?,
        url: text(&json["request"]["url"], "`url` of the request")?,
        headers: headers(&json["request"]["headers"], "`headers` of the request")?,
        body: bytes(asked, "request")?,
    };
    let number = json["exchange"]
        .as_u64()
        .and_then(|it| u32::try_from(it).ok());
    let mut exchange = Exchange {
        number: number.ok_or("`exchange` must be its number")?,
        step: text(&json["step"], "`step`")?,
        at: text(&json["at"], "`at`")?,
        request,
        answer: None,
    };
    let Some(end) = whole.get("end") else {
        return match whole.contains_key("response") {
            true => Err("it has a `response` but no `end`, such as \"complete\"".to_owned()),
            false => Ok(exchange),
        };
    };
    let end = end_of(end)?;
    let (head, chunks) = match whole.get("response") {
        None | Some(Json::Null) if matches!(end, ResponseEnd::Failed(_)) => (None, Vec::new()),
        None => return Err("it has an `end` but no `response`".to_owned()),
        Some(response) => {
            let (head, chunks) = response_of(response, &exchange.request.url)?;
            (Some(head), chunks)
        }
    };
    exchange.answer = Some(Answered { head, chunks, end });
    Ok(exchange)
}

fn end_of(json: &Json) -> Result<ResponseEnd, String> {
    match json {
        Json::String(word) if word == "complete" => Ok(ResponseEnd::Complete),
        Json::String(word) if word == "unread" => Ok(ResponseEnd::Unread),
        Json::Object(_) => Ok(ResponseEnd::Failed(ResponseFault {
            kind: text(&json["kind"], "`kind` of the `end`")?,
            message: text(&json["message"], "`message` of the `end`")?,
            is_transient: json["passing"].as_bool().unwrap_or_default(),
        })),
        _ => Err(
            "`end` must be \"complete\", \"unread\", or an error with `kind` and `message`".into(),
        ),
    }
}

fn response_of(json: &Json, asked: &str) -> Result<(ResponseHead, Vec<Vec<u8>>), String> {
    let map = object(json, "`response`")?;
    known(
        map,
        "response ",
        &[
            "base64", "chunks", "headers", "indent", "json", "status", "text", "url",
        ],
    )?;
    let status = json["status"]
        .as_u64()
        .and_then(|it| u16::try_from(it).ok());
    let status = status.filter(|it| (100..=599).contains(it));
    let head = ResponseHead {
        status: status.ok_or("`status` of the response must be a number such as 200")?,
        headers: headers(&json["headers"], "`headers` of the response")?,
        url: match map.get("url") {
            None => asked.to_owned(),
            Some(url) => text(url, "`url` of the response")?,
        },
    };
    let chunks = match map.get("chunks") {
        None => vec![bytes(map, "response")?],
        Some(Json::Array(chunks)) => {
            let chunks = chunks.iter().map(chunk);
            chunks.collect::<Result<_, _>>()?
        }
        Some(_) => return Err("`chunks` of the response must be a list".to_owned()),
    };
    let chunks: Vec<Vec<u8>> = chunks;
    Ok((
        head,
        chunks.into_iter().filter(|it| !it.is_empty()).collect(),
    ))
}

fn chunk(json: &Json) -> Result<Vec<u8>, String> {
    match (json, &json["base64"]) {
        (Json::String(text), _) => Ok(text.clone().into_bytes()),
        (_, Json::String(text)) => decoded(text),
        _ => Err("each of `chunks` must be a text, or {\"base64\": ...}".to_owned()),
    }
}

/// Reads a body from its `json`, `text` or `base64`.
fn bytes(map: &Map<String, Json>, owner: &str) -> Result<Vec<u8>, String> {
    let kinds = ["base64", "json", "text"];
    let given: Vec<&str> = kinds
        .into_iter()
        .filter(|it| map.contains_key(*it))
        .collect();
    if given.len() > 1 {
        return Err(format!(
            "the {owner} has both `{}` and `{}`",
            given[0], given[1]
        ));
    }
    if let Some(json) = map.get("json") {
        return match map.get("indent") {
            None => Ok(json.to_string().into_bytes()),
            Some(_) => serde_json::to_vec_pretty(json).map_err(|error| error.to_string()),
        };
    }
    match (map.get("text"), map.get("base64")) {
        (Some(Json::String(text)), _) => Ok(text.clone().into_bytes()),
        (Some(Json::Array(lines)), _) => {
            let lines: Option<Vec<&str>> = lines.iter().map(Json::as_str).collect();
            let lines =
                lines.ok_or_else(|| format!("the lines of the {owner}'s `text` must be texts"))?;
            Ok(lines.concat().into_bytes())
        }
        (Some(_), _) => Err(format!("`text` of the {owner} must be a text or its lines")),
        (None, Some(Json::String(text))) => decoded(text),
        (None, Some(_)) => Err(format!("`base64` of the {owner} must be a text")),
        (None, None) => Ok(Vec::new()),
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, String> {
    STANDARD
        .decode(text.trim())
        .map_err(|error| format!("a `base64` text is invalid: {error}"))
}

fn object<'a>(json: &'a Json, what: &str) -> Result<&'a Map<String, Json>, String> {
    json.as_object()
        .ok_or_else(|| format!("{what} is missing, or is not an object"))
}

fn text(json: &Json, what: &str) -> Result<String, String> {
    let text = json.as_str().map(str::to_owned);
    text.ok_or_else(|| format!("{what} is missing, or is not a text"))
}

fn known(map: &Map<String, Json>, owner: &str, keys: &[&str]) -> Result<(), String> {
    match unknown(map, keys) {
        None => Ok(()),
        Some(key) => Err(format!(
            "{owner}`{key}` is not a known field; there are {}",
            keys.join(", ")
        )),
    }
}

fn headers(json: &Json, what: &str) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    for (name, value) in object(json, what)? {
        let values = match value {
            Json::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            let name = name.to_ascii_lowercase();
            headers.push((name, text(value, &format!("one of {what}"))?));
        }
    }
    Ok(headers)
}
