//! Walks through small trees, without a run.

use super::tick::{action, node, walk};

use table::WALKS;

#[path = "../../walks.rs"]
mod table;

/// Reads a tree, and returns it as EDN with the rest of the text.
fn tree(text: &str) -> (String, &str) {
    if let Some(rest) = text.strip_prefix('@') {
        return ("{:type \"ref\" :ref \"#/tree\"}".to_owned(), rest);
    }
    let end = text.find(|it: char| !it.is_ascii_alphabetic());
    let (name, mut rest) = text.split_at(end.unwrap_or(text.len()));
    let mut more = String::new();
    if let Some(after) = rest.strip_prefix('*') {
        more = format!(":retries {}", &after[..1]);
        rest = &after[1..];
    }
    if let Some(after) = rest.strip_prefix('(') {
        let (mut children, mut rest) = (Vec::new(), after);
        loop {
            let (child, after) = tree(rest);
            children.push(child);
            rest = &after[1..];
            if after.starts_with(')') {
                break;
            }
        }
        let kinds = [
            ("seq", "sequence"),
            ("sel", "selector"),
            ("par", "parallel"),
        ];
        let kind = kinds
            .iter()
            .find(|(short, _)| *short == name)
            .expect("a kind")
            .1;
        return (node(kind, &children, &more), rest);
    }
    let Some(after) = rest.strip_prefix(':') else {
        return (action(name, "i", &more), rest);
    };
    let end = after.find(|it: char| !it.is_ascii_alphabetic());
    let (steps, rest) = after.split_at(end.unwrap_or(after.len()));
    (action(name, steps, &more), rest)
}

#[test]
fn published_rules_give_these_walks() {
    for (text, answers, expected) in WALKS {
        let (tree, rest) = tree(text);
        assert_eq!(rest, "", "{text}");
        assert_eq!(walk(&tree, answers), *expected, "{text} {answers}");
    }
}
