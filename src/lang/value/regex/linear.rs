//! Patterns that an automaton matches in linear time, with the same result as the backtracking machine.
//!
//! Patterns that an automaton cannot match, or matches differently from Java, are left to that machine. For some
//! patterns, such as `\b` for ASCII, the automaton is used for some texts only: see [`Needs`].

use regex_automata::meta;
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Capture, Class, Hir, Look, Repetition};

use super::property::vertical_space;
use super::tree::{Assert, Greed, Lines, Node, Study, UNBOUNDED, has_captures, is_loop};
use super::{Groups, Mode};

/// Maximum size of a compiled automaton in bytes. A larger pattern is left to the backtracking machine.
const SIZE_LIMIT: usize = 4 << 20;

/// Properties that a text must have for the automaton to match as Java does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Needs {
    /// The text is ASCII only.
    ascii: bool,
    /// The text does not end with a line terminator.
    open_end: bool,
    /// The text is neither empty nor ends with a `\n`.
    no_last_newline: bool,
    /// The text has no line terminator other than `\n`.
    newlines_only: bool,
}

/// Properties of a text, as far as a pattern needs them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    is_ascii: bool,
    has_newlines_only: bool,
}

/// A pattern in the automaton's form.
pub(super) struct Linear {
    hir: Hir,
    needs: Needs,
}

impl Linear {
    /// Returns the pattern in the automaton's form, if an automaton can match it.
    pub(super) fn new(node: &Node) -> Option<Linear> {
        let mut builder = Builder {
            needs: Needs::default(),
            is_in_loop: false,
        };
        let hir = builder.hir(node)?;
        Some(Linear {
            hir,
            needs: builder.needs,
        })
    }

    /// Determines the properties of a text that the pattern needs.
    pub(super) fn facts(&self, text: &str) -> Facts {
        let is_ascii = (self.needs.ascii || self.needs.newlines_only) && text.is_ascii();
        Facts {
            is_ascii,
            has_newlines_only: self.needs.newlines_only
                && is_ascii
                && memchr::memchr(b'\r', text.as_bytes()).is_none(),
        }
    }

