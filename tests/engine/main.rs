//! Tests of the engine: flow files, codec, runs.

mod agents;
mod codec;
mod flow;
mod mcp;
mod permission;
mod redact;
