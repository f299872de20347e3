//! Names in a flow that are keywords: functions, templates, slots and packaged steps of the definition, slugs of other
//! flows, and included files.

use std::path::PathBuf;

use flowstone_lang::syntax::{NodeId, NodeKind};

use super::context::name;
use super::document::Document;

/// A kind of entry of the definition that keywords refer to.
struct Section {
    /// The key of the definition with the entries.
    key: &'static str,
    /// The key of an entry with its name.
    id: &'static str,
    /// The keys whose values refer to an entry.
    used_by: &'static [&'static str],
    what: &'static str,
}

const SECTIONS: &[Section] = &[
    Section {
        key: ":functions",
        id: ":id",
        used_by: &[
            "code",
            "done",
            "fn",
            "function",
            "parse",
            "prepare",
            "project-result",
            "quantity",
            "ref",
        ],
        what: "function of this flow",
    },
    Section {
        key: ":templates",
        id: ":id",
        used_by: &["template"],
        what: "template of this flow",
    },
    Section {
        key: ":requires",
        id: ":slot",
        used_by: &["connection", "slot"],
        what: "slot of this flow",
    },
    Section {
        key: ":invocations",
        id: "",
        used_by: &["invocation"],
        what: "invocation of this flow",
    },
];

/// What a keyword or string leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// The token that names an entry of the definition, and the section's keys.
    Entry {
        token: NodeId,
        section: usize,
    },
    /// Another flow of the project.
    Slug(String),
    File(PathBuf),
}

/// Returns the names that the value of a key may have, each with what it is.
pub(super) fn targets(document: &Document, key: &str) -> Vec<(String, &'static str)> {
    let sections = SECTIONS
        .iter()
        .filter(|section| section.used_by.contains(&key));
    let named = sections.flat_map(|section| {
        let tokens = entries(document, section).into_iter();
        tokens.map(|token| (format!(":{}", name(document, token)), section.what))
    });
    named.collect()
}

/// Returns the names of the steps and agents that a flow packages, each with what it is.
pub(super) fn packaged(document: &Document) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    for (key, what) in [
        (":steps", "packaged step of this flow"),
        (":agents", "agent of this flow"),
    ] {
        let section = Section {
            key,
            id: ":id",
            used_by: &[],
            what,
        };
        let tokens = entries(document, &section).into_iter();
        found.extend(tokens.map(|token| (format!(":{}", name(document, token)), what)));
    }
    found
}

/// Returns the tokens that name the entries of a section.
fn entries(document: &Document, section: &Section) -> Vec<NodeId> {
    let Some(list) = document
        .definition()
        .and_then(|map| document.entry(map, section.key))
    else {
        return Vec::new();
    };
    if section.id.is_empty() {
        return document.entries(list).map(|(key, _)| key).collect();
    }
    let maps = document
        .tree
        .forms(Some(list))
        .map(|id| document.tree.bare(id));
    maps.filter_map(|map| document.entry(map, section.id))
        .collect()
}

/// Returns what a token leads to.
pub(super) fn link(document: &Document, token: NodeId) -> Option<Link> {
    let text = document.text_of(token);
    if document.kind(token) == NodeKind::Text {
        return included(document, token).map(Link::File);
    }
    if document.kind(token) != NodeKind::Keyword {
        return None;
    }
    for (idx, section) in SECTIONS.iter().enumerate() {
        let own = entries(document, section);
        if own.contains(&token) {
            return Some(Link::Entry {
                token,
                section: idx,
            });
        }
        if is_used_by(document, token, section)
            && let Some(token) = own.into_iter().find(|own| document.text_of(*own) == text)
        {
            return Some(Link::Entry {
                token,
                section: idx,
            });
        }
    }
    let list = document.tree.parent(token)?;
    let is_call = document.tree.head(&document.text, list) == Some("flow/call-flow");
    (is_call && document.tree.index(token) == 1).then(|| Link::Slug(name(document, token)))
}

/// Returns all tokens that refer to an entry of the definition, with the one that names it.
pub(super) fn uses(document: &Document, named: NodeId, section: usize) -> Vec<NodeId> {
    let Some(section) = SECTIONS.get(section) else {
        return Vec::new();
    };
    let text = document.text_of(named);
    let same = document.tree.all().filter(|(id, node)| {
        node.kind == NodeKind::Keyword
            && document.text_of(*id) == text
            && (*id == named || is_used_by(document, *id, section))
    });
    same.map(|(id, _)| id).collect()
}

/// Tells whether a token is the value of a key that refers to a section.
fn is_used_by(document: &Document, token: NodeId, section: &Section) -> bool {
    let Some(map) = document
        .tree
        .parent(token)
        .filter(|map| document.kind(*map) == NodeKind::Map)
    else {
        return false;
    };
    let key = document
        .entries(map)
        .find(|(_, value)| *value == token)
        .map(|(key, _)| name(document, key));
    key.is_some_and(|key| section.used_by.contains(&&*key))
}

/// Returns the file of `#flow/include "path"`.
fn included(document: &Document, token: NodeId) -> Option<PathBuf> {
    let tag = document.tree.parent(token)?;
    let is_include =
        document.kind(tag) == NodeKind::Tag && document.text_of(tag).starts_with("#flow/include");
    let folder = document.path.as_ref()?.parent()?;
    is_include.then(|| folder.join(document.text_of(token).trim_matches('"')))
}
