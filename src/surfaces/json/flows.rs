//! Flows that are served.

use flowstone_engine::catalog::ServedFlow;
use flowstone_engine::json::to_json;
use flowstone_engine::ports::FlowVersion;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::{instant, object};

/// A flow of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct FlowSummary {
    slug: String,
    name: Option<String>,
    description: Option<String>,
    /// The file that it is read from.
    file: String,
    tags: Vec<String>,
    /// The digest of its program.
    version: String,
}

/// Everything that a caller needs to start a flow. Its code is not part of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Flow {
    slug: String,
    name: Option<String>,
    description: Option<String>,
    /// The file that it is read from.
    file: String,
    tags: Vec<String>,
    /// The digest of its program.
    version: String,
    /// The contracts of its inputs, by name.
    invocations: Option<Json>,
    schedules: Option<Json>,
}

/// Returns a flow of a list as JSON. The names of the fields are stable.
pub fn flow_summary_json(flow: &ServedFlow) -> Json {
    object(&FlowSummary {
        slug: flow.slug.clone(),
        name: text(flow, "name"),
        description: text(flow, "description"),
        file: flow.name.clone(),
        tags: flow.labels.clone(),
        version: flow.loaded.program.hash.clone(),
    })
}

/// Returns a flow as JSON. The names of the fields are stable.
pub fn flow_json(flow: &ServedFlow) -> Json {
    let definition = &flow.loaded.flow.definition;
    let part = |key: &str| definition.get(key).and_then(|value| to_json(value).ok());
    object(&Flow {
        slug: flow.slug.clone(),
        name: text(flow, "name"),
        description: text(flow, "description"),
        file: flow.name.clone(),
        tags: flow.labels.clone(),
        version: flow.loaded.program.hash.clone(),
        invocations: part("invocations"),
        schedules: part("schedules"),
    })
}

fn text(flow: &ServedFlow, key: &str) -> Option<String> {
    let value = flow.loaded.flow.definition.get(key)?;
    value.as_str().map(|it| it.to_string())
}

/// A program of a flow, and the number of its runs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The digest of the program.
    version: String,
    /// New runs start with it.
    served: bool,
    runs: u64,
    /// Runs that are not over.
    open: u64,
    first_run_at: Option<Json>,
    last_run_at: Option<Json>,
}

/// Returns a version of a flow as JSON. The names of the fields are stable.
pub fn version_json(version: &FlowVersion, is_served: bool) -> Json {
    let is_used = version.runs > 0;
    object(&Version {
        version: version.program.clone(),
        served: is_served,
        runs: version.runs,
        open: version.open,
        first_run_at: is_used.then(|| instant(version.first_ms)),
        last_run_at: is_used.then(|| instant(version.last_ms)),
    })
}
