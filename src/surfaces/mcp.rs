//! The server side of the Model Context Protocol: flows as tools, prompts and resources, and tools for the project
//! itself.
//!
//! Two eras of the protocol are supported: sessions that begin with `initialize` (until 2025-11-25), and self-contained
//! requests (from 2026-07-28). The messages are the same over HTTP and stdio; the transports are in `http/mcp.rs` and
//! `cli/mcp.rs`.

mod agents;
mod api;
mod call;
mod completion;
mod content;
mod dispatch;
mod follow;
mod headers;
mod kit;
mod listen;
mod offered;
mod peer;
mod playbook;
mod prompts;
mod protocol;
mod questions;
mod resources;
mod sessions;
mod sets;
pub(crate) mod stdio;
mod tasks;
mod tools;
mod tree;
mod workspace;

pub(crate) use dispatch::answer;
pub(crate) use headers::{PREFIX, Repeated};
pub(crate) use peer::Request;
pub(crate) use protocol::{
    Era, Incoming, LEGACY, LISTEN, META_VERSION, RpcError, STATELESS, check_meta, codes, object_of,
    read, response,
};
pub(crate) use sessions::{Session, Sessions};
pub(crate) use sets::{ToolSet, ToolSets};
pub(crate) use tree::sweep;
