//! SQLite behind the engine's ports.
