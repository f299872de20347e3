//! Tools of MCP servers that a graph spec in a file names.

use std::path::Path;

use flowstone_engine::Engine;
use flowstone_flow::flow::Flow;
use flowstone_fronts::graph::missing_at_servers;
use flowstone_fronts::graph::project;
use flowstone_fronts::graph::shape::Issue;
use flowstone_fronts::graph::spec::GraphSpec;
use flowstone_fronts::graph::validate::validate;
use flowstone_lang::value::Value;

use super::lacking_of;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;

/// Refuses to start the flow of a graph spec that names a tool which its MCP server does not have. Any other flow passes.
///
/// # Errors
/// E1231, as of a start over the routes.
pub async fn check_servers(engine: &Engine, flow: &Flow, file: &Path) -> Result<(), Report> {
    let spec = flow.definition.get("graph/spec");
    let spec = spec.and_then(Value::as_str);
    let spec = spec.and_then(|text| serde_json::from_str(text).ok());
    let Some(spec) = spec.and_then(|json| validate(&json).0) else {
        return Ok(());
    };
    let missing = missing(engine, &spec).await?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(lacking_of(file, &missing).hint(
            "name a tool that the server lists; `POST /v1/default/mcp-servers/ID/probe` lists them",
        )),
    }
}

/// Returns an issue for each tool that a spec names and its MCP server does not have.
pub(super) async fn missing(engine: &Engine, spec: &GraphSpec) -> Result<Vec<Issue>, Report> {
    let known = project::known(engine, spec).await;
    let known = known.map_err(|error| of_engine_error(&error))?;
    Ok(missing_at_servers(engine, spec, &known).await)
}
