//! Tests of the step types.

mod files;
mod http;
mod json;
mod schema;
mod server;
mod template;
mod world;
