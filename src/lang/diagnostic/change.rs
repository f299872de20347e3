//! The places of changes: from spans to lines and columns, and from those to the bytes of a text.
//!
//! Both refuse a change if the text is not the one that the change was made for.

use std::ops::Range;

use super::Excerpt;
use crate::value::{Change, Edit, Sources, Span};

impl Change<Span> {
    /// Returns the change with the places of its edits in the texts; `None` if a text is not as the change expects.
    /// `problem` is the place of the problem.
    pub fn place(&self, sources: &Sources, problem: Span) -> Option<Change<Excerpt>> {
        let place = |edit: &Edit| {
            let span = match edit.place.is_some() {
                true => edit.place,
                false => problem,
            };
            let source = sources.get(span.source).filter(|_| span.is_some())?;
            let there = source.text.get(span.start as usize..span.end as usize)?;
            let (before, after) = around(there, &edit.old)?;
            Some(Edit {
                place: Excerpt::find(sources, span)?,
                old: there.to_owned(),
                new: format!("{before}{}{after}", edit.new),
            })
        };
        let edits = self.edits.iter().map(place).collect::<Option<Vec<_>>>()?;
        let title = match (&self.edits[..], &edits[..]) {
            ([old], [new]) if self.title == format!("write `{}`", old.new) => {
                format!("write `{}`", new.new)
            }
            _ => self.title.clone(),
        };
        Some(Change {
            title,
            is_certain: self.is_certain,
            edits,
        })
    }
}

impl Change<Excerpt> {
    /// Returns a text after the change; `None` if the text is not the one that the change was made for. `file` is the
    /// name of the text, and edits of other texts are left out.
    pub fn apply(&self, file: &str, text: &str) -> Option<String> {
        let mut parts = Vec::new();
        for edit in self.edits.iter().filter(|edit| edit.place.file == file) {
            let range = edit.range(text)?;
            parts.push((range, &edit.new));
        }
        parts.sort_by_key(|(range, _)| range.start);
        let mut out = text.to_owned();
        for (range, new) in parts.into_iter().rev() {
            out.replace_range(range, new);
        }
        Some(out)
    }
}

impl Edit<Excerpt> {
    /// Returns the range in bytes of the old text in a text; `None` if something else is there.
    pub fn range(&self, text: &str) -> Option<Range<usize>> {
        let start = offset(text, self.place.line, self.place.column)?;
        let end = start.checked_add(self.old.len())?;
        (text.get(start..end)? == self.old).then_some(start..end)
    }
}

/// Returns the offset in bytes of a line and a column, counted from 1.
fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let (line, column) = (line.checked_sub(1)?, column.checked_sub(1)?);
    let start = match line {
        0 => 0,
        _ => text.match_indices('\n').nth(line as usize - 1)?.0 + 1,
    };
    let rest = &text[start..];
    let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.nth(column as usize).map(|at| start + at)
}

/// Returns what a literal has around a word; `None` if the text is not the word or a literal of it.
fn around<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    if text == word {
        return Some(("", ""));
    }
    match text.as_bytes().first()? {
        b':' if &text[1..] == word => Some((":", "")),
        b'"' if text.strip_prefix('"')?.strip_suffix('"')? == word => Some(("\"", "\"")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(text: &str, place: (u32, u32), (old, new): (&str, &str)) -> Option<Change<Excerpt>> {
        let mut sources = Sources::default();
        let source = sources.add("a.edn", text);
        let span = Span {
            source,
            start: place.0,
            end: place.1,
        };
        Change::replace(Span::NONE, old, new).place(&sources, span)
    }

    #[test]
    fn a_word_is_replaced_in_the_literal_that_is_there() {
        for (text, place, expected) in [
            ("{:é 1\n :ab 2}", (8, 11), "{:é 1\n :cd 2}"),
            ("[\"ab\"]", (1, 5), "[\"cd\"]"),
            ("(ab)", (1, 3), "(cd)"),
        ] {
            let change = placed(text, place, ("ab", "cd")).expect("placed");
            assert_eq!(change.apply("a.edn", text).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_change_of_another_text_is_refused() {
        assert!(placed("{:abc 1}", (1, 5), ("ab", "cd")).is_none());
        let change = placed("(ab)", (1, 3), ("ab", "cd")).expect("placed");
        assert_eq!(change.apply("a.edn", "( ab)"), None);
        assert_eq!(change.title, "write `cd`");
        let keyword = placed("{:ab 1}", (1, 4), ("ab", "cd")).expect("placed");
        assert_eq!(keyword.title, "write `:cd`");
    }
}
