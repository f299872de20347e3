//! The manifest of a source tree: what it holds, by content. Immutable once written.
//!
//! Stored as JSON with a version, so that a later build reads an earlier tree. Entries are sorted
//! by path, and equal trees have equal bytes, hence equal ids.

use flowstone_engine::diagnostic::nearest;
use serde::{Deserialize, Serialize};

use super::error::FilesError;
use super::path;

const VERSION: u32 = 1;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A file that is text.
    File,
    /// A file that is not text: listed, never read as such.
    Binary,
    /// A file above the size limit: listed, content not kept.
    Large,
    /// A symbolic link; `target` says where to.
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

    pub(super) fn words(self) -> &'static str {
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
    /// The content's address in the object store; empty where none is kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// How many lines; a last one without a newline counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lines: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub executable: bool,
    /// Where a link points to, as it is written in the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// All entries of a tree, sorted by path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    version: u32,
    entries: Vec<Entry>,
}

impl Manifest {
    /// Returns the manifest of these entries.
    pub fn new(mut entries: Vec<Entry>) -> Manifest {
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Manifest {
            version: VERSION,
            entries,
        }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the bytes that are stored.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a manifest holds only text and numbers")
    }

    /// Reads what `encode` wrote.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, FilesError> {
        let manifest: Manifest =
            serde_json::from_slice(bytes).map_err(|error| FilesError::Damaged {
                cause: format!("its list of files cannot be read ({error})"),
            })?;
        if manifest.version != VERSION {
            return Err(FilesError::Damaged {
                cause: format!(
                    "its list of files has version {}, this build reads {VERSION}",
                    manifest.version
                ),
            });
        }
        Ok(manifest)
    }

    /// Returns the entry at a normal path, without following links.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        let at = self
            .entries
            .binary_search_by(|entry| entry.path.as_str().cmp(path))
            .ok()?;
        self.entries.get(at)
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

    /// Returns the link that is `path` or the first of its folders that is one.
    fn first_link(&self, path: &str) -> Option<&Entry> {
        path.match_indices('/')
            .map(|(at, _)| at)
            .chain([path.len()])
            .filter_map(|end| self.get(&path[..end]))
            .find(|entry| entry.kind == Kind::Link)
    }

    fn missing(&self, asked: &str, path: &str) -> FilesError {
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

    fn has_folder(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        let at = self
            .entries
            .partition_point(|entry| entry.path.as_str() < prefix.as_str());
        self.entries
            .get(at)
            .is_some_and(|entry| entry.path.starts_with(&prefix))
    }

    /// Returns up to two paths that look like `path`: the same file name elsewhere first.
    fn near(&self, path: &str) -> Vec<String> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let same_name = self.entries.iter().filter(|entry| {
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
            .entries
            .iter()
            .map(|entry| entry.path.as_str())
            .filter(|it| it.len().abs_diff(path.len()) <= 2 && it.len() < 200);
        nearest(path, close.take(20_000))
            .map(str::to_string)
            .into_iter()
            .collect()
    }
}