    /// Tells whether the automaton matches this text as Java does.
    pub(super) fn is_for(&self, text: &str, facts: Facts) -> bool {
        let needs = self.needs;
        (!needs.ascii || facts.is_ascii)
            && (!needs.newlines_only || facts.has_newlines_only)
            && (!needs.no_last_newline || !text.is_empty() && !text.ends_with('\n'))
            && (!needs.open_end || !text.ends_with(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']))
    }

    /// Compiles the automaton; returns `None` if it becomes too large.
    pub(super) fn compile(&self, mode: Mode) -> Option<Automaton> {
        let hir = match mode {
            Mode::Find | Mode::Prefix => self.hir.clone(),
            Mode::Whole => Hir::concat(vec![
                Hir::look(Look::Start),
                self.hir.clone(),
                Hir::look(Look::End),
            ]),
        };
        let config = meta::Config::new().nfa_size_limit(Some(SIZE_LIMIT));
        let regex = meta::Builder::new()
            .configure(config)
            .build_from_hir(&hir)
            .ok()?;
        Some(Automaton { regex })
    }
}

/// A compiled automaton.
pub(super) struct Automaton {
    regex: meta::Regex,
}

impl Automaton {
    /// Returns the first match from a byte on; with `Prefix`, only a match that begins there.
    pub(super) fn search(&self, text: &str, from: usize, mode: Mode) -> Option<Groups> {
        let anchored = match mode {
            Mode::Find => Anchored::No,
            Mode::Prefix | Mode::Whole => Anchored::Yes,
        };
        let input = Input::new(text).span(from..text.len()).anchored(anchored);
        if self.regex.captures_len() == 1 {
            let found = self.regex.search(&input)?;
            return Some(vec![Some((found.start(), found.end()))]);
        }
        let mut captures: Captures = self.regex.create_captures();
        self.regex.search_captures(&input, &mut captures);
        captures.is_match().then(|| {
            captures
                .iter()
                .map(|group| group.map(|group| (group.start, group.end)))
                .collect()
        })
    }
}

struct Builder {
    needs: Needs,
    is_in_loop: bool,
}

impl Builder {
    fn hir(&mut self, node: &Node) -> Option<Hir> {
        Some(match node {
            Node::Empty => Hir::empty(),
            Node::Char(char) => Hir::literal(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Node::Set(set) => Hir::class(Class::Unicode(set.clone())),
            Node::Concat(nodes) => Hir::concat(self.all(nodes)?),
            Node::Either(nodes) => Hir::alternation(self.all(nodes)?),
            Node::Group { index: None, body } => self.hir(body)?,
            Node::Group {
                index: Some(index),
                body,
            } => Hir::capture(Capture {
                index: u32::try_from(*index).ok()?,
                name: None,
                sub: Box::new(self.hir(body)?),
            }),
            Node::Assert(assert) => self.assert(*assert)?,
            Node::Optional { body, greed } => {
                if Study::of(body).may_be_empty() && has_captures(body) {
                    return None;
                }
                self.repetition(body, (0, 1), *greed)?
            }
            Node::Repeat {
                body,
                min,
                max,
                greed,
            } => {
                let is_never = *max == 0 && has_captures(body);
                if is_never || Study::of(body).may_be_empty() || !self.is_plain_repeat(body, *greed)
                {
                    return None;
                }
                let outer = std::mem::replace(&mut self.is_in_loop, true);
                let hir = self.repetition(body, (*min, *max), *greed);
                self.is_in_loop = outer;
                hir?
            }
            Node::LineBreak => Hir::alternation(vec![
                Hir::literal(*b"\r\n"),
                Hir::class(Class::Unicode(vertical_space())),
            ]),
            Node::Reference { .. } | Node::Look { .. } | Node::Atomic(_) | Node::Grapheme => {
                return None;
            }
        })
    }

    fn all(&mut self, nodes: &[Node]) -> Option<Vec<Hir>> {
        nodes.iter().map(|node| self.hir(node)).collect()
    }

    fn repetition(&mut self, body: &Node, (min, max): (i32, i32), greed: Greed) -> Option<Hir> {
        if greed == Greed::Possessive {
            return None;
        }
        let max = if max == UNBOUNDED {
            None
        } else {
            Some(u32::try_from(max).ok()?)
        };
        Some(Hir::repetition(Repetition {
            min: u32::try_from(min).ok()?,
            max,
            greedy: greed == Greed::Greedy,
            sub: Box::new(self.hir(body)?),
        }))
    }

    /// Tells whether a repetition captures the same as in an automaton. Java does not backtrack into the rounds of a
    /// body that can match in only one way, and does not restore their captures.
    fn is_plain_repeat(&self, body: &Node, greed: Greed) -> bool {
        if is_loop(body, greed) {
            return true;
        }
        if has_line_break(body) {
            return false;
        }
        match body {
            Node::Group { index, body } => {
                !has_captures(body) && (index.is_none() || !self.is_in_loop)
            }
            other => !has_captures(other),
        }
    }

    fn assert(&mut self, assert: Assert) -> Option<Hir> {
        let look = match assert {
            Assert::Start => Look::Start,
            Assert::End => Look::End,
            Assert::EndOfText(_) => {
                self.needs.open_end = true;
                Look::End
            }
            Assert::LineStart(lines) => {
                self.needs.no_last_newline = true;
                self.needs.newlines_only |= lines == Lines::Any;
                Look::StartLF
            }
            Assert::LineEnd(lines) => {
                self.needs.newlines_only |= lines == Lines::Any;
                Look::EndLF
            }
            Assert::Word(_) => {
                self.needs.ascii = true;
                Look::WordAscii
            }
            Assert::NoWord(_) => {
                self.needs.ascii = true;
                Look::WordAsciiNegate
            }
            Assert::GraphemeBoundary | Assert::LastMatch => return None,
        };
        Some(Hir::look(look))
    }
}

fn has_line_break(node: &Node) -> bool {
    match node {
        Node::LineBreak => true,
        Node::Concat(nodes) | Node::Either(nodes) => nodes.iter().any(has_line_break),
        Node::Group { body, .. }
        | Node::Look { body, .. }
        | Node::Atomic(body)
        | Node::Optional { body, .. }
        | Node::Repeat { body, .. } => has_line_break(body),
        Node::Empty
        | Node::Char(_)
        | Node::Set(_)
        | Node::Assert(_)
        | Node::Reference { .. }
        | Node::Grapheme => false,
    }
}
