//! Ids of the agents API: a prefix that names the kind of record, and a key.
//!
//! Records are found by their key alone, so that an id with another prefix, from another version of the API, is understood.

use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;

/// The prefix of generations; the key is the id of the run.
pub const GENERATION: &str = "agt_gen_";
/// The prefix of traces; the key is the id of the run.
pub const TRACE: &str = "agt_trace_";

/// Returns a new key.
pub fn key(engine: &Engine) -> String {
    engine.new_record_id().to_string()
}

/// Returns the key in an id.
pub fn key_of(id: &str) -> &str {
    id.rsplit_once('_').map_or(id, |(_, key)| key)
}

/// Returns the id of the generation of a run.
pub fn generation(run: &RunId) -> String {
    format!("{GENERATION}{run}")
}

/// Returns the id of the trace of a run.
pub fn trace(run: &RunId) -> String {
    format!("{TRACE}{run}")
}
