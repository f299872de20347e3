//! The index that `:search` asks.

/// The index that `:search` asks.
pub trait SearchIndex: Send + Sync {}
