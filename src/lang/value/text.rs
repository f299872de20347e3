//! Strings: UTF-8, counted and indexed in Unicode code points.

use std::cell::Cell;
use std::ops::Deref;

/// An immutable string. Indexing is O(1) if the whole string is ASCII.
#[derive(Debug)]
pub struct Text {
    text: Box<str>,
    ascii: bool,
    hash: Cell<Option<u32>>,
}

impl Text {
    /// Returns a string.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        let ascii = text.is_ascii();
        Self {
            text,
            ascii,
            hash: Cell::new(None),
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the number of code points.
    pub fn count(&self) -> usize {
        if self.ascii {
            self.text.len()
        } else {
            self.text.chars().count()
        }
    }

    /// Returns the code point at `idx`, counted from 0.
    pub fn char_at(&self, idx: usize) -> Option<char> {
        if self.ascii {
            self.text.as_bytes().get(idx).map(|byte| char::from(*byte))
        } else {
            self.text.chars().nth(idx)
        }
    }

    /// Returns the byte offset of the code point at `idx`; the length in bytes for the index after the last.
    pub fn offset(&self, idx: usize) -> Option<usize> {
        if self.ascii {
            return (idx <= self.text.len()).then_some(idx);
        }
        self.text
            .char_indices()
            .map(|(at, _)| at)
            .chain([self.text.len()])
            .nth(idx)
    }

    /// Tells whether the whole string is ASCII.
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    pub(crate) fn cached_hash(&self, compute: impl FnOnce(&str) -> u32) -> u32 {
        self.hash.get().unwrap_or_else(|| {
            let hash = compute(&self.text);
            self.hash.set(Some(hash));
            hash
        })
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}
