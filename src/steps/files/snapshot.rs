//! Takes a snapshot of a folder: walks it, stores new contents, and lists the files in a manifest.
//!
//! Each file is read once, and exactly the hashed bytes are stored, so a tree never mixes two states of one file. A
//! file with the size and times of the last snapshot is not read again.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use flowstone_flow::permission::is_environment;
use flowstone_flow::rooted::Root;
use ignore::{WalkBuilder, WalkState};

use super::error::FilesError;
use super::known::{Known, Stamp, Table};
use super::manifest::{Entry, Kind, Manifest};
use super::objects::{self, Batch, Objects};
use super::path::is_reserved;

/// A folder, with the rules for including files.
#[derive(Clone, Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// The path as it is written in the source.
    pub shown: String,
    /// Whether files that `.gitignore` excludes are included.
    pub ignored: bool,
    /// Whether files such as `.env` are included.
    pub environment: bool,
    /// Whether files whose name starts with a dot are included.
    pub hidden: bool,
    /// Whether the ignore files of the folders above apply.
    pub parents: bool,
    /// A folder to leave out: Flowstone's own data.
    pub without: PathBuf,
    pub limits: Limits,
}

/// The maximum size of a source.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub files: u64,
    pub bytes: u64,
    /// Maximum size of a file whose content is stored; larger files are only listed.
    pub file_bytes: u64,
}

