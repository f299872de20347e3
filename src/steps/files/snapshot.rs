//! Takes a snapshot of a folder: walks it, stores what is new, and lists it in a manifest.
//!
//! Each file is read once, and exactly the bytes that were hashed are stored, so a tree never mixes
//! two states of one file. A file whose size and times are those of the last snapshot is not read again.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};

use super::error::FilesError;
use super::manifest::{Entry, Kind, Manifest};
use super::objects::{self, Objects};
use super::path::is_reserved;

/// What to take into a snapshot.
#[derive(Clone, Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// The path as the source says it.
    pub said: String,
    /// Also files that `.gitignore` leaves out.
    pub ignored: bool,
    /// Also files whose name starts with a dot.
    pub hidden: bool,
    /// A folder to leave out wherever it lies: our own data.
    pub without: PathBuf,
    pub limits: Limits,
}

/// How much a source may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub files: u64,
    pub bytes: u64,
    /// A file above this is listed, but its content is not kept.
    pub file_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            files: 200_000,
            bytes: 2 << 30,
            file_bytes: 64 << 20,
        }
    }
}

/// Takes the snapshot. `cache` is where the table of known files is kept.
pub fn snapshot(folder: &Folder, cache: &Path, objects: &Objects) -> Result<Manifest, FilesError> {
    let bad = |error: io::Error| FilesError::BadFolder {
        path: folder.path.display().to_string(),
        cause: plain(&error),
    };
    let root = fs::canonicalize(&folder.path).map_err(bad)?;
    fs::read_dir(&root).map_err(bad)?;
    let found = walk(folder, &root)?;
    let known_file = cache
        .join("known")
        .join(objects::hash(root.as_os_str().as_encoded_bytes()));
    let known = Known::load(&known_file);
    let budget = Budget {
        left: AtomicU64::new(folder.limits.bytes),
        limits: folder.limits,
    };
    let take = |found: &Found| take(found, &known, objects, &budget);
    let taken = in_parallel(&found, &take)?;
    known.save(&known_file, &taken);
    Ok(Manifest::new(
        taken.into_iter().map(|taken| taken.entry).collect(),
    ))
}

/// A file that the walk came to.
struct Found {
    absolute: PathBuf,
    path: String,
    is_link: bool,
}

fn walk(folder: &Folder, root: &Path) -> Result<Vec<Found>, FilesError> {
    let respect = !folder.ignored;
    let without = fs::canonicalize(&folder.without).unwrap_or_default();
    let walker = WalkBuilder::new(root)
        .hidden(!folder.hidden)
        .ignore(false)
        .git_ignore(respect)
        .git_exclude(respect)
        .git_global(false)
        .parents(respect)
        .require_git(false)
        .follow_links(false)
        .filter_entry(move |entry| {
            let reserved = entry.file_name().to_str().is_some_and(is_reserved);
            entry.depth() == 0 || !(reserved || entry.path() == without)
        })
        .build();
    let mut found = Vec::new();
    for entry in walker {
        // A folder that may not be opened, or one that has just gone, has no files to list.
        let Ok(entry) = entry else { continue };
        let Some(kind) = entry.file_type() else {
            continue;
        };
        if !kind.is_file() && !kind.is_symlink() || entry.depth() == 0 {
            continue;
        }
        if found.len() as u64 >= folder.limits.files {
            return Err(FilesError::TooLarge {
                what: "files",
                limit: folder.limits.files,
            });
        }
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let parts: Vec<_> = relative
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        found.push(Found {
            path: parts.join("/"),
            is_link: kind.is_symlink(),
            absolute: entry.into_path(),
        });
    }
    Ok(found)
}

struct Taken {
    entry: Entry,
    stamp: Option<Stamp>,
}

struct Budget {
    left: AtomicU64,
    limits: Limits,
}

impl Budget {
    fn spend(&self, bytes: u64) -> Result<(), FilesError> {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .map(drop)
            .map_err(|_| FilesError::TooLarge {
                what: "bytes",
                limit: self.limits.bytes,
            })
    }
}

/// Runs `take` for each file on the processors there are; the order stays.
fn in_parallel(
    found: &[Found],
    take: &(dyn Fn(&Found) -> Result<Option<Taken>, FilesError> + Sync),
) -> Result<Vec<Taken>, FilesError> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    let next = AtomicU64::new(0);
    let results = Mutex::new(Vec::with_capacity(found.len()));
    let work = || {
        let mut mine = Vec::new();
        // In lots of 64: neighbours stay together, and no thread waits for a slow one.
        while let Some(lot) = found
            .chunks(64)
            .nth(next.fetch_add(1, Ordering::Relaxed) as usize)
        {
            mine.extend(lot.iter().map(take));
        }
        results
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .append(&mut mine);
    };
    if found.len() < 64 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let results = results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    results.into_iter().filter_map(Result::transpose).collect()
}

