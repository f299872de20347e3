//! Writing a fact to a memory: a fact that it has is skipped, one that it nearly has is appended to the entry, any other becomes an
//! entry of its own.

use flowstone_engine::feed_event::instant;
use flowstone_model::table::TableOp;
use serde_json::{Value as Json, json};

use crate::held::{Held, hold};

use super::{
    ENTRIES, Item, KnowledgeError, Library, MEMORIES, Question, Scope, key_of, text, words,
};

/// The default score from which a fact is a duplicate.
pub const DUPLICATE: f64 = 0.95;
/// The default score from which a fact is appended to an entry.
pub const UPDATE: f64 = 0.75;

/// A fact for a memory.
#[derive(Debug, Clone)]
pub struct Fact<'a> {
    /// The id of the memory.
    pub memory: &'a str,
    pub content: &'a str,
    /// Who wrote it: `manual`, `agent` or `extraction`.
    pub source: &'a str,
    /// The key of the entry, if it becomes one.
    pub key: String,
    pub now_ms: i64,
    /// Scores from which a fact is a duplicate, and from which it is appended.
    pub thresholds: (f64, f64),
}

/// What becomes of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Created,
    Updated,
    Skipped,
}

impl Action {
    pub fn name(self) -> &'static str {
        match self {
            Action::Created => "created",
            Action::Updated => "updated",
            Action::Skipped => "skipped",
        }
    }
}

/// A decided write.
#[derive(Debug, Clone)]
pub struct Written {
    pub action: Action,
    /// The entry as it is afterwards.
    pub entry: Json,
    /// The entry that the fact is appended to, as it was read.
    before: Option<Json>,
}

impl Written {
    /// Returns the change of the store; nothing for a fact that is skipped.
    pub fn op(&self) -> Option<TableOp> {
        match self.action {
            Action::Skipped => None,
            Action::Created | Action::Updated => {
                Some(ENTRIES.putting(&entry_key(&self.entry), &self.entry))
            }
        }
    }

    /// As [`Written::op`], but the store refuses to append to an entry that another process has changed since it was read.
    pub fn op_if_unchanged(&self) -> Option<TableOp> {
        match &self.before {
            Some(before) => Some(ENTRIES.replacing(&entry_key(&self.entry), (before, &self.entry))),
            None => self.op(),
        }
    }
}

/// Returns the key of an entry in its table.
pub fn entry_key(entry: &Json) -> String {
    let (memory, id) = (text(entry, "memory_id"), text(entry, "id"));
    format!("{}.{}", key_of(memory), key_of(id))
}

/// Holds the entries of a memory for a write: a fact is decided and stored before the next one is decided.
pub async fn hold_entries(memory: &str) -> Held {
    hold(format!("flowstone_entries/{}", key_of(memory))).await
}

impl Library<'_> {
    /// Decides what becomes of a fact. Nothing is stored yet.
    ///
    /// # Errors
    /// When there is no such memory, the embedder does not answer, or the store cannot be read.
    pub async fn write(&self, fact: &Fact<'_>) -> Result<Written, KnowledgeError> {
        let memory = MEMORIES.get_in(self.stores, key_of(fact.memory)).await?;
        let memory = memory.ok_or_else(|| KnowledgeError::NoMemory {
            id: fact.memory.to_owned(),
        })?;
        let nearest = self.nearest(text(&memory, "id"), fact.content).await?;
        let now = instant(fact.now_ms);
        let (duplicate, update) = fact.thresholds;
        Ok(match nearest {
            Some((item, score)) if score >= duplicate => Written {
                action: Action::Skipped,
                entry: item.record,
                before: None,
            },
            Some((item, score)) if score >= update => {
                let before = item.record;
                let mut entry = before.clone();
                let content = format!("{}\n{}", text(&entry, "content"), fact.content);
                entry["content"] = json!(content);
                entry["updated_at"] = now;
                Written {
                    action: Action::Updated,
                    entry,
                    before: Some(before),
                }
            }
            Some(_) | None => Written {
                action: Action::Created,
                entry: json!({
                    "id": format!("me_{}", fact.key),
                    "memory_id": text(&memory, "id"),
                    "content": fact.content,
                    "source": fact.source,
                    "created_at": now,
                    "updated_at": now,
                }),
                before: None,
            },
        })
    }

    /// Returns the entry of a memory that is most like a text, with its score.
    async fn nearest(
        &self,
        memory: &str,
        content: &str,
    ) -> Result<Option<(Item, f64)>, KnowledgeError> {
        let scope = Scope {
            memory_ids: vec![memory.to_owned()],
            ..Scope::default()
        };
        if self.embedder.is_none() {
            let items = self.items(&scope).await?.into_iter();
            let scored = items.map(|item| {
                let score = words::likeness(content, item.content());
                (item, score)
            });
            return Ok(scored.max_by(|one, other| one.1.total_cmp(&other.1)));
        }
        let question = Question {
            query: content.to_owned(),
            scope,
            min_score: 0.0,
            limit: 1,
        };
        let pieces = self.find(&question).await?;
        Ok(pieces.into_iter().next().map(|it| (it.item, it.score)))
    }
}
