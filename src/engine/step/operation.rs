//! The operations of a step type that has several, as data: checks, help, reference pages and the JSON schemas
//! of tools are derived from it.

use super::Effect;

/// Which operations there are, and the key that names the one that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Operations {
    /// Without its colon, such as `op`.
    pub key: &'static str,
    /// Sorted by name.
    pub all: &'static [Operation],
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Without its colon.
    pub name: &'static str,
    /// First line: one sentence in the third person.
    pub doc: &'static str,
    /// The fields it needs.
    pub needs: &'static [&'static str],
    /// The fields it may have.
    pub takes: &'static [&'static str],
    /// What it gives, as a Malli schema in EDN text.
    pub gives: &'static str,
    pub effect: Effect,
    /// Whether the step type, as a tool of an agent, has it; others are wrapped in a packaged step. This is the list that
    /// the tool is made of.
    pub for_agents: bool,
}

impl Operations {
    /// Returns the operation of a name.
    pub fn find(&self, name: &str) -> Option<&'static Operation> {
        self.all.iter().find(|operation| operation.name == name)
    }
}
