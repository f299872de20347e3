//! The manifest of a source tree: its entries, by content. Immutable once written.
//!
//! Stored as JSON with a version, so that a later build reads an earlier tree. Entries are sorted by path, and equal
//! trees have equal bytes and therefore equal ids. A changeset is put over a manifest: both are read as one, in the
//! order of paths, without copying unchanged entries.

use std::iter::Peekable;
use std::slice;
use std::sync::Arc;

use flowstone_flow::changeset::{FileState, PathChange};
use flowstone_flow::diagnostic::nearest;
use serde::{Deserialize, Serialize};

use super::error::FilesError;
use super::path;

const VERSION: u32 = 1;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A text file.
    File,
    /// A file that is not text: listed, but never read as text.
    Binary,
    /// A file above the size limit: listed, but its content is not stored.
    Large,
    /// A symbolic link to `target`.
    Link,
    /// A repository inside the repository.
    Submodule,
    /// A file that could not be opened when the tree was made.
    Unreadable,
    /// Only in errors: folders have no entries of their own.
    Folder,
}

impl Kind {
    /// Returns the keyword that flows see.
    pub fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Binary => "binary",
            Kind::Large => "large",
            Kind::Link => "link",
            Kind::Submodule => "submodule",
            Kind::Unreadable => "unreadable",
            Kind::Folder => "folder",
        }
    }

    /// Returns the kind with a name.
    pub fn named(name: &str) -> Option<Kind> {
        [
            Kind::File,
            Kind::Binary,
            Kind::Large,
            Kind::Link,
            Kind::Submodule,
            Kind::Unreadable,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Kind::File => "a file",
            Kind::Binary => "a binary file",
            Kind::Large => "a file above the size limit",
            Kind::Link => "a link",
            Kind::Submodule => "a submodule",
            Kind::Unreadable => "a file that could not be opened when the source was resolved",
            Kind::Folder => "a folder",
        }
    }
}

/// One file of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub path: String,
    pub size: u64,
    pub kind: Kind,
    /// The content's address in the object store; empty if the content is not stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// The number of lines; a last line without a newline counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lines: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub executable: bool,
    /// The target of a link, as it is written in the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Entry {
    /// Returns the state that a changeset stores.
    pub fn state(&self) -> FileState {
        FileState {
            kind: self.kind.name().to_string(),
            hash: self.hash.clone(),
            size: self.size,
            lines: self.lines,
            executable: self.executable,
            target: self.target.clone(),
        }
    }

    fn of(path: &str, state: &FileState) -> Result<Entry, FilesError> {
        let kind = Kind::named(&state.kind).ok_or_else(|| FilesError::Damaged {
            cause: format!("`{path}` is of the unknown kind `{}`", state.kind),
        })?;
        Ok(Entry {
            path: path.to_string(),
            size: state.size,
            kind,
            hash: state.hash.clone(),
            lines: state.lines,
            executable: state.executable,
            target: state.target.clone(),
        })
    }

    /// Tells whether two entries have the same kind, content and executable flag.
    pub fn same_content(&self, other: &Entry) -> bool {
        (
            self.kind,
            &self.hash,
            self.size,
            self.executable,
            &self.target,
        ) == (
            other.kind,
            &other.hash,
            other.size,
            other.executable,
            &other.target,
        )
    }
}

/// The origin of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Origin {
    Dir {
        /// The path as it is written in the source.
        path: String,
        /// Whether files that `.gitignore` excludes are included.
        ignored: bool,
        /// Whether files whose name starts with a dot are included.
        hidden: bool,
    },
    Git {
        /// The repository as it is written in the source, without a password.
        repo: String,
        reference: String,
        commit: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        connection: Option<String>,
    },
}

/// All entries of a tree, with the changes of a changeset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Sorted by path.
    base: Arc<Vec<Entry>>,
    /// Sorted by path.
    over: Vec<Over>,
    origin: Option<Origin>,
}

/// The state of a path in a changeset.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Over {
    path: String,
    /// The entry at the path; `None` if it is deleted.
    now: Option<Entry>,
    moved_from: Option<String>,
}

/// A path that a changeset changes.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'a> {
    pub path: &'a str,
    pub before: Option<&'a Entry>,
    pub now: Option<&'a Entry>,
    pub moved_from: Option<&'a str>,
}

/// The stored form of a manifest.
#[derive(Deserialize)]
struct Stored {
    version: u32,
    entries: Vec<Entry>,
    #[serde(default)]
    origin: Option<Origin>,
}

#[derive(Serialize)]
struct Storing<'a> {
    version: u32,
    entries: &'a [Entry],
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a Origin>,
}

