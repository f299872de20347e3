//! Tools of type `mcp`: servers of the Model Context Protocol, whose tools the model sees as `{name}_{tool}`.
//!
//! Which tools there are is known when a generation asks the server, so loop control names them by the prefix. A credential
//! among the headers is kept encrypted and never shown.

use flowstone_engine::Engine;
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member};
use super::error::ApiError;
use super::records::{Record, Records};
use super::{context, credentials};
use crate::address::host_of;
use crate::graph::compile::text::{edn, keyword, quoted};

const SERVER: &[Member] = &[
    Member::optional("headers", Kind::Object, "Headers to send."),
    Member::optional(
        "timeout_seconds",
        Kind::Int(1, 86_400),
        "How long the server may take to list its tools, and to answer a call.",
    ),
    Member::required("url", Kind::Text, "The address of the MCP endpoint."),
];
/// How long a generation waits for answers to questions of a server, and for the outputs of client tools.
pub const PAUSE: &str = "30d";
/// The beginning of the ids of adapters; the rest is the key of the tool.
const ADAPTER: &str = "agents/tool-";

/// Tells whether a tool is a server.
pub fn is_server(record: &Record) -> bool {
    record.text("type") == Some("mcp")
}

/// Checks `mcp` of a tool of type `mcp`, and keeps its credential.
///
/// # Errors
/// When the address or a header is not valid.
pub fn check(engine: &Engine, body: &mut Body) -> Result<(), ApiError> {
    let Some(given) = body.get("mcp").cloned() else {
        return Err(ApiError::invalid(
            "`mcp` is missing: `{url, headers, timeout_seconds}`",
        ));
    };
    let mut server = Body::read(given, SERVER)?;
    let url = server.text("url").unwrap_or_default();
    let Some(host) = host_of(url) else {
        return Err(ApiError::invalid(
            "`mcp.url` must begin with http:// or https://, without credentials in it",
        ));
    };
    server.0.entry("headers").or_insert_with(|| json!({}));
    credentials::keep(engine, &mut server, (&host, "mcp.headers"))?;
    body.0.insert("mcp".to_owned(), Json::Object(server.0));
    Ok(())
}

/// Returns the pattern of the names under which models see the tools of a server.
pub fn names(record: &Record) -> String {
    format!("{}_*", record.text("name").unwrap_or_default())
}

fn adapter(record: &Record) -> String {
    format!("{ADAPTER}{}", record.key())
}

/// Returns the key of the tool that an adapter was made of.
pub fn tool_of(adapter: &str) -> Option<&str> {
    adapter.trim_start_matches(':').strip_prefix(ADAPTER)
}

/// Returns the address of a server; nothing if its tool is deleted.
///
/// # Errors
/// When the store cannot be read.
pub async fn address(engine: &Engine, tool: &str) -> Result<Option<String>, ApiError> {
    match Records::Tools.get(engine, tool).await {
        Ok(record) => {
            let url = record.get("mcp").and_then(|it| it.get("url")?.as_str());
            Ok(url.map(str::to_owned))
        }
        Err(ApiError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the slot of the connection and the adapter of a server, as text of a flow.
pub fn definition(record: &Record) -> (String, String) {
    let mcp = record.get("mcp");
    let text = |name: &str| mcp.and_then(|it| it.get(name)).and_then(Json::as_str);
    let slot = format!("mcp-{}", record.key());
    let auth = match credentials::auth(mcp) {
        Some(auth) => format!(" :auth {}", edn(&auth)),
        None => String::new(),
    };
    let url = quoted(text("url").unwrap_or_default());
    let seconds = mcp.and_then(|it| it.get("timeout_seconds")?.as_i64());
    let timeout = match seconds {
        Some(seconds) => format!(" :timeout-ms {}", seconds * 1_000),
        None => String::new(),
    };
    (
        format!(
            "{{:slot {} :type :http-api :base-url {url}{auth}}}",
            keyword(&slot)
        ),
        format!(
            "{{:id {} :connection {}{timeout}}}",
            keyword(&adapter(record)),
            keyword(&slot)
        ),
    )
}

/// Returns a server as an entry of `:mcp-tools`. `headers` are sent with calls, after the tool's own.
pub fn entry(record: &Record, headers: &Map<String, Json>) -> Json {
    let questions = json!({"timeout": PAUSE});
    let mut entry =
        json!({"name": record.get("name"), "adapter": adapter(record), "questions": questions});
    if let Some(own) = own_headers(record) {
        entry["headers"] = own.clone();
    }
    if !headers.is_empty() {
        entry["call-headers"] = json!(headers);
    }
    if let Some(preset) = record.get("preset_parameters") {
        entry["preset"] = preset.clone();
    }
    entry
}

fn own_headers(record: &Record) -> Option<&Json> {
    let own = record.get("mcp").and_then(|it| it.get("headers"));
    own.filter(|own| own.as_object().is_some_and(|own| !own.is_empty()))
}

/// Returns the config of the step that calls a tool of a server. Presets win; `headers` are sent after the tool's own.
pub fn call(
    record: &Record,
    tool: &str,
    (input, headers): (Map<String, Json>, &Map<String, Json>),
) -> Json {
    let mut arguments = input;
    let preset = record.get("preset_parameters").and_then(Json::as_object);
    arguments.extend(preset.cloned().unwrap_or_default());
    let mut config = json!({"adapter": adapter(record), "tool": tool, "arguments": arguments, "on-doubt": "fail"});
    let own = own_headers(record).and_then(Json::as_object);
    let headers = context::after(own, headers);
    if !headers.is_empty() {
        config["headers"] = Json::Object(headers);
    }
    config
}
