//! Error codes that several kinds of `:persist` share.

/// The result cannot be stored as the config asks.
pub(in crate::persist) const UNFIT: &str = "E0768";
