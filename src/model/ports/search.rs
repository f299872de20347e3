//! The index behind `:search` and `:knowledge`: documents of five targets, found by words and by vectors.
//!
//! The store knows resources and runs and indexes them in `refresh`; flows, connections and knowledge are passed to it. A search
//! finds only indexed documents, so the caller refreshes the index first.

use super::PortFuture;
use crate::ids::RunId;
use crate::search::Term;

/// The index behind `:search`.
pub trait SearchIndex: Send + Sync {
    /// Indexes at most `most` resources and runs that are new or have changed, and drops those that were removed.
    fn refresh(&self, most: usize) -> PortFuture<'_, Refreshed>;

    /// Returns the ids of a target's documents, with their versions.
    fn versions(&self, target: Target) -> PortFuture<'_, Vec<(String, String)>>;

    /// Replaces the documents of a target with the same ids, and removes others.
    fn put(&self, target: Target, docs: Vec<SearchDoc>, gone: Vec<String>) -> PortFuture<'_, ()>;

    /// Finds documents by words.
    fn by_words(&self, query: WordQuery) -> PortFuture<'_, Vec<SearchHit>>;

    /// Returns texts of some targets that have no vectors of this model yet, and the number of further ones. Runs that
    /// are not over have no vectors. A model other than the previous one takes its place.
    fn unembedded(
        &self,
        model: &str,
        targets: &[Target],
        limit: usize,
    ) -> PortFuture<'_, (Vec<Unembedded>, u64)>;

    /// Stores the vectors of texts.
    fn embed(&self, model: &str, texts: Vec<Embedded>) -> PortFuture<'_, ()>;

    /// Finds documents by their similarity to a vector, which has the length 1.
    fn by_vector(&self, query: VectorQuery) -> PortFuture<'_, Vec<SearchHit>>;

    /// Returns the document with an id.
    fn indexed(&self, target: Target, id: &str) -> PortFuture<'_, Option<SearchDoc>>;

    /// Marks a resource, or all documents, for indexing again. Returns their number.
    fn forget(&self, uri: Option<String>) -> PortFuture<'_, u64>;
}

/// A kind of document of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    Resources,
    Flows,
    Runs,
    Connections,
    /// Documents and memories, which `:knowledge` finds and `:search` does not.
    Knowledge,
}

impl Target {
    /// The targets of `:search`, in the order in which results are shown.
    pub const ALL: [Target; 4] = [
        Target::Resources,
        Target::Flows,
        Target::Runs,
        Target::Connections,
    ];
    /// All targets of the index.
    pub const EVERY: [Target; 5] = [
        Target::Resources,
        Target::Flows,
        Target::Runs,
        Target::Connections,
        Target::Knowledge,
    ];

    /// Returns the name of the target in flows.
    pub fn name(self) -> &'static str {
        match self {
            Target::Resources => "resources",
            Target::Flows => "flows",
            Target::Runs => "runs",
            Target::Connections => "connections",
            Target::Knowledge => "knowledge",
        }
    }

    /// Returns the target of `:search` with a name.
    pub fn from_name(name: &str) -> Option<Target> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }
}

/// The outcome of a refresh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshed {
    pub indexed: u64,
    /// Number of documents that are still to be indexed.
    pub left: u64,
}

/// A document of the index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchDoc {
    /// A `res://` name, a flow's path, a run's id, a connection's name.
    pub id: String,
    /// The version of the content; the document is indexed again when it differs.
    pub version: String,
    pub title: String,
    /// Words that weigh more than those of the body.
    pub tags: String,
    pub body: String,
    /// Facts that are shown with a hit, by name.
    pub facts: Vec<(String, String)>,
}

/// A query by words.
#[derive(Debug, Clone)]
pub struct WordQuery {
    pub target: Target,
    /// The terms of the query; at least one of them is not excluded.
    pub terms: Vec<Term>,
    /// All terms must occur; otherwise one is enough.
    pub all: bool,
    pub limit: usize,
    pub filter: SearchFilter,
}

/// A query by similarity.
#[derive(Debug, Clone)]
pub struct VectorQuery {
    pub targets: Vec<Target>,
    pub model: String,
    pub vector: Vec<f32>,
    /// Maximum number of hits for each target.
    pub limit: usize,
    pub filter: SearchFilter,
}

/// A restriction of the documents that are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// Prefix of the names of resources; others are left out.
    pub prefix: Option<String>,
    /// The run that searches, which is left out.
    pub except: Option<RunId>,
    /// The ids of the documents that may be found; `None`: all.
    pub ids: Option<Vec<String>>,
}

/// A document that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    pub target: Target,
    pub id: String,
    pub title: String,
    pub facts: Vec<(String, String)>,
    /// The score of the hit; higher is better.
    pub score: f64,
    /// The part of the document that matches best.
    pub snippet: String,
}

/// A text without vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    /// The hash of the text.
    pub hash: String,
    pub text: String,
}

/// The vectors of a text: one for each of its chunks, each of length 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    pub hash: String,
    pub vectors: Vec<Vec<f32>>,
}
