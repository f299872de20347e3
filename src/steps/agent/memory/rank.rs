//! Ranks memories by the words of a query.

use flowstone_lang::value::Value;

use super::text_of;

/// Maximum number of words of a query.
const MOST_WORDS: usize = 8;
/// Stop words.
const EMPTY: &[&str] = &[
    "a", "about", "an", "and", "are", "at", "did", "do", "does", "for", "how", "in", "is", "it",
    "of", "on", "or", "that", "the", "this", "to", "was", "we", "were", "what", "when", "where",
    "which", "who", "why", "with",
];

/// Returns the words of a query, in lower case and without duplicates; stop words only if there are no others.
pub(super) fn words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let parts = query.split(|char: char| !char.is_alphanumeric() && !"-_./".contains(char));
    for word in parts {
        let word = word
            .trim_matches(|char: char| "-_./".contains(char))
            .to_lowercase();
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
        }
    }
    if words.iter().any(|word| !EMPTY.contains(&word.as_str())) {
        words.retain(|word| !EMPTY.contains(&word.as_str()));
    }
    words.truncate(MOST_WORDS);
    words
}

/// Sorts rows, given newest first, by the number of words that they contain, then by importance. Rows without any are
/// removed.
pub(super) fn ranked(rows: Vec<Value>, words: &[String]) -> Vec<Value> {
    if words.is_empty() {
        return rows;
    }
    let mut scored: Vec<((usize, i64), Value)> = rows
        .into_iter()
        .map(|row| ((hits(&row, words), importance(&row)), row))
        .filter(|((hits, _), _)| *hits > 0)
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, row)| row).collect()
}

fn hits(row: &Value, words: &[String]) -> usize {
    let text = format!("{}\n{}", text_of(row, "key"), text_of(row, "content")).to_lowercase();
    words.iter().filter(|word| text.contains(*word)).count()
}

fn importance(row: &Value) -> i64 {
    row.get("importance").and_then(Value::as_int).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::notes::facts;

    fn row(content: &str, importance: i64) -> Value {
        facts([
            ("content", Value::from(content)),
            ("importance", Value::Int(importance)),
        ])
    }

    #[test]
    fn words_are_found_once_and_without_marks() {
        assert_eq!(
            words("Where is the `auth` code, AUTH? (src/auth.rs)"),
            ["auth", "code", "src/auth.rs"]
        );
        assert_eq!(words("Who is it?"), ["who", "is", "it"]);
        assert!(words("?! -").is_empty());
    }

    #[test]
    fn more_words_come_first_then_importance_then_what_is_newer() {
        let rows = vec![
            row("the auth code", 0),
            row("Auth tokens", 0),
            row("tokens", 4),
            row("something else", 5),
        ];
        let found = ranked(rows, &words("auth tokens"));
        let contents: Vec<&str> = found.iter().map(|row| text_of(row, "content")).collect();
        assert_eq!(contents, ["Auth tokens", "tokens", "the auth code"]);
    }
}
