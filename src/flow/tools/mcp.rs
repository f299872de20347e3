//! References of `:tools {:mcp [...]}`: to an adapter of the flow's `:mcp`, or to one tool of an adapter.
//!
//! The id of a tool is the adapter's namespace and the tool's name on the server: `:linear/list_issues`. The prefix of
//! the adapter may be used instead of the namespace.

use std::rc::Rc;

use crate::definition::{Flow, McpAdapter};

/// Returns the adapter that an id refers to, with the tool if it refers to one. An adapter that lists the tool takes
/// precedence over an adapter without a list.
pub fn find<'f, 'n>(flow: &'f Flow, id: &'n str) -> Option<(&'f Rc<McpAdapter>, Option<&'n str>)> {
    if let Some(adapter) = flow.mcp_adapter(id) {
        return Some((adapter, None));
    }
    let (space, tool) = id.split_once('/')?;
    let adapters = || {
        flow.mcp.iter().filter(|adapter| {
            (adapter.namespace() == space || *adapter.tool_prefix == *space) && adapter.allows(tool)
        })
    };
    let names_it = |it: &&Rc<McpAdapter>| it.allow_tools.is_some() || it.tool(tool).is_some();
    let found = adapters().find(names_it).or_else(|| adapters().next())?;
    Some((found, Some(tool)))
}

/// Returns the ids that are known without a request to a server.
pub(super) fn ids(flow: &Flow) -> impl Iterator<Item = String> {
    flow.mcp.iter().flat_map(|adapter| {
        let allowed = adapter.allow_tools.iter().flatten();
        let described = adapter.tools.iter().map(|tool| &tool.name);
        let names = allowed.chain(described.filter(|_| adapter.allow_tools.is_none()));
        let names = names.map(|tool| format!("{}/{tool}", adapter.namespace()));
        [adapter.id.to_string()].into_iter().chain(names)
    })
}

pub(super) fn hint(ids: &[String]) -> String {
    match ids {
        [] => "the flow has no `:mcp`: `:mcp [{:id :linear/issues :connection :linear-mcp :allow-tools [...]}]`".to_owned(),
        ids => {
            let ids: Vec<String> = ids.iter().map(|id| format!("`:{id}`")).collect();
            format!("there are {}", ids.join(", "))
        }
    }
}
