//! What keeps a project's data behind the engine's ports: SQLite, and the vault of its secrets.

#![forbid(unsafe_code)]

pub mod sqlite;
pub mod vault;

pub use sqlite::{Options, open};
