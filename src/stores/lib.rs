//! The stores behind the engine's ports: SQLite, memory, and the vault of a project's secrets.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

mod edn;
mod failure;
mod kv;
mod live;
pub mod memory;
mod news;
pub mod sqlite;
pub mod vault;

pub use sqlite::{Options, Spans, open};
