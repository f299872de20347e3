//! The agents API: stored agents, generations, tools and traces.
//!
//! An agent is a record, compiled to a flow with one `:agent` step ([`compile`]). A generation is a view of a run
//! ([`generations`]), and a trace is a view of its journal ([`traces`]). This module knows nothing of HTTP, terminals or files.

pub mod actions;
pub mod actors;
pub mod admission;
pub mod agent;
pub mod body;
pub mod compile;
pub mod context;
pub mod control;
pub mod credentials;
pub mod documents;
pub mod error;
pub mod generations;
pub mod guard;
pub mod ids;
pub mod keys;
pub mod knowledge;
pub mod left;
pub mod lineage;
pub mod memories;
pub mod messages;
pub mod outputs;
pub mod pauses;
pub mod pending;
pub mod permissions;
pub mod platform;
pub mod policies;
pub mod projects;
pub mod providers;
pub mod questions;
pub mod reach;
pub mod records;
pub mod rights;
pub mod running;
pub mod servers;
pub mod sessions;
pub mod sight;
pub mod sources;
pub mod stuck;
pub mod tools;
pub mod traces;
pub mod wording;

/// The codes of errors of this front, as in `docs/errors`.
pub mod codes {
    /// The body or a parameter of a request is not valid.
    pub const INVALID: &str = "E1260";
    /// No record has the id, or the caller has no access to it.
    pub const MISSING: &str = "E1261";
    /// The request contradicts what is stored.
    pub const CONFLICT: &str = "E1262";
    /// The generation does not wait for these outputs.
    pub const NOT_WAITING: &str = "E1263";
    /// A client tool cannot be called directly.
    pub const NOT_CALLABLE: &str = "E1264";
    /// A key of a tool context is not valid.
    pub const CONTEXT_KEY: &str = "E1265";
    /// The actor has an open session already.
    pub const SINGLE_SESSION: &str = "E1266";
    /// The session has expired.
    pub const EXPIRED: &str = "E1267";
    /// A generation of the session is not over.
    pub const BUSY: &str = "E1268";
    /// The agent cannot run as it is stored.
    pub const NOT_RUNNABLE: &str = "E1270";
    /// A direct call of a tool failed.
    pub const CALL_FAILED: &str = "E1272";
    /// The search of knowledge failed.
    pub const KNOWLEDGE: &str = "E1273";
    /// The policies of the caller or the boundary of an agent do not allow an action.
    pub const DENIED: &str = "E1293";
    /// The arguments of a platform action are not valid.
    pub const ARGUMENTS: &str = "E1292";
    /// The agents API refused a platform action.
    pub const ACTION: &str = "E1294";
    /// The boundary of an agent would allow more than the caller may do.
    pub const WIDER_BOUNDARY: &str = "E1320";
    /// The caller may not do this.
    pub const FORBIDDEN: &str = "E1271";
}
