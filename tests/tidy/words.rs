//! Phrases that text in this project does not use, each with what to write instead.

use super::tree::{files, none, text};

/// Phrases that no line of code, page or message has, and what to write instead.
const PHRASES: &[(&str, &str)] = &[
    ("anew", "`again`"),
    ("are none", "`there are no X`"),
    ("came to", "`resulted in`, `returned`"),
    ("comes to", "`results in`, `returns`"),
    ("gives on", "`passes on`"),
    ("goes on with", "`continues with`"),
    ("is meant", "name what it refers to"),
    ("is none", "`is not an X`, or `does not exist`"),
    ("is said", "`is stated`, or name who states it"),
    ("is told", "`receives`"),
    ("of ours", "`our X`"),
    ("so many", "the number, or `that many`"),
    ("what became of", "`the outcome of`"),
    ("what came of", "`the result of`"),
    ("whoever", "`a caller that`, or name who it is"),
];

#[test]
fn phrases_to_avoid_are_not_used() {
    let paths = ["src", "repl", "stdlib", "flows", "docs", "benches", "tests"]
        .iter()
        .flat_map(|folder| files(folder, &[".rs", ".md", ".clj", ".edn"]))
        .filter(|path| !path.ends_with("tests/tidy/words.rs"));
    let mut problems = Vec::new();
    for path in paths {
        let text = text(&path).to_lowercase();
        for (idx, line) in text.lines().enumerate() {
            for (phrase, instead) in PHRASES.iter().filter(|(phrase, _)| has(line, phrase)) {
                let place = format!("{}:{}", path.display(), idx + 1);
                problems.push(format!("{place}: `{phrase}`; write {instead}"));
            }
        }
    }
    none(problems);
}

/// Tells whether a line has a phrase as whole words.
fn has(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + phrase.len()..].chars().next();
        let is_word =
            |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '-');
        !is_word(before) && !is_word(after)
    })
}
