//! Tests of the step types.

mod data;
mod files;
mod function;
mod http;
mod json;
mod kv;
mod llm;
mod persist;
mod project;
mod schema;
mod server;
mod settings;
mod table;
mod template;
mod wait;
mod world;
