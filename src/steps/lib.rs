//! The step types and the model providers, one file each.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod agent;
mod connection_facts;
pub mod connection_report;
pub mod connections;
pub mod db;
pub mod embedder;
pub mod fields;
pub mod files;
pub mod function;
pub mod guard;
pub mod http;
pub mod job;
pub mod jq;
pub mod kv;
mod literal;
pub mod llm;
pub mod mcp;
mod needs;
pub mod notify;
pub mod oauth;
mod operation;
mod own_server;
pub mod permissions;
pub mod persist;
mod providers;
mod recorded;
pub mod recording;
mod rendered;
pub mod resource;
pub mod sandbox;
pub mod secrets;
pub mod settings;
mod settings_error;
mod shown_url;
pub mod sleep;
mod socket;
pub mod sse;
pub mod ssh;
pub mod table;
pub mod template;
pub mod time;
pub mod wait;

use flowstone_flow::step::Step;
pub use flowstone_flow::{json, schema, text};
pub use http::sockets::limit_by_files;

/// Returns all step types.
pub fn all() -> Vec<Box<dyn Step>> {
    vec![
        Box::new(agent::Agent),
        Box::new(db::Db),
        Box::new(files::Files::default()),
        Box::new(function::Function),
        Box::new(http::Http),
        Box::new(job::Job),
        Box::new(jq::Jq),
        Box::new(kv::Kv),
        Box::new(llm::Llm),
        Box::new(mcp::Mcp::default()),
        Box::new(notify::Notify),
        Box::new(sleep::Sleep),
        Box::new(ssh::Ssh),
        Box::new(table::Table),
        Box::new(time::Time),
        Box::new(wait::Wait),
    ]
}