/// Returns the entry of one file; `None` when it is gone by now.
fn take(
    found: &Found,
    known: &Known,
    objects: &Objects,
    budget: &Budget,
) -> Result<Option<Taken>, FilesError> {
    let gone_or = |error: io::Error, size| match error.kind() {
        io::ErrorKind::NotFound => Ok(None),
        _ => Ok(Some(Taken {
            entry: entry(found, size, Kind::Unreadable),
            stamp: None,
        })),
    };
    if found.is_link {
        return match fs::read_link(&found.absolute) {
            Ok(target) => {
                let target = target.to_string_lossy().into_owned();
                let mut entry = entry(found, target.len() as u64, Kind::Link);
                entry.target = Some(target);
                Ok(Some(Taken { entry, stamp: None }))
            }
            Err(error) => gone_or(error, 0),
        };
    }
    let metadata = match fs::symlink_metadata(&found.absolute) {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Ok(None),
        Err(error) => return gone_or(error, 0),
    };
    let mut entry = entry(found, metadata.len(), Kind::File);
    entry.executable = is_executable(&metadata);
    if metadata.len() > budget.limits.file_bytes {
        entry.kind = Kind::Large;
        return Ok(Some(Taken { entry, stamp: None }));
    }
    budget.spend(metadata.len())?;
    let stamp = Stamp::of(&metadata);
    if let Some(content) = known.get(&found.path, &stamp)
        && objects.has(&content.hash, metadata.len())
    {
        content.clone().apply(&mut entry);
        return Ok(Some(Taken {
            entry,
            stamp: Some(stamp),
        }));
    }
    let bytes = match read_at_most(&found.absolute, budget.limits.file_bytes) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            entry.kind = Kind::Large;
            return Ok(Some(Taken { entry, stamp: None }));
        }
        Err(error) => return gone_or(error, metadata.len()),
    };
    Content::store(&bytes, objects)?.apply(&mut entry);
    entry.size = bytes.len() as u64;
    Ok(Some(Taken {
        entry,
        stamp: Some(stamp),
    }))
}

/// Reads a file that may grow while it is read.
fn read_at_most(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(limit + 1)
        .read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

fn entry(found: &Found, size: u64, kind: Kind) -> Entry {
    Entry {
        path: found.path.clone(),
        size,
        kind,
        hash: String::new(),
        lines: 0,
        executable: false,
        target: None,
    }
}

/// What reading a file tells of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Content {
    pub hash: String,
    pub lines: u64,
    pub binary: bool,
}

impl Content {
    /// Stores the bytes and says what they are.
    pub fn store(bytes: &[u8], objects: &Objects) -> Result<Content, FilesError> {
        let hash = objects.put(bytes)?;
        let binary = is_binary(bytes);
        let lines = if binary { 0 } else { count_lines(bytes) };
        Ok(Content {
            hash,
            lines,
            binary,
        })
    }

    /// Stores the bytes so that a loss of power does not lose them, and says what they are.
    pub fn keep(bytes: &[u8], objects: &Objects) -> Result<Content, FilesError> {
        objects.keep(bytes)?;
        Content::store(bytes, objects)
    }

    /// Writes it into an entry.
    pub fn apply(self, entry: &mut Entry) {
        entry.kind = if self.binary {
            Kind::Binary
        } else {
            Kind::File
        };
        entry.hash = self.hash;
        entry.lines = self.lines;
    }
}

/// Tells whether bytes are not text: a NUL early on, or control characters in what is not UTF-8.
pub fn is_binary(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(8192)];
    if memchr::memchr(0, start).is_some() {
        return true;
    }
    let is_control = |byte: &u8| *byte < 32 && !matches!(byte, b'\t' | b'\n' | b'\r' | 12 | 27);
    std::str::from_utf8(bytes).is_err() && start.iter().any(is_control)
}

/// Counts lines; a last one without a newline counts too.
pub fn count_lines(bytes: &[u8]) -> u64 {
    let ended = memchr::memchr_iter(b'\n', bytes).count() as u64;
    ended + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}

/// What tells, without reading it, that a file is still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    modified: i64,
    changed: i64,
    node: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        #[cfg(unix)]
        let (changed, node) = {
            use std::os::unix::fs::MetadataExt;
            (
                metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec(),
                metadata.ino(),
            )
        };
        #[cfg(not(unix))]
        let (changed, node) = (0, 0);
        Stamp {
            size: metadata.len(),
            modified: modified(metadata),
            changed,
            node,
        }
    }
}

fn modified(metadata: &Metadata) -> i64 {
    let since = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// The table of files that an earlier snapshot of this folder read.
struct Known {
    files: HashMap<String, (Stamp, Content)>,
    /// When the table was written, by the clock of the same disk.
    written: i64,
}

impl Known {
    /// A table that is missing or damaged is empty: it only saves time.
    fn load(path: &Path) -> Known {
        let files = fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let written = fs::metadata(path).map_or(0, |metadata| modified(&metadata));
        Known {
            files: files.unwrap_or_default(),
            written,
        }
    }

    fn get(&self, path: &str, stamp: &Stamp) -> Option<&Content> {
        // A file changed in the same instant as the table was written may have changed once more
        // without a new time, so such an entry is not believed.
        const TICK: i64 = 2_000_000_000;
        let (known, content) = self.files.get(path)?;
        let settled = stamp.modified.max(stamp.changed) + TICK < self.written;
        (known == stamp && settled).then_some(content)
    }

    fn save(&self, path: &Path, taken: &[Taken]) {
        let same = self.files.len() == taken.iter().filter(|it| it.stamp.is_some()).count()
            && taken.iter().all(|it| match &it.stamp {
                Some(stamp) => self.get(&it.entry.path, stamp).is_some(),
                None => true,
            });
        if same {
            return;
        }
        let files: HashMap<&str, (&Stamp, Content)> = taken
            .iter()
            .filter_map(|it| {
                let content = Content {
                    hash: it.entry.hash.clone(),
                    lines: it.entry.lines,
                    binary: it.entry.kind == Kind::Binary,
                };
                Some((it.entry.path.as_str(), (it.stamp.as_ref()?, content)))
            })
            .collect();
        if let Ok(bytes) = serde_json::to_vec(&files)
            && let Err(error) = objects::replace_file(path, &bytes)
        {
            tracing::debug!(%error, "the table of known files was not written");
        }
    }
}

#[cfg(unix)]
fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    false
}

/// Says an IO error without the number that the system gives it.
pub(super) fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::NotADirectory => "it is not a folder".into(),
        _ => error.to_string(),
    }
}
