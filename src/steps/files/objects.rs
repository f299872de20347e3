//! The object store: contents by their SHA-256, under the project's home. Nothing here is ever changed.
//!
//! Few contents are a file each; those of a snapshot go into a pack together. Either is written to a temporary file,
//! synced and renamed, so a reader sees all of it or nothing, and everything that has a name is on disk. Equal contents
//! are stored once, whichever tree they belong to. Storing takes the lock shared; removing takes it exclusively.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use flowstone_flow::private;
use sha2::{Digest, Sha256};

use super::error::FilesError;
use super::packs::{Found, Pack, PackWriter, Packs};

static UNIQUE: AtomicU64 = AtomicU64::new(0);

/// A receiver of contents, each with its position in the order. Returns whether it wants more.
pub(super) type Take<'a> = &'a mut dyn FnMut(usize, &[u8]) -> Result<bool, FilesError>;

/// The SHA-256 of a content.
pub(super) type Hash = [u8; 32];

/// A folder of objects.
#[derive(Clone, Debug)]
pub struct Objects {
    root: PathBuf,
    packs: Arc<Packs>,
    /// Objects that are read too, and never changed.
    under: Option<Box<Objects>>,
}

impl Objects {
    /// Opens the store in `root`, which is created when the first object is written.
    pub fn new(root: impl Into<PathBuf>) -> Objects {
        let root = root.into();
        let packs = Packs::of(&root.join("packs"));
        Objects {
            root,
            packs,
            under: None,
        }
    }

    /// Opens the store in `root` over another one: what the other has is there, and what is stored goes to `root`.
    pub fn over(root: impl Into<PathBuf>, under: Objects) -> Objects {
        Objects {
            under: Some(Box::new(under)),
            ..Objects::new(root)
        }
    }

    /// Tells whether an object exists with the expected size.
    pub fn has(&self, hash: &str, size: u64) -> bool {
        self.packed(hash)
            .is_some_and(|found| found.row.size == size)
            || fs::metadata(self.place(hash)).is_ok_and(|it| it.len() == size)
            || self
                .under
                .as_ref()
                .is_some_and(|under| under.has(hash, size))
    }

    /// Stores `bytes` on disk, and returns their hash.
    pub fn put(&self, bytes: &[u8]) -> Result<String, FilesError> {
        let batch = self.batch()?;
        let hash = batch.put(bytes)?;
        batch.finish()?;
        Ok(hash)
    }

    /// Stores `bytes` so that they survive a loss of power, and returns their hash.
    pub fn keep(&self, bytes: &[u8]) -> Result<String, FilesError> {
        self.put(bytes)
    }

    /// Begins to store contents together. Nothing is removed until the batch ends.
    pub fn batch(&self) -> Result<Batch, FilesError> {
        let lock = self.lock(false).map_err(|error| self.storage(&error))?;
        self.refresh();
        Ok(Batch {
            objects: self.clone(),
            _lock: lock,
            state: Mutex::default(),
        })
    }

    /// Returns the bytes of an object, checked against its hash.
    pub fn get(&self, hash: &str) -> Result<Vec<u8>, FilesError> {
        let bytes = self.get_quickly(hash)?;
        if self::hash(&bytes) != hash {
            return Err(self.set_aside(hash));
        }
        Ok(bytes)
    }

