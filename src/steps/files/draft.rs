//! A changeset under change: its future state, and the paths that will differ.
//!
//! Nothing here writes to the store: the caller passes all changes to it as one operation. The contents are stored and
//! synced in the object store before that.

use std::collections::BTreeSet;
use std::sync::Arc;

use flowstone_flow::changeset::{ChangesetEdit, ChangesetOp, OnRace, Overlay, PathChange};
use flowstone_flow::ports::StoreOp;
use flowstone_flow::step::{Outcome, StepError};
use flowstone_lang::value::Value;

use super::error::FilesError;
use super::manifest::{Entry, Kind, Manifest};
use super::objects::Objects;
use super::path;
use super::snapshot::Content;
use super::tree::Tree;
use super::value;

/// Maximum size of a written file.
pub(super) const MAX_FILE: usize = 16 << 20;

/// A changeset under change.
pub(super) struct Draft {
    id: String,
    /// The changeset's `res://` name.
    pub uri: String,
    seen: i64,
    pub manifest: Manifest,
    pub objects: Objects,
    touched: BTreeSet<String>,
}

/// The kinds of entries that may be replaced at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    File,
    LinkOrFile,
}

impl Draft {
    pub(super) fn new(tree: Tree, overlay: &Overlay) -> Draft {
        Draft {
            id: overlay.id.clone(),
            uri: tree.uri,
            seen: overlay.revision,
            manifest: Arc::unwrap_or_clone(tree.manifest),
            objects: tree.objects,
            touched: BTreeSet::new(),
        }
    }

    /// Writes a file, and returns whether it is new. An existing file stays executable or not, unless the change sets
    /// that.
    pub(super) fn write(
        &mut self,
        asked: &str,
        bytes: &[u8],
        executable: Option<bool>,
    ) -> Result<bool, FilesError> {
        let path = self.place_for_file(asked)?;
        if bytes.len() > MAX_FILE {
            return Err(FilesError::ContentTooLarge {
                path,
                size: bytes.len() as u64,
                limit: MAX_FILE as u64,
            });
        }
        let before = self.manifest.get(&path);
        let is_new = before.is_none();
        let mut entry = Entry {
            path: path.clone(),
            size: bytes.len() as u64,
            kind: Kind::File,
            hash: String::new(),
            lines: 0,
            executable: executable
                .unwrap_or_else(|| before.is_some_and(|before| before.executable)),
            target: None,
        };
        Content::keep(bytes, &self.objects)?.apply(&mut entry);
        self.manifest.set(&path, Some(entry));
        self.touched.insert(path);
        Ok(is_new)
    }

    /// Returns the normal path of a file and its text, to be edited.
    pub(super) fn text(&self, asked: &str) -> Result<(String, String), FilesError> {
        let entry = self.file(asked)?;
        match entry.kind {
            Kind::File => {}
            kind => {
                return Err(FilesError::NotReadable {
                    path: asked.to_string(),
                    kind,
                });
            }
        }
        let bytes = self.objects.get(&entry.hash)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok((entry.path.clone(), text)),
            Err(_) => Err(FilesError::NotText {
                path: entry.path.clone(),
            }),
        }
    }

    /// Returns the entry at a path itself, because nothing is changed through a link.
    pub(super) fn file(&self, asked: &str) -> Result<&Entry, FilesError> {
        let path = path::writable(asked)?;
        if let Some(entry) = self.manifest.get(&path) {
            return Ok(entry);
        }
        if let Some(link) = self.manifest.first_link(&path) {
            return Err(FilesError::NotWritable {
                path,
                why: format!("`{}` is a link, not a folder", link.path),
            });
        }
        Err(self.manifest.missing(asked, &path))
    }

    /// Deletes the entry at a path.
    pub(super) fn delete(&mut self, asked: &str) -> Result<String, FilesError> {
        let path = self.file(asked)?.path.clone();
        self.remove(&path);
        Ok(path)
    }

    /// Deletes the entry at a normal path.
    pub(super) fn remove(&mut self, path: &str) {
        self.manifest.set(path, None);
        self.touched.insert(path.to_string());
    }

    /// Moves a file or link; its new path must be free.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(String, String), FilesError> {
        let entry = self.file(from)?.clone();
        let origin = self.origin(&entry.path);
        let old = entry.path.clone();
        self.remove(&old);
        let to = self.place_for_file(to)?;
        if self.manifest.get(&to).is_some() {
            return Err(FilesError::Exists { path: to });
        }
        let moved = Entry {
            path: to.clone(),
            ..entry
        };
        self.put(moved, origin);
        Ok((old, to))
    }

    /// Returns the path in the source tree from which the file at a path comes, if it comes from there.
    pub(super) fn origin(&self, path: &str) -> Option<String> {
        let origin = match self.manifest.before(path) {
            Some(_) => Some(path),
            None => self.manifest.moved_from(path),
        };
        origin.map(str::to_string)
    }

    /// Puts an entry over the tree unchanged.
    pub(super) fn put(&mut self, entry: Entry, moved_from: Option<String>) {
        let path = entry.path.clone();
        let moved_from = moved_from.filter(|from| *from != path);
        self.manifest.set(&path, Some(entry));
        self.manifest.set_moved_from(&path, moved_from);
        self.touched.insert(path);
    }

    /// Returns the normal form of a path at which a file may be written.
    pub(super) fn place_for_file(&self, asked: &str) -> Result<String, FilesError> {
        self.place(asked, Place::File)
    }

    /// Returns the normal form of a path at which a file or link may be written.
    pub(super) fn place_for_link_or_file(&self, asked: &str) -> Result<String, FilesError> {
        self.place(asked, Place::LinkOrFile)
    }

    fn place(&self, asked: &str, what: Place) -> Result<String, FilesError> {
        let path = path::writable(asked)?;
        let refuse = |why: String| {
            Err(FilesError::NotWritable {
                path: path.clone(),
                why,
            })
        };
        for (end, _) in path.match_indices('/') {
            let folder = &path[..end];
            if let Some(entry) = self.manifest.get(folder) {
                return refuse(format!(
                    "`{folder}` is {}, not a folder",
                    entry.kind.describe()
                ));
            }
        }
        match self.manifest.get(&path).map(|entry| entry.kind) {
            Some(Kind::Link) if what == Place::LinkOrFile => Ok(path),
            None if self.manifest.has_folder(&path) => refuse("it is a folder".into()),
            Some(kind @ (Kind::Link | Kind::Submodule)) => {
                refuse(format!("it is {}", kind.describe()))
            }
            None
            | Some(Kind::Binary | Kind::File | Kind::Folder | Kind::Large | Kind::Unreadable) => {
                Ok(path)
            }
        }
    }

    /// Returns the operation for the store. `result` is the result of the step, to which the changeset is added.
    pub(super) fn commit(
        self,
        on_race: OnRace,
        result: Vec<(&str, Value)>,
    ) -> Result<Outcome, StepError> {
        let changeset = ("changeset", Value::from(self.uri.as_str()));
        let answer = value::answer(&value::map(result.into_iter().chain([changeset])))?;
        let changes = self.touched.iter().map(|path| PathChange {
            path: path.clone(),
            now: self.manifest.get(path).map(Entry::state),
            moved_from: self.manifest.moved_from(path).map(str::to_string),
        });
        Ok(Outcome::Commit(StoreOp::Changeset(ChangesetOp::Edit(
            ChangesetEdit {
                changes: changes.collect(),
                id: self.id,
                seen: self.seen,
                on_race,
                answer,
            },
        ))))
    }
}
