//! Messages of servers, read without a connection: by the same functions as in a call, for tests and fuzzing.

use flowstone_lang::value::Value;
use rmcp::model::{CallToolResult, ServerJsonRpcMessage, ServerResult, Tool};
use serde_json::Value as Json;

use super::answer::Answer;
use super::arguments;
use super::error::McpError;

/// Returns the value of a tool's answer, given as a server's message or as the result alone; `None` for anything else.
pub fn answer_of(json: &[u8]) -> Option<Value> {
    let result = match serde_json::from_slice(json) {
        Ok(ServerJsonRpcMessage::Response(response)) => match response.result {
            ServerResult::CallToolResult(result) => result,
            _ => return None,
        },
        _ => serde_json::from_slice::<CallToolResult>(json).ok()?,
    };
    let answer = Answer::of(result);
    let _ = answer.text();
    Some(answer.to_value())
}

/// Returns the problems of arguments according to a tool's description, both as JSON; empty if either is malformed.
pub fn misfits(tool: &[u8], given: &[u8]) -> Vec<String> {
    let tool = serde_json::from_slice::<Tool>(tool);
    let given = serde_json::from_slice::<Json>(given);
    let (Ok(tool), Ok(given)) = (tool, given) else {
        return Vec::new();
    };
    let schema = Json::Object((*tool.input_schema).clone());
    match arguments::fit(&tool.name, &schema, &given) {
        Err(McpError::BadArguments { problems, .. }) => problems,
        _ => Vec::new(),
    }
}