    /// Returns the bytes of an object. Checks only a checksum if there is one.
    pub(super) fn get_quickly(&self, hash: &str) -> Result<Vec<u8>, FilesError> {
        for _ in 0..2 {
            if let Some(found) = self.packed(hash) {
                return match found.read() {
                    Ok(Some(bytes)) => Ok(bytes),
                    Ok(None) => Err(self.set_aside(hash)),
                    Err(error) => Err(unreadable(hash, &error)),
                };
            }
            match fs::read(self.place(hash)) {
                Ok(bytes) => return Ok(bytes),
                // Another process may have written it, or moved it into a pack.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if let Some(under) = self.under.as_ref().filter(|it| it.contains(hash)) {
                        return under.get_quickly(hash);
                    }
                    self.refresh();
                }
                Err(error) => return Err(unreadable(hash, &error)),
            }
        }
        Err(FilesError::Damaged {
            cause: format!("the object {} is missing", short(hash)),
        })
    }

    /// Returns the flaw of an object; `None` if its contents match its hash. Changes nothing.
    pub(super) fn flaw(&self, hash: &str) -> Option<String> {
        let read = match self.packed(hash) {
            Some(found) => found.read(),
            None => fs::read(self.place(hash)).map(Some),
        };
        match read {
            Ok(Some(bytes)) if self::hash(&bytes) == hash => None,
            Ok(_) => Some("its contents do not match its hash".to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some("its contents are missing".to_owned())
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns the place of an object in a pack.
    pub(super) fn packed(&self, hash: &str) -> Option<Found> {
        let own = self.packs.find(&unhex(hash)?);
        own.or_else(|| self.under.as_ref()?.packed(hash))
    }

    /// Passes the bytes of objects to `take` in this order, with their positions, until it wants no more. Neighbours in
    /// a pack are read at once.
    pub(super) fn each(&self, hashes: &[&str], take: Take<'_>) -> Result<(), FilesError> {
        let mut from = 0;
        while from < hashes.len() {
            let stretch = self.stretch(&hashes[from..]);
            let Some(first) = stretch.first() else {
                if !take(from, &self.get_quickly(hashes[from])?)? {
                    return Ok(());
                }
                from += 1;
                continue;
            };
            let (start, end) = span(&stretch);
            let bytes = first
                .pack
                .bytes(start, end - start)
                .map_err(|error| unreadable(hashes[from], &error))?;
            for (at, found) in stretch.iter().enumerate() {
                let offset = usize::try_from(found.row.offset - start).unwrap_or(usize::MAX);
                let size = usize::try_from(found.row.size).unwrap_or(usize::MAX);
                let content = bytes.get(offset..offset.saturating_add(size));
                let content = content.filter(|it| crc32fast::hash(it) == found.row.sum);
                let Some(content) = content else {
                    return Err(self.set_aside(hashes[from + at]));
                };
                if !take(from + at, content)? {
                    return Ok(());
                }
            }
            from += stretch.len();
        }
        Ok(())
    }

    /// Returns the first of these objects that are close together in one pack; empty if the first is not in a pack.
    fn stretch(&self, hashes: &[&str]) -> Vec<Found> {
        const MOST: u64 = 8 << 20;
        let mut stretch: Vec<Found> = Vec::new();
        let (mut low, mut high, mut sum) = (u64::MAX, 0, 0);
        for hash in hashes {
            let Some(found) = self.packed(hash) else {
                break;
            };
            let is_same = stretch
                .first()
                .is_none_or(|first| Arc::ptr_eq(&first.pack, &found.pack));
            low = low.min(found.row.offset);
            high = high.max(found.row.offset + found.row.size);
            sum += found.row.size;
            let is_close = high - low <= MOST && high - low <= 2 * sum + (64 << 10);
            let fits = is_same && is_close;
            if !fits && !stretch.is_empty() {
                break;
            }
            stretch.push(found);
        }
        stretch
    }

    /// Looks up the existing packs again.
    pub(super) fn refresh(&self) {
        self.packs.refresh();
        if let Some(under) = &self.under {
            under.refresh();
        }
    }

    /// Moves damaged contents aside, so that resolving the source again stores them again.
    fn set_aside(&self, hash: &str) -> FilesError {
        if self.under.as_ref().is_some_and(|it| it.contains(hash)) {
            return changed(hash);
        }
        let removed = match self.packed(hash) {
            // Does not wait for the lock: the caller may hold it while it stores something.
            Some(found) => match self.lock_file().map(|file| (file.try_lock().is_ok(), file)) {
                Ok((true, _lock)) => self.packs.rewrite(&found.pack, &|it| *it != found.row.hash),
                Ok((false, _)) => Ok(()),
                Err(error) => Err(error),
            },
            None => fs::remove_file(self.place(hash)),
        };
        if let Err(error) = removed {
            tracing::warn!(%error, hash, "a damaged object cannot be removed");
        }
        self.packs.refresh();
        changed(hash)
    }

    /// Tells whether an object with this hash exists.
    pub fn contains(&self, hash: &str) -> bool {
        self.packed(hash).is_some()
            || self.place(hash).is_file()
            || self.under.as_ref().is_some_and(|it| it.contains(hash))
    }

    /// Removes the objects that `is_live` does not name and that were not touched recently, and returns their number
    /// and size.
    ///
    /// # Errors
    /// Fails if the folder cannot be read or written.
    pub fn sweep(
        &self,
        is_live: &dyn Fn(&str) -> bool,
        before: SystemTime,
        dry_run: bool,
    ) -> io::Result<(u64, u64)> {
        if !self.root.is_dir() {
            return Ok((0, 0));
        }
        let _lock = self.lock(true)?;
        let (mut count, mut bytes) = (0, 0);
        let is_old = |path: &Path| {
            let modified = fs::metadata(path).and_then(|it| it.modified());
            modified.is_ok_and(|modified| modified < before)
        };
        for pack in self.packs.all() {
            let (dead, size) = unnamed(&pack, is_live);
            if dead == 0 || !is_old(&pack.path) {
                continue;
            }
            // A pack with few removable contents is kept until more can be removed.
            let held: u64 = pack.rows().iter().map(|row| row.size).sum();
            if dead < pack.rows().len() && size < held / 4 {
                continue;
            }
            (count, bytes) = (count + dead as u64, bytes + size);
            if !dry_run {
                self.packs.rewrite(&pack, &|hash| is_live(&hex(hash)))?;
            }
        }
        for folder in fs::read_dir(&self.root)?.flatten() {
            let folder_name = folder.file_name().to_string_lossy().into_owned();
            for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_loose = folder_name.len() == 2 && name.len() == 62;
                let is_left_over = name.starts_with("tmp-");
                let dead = is_left_over || is_loose && !is_live(&format!("{folder_name}{name}"));
                if !dead || !is_old(&entry.path()) {
                    continue;
                }
                (count, bytes) = (count + 1, bytes + entry.metadata().map_or(0, |it| it.len()));
                if !dry_run {
                    fs::remove_file(entry.path())?;
                }
            }
        }
        Ok((count, bytes))
    }

    fn lock(&self, alone: bool) -> io::Result<File> {
        let file = self.lock_file()?;
        match alone {
            true => file.lock()?,
            false => file.lock_shared()?,
        }
        Ok(file)
    }

    fn lock_file(&self) -> io::Result<File> {
        let path = self.root.join("lock");
        let open = || File::options().create(true).append(true).open(&path);
        match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                private::make_folder(&self.root)?;
                open()
            }
            file => file,
        }
    }

    fn place(&self, hash: &str) -> PathBuf {
        let (folder, name) = hash.split_at(hash.len().min(2));
        self.root.join(folder).join(name)
    }

    fn storage(&self, error: &io::Error) -> FilesError {
        FilesError::storage(&self.root, error)
    }

    fn write(&self, hash: &str, bytes: &[u8]) -> io::Result<()> {
        let place = self.place(hash);
        let folder = place.parent().unwrap_or(&self.root);
        private::make_folder(folder)?;
        let temporary = folder.join(temporary_name());
        let written = private::create(&temporary)
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&temporary, &place))
            .and_then(|()| File::open(folder)?.sync_all());
        if written.is_err() {
            fs::remove_file(&temporary).ok();
        }
        written
    }
}