impl Limits {
    /// No limits.
    pub const NONE: Limits = Limits {
        files: u64::MAX,
        bytes: u64::MAX,
        file_bytes: u64::MAX - 1,
    };
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

/// Takes the snapshot. `cache` is the place of the table of known files.
pub fn snapshot(folder: &Folder, cache: &Path, objects: &Objects) -> Result<Manifest, FilesError> {
    let bad = |error: io::Error| FilesError::BadFolder {
        path: folder.path.display().to_string(),
        cause: plain(&error),
    };
    let root = Root::open(&folder.path).map_err(bad)?;
    fs::read_dir(root.path()).map_err(bad)?;
    let found = walk(folder, root.path())?;
    let known_file = cache
        .join("known")
        .join(objects::hash(root.path().as_os_str().as_encoded_bytes()));
    let table = Table::load(&known_file);
    let batch = objects.batch()?;
    let taking = Taking {
        batch: Some(&batch),
        ..Taking::looking(&root, folder.limits)
    };
    let known = table.beside(&found);
    let taken = taking.all(&found, &known)?;
    batch.finish()?;
    if !table.says(&taken) {
        Table::save(&known_file, &taken);
    }
    Ok(Manifest::new(
        taken.into_iter().map(|taken| taken.entry).collect(),
    ))
}

/// Lists the entries of a folder by content, and stores nothing.
pub fn manifest(folder: &Folder) -> Result<Manifest, FilesError> {
    let bad = |error: io::Error| FilesError::BadFolder {
        path: folder.path.display().to_string(),
        cause: plain(&error),
    };
    let root = Root::open(&folder.path).map_err(bad)?;
    fs::read_dir(root.path()).map_err(bad)?;
    let found = walk(folder, root.path())?;
    let taken = Taking::looking(&root, folder.limits).all(&found, &vec![None; found.len()])?;
    Ok(Manifest::new(
        taken.into_iter().map(|taken| taken.entry).collect(),
    ))
}

/// Returns the entry at one path of a folder, independent of ignore files, and stores nothing.
pub fn state(root: &Path, path: &str) -> Result<Option<Entry>, FilesError> {
    let Some((root, found)) = Found::at(root, path) else {
        return Ok(None);
    };
    let (taken, _) = Taking::looking(&root, Limits::NONE).one(&found, None)?;
    Ok(taken.map(|taken| taken.entry))
}

/// Stores one file of a folder, independent of ignore files; `None` if it does not exist.
pub fn one(root: &Path, path: &str, objects: &Objects) -> Result<Option<Entry>, FilesError> {
    let Some((root, found)) = Found::at(root, path) else {
        return Ok(None);
    };
    let limits = Limits::default();
    let batch = objects.batch()?;
    let taking = Taking {
        batch: Some(&batch),
        ..Taking::looking(&root, limits)
    };
    let (taken, content) = taking.one(&found, None)?;
    batch.finish()?;
    if let Some((_, bytes)) = content {
        objects.keep(&bytes)?;
    }
    Ok(taken.map(|taken| taken.entry))
}

/// A file found by the walk.
pub(super) struct Found {
    pub path: String,
    is_link: bool,
    /// Whether its name is text. Other files are only listed, because they cannot be referred to.
    is_named: bool,
    /// The metadata of a file that is not a link.
    pub metadata: io::Result<Metadata>,
    /// The path of a file whose name is not text.
    place: PathBuf,
}

impl Found {
    fn at(root: &Path, path: &str) -> Option<(Root, Found)> {
        let root = Root::open(root).ok()?;
        let metadata = root.metadata(path).ok()?;
        let found = Found {
            path: path.to_string(),
            is_link: metadata.file_type().is_symlink(),
            is_named: true,
            metadata: Ok(metadata),
            place: PathBuf::new(),
        };
        Some((root, found))
    }
}

/// Returns the files of a folder, in the order of their paths.
fn walk(folder: &Folder, root: &Path) -> Result<Vec<Found>, FilesError> {
    let respect = !folder.ignored;
    let with_environment = folder.environment;
    if respect {
        check_rules(folder, root)?;
    }
    let without = fs::canonicalize(&folder.without).unwrap_or_default();
    let walker = WalkBuilder::new(root)
        .hidden(!folder.hidden)
        .ignore(false)
        .git_ignore(respect)
        .git_exclude(respect)
        .git_global(false)
        .parents(respect && folder.parents)
        .require_git(false)
        .follow_links(false)
        .filter_entry(move |entry| {
            let name = entry.file_name().to_str();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let is_left_out = match is_folder {
                true => respect && !is_readable_rule(entry.path()),
                false => !with_environment && name.is_some_and(is_environment),
            };
            let is_reserved = name.is_some_and(is_reserved);
            entry.depth() == 0 || !(is_reserved || is_left_out || entry.path() == without)
        })
        .threads(processors())
        .build_parallel();
    let all = Mutex::new(Vec::new());
    let count = AtomicU64::new(0);
    walker.run(|| {
        let mut mine = Mine {
            found: Vec::new(),
            all: &all,
        };
        let count = &count;
        Box::new(move |entry| {
            // A folder that cannot be opened, or that was just removed, has no files to list.
            let Some(found) = entry.ok().and_then(|entry| come_to(entry, root)) else {
                return WalkState::Continue;
            };
            if count.fetch_add(1, Ordering::Relaxed) >= folder.limits.files {
                return WalkState::Quit;
            }
            mine.found.push(found);
            WalkState::Continue
        })
    });
    if count.into_inner() > folder.limits.files {
        return Err(FilesError::TooLarge {
            what: "files",
            limit: folder.limits.files,
        });
    }
    let mut found = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Tells whether the ignore file of a folder can be read without blocking. A folder whose ignore file is a fifo is left
/// out.
fn is_readable_rule(folder: &Path) -> bool {
    let rules = fs::metadata(folder.join(".gitignore"));
    rules.map_or(true, |rules| rules.is_file())
}

/// Rejects a folder whose ignore rules, or those of a folder above it, cannot be read.
fn check_rules(folder: &Folder, root: &Path) -> Result<(), FilesError> {
    let above = root
        .ancestors()
        .take(if folder.parents { usize::MAX } else { 1 });
    for place in above.flat_map(|it| [it.join(".gitignore"), it.join(".git/info/exclude")]) {
        if fs::metadata(&place).is_ok_and(|rules| !rules.is_file()) {
            return Err(FilesError::BadFolder {
                path: folder.path.display().to_string(),
                cause: format!("{} is not a regular file", place.display()),
            });
        }
    }
    Ok(())
}

/// The files that one thread of the walk has found; they are merged when it ends.
struct Mine<'a> {
    found: Vec<Found>,
    all: &'a Mutex<Vec<Found>>,
}

impl Drop for Mine<'_> {
    fn drop(&mut self) {
        self.all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut self.found);
    }
}

