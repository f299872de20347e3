//! How people and programs reach Flowstone: the command line and HTTP.
//!
//! Surfaces decide nothing. They turn a request into a call of the engine or the language, and the answer into text.

#![forbid(unsafe_code)]

pub mod cli;
mod hints;
pub mod http;
mod json;
mod kit;
mod lsp;
mod mcp;
pub mod metrics;
mod nrepl;
mod pages;
pub mod telemetry;