/// Returns the start and end of contents in their pack.
fn span(stretch: &[Found]) -> (u64, u64) {
    stretch.iter().fold((u64::MAX, 0), |(start, end), found| {
        (
            start.min(found.row.offset),
            end.max(found.row.offset + found.row.size),
        )
    })
}

/// Returns the number and total size of unreferenced contents in a pack.
fn unnamed(pack: &Pack, is_live: &dyn Fn(&str) -> bool) -> (usize, u64) {
    pack.rows()
        .iter()
        .filter(|row| !is_live(&hex(&row.hash)))
        .fold((0, 0), |(count, bytes), row| (count + 1, bytes + row.size))
}

/// Number of contents of a batch that are stored as separate files.
const FEW: usize = 8;
/// Maximum size in bytes of a batch that is stored as separate files.
const SMALL: usize = 1 << 20;

/// Contents that are stored together; they are on disk when [`Batch::finish`] returns.
#[derive(Debug)]
pub struct Batch {
    objects: Objects,
    _lock: File,
    state: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    few: Vec<(Hash, Vec<u8>)>,
    bytes: usize,
    pack: Option<PackWriter>,
    seen: HashSet<Hash>,
    /// Packs that already contain added contents.
    reused: Vec<Arc<Pack>>,
}

impl Batch {
    /// Adds a content, and returns its hash.
    pub fn put(&self, bytes: &[u8]) -> Result<String, FilesError> {
        let digest = digest(bytes);
        self.add(vec![(digest, bytes.to_vec())])?;
        Ok(hex(&digest))
    }

