//! What a flow is and what a step is: definitions and their checks, schedules, permissions, and the contract that step
//! types implement.
//!
//! Execution and its journal are the engine's. Step types depend on this crate and on the model, and on nothing above.

#![forbid(unsafe_code)]

pub mod approval;
pub mod auth;
pub mod bindings;
pub mod call_flow;
pub mod doubt;
pub mod embedder;
pub mod expect;
pub mod flow;
pub mod interfaces;
mod interrupt;
pub mod mcp_interfaces;
pub mod metering;
pub mod natives;
pub mod packaged;
pub mod permission;
pub mod proof;
pub mod retention;
pub mod retry;
pub mod schedule;
pub mod server_limits;
mod session_use;
pub mod step;
pub mod tools;
pub mod workspace;

pub use flowstone_model::{
    blob, changeset, codec, diagnostic, duration, ids, jobs, json, kv, limits, ports, private,
    redact, resource, rooted, schema, server_file, table, trace, words,
};

pub use interrupt::Interrupt;
pub use session_use::SessionUse;
