//! Flows and steps: definitions and their checks, schedules, permissions, and the contract that step types implement.
//!
//! Execution and its journal belong to the engine. Step types depend only on this crate and on the model.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod approval;
pub mod auth;
pub mod bindings;
pub mod bounds;
pub mod call_flow;
pub mod call_problem;
pub mod config;
pub mod definition;
pub mod dependencies;
pub mod doubt;
pub mod embedder;
pub mod expect;
pub mod flow;
pub mod format;
mod forms;
pub mod interfaces;
mod interrupt;
pub mod libraries;
pub mod mcp_interfaces;
pub mod metering;
pub mod natives;
mod option_problem;
pub mod outline;
pub mod packaged;
pub mod permission;
pub mod proof;
pub mod retention;
pub mod retry;
pub mod schedule;
pub mod server_limits;
mod session_use;
pub mod spec;
pub mod step;
pub mod tools;
pub mod total_timeout;
pub mod workspace;

pub use flowstone_model::{
    blob, changeset, codec, diagnostic, duration, ids, installation, jobs, json, kv, limits, ports,
    private, redact, registry, resource, rooted, schema, server_file, table, text, trace,
};

pub use interrupt::Interrupt;
pub use session_use::SessionUse;
