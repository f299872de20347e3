//! One file for each step type, one for each model provider.

pub mod files;
pub mod http;
pub mod json;
mod near;
pub mod sse;
pub mod template;
