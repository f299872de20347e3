//! SQLite behind the engine's ports.

pub mod sqlite;