    /// Adds related contents, with their hashes; they are stored side by side.
    pub(super) fn add(&self, contents: Vec<(Hash, Vec<u8>)>) -> Result<(), FilesError> {
        let new: Vec<_> = contents
            .into_iter()
            .filter(|(hash, bytes)| !self.reuse(hash, bytes.len() as u64))
            .collect();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (hash, bytes) in new {
            if !state.seen.insert(hash) {
                continue;
            }
            state
                .add(hash, bytes, self.objects.packs.folder())
                .map_err(|error| self.objects.storage(&error))?;
        }
        Ok(())
    }

    /// Tells whether a content is already stored. It is then kept, even without a reference.
    pub(super) fn reuse(&self, hash: &Hash, size: u64) -> bool {
        if let Some(found) = self.objects.packs.find(hash) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if !state
                .reused
                .iter()
                .any(|pack| Arc::ptr_eq(pack, &found.pack))
            {
                state.reused.push(found.pack);
            }
            return found.row.size == size;
        }
        let under = self.objects.under.as_ref();
        if under.is_some_and(|under| under.has(&hex(hash), size)) {
            return true;
        }
        let place = self.objects.place(&hex(hash));
        let Ok(file) = File::options().write(true).open(&place) else {
            return false;
        };
        file.metadata().is_ok_and(|it| it.len() == size)
            && file.set_modified(SystemTime::now()).is_ok()
    }

    /// Writes all contents to disk.
    pub fn finish(self) -> Result<(), FilesError> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let written = || {
            for pack in &state.reused {
                pack.touch()?;
            }
            for (hash, bytes) in &state.few {
                self.objects.write(&hex(hash), bytes)?;
            }
            Ok::<_, io::Error>(())
        };
        written().map_err(|error| self.objects.storage(&error))?;
        if let Some(pack) = state.pack {
            pack.finish()
                .map_err(|error| self.objects.storage(&error))?;
            self.objects.packs.refresh();
        }
        Ok(())
    }
}

impl Pending {
    fn add(&mut self, hash: Hash, bytes: Vec<u8>, folder: &Path) -> io::Result<()> {
        if let Some(pack) = &mut self.pack {
            return pack.add(hash, &bytes);
        }
        self.bytes += bytes.len();
        self.few.push((hash, bytes));
        if self.few.len() <= FEW && self.bytes <= SMALL {
            return Ok(());
        }
        let mut pack = PackWriter::new(folder)?;
        for (hash, bytes) in self.few.drain(..) {
            pack.add(hash, &bytes)?;
        }
        self.pack = Some(pack);
        Ok(())
    }
}

fn changed(hash: &str) -> FilesError {
    FilesError::Damaged {
        cause: format!("the object {} has changed content", short(hash)),
    }
}

fn unreadable(hash: &str, error: &io::Error) -> FilesError {
    FilesError::Damaged {
        cause: format!("the object {} cannot be read ({error})", short(hash)),
    }
}

/// Returns the SHA-256 of `bytes`.
pub(super) fn digest(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Returns the SHA-256 of `bytes`, in hex.
pub fn hash(bytes: &[u8]) -> String {
    hex(&digest(bytes))
}

pub(super) fn hex(hash: &Hash) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = String::with_capacity(64);
    for byte in hash {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    hex
}

pub(super) fn unhex(text: &str) -> Option<Hash> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|it| u8::try_from(it).ok())
    };
    let mut hash = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (at, pair) in text.as_bytes().chunks_exact(2).enumerate() {
        hash[at] = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

/// Writes a small file so that a reader sees the old content or the new, never a part.
pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    private::make_folder(folder)?;
    let temporary = folder.join(temporary_name());
    let written = private::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
    written
}

pub(super) fn temporary_name() -> String {
    format!(
        "tmp-{}-{}",
        std::process::id(),
        UNIQUE.fetch_add(1, Ordering::Relaxed)
    )
}

fn short(hash: &str) -> &str {
    &hash[..hash.len().min(12)]
}
