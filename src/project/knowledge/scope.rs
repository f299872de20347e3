//! Which documents and memories a question reaches.

use serde_json::Value as Json;

use super::glob::matches;
use super::index::{Item, Kind};

/// The documents and memories that a question reaches. A list that is empty leaves nothing out, except that a scope with
/// memories only reaches no documents, and one without any reaches no memories unless `all_memories` is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// The id of the project of the API; `None`: all projects.
    pub project: Option<String>,
    pub memory_ids: Vec<String>,
    /// Patterns of tags of memories.
    pub memory_tags: Vec<String>,
    pub document_ids: Vec<String>,
    /// Beginnings of paths.
    pub document_paths: Vec<String>,
    /// Whether a scope that names no memories reaches all of them.
    pub all_memories: bool,
}

/// Returns the key in an id, which is what follows its prefix.
pub fn key_of(id: &str) -> &str {
    id.rsplit_once('_').map_or(id, |(_, key)| key)
}

impl Scope {
    /// Tells whether an item is in the scope.
    pub fn takes(&self, item: &Item) -> bool {
        let is_here = |project: &String| key_of(project) == key_of(item.project());
        if !self.project.as_ref().is_none_or(is_here) {
            return false;
        }
        match item.kind {
            Kind::Document => self.takes_document(&item.record),
            Kind::Entry => self.takes_memory(&item.memory),
        }
    }

    fn names_memories(&self) -> bool {
        !self.memory_ids.is_empty() || !self.memory_tags.is_empty()
    }

    fn names_documents(&self) -> bool {
        !self.document_ids.is_empty() || !self.document_paths.is_empty()
    }

    fn takes_document(&self, document: &Json) -> bool {
        if !self.names_documents() {
            return !self.names_memories();
        }
        let is_named = has_key(&self.document_ids, document);
        let path = super::text(document, "path");
        let mut paths = self.document_paths.iter();
        is_named || paths.any(|prefix| !path.is_empty() && path.starts_with(prefix.as_str()))
    }

    fn takes_memory(&self, memory: &Json) -> bool {
        if !self.names_memories() {
            return self.all_memories && !self.names_documents();
        }
        let tags = memory.get("tags").and_then(Json::as_array);
        let mut tags = tags.into_iter().flatten().filter_map(Json::as_str);
        let is_tagged = |tag: &str| self.memory_tags.iter().any(|it| matches(it, tag));
        has_key(&self.memory_ids, memory) || tags.any(is_tagged)
    }
}

fn has_key(ids: &[String], record: &Json) -> bool {
    let key = key_of(super::text(record, "id"));
    ids.iter().any(|id| key_of(id) == key)
}
