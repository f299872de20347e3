//! The branches of a program, and which of them were taken: for tests that measure what they cover.
//!
//! A session whose world has a [`Coverage`] compiles each branch of `if`, and each result of `case`, so that it is recorded when
//! it is evaluated. That covers everything that expands to them, such as `when` and `cond`.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::value::{Sources, Span};

/// The branches of all programs that were compiled with it.
#[derive(Debug, Default)]
pub struct Coverage {
    arms: RefCell<BTreeMap<Key, bool>>,
    /// The branches by their numbers in compiled code. A text that is compiled twice has its branches once.
    numbers: RefCell<Vec<Key>>,
}

/// What identifies a branch: the text, the place of its form, and which one it is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    file: String,
    line: usize,
    column: usize,
    start: u32,
    label: String,
}

/// A branch of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredArm {
    /// The name of the text.
    pub file: String,
    /// The line of the form that branches, counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// Which branch: `then`, `else`, or `case` with a number.
    pub label: String,
    /// Whether it was evaluated.
    pub is_taken: bool,
}

impl Coverage {
    /// Adds a branch and returns its number; `None` for code without a place in a text of the program.
    pub(crate) fn add(&self, sources: &Sources, span: Span, label: &str) -> Option<usize> {
        let source = sources.get(span.source)?;
        let before = source.text.get(..span.start as usize)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let key = Key {
            file: source.name.to_string(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            start: span.start,
            label: label.to_owned(),
        };
        self.arms.borrow_mut().entry(key.clone()).or_default();
        let mut numbers = self.numbers.borrow_mut();
        numbers.push(key);
        Some(numbers.len() - 1)
    }

    /// Records that a branch was taken.
    pub(crate) fn take(&self, number: usize) {
        if let Some(key) = self.numbers.borrow().get(number)
            && let Some(is_taken) = self.arms.borrow_mut().get_mut(key)
        {
            *is_taken = true;
        }
    }

    /// Returns all branches, by text and place.
    pub fn arms(&self) -> Vec<CoveredArm> {
        let arms = self.arms.borrow();
        let arms = arms.iter().map(|(key, is_taken)| CoveredArm {
            file: key.file.clone(),
            line: key.line,
            column: key.column,
            label: key.label.clone(),
            is_taken: *is_taken,
        });
        arms.collect()
    }
}