impl Manifest {
    /// Returns a manifest of these entries.
    pub fn new(mut entries: Vec<Entry>) -> Manifest {
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Manifest {
            base: Arc::new(entries),
            over: Vec::new(),
            origin: None,
        }
    }

    /// Sets the origin of the tree.
    #[must_use]
    pub fn from_origin(mut self, origin: Origin) -> Manifest {
        self.origin = Some(origin);
        self
    }

    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Returns whether the tree includes ignored files, and files whose name starts with a dot.
    pub fn rules(&self) -> (bool, bool) {
        match &self.origin {
            Some(Origin::Dir {
                ignored, hidden, ..
            }) => (*ignored, *hidden),
            Some(Origin::Git { .. }) | None => (false, true),
        }
    }

    /// Returns the same tree with the changes of a changeset, which are sorted by path.
    pub fn under(&self, changes: &[PathChange]) -> Result<Manifest, FilesError> {
        let over = changes.iter().map(|change| {
            let now = change.now.as_ref();
            Ok(Over {
                path: change.path.clone(),
                now: now
                    .map(|state| Entry::of(&change.path, state))
                    .transpose()?,
                moved_from: change.moved_from.clone(),
            })
        });
        Ok(Manifest {
            base: Arc::clone(&self.base),
            over: over.collect::<Result<_, FilesError>>()?,
            origin: self.origin.clone(),
        })
    }

    /// Returns the changes over the tree.
    pub fn over(&self) -> Vec<(String, Option<Entry>)> {
        let over = self.over.iter();
        over.map(|over| (over.path.clone(), over.now.clone()))
            .collect()
    }

    /// Returns the tree with other entries over it.
    #[must_use]
    pub fn with_over(&self, over: Vec<(String, Option<Entry>)>) -> Manifest {
        let mut manifest = self.clone();
        for (path, now) in over {
            manifest.set(&path, now);
        }
        manifest
    }

