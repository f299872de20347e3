//! Messages whose content is the output of a tool: a call that the run performs before the model is asked.
//!
//! The call is a step of the run, so it is journaled, and a generation whose call fails has asked no model.

use flowstone_engine::Engine;
use flowstone_model::json::to_json;
use flowstone_steps::jq::Filter;
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member};
use super::codes;
use super::error::{ApiError, Status};
use super::generations::Who;
use super::records::Record;
use super::{actions, reach, servers, tools};
use crate::graph::compile::text::Lines;

const SOURCE: &[Member] = &[
    Member::optional("action", Kind::Text, "The action, for tools with several."),
    Member::optional("input", Kind::Object, "The arguments."),
    Member::optional(
        "output_path",
        Kind::Text,
        "A jq filter that selects from the output.",
    ),
    Member::required("tool_id", Kind::Text, "The tool."),
    Member::required(
        "type",
        Kind::OneOf(&["tool_output"]),
        "The kind of the content.",
    ),
];
/// The member of a content that was read.
const CALL: &str = "flowstone/call";
/// The types of steps that perform calls.
const HTTP: &str = "http";
const SERVER: &str = "mcp";
const ACTION: &str = "platform";

/// Tells whether a content is a call that was read.
pub fn is_source(content: &Json) -> bool {
    content.get(CALL).is_some()
}

/// A content that was read: as the flow of the agent takes it, and the server that the flow must know for it.
pub struct Source {
    pub content: Json,
    pub server: Option<Record>,
}

/// Reads a content of type `tool_output`. `headers` are sent after the tool's own.
///
/// # Errors
/// When it is malformed, the project lacks the tool, the caller may not call it, or the server cannot.
pub async fn read(
    engine: &Engine,
    who: &Who,
    (project, content, headers): (&str, &Json, &Map<String, Json>),
) -> Result<Source, ApiError> {
    let body = Body::read(content.clone(), SOURCE)?;
    let id = body.text("tool_id").unwrap_or_default();
    let tool = reach::tool(engine, who, (project, id)).await?;
    let filter = body.text("output_path").unwrap_or(".");
    Filter::read(filter)
        .map_err(|message| ApiError::invalid(format!("`output_path`: {message}")))?;
    let (kind, config) = call((&tool, headers), &body)?;
    Ok(Source {
        content: json!({CALL: true, "kind": kind, "config": config, "filter": filter}),
        server: servers::is_server(&tool).then_some(tool),
    })
}

/// Returns the type of the step that performs a call, and its config.
fn call(
    (tool, headers): (&Record, &Map<String, Json>),
    body: &Body,
) -> Result<(&'static str, Json), ApiError> {
    if tools::is_client(tool) || tools::is_idle(tool) {
        return Err(ApiError::new(
            Status::Unprocessable,
            ("TOOL_CALL_NOT_SUPPORTED", codes::NOT_CALLABLE),
            format!(
                "the tool `{}` has no executor that a message could use",
                tool.id()
            ),
        ));
    }
    if servers::is_server(tool) {
        return Ok((SERVER, tools::server_call(tool, body, headers)?));
    }
    if actions::is_platform(tool) {
        let (action, arguments) = tools::action_call(tool, body)?;
        // The rights are checked when the run performs the action.
        action.given(tool.project(), &Json::Object(arguments.clone()))?;
        let config = json!({"action": action.name, "arguments": arguments});
        return Ok((ACTION, config));
    }
    let config = tools::http_call(tool, body, headers)?;
    let config = to_json(&config).map_err(|error| ApiError::invalid(error.to_string()))?;
    Ok((HTTP, config))
}

/// Writes the function `message` of the flow: a message as the `:agent` step takes it, after its call.
pub(super) fn lines(out: &mut Lines) {
    out.line(11, "message (fn [{:keys [role source] :as message}]");
    out.line(21, "(if source");
    out.line(23, "(let [config (:config source)");
    out.line(29, "answer (case (:kind source)");
    out.line(
        38,
        &format!("\"{SERVER}\" (:content (flow/step :mcp :source-tool config))"),
    );
    out.line(
        38,
        &format!("\"{ACTION}\" (flow/step :platform :source-action config)"),
    );
    out.line(38, "(:body (flow/step :http :source config)))");
    // Servers of tools give data as text.
    out.line(
        29,
        "data (if (string? answer) {:json answer} {:value answer})",
    );
    out.line(
        29,
        "found (flow/step :jq :selected (assoc data :filter (:filter source)))]",
    );
    out.line(25, "{:role role :content (:text found)})");
    out.line(23, "message))]");
}
