//! Lists, reads and searches the files of a tree. Changes nothing.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::error::FilesError;
use super::manifest::{Entry, Kind, Manifest};
use super::objects::Objects;
use super::path;

/// A tree together with its contents.
pub struct View<'a> {
    pub manifest: &'a Manifest,
    pub objects: &'a Objects,
}

/// A selection of the entries of a tree.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// A folder, or the start of a path.
    pub prefix: Option<String>,
    /// `**/*.rs`, `src/*.{js,ts}`; a pattern without `/` is matched against the file name.
    pub glob: Vec<String>,
}

impl Selection {
    /// Returns the entries that are selected, in the order of their paths.
    pub fn of<'a>(&self, manifest: &'a Manifest) -> Result<Vec<&'a Entry>, FilesError> {
        let prefix = match &self.prefix {
            Some(prefix) => {
                let normal = path::normal(prefix)?;
                if prefix.ends_with('/') && !normal.is_empty() {
                    normal + "/"
                } else {
                    normal
                }
            }
            None => String::new(),
        };
        let globs = Globs::new(&self.glob)?;
        Ok(manifest
            .starting_at(&prefix)
            .take_while(|entry| entry.path.starts_with(&prefix))
            .filter(|entry| globs.matches(&entry.path))
            .collect())
    }
}

/// Compiled patterns, which are all tried at once.
struct Globs {
    /// Patterns that are matched against the file name.
    names: GlobSet,
    paths: GlobSet,
    is_empty: bool,
}

impl Globs {
    fn new(globs: &[String]) -> Result<Globs, FilesError> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for glob in globs {
            let pattern = glob.strip_prefix("./").unwrap_or(glob);
            let compiled = GlobBuilder::new(pattern)
                .literal_separator(true)
                .build()
                .map_err(|error| bad_glob(glob, &error))?;
            match pattern.contains('/') {
                true => paths.add(compiled),
                false => names.add(compiled),
            };
        }
        let build = |set: GlobSetBuilder| {
            let all = globs.join(" ");
            set.build().map_err(|error| bad_glob(&all, &error))
        };
        Ok(Globs {
            names: build(names)?,
            paths: build(paths)?,
            is_empty: globs.is_empty(),
        })
    }

    fn matches(&self, path: &str) -> bool {
        let name = || path.rsplit('/').next().unwrap_or(path);
        self.is_empty
            || !self.paths.is_empty() && self.paths.is_match(path)
            || !self.names.is_empty() && self.names.is_match(name())
    }
}

fn bad_glob(glob: &str, error: &globset::Error) -> FilesError {
    FilesError::BadPattern {
        what: "glob",
        pattern: glob.to_string(),
        cause: error.kind().to_string(),
    }
}

/// A page of a listing.
pub struct Page<'a> {
    pub entries: Vec<&'a Entry>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<String>,
}

/// The part of a file to read.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Counted from 1.
    pub start_line: Option<u64>,
    /// The last line to read.
    pub end_line: Option<u64>,
    pub max_chars: usize,
}

/// The result of reading a file.
pub struct Read {
    /// The path that was requested, normalized.
    pub path: String,
    pub size: u64,
    pub lines: u64,
    pub kind: Kind,
    /// `None` if the file is not text.
    pub content: Option<String>,
    pub truncated: bool,
}

impl<'a> View<'a> {
    /// Returns the selected entries after `cursor`, at most `limit`.
    pub fn list(
        &self,
        selection: &Selection,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<'a>, FilesError> {
        let mut entries = selection.of(self.manifest)?;
        if let Some(cursor) = cursor {
            entries.drain(..entries.partition_point(|entry| entry.path.as_str() <= cursor));
        }
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries
            .last()
            .filter(|_| more)
            .map(|entry| entry.path.clone());
        Ok(Page { entries, next })
    }

    /// Reads one file. The result for a binary file has no content.
    pub fn read(&self, path: &str, part: Part) -> Result<Read, FilesError> {
        let entry = self.manifest.resolve(path)?;
        let mut read = Read {
            path: path::normal(path)?,
            size: entry.size,
            lines: entry.lines,
            kind: entry.kind,
            content: None,
            truncated: false,
        };
        match entry.kind {
            Kind::File => {
                let (content, truncated) = cut(&self.text(entry)?, part);
                read.content = Some(content);
                read.truncated = truncated;
                Ok(read)
            }
            Kind::Binary => Ok(read),
            kind => Err(FilesError::NotReadable {
                path: path.to_string(),
                kind,
            }),
        }
    }

    /// Returns the text of a file, with replacement characters for invalid UTF-8.
    pub fn text(&self, entry: &Entry) -> Result<String, FilesError> {
        let bytes = self.objects.get(&entry.hash)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

/// Returns the requested lines, and whether they were cut short.
fn cut(text: &str, part: Part) -> (String, bool) {
    let first = part.start_line.unwrap_or(1).max(1) - 1;
    let start = line_start(text, first);
    let end = part
        .end_line
        .map_or(text.len(), |last| line_start(text, last))
        .max(start);
    let wanted = &text[start..end];
    match wanted.char_indices().nth(part.max_chars) {
        Some((at, _)) => (wanted[..at].to_string(), true),
        None => (wanted.to_string(), false),
    }
}

/// Returns the offset after the first `count` lines, or the end of the text if it has fewer.
fn line_start(text: &str, count: u64) -> usize {
    match count {
        0 => 0,
        count => memchr::memchr_iter(b'\n', text.as_bytes())
            .nth(usize::try_from(count - 1).unwrap_or(usize::MAX))
            .map_or(text.len(), |at| at + 1),
    }
}
