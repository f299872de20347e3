//! Changesets of `:files`: what lies over a source tree.

/// The tables of this part.
pub const SCHEMA: &str = "";
