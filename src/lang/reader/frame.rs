//! The open forms: the reader's own stack.

use std::rc::Rc;

use crate::value::{Span, Symbol, Value};

use super::{ReadContext, ReadError, Reader};

/// Maximum nesting of syntax-quotes: each level multiplies the length of the code inside.
const MAX_TEMPLATES: usize = 5;

/// A form whose end has not been read yet.
#[derive(Debug)]
pub(super) struct Frame {
    pub kind: Kind,
    /// The byte offset where it starts.
    pub start: usize,
    /// The length of the opening token in bytes.
    pub length: usize,
    /// The index of its first item in the reader's `values`.
    pub base: usize,
}

/// The kind of an open form.
#[derive(Debug)]
pub(super) enum Kind {
    List,
    Vector,
    Map,
    Set,
    /// `#:name{`
    NamespacedMap(Rc<str>),
    /// `#(`
    Function,
    /// `#?(` or `#?@(`
    Conditional {
        splice: bool,
        clause: Clause,
        chosen: bool,
    },
    /// `#?` or `#?@` before a list that is kept unchanged.
    KeptConditional {
        splice: bool,
    },
    /// A prefix that wraps the next form in a list with a symbol of this name.
    Wrap(&'static str),
    SyntaxQuote,
    /// `#_`
    Discard,
    /// `^`: the metadata, then the form.
    Meta,
    /// `#tag`
    Tag(Symbol),
}

/// The item expected next in a reader conditional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    Feature,
    Wanted,
    Unwanted,
}

impl Kind {
    /// Returns the byte that ends this form; `None` for a prefix, which ends with the next form.
    pub(super) fn closer(&self) -> Option<u8> {
        match self {
            Kind::List | Kind::Function | Kind::Conditional { .. } => Some(b')'),
            Kind::Vector => Some(b']'),
            Kind::Map | Kind::Set | Kind::NamespacedMap(_) => Some(b'}'),
            Kind::KeptConditional { .. }
            | Kind::Wrap(_)
            | Kind::SyntaxQuote
            | Kind::Discard
            | Kind::Meta
            | Kind::Tag(_) => None,
        }
    }
}

impl Reader<'_> {
    /// Opens a form whose first token is `length` bytes long.
    pub(super) fn open(
        &mut self,
        kind: Kind,
        length: usize,
    ) -> Result<Option<(Value, Span)>, ReadError> {
        let start = self.at;
        if self.frames.len() >= self.options.max_depth {
            return Err(self.too_deep(start));
        }
        if matches!(kind, Kind::SyntaxQuote) {
            let is_template = |frame: &&Frame| matches!(frame.kind, Kind::SyntaxQuote);
            if self.frames.iter().filter(is_template).count() == MAX_TEMPLATES {
                return Err(self.too_many_templates(start));
            }
        }
        self.frames.push(Frame {
            kind,
            start,
            length,
            base: self.values.len(),
        });
        self.at += length;
        Ok(None)
    }

    /// Opens a form that is allowed only in code.
    pub(super) fn open_code(
        &mut self,
        kind: Kind,
        length: usize,
        what: &str,
    ) -> Result<Option<(Value, Span)>, ReadError> {
        if !self.is_code() {
            return Err(self.code_in_data(self.at, length, what));
        }
        self.open(kind, length)
    }

    /// Closes the innermost form, which must end with `closer`.
    pub(super) fn close(
        &mut self,
        closer: u8,
        cx: &mut dyn ReadContext,
    ) -> Result<Option<(Value, Span)>, ReadError> {
        let end = self.at + 1;
        match self.frames.last().map(|frame| frame.kind.closer()) {
            None => return Err(self.nothing_open(closer)),
            Some(None) => return Err(self.nothing_after_prefix(closer)),
            Some(Some(expected)) if expected != closer => {
                return Err(self.mismatched(expected, closer));
            }
            Some(Some(_)) => {}
        }
        let Some(frame) = self.frames.pop() else {
            return Ok(None);
        };
        self.at = end;
        let span = self.span(frame.start, end);
        let value = match frame.kind {
            Kind::List => self.build_list(frame.base, span),
            Kind::Vector => self.build_vector(frame.base, span),
            Kind::Map => self.build_map(frame.base, span)?,
            Kind::Set => self.build_set(frame.base, span)?,
            Kind::NamespacedMap(namespace) => {
                self.qualify_keys(frame.base, &namespace);
                self.build_map(frame.base, span)?
            }
            Kind::Function => self.build_function(frame.base, span),
            Kind::Conditional {
                splice,
                clause,
                chosen,
            } => {
                self.end_clauses(clause, span)?;
                return self.choose(splice, chosen, span, cx);
            }
            Kind::KeptConditional { .. }
            | Kind::Wrap(_)
            | Kind::SyntaxQuote
            | Kind::Discard
            | Kind::Meta
            | Kind::Tag(_) => {
                return Ok(None);
            }
        };
        Ok(Some((value, span)))
    }
}
