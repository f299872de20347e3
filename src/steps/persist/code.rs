//! Error codes that several kinds of `:persist` share.

/// The error code of a result that cannot be stored as the config requires.
pub(in crate::persist) const UNFIT: &str = "E0768";
