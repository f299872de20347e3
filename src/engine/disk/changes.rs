//! The flow files of a project, and detection of changes in them.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::rooted::read_regular;

const ENDINGS: &[&str] = &["clj", "edn"];
/// Folders that never contain flows.
const SKIPPED: &[&str] = &["node_modules", "target"];
/// The name that a file with schedules contains.
const MARKS: &[&str] = &[":schedules", ":triggers"];
/// Maximum number of files that are checked.
const MOST: usize = 10_000;

/// A file with its state.
pub(crate) struct Found {
    pub path: PathBuf,
    changed: Option<SystemTime>,
    length: u64,
}

impl Found {
    /// Tells whether the file may contain a flow, by its name.
    pub(crate) fn is_source(&self) -> bool {
        let ending = self.path.extension().unwrap_or_default();
        ENDINGS.iter().any(|known| ending == *known)
    }

    /// Tells whether the file may be a flow with schedules.
    pub(crate) fn may_plan(&self) -> bool {
        self.is_source()
            && read_regular(&self.path)
                .is_ok_and(|text| MARKS.iter().any(|mark| text.contains(mark)))
    }
}

/// The states of files. Everything that a flow includes is in a folder of flows and counts too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp(Option<u64>);

impl Stamp {
    /// Returns the state of the files of flows, and of those with code that they share.
    pub(crate) fn of(files: &[Found], shared: &[Found]) -> Stamp {
        let mut hasher = DefaultHasher::new();
        for file in files.iter().chain(shared) {
            (&file.path, file.changed, file.length).hash(&mut hasher);
        }
        Stamp(Some(hasher.finish()))
    }
}

/// Returns the files below paths, in order. Unreadable files are left out.
pub(crate) fn gather(paths: &[PathBuf]) -> Vec<Found> {
    let mut found = Vec::new();
    for path in paths {
        walk(path, &mut found);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup_by(|one, other| one.path == other.path);
    found
}

fn walk(path: &Path, found: &mut Vec<Found>) {
    let Ok(about) = fs::metadata(path) else {
        return;
    };
    if found.len() >= MOST {
        return;
    }
    if !about.is_dir() {
        found.push(Found {
            path: path.to_path_buf(),
            changed: about.modified().ok(),
            length: about.len(),
        });
        return;
    }
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        // A link to a folder may lead back to this one.
        let is_loop = is_link && entry.path().is_dir();
        if !name.starts_with('.') && !SKIPPED.contains(&&*name) && !is_loop {
            walk(&entry.path(), found);
        }
    }
}
