//! Tests of the step types.

mod files;
mod http;
mod json;
mod llm;
mod schema;
mod server;
mod settings;
mod template;
mod world;