fn come_to(entry: ignore::DirEntry, root: &Path) -> Option<Found> {
    let kind = entry.file_type()?;
    if !kind.is_file() && !kind.is_symlink() || entry.depth() == 0 {
        return None;
    }
    let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
    let path = match relative.to_str() {
        #[cfg(unix)]
        Some(path) => path.to_string(),
        _ => {
            let parts = relative.components();
            let parts: Vec<_> = parts.map(|it| it.as_os_str().to_string_lossy()).collect();
            parts.join("/")
        }
    };
    Some(Found {
        path,
        is_link: kind.is_symlink(),
        is_named: relative.to_str().is_some(),
        metadata: fs::symlink_metadata(entry.path()),
        place: match relative.to_str() {
            Some(_) => PathBuf::new(),
            None => relative.to_path_buf(),
        },
    })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(8))
}

pub(super) struct Taken {
    pub entry: Entry,
    pub stamp: Option<Stamp>,
}

/// The state that the reading threads share.
struct Taking<'a> {
    /// The folder in which the files are opened: the walk goes by names, and a name may refer to another file by now.
    root: &'a Root,
    /// The store for contents; `None` if contents are only inspected.
    batch: Option<&'a Batch>,
    left: AtomicU64,
    limits: Limits,
}

/// Number of bytes that are buffered before they are stored.
const HELD: usize = 4 << 20;

impl<'a> Taking<'a> {
    fn looking(root: &'a Root, limits: Limits) -> Taking<'a> {
        Taking {
            root,
            batch: None,
            left: AtomicU64::new(limits.bytes),
            limits,
        }
    }

    /// Reads all files on all processors, in batches: neighbours stay together, and no thread waits for a slow one. The
    /// order is kept.
    fn all(&self, found: &[Found], known: &[Option<&Known>]) -> Result<Vec<Taken>, FilesError> {
        const LOT: usize = 64;
        let next = AtomicU64::new(0);
        let lots = Mutex::new(Vec::new());
        let work = || {
            loop {
                let lot =
                    usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                let from = lot.saturating_mul(LOT);
                if from >= found.len() {
                    return;
                }
                let range = from..found.len().min(from + LOT);
                let taken = self.lot(&found[range.clone()], &known[range]);
                let failed = taken.is_err();
                lots.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((lot, taken));
                if failed {
                    next.store(u64::MAX / 2, Ordering::Relaxed);
                }
            }
        };
        if found.len() <= LOT {
            work();
        } else {
            std::thread::scope(|scope| {
                for _ in 0..processors() {
                    scope.spawn(work);
                }
            });
        }
        let mut lots = lots.into_inner().unwrap_or_else(PoisonError::into_inner);
        lots.sort_by_key(|(lot, _)| *lot);
        let mut all = Vec::with_capacity(found.len());
        for (_, taken) in lots {
            all.extend(taken?);
        }
        Ok(all)
    }

    fn lot(&self, found: &[Found], known: &[Option<&Known>]) -> Result<Vec<Taken>, FilesError> {
        let mut taken = Vec::with_capacity(found.len());
        let (mut contents, mut held) = (Vec::new(), 0);
        for (found, known) in found.iter().zip(known) {
            let (it, content) = self.one(found, *known)?;
            taken.extend(it);
            if let Some((hash, bytes)) = content {
                held += bytes.len();
                contents.push((hash, bytes));
            }
            if held > HELD {
                self.store(std::mem::take(&mut contents))?;
                held = 0;
            }
        }
        self.store(contents)?;
        Ok(taken)
    }

    fn store(&self, contents: Vec<(objects::Hash, Vec<u8>)>) -> Result<(), FilesError> {
        match self.batch {
            Some(batch) => batch.add(contents),
            None => Ok(()),
        }
    }

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

    /// Reads a file that may grow while it is read.
    fn read_at_most(&self, path: &str, likely: u64) -> io::Result<Option<Vec<u8>>> {
        let limit = self.limits.file_bytes;
        tracing::debug!(target: "flowstone::files", path = %self.root.path().join(path).display(), "read");
        let likely = usize::try_from(likely.min(LIKELY_MAX)).unwrap_or(0);
        let mut bytes = Vec::with_capacity(likely + 1);
        let file = self.root.file(path)?;
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= limit).then_some(bytes))
    }

    /// Tells whether an entry that is listed without being opened is in the folder: the walk goes by names, and may
    /// have reached another place.
    fn is_there(&self, found: &Found) -> bool {
        let looked = match found.is_named {
            true => self.root.metadata(&found.path),
            false => self.root.metadata_of(&found.place),
        };
        looked.is_ok_and(|looked| looked.is_file() || looked.is_symlink())
    }

    /// Returns the entry of one file, with its content if that is to be stored; no entry if the file is gone.
    fn one(&self, found: &Found, known: Option<&Known>) -> Result<One, FilesError> {
        let without_content = |entry| Ok((Some(Taken { entry, stamp: None }), None));
        let gone_or = |error: &io::Error, size| match error.kind() {
            // The file is gone, is no longer a file, or is behind a link now.
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => Ok((None, None)),
            _ if is_loop(error) || !self.is_there(found) => Ok((None, None)),
            _ => without_content(entry(found, size, Kind::Unreadable)),
        };
        if !found.is_named {
            return match self.is_there(found) {
                true => without_content(entry(found, 0, Kind::Unreadable)),
                false => Ok((None, None)),
            };
        }
        if found.is_link {
            return match self.root.link(&found.path) {
                Ok(target) => {
                    let mut entry = entry(found, target.len() as u64, Kind::Link);
                    entry.target = Some(target);
                    without_content(entry)
                }
                Err(error) => gone_or(&error, 0),
            };
        }
        let metadata = match &found.metadata {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => return Ok((None, None)),
            Err(error) => return gone_or(error, 0),
        };
        let mut entry = entry(found, metadata.len(), Kind::File);
        entry.executable = is_executable(metadata);
        if metadata.len() > self.limits.file_bytes {
            entry.kind = Kind::Large;
            return match self.is_there(found) {
                true => without_content(entry),
                false => Ok((None, None)),
            };
        }
        self.spend(metadata.len())?;
        let stamp = Stamp::of(metadata);
        if let (Some(known), Some(batch)) = (known, self.batch)
            && batch.reuse(&known.hash, metadata.len())
        {
            known.apply(&mut entry);
            let stamp = Some(stamp);
            return Ok((Some(Taken { entry, stamp }), None));
        }
        let bytes = match self.read_at_most(&found.path, metadata.len()) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                entry.kind = Kind::Large;
                return without_content(entry);
            }
            Err(error) => return gone_or(&error, metadata.len()),
        };
        let hash = objects::digest(&bytes);
        Content::of(&bytes, objects::hex(&hash)).apply(&mut entry);
        entry.size = bytes.len() as u64;
        let stamp = Some(stamp);
        Ok((Some(Taken { entry, stamp }), Some((hash, bytes))))
    }
}

