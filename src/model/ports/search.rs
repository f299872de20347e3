//! The index that `:search` asks: documents of four targets, found by their words and by vectors.
//!
//! Resources and runs are known to the store, which indexes them in `refresh`; flows and connections are passed to it.
//! A search finds only what was indexed, so the caller refreshes the index first.

use super::PortFuture;
use crate::ids::RunId;
use crate::search::Term;

/// The index that `:search` asks.
pub trait SearchIndex: Send + Sync {
    /// Indexes at most `most` resources and runs that are new or have changed, and forgets those that were removed.
    fn refresh(&self, most: usize) -> PortFuture<'_, Refreshed>;

    /// Returns which documents of a target there are, with their versions.
    fn versions(&self, target: Target) -> PortFuture<'_, Vec<(String, String)>>;

    /// Puts documents of a target in place of those with their ids, and removes others.
    fn put(&self, target: Target, docs: Vec<SearchDoc>, gone: Vec<String>) -> PortFuture<'_, ()>;

    /// Finds by words.
    fn by_words(&self, query: WordQuery) -> PortFuture<'_, Vec<SearchHit>>;

    /// Returns texts of some targets that have no vectors of this model yet, and how many more there are. Runs that
    /// are not over have none. A model other than that of the time before takes the place of that.
    fn unembedded(
        &self,
        model: &str,
        targets: &[Target],
        limit: usize,
    ) -> PortFuture<'_, (Vec<Unembedded>, u64)>;

    /// Keeps the vectors of texts.
    fn embed(&self, model: &str, texts: Vec<Embedded>) -> PortFuture<'_, ()>;

    /// Finds by nearness to a vector, which has the length 1.
    fn by_vector(&self, query: VectorQuery) -> PortFuture<'_, Vec<SearchHit>>;

    /// Returns what is indexed under an id.
    fn indexed(&self, target: Target, id: &str) -> PortFuture<'_, Option<SearchDoc>>;

    /// Marks a resource, or everything, to be indexed again. Returns how many that are.
    fn forget(&self, uri: Option<String>) -> PortFuture<'_, u64>;
}

/// What there is to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    Resources,
    Flows,
    Runs,
    Connections,
}

impl Target {
    /// All, in the order in which results are shown.
    pub const ALL: [Target; 4] = [
        Target::Resources,
        Target::Flows,
        Target::Runs,
        Target::Connections,
    ];

    /// Returns what flows call it.
    pub fn name(self) -> &'static str {
        match self {
            Target::Resources => "resources",
            Target::Flows => "flows",
            Target::Runs => "runs",
            Target::Connections => "connections",
        }
    }

    /// Returns the target of a name.
    pub fn from_name(name: &str) -> Option<Target> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }
}

/// How indexing went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshed {
    pub indexed: u64,
    /// What is left to do.
    pub left: u64,
}

/// What is found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchDoc {
    /// A `res://` name, a flow's path, a run's id, a connection's name.
    pub id: String,
    /// Differs when it has to be indexed again.
    pub version: String,
    pub title: String,
    /// Words that count more than those of the body.
    pub tags: String,
    pub body: String,
    /// Facts shown with a hit, by name.
    pub facts: Vec<(String, String)>,
}

/// A question in words.
#[derive(Debug, Clone)]
pub struct WordQuery {
    pub target: Target,
    /// At least one of them is not excluded.
    pub terms: Vec<Term>,
    /// All terms must occur; else one is enough.
    pub all: bool,
    pub limit: usize,
    pub filter: SearchFilter,
}

/// A question by nearness.
#[derive(Debug, Clone)]
pub struct VectorQuery {
    pub targets: Vec<Target>,
    pub model: String,
    pub vector: Vec<f32>,
    /// For each target.
    pub limit: usize,
    pub filter: SearchFilter,
}

/// What is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// What the names of resources start with.
    pub prefix: Option<String>,
    /// The run that asks.
    pub except: Option<RunId>,
}

/// A document that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    pub target: Target,
    pub id: String,
    pub title: String,
    pub facts: Vec<(String, String)>,
    /// More is better.
    pub score: f64,
    /// The part of it that fits best.
    pub snippet: String,
}

/// A text without vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    /// Names it by its contents.
    pub hash: String,
    pub text: String,
}

/// The vectors of a text: one for each of its chunks, each of length 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    pub hash: String,
    pub vectors: Vec<Vec<f32>>,
}
