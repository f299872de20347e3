//! Tests of the engine: flow files, codec, runs.

mod agents;
mod codec;
mod flow;
mod fuzz;
mod mcp;
mod permission;
