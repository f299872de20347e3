//! Search patterns: a text or a regular expression, tried on whole files first and then on single lines.
//!
//! Patterns go through the engine of ripgrep, which is linear and never matches across lines. Features that it lacks
//! (look-around, back references, anchors of the whole text) are matched line by line by a backtracking engine with a
//! limit on its steps.

use fancy_regex::{Regex, RegexBuilder};
use grep_matcher::{LineMatchKind, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::error::FilesError;

/// Maximum number of backtracking steps on a line.
const BACKTRACKS: usize = 1_000_000;

/// Maximum size of a compiled pattern.
const PATTERN_BYTES: usize = 10 << 20;

/// A text or a pattern, ready to search.
pub(super) enum Needle {
    Lines(Box<RegexMatcher>),
    Backtracking(Box<Regex>),
}

impl Needle {
    pub(super) fn new(
        query: &str,
        regex: bool,
        case_sensitive: bool,
    ) -> Result<Needle, FilesError> {
        let is_plain = !regex || !means_the_whole_text(query);
        if is_plain {
            let matcher = RegexMatcherBuilder::new()
                .case_insensitive(!case_sensitive)
                .fixed_strings(!regex)
                .multi_line(true)
                .line_terminator(Some(b'\n'))
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(4 * PATTERN_BYTES)
                .build(query);
            if let Ok(matcher) = matcher {
                return Ok(Needle::Lines(Box::new(matcher)));
            }
        }
        let pattern = match regex {
            true => query.to_string(),
            false => fancy_regex::escape(query).into_owned(),
        };
        RegexBuilder::new(&pattern)
            .case_insensitive(!case_sensitive)
            .backtrack_limit(BACKTRACKS)
            .delegate_size_limit(PATTERN_BYTES)
            .build()
            .map(|regex| Needle::Backtracking(Box::new(regex)))
            .map_err(|error| FilesError::BadPattern {
                what: "pattern",
                pattern: query.to_string(),
                cause: error.to_string(),
            })
    }

    /// Returns an offset in the first line that may match; no earlier line matches.
    pub(super) fn candidate(&self, text: &[u8]) -> Option<usize> {
        match self {
            Needle::Lines(matcher) => match matcher.find_candidate_line(text) {
                Ok(Some(LineMatchKind::Confirmed(at) | LineMatchKind::Candidate(at))) => {
                    Some(at.min(text.len().saturating_sub(1)))
                }
                Ok(None) => None,
                // This cannot fail; otherwise every line would be tried.
                Err(_) => Some(0),
            },
            Needle::Backtracking(_) => Some(0),
        }
    }

    /// Returns the offset of the first match in a line; an error if matching takes too long.
    pub(super) fn find(&self, line: &[u8]) -> Result<Option<usize>, ()> {
        match self {
            Needle::Lines(matcher) => {
                let found = matcher.find(line).map_err(drop)?;
                Ok(found.map(|found| found.start()))
            }
            Needle::Backtracking(regex) => {
                let text = String::from_utf8_lossy(line);
                let found = regex.find(&*text).map_err(drop)?;
                Ok(found.map(|found| place_in(line, found.start())))
            }
        }
    }
}

/// Tells whether a pattern may contain an anchor of the whole text, which in a search means the line.
fn means_the_whole_text(pattern: &str) -> bool {
    let takes_flags_back = |(at, _): (usize, &str)| {
        let flags = pattern[at + 2..].trim_start_matches(|it: char| it.is_ascii_alphabetic());
        flags.starts_with('-')
    };
    ["\\A", "\\z", "\\Z", "\\G"]
        .iter()
        .any(|it| pattern.contains(it))
        || pattern.match_indices("(?").any(takes_flags_back)
}

/// Returns the offset in a line for an offset in its text, where invalid UTF-8 takes three bytes.
fn place_in(line: &[u8], place: usize) -> usize {
    const REPLACED: usize = char::REPLACEMENT_CHARACTER.len_utf8();
    let (mut bytes, mut text) = (0, 0);
    for chunk in line.utf8_chunks() {
        let valid = chunk.valid().len();
        if place <= text + valid {
            return bytes + (place - text);
        }
        (bytes, text) = (bytes + valid, text + valid);
        if !chunk.invalid().is_empty() {
            if place < text + REPLACED {
                return bytes;
            }
            (bytes, text) = (bytes + chunk.invalid().len(), text + REPLACED);
        }
    }
    bytes
}
