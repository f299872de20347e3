//! The parts that all crates of the product share: ids, codec, diagnostics, schemas, rows and operations, and the
//! ports.
//!
//! It consists of pure data and pure functions, and knows nothing of flows, of execution, or of how a store or a step
//! works. Stores depend on this crate only.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod blob;
pub mod changeset;
pub mod codec;
pub mod diagnostic;
pub mod duration;
pub mod feed_event;
pub mod form;
pub mod ids;
pub mod installation;
pub mod jobs;
pub mod json;
pub mod kv;
pub mod limits;
pub mod names;
pub mod ports;
pub mod private;
pub mod redact;
pub mod redact_changes;
pub mod registry;
pub mod resource;
pub mod resource_value;
pub mod rooted;
pub mod rules;
pub mod schema;
pub mod sealed;
pub mod search;
pub mod secret;
pub mod server_file;
pub mod size;
pub mod table;
pub mod text;
pub mod token;
pub mod trace;
pub mod triggers;
pub mod viewer;
pub mod waits;
