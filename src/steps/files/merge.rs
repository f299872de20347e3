//! Writes a tree into an existing folder: only files of the tree are written and removed.
//!
//! Everything that would be lost is found before anything is changed. New contents are written to temporary files and
//! synced; then the record is written, and only then are they renamed. An interrupted merge is repeated: files that are
//! in place are kept, and the contents of the others are in the source or the record.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use flowstone_flow::rooted::Root;

use super::error::FilesError;
use super::folder::{self, Record, Rendered, Rendering, Skipped, Target};
use super::manifest::{Entry, Kind, Manifest};
use super::objects;
use super::place::{self, Perms};
use super::snapshot::{self, Folder, Limits};

/// The changes to make in a folder.
struct Plan<'a> {
    write: Vec<&'a Entry>,
    remove: Vec<&'a str>,
    skipped: Vec<Skipped>,
    /// The number of files and links in the folder afterwards.
    files: usize,
    /// The current files of the folder that are not part of the tree.
    beside: Vec<Entry>,
}

/// Writes a tree into the folder at `place`.
pub(super) fn merge(rendering: &Rendering<'_>, place: &Path) -> Result<Rendered, FilesError> {
    let plan = Planning::new(rendering, place)?.plan()?;
    let target = rendering.target;
    let mark = mark(target);
    let root = Root::open(place).map_err(|error| at(target, ".", &error))?;
    let fresh: Vec<String> = plan
        .write
        .iter()
        .map(|entry| fresh_place(&root, &entry.path, &mark))
        .collect();
    let record = Record {
        beside: plan.beside,
        ..Record::of(rendering, place)
    };
    let write = |idx: usize| put_beside(rendering, &root, plan.write[idx], &fresh[idx]);
    let written = folder::in_parallel(plan.write.len(), rendering.cancelled, &write)
        .and_then(|()| record.save(&target.records, place));
    if let Err(error) = written {
        for fresh in &fresh {
            root.remove(fresh).ok();
        }
        return Err(error);
    }
    for path in &plan.remove {
        remove(&root, path).map_err(|error| at(target, path, &error))?;
    }
    for (entry, fresh) in plan.write.iter().zip(&fresh) {
        put_in_place(&root, &entry.path, fresh).map_err(|error| at(target, &entry.path, &error))?;
    }
    for path in &plan.remove {
        prune(place, path);
    }
    let changed = plan.write.iter().map(|entry| entry.path.as_str());
    sync_folders(place, changed.chain(plan.remove.iter().copied()));
    Ok(Rendered {
        files: plan.files,
        skipped: plan.skipped,
        written: plan.write.len(),
        removed: plan.remove.len(),
    })
}

/// The facts that the plan is made from.
struct Planning<'a, 'b> {
    rendering: &'a Rendering<'b>,
    place: &'a Path,
    /// The contents of the folder, except for ignored files.
    there: Manifest,
    /// The changes that were captured from the folder since it was filled.
    taken: HashMap<&'a str, &'a Entry>,
    /// Whether any existing file may be replaced.
    overwrite: bool,
    mark: String,
}

impl<'a, 'b> Planning<'a, 'b> {
    fn new(rendering: &'a Rendering<'b>, place: &'a Path) -> Result<Self, FilesError> {
        let (ignored, hidden) = rendering.manifest.rules();
        let there = snapshot::manifest(&Folder {
            environment: true,
            path: place.to_path_buf(),
            shown: rendering.target.shown.clone(),
            ignored,
            hidden,
            parents: false,
            without: rendering.target.without.clone(),
            limits: Limits::NONE,
        })?;
        let earlier = rendering.earlier;
        let taken = earlier.iter().flat_map(|it| &it.record.taken);
        Ok(Planning {
            there,
            taken: taken
                .filter_map(|(path, now)| Some((path.as_str(), now.as_ref()?)))
                .collect(),
            overwrite: rendering.target.overwrite
                || earlier.is_some_and(|it| it.record.by == rendering.target.by),
            mark: mark(rendering.target),
            rendering,
            place,
        })
    }

