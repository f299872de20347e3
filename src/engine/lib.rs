//! Durable runs: events, journal, replay, the ports.
//!
//! The engine drives a flow's fiber, journals what it asks for and what came of it, and answers from the
//! journal on replay. It knows nothing of SQL, HTTP, providers or terminals: those come through
//! [`ports`] and [`step::Step`].

pub mod blob;
pub mod codec;
pub mod diagnostic;
pub mod duration;
pub mod flow;
pub mod ids;
pub mod kv;
pub mod ports;
pub mod step;
pub mod table;
