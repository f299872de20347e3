//! Captures the changes in a folder as changes of a changeset.
//!
//! The folder is compared with the tree that was written to it, not with the current state of the changeset. Changes
//! that others made to the changeset meanwhile are kept; if both changed the same path, nothing is captured.

use std::collections::BTreeMap;
use std::path::Path;

use super::apply::Status;
use super::draft::Draft;
use super::error::FilesError;
use super::folder::{self, Skipped};
use super::manifest::{Entry, Kind, Manifest};

/// A file that was changed in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Captured {
    pub path: String,
    pub from: Option<String>,
    pub status: Status,
}

/// The result of comparing a folder.
pub(super) struct Found {
    pub captured: Vec<Captured>,
    pub skipped: Vec<Skipped>,
    /// The entries that the changeset must have afterwards.
    pub taken: Vec<(String, Option<Entry>)>,
}

/// The earlier state of a folder.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    /// The tree that was written to the folder.
    pub tree: &'a Manifest,
    /// Other files in the folder at that time, which are not part of the changeset. Sorted by path.
    pub beside: &'a [Entry],
}

impl Before<'_> {
    /// Tells whether an entry was in the folder unchanged without being part of the changeset.
    fn has_beside(&self, entry: &Entry) -> bool {
        let at = self
            .beside
            .binary_search_by(|it| it.path.as_str().cmp(&entry.path));
        at.is_ok_and(|at| self.beside[at].same_content(entry))
    }
}

/// Captures the differences between `before` and `now`, which was found in `root`. `take` reads a file that the walk
/// left out because of ignore rules.
pub(super) fn capture(
    draft: &mut Draft,
    whole: Before<'_>,
    now: &Manifest,
    root: &Path,
    take: &dyn Fn(&str) -> Result<Option<Entry>, FilesError>,
) -> Result<Found, FilesError> {
    let before = whole.tree;
    let mut skipped = Vec::new();
    let mut changes: BTreeMap<String, Option<Entry>> = BTreeMap::new();
    for entry in now.entries() {
        let old = before.get(&entry.path);
        if old.is_some_and(|old| old.same_content(entry)) || whole.has_beside(entry) {
            continue;
        }
        match folder::why_not(entry) {
            // The file was not written to the folder, so its absence means nothing.
            Some(_) if old.is_some_and(|old| folder::why_not(old).is_some()) => {}
            Some(why) => skipped.push(Skipped {
                path: entry.path.clone(),
                why,
            }),
            None => {
                changes.insert(entry.path.clone(), Some(entry.clone()));
            }
        }
    }
    for entry in before.entries() {
        let is_listed = now.get(&entry.path).is_some();
        if is_listed || folder::why_not(entry).is_some() {
            continue;
        }
        let there = match folder::is_at(root, &entry.path) {
            true => take(&entry.path)?,
            false => None,
        };
        match there {
            Some(there) if there.same_content(entry) => {}
            there => {
                changes.insert(entry.path.clone(), there);
            }
        }
    }
    // Changes that the changeset already contains are not written again.
    changes.retain(|path, change| !folder::same(change.as_ref(), draft.manifest.get(path)));
    let has_changed = |path: &&String| !folder::same(before.get(path), draft.manifest.get(path));
    if let Some(path) = changes.keys().find(has_changed) {
        return Err(FilesError::ChangedMeanwhile { path: path.clone() });
    }
    let taken = changes.clone().into_iter().collect();
    let captured = lay(draft, before, changes)?;
    Ok(Found {
        captured,
        skipped,
        taken,
    })
}

/// Applies the changes to the tree. A file that disappears while another with the same content appears was moved.
fn lay(
    draft: &mut Draft,
    before: &Manifest,
    changes: BTreeMap<String, Option<Entry>>,
) -> Result<Vec<Captured>, FilesError> {
    let mut gone: BTreeMap<String, Vec<(String, Option<String>)>> = BTreeMap::new();
    let mut captured = Vec::new();
    for path in changes
        .iter()
        .filter(|(_, now)| now.is_none())
        .map(|(path, _)| path)
    {
        if let Some(old) = before
            .get(path)
            .filter(|old| old.size > 0 && old.kind != Kind::Link)
        {
            let lost = (path.clone(), draft.origin(path));
            gone.entry(old.hash.clone()).or_default().push(lost);
        }
        draft.remove(path);
    }
    let mut moved = Vec::new();
    for (path, now) in &changes {
        let Some(entry) = now else { continue };
        draft.place_for_link_or_file(path)?;
        let is_new = before.get(path).is_none();
        let from = match is_new {
            true => gone.get_mut(&entry.hash).and_then(Vec::pop),
            false => None,
        };
        let (from, origin) = match from {
            Some((from, origin)) => (Some(from), origin),
            None => (None, draft.manifest.moved_from(path).map(str::to_string)),
        };
        draft.put(entry.clone(), origin);
        moved.extend(from.clone());
        captured.push(Captured {
            path: path.clone(),
            status: match (&from, is_new) {
                (Some(_), _) => Status::Renamed,
                (None, true) => Status::Added,
                (None, false) => Status::Modified,
            },
            from,
        });
    }
    let lost = changes.into_iter().filter(|(_, now)| now.is_none());
    let lost = lost.filter(|(path, _)| !moved.contains(path));
    captured.extend(lost.map(|(path, _)| Captured {
        path,
        from: None,
        status: Status::Deleted,
    }));
    captured.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(captured)
}

/// Rejects a folder outside of the project.
pub(super) fn check_root(root: &Path, allowed: &[&Path], shown: &str) -> Result<(), FilesError> {
    let canonical = |path: &Path| std::fs::canonicalize(path).ok();
    let is_inside = |root: &Path| {
        let mut allowed = allowed.iter().filter_map(|it| canonical(it));
        allowed.any(|allowed| root.starts_with(allowed))
    };
    match canonical(root) {
        None => Err(FilesError::BadFolder {
            path: shown.to_string(),
            cause: "it does not exist".into(),
        }),
        Some(root) if is_inside(&root) => Ok(()),
        Some(_) => Err(FilesError::BadPath {
            path: shown.to_string(),
            why: "it is outside of the project",
        }),
    }
}