    fn plan(&self) -> Result<Plan<'a>, FilesError> {
        let mut plan = Plan {
            write: Vec::new(),
            remove: Vec::new(),
            skipped: Vec::new(),
            files: 0,
            beside: self.beside(),
        };
        let mut differ = Vec::new();
        for change in self.rendering.manifest.changed() {
            if let (Some(before), None) = (change.before, change.now)
                && let Some(there) = self.removable(before)?
            {
                match self.may_replace(&there) {
                    true => plan.remove.push(change.path),
                    false => differ.push(change.path.to_string()),
                }
            }
        }
        let links = folder::Links::of(self.rendering.manifest, Some(&self.there));
        let going: BTreeSet<&str> = plan.remove.iter().copied().collect();
        for entry in self.rendering.manifest.entries() {
            let why = links.why_not(entry).or_else(|| self.is_ours(&entry.path));
            if let Some(why) = why {
                plan.skipped.push(Skipped {
                    path: entry.path.clone(),
                    why,
                });
                continue;
            }
            plan.files += 1;
            self.check_way(&entry.path, &going)?;
            match self.at(&entry.path)? {
                Some(there) if there.same_content(entry) => {}
                Some(there) if !self.may_replace(&there) => differ.push(entry.path.clone()),
                _ => plan.write.push(entry),
            }
        }
        match differ.is_empty() {
            true => Ok(plan),
            false => {
                differ.sort();
                Err(FilesError::Differs {
                    path: self.rendering.target.shown.clone(),
                    files: differ,
                })
            }
        }
    }

    /// Returns the current entry at a path of the folder, if it is a file or a link.
    fn at(&self, path: &str) -> Result<Option<Entry>, FilesError> {
        if let Some(entry) = self.there.get(path)
            && entry.kind != Kind::Unreadable
        {
            return Ok(Some(entry.clone()));
        }
        match folder::is_at(self.place, path) {
            true => snapshot::state(self.place, path),
            false => Ok(None),
        }
    }

    /// Returns the current entry of a file that the changeset has deleted, if this step may remove it.
    fn removable(&self, before: &Entry) -> Result<Option<Entry>, FilesError> {
        let is_kept = match before.kind {
            Kind::Submodule | Kind::Unreadable | Kind::Folder => true,
            Kind::Binary | Kind::File | Kind::Large | Kind::Link => {
                super::path::writable(&before.path).is_err()
            }
        };
        match is_kept || self.is_ours(&before.path).is_some() {
            true => Ok(None),
            false => self.at(&before.path),
        }
    }

    /// Tells whether replacing an entry loses nothing: the source has its content, or it was written or captured
    /// before.
    fn may_replace(&self, there: &Entry) -> bool {
        let path = there.path.as_str();
        let is_known = |known: Option<&Entry>| {
            known.is_some_and(|known| {
                let is_large = known.kind == Kind::Large && known.size == there.size;
                is_large || known.same_content(there)
            })
        };
        let earlier = self.rendering.earlier.and_then(|it| it.tree.as_ref());
        self.overwrite
            || is_known(self.rendering.manifest.before(path))
            || is_known(earlier.and_then(|tree| tree.get(path)))
            || is_known(self.taken.get(path).copied())
    }

    /// Returns the reason why nothing is written at a path of the home folder.
    fn is_ours(&self, path: &str) -> Option<&'static str> {
        let home = &self.rendering.target.without;
        let is_inside = !home.as_os_str().is_empty() && self.place.join(path).starts_with(home);
        is_inside.then_some("it is inside the folder that holds the project's data")
    }

    /// Rejects a file below something that is not a folder, and one that would replace a folder with other contents.
    fn check_way(&self, path: &str, going: &BTreeSet<&str>) -> Result<(), FilesError> {
        let refuse = |why: String| {
            Err(FilesError::BadTarget {
                path: self.rendering.target.shown.clone(),
                why,
            })
        };
        for (end, _) in path.match_indices('/') {
            let folder = &path[..end];
            match fs::symlink_metadata(self.place.join(folder)) {
                Ok(found) if found.is_dir() => {}
                Ok(_) if going.contains(folder) => break,
                Ok(found) => {
                    let what = match found.file_type().is_symlink() {
                        true => "a link",
                        false => "a file",
                    };
                    return refuse(format!(
                        "`{folder}` there is {what}, and `{path}` needs a folder"
                    ));
                }
                Err(_) => break,
            }
        }
        let place = self.place.join(path);
        match fs::symlink_metadata(&place) {
            Ok(found) if found.is_dir() && !self.vanishes(&place, path, going) => refuse(format!(
                "`{path}` there is a folder with other contents, and the tree has a file of that name"
            )),
            _ => Ok(()),
        }
    }

    /// Tells whether a folder becomes empty when these paths are removed.
    fn vanishes(&self, folder: &Path, path: &str, going: &BTreeSet<&str>) -> bool {
        let Ok(inside) = fs::read_dir(folder) else {
            return false;
        };
        let mut some = false;
        for entry in inside {
            let Ok(entry) = entry else { return false };
            some = true;
            let inner = format!("{path}/{}", entry.file_name().to_string_lossy());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let goes = match is_folder {
                true => self.vanishes(&entry.path(), &inner, going),
                false => going.contains(inner.as_str()),
            };
            if !goes {
                return false;
            }
        }
        some
    }

    /// Returns the entries of the folder that are not in the tree.
    fn beside(&self) -> Vec<Entry> {
        let leftover = format!(".new-{}", self.mark);
        let manifest = self.rendering.manifest;
        let beside = self.there.entries().filter(|entry| {
            manifest.get(&entry.path).is_none()
                && manifest.before(&entry.path).is_none()
                && !entry.path.ends_with(&leftover)
        });
        beside.cloned().collect()
    }
}

