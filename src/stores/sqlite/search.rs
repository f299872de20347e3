//! The index that `:search` asks.

/// The tables of this part.
pub const SCHEMA: &str = "";
