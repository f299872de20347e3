//! Messages whose content is the output of a tool: a call that the run performs before the model is asked.
//!
//! The call is a step of the run, so it is journaled, and a generation whose call fails has asked no model.

use flowstone_engine::Engine;
use flowstone_engine::json::from_json;
use flowstone_model::json::to_json;
use flowstone_steps::jq::Filter;
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member};
use super::codes;
use super::error::{ApiError, Status};
use super::records::{Record, Records};
use super::tools;
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

/// Tells whether a content is a call that was read.
pub fn is_source(content: &Json) -> bool {
    content.get(CALL).is_some()
}

/// Reads a content of type `tool_output`, as the flow of the agent takes it. `headers` are sent after the tool's own.
///
/// # Errors
/// When it is malformed, the project lacks the tool, or the tool cannot be called by the server.
pub async fn read(
    engine: &Engine,
    project: &str,
    (content, headers): (&Json, &Map<String, Json>),
) -> Result<Json, ApiError> {
    let body = Body::read(content.clone(), SOURCE)?;
    let id = body.text("tool_id").unwrap_or_default();
    let tool = Records::Tools.get_in(engine, project, id).await?;
    let filter = body.text("output_path").unwrap_or(".");
    Filter::read(filter)
        .map_err(|message| ApiError::invalid(format!("`output_path`: {message}")))?;
    let input = body.get("input").cloned().unwrap_or_else(|| json!({}));
    let config = config((&tool, headers), &input, body.text("action"))?;
    Ok(json!({CALL: true, "config": config, "filter": filter}))
}

/// Returns the config of the step that performs a call.
fn config(
    (tool, headers): (&Record, &Map<String, Json>),
    input: &Json,
    action: Option<&str>,
) -> Result<Json, ApiError> {
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
    if action.is_some() {
        return Err(ApiError::invalid(
            "`action` is for tools with several actions; this one has none",
        ));
    }
    let entry = from_json(&tools::entry(tool, headers));
    let config = flowstone_steps::agent::http_call(&entry, &from_json(input))
        .map_err(|error| ApiError::invalid(error.message))?;
    to_json(&config).map_err(|error| ApiError::invalid(error.to_string()))
}

/// Writes the function `message` of the flow: a message as the `:agent` step takes it, after its call.
pub(super) fn lines(out: &mut Lines) {
    out.line(11, "message (fn [{:keys [role source] :as message}]");
    out.line(21, "(if source");
    out.line(
        23,
        "(let [answer (flow/step :http :source (:config source))",
    );
    out.line(
        29,
        "found (flow/step :jq :selected {:json (:body answer) :filter (:filter source)})]",
    );
    out.line(25, "{:role role :content (:text found)})");
    out.line(23, "message))]");
}
