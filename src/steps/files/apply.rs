//! Applies a diff or a list of replacements to a changeset, all or nothing.
//!
//! All files of a diff are read in their state before the diff and changed together afterwards, so files may be
//! swapped.

use std::collections::BTreeMap;

use super::draft::Draft;
use super::edit::{self, Which};
use super::error::FilesError;
use super::patch::{self, FilePatch, Mark};

/// The outcome of applying a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Applied {
    pub path: String,
    /// The path before the change.
    pub from: Option<String>,
    pub status: Status,
    /// The number of added lines.
    pub added: usize,
    pub removed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Added,
    Deleted,
    Modified,
    Renamed,
}

impl Status {
    /// Returns the keyword that flows see.
    pub(super) fn name(self) -> &'static str {
        match self {
            Status::Added => "added",
            Status::Deleted => "deleted",
            Status::Modified => "modified",
            Status::Renamed => "renamed",
        }
    }
}

/// An entry of `:edits`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub path: String,
    /// The text to replace; empty for a new file.
    pub old: String,
    pub new: String,
    pub which: Which,
}

/// The state of a path after a diff.
struct Written {
    text: String,
    executable: Option<bool>,
    origin: Option<String>,
}

/// Applies a diff.
pub(super) fn diff(draft: &mut Draft, patches: &[FilePatch]) -> Result<Vec<Applied>, FilesError> {
    let mut applied = Vec::with_capacity(patches.len());
    let mut gone = Vec::new();
    let mut written: BTreeMap<String, Written> = BTreeMap::new();
    for patch in patches {
        let (from, executable, text) = match &patch.old {
            None => (None, None, String::new()),
            Some(old) => {
                let (path, text) = draft.text(old)?;
                (Some(path), Some(draft.file(old)?.executable), text)
            }
        };
        let asked = patch.new.as_deref().or(patch.old.as_deref());
        let text =
            patch::apply(&text, &patch.hunks).map_err(|misfit| FilesError::HunkMismatch {
                path: asked.unwrap_or_default().to_string(),
                hunk: misfit.hunk,
                header: misfit.header,
                why: misfit.why,
            })?;
        let (path, status) = match (&patch.new, from) {
            (None, from) => {
                let path = from.unwrap_or_default();
                if !text.is_empty() {
                    return Err(FilesError::PatchMisfit {
                        why: format!(
                            "it deletes the file, but leaves {} lines",
                            text.lines().count()
                        ),
                        path,
                    });
                }
                gone.push(path.clone());
                applied.push(line(patch, path, None, Status::Deleted));
                continue;
            }
            (Some(new), None) => (super::path::writable(new)?, Status::Added),
            (Some(new), Some(_)) if patch.renames => (super::path::writable(new)?, Status::Renamed),
            (Some(_), Some(path)) => (path, Status::Modified),
        };
        let old = match (&patch.old, status) {
            (Some(old), Status::Renamed) => {
                let old = super::path::normal(old)?;
                gone.push(old.clone());
                Some(old)
            }
            _ => None,
        };
        let written_here = Written {
            text,
            executable: patch.executable.or(executable),
            origin: old.as_deref().and_then(|old| draft.origin(old)),
        };
        if written.insert(path.clone(), written_here).is_some() {
            return Err(FilesError::PatchMisfit {
                path,
                why: "it is changed twice".into(),
            });
        }
        applied.push(line(patch, path, old, status));
    }
    for path in &gone {
        draft.remove(path);
    }
    for (path, it) in written {
        let is_new = applied.iter().any(|line| {
            line.path == path && matches!(line.status, Status::Added | Status::Renamed)
        });
        if is_new && draft.manifest.get(&path).is_some() {
            return Err(FilesError::Exists { path });
        }
        draft.write(&path, it.text.as_bytes(), it.executable)?;
        if is_new && it.origin.as_deref() != Some(path.as_str()) {
            draft.manifest.set_moved_from(&path, it.origin);
        }
    }
    Ok(applied)
}

fn line(patch: &FilePatch, path: String, from: Option<String>, status: Status) -> Applied {
    let count = |mark| {
        let lines = patch.hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.filter(|line| line.mark == mark).count()
    };
    Applied {
        path,
        from,
        status,
        added: count(Mark::In),
        removed: count(Mark::Out),
    }
}

/// Makes replacements, one after the other.
pub(super) fn edits(draft: &mut Draft, edits: &[Edit]) -> Result<Vec<Applied>, FilesError> {
    let mut applied: BTreeMap<String, Applied> = BTreeMap::new();
    for it in edits {
        let (path, status, times) = match it.old.is_empty() {
            true => {
                let path = draft.place_for_file(&it.path)?;
                if draft.manifest.get(&path).is_some() {
                    return Err(FilesError::Exists { path });
                }
                draft.write(&path, it.new.as_bytes(), None)?;
                (path, Status::Added, 1)
            }
            false => {
                let (path, text) = draft.text(&it.path)?;
                let (text, times) = edit::replace(&path, &text, (&it.old, &it.new), it.which)?;
                draft.write(&path, text.as_bytes(), None)?;
                (path, Status::Modified, times)
            }
        };
        let line = applied.entry(path.clone()).or_insert(Applied {
            path,
            from: None,
            status,
            added: 0,
            removed: 0,
        });
        line.added += it.new.lines().count() * times;
        line.removed += it.old.lines().count() * times;
    }
    Ok(applied.into_values().collect())
}
