//! How the parts of a list are indented, by the symbol at its head.

use super::super::{NodeId, NodeKind, Tree};

/// The rule of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// All items are aligned with the first one.
    Items,
    /// Arguments are aligned with the first argument if it is in the line of the head.
    Arguments,
    /// Everything behind the head is a body.
    Inner,
    /// Some arguments, then a body.
    Block(usize),
    /// As [`Rule::Block`]; the lists in it are methods, each with a body.
    Methods(usize),
}

impl Rule {
    /// Returns the index of the first form of the body.
    pub(super) fn body(self) -> Option<usize> {
        match self {
            Rule::Block(head) | Rule::Methods(head) => Some(head + 1),
            Rule::Items | Rule::Arguments | Rule::Inner => None,
        }
    }
}

/// The number of arguments before the body of forms that have one. Sorted by name.
const BLOCKS: &[(&str, usize)] = &[
    ("are", 2),
    ("as->", 1),
    ("binding", 1),
    ("case", 1),
    ("catch", 2),
    ("comment", 0),
    ("cond", 0),
    ("cond->", 1),
    ("cond->>", 1),
    ("condp", 2),
    ("delay", 0),
    ("do", 0),
    ("doseq", 1),
    ("dotimes", 1),
    ("doto", 1),
    ("extend", 1),
    ("finally", 0),
    ("for", 1),
    ("future", 0),
    ("if", 1),
    ("if-let", 1),
    ("if-not", 1),
    ("if-some", 1),
    ("lazy-seq", 0),
    ("let", 1),
    ("letfn", 1),
    ("locking", 1),
    ("loop", 1),
    ("ns", 1),
    ("testing", 1),
    ("try", 0),
    ("when", 1),
    ("when-first", 1),
    ("when-let", 1),
    ("when-not", 1),
    ("when-some", 1),
    ("while", 1),
    ("with-local-vars", 1),
    ("with-open", 1),
    ("with-out-str", 0),
    ("with-precision", 1),
    ("with-redefs", 1),
];

/// As [`BLOCKS`], for forms with methods.
const METHODS: &[(&str, usize)] = &[
    ("defprotocol", 1),
    ("defrecord", 2),
    ("deftype", 2),
    ("extend-protocol", 1),
    ("extend-type", 1),
    ("proxy", 2),
    ("reify", 0),
];

/// Names that begin like a definition and define nothing.
const NO_DEFINITIONS: &[&str] = &["default", "defer", "deflate"];

/// Returns the rule of a collection; `outer` is the collection that it is in, with its rule.
pub(super) fn rule(text: &str, tree: &Tree, id: NodeId, outer: Option<(NodeId, Rule)>) -> Rule {
    match tree.node(id).kind {
        NodeKind::List | NodeKind::Function => {}
        _ => return Rule::Items,
    }
    let parent = tree.parent(id);
    if parent.is_some_and(|parent| tree.node(parent).kind == NodeKind::Conditional) {
        return Rule::Items;
    }
    let Some(head) = tree.form(id, 0) else {
        return Rule::Items;
    };
    let is_method = match outer {
        Some((_, Rule::Methods(_))) => true,
        Some((outer, _)) => is_local_function(text, tree, outer),
        None => false,
    };
    match tree.node(head).kind {
        NodeKind::Symbol if is_method => Rule::Inner,
        NodeKind::Symbol => of_head(tree.text(text, head)),
        NodeKind::Keyword => Rule::Arguments,
        _ => Rule::Items,
    }
}

/// Tells whether a collection is the vector of functions of a `letfn`.
fn is_local_function(text: &str, tree: &Tree, vector: NodeId) -> bool {
    let list = tree
        .parent(vector)
        .filter(|_| tree.node(vector).kind == NodeKind::Vector);
    list.is_some_and(|list| tree.head(text, list) == Some("letfn") && tree.index(vector) == 1)
}

fn of_head(name: &str) -> Rule {
    let plain = match name.rsplit_once('/') {
        Some((_, plain)) if !plain.is_empty() => plain,
        _ => name,
    };
    let find = |table: &[(&str, usize)]| {
        let found = table.binary_search_by_key(&plain, |(name, _)| name);
        found.ok().map(|idx| table[idx].1)
    };
    if let Some(head) = find(METHODS) {
        return Rule::Methods(head);
    }
    if let Some(head) = find(BLOCKS) {
        return Rule::Block(head);
    }
    let is_definition =
        plain.starts_with("def") && !NO_DEFINITIONS.iter().any(|other| plain.starts_with(other));
    let is_inner = is_definition
        || plain.starts_with("with-")
        || matches!(plain, "bound-fn" | "fn" | "use-fixtures");
    match is_inner {
        true => Rule::Inner,
        false => Rule::Arguments,
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCKS, METHODS};

    #[test]
    fn tables_are_sorted() {
        assert!(BLOCKS.is_sorted() && METHODS.is_sorted());
    }
}
