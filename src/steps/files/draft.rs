//! A changeset that is about to be changed: what it would look like, and which of its paths would differ.
//!
//! Nothing here reaches the store: whoever has made all changes hands them over as one operation. Contents are in the
//! object store, and synced, before that.

use std::collections::BTreeSet;
use std::sync::Arc;

use flowstone_engine::changeset::{ChangesetEdit, ChangesetOp, OnRace, Overlay, PathChange};
use flowstone_engine::ports::StoreOp;
use flowstone_engine::step::{Outcome, StepError};
use flowstone_lang::value::Value;

use super::error::FilesError;
use super::manifest::{Entry, Kind, Manifest};
use super::objects::Objects;
use super::path;
use super::snapshot::Content;
use super::tree::Tree;
use super::value;

/// What is written to a file is no longer than this.
pub const MAX_FILE: usize = 16 << 20;

/// See the module.
pub(super) struct Draft {
    id: String,
    /// The changeset's `res://` name.
    pub uri: String,
    seen: i64,
    pub manifest: Manifest,
    pub objects: Objects,
    touched: BTreeSet<String>,
}

impl Draft {
    pub fn new(tree: Tree, overlay: &Overlay) -> Draft {
        Draft {
            id: overlay.id.clone(),
            uri: tree.uri,
            seen: overlay.revision,
            manifest: Arc::unwrap_or_clone(tree.manifest),
            objects: tree.objects,
            touched: BTreeSet::new(),
        }
    }

    /// Writes a file, and returns whether it is new. One that is there keeps whether it may be executed, unless that
    /// is said.
    pub fn write(
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

    /// Returns the normal form of a path at which a file may be written.
    pub fn place_for_file(&self, asked: &str) -> Result<String, FilesError> {
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
                    entry.kind.words()
                ));
            }
        }
        match self.manifest.get(&path).map(|entry| entry.kind) {
            None if self.manifest.has_folder(&path) => refuse("it is a folder".into()),
            Some(kind @ (Kind::Link | Kind::Submodule)) => {
                refuse(format!("it is {}", kind.words()))
            }
            None
            | Some(Kind::Binary | Kind::File | Kind::Folder | Kind::Large | Kind::Unreadable) => {
                Ok(path)
            }
        }
    }

    /// Hands the changes over. `result` is what the operation gives, to which the changeset is added.
    pub fn commit(self, on_race: OnRace, result: Vec<(&str, Value)>) -> Result<Outcome, StepError> {
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
