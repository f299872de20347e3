//! Graph agents: JSON specs of nodes and edges, compiled to ordinary flows.
//!
//! A spec is checked here ([`validate`]), compiled ([`compile`]) and run by the engine like any flow. What its runs report is a
//! projection of their journals ([`events`]). This module knows nothing of HTTP, terminals or files.

pub mod audit;
pub mod builtin;
pub mod compile;
pub mod events;
pub mod known;
pub mod models;
pub mod project;
pub mod registry;
pub mod shape;
pub mod spec;
pub mod template;
pub mod validate;

/// The codes of errors of this front, as in `docs/errors`.
pub mod codes {
    /// A graph spec is not valid.
    pub const INVALID_SPEC: &str = "E1230";
    /// The project lacks a tool or a model of a spec.
    pub const LACKING: &str = "E1231";
}

/// Returns what an author should know about a valid spec in a project: what it lacks, and what has no effect.
pub fn project_warnings(spec: &spec::GraphSpec, target: &compile::Target<'_>) -> Vec<shape::Issue> {
    let mut found = compile::lacks(spec, target);
    found.extend(compile::remarks(spec, target));
    found
}
