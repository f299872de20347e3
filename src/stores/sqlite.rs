//! The embedded database: one file, written by one thread.

pub mod blob;
mod edn;
mod failure;
pub mod kv;
pub mod table;
