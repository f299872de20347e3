//! Renaming of locals, of definitions and of entries of a flow. Names of the library and keys of data stay.

use std::collections::HashMap;
use std::ops::Range;

use flowstone_lang::syntax::NodeId;
use lsp_types::{Range as LspRange, TextEdit, WorkspaceEdit};

use super::document::Document;
use super::library::Library;
use super::links::Link;
use super::navigate::{Target, target, uses, uses_elsewhere};

/// Characters that end a name.
const NOT_IN_NAMES: &str = "()[]{}\";@^`~\\,/";

/// Returns the range of the name at an offset, if it can be renamed.
///
/// # Errors
/// Returns why it cannot.
pub(super) fn prepare(
    document: &Document,
    library: &Library,
    offset: usize,
) -> Result<LspRange, String> {
    let (token, _) = renamed(document, library, offset)?;
    let range = name_range(document, token);
    Ok(document.lines.range(&document.text, range))
}

/// Returns the edits that give another name to what is at an offset; `others` are the other texts of the project.
///
/// # Errors
/// Returns why it cannot be renamed.
#[expect(
    clippy::mutable_key_type,
    reason = "the protocol's map of edits has addresses as keys"
)]
pub(super) fn rename<'d>(
    document: &Document,
    library: &Library,
    (offset, new_name): (usize, &str),
    others: impl Iterator<Item = &'d Document>,
) -> Result<WorkspaceEdit, String> {
    let (token, target) = renamed(document, library, offset)?;
    let is_keyword = document.text_of(token).starts_with(':');
    let new_name = if is_keyword {
        new_name.trim_start_matches(':')
    } else {
        new_name
    };
    check_name(new_name)?;
    let edits = |document: &Document, tokens: Vec<NodeId>| -> Vec<TextEdit> {
        let ranges = tokens.into_iter().map(|token| name_range(document, token));
        let edit = |range| {
            TextEdit::new(
                document.lines.range(&document.text, range),
                new_name.to_owned(),
            )
        };
        ranges.map(edit).collect()
    };
    let mut changes = HashMap::from([(
        document.uri.clone(),
        edits(document, uses(document, &target)),
    )]);
    let namespace = document.scopes().namespace.as_deref();
    if let (Target::Definition(defined), Some(namespace)) = (&target, namespace) {
        let name = document.text_of(*defined);
        for other in others.filter(|other| other.uri != document.uri) {
            let found = uses_elsewhere(other, namespace, name);
            if !found.is_empty() {
                changes.insert(other.uri.clone(), edits(other, found));
            }
        }
    }
    Ok(WorkspaceEdit {
        changes: Some(changes),
        ..WorkspaceEdit::default()
    })
}

fn renamed(
    document: &Document,
    library: &Library,
    offset: usize,
) -> Result<(NodeId, Target), String> {
    let (token, target) =
        target(document, library, offset).ok_or("there is no name here that can be renamed")?;
    match &target {
        Target::Library(name) => return Err(format!("`{name}` belongs to the library")),
        Target::Link(Link::Slug(_) | Link::File(_)) => {
            return Err("the name of another file cannot be changed here".to_owned());
        }
        Target::Local(binding) => {
            let local = document
                .scopes()
                .locals
                .iter()
                .find(|local| local.token == *binding);
            if let Some(local) = local.filter(|local| local.is_key) {
                return Err(format!(
                    "`{0}` is a key of the data, too: write `{{new-name :{0}}}` instead of `:keys`, then rename it",
                    local.name
                ));
            }
        }
        Target::Definition(_) | Target::Link(Link::Entry { .. }) => {}
    }
    Ok((token, target))
}

/// Returns the range of the name in a token: without a colon or a namespace.
fn name_range(document: &Document, token: NodeId) -> Range<usize> {
    let range = document.tree.node(token).range();
    let text = document.text_of(token);
    let skipped = match text.rsplit_once('/') {
        Some((prefix, name)) if !prefix.is_empty() && !name.is_empty() => prefix.len() + 1,
        _ => text.len() - text.trim_start_matches(':').len(),
    };
    range.start + skipped..range.end
}

fn check_name(name: &str) -> Result<(), String> {
    let is_bad = name.is_empty()
        || name.starts_with(|first: char| first.is_ascii_digit() || "#':".contains(first))
        || name
            .chars()
            .any(|char| char.is_whitespace() || NOT_IN_NAMES.contains(char));
    match is_bad {
        true => Err(format!("`{name}` cannot be a name")),
        false => Ok(()),
    }
}
