//! Resources: all that has a `res://` name.

/// The tables of this part.
pub const SCHEMA: &str = "";
