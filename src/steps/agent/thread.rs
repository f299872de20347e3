//! `:thread` of an agent: a conversation that outlives a run, kept by key in the project's store.
//!
//! The thread is a key of the project. Each run appends one block, in one change: what it asked, the calls with their
//! results, and the answer. A block never has a call without its result, and a window drops whole blocks, so neither
//! concurrent runs nor the window part a call from its result. Reading and appending are nested `:kv` steps.

mod block;

use flowstone_flow::kv::key_problem;
use flowstone_flow::step::{Field, FieldType, NestedRequest, StepContext, StepError};
use flowstone_lang::value::Value;
use sha2::{Digest as _, Sha256};

use super::conversation::{Said, Source};
use super::notes::facts;
use super::prompt::message;
use crate::fields::Fields;
use crate::json::{items, name_text};
use block::Block;

/// The form of `:thread`.
pub(super) const FIELD: FieldType = FieldType::Either(&[
    FieldType::Name,
    FieldType::Keys(&[
        Field::required("key", FieldType::Name, "The name of the conversation."),
        Field::optional(
            "window",
            FieldType::IntIn(MIN_WINDOW, MAX_WINDOW),
            "Maximum number of earlier messages that the model gets; whole runs are left out, oldest first. Default 40.",
        )
        .or_nil(),
    ]),
]);
const KEYS: &[&str] = &["key", "window"];
const DEFAULT_WINDOW: i64 = 40;
const MIN_WINDOW: i64 = 2;
const MAX_WINDOW: i64 = 400;
/// Begins the key in the store.
const PREFIX: &str = "agent-thread:";
/// The code of the store's error about a value that is too large.
const TOO_LARGE: &str = "E0613";

/// The conversation that an agent continues.
#[derive(Debug)]
pub(super) struct Thread {
    /// The key in the store.
    key: String,
    window: usize,
    /// Names the block of this run.
    block: String,
    /// The blocks that were read.
    read: Vec<Block>,
}

impl Thread {
    /// Reads `:thread`.
    ///
    /// # Errors
    /// E1300 when it has no usable key.
    pub(super) fn read(cx: &StepContext, given: &Value) -> Result<Thread, StepError> {
        let config = match given {
            Value::Map(_) => given.clone(),
            name => facts([("key", name.clone())]),
        };
        let fields = Fields::nested(":thread", &config)?;
        fields.only(KEYS)?;
        let name = fields.get("key").and_then(name_text).unwrap_or_default();
        if name.trim().is_empty() {
            return Err(
                StepError::config("E1300", "`:thread` needs the name of a conversation")
                    .hint("such as `:thread (str \"support:\" customer-id)`"),
            );
        }
        let window = fields.int("window", MIN_WINDOW, MAX_WINDOW)?;
        Ok(Thread {
            key: stored_key(&name),
            window: usize::try_from(window.unwrap_or(DEFAULT_WINDOW)).unwrap_or(usize::MAX),
            block: format!("{}/{}", cx.pass_name(), cx.path()),
            read: Vec::new(),
        })
    }

    /// Returns the earlier messages that are in the window.
    ///
    /// # Errors
    /// The error of the nested step; E1300 when the key holds something else.
    pub(super) async fn open(&mut self, cx: &StepContext) -> Result<Vec<Said>, StepError> {
        let config = facts([
            ("operation", Value::keyword("get")),
            ("key", Value::from(self.key.as_str())),
            ("default", Value::vector([])),
            ("as-in-origin", Value::Bool(true)),
        ]);
        let found = cx
            .perform(NestedRequest::new("kv", "thread", config).of_author())
            .await?;
        let stored = found.get("value").and_then(items);
        let blocks = stored.and_then(|stored| stored.iter().map(Block::of).collect());
        let Some(blocks) = blocks else {
            let message = format!("the key `{}` does not hold a conversation", self.key);
            return Err(StepError::new("E1300", "conflict", message)
                .hint("use another `:thread`, or delete the key with a `:kv` step"));
        };
        self.read = block::visible(blocks, &self.block);
        Ok(self.in_window())
    }

    fn in_window(&self) -> Vec<Said> {
        let mut left = self.window;
        let mut first = self.read.len();
        for (idx, block) in self.read.iter().enumerate().rev() {
            let Some(rest) = left.checked_sub(block.count()) else {
                break;
            };
            (left, first) = (rest, idx);
        }
        let blocks = self.read.iter().skip(first);
        blocks.flat_map(Block::said).collect()
    }

    /// Appends what this run added to the conversation.
    ///
    /// # Errors
    /// The error of the nested step.
    pub(super) async fn keep<'a>(
        &self,
        cx: &StepContext,
        kept: impl Iterator<Item = &'a Said>,
    ) -> Result<(), StepError> {
        let until = self.read.last().map(|block| block.id.clone());
        let Some(own) = Block::new(&self.block, until, kept, self.window) else {
            return Ok(());
        };
        let config = facts([
            ("operation", Value::keyword("append")),
            ("key", Value::from(self.key.as_str())),
            ("item", own.value()),
            // A block has at least two messages.
            ("max-length", Value::from((self.window / 2).max(1))),
        ]);
        let kept = cx
            .perform(NestedRequest::new("kv", "thread-keep", config).of_author())
            .await;
        match kept {
            Err(error) if error.code == TOO_LARGE => self.keep_less(cx, &own).await,
            kept => kept.map(drop),
        }
    }

    /// Replaces a thread that has become too large by the newest half of it.
    async fn keep_less(&self, cx: &StepContext, own: &Block) -> Result<(), StepError> {
        let newer = self.read.iter().skip(self.read.len().div_ceil(2));
        let value = Value::vector(newer.chain([own]).map(Block::value));
        let config = facts([
            ("operation", Value::keyword("set")),
            ("key", Value::from(self.key.as_str())),
            ("value", value),
        ]);
        cx.perform(NestedRequest::new("kv", "thread-shorten", config).of_author())
            .await
            .map(drop)
    }
}

/// Returns the key of the store for the name of a thread: the name itself where the store can hold it.
fn stored_key(name: &str) -> String {
    let key = format!("{PREFIX}{name}");
    if key_problem(&key).is_none() && !name.starts_with("sha256:") {
        return key;
    }
    let digest = Sha256::digest(name.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}sha256:{digest}")
}

/// Returns the message with a summary of earlier messages.
pub(super) fn summary(text: &str) -> Said {
    let told = format!(
        "Summary of the conversation so far, in place of its earlier messages. It is a record, not a request:\n{text}"
    );
    Said {
        message: message("user", Value::from(told)),
        source: Source::Summary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_store_cannot_hold_gets_a_digest() {
        assert_eq!(stored_key("support:17"), "agent-thread:support:17");
        let mail = stored_key("ann@example.com");
        assert_eq!(mail.len(), "agent-thread:sha256:".len() + 64);
        assert_ne!(mail, stored_key("ann@example.org"));
        // The name of a digest cannot be confused with one.
        let digest = mail.trim_start_matches(PREFIX);
        assert_ne!(stored_key(digest), mail);
        assert!(key_problem(&stored_key(&"x".repeat(400))).is_none());
    }
}
