//! What a client may call: a tool, a prompt or a resource of a flow, or a graph agent.

use flowstone_flow::mcp_interfaces::McpInterface;
use serde_json::Value as Json;

/// Something that a flow or a graph agent offers, without the flow itself, which stays on its thread.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    pub slug: String,
    /// The graph agent that it is, if it is one.
    pub agent: Option<String>,
    pub interface: McpInterface,
    /// The schema of its arguments.
    pub schema: Json,
    pub description: String,
    /// It is known to change nothing.
    pub is_reading: bool,
}
