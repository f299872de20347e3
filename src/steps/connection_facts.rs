//! Reports about a project's connections.
//!
//! Plain facts: what a connection is and how it is tried is known by the steps. A secret appears by its name and its
//! place only.

/// A connection, or a slot of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionReport {
    /// The name that a flow uses.
    pub name: String,
    /// Who says that it exists: `flowstone.edn`, `environment`, or the slug of a flow.
    pub source: String,
    /// `http-api`, `secret` ...
    pub kind: String,
    pub backend: Option<String>,
    pub base_url: Option<String>,
    /// The connection that a slot is bound to.
    pub bound_to: Option<String>,
    pub is_optional: bool,
    pub secret: Option<SecretReport>,
    /// Why it cannot be used as it is.
    pub problem: Option<String>,
}

/// A secret, without what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretReport {
    pub name: String,
    /// Where it is looked for.
    pub place: String,
    pub is_set: bool,
}

/// The result of testing a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionTest {
    pub name: String,
    pub verdict: Verdict,
    pub millis: u64,
    /// What was asked, and what it answered or why it did not.
    pub detail: String,
    pub code: Option<String>,
    pub hints: Vec<String>,
}

/// Whether a connection can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Works,
    Fails,
    /// Nothing is known of how to try it.
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
