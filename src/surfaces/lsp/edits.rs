//! Formatting: the edits of the layout as edits of the protocol.

use std::ops::Range;

use flowstone_lang::syntax::layout::{self, Edit};
use lsp_types::TextEdit;

use super::document::Document;

/// Returns the edits that format a text; none if it is not balanced.
pub(super) fn whole(document: &Document) -> Vec<TextEdit> {
    edits(document, |_| true)
}

/// Returns the edits that format the top-level forms which a range touches.
pub(super) fn range(document: &Document, range: &Range<usize>) -> Vec<TextEdit> {
    let forms = document
        .tree
        .forms(None)
        .map(|id| document.tree.node(id).range());
    let touched: Vec<Range<usize>> = forms
        .filter(|form| form.start <= range.end && range.start <= form.end)
        .collect();
    edits(document, |edit| {
        let is_inside =
            |form: &Range<usize>| form.start <= edit.range.start && edit.range.end <= form.end;
        touched.iter().any(is_inside)
    })
}

/// Returns the edit that indents the line of an offset, after a line break was typed before it.
pub(super) fn new_line(document: &Document, offset: usize) -> Vec<TextEdit> {
    let text = &document.text;
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let blanks = text[start..].len() - text[start..].trim_start_matches([' ', '\t']).len();
    let is_in_text = document.tree.at(start).is_some_and(|id| {
        let node = document.tree.node(id);
        !node.kind.is_skipped()
            && node.open == 0
            && (node.start as usize) < start
            && start < node.end as usize
    });
    let column = layout::indentation(text, start.saturating_sub(1));
    if is_in_text || start == 0 || text[start..start + blanks] == " ".repeat(column) {
        return Vec::new();
    }
    let range = document.lines.range(text, start..start + blanks);
    vec![TextEdit::new(range, " ".repeat(column))]
}

fn edits(document: &Document, is_wanted: impl Fn(&Edit) -> bool) -> Vec<TextEdit> {
    let Ok(edits) = layout::edits(&document.text, &document.tree) else {
        return Vec::new();
    };
    let wanted = edits.into_iter().filter(is_wanted);
    let edit =
        |edit: Edit| TextEdit::new(document.lines.range(&document.text, edit.range), edit.text);
    wanted.map(edit).collect()
}