    /// Returns the entries in the order of their paths.
    pub fn entries(&self) -> Entries<'_> {
        self.starting_at("")
    }

    /// Returns the entries from a path on, in the order of their paths.
    pub fn starting_at(&self, path: &str) -> Entries<'_> {
        let base = self
            .base
            .partition_point(|entry| entry.path.as_str() < path);
        let over = self.over.partition_point(|over| over.path.as_str() < path);
        Entries {
            base: self.base[base..].iter().peekable(),
            over: self.over[over..].iter().peekable(),
        }
    }

    /// Returns the number of entries.
    pub fn count(&self) -> usize {
        match self.over.is_empty() {
            true => self.base.len(),
            false => self.entries().count(),
        }
    }

    /// Returns the paths that the changeset changes, in their order.
    pub fn changed(&self) -> impl Iterator<Item = Changed<'_>> {
        let changed = self.over.iter().map(|over| Changed {
            path: &over.path,
            before: self.before(&over.path),
            now: over.now.as_ref(),
            moved_from: over.moved_from.as_deref(),
        });
        changed.filter(|changed| match (changed.before, changed.now) {
            (Some(before), Some(now)) => !before.same_content(now),
            (before, now) => before.is_some() || now.is_some(),
        })
    }

    /// Returns the bytes to store: those of the tree, without a changeset.
    pub fn encode(&self) -> Vec<u8> {
        let storing = Storing {
            version: VERSION,
            entries: &self.base,
            origin: self.origin.as_ref(),
        };
        serde_json::to_vec(&storing).expect("a manifest holds only text and numbers")
    }

    /// Reads the output of `encode`.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, FilesError> {
        let stored: Stored =
            serde_json::from_slice(bytes).map_err(|error| FilesError::Damaged {
                cause: format!("its list of files cannot be read ({error})"),
            })?;
        if stored.version != VERSION {
            return Err(FilesError::Damaged {
                cause: format!(
                    "its list of files has version {}, this build reads {VERSION}",
                    stored.version
                ),
            });
        }
        Ok(Manifest {
            base: Arc::new(stored.entries),
            over: Vec::new(),
            origin: stored.origin,
        })
    }

    /// Returns the entry at a normal path, without following links.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        let over = self
            .over
            .binary_search_by(|over| over.path.as_str().cmp(path));
        match over {
            Ok(at) => self.over[at].now.as_ref(),
            Err(_) => self.before(path),
        }
    }

    /// Returns the path from which a path was moved, if the changeset records a move.
    pub fn moved_from(&self, path: &str) -> Option<&str> {
        let at = self
            .over
            .binary_search_by(|over| over.path.as_str().cmp(path));
        self.over[at.ok()?].moved_from.as_deref()
    }

    /// Puts an entry over the tree at a normal path, or deletes it. A recorded move is kept until the entry is deleted.
    pub fn set(&mut self, path: &str, now: Option<Entry>) {
        let at = self
            .over
            .binary_search_by(|over| over.path.as_str().cmp(path));
        let at = at.unwrap_or_else(|at| {
            let over = Over {
                path: path.to_string(),
                now: None,
                moved_from: None,
            };
            self.over.insert(at, over);
            at
        });
        let over = &mut self.over[at];
        if now.is_none() {
            over.moved_from = None;
        }
        over.now = now;
    }

    /// Sets the path from which a changed path was moved.
    pub fn set_moved_from(&mut self, path: &str, moved_from: Option<String>) {
        let at = self
            .over
            .binary_search_by(|over| over.path.as_str().cmp(path));
        if let Ok(at) = at {
            self.over[at].moved_from = moved_from;
        }
    }

    /// Returns the entry of the tree at a path, without the changeset.
    pub fn before(&self, path: &str) -> Option<&Entry> {
        let at = self
            .base
            .binary_search_by(|entry| entry.path.as_str().cmp(path))
            .ok()?;
        self.base.get(at)
    }

    /// Returns the entry that `path` leads to, through links inside the tree.
    pub fn resolve(&self, path: &str) -> Result<&Entry, FilesError> {
        let normal = path::normal(path)?;
        let mut current = normal.clone();
        for _ in 0..40 {
            if let Some(entry) = self.get(&current)
                && entry.kind != Kind::Link
            {
                return Ok(entry);
            }
            let Some(link) = self.first_link(&current) else {
                return Err(self.missing(path, &current));
            };
            let target = link.target.as_deref().unwrap_or_default();
            let rest = current[link.path.len()..].trim_start_matches('/');
            let base =
                path::link_target(&link.path, target).ok_or_else(|| FilesError::LinkOutside {
                    path: link.path.clone(),
                    target: target.to_string(),
                })?;
            current = match (base.as_str(), rest) {
                (base, "") => base.to_string(),
                ("", rest) => rest.to_string(),
                (base, rest) => format!("{base}/{rest}"),
            };
        }
        Err(FilesError::LinkCircle { path: normal })
    }

    /// Returns the first link on a path: one of its folders, or the entry itself.
    pub fn first_link(&self, path: &str) -> Option<&Entry> {
        path.match_indices('/')
            .map(|(at, _)| at)
            .chain([path.len()])
            .filter_map(|end| self.get(&path[..end]))
            .find(|entry| entry.kind == Kind::Link)
    }

    /// Returns the error for a path without an entry.
    pub fn missing(&self, asked: &str, path: &str) -> FilesError {
        if path.is_empty() || self.has_folder(path) {
            return FilesError::NotReadable {
                path: asked.to_string(),
                kind: Kind::Folder,
            };
        }
        FilesError::NotFound {
            path: asked.to_string(),
            near: self.near(path),
        }
    }

    /// Tells whether any entry is in a folder with this path.
    pub fn has_folder(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        self.starting_at(&prefix)
            .next()
            .is_some_and(|entry| entry.path.starts_with(&prefix))
    }

    /// Returns up to two similar paths, those with the same file name first.
    fn near(&self, path: &str) -> Vec<String> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let same_name = self.entries().filter(|entry| {
            entry
                .path
                .rsplit('/')
                .next()
                .is_some_and(|it| it.eq_ignore_ascii_case(name))
        });
        let found: Vec<String> = same_name.take(2).map(|entry| entry.path.clone()).collect();
        if !found.is_empty() {
            return found;
        }
        let close = self
            .entries()
            .map(|entry| entry.path.as_str())
            .filter(|it| it.len().abs_diff(path.len()) <= 2 && it.len() < 200);
        nearest(path, close.take(20_000))
            .map(str::to_string)
            .into_iter()
            .collect()
    }
}

/// The entries of a tree under a changeset, in the order of their paths.
#[derive(Clone)]
pub struct Entries<'a> {
    base: Peekable<slice::Iter<'a, Entry>>,
    over: Peekable<slice::Iter<'a, Over>>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a Entry;

    fn next(&mut self) -> Option<&'a Entry> {
        loop {
            let Some(over) = self.over.peek() else {
                return self.base.next();
            };
            match self.base.peek() {
                Some(entry) if entry.path < over.path => return self.base.next(),
                Some(entry) if entry.path == over.path => drop(self.base.next()),
                _ => {}
            }
            if let Some(now) = self.over.next().and_then(|over| over.now.as_ref()) {
                return Some(now);
            }
        }
    }
}
