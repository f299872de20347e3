//! A place as it is shown: one line of a text, and the part to underline.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::value::{Source, Sources, Span};
use crate::visible::visible as shown;

/// Maximum length of a line that is shown in full.
const MAX_WIDTH: usize = 120;
/// Number of characters shown before the place in a long line.
const BEFORE: usize = 50;

/// A part of one line of a text.
#[derive(Debug, Clone)]
pub struct Excerpt {
    /// The name of the text.
    pub file: String,
    /// The line number, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The line itself, without its end.
    pub text: String,
    /// The number of characters to mark; at least 1, which may be the line's end.
    pub length: usize,
    /// The line where the place ends, which may be a later one.
    pub end_line: u32,
    /// The column after its last character.
    pub end_column: u32,
}

/// The visible part of an excerpt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub text: String,
    /// The text before the marks on their line: as wide as the text before the place.
    pub indent: String,
    /// The number of marks.
    pub marks: usize,
}

impl Excerpt {
    /// Returns the excerpt of a span; `None` if the span is not in a text.
    pub fn find(sources: &Sources, span: Span) -> Option<Excerpt> {
        if !span.is_some() {
            return None;
        }
        let source = sources.get(span.source)?;
        Some(Excerpt::of(&source, span))
    }

    /// Tells whether two excerpts begin at the same place.
    pub fn is_at(&self, other: &Excerpt) -> bool {
        (&self.file, self.line, self.column) == (&other.file, other.line, other.column)
    }

    /// Returns the excerpt of a span; of its first line if it covers several.
    fn of(source: &Source, span: Span) -> Excerpt {
        let start = source.line_column(span.start);
        let end = source.line_column(span.end.max(span.start));
        let text = source.line(start.line).to_owned();
        let before = (start.column - 1) as usize;
        let rest = text.chars().count().saturating_sub(before);
        let from = span.start as usize;
        let to = (span.end as usize).clamp(from, source.text.len());
        let length = source
            .text
            .get(from..to)
            .map_or(0, |text| text.chars().count());
        Excerpt {
            file: source.name.to_string(),
            line: start.line,
            column: start.column,
            text,
            length: length.clamp(1, rest.max(1)),
            end_line: end.line,
            end_column: end.column,
        }
    }

    /// Returns the excerpt of one character, by line and column counted from 1.
    pub fn in_text(name: &str, text: &str, line: usize, column: usize) -> Excerpt {
        let line = line.max(1);
        Excerpt {
            file: name.to_owned(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column.max(1)).unwrap_or(u32::MAX),
            text: text.lines().nth(line - 1).unwrap_or("").to_owned(),
            length: 1,
            end_line: u32::try_from(line).unwrap_or(u32::MAX),
            end_column: u32::try_from(column.max(1))
                .unwrap_or(u32::MAX)
                .saturating_add(1),
        }
    }

    /// Returns the part to show: of a long line, the part around the place. Tabs stay tabs on both lines, so that they
    /// have equal width; wide characters take the same number of columns as on a terminal.
    pub(super) fn window(&self) -> Window {
        let chars: Vec<char> = self.text.chars().collect();
        let start = (self.column as usize - 1).min(chars.len());
        let (from, to) = visible(&chars, start);
        let end = (start + self.length).min(to).max(start);
        let shown = |chars: &[char]| shown(&chars.iter().collect::<String>()).into_owned();
        let mut text = shown(&chars[from..to]);
        let mut indent: String = shown(&chars[from..start]).chars().map(blank).collect();
        if from > 0 {
            text.insert(0, '…');
            indent.insert(0, ' ');
        }
        if to < chars.len() {
            text.push('…');
        }
        let marked = shown(&chars[start..end]);
        Window {
            text,
            indent,
            marks: marked.width().max(1),
        }
    }
}

/// Returns the range of characters to show of a line.
fn visible(chars: &[char], start: usize) -> (usize, usize) {
    let width = |chars: &[char]| -> usize { chars.iter().map(|char| char_width(*char)).sum() };
    if width(chars) <= MAX_WIDTH {
        return (0, chars.len());
    }
    let mut from = start;
    let mut before = 0;
    while from > 0 && before < BEFORE {
        from -= 1;
        before += char_width(chars[from]);
    }
    let mut to = from;
    let mut shown = 0;
    while to < chars.len() && shown < MAX_WIDTH {
        shown += char_width(chars[to]);
        to += 1;
    }
    (from, to)
}

fn char_width(char: char) -> usize {
    char.width().unwrap_or(1)
}

/// Returns blanks as wide as a character.
fn blank(char: char) -> &'static str {
    match char_width(char) {
        _ if char == '\t' => "\t",
        0 => "",
        1 => " ",
        _ => "  ",
    }
}
