//! Places in source text: byte ranges, and the table that turns them into lines and columns.

use std::rc::Rc;

/// Which text of a [`Sources`] table a span lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct SourceId(pub u32);

/// A byte range of one source text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Span {
    /// The text.
    pub source: SourceId,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// The span of what has no place, such as a form that a program made.
    pub const NONE: Span = Span {
        source: SourceId(u32::MAX),
        start: 0,
        end: 0,
    };

    /// Tells whether this span lies in a text.
    pub fn is_some(self) -> bool {
        self.source.0 != u32::MAX
    }

    /// Tells whether `other` lies in this one.
    pub fn contains(self, other: Span) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }

    /// Returns this span, or `other` where this one is no place.
    pub fn or(self, other: Span) -> Span {
        if self.is_some() { self } else { other }
    }
}

/// Where a collection form was read, and where each of its items was: numbers, strings and keywords
/// hold no place of their own.
#[derive(Debug, Clone)]
pub struct Place {
    /// The place of the whole.
    pub span: Span,
    /// A span for each item, keys and values of maps alternating; may be empty.
    pub items: Box<[Span]>,
}

/// One text.
#[derive(Debug)]
pub struct Source {
    /// The file name as the user gave it, or `<eval>`.
    pub name: Rc<str>,
    /// The text itself.
    pub text: Rc<str>,
}

/// The texts that were read, by id, and the macro calls that put parts of them elsewhere.
#[derive(Debug, Default)]
pub struct Sources {
    sources: Vec<Rc<Source>>,
    expansions: Vec<Expansion>,
}

/// A text as it came out of a macro: places in it are those of the macro's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// The text of the macro.
    pub source: SourceId,
    /// The call of the macro, which may itself have come out of another one.
    pub call: Span,
    /// The macro, as it was called.
    pub macro_name: Rc<str>,
    /// What the macro made of it, printed shortly.
    pub form: Rc<str>,
}

/// How many expansions are looked through for one that is there already.
const RECENT: usize = 32;

/// The ids from here on are those of expansions.
const EXPANSIONS: u32 = 1 << 31;

/// A line and column, both counted from 1, columns in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineColumn {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl Sources {
    /// Adds a text and returns its id.
    pub fn add(&mut self, name: &str, text: &str) -> SourceId {
        let id = u32::try_from(self.sources.len()).expect("fewer than 2^32 sources");
        self.sources.push(Rc::new(Source {
            name: name.into(),
            text: text.into(),
        }));
        SourceId(id)
    }

    /// Returns the text of an id.
    pub fn get(&self, id: SourceId) -> Option<&Rc<Source>> {
        let id = self.expansion(id).map_or(id, |expansion| expansion.source);
        self.sources.get(id.0 as usize)
    }

    /// Returns the id of a text as it came out of a macro call.
    pub fn expand(&mut self, expansion: Expansion) -> SourceId {
        // A form that is evaluated again and again is expanded again, and should not take more room each time.
        let latest = self.expansions.len().saturating_sub(RECENT);
        let is_same = |known: &Expansion| *known == expansion;
        let known = self.expansions[latest..].iter().rposition(is_same);
        let idx = known.map(|idx| idx + latest).unwrap_or_else(|| {
            self.expansions.push(expansion);
            self.expansions.len() - 1
        });
        SourceId(EXPANSIONS | u32::try_from(idx).expect("fewer than 2^31 expansions"))
    }

    /// Returns the macro call that a text came out of.
    pub fn expansion(&self, id: SourceId) -> Option<&Expansion> {
        let idx = id.0.checked_sub(EXPANSIONS)?;
        self.expansions.get(idx as usize)
    }

    /// Tells whether a text is of the library.
    pub fn is_library(&self, id: SourceId) -> bool {
        self.get(id).is_some_and(|source| source.is_library())
    }

    /// Returns the text of a place.
    pub fn text(&self, span: Span) -> Option<&str> {
        let text = &self.get(span.source)?.text;
        text.get(span.start as usize..span.end as usize)
    }
}

impl Source {
    /// Tells whether this is a text of the library: these have their path in brackets for a name.
    pub fn is_library(&self) -> bool {
        self.name.starts_with('<') && self.name.ends_with(".clj>")
    }

    /// Returns line and column of a byte offset.
    pub fn line_column(&self, offset: u32) -> LineColumn {
        let end = (offset as usize).min(self.text.len());
        let before = &self.text.as_bytes()[..end];
        let line = before.iter().filter(|byte| **byte == b'\n').count();
        let start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let column = before[start..]
            .iter()
            .filter(|byte| (**byte & 0xc0) != 0x80)
            .count();
        LineColumn {
            line: line as u32 + 1,
            column: column as u32 + 1,
        }
    }

    /// Returns the text of a line, counted from 1, without its line end.
    pub fn line(&self, line: u32) -> &str {
        self.text
            .lines()
            .nth(line.saturating_sub(1) as usize)
            .unwrap_or("")
    }
}
