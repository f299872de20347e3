//! Trees as folders on disk: `:materialize` writes them, `:capture` reads them.
//!
//! A new folder is written next to its place and renamed, so that no reader finds a partial one; an existing folder is
//! merged. A record next to the object store contains the tree that was written to a folder. A later capture compares
//! the folder with that tree, and a step that is performed again after a crash may replace its own files.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flowstone_flow::rooted::Root;
use serde::{Deserialize, Serialize};

use super::error::{FilesError, is_full};
use super::manifest::{Entry, Kind, Manifest};
use super::objects::{self, Objects};
use super::{merge, path, place};

/// A tree to write, with its destination.
pub(super) struct Rendering<'a> {
    pub manifest: &'a Manifest,
    pub objects: &'a Objects,
    /// The hash of the manifest without its changeset.
    pub base: &'a str,
    pub target: &'a Target,
    /// The tree that was written to the folder before.
    pub earlier: Option<&'a Earlier>,
    pub cancelled: &'a AtomicBool,
}

/// The tree that was written to a folder before, as far as it is still known.
pub(super) struct Earlier {
    pub record: Record,
    pub tree: Option<Manifest>,
}

/// The result of writing a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendered {
    /// The number of files and links of the tree that are in the folder now.
    pub files: usize,
    pub skipped: Vec<Skipped>,
    /// The number of those that were missing or different before.
    pub written: usize,
    /// The number of files that were removed because the tree has deleted them.
    pub removed: usize,
}

/// A folder to fill.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub path: PathBuf,
    /// The path as it is shown to people.
    pub shown: String,
    /// The step that fills the folder: it may replace its own files from an earlier attempt.
    pub by: String,
    /// Whether files of the same names are replaced, independent of their content.
    pub overwrite: bool,
    /// Whether the folder belongs to the run alone, and need not survive a loss of power.
    pub is_temporary: bool,
    /// The project's home folder, which is never written to; empty for a folder inside it.
    pub without: PathBuf,
    /// The place of the records.
    pub records: Records,
}

/// The records of which tree was written to which folder.
#[derive(Debug, Clone)]
pub(super) struct Records {
    pub folder: PathBuf,
    /// The project's folder, which may be moved with its contents.
    pub project: PathBuf,
}

impl Records {
    /// Returns the path of the record about a folder, which is given by its canonical path.
    fn place(&self, of: &Path) -> PathBuf {
        let name = objects::hash(self.inside(of).as_os_str().as_encoded_bytes());
        self.folder.join(format!("{}.json", &name[..32]))
    }

    /// Returns the path of a folder relative to the project, given its canonical path.
    fn inside(&self, of: &Path) -> PathBuf {
        let project = fs::canonicalize(&self.project).unwrap_or_else(|_| self.project.clone());
        of.strip_prefix(&project).unwrap_or(of).to_path_buf()
    }
}

/// A file that was left out, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Skipped {
    pub path: String,
    pub why: &'static str,
}

/// The record of a tree that was written to a folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub by: String,
    /// The folder that the record is about: relative to the project, if it is inside.
    #[serde(default)]
    pub folder: String,
    /// The hash of the manifest without its changeset.
    pub base: String,
    /// The changes of the changeset.
    pub over: Vec<(String, Option<Entry>)>,
    /// The changes that were captured from the folder since, if the changeset contains them.
    #[serde(default)]
    pub taken: Vec<(String, Option<Entry>)>,
    /// The other files in the folder at that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Entry>,
}

