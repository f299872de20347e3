//! Places in source text: byte ranges, and the table that turns them into lines and columns.

use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};

use super::FixedState;

/// The id of the text in a [`Sources`] table that a span belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct SourceId(pub u32);

/// A byte range of one source text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Span {
    /// The id of the source text.
    pub source: SourceId,
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The span of a form without a place, such as one made by a program.
    pub const NONE: Span = Span {
        source: SourceId(u32::MAX),
        start: 0,
        end: 0,
    };

    /// Tells whether this span has a place in a text.
    pub fn is_some(self) -> bool {
        self.source.0 != u32::MAX
    }

    /// Tells whether `other` lies within this span.
    pub fn contains(self, other: Span) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }

    /// Returns this span, or `other` if this span has no place.
    pub fn or(self, other: Span) -> Span {
        if self.is_some() { self } else { other }
    }
}

/// Where a collection form was read, and where each of its items was: numbers, strings and keywords hold no place
/// themselves.
#[derive(Debug, Clone)]
pub struct Place {
    /// The place of the whole form.
    pub span: Span,
    /// A span for each item, keys and values of maps alternating; may be empty.
    pub items: Box<[Span]>,
}

/// A source text with its name.
#[derive(Debug)]
pub struct Source {
    /// The file name as the user gave it, or `<eval>`.
    pub name: Rc<str>,
    /// The text itself.
    pub text: Rc<str>,
}

/// Number of texts that are kept whether or not code refers to them; below, the maximum of their total bytes.
const MAX_NEWEST: usize = 1000;
const MAX_NEWEST_BYTES: usize = 16 << 20;

/// The texts that were read, by id, and the macro calls that moved parts of them elsewhere: those that code refers to,
/// which keeps them alive, and the most recent of the others. If a text is gone, errors show no place.
#[derive(Debug, Default)]
pub struct Sources {
    sources: HashMap<u32, Weak<Source>, FixedState>,
    next: u32,
    newest: VecDeque<Rc<Source>>,
    newest_bytes: usize,
    /// Number of entries at which those of dropped texts are removed.
    limit: usize,
    expansions: HashMap<u32, Weak<Expansion>, FixedState>,
    next_expansion: u32,
    newest_expansions: VecDeque<Rc<Expansion>>,
    expansion_limit: usize,
}

/// A text produced by a macro: places in it are those of the macro's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// The text of the macro.
    pub source: SourceId,
    /// The call of the macro, which may itself be the result of another macro call.
    pub call: Span,
    /// The macro, as it was called.
    pub macro_name: Rc<str>,
    /// The macro's result, printed in short form.
    pub form: Rc<str>,
}

/// A text or a macro call that code refers to.
#[derive(Debug)]
pub(crate) enum HeldText {
    Source(#[expect(dead_code, reason = "held so that it stays")] Rc<Source>),
    Expansion(#[expect(dead_code, reason = "held so that it stays")] Rc<Expansion>),
}

/// Number of recent expansions that are searched for an identical one.
const RECENT: usize = 32;

/// The first id of an expansion.
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
        // When the small ids wrap around, their first texts are long gone.
        let id = self.next;
        self.next = (id + 1) % EXPANSIONS;
        let source = Rc::new(Source {
            name: name.into(),
            text: text.into(),
        });
        self.sources.insert(id, Rc::downgrade(&source));
        self.newest_bytes += text.len();
        self.newest.push_back(source);
        while self.newest.len() > MAX_NEWEST
            || self.newest_bytes > MAX_NEWEST_BYTES && self.newest.len() > 1
        {
            let oldest = self.newest.pop_front();
            self.newest_bytes -= oldest.map_or(0, |source| source.text.len());
        }
        if self.sources.len() > self.limit {
            self.sources.retain(|_, source| source.strong_count() > 0);
            self.limit = (self.sources.len() * 2).max(2 * MAX_NEWEST);
        }
        SourceId(id)
    }

    /// Returns all texts in the order in which they were read.
    pub fn all(&self) -> Vec<Rc<Source>> {
        let mut all: Vec<(u32, Rc<Source>)> = self
            .sources
            .iter()
            .filter_map(|(id, source)| Some((*id, source.upgrade()?)))
            .collect();
        all.sort_unstable_by_key(|entry| entry.0);
        all.into_iter().map(|entry| entry.1).collect()
    }

    /// Returns the text of an id.
    pub fn get(&self, id: SourceId) -> Option<Rc<Source>> {
        let id = self.expansion(id).map_or(id, |expansion| expansion.source);
        self.sources.get(&id.0)?.upgrade()
    }

    /// Adds the result of a macro call and returns its id.
    pub fn expand(&mut self, expansion: Expansion) -> SourceId {
        // A form that is evaluated repeatedly is expanded each time, and should not take more memory each time.
        let latest = self.newest_expansions.iter().rev().take(RECENT);
        let is_same = |known: &Rc<Expansion>| **known == expansion;
        if let Some(back) = latest.clone().position(is_same) {
            let back = u32::try_from(back).unwrap_or(0);
            return SourceId(EXPANSIONS | (self.next_expansion - 1 - back));
        }
        let idx = self.next_expansion;
        self.next_expansion = (idx + 1) % (EXPANSIONS - 1);
        let expansion = Rc::new(expansion);
        self.expansions.insert(idx, Rc::downgrade(&expansion));
        self.newest_expansions.push_back(expansion);
        if self.newest_expansions.len() > MAX_NEWEST {
            self.newest_expansions.pop_front();
        }
        if self.expansions.len() > self.expansion_limit {
            let is_there = |known: &Weak<Expansion>| known.strong_count() > 0;
            self.expansions.retain(|_, known| is_there(known));
            self.expansion_limit = (self.expansions.len() * 2).max(2 * MAX_NEWEST);
        }
        SourceId(EXPANSIONS | idx)
    }

    /// Returns the macro call that produced a text.
    pub fn expansion(&self, id: SourceId) -> Option<Rc<Expansion>> {
        let idx = id.0.checked_sub(EXPANSIONS)?;
        self.expansions.get(&idx)?.upgrade()
    }

    /// Adds everything needed to show a place in a text to `held`: the text, and the macro calls that produced it with
    /// their texts.
    pub(crate) fn hold(&self, id: SourceId, held: &mut Vec<HeldText>) {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if let Some(expansion) = self.expansion(id) {
                open.extend([expansion.source, expansion.call.source]);
                held.push(HeldText::Expansion(expansion));
            } else if let Some(source) = self.sources.get(&id.0).and_then(Weak::upgrade) {
                held.push(HeldText::Source(source));
            }
        }
    }

    /// Tells whether a text belongs to the library.
    pub fn is_library(&self, id: SourceId) -> bool {
        self.get(id).is_some_and(|source| source.is_library())
    }

    /// Returns the text of a place.
    pub fn text(&self, span: Span) -> Option<String> {
        let source = self.get(span.source)?;
        let text = source.text.get(span.start as usize..span.end as usize);
        text.map(str::to_owned)
    }
}

impl Source {
    /// Tells whether this text belongs to the library: the names of library texts are paths in brackets.
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
