//! Flows that are served.

use flowstone_engine::catalog::{ServedFlow, ServedInterface};
use flowstone_engine::json::to_json;
use flowstone_engine::ports::FlowVersion;
use flowstone_flow::interfaces::{self, Interface, InterfaceKind};
use flowstone_flow::mcp_interfaces::{self, McpKind};
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
    /// The number of the released version that is served; null for a file.
    release: Option<i64>,
    /// The names of the inputs of its invocations.
    inputs: Vec<String>,
    /// What starts it from outside, as `http:orders`.
    interfaces: Vec<String>,
    /// The ids of its schedules.
    schedules: Vec<String>,
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
    /// The number of the released version that is served; null for a file.
    release: Option<i64>,
    /// The contracts of its inputs, by name.
    invocations: Option<Json>,
    /// The inputs of all invocations.
    inputs: Vec<FlowInput>,
    /// What starts it from outside.
    interfaces: Vec<FlowInterface>,
    schedules: Option<Json>,
}

/// An input of a flow.
#[derive(Debug, Serialize, ToSchema)]
pub struct FlowInput {
    invocation: String,
    name: String,
    r#type: String,
    required: bool,
    description: Option<String>,
}

/// A way to start a flow from outside. What it checks callers by is not part of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct FlowInterface {
    /// `http`, `webhook`, `event`, `mcp-prompt`, `mcp-resource` or `mcp-tool`.
    r#type: &'static str,
    /// Its id; of MCP, the name that clients know.
    id: String,
    invocation: Option<String>,
    method: Option<&'static str>,
    /// Paths on a server.
    addresses: Vec<String>,
    /// The event that a delivery publishes, or that starts the flow.
    event: Option<String>,
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
        release: flow.loaded.version.map(|version| version.number),
        inputs: input_names(flow),
        interfaces: interfaces(flow)
            .iter()
            .map(|it| format!("{}:{}", it.r#type, it.id))
            .collect(),
        schedules: flow
            .loaded
            .flow
            .schedules
            .iter()
            .map(|schedule| schedule.id.to_string())
            .collect(),
    })
}

/// Returns the names of the inputs of all invocations, each once.
fn input_names(flow: &ServedFlow) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for input in inputs(flow) {
        if !names.contains(&input.name) {
            names.push(input.name);
        }
    }
    names
}

fn inputs(flow: &ServedFlow) -> Vec<FlowInput> {
    let invocations = flow.loaded.flow.invocations.iter();
    let inputs = invocations.flat_map(|invocation| {
        invocation.inputs.iter().map(|input| FlowInput {
            invocation: invocation.id.to_string(),
            name: input.name.to_string(),
            r#type: input.type_.to_string(),
            required: input.required,
            description: input.description.as_deref().map(str::to_owned),
        })
    });
    inputs.collect()
}

fn interfaces(flow: &ServedFlow) -> Vec<FlowInterface> {
    let definition = &flow.loaded.flow;
    let called = interfaces::of(definition).into_iter();
    let called = called.map(|it| called_interface(&flow.slug, it));
    let offered = mcp_interfaces::of(definition).into_iter();
    let offered = offered.map(|it| FlowInterface {
        r#type: match it.kind {
            McpKind::Prompt => "mcp-prompt",
            McpKind::Resource => "mcp-resource",
            McpKind::Tool => "mcp-tool",
        },
        id: it.name,
        invocation: Some(it.invocation),
        method: None,
        addresses: vec!["/mcp".to_owned()],
        event: None,
    });
    called.chain(offered).collect()
}

/// The path of deliveries of events, which every project has.
const EVENTS: &str = "/local/events";

/// Returns an interface of a flow as JSON. The names of the fields are stable.
pub fn interface_json(served: &ServedInterface) -> Json {
    let interface = Interface::clone(&served.interface);
    object(&called_interface(&served.flow.slug, interface))
}

fn called_interface(slug: &str, interface: Interface) -> FlowInterface {
    let canonical = format!("/api/flows/{slug}/interfaces/live/{}", interface.id);
    let own = interface.path.as_ref().map(|path| format!("/http{path}"));
    let event = interface.event_path.as_ref();
    let event = event.map(|path| format!("{EVENTS}/{path}"));
    let (kind, addresses): (_, Vec<String>) = match interface.kind {
        InterfaceKind::Http => ("http", [canonical].into_iter().chain(own).collect()),
        InterfaceKind::Webhook => ("webhook", [canonical].into_iter().chain(event).collect()),
        InterfaceKind::Trigger => ("event", event.into_iter().collect()),
    };
    FlowInterface {
        r#type: kind,
        id: interface.id,
        invocation: interface.invocation,
        method: (!addresses.is_empty()).then_some(interface.method),
        addresses,
        event: interface.event,
    }
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
        release: flow.loaded.version.map(|version| version.number),
        invocations: part("invocations"),
        inputs: inputs(flow),
        interfaces: interfaces(flow),
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