impl Record {
    /// Returns the record of a tree that is written to the folder at `place`.
    pub(super) fn of(rendering: &Rendering<'_>, place: &Path) -> Record {
        Record {
            by: rendering.target.by.clone(),
            folder: text(&rendering.target.records.inside(place)),
            base: rendering.base.to_string(),
            over: rendering.manifest.over(),
            taken: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// Returns the record in a file, if it can be read.
    pub(super) fn at(file: &Path) -> Option<Record> {
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    }

    /// Returns the place of the record's folder.
    pub(super) fn place(&self, records: &Records) -> Option<PathBuf> {
        (!self.folder.is_empty()).then(|| records.project.join(&self.folder))
    }

    /// Returns the record about a folder, if there is one that can be read.
    pub(super) fn load(records: &Records, folder: &Path) -> Option<Record> {
        Record::at(&records.place(folder))
    }

    /// Writes the record about a folder.
    pub(super) fn save(&self, records: &Records, folder: &Path) -> Result<(), FilesError> {
        let place = records.place(folder);
        let written = serde_json::to_vec(self)
            .map_err(io::Error::from)
            .and_then(|bytes| objects::replace_file(&place, &bytes));
        written.map_err(|error| FilesError::storage(&records.folder, &error))
    }

    /// Treats captured changes as written ones, if the changeset contains all of them. Otherwise the capture was
    /// interrupted, and is repeated.
    pub(super) fn settle(&mut self, changeset: &Manifest) {
        let has =
            |(path, taken): &(String, Option<Entry>)| same(taken.as_ref(), changeset.get(path));
        let taken = std::mem::take(&mut self.taken);
        if taken.iter().all(has) {
            self.over.extend(taken);
        }
    }
}

/// Returns the canonical form of a folder's path, whose last part may be missing.
pub(super) fn canonical(folder: &Path) -> io::Result<PathBuf> {
    if let Ok(found) = fs::canonicalize(folder) {
        return Ok(found);
    }
    let parent = folder.parent().unwrap_or(Path::new("."));
    Ok(fs::canonicalize(parent)?.join(folder.file_name().unwrap_or_default()))
}

/// Writes a tree to a folder.
pub(super) fn render(rendering: &Rendering<'_>) -> Result<Rendered, FilesError> {
    let target = rendering.target;
    let failed = |error: &io::Error| refused(target, error);
    if is_there(target)? {
        let place = fs::canonicalize(&target.path).map_err(|error| failed(&error))?;
        return merge::merge(rendering, &place);
    }
    let parent = target.path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|error| failed(&error))?;
    // The path must be the same for every way to the folder.
    let place = canonical(&target.path).map_err(|error| failed(&error))?;
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let mark = &objects::hash(target.by.as_bytes())[..8];
    let fresh = place.with_file_name(format!(".{name}.new-{mark}"));
    // Left over from a crash.
    remove(&fresh).map_err(|error| failed(&error))?;
    let filled = fill(rendering, &fresh).and_then(|filled| {
        // The record comes first: without it, the folder would later be taken for another owner's.
        Record::of(rendering, &place).save(&target.records, &place)?;
        fs::rename(&fresh, &place).map_err(|error| failed(&error))?;
        place::sync_folder(place.parent().unwrap_or(Path::new(".")));
        Ok(filled)
    });
    if filled.is_err() {
        remove(&fresh).ok();
    }
    filled
}

/// Tells whether the folder exists and can be merged with the tree.
fn is_there(target: &Target) -> Result<bool, FilesError> {
    let refuse = |why: &str| {
        Err(FilesError::BadTarget {
            path: target.shown.clone(),
            why: why.to_string(),
        })
    };
    match fs::symlink_metadata(&target.path) {
        Err(_) => Ok(false),
        // The project's own folder may be reached through a link.
        Ok(found) if found.file_type().is_symlink() && !target.is_project() => {
            refuse("it is a link")
        }
        Ok(found) if found.is_file() => refuse("it is a file"),
        Ok(_) => Ok(true),
    }
}

impl Target {
    fn is_project(&self) -> bool {
        self.path == self.records.project
    }
}

/// Returns the error for a folder that cannot be written.
fn refused(target: &Target, error: &io::Error) -> FilesError {
    let path = target.shown.clone();
    match is_full(error) {
        true => FilesError::Full { path },
        false => FilesError::BadTarget {
            path,
            why: super::snapshot::plain(error),
        },
    }
}

/// Tells whether a path has the same content in two trees.
pub(super) fn same(one: Option<&Entry>, other: Option<&Entry>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.same_content(other),
        (None, None) => true,
        _ => false,
    }
}

/// Returns a path as text. A path that is not text is not found again, and its record stays.
fn text(path: &Path) -> String {
    path.to_str().unwrap_or_default().to_owned()
}

/// Removes a folder that a step created, if it exists.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes all files into a new folder; links last, so that nothing is written through one.
fn fill(rendering: &Rendering<'_>, folder: &Path) -> Result<Rendered, FilesError> {
    let mut skipped = Vec::new();
    let (mut files, mut links) = (Vec::new(), Vec::new());
    let tree = Links::of(rendering.manifest, None);
    for entry in rendering.manifest.entries() {
        match tree.why_not(entry) {
            Some(why) => skipped.push(Skipped {
                path: entry.path.clone(),
                why,
            }),
            None if entry.kind == Kind::Link => links.push(entry),
            None => files.push(entry),
        }
    }
    let failed = |error: io::Error| refused(rendering.target, &error);
    fs::create_dir(folder).map_err(failed)?;
    let root = Root::open(folder).map_err(failed)?;
    make_folders(&root, files.iter().chain(&links).map(|entry| &*entry.path)).map_err(failed)?;
    let cancelled = rendering.cancelled;
    in_parallel(files.len(), cancelled, &|idx| {
        write(rendering, &root, files[idx])
    })?;
    for entry in &links {
        let target = entry.target.as_deref().unwrap_or_default();
        root.make_link(target, &entry.path).map_err(failed)?;
    }
    if !rendering.target.is_temporary {
        // Synced after all files are written, because the first sync then writes most of the others too.
        in_parallel(files.len(), cancelled, &|idx| {
            let file = root.file(&files[idx].path);
            file.and_then(|file| file.sync_all()).map_err(failed)
        })?;
    }
    let count = files.len() + links.len();
    Ok(Rendered {
        files: count,
        skipped,
        written: count,
        removed: 0,
    })
}