/// Returns the mark that distinguishes the temporary files of one step from those of another.
fn mark(target: &Target) -> String {
    objects::hash(target.by.as_bytes())[..8].to_string()
}

/// Returns the path for the new content of a path until it is renamed: in the closest existing folder.
fn fresh_place(root: &Root, path: &str, mark: &str) -> String {
    let ends = path.match_indices('/').map(|(end, _)| end);
    let folders = ends.map(|end| &path[..end]);
    let is_folder = |folder: &&str| root.metadata(folder).is_ok_and(|found| found.is_dir());
    let folder = folders.take_while(is_folder).last();
    let name = &objects::hash(path.as_bytes())[..12];
    match folder {
        Some(folder) => format!("{folder}/.{name}.new-{mark}"),
        None => format!(".{name}.new-{mark}"),
    }
}

/// Writes the new content of an entry next to its place, and syncs it.
fn put_beside(
    rendering: &Rendering<'_>,
    root: &Root,
    entry: &Entry,
    fresh: &str,
) -> Result<(), FilesError> {
    let failed = |error: io::Error| at(rendering.target, &entry.path, &error);
    if entry.kind == Kind::Link {
        // Left over from a crash.
        root.remove(fresh).ok();
        let target = entry.target.as_deref().unwrap_or_default();
        return root.make_link(target, fresh).map_err(failed);
    }
    let bytes = rendering.objects.get(&entry.hash)?;
    let perms = Perms::of(root, &entry.path, Some(entry.executable));
    place::write_synced(root, fresh, &bytes, &perms).map_err(failed)
}

fn remove(root: &Root, path: &str) -> io::Result<()> {
    match root.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn put_in_place(root: &Root, path: &str, fresh: &str) -> io::Result<()> {
    if let Some((folder, _)) = path.rsplit_once('/') {
        root.make_folders(folder)?;
    }
    if root.metadata(path).is_ok_and(|found| found.is_dir()) {
        clear_folders(&root.path().join(path))?;
    }
    root.rename(fresh, path)
}

/// Removes a folder that contains only folders.
fn clear_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        clear_folders(&entry?.path())?;
    }
    fs::remove_dir(folder)
}

/// Removes the folders of a removed file that have become empty.
fn prune(root: &Path, path: &str) {
    let mut path = path;
    while let Some((folder, _)) = path.rsplit_once('/') {
        if fs::remove_dir(root.join(folder)).is_err() {
            return;
        }
        path = folder;
    }
}

/// Syncs folders, so that renames and removals survive a loss of power. A file system that cannot do so does not fail
/// the step.
fn sync_folders<'a>(root: &Path, paths: impl Iterator<Item = &'a str>) {
    let folders: BTreeSet<&str> = paths
        .map(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder))
        .collect();
    for folder in folders {
        place::sync_folder(&root.join(folder));
    }
}

fn at(target: &Target, path: &str, error: &io::Error) -> FilesError {
    match super::error::is_full(error) {
        true => FilesError::Full {
            path: target.shown.clone(),
        },
        false => FilesError::BadTarget {
            path: target.shown.clone(),
            why: format!("`{path}`: {}", snapshot::plain(error)),
        },
    }
}
