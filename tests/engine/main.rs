//! Tests of the engine: flow files, codec, runs.

mod agents;
mod codec;
mod flow;
mod fuzz;
mod hostile;
mod mcp;
mod permission;
mod redact;
