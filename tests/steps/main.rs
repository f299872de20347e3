//! Tests of the step types.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]
#![allow(clippy::too_many_lines, reason = "tables of cases")]

mod agent;
mod agent_caps;
mod agent_compact;
mod agent_decisions;
mod agent_full;
mod agent_skills;
mod agent_thread;
mod changeset;
mod confined;
mod csv;
mod data;
mod db;
mod db_hostile;
mod dialects;
mod embedding_server;
mod event_stream;
mod files;
mod files_kept;
mod folder;
mod folder_merge;
#[cfg(target_os = "linux")]
mod full;
mod function;
mod fuzz;
mod git;
mod git_hostile;
mod guard;
mod hostile;
mod http;
mod http_hostile;
mod json;
mod knowledge;
mod kv;
mod llm;
mod mail;
#[cfg(unix)]
mod mcp;
mod mcp_http;
mod mcp_queries;
mod mcp_questions;
mod nested_approval;
mod net;
mod notify;
mod packaged;
mod persist;
mod project;
mod recording;
mod rows;
mod schema;
mod schemas;
mod scripted;
mod search;
mod server;
mod settings;
mod sigv4;
mod ssh;
mod table;
mod table_hostile;
mod template;
#[path = "../server.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest")]
mod test_server;
mod time;
mod wait;
mod wire;
mod wire_anthropic;
mod wire_bedrock;
mod wire_gemini;
mod wire_loop;
mod wire_nothing;
mod wire_responses;
mod wire_steps;
mod world;
