//! What there is to know about a project's connections, for whoever shows it.
//!
//! Plain facts: what a connection is and how it is tried is known by the steps. A secret appears by its name and its
//! place only.

use std::path::PathBuf;

use crate::engine::Engine;
use crate::flow;

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

/// What came of trying a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionTrial {
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

/// The price of models, in US dollars for a million tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceReport {
    pub provider: String,
    pub model: String,
    pub input: f64,
    pub cached: Option<f64>,
    pub cache_write: Option<f64>,
    pub output: f64,
    /// Over so many tokens of input, other prices: input and output.
    pub long: Option<(i64, f64, f64)>,
    /// Who says so.
    pub source: String,
}

impl Engine {
    /// Returns the flow files of the project.
    pub fn flow_files(&self) -> Vec<PathBuf> {
        flow::files_of(&self.services.project_root)
    }
}
