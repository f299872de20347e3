//! `:files`: source trees that a flow can list, read and search.

pub mod error;
pub mod git;
pub mod manifest;
pub mod objects;
pub mod path;
mod process;
pub mod search;
pub mod snapshot;
pub mod view;

pub use process::Limit;
