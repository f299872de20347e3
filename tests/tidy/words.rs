//! Phrases that text in this project does not use, each with what to write instead.
//!
//! Older text has many of them. Each phrase has the number of lines that still use it, which only shrinks: a new one
//! fails here, and so does a number that is higher than what is left.

use super::tree::{files, none, text};

/// A phrase, what to write instead, and the number of lines of code, pages and messages that have it.
const PHRASES: &[(&str, &str, usize)] = &[
    ("anew", "`again`", 0),
    ("are none", "`there are no X`", 1),
    ("came to", "`resulted in`, `returned`", 0),
    ("comes to", "`results in`, `returns`", 1),
    ("gives on", "`passes on`", 1),
    ("goes on with", "`continues with`", 1),
    ("is meant", "name what it refers to", 0),
    ("is none", "`is not an X`, or `does not exist`", 1),
    ("is said", "`is stated`, or name who states it", 0),
    ("is told", "`receives`", 4),
    ("of ours", "`our X`", 0),
    ("so many", "the number, or `that many`", 4),
    ("what became of", "`the outcome of`", 2),
    ("what came of", "`the result of`", 0),
    ("whoever", "`a caller that`, or name who it is", 2),
];

#[test]
fn phrases_to_avoid_become_fewer() {
    let texts: Vec<String> = ["src", "repl", "stdlib", "flows", "docs", "benches", "tests"]
        .iter()
        .flat_map(|folder| files(folder, &[".rs", ".md", ".clj", ".edn"]))
        .filter(|path| !path.ends_with("tests/tidy/words.rs"))
        .map(|path| text(&path).to_lowercase())
        .collect();
    let mut problems = Vec::new();
    for (phrase, instead, known) in PHRASES {
        let lines = texts.iter().flat_map(|text| text.lines());
        let count = lines.filter(|line| has(line, phrase)).count();
        if count > *known {
            problems.push(format!(
                "`{phrase}` is in {count} lines, {known} before: write {instead}"
            ));
        }
        if count < *known {
            problems.push(format!(
                "`{phrase}` is in {count} lines: lower its number, which is {known}"
            ));
        }
    }
    none(problems);
}

/// Tells whether a line has a phrase as whole words.
fn has(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + phrase.len()..].chars().next();
        let is_word = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric());
        !is_word(before) && !is_word(after)
    })
}
