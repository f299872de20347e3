//! One test for each row of the tables of fields: `docs/reference/coverage.md` says which.

mod agent;
mod agent_calls;
mod agent_extras;
mod agent_images;
mod agent_loop;
mod agent_memory;
mod agent_more;
mod agent_tools;
mod common;
mod files;
mod files_edits;
mod files_publish;
mod function;
mod http;
mod http_answers;
mod http_auth;
mod kv;
mod llm;
mod llm_images;
mod llm_providers;
#[cfg(unix)]
mod mcp;
mod notify;
mod packaged;
mod persist;
mod persist_table;
mod resources;
pub mod search;
mod sleep;
pub(crate) mod table;
mod table_column;
mod table_csv;
mod table_join;
mod table_ops;
mod table_query;
mod table_write;
mod templates;
