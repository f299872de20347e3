//! Tests of the engine: flow files, codec, runs.

mod codec;
mod flow;
mod mcp;
