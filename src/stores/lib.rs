//! SQLite behind the engine's ports.

pub mod sqlite;

pub use sqlite::{Options, open};
