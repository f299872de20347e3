//! Changes of a text that mend a problem, as data: editors offer them, and `flowstone check --fix` makes them.
//!
//! A change is made with spans, which belong to the session that read the text. A diagnostic has lines and columns instead
//! of them.

use super::Span;
use crate::suggest::Respelling;

/// A change of a text that mends a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<Place = Span> {
    /// A phrase that describes the change, such as "write `:objective`".
    pub title: String,
    /// Whether it can be made without asking a person: no other change is likely, and it alters nothing that worked.
    pub is_certain: bool,
    /// The parts of the text to replace. They do not overlap.
    pub edits: Vec<Edit<Place>>,
}

/// A part of a text and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<Place = Span> {
    /// The place of the old text; [`Span::NONE`] stands for the place of the problem. An empty place is an insertion.
    pub place: Place,
    /// The text that must be there. A keyword or string literal that has this name matches, too.
    pub old: String,
    /// The text that replaces it.
    pub new: String,
}

impl Change<Span> {
    /// Returns a change that replaces a word at the place of the problem.
    pub fn respell(word: &str, respelling: Respelling<'_>) -> Change {
        let change = Change::replace(Span::NONE, word, respelling.name);
        match respelling.is_certain {
            true => change.certain(),
            false => change,
        }
    }

    /// Returns a change that replaces a text.
    pub fn replace(place: Span, old: impl Into<String>, new: impl Into<String>) -> Change {
        let (old, new) = (old.into(), new.into());
        Change {
            title: format!("write `{new}`"),
            is_certain: false,
            edits: vec![Edit { place, old, new }],
        }
    }

    /// Returns a change that inserts a text before a place.
    pub fn insert(place: Span, new: impl Into<String>) -> Change {
        let place = Span {
            end: place.start,
            ..place
        };
        let new = new.into();
        Change {
            title: format!("insert `{}`", new.trim()),
            ..Change::replace(place, "", new)
        }
    }

    /// Marks the change as one that can be made without asking.
    #[must_use]
    pub fn certain(mut self) -> Change {
        self.is_certain = true;
        self
    }

    /// Sets the phrase that describes the change.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Change {
        self.title = title.into();
        self
    }
}
