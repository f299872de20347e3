//! Regexes with Java's syntax and semantics.
//!
//! A pattern is parsed into a tree. An automaton matches it in linear time if its result equals Java's; the other
//! patterns (look-around, references, possessive and nested empty repetitions) are matched by a machine that backtracks
//! within a limit of steps. This module does not know the language's values.

mod blocks;
mod class;
mod escape;
mod fold;
mod linear;
mod machine;
mod parse;
mod program;
mod property;
mod source;
mod tree;

use std::cell::OnceCell;

pub(crate) use self::linear::Facts;
use self::linear::{Automaton, Linear};
use self::machine::Machine;
use self::program::Program;
pub(crate) use self::property::{is_digit, is_letter};
use self::tree::Node;
use super::meter;

/// Maximum number of steps of a match; long texts have a higher limit.
pub const STEP_LIMIT: usize = 5_000_000;

/// Number of bytes that an automaton reads for one unit of fuel.
const BYTES: usize = 16;

/// A compiled regex.
pub struct Regex {
    node: Node,
    groups: usize,
    names: Vec<(String, usize)>,
    linear: OnceCell<Option<Linear>>,
    finding: OnceCell<Option<Automaton>>,
    whole: OnceCell<Option<Automaton>>,
    program: OnceCell<Program>,
}

/// A match: the byte ranges of the whole match and of each group; `None` for a group that did not participate.
pub type Groups = Vec<Option<(usize, usize)>>;

/// The error of a match that took more than [`STEP_LIMIT`] steps.
#[derive(Debug, Clone, Copy)]
pub struct TooManySteps;

/// The reason why a regex cannot be compiled.
#[derive(Debug, Clone)]
pub struct RegexError {
    /// What is wrong with the pattern.
    pub message: String,
    /// The byte offset in the source, if it is known.
    pub at: Option<usize>,
    /// A suggestion of what to change.
    pub hint: Option<String>,
}

impl RegexError {
    fn hint(mut self, hint: impl Into<String>) -> RegexError {
        self.hint = Some(hint.into());
        self
    }
}

/// Where a match must begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Anywhere from the start of the search on.
    Find,
    /// At the start of the search.
    Prefix,
    /// From the start of the search to the end of the text.
    Whole,
}

/// A text to search, with the facts about the whole text that the regex needs.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'t> {
    pub(crate) text: &'t str,
    pub(crate) facts: Facts,
}

/// The parameters of a search in a text.
#[derive(Clone, Copy)]
pub(crate) struct Search {
    pub(crate) mode: Mode,
    /// The byte offset at which the search starts.
    pub(crate) from: usize,
    /// The end of the previous match, needed for `\G`.
    pub(crate) last: usize,
}

/// Compiles a regex of Java's syntax.
///
/// # Errors
/// A message that describes what is wrong with it.
pub fn compile_regex(source: &str) -> Result<Regex, RegexError> {
    let pattern = parse::parse(source)?;
    Ok(Regex {
        node: pattern.node,
        groups: pattern.groups,
        names: pattern.names,
        linear: OnceCell::new(),
        finding: OnceCell::new(),
        whole: OnceCell::new(),
        program: OnceCell::new(),
    })
}

impl Regex {
    /// Returns the first match that starts at byte `from` or later.
    ///
    /// # Errors
    /// When it takes too many steps.
    pub fn find_from(&self, text: &str, from: usize) -> Result<Option<Groups>, TooManySteps> {
        let search = Search {
            mode: Mode::Find,
            from,
            last: from,
        };
        self.search(self.subject(text), search)
    }

    /// Prepares a text to be searched any number of times.
    pub(crate) fn subject<'t>(&self, text: &'t str) -> Subject<'t> {
        let facts = self.linear().map(|linear| linear.facts(text));
        Subject {
            text,
            facts: facts.unwrap_or_default(),
        }
    }

    /// Searches a text.
    ///
    /// # Errors
    /// When it takes too many steps.
    pub(crate) fn search(
        &self,
        subject: Subject<'_>,
        search: Search,
    ) -> Result<Option<Groups>, TooManySteps> {
        let Subject { text, facts } = subject;
        let Search { mode, from, last } = search;
        if from > text.len() {
            return Ok(None);
        }
        if let Some(linear) = self.linear().filter(|linear| linear.is_for(text, facts)) {
            let automaton = match mode {
                Mode::Find | Mode::Prefix => &self.finding,
                Mode::Whole => &self.whole,
            };
            if let Some(automaton) = automaton.get_or_init(|| linear.compile(mode)) {
                let found = automaton.search(text, from, mode);
                // An automaton reads a number of bytes per unit, up to the end of the match.
                let end = found.as_ref().and_then(|groups| groups[0]);
                let read = end.map_or(text.len(), |(_, end)| end) - from;
                let units = u32::try_from(read / BYTES).unwrap_or(u32::MAX);
                meter::spend(units).map_err(|_| TooManySteps)?;
                return Ok(found);
            }
        }
        Machine::new(self.program(), text, last, mode).search(from)
    }

    /// Tells whether a search reads past the last character of a text, so that more text could change its result.
    ///
    /// # Errors
    /// When it takes too many steps.
    pub(crate) fn hits_end(
        &self,
        subject: Subject<'_>,
        search: Search,
    ) -> Result<bool, TooManySteps> {
        let Search { mode, from, last } = search;
        if from > subject.text.len() {
            return Ok(true);
        }
        Machine::new(self.program(), subject.text, last, mode).hits_end(from)
    }

    fn program(&self) -> &Program {
        self.program
            .get_or_init(|| Program::new(&self.node, self.groups))
    }

    fn linear(&self) -> Option<&Linear> {
        self.linear.get_or_init(|| Linear::new(&self.node)).as_ref()
    }

    /// Returns the index of a named group.
    pub fn group(&self, name: &str) -> Option<usize> {
        let found = self.names.iter().find(|(known, _)| known == name);
        found.map(|(_, index)| *index)
    }

    /// Returns the number of groups, without the whole match.
    pub fn group_count(&self) -> usize {
        self.groups
    }
}
