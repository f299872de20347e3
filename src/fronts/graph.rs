//! Graph agents: JSON specs of nodes and edges, compiled to ordinary flows.
//!
//! A spec is checked here ([`validate`]), compiled ([`compile`]) and run by the engine like any flow. What its runs report is a
//! projection of their journals ([`events`]). This module knows nothing of HTTP, terminals or files.

pub mod access;
pub mod agents;
pub mod answers;
pub mod audit;
pub mod builtin;
pub mod compile;
pub mod error;
pub mod events;
pub mod format;
pub mod functions;
pub mod inputs;
pub mod known;
pub mod models;
mod offered;
pub mod project;
mod reads;
pub mod registry;
pub mod remarks;
pub mod runs;
pub mod servers;
pub mod shape;
pub mod spec;
pub mod template;
pub mod validate;
pub mod webhooks;

pub use format::GraphFormat;
pub use offered::missing_at_servers;

/// The codes of errors of this front, as in `docs/errors`.
pub mod codes {
    /// A graph spec is not valid.
    pub const INVALID_SPEC: &str = "E1230";
    /// The project lacks a tool or a model of a spec.
    pub const LACKING: &str = "E1231";
    /// No agent, function, server or run has that name.
    pub const MISSING: &str = "E1232";
    /// The name is taken.
    pub const TAKEN: &str = "E1233";
    /// The body of a request is not valid.
    pub const MALFORMED: &str = "E1234";
    /// Another request with the same key, or within the dedupe window, has started a run.
    pub const REUSED: &str = "E1235";
    /// The run is not paused, or the token is not that of its pause.
    pub const NOT_PAUSED: &str = "E1236";
    /// The run has ended.
    pub const OVER: &str = "E1237";
    /// The agent has reached one of its limits.
    pub const LIMITED: &str = "E1238";
    /// The caller may not use the agent.
    pub const NOT_ALLOWED: &str = "E1239";
    /// The agent is disabled.
    pub const DISABLED: &str = "E1240";
    /// A public agent needs an acknowledgement.
    pub const UNACKNOWLEDGED: &str = "E1241";
    /// An MCP server cannot be reached, or did not return a list of tools.
    pub const UNREACHABLE: &str = "E1242";
    /// A graph spec that a flow or an agent calls is not valid.
    pub const CALLED_INVALID: &str = "E1243";
    /// The project lacks a tool or a model of a graph spec that a flow or an agent calls.
    pub const CALLED_LACKING: &str = "E1244";
    /// The file to import is neither a graph spec nor a behaviour tree.
    pub const NOT_IMPORTABLE: &str = "E1245";
    /// A file is in the way of an imported flow.
    pub const IMPORT_EXISTS: &str = "E1246";
}

/// Returns warnings for the author of a valid spec in a project: what the project lacks, and what has no effect.
pub fn project_warnings(spec: &spec::GraphSpec, target: &compile::Target<'_>) -> Vec<shape::Issue> {
    let mut found = compile::lacks(spec, target);
    found.extend(remarks::remarks(spec, target));
    found
}