/// The links of a tree, through which other links may lead.
pub(super) struct Links<'a> {
    manifest: &'a Manifest,
    /// The contents of the folder before writing.
    there: Option<&'a Manifest>,
}

impl<'a> Links<'a> {
    /// Returns the links of a tree that is written over the contents of `there`.
    pub(super) fn of(manifest: &'a Manifest, there: Option<&'a Manifest>) -> Links<'a> {
        Links { manifest, there }
    }

    /// Returns the reason why an entry is not written to disk, if there is one.
    pub(super) fn why_not(&self, entry: &Entry) -> Option<&'static str> {
        why_not(entry).or_else(|| {
            let target = entry.target.as_deref().unwrap_or_default();
            let leaves = entry.kind == Kind::Link && !self.stays(&entry.path, target);
            leaves.then_some("it is a link that points out of the tree")
        })
    }

    /// Tells whether a link stays inside the tree when a system follows it through the tree's other links. Each step
    /// counts, even one that leaves the tree and returns.
    fn stays(&self, at: &str, target: &str) -> bool {
        /// Maximum number of links on one path, as in operating systems.
        const MOST_LINKS: usize = 40;
        let mut place: Vec<&str> = at.split('/').collect();
        place.pop();
        // The parts to follow, last part first.
        let mut ahead: Vec<&str> = target.split('/').rev().collect();
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            match part {
                "" | "." => continue,
                ".." => {
                    if place.pop().is_none() {
                        return false;
                    }
                    continue;
                }
                part => place.push(part),
            }
            let path = place.join("/");
            let there = || self.there.and_then(|there| there.get(&path));
            let found = self.manifest.get(&path).or_else(there);
            let Some(found) = found.filter(|found| found.kind == Kind::Link) else {
                continue;
            };
            links += 1;
            let target = found.target.as_deref().unwrap_or_default();
            // A link that cannot be written is not followed, because another file may take its place.
            if links > MOST_LINKS || target.starts_with('/') {
                return false;
            }
            place.pop();
            ahead.extend(target.split('/').rev());
        }
        true
    }
}

/// Returns the reason why an entry is not written to disk, independent of the rest of its tree.
pub(super) fn why_not(entry: &Entry) -> Option<&'static str> {
    if path::writable(&entry.path).is_err() {
        return Some("its name is not safe on disk");
    }
    match entry.kind {
        Kind::File | Kind::Binary => None,
        Kind::Link => {
            let target = entry.target.as_deref().unwrap_or_default();
            path::link_target(&entry.path, target)
                .is_none()
                .then_some("it is a link that points out of the tree")
        }
        Kind::Large => {
            Some("it is above the size limit of the source, and its content was not kept")
        }
        Kind::Submodule => Some("it is a submodule"),
        Kind::Unreadable | Kind::Folder => {
            Some("it could not be read when the source was resolved")
        }
    }
}

fn make_folders<'a>(root: &Root, paths: impl Iterator<Item = &'a str>) -> io::Result<()> {
    // Paths are sorted, so most share the folder of the previous one.
    let mut last = "";
    for path in paths {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if folder != last {
            root.make_folders(folder)?;
            last = folder;
        }
    }
    Ok(())
}

/// Processes `count` files on all processors, until one fails.
pub(super) fn in_parallel(
    count: usize,
    cancelled: &AtomicBool,
    one: &(dyn Fn(usize) -> Result<(), FilesError> + Sync),
) -> Result<(), FilesError> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let work = || loop {
        let idx = next.fetch_add(1, Ordering::Relaxed);
        if idx >= count {
            return;
        }
        let done = match cancelled.load(Ordering::Relaxed) {
            true => Err(FilesError::Cancelled),
            false => one(idx),
        };
        if let Err(error) = done {
            next.store(count, Ordering::Relaxed);
            let mut failure = failure
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            failure.get_or_insert(error);
            return;
        }
    };
    match count < 64 {
        true => work(),
        false => std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        }),
    }
    let failure = failure
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    failure.map_or(Ok(()), Err)
}

fn write(rendering: &Rendering<'_>, root: &Root, entry: &Entry) -> Result<(), FilesError> {
    let bytes = rendering.objects.get(&entry.hash)?;
    let mode = if entry.executable { 0o777 } else { 0o666 };
    root.create(&entry.path, mode)
        .and_then(|mut file| file.write_all(&bytes))
        .map_err(|error| match is_full(&error) {
            true => refused(rendering.target, &error),
            false => FilesError::BadTarget {
                path: rendering.target.shown.clone(),
                why: format!("`{}`: {}", entry.path, super::snapshot::plain(&error)),
            },
        })
}

/// Tells whether a file or link is at a path of a folder, without going through links.
pub(super) fn is_at(folder: &Path, path: &str) -> bool {
    let mut place = folder.to_path_buf();
    let mut parts = Path::new(path).components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return false;
        };
        place.push(name);
        match fs::symlink_metadata(&place) {
            Ok(found) if parts.peek().is_some() && !found.is_dir() => return false,
            Ok(found) if parts.peek().is_none() => return !found.is_dir(),
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}
