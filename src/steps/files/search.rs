//! Text search in a tree, line by line, on all processors.
//!
//! Files are searched in batches. The matches are in the order of path and line, independent of the order in which
//! batches end, and no batch is started that could not contribute a match.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::error::FilesError;
use super::manifest::{Entry, Kind};
use super::needle::Needle;
use super::view::{Selection, View};

/// The search pattern, and the limits of the result.
#[derive(Clone, Debug)]
pub struct Query {
    pub text: String,
    pub regex: bool,
    pub case_sensitive: bool,
    pub selection: Selection,
    /// The number of lines to return before and after a match.
    pub context: usize,
    pub limit: usize,
}

/// A match: its line, and the lines around it.
pub struct Match {
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    pub text: String,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

/// The matches, in the order of path and line.
pub struct Found {
    pub matches: Vec<Match>,
    /// Whether there are more matches.
    pub truncated: bool,
}

/// Maximum length of a line in characters; longer ones are cut around the match.
const LINE_CHARS: usize = 500;

/// Number of files in a batch.
const LOT: usize = 128;

impl View<'_> {
    /// Returns the first matches in the selected text files. A line is reported once.
    pub fn search(&self, query: &Query, cancelled: &AtomicBool) -> Result<Found, FilesError> {
        let needle = Needle::new(&query.text, query.regex, query.case_sensitive)?;
        let entries: Vec<&Entry> = query
            .selection
            .of(self.manifest)?
            .into_iter()
            .filter(|entry| entry.kind == Kind::File && entry.size > 0)
            .collect();
        let lots: Vec<&[&Entry]> = entries.chunks(LOT).collect();
        let search = Search {
            view: self,
            query,
            needle: &needle,
            cancelled,
            next: AtomicUsize::new(0),
            done: Mutex::new(Done {
                lots: lots.iter().map(|_| None).collect(),
                whole: 0,
                matches: 0,
            }),
        };
        self.objects.refresh();
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
        match threads.min(lots.len()) {
            0 | 1 => search.work(&lots),
            threads => std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| search.work(&lots));
                }
            }),
        }
        if cancelled.load(Ordering::Relaxed) {
            return Err(FilesError::Cancelled);
        }
        let done = search
            .done
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut matches = Vec::new();
        for lot in done.lots.into_iter().map_while(|lot| lot) {
            matches.append(&mut lot?);
            if matches.len() > query.limit {
                break;
            }
        }
        let truncated = matches.len() > query.limit;
        matches.truncate(query.limit);
        Ok(Found { matches, truncated })
    }
}

/// A search under way, shared by its threads.
struct Search<'a> {
    view: &'a View<'a>,
    query: &'a Query,
    needle: &'a Needle,
    cancelled: &'a AtomicBool,
    next: AtomicUsize,
    done: Mutex<Done>,
}

struct Done {
    lots: Vec<Option<Result<Vec<Match>, FilesError>>>,
    /// Number of consecutive finished batches, starting with the first.
    whole: usize,
    /// Number of matches in these batches.
    matches: usize,
}

impl Search<'_> {
    fn work(&self, lots: &[&[&Entry]]) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(lot) = lots.get(at) else { return };
            let found = self.lot(lot);
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            let failed = found.is_err();
            done.lots[at] = Some(found);
            while let Some(Some(lot)) = done.lots.get(done.whole) {
                done.matches += lot.as_ref().map_or(0, Vec::len);
                done.whole += 1;
            }
            if failed || done.matches > self.query.limit || self.cancelled.load(Ordering::Relaxed) {
                self.next.store(lots.len(), Ordering::Relaxed);
            }
        }
    }

    /// Searches some files, until there are more matches than wanted.
    fn lot(&self, lot: &[&Entry]) -> Result<Vec<Match>, FilesError> {
        let mut matches = Vec::new();
        let hashes: Vec<&str> = lot.iter().map(|entry| entry.hash.as_str()).collect();
        self.view.objects.each(&hashes, &mut |at, bytes| {
            self.file(&lot[at].path, bytes, &mut matches)?;
            Ok(matches.len() <= self.query.limit && !self.cancelled.load(Ordering::Relaxed))
        })?;
        Ok(matches)
    }

    fn file(&self, path: &str, bytes: &[u8], matches: &mut Vec<Match>) -> Result<(), FilesError> {
        let slow = |line| FilesError::PatternTooSlow {
            pattern: self.query.text.clone(),
            path: path.to_string(),
            line,
        };
        // Lines before `counted` have been counted.
        let (mut at, mut counted, mut number) = (0, 0, 1);
        while at < bytes.len() && matches.len() <= self.query.limit {
            let Some(candidate) = self.needle.candidate(&bytes[at..]) else {
                return Ok(());
            };
            let line = Line::at(bytes, at + candidate);
            number += memchr::memchr_iter(b'\n', &bytes[counted..line.start]).count();
            counted = line.start;
            let text = line.text(bytes);
            if let Some(offset) = self.needle.find(text).map_err(|()| slow(number))? {
                matches.push(self.found(path, bytes, &line, (number, offset)));
            }
            at = line.next;
        }
        Ok(())
    }

    fn found(&self, path: &str, bytes: &[u8], line: &Line, at: (usize, usize)) -> Match {
        let (number, offset) = at;
        let text = line.text(bytes);
        let before = String::from_utf8_lossy(&text[..offset]);
        let mut above = Vec::new();
        let mut start = line.start;
        while above.len() < self.query.context && start > 0 {
            let line = Line::at(bytes, start - 1);
            start = line.start;
            above.push(shown(&String::from_utf8_lossy(line.text(bytes)), 0));
        }
        above.reverse();
        let mut below = Vec::new();
        let mut next = line.next;
        while below.len() < self.query.context && next < bytes.len() {
            let line = Line::at(bytes, next);
            next = line.next;
            below.push(shown(&String::from_utf8_lossy(line.text(bytes)), 0));
        }
        Match {
            path: path.to_string(),
            line: number,
            column: before.chars().count() + 1,
            text: shown(&String::from_utf8_lossy(text), before.len()),
            before: above,
            after: below,
        }
    }
}

/// The place of a line in a text.
struct Line {
    start: usize,
    /// The end without the line end.
    end: usize,
    /// The start of the next line.
    next: usize,
}

impl Line {
    fn at(bytes: &[u8], at: usize) -> Line {
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |it| it + 1);
        let newline = memchr::memchr(b'\n', &bytes[at..]).map(|it| at + it);
        let end = newline.unwrap_or(bytes.len());
        let is_return = newline.is_some() && end > start && bytes[end - 1] == b'\r';
        Line {
            start,
            end: end - usize::from(is_return),
            next: newline.map_or(bytes.len(), |it| it + 1),
        }
    }

    fn text<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..self.end]
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
