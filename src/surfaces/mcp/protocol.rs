//! Messages of the protocol: JSON-RPC 2.0, the supported revisions, and errors.

use flowstone_engine::json::read_strictly;
use flowstone_fronts::json_text::long_integer;
use serde_json::{Map, Value as Json, json};

/// The revision without sessions.
pub(crate) const STATELESS: &str = "2026-07-28";
/// The revisions with sessions, newest first.
pub(crate) const LEGACY: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The member with the revision of a stateless request.
pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The name in `_meta` of the subscription that a message belongs to.
pub(super) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The request that opens a stream of changes.
pub(crate) const LISTEN: &str = "subscriptions/listen";
/// The name in `_meta` under which clients name their span.
pub(super) const META_TRACE: &str = "traceparent";
pub(super) const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// The extension that adds tasks to the stateless revision.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

pub(crate) mod codes {
    pub const PARSE: i64 = -32_700;
    pub const INVALID_REQUEST: i64 = -32_600;
    pub const METHOD: i64 = -32_601;
    pub const PARAMS: i64 = -32_602;
    pub const INTERNAL: i64 = -32_603;
    pub const RESOURCE: i64 = -32_002;
    pub const HEADERS: i64 = -32_020;
    pub const CAPABILITY: i64 = -32_021;
    pub const VERSION: i64 = -32_022;
}

/// The context of a request: a session, or the stateless revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// A session with this revision.
    Legacy(&'static str),
    Stateless,
}

impl Era {
    /// Returns the revision of a session: the requested one, or the newest supported one if that is not supported.
    pub(crate) fn negotiated(asked: Option<&str>) -> Era {
        let known = LEGACY.iter().find(|known| Some(**known) == asked);
        Era::Legacy(known.copied().unwrap_or(LEGACY[0]))
    }

    pub(crate) fn is_stateless(self) -> bool {
        self == Era::Stateless
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Era::Legacy(version) => version,
            Era::Stateless => STATELESS,
        }
    }

    /// Tells whether calls may request a task themselves.
    pub(super) fn has_task_calls(self) -> bool {
        self == Era::Legacy(LEGACY[0])
    }
}

/// Returns all revisions, newest first.
pub(crate) fn versions() -> Vec<&'static str> {
    [STATELESS].iter().chain(LEGACY).copied().collect()
}

/// A message from a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    Request {
        id: Json,
        method: String,
        params: Map<String, Json>,
        /// An integer of the message that has more than 64 bits, so that `params` have it rounded.
        rounded: Option<String>,
    },
    Notification {
        method: String,
        params: Map<String, Json>,
    },
    /// The response to a request of the server.
    Response {
        id: Json,
        result: Result<Json, Json>,
    },
}

