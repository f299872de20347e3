//! Reports about a project's connections.
//!
//! Plain facts: the steps know what a connection is and how it is tested. A secret appears only by its name and its
//! source.

pub use crate::oauth::{LoginReport, LoginState};

/// A connection, or a slot of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionReport {
    /// The name that a flow uses.
    pub name: String,
    /// The origin of the connection: `flowstone.edn`, `environment`, or the slug of a flow.
    pub source: String,
    /// `http-api`, `secret` ...
    pub kind: String,
    pub backend: Option<String>,
    pub base_url: Option<String>,
    /// The connection that a slot is bound to.
    pub bound_to: Option<String>,
    pub is_optional: bool,
    pub secret: Option<SecretReport>,
    /// The state of its login, if it uses one.
    pub login: Option<LoginReport>,
    /// The reason why it cannot be used as it is.
    pub problem: Option<String>,
}

/// A secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretReport {
    pub name: String,
    /// The places that are searched for it.
    pub place: String,
    pub is_set: bool,
}

/// The result of testing a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionTest {
    pub name: String,
    pub verdict: Verdict,
    pub millis: u64,
    /// The request that was made, with the answer or the error.
    pub detail: String,
    pub code: Option<String>,
    pub hints: Vec<String>,
}

/// Whether a connection can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Works,
    Fails,
    /// It is not known how to test the connection.
    Untried,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Works => "works",
            Verdict::Fails => "fails",
            Verdict::Untried => "untried",
        }
    }
}
