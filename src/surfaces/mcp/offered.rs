//! What a client may call: a tool, a prompt or a resource of a flow, or a graph agent.

use flowstone_flow::mcp_interfaces::McpInterface;
use serde_json::Value as Json;

/// The installation whose runs an offer starts.
#[derive(Debug, Clone)]
pub(super) struct InstalledOffer {
    /// Its name in the workspace of the caller.
    pub name: String,
    /// The name of the flow of its runs.
    pub flow: String,
}

impl Offered {
    /// Returns the name of the flow of its runs.
    pub(super) fn flow(&self) -> &str {
        match &self.installation {
            Some(installation) => &installation.flow,
            None => &self.slug,
        }
    }
}

/// Something that a flow or a graph agent offers, without the flow itself, which stays on its thread.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    pub slug: String,
    /// The installation that it is of, in the workspace of the caller.
    pub installation: Option<InstalledOffer>,
    /// The graph agent that it is, if it is one.
    pub agent: Option<String>,
    pub interface: McpInterface,
    /// The schema of its arguments.
    pub schema: Json,
    pub description: String,
    /// It is known to change nothing.
    pub is_reading: bool,
}
