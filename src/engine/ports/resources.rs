//! Resources: all that has a `res://` name.

/// Resources: all that has a `res://` name.
pub trait Resources: Send + Sync {}
