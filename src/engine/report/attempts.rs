//! The attempts at a step, as far as its journal entries tell of them, and when each began.

use std::collections::HashMap;

use flowstone_lang::value::Value;

use crate::codec;
use crate::ports::{Entry, EntryKind};

/// One attempt at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Counted from 1.
    pub number: u32,
    pub started_ms: i64,
    pub ended_ms: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
    /// When the next one is due.
    pub again_ms: Option<i64>,
}

/// Adds what an entry says.
pub(super) fn note(attempts: &mut Vec<Attempt>, entry: &Entry, began_ms: i64) {
    match entry.kind {
        EntryKind::Begin | EntryKind::Intent => begin(attempts, entry.at_ms),
        EntryKind::Timer => {
            let note = codec::decode(&entry.payload).unwrap_or(Value::Nil);
            if note.get("kind") != Some(&Value::keyword("retry")) {
                return;
            }
            let message = note.get("message").and_then(Value::as_str);
            let attempt = open(attempts, began_ms);
            attempt.ended_ms = Some(entry.at_ms);
            attempt.error = message.map(str::to_owned);
            attempt.again_ms = note.get("due").and_then(Value::as_int);
        }
        EntryKind::Result | EntryKind::Error | EntryKind::Draft => {
            let attempt = open(attempts, began_ms);
            attempt.ended_ms = Some(entry.at_ms);
            if entry.kind == EntryKind::Error
                && let Ok(Value::Exception(exception)) = codec::decode(&entry.payload)
            {
                attempt.error = Some(exception.display_text().to_owned());
            }
        }
        EntryKind::Signal
        | EntryKind::Cost
        | EntryKind::Note
        | EntryKind::Log
        | EntryKind::Reuse => {}
    }
}

fn begin(attempts: &mut Vec<Attempt>, started_ms: i64) {
    let number = u32::try_from(attempts.len()).unwrap_or(u32::MAX) + 1;
    attempts.push(Attempt {
        number,
        started_ms,
        ended_ms: None,
        error: None,
        again_ms: None,
    });
}

/// Returns the attempt that is under way: of what changes nothing outside, the beginning has no entry of its own.
fn open(attempts: &mut Vec<Attempt>, began_ms: i64) -> &mut Attempt {
    let again_ms = attempts.last().and_then(|last| last.again_ms);
    let is_over = attempts
        .last()
        .is_none_or(|last| last.ended_ms.is_some() && last.again_ms.is_some());
    if is_over {
        begin(attempts, again_ms.unwrap_or(began_ms));
    }
    let last = attempts.len() - 1;
    &mut attempts[last]
}

/// When the steps without an intent began: not before the last thing that is known of their branch.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    branches: HashMap<String, i64>,
}

impl Begun {
    /// Returns when a step at a path began at the earliest, which is what is shown.
    pub(crate) fn at(&self, path: &str, created_ms: i64) -> i64 {
        let mut branch = branch(path);
        loop {
            if let Some(at) = self.branches.get(branch) {
                return *at;
            }
            if branch.is_empty() {
                return created_ms;
            }
            branch = self::branch(branch);
        }
    }

    /// Notes that something happened at a path.
    pub(crate) fn note(&mut self, path: &str, at_ms: i64) {
        let branch = branch(path);
        match self.branches.get_mut(branch) {
            Some(at) => *at = at_ms,
            None => {
                self.branches.insert(branch.to_owned(), at_ms);
            }
        }
    }
}

/// Returns the branch of a path; empty for the main branch.
pub(super) fn branch(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(branch, _)| branch)
}
