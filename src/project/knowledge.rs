//! Knowledge: stored documents, and memories with their entries, found by meaning or by words.
//!
//! The records are rows of the project's tables. They are indexed in the project's search index under a target of their own, when
//! a question is asked, and their vectors come from the project's embedder. Scores are from 0 to 1: the cosine of the vectors, or
//! without an embedder what [`words`] says. A question sees the records of its scope only.

mod error;
mod glob;
mod index;
mod scope;
pub mod step;
pub mod words;
pub mod write;

pub use flowstone_flow::embedder::Embedder;
use flowstone_model::ports::{SearchFilter, SearchTarget, Stores, VectorQuery, WordQuery};
use flowstone_model::search::{cut, parse_query};
use serde_json::Value as Json;

pub use error::KnowledgeError;
pub use glob::matches;
pub use index::{Item, Kind};
pub use scope::{Scope, key_of};

use crate::rows::Rows;
use crate::search::embed;

/// The stored documents, by key.
pub const DOCUMENTS: Rows = Rows("flowstone_api_documents");
/// The memories, by key.
pub const MEMORIES: Rows = Rows("flowstone_api_memories");
/// The entries of memories, by `MEMORY.ENTRY`.
pub const ENTRIES: Rows = Rows("flowstone_api_memory_entries");

/// The minimum score of results, unless a question says otherwise.
pub const MIN_SCORE: f64 = 0.5;
/// The default number of results for agents, and the maximum of all.
pub const LIMIT: (usize, usize) = (5, 100);
/// Number of texts that one question has embedded at most.
const EMBEDDED_MAX: usize = 1_024;

/// A question.
#[derive(Debug, Clone)]
pub struct Question {
    pub query: String,
    pub scope: Scope,
    /// From 0 to 1.
    pub min_score: f64,
    pub limit: usize,
}

/// A record that answers a question.
#[derive(Debug, Clone)]
pub struct Piece {
    pub item: Item,
    /// From 0 to 1; higher is better.
    pub score: f64,
}

impl Piece {
    /// Returns the text as models read it: `[Document: path]` or `[Memory: name]`, and the content below.
    pub fn text(&self) -> String {
        format!("[{}]\n{}", self.item.label(), self.item.content())
    }
}

/// Finds and changes the knowledge of a project.
pub struct Library<'a> {
    pub stores: &'a Stores,
    pub embedder: Option<&'a dyn Embedder>,
    /// Which records of a scope the caller may find; `None`: all. The others are left out before anything is ranked or counted.
    pub finds: Option<&'a dyn Fn(&Item) -> bool>,
}

impl Library<'_> {
    /// Returns the records of a scope, in the order of their creation.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn items(&self, scope: &Scope) -> Result<Vec<Item>, KnowledgeError> {
        let mut items = index::items(self.stores).await?;
        items.retain(|item| self.takes(scope, item));
        Ok(items)
    }

    /// Answers a question, the best first.
    ///
    /// # Errors
    /// When the embedder does not answer, or the store cannot be read.
    pub async fn find(&self, question: &Question) -> Result<Vec<Piece>, KnowledgeError> {
        let all = index::items(self.stores).await?;
        index::refresh(self.stores, &all).await?;
        let mut items = all;
        items.retain(|item| self.takes(&question.scope, item));
        if items.is_empty() || question.query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let mut pieces = match self.embedder {
            Some(embedder) => self.by_meaning(embedder, question, &items).await?,
            None => self.by_words(question, &items).await?,
        };
        pieces.retain(|piece| piece.score >= question.min_score);
        // The sort is stable: of equals, the earlier one in the order of the index comes first.
        pieces.sort_by(|one, other| other.score.total_cmp(&one.score));
        pieces.truncate(question.limit);
        Ok(pieces)
    }

    fn takes(&self, scope: &Scope, item: &Item) -> bool {
        scope.takes(item) && self.finds.is_none_or(|finds| finds(item))
    }

    async fn by_meaning(
        &self,
        embedder: &dyn Embedder,
        question: &Question,
        items: &[Item],
    ) -> Result<Vec<Piece>, KnowledgeError> {
        let query = cut(&question.query, embed::QUERY_MAX).to_owned();
        let vector = embed::one(embedder, query).await?;
        embed::pending(
            self.stores,
            embedder,
            &[SearchTarget::Knowledge],
            EMBEDDED_MAX,
        )
        .await?;
        let nearest = VectorQuery {
            targets: vec![SearchTarget::Knowledge],
            model: embedder.model().to_owned(),
            vector,
            limit: question.limit,
            filter: filter(items),
        };
        let hits = self.stores.search.by_vector(nearest).await?;
        let pieces = hits
            .into_iter()
            .filter_map(|hit| piece(items, &hit.id, hit.score.clamp(0.0, 1.0)));
        Ok(pieces.collect())
    }

    async fn by_words(
        &self,
        question: &Question,
        items: &[Item],
    ) -> Result<Vec<Piece>, KnowledgeError> {
        let mut terms = parse_query(&question.query).terms;
        // A message of a person is no query: nothing in it leaves documents out.
        terms.iter_mut().for_each(|term| term.is_excluded = false);
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let query = WordQuery {
            target: SearchTarget::Knowledge,
            terms,
            all: false,
            limit: items.len(),
            filter: filter(items),
        };
        let hits = self.stores.search.by_words(query).await?;
        let pieces = hits.into_iter().filter_map(|hit| {
            let mut found = piece(items, &hit.id, 0.0)?;
            found.score = words::coverage(&question.query, &found.item.searched());
            Some(found)
        });
        Ok(pieces.collect())
    }
}

fn filter(items: &[Item]) -> SearchFilter {
    SearchFilter {
        ids: Some(items.iter().map(|item| item.id.clone()).collect()),
        ..SearchFilter::default()
    }
}

fn piece(items: &[Item], id: &str, score: f64) -> Option<Piece> {
    let item = items.iter().find(|item| item.id == id)?.clone();
    Some(Piece { item, score })
}

/// Returns a text of a record.
pub(crate) fn text<'a>(record: &'a Json, name: &str) -> &'a str {
    record.get(name).and_then(Json::as_str).unwrap_or_default()
}
