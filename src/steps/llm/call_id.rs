//! Ids of tool calls for providers that send none, or accept only some.
//!
//! Derived from the answer, so that the same answer gives the same ids when it is read again.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use super::call::ToolCall;

/// The prefix of every id that is made here.
pub const MADE: &str = "made_";

/// Gives an id to each call that has none, or a duplicate.
pub fn complete(answer: &str, calls: &mut [ToolCall]) {
    let mut seen = HashSet::new();
    for (at, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() || !seen.insert(call.id.clone()) {
            let of = [answer, &at.to_string(), &call.name, &call.arguments].join("\n");
            call.id = format!("{MADE}{}", letters(&of, 16));
            seen.insert(call.id.clone());
        }
    }
}

/// Returns an id of nine letters and digits: the id itself, or one derived from it.
pub fn nine(id: &str) -> String {
    match id.len() == 9 && id.bytes().all(|it| it.is_ascii_alphanumeric()) {
        true => id.to_string(),
        false => letters(id, 9),
    }
}

/// Returns an id of at most 64 letters, digits, `_` and `-`: the id itself, or one derived from it.
pub fn fitting(id: &str) -> String {
    let fits = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    match (1..=64).contains(&id.len()) && id.bytes().all(fits) {
        true => id.to_string(),
        false => letters(id, 24),
    }
}

fn letters(text: &str, count: usize) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let sum = Sha256::digest(text.as_bytes());
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    sum.iter().take(count).map(letter).collect()
}
