//! Scores of texts without an embedder: which words two texts share.

use std::collections::HashSet;

/// Words of at least this many characters count, where a text has any.
const WORD_MIN: usize = 4;

/// Returns the share of the words of a query that a text has: 0 to 1. Only words of four or more characters count, unless the query
/// has none.
pub fn coverage(query: &str, text: &str) -> f64 {
    let all = words(query);
    let long: HashSet<String> = all.iter().filter(|it| is_long(it)).cloned().collect();
    let wanted = if long.is_empty() { all } else { long };
    let found = words(text);
    share(wanted.intersection(&found).count(), wanted.len())
}

/// Returns how alike two texts are: 1 if they have the same words, 0 if they share none.
pub fn likeness(one: &str, other: &str) -> f64 {
    let (one, other) = (words(one), words(other));
    share(
        2 * one.intersection(&other).count(),
        one.len() + other.len(),
    )
}

fn is_long(word: &str) -> bool {
    word.chars().count() >= WORD_MIN
}
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

fn words(text: &str) -> HashSet<String> {
    let words = text.split(|char: char| !char.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{coverage, likeness};

    #[test]
    fn scores_are_shares_of_words() {
        for (query, text, expected) in [
            (
                "What is the refund policy?",
                "Refund policy: 30 days",
                2.0 / 3.0,
            ),
            ("refund", "REFUND!", 1.0),
            ("is it", "It rains", 0.5),
            ("", "text", 0.0),
        ] {
            assert!((coverage(query, text) - expected).abs() < 1e-9, "{query}");
        }
        assert!((likeness("likes tea", "Tea, likes.") - 1.0).abs() < 1e-9);
        assert!((likeness("likes tea", "likes coffee") - 0.5).abs() < 1e-9);
        assert!(likeness("a", "b").abs() < 1e-9);
    }
}
