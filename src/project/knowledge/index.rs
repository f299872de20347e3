//! Documents and entries of memories as documents of the search index.

use std::collections::{HashMap, HashSet};

use flowstone_model::codec::digest_bytes;
use flowstone_model::ports::{SearchDoc, SearchTarget, Stores};
use flowstone_model::search::{TEXT_MAX, cut};
use serde_json::Value as Json;

use super::{DOCUMENTS, ENTRIES, KnowledgeError, MEMORIES, key_of, text};

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Document,
    /// An entry of a memory.
    Entry,
}

/// A document, or an entry of a memory.
#[derive(Debug, Clone)]
pub struct Item {
    pub kind: Kind,
    /// The id in the index.
    pub id: String,
    pub record: Json,
    /// The memory of an entry; null for documents.
    pub memory: Json,
}

impl Item {
    /// Returns an entry of a memory.
    pub fn entry(memory: &Json, entry: Json) -> Item {
        let (memory_key, key) = (key_of(text(memory, "id")), key_of(text(&entry, "id")));
        Item {
            kind: Kind::Entry,
            id: format!("memory/{memory_key}/{key}"),
            record: entry,
            memory: memory.clone(),
        }
    }

    fn document(record: Json) -> Item {
        Item {
            kind: Kind::Document,
            id: format!("document/{}", key_of(text(&record, "id"))),
            record,
            memory: Json::Null,
        }
    }

    /// Returns the id of its project of the API.
    pub fn project(&self) -> &str {
        match self.kind {
            Kind::Document => text(&self.record, "project_id"),
            Kind::Entry => text(&self.memory, "project_id"),
        }
    }

    pub fn content(&self) -> &str {
        text(&self.record, "content")
    }

    /// Returns what models read above the content: the kind, and the path or the name.
    pub fn label(&self) -> String {
        let names = match self.kind {
            Kind::Document => ["path", "title", "filename", "id"].map(|it| text(&self.record, it)),
            Kind::Entry => ["name", "id", "", ""].map(|it| text(&self.memory, it)),
        };
        let name = names.into_iter().find(|name| !name.is_empty());
        let name: String = name
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        match self.kind {
            Kind::Document => format!("Document: {name}"),
            Kind::Entry => format!("Memory: {name}"),
        }
    }

    /// Returns the text by which it is found.
    pub fn searched(&self) -> String {
        match self.kind {
            Kind::Document => [text(&self.record, "title"), self.content()].join("\n"),
            Kind::Entry => self.content().to_owned(),
        }
    }

    fn doc(&self) -> SearchDoc {
        let title = match self.kind {
            Kind::Document => text(&self.record, "title").to_owned(),
            Kind::Entry => String::new(),
        };
        let body = cut(self.content(), TEXT_MAX).to_owned();
        SearchDoc {
            id: self.id.clone(),
            version: digest_bytes(format!("{title}\n{body}").as_bytes()),
            title,
            tags: String::new(),
            body,
            facts: Vec::new(),
        }
    }
}

/// Returns all documents and entries, oldest first.
pub(super) async fn items(stores: &Stores) -> Result<Vec<Item>, KnowledgeError> {
    let documents = DOCUMENTS.list_in(stores).await?;
    let mut items: Vec<Item> = documents.into_iter().map(Item::document).collect();
    let memories: HashMap<String, Json> = MEMORIES
        .list_in(stores)
        .await?
        .into_iter()
        .map(|memory| (key_of(text(&memory, "id")).to_owned(), memory))
        .collect();
    for entry in ENTRIES.list_in(stores).await? {
        // An entry whose memory was just deleted is left out.
        if let Some(memory) = memories.get(key_of(text(&entry, "memory_id"))) {
            items.push(Item::entry(memory, entry));
        }
    }
    Ok(items)
}

/// Indexes what has changed, and removes what is gone.
pub(super) async fn refresh(stores: &Stores, items: &[Item]) -> Result<(), KnowledgeError> {
    let known = stores.search.versions(SearchTarget::Knowledge).await?;
    let known: HashMap<String, String> = known.into_iter().collect();
    let docs: Vec<SearchDoc> = items.iter().map(Item::doc).collect();
    let ids: HashSet<&str> = docs.iter().map(|doc| doc.id.as_str()).collect();
    let gone = known.keys().filter(|id| !ids.contains(id.as_str()));
    let gone: Vec<String> = gone.cloned().collect();
    let is_new = |doc: &SearchDoc| known.get(&doc.id) != Some(&doc.version);
    let changed: Vec<SearchDoc> = docs.iter().filter(|doc| is_new(doc)).cloned().collect();
    if !changed.is_empty() || !gone.is_empty() {
        let target = SearchTarget::Knowledge;
        stores.search.put(target, changed, gone).await?;
    }
    Ok(())
}
