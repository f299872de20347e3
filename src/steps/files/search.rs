//! Text search in a tree, line by line.

use fancy_regex::{Regex, RegexBuilder};

use super::error::FilesError;
use super::manifest::Kind;
use super::view::{Selection, View};

/// What to search for, and how much to return.
#[derive(Clone, Debug)]
pub struct Query {
    pub text: String,
    pub regex: bool,
    pub case_sensitive: bool,
    pub selection: Selection,
    /// How many lines before and after a match to return.
    pub context: usize,
    pub limit: usize,
}

/// One match: the line it is on, and its neighbours.
pub struct Match {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    pub text: String,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

/// The matches, in the order of path and line.
pub struct Found {
    pub matches: Vec<Match>,
    /// There are more.
    pub truncated: bool,
}

/// A longer line is cut around its match.
const LINE_CHARS: usize = 500;

/// A regular expression gives up on a line after this many steps back.
const BACKTRACKS: usize = 1_000_000;

impl View<'_> {
    /// Returns the first matches in the selected text files. A line is reported once.
    pub fn search(&self, query: &Query) -> Result<Found, FilesError> {
        let needle = Needle::new(query)?;
        let mut matches = Vec::new();
        for entry in query.selection.of(self.manifest)? {
            if entry.kind != Kind::File || entry.size == 0 {
                continue;
            }
            let text = self.text(entry)?;
            if !needle.may_be_in(&text) {
                continue;
            }
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let slow = |_| FilesError::PatternTooSlow {
                    pattern: query.text.clone(),
                    path: entry.path.clone(),
                    line: at + 1,
                };
                let Some(offset) = needle.find(line).map_err(slow)? else {
                    continue;
                };
                if matches.len() == query.limit {
                    return Ok(Found {
                        matches,
                        truncated: true,
                    });
                }
                let context = |range: std::ops::Range<usize>| {
                    lines[range].iter().map(|it| shown(it, 0)).collect()
                };
                matches.push(Match {
                    path: entry.path.clone(),
                    line: at + 1,
                    column: line[..offset].chars().count() + 1,
                    text: shown(line, offset),
                    before: context(at.saturating_sub(query.context)..at),
                    after: context(at + 1..lines.len().min(at + 1 + query.context)),
                });
            }
        }
        Ok(Found {
            matches,
            truncated: false,
        })
    }
}

enum Needle {
    Plain(String),
    Pattern(Box<Regex>),
}

impl Needle {
    fn new(query: &Query) -> Result<Needle, FilesError> {
        if !query.regex && query.case_sensitive {
            return Ok(Needle::Plain(query.text.clone()));
        }
        let pattern = if query.regex {
            query.text.clone()
        } else {
            fancy_regex::escape(&query.text).into_owned()
        };
        RegexBuilder::new(&pattern)
            .case_insensitive(!query.case_sensitive)
            .backtrack_limit(BACKTRACKS)
            .build()
            .map(|regex| Needle::Pattern(Box::new(regex)))
            .map_err(|error| FilesError::BadPattern {
                what: "pattern",
                pattern: query.text.clone(),
                cause: error.to_string(),
            })
    }

    /// Rules most files out with one pass.
    fn may_be_in(&self, text: &str) -> bool {
        match self {
            Needle::Plain(plain) => {
                memchr::memmem::find(text.as_bytes(), plain.as_bytes()).is_some()
            }
            Needle::Pattern(_) => true,
        }
    }

    fn find(&self, line: &str) -> Result<Option<usize>, Box<fancy_regex::Error>> {
        match self {
            Needle::Plain(plain) => Ok(memchr::memmem::find(line.as_bytes(), plain.as_bytes())),
            Needle::Pattern(regex) => Ok(regex
                .find(line)
                .map_err(Box::new)?
                .map(|found| found.start())),
        }
    }
}

/// Returns a line, or the part of a long one around `offset`.
fn shown(line: &str, offset: usize) -> String {
    if line.len() <= LINE_CHARS {
        return line.to_string();
    }
    let mut start = offset.saturating_sub(LINE_CHARS / 4);
    while !line.is_char_boundary(start) {
        start -= 1;
    }
    line[start..].chars().take(LINE_CHARS).collect()
}
