//! Checks arguments against the schema of a tool, before it is called.

use serde_json::Value as Json;

use super::error::McpError;

/// Maximum number of reported problems.
const PROBLEMS: usize = 10;

/// Checks arguments. Errors are reported in terms that a model can act on.
pub(super) fn fit(tool: &str, schema: &Json, arguments: &Json) -> Result<(), McpError> {
    let Ok(validator) = jsonschema::validator_for(schema) else {
        // If the schema cannot be read here, the server checks the arguments.
        tracing::debug!(tool, "the input schema of an MCP tool cannot be used");
        return Ok(());
    };
    let problems: Vec<String> = validator
        .iter_errors(arguments)
        .take(PROBLEMS)
        .map(|error| {
            let place = error.instance_path().to_string();
            match place.is_empty() {
                true => error.to_string(),
                false => format!("{place}: {error}"),
            }
        })
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(McpError::BadArguments {
            tool: tool.to_owned(),
            problems,
            schema: schema.clone(),
        }),
    }
}
