//! The documents that this process wrote last, so that the file of a run in progress is neither parsed nor checked again.
//!
//! The file decides: a document is used only if the file has exactly the text that was written.

use std::sync::{Mutex, PoisonError};

use serde_json::Value as Json;

/// Maximum number of documents that are kept.
const MOST: usize = 8;
/// Maximum length of a document that is kept, in bytes.
const LONGEST: usize = 1 << 20;

/// A document of a run as it is in its file.
pub(crate) struct Document {
    pub(super) json: Json,
    /// The text of the file.
    pub(super) text: String,
    /// The place of the run's journal up to which the document has the trace, if it is known.
    pub(super) place: Option<i64>,
}

/// The documents that a process wrote last, oldest first. Empty in a new process.
#[derive(Default)]
pub struct Written(Mutex<Vec<Document>>);

impl Written {
    /// Returns an empty memory.
    pub const fn new() -> Written {
        Written(Mutex::new(Vec::new()))
    }

    /// Removes and returns the document that was written with this text.
    pub(in super::super) fn take(&self, text: &str) -> Option<Document> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|document| document.text == text)?;
        Some(kept.remove(at))
    }

    /// Keeps a document that its file has. The oldest one is forgotten if there are many.
    pub(in super::super) fn keep(&self, document: Document) {
        if document.text.len() > LONGEST {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.remove(0);
        }
        kept.push(document);
    }
}
