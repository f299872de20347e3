//! `:http`: requests to servers.

pub mod client;
pub mod error;
pub mod guard;
