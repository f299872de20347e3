//! The tools of the kit: one file for each, with its row `TOOL`.

pub mod annotate_trace;
pub mod commit_revision;
pub mod query_spans;
pub mod query_workflows;
pub mod read_config;