/// Maximum allocation before anything was read, because the reported size may be wrong.
const LIKELY_MAX: u64 = 16 << 20;

/// An entry, with its content if that is to be stored.
type One = (Option<Taken>, Option<(objects::Hash, Vec<u8>)>);

/// Tells whether an error means that a file was replaced by a link.
fn is_loop(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    return error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    #[cfg(not(target_os = "linux"))]
    return error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
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

/// The facts about a file that reading it reveals.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub hash: String,
    pub lines: u64,
    pub binary: bool,
}

impl Content {
    /// Returns the facts about the bytes with a hash.
    pub(super) fn of(bytes: &[u8], hash: String) -> Content {
        let binary = is_binary(bytes);
        let lines = if binary { 0 } else { count_lines(bytes) };
        Content {
            hash,
            lines,
            binary,
        }
    }

    /// Stores the bytes so that they survive a loss of power, and returns their facts.
    pub(super) fn keep(bytes: &[u8], objects: &Objects) -> Result<Content, FilesError> {
        Ok(Content::of(bytes, objects.keep(bytes)?))
    }

    /// Adds the facts to an entry.
    pub(super) fn apply(self, entry: &mut Entry) {
        entry.kind = if self.binary {
            Kind::Binary
        } else {
            Kind::File
        };
        entry.hash = self.hash;
        entry.lines = self.lines;
    }
}

/// Tells whether bytes are not text: they have a NUL near the start, or are not UTF-8 and have control characters.
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

#[cfg(unix)]
fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    false
}

/// Formats an IO error without the system's error number.
pub(super) fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::NotADirectory => "it is not a folder".into(),
        _ => error.to_string(),
    }
}
