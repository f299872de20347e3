//! Tool sets: the groups of tools that are offered to the client of a connection.

use clap::ValueEnum;

/// A group of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToolSet {
    /// Stored graph agents with `mcp_tool`.
    Agents,
    /// Flows with an interface of kind `:mcp`.
    Flows,
    /// The twelve tools that drive behaviour trees.
    Tree,
    /// Tools for inspecting the project.
    Workspace,
}

/// The groups that a client requested; if empty, agents, flows and the workspace, and trees if the project has tree files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSets(Vec<ToolSet>);

impl ToolSets {
    /// Returns these groups.
    pub(crate) fn of(sets: &[ToolSet]) -> ToolSets {
        ToolSets(sets.to_vec())
    }

    /// Reads the query of an address: `tools=tree`, or several names separated by commas.
    ///
    /// # Errors
    /// The first name that is not a tool set.
    pub(crate) fn of_query(query: Option<&str>) -> Result<ToolSets, String> {
        let pairs = query.unwrap_or_default().split('&');
        let names = pairs.filter_map(|pair| pair.strip_prefix("tools="));
        let names = names.flat_map(|names| names.split(','));
        let sets = names.map(|name| ToolSet::from_str(name, false).map_err(|_| name.to_owned()));
        sets.collect::<Result<_, _>>().map(ToolSets)
    }

    /// Tells whether a tool of a group may be called.
    pub(crate) fn has(&self, set: ToolSet) -> bool {
        self.0.is_empty() || self.0.contains(&set)
    }

    /// Tells whether the client named its groups.
    pub(crate) fn is_chosen(&self) -> bool {
        !self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_sets_are_read_from_the_query() {
        let sets = ToolSets::of_query(Some("a=1&tools=tree,flows")).expect("known sets");
        assert!(sets.is_chosen() && sets.has(ToolSet::Tree) && !sets.has(ToolSet::Workspace));
        assert_eq!(
            ToolSets::of_query(Some("tools=trees")),
            Err("trees".to_owned())
        );
        assert!(!ToolSets::of_query(None).expect("no sets").is_chosen());
    }
}
