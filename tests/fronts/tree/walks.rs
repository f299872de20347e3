//! Walks through small trees, which follow from the published rules.

use super::tick::{action, node, walk};

/// A tree, the answers, and what is asked for with the end. `seq`, `sel` and `par` are composites; `*1` is a number of retries;
/// `A` is an action with one instruction, `A:ie` one with an instruction and an evaluation, and `@` a cycle.
const WALKS: &[(&str, &str, &str)] = &[
    ("seq(A,B,C)", "+ + +", "A0 B0 C0 complete"),
    ("sel(A,B,C)", "- - +", "A0 B0 C0 complete"),
    ("sel(A,B,C)", "- - -", "A0 B0 C0 failed"),
    ("par(A,B,C)", "+ + +", "A0 B0 C0 complete"),
    ("par(A,B,C)", "+ -", "A0 B0 failed"),
    // Running offers no sibling.
    ("par(A,B,C)", "+ r r + +", "A0 B0 B0 B0 C0 complete"),
    // An action may end or begin with an evaluation.
    ("A:ie", "+ +", "A0 A1 complete"),
    ("A:ei", "-", "A0 failed"),
    ("A:iei", "+ + -", "A0 A1 A2 failed"),
    // A retry begins with the first step or child.
    ("A*1:iei", "+ - + + +", "A0 A1 A0 A1 A2 complete"),
    ("A*1", "- +", "A0 A0 complete"),
    ("sel*1(A,B)", "- - - +", "A0 B0 A0 B0 complete"),
    ("seq*1(A,B)", "+ - + +", "A0 B0 A0 B0 complete"),
    ("par*1(A,B,C)", "+ - + + +", "A0 B0 A0 B0 C0 complete"),
    ("par(A,B*1,C)", "+ - + +", "A0 B0 B0 C0 complete"),
    ("seq*1(A*1)", "- - -", "A0 A0 A0 failed"),
    (
        "seq(A,par*1(B,C),D)",
        "+ + - + + +",
        "A0 B0 C0 B0 C0 D0 complete",
    ),
    // Composites in composites.
    ("sel(seq(A,B),C)", "+ - +", "A0 B0 C0 complete"),
    ("seq(sel(A,B),C)", "- + +", "A0 B0 C0 complete"),
    ("seq(sel(A,B),C)", "- -", "A0 B0 failed"),
    ("par(seq(A,B),C)", "+ + +", "A0 B0 C0 complete"),
    ("par(seq(A,B),C)", "+ -", "A0 B0 failed"),
    ("sel(par(A,B),C)", "- +", "A0 C0 complete"),
    // A cycle fails as soon as it is ticked.
    ("par(A,@)", "", "failed"),
    ("sel(@,A)", "+", "A0 complete"),
];

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
