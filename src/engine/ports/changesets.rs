//! Changesets of `:files`: what lies over a source tree.

/// Changesets of `:files`: what lies over a source tree.
pub trait Changesets: Send + Sync {}