/// An error as the response to a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Json>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn with(mut self, data: Json) -> RpcError {
        self.data = Some(data);
        self
    }

    pub(crate) fn params(message: impl Into<String>) -> RpcError {
        RpcError::new(codes::PARAMS, message)
    }

    /// A method that the revision does not have.
    pub(super) fn no_method(method: &str) -> RpcError {
        RpcError::new(codes::METHOD, format!("there is no method `{method}`"))
    }

    /// A revision that is not supported.
    pub(crate) fn version(asked: &str) -> RpcError {
        RpcError::new(
            codes::VERSION,
            format!("the protocol version `{asked}` is not supported"),
        )
        .with(json!({"supported": versions(), "requested": asked}))
    }

    /// A capability that the client lacks.
    pub(super) fn capability(required: &Json) -> RpcError {
        RpcError::new(
            codes::CAPABILITY,
            "the request needs a capability that the client does not declare",
        )
        .with(json!({"requiredCapabilities": required}))
    }

    fn to_json(&self) -> Json {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// Reads a message.
///
/// # Errors
/// When it is not JSON, or not a message. The id of the request is part of it, if it has one.
pub(crate) fn read(bytes: &[u8]) -> Result<Incoming, (Json, RpcError)> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string());
    let json = text.and_then(|text| read_strictly(text).map_err(|error| error.to_string()));
    let json = json.map_err(|error| {
        let message = format!("the message is not JSON: {error}");
        (Json::Null, RpcError::new(codes::PARSE, message))
    })?;
    let Json::Object(mut members) = json else {
        return Err((Json::Null, wrong("a message must be one JSON object")));
    };
    let id = members.remove("id").filter(|id| !id.is_null());
    let fail = |message: &str| Err((id.clone().unwrap_or(Json::Null), wrong(message)));
    if members.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return fail("`jsonrpc` must be \"2.0\"");
    }
    if id
        .as_ref()
        .is_some_and(|id| !id.is_string() && !id.is_number())
    {
        return fail("`id` must be a string or a number");
    }
    let method = match members.remove("method") {
        Some(Json::String(method)) => Some(method),
        Some(_) => return fail("`method` must be a string"),
        None => None,
    };
    let params = match members.remove("params") {
        Some(Json::Object(params)) => params,
        None | Some(Json::Null) => Map::new(),
        Some(_) => return fail("`params` must be an object"),
    };
    match (method, id.clone()) {
        (Some(method), Some(id)) => Ok(Incoming::Request {
            rounded: std::str::from_utf8(bytes).ok().and_then(long_integer),
            id,
            method,
            params,
        }),
        (Some(method), None) => Ok(Incoming::Notification { method, params }),
        (None, Some(id)) => match (members.remove("result"), members.remove("error")) {
            (Some(result), None) => Ok(Incoming::Response {
                id,
                result: Ok(result),
            }),
            (None, Some(error)) => Ok(Incoming::Response {
                id,
                result: Err(error),
            }),
            _ => fail("a response has either `result` or `error`"),
        },
        (None, None) => fail("a message needs a `method`"),
    }
}

/// Checks that a request of the stateless revision has its required members.
///
/// # Errors
/// When its revision or the client's capabilities are missing.
pub(crate) fn check_meta(params: &Map<String, Json>) -> Result<(), RpcError> {
    let meta = params.get("_meta").and_then(Json::as_object);
    let get = |key: &str| meta.and_then(|meta| meta.get(key));
    if !get(META_VERSION).is_some_and(Json::is_string) {
        return Err(RpcError::params(format!("`_meta` needs `{META_VERSION}`")));
    }
    match get(META_CAPABILITIES).is_some_and(Json::is_object) {
        true => Ok(()),
        false => Err(RpcError::params(format!(
            "`_meta` needs `{META_CAPABILITIES}`"
        ))),
    }
}

/// Returns the object of a request, as named in a header.
pub(crate) fn object_of<'a>(method: &str, params: &'a Map<String, Json>) -> Option<&'a str> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params.get(key)?.as_str()
}

fn wrong(message: &str) -> RpcError {
    RpcError::new(codes::INVALID_REQUEST, message)
}

/// Returns the response to a request.
pub(crate) fn response(id: &Json, answer: &Result<Json, RpcError>) -> Json {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error.to_json()}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(text: &str) -> String {
        match read(text.as_bytes()) {
            Ok(Incoming::Request { id, method, .. }) => format!("request {id} {method}"),
            Ok(Incoming::Notification { method, .. }) => format!("notification {method}"),
            Ok(Incoming::Response { id, result }) => format!("response {id} {}", result.is_ok()),
            Err((id, error)) => format!("{id} {}", error.code),
        }
    }

    #[test]
    fn messages_are_read_strictly() {
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
                "request 1 ping",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":null}"#,
                "request \"a\" ping",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                "notification notifications/initialized",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response 1 true"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, "response 1 false"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "1 -32600"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "1 -32600"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
                "1 -32600",
            ),
            (r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#, "true -32600"),
            ("[]", "null -32600"),
            ("{", "null -32700"),
            (r#"{"id":1,"id":2}"#, "null -32700"),
        ] {
            assert_eq!(read_as(text), expected, "{text}");
        }
    }

    #[test]
    fn sessions_have_the_revision_that_is_asked_for_or_the_newest() {
        assert_eq!(Era::negotiated(Some("2025-06-18")).version(), "2025-06-18");
        assert_eq!(Era::negotiated(Some("2020-01-01")).version(), "2025-11-25");
        assert_eq!(Era::negotiated(Some(STATELESS)).version(), "2025-11-25");
    }
}
