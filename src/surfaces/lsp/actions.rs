//! Code actions: the changes that would mend a finding, and all of those that need no decision.

use std::collections::HashMap;
use std::ops::Range;

use lsp_types::{CodeAction, CodeActionKind, TextEdit, WorkspaceEdit};

use super::document::Document;
use super::findings::{Fix, Found};

/// Returns the actions for a part of a text; `found` is what the last check of this text found.
pub(super) fn actions(
    document: &Document,
    found: &[Found],
    part: &Range<usize>,
) -> Vec<CodeAction> {
    let touched = found
        .iter()
        .filter(|found| found.at.start <= part.end && part.start <= found.at.end);
    let mut actions: Vec<CodeAction> = Vec::new();
    for found in touched {
        for fix in &found.fixes {
            actions.push(CodeAction {
                title: fix.title.clone(),
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![super::serve::diagnostic(document, found)]),
                edit: Some(edit(document, [fix])),
                is_preferred: Some(fix.is_certain),
                ..CodeAction::default()
            });
        }
    }
    let certain: Vec<&Fix> = certain(found);
    if certain.len() > 1 {
        actions.push(CodeAction {
            title: format!("Make all {} changes that need no decision", certain.len()),
            kind: Some(CodeActionKind::SOURCE_FIX_ALL),
            edit: Some(edit(document, certain)),
            ..CodeAction::default()
        });
    }
    actions
}

/// Returns the changes that need no decision, but for those of the same text as an earlier one.
fn certain(found: &[Found]) -> Vec<&Fix> {
    let mut taken: Vec<&Range<usize>> = Vec::new();
    let mut certain = Vec::new();
    for fix in found
        .iter()
        .filter_map(|found| found.fixes.iter().find(|fix| fix.is_certain))
    {
        let ranges = || fix.edits.iter().map(|(range, _)| range);
        let is_free = |range: &Range<usize>| {
            taken
                .iter()
                .all(|other| range.end <= other.start || other.end <= range.start)
        };
        if ranges().all(is_free) {
            taken.extend(ranges());
            certain.push(fix);
        }
    }
    certain
}

fn edit<'f>(document: &Document, fixes: impl IntoIterator<Item = &'f Fix>) -> WorkspaceEdit {
    let edits = fixes.into_iter().flat_map(|fix| &fix.edits);
    let edits = edits.map(|(range, new)| {
        TextEdit::new(
            document.lines.range(&document.text, range.clone()),
            new.clone(),
        )
    });
    WorkspaceEdit {
        changes: Some(HashMap::from([(document.uri.clone(), edits.collect())])),
        ..WorkspaceEdit::default()
    }
}
