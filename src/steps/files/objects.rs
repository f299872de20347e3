//! The object store: contents by their SHA-256, one file each, under the project's home.
//!
//! An object is written beside its place and renamed into it, so a reader sees all of it or none;
//! the same content is stored once, whichever tree it came from. Nothing here is ever changed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use super::error::FilesError;

static UNIQUE: AtomicU64 = AtomicU64::new(0);

/// A folder of objects.
#[derive(Clone, Debug)]
pub struct Objects {
    root: PathBuf,
}

impl Objects {
    /// Opens the store in `root`, which is made when the first object is written.
    pub fn new(root: impl Into<PathBuf>) -> Objects {
        Objects { root: root.into() }
    }

    /// Tells whether an object is there, with the size it should have.
    pub fn has(&self, hash: &str, size: u64) -> bool {
        fs::metadata(self.place(hash)).is_ok_and(|it| it.len() == size)
    }

    /// Stores `bytes` and returns their hash.
    pub fn put(&self, bytes: &[u8]) -> Result<String, FilesError> {
        let hash = hash(bytes);
        if !self.has(&hash, bytes.len() as u64) {
            self.write(&hash, bytes)
                .map_err(|error| self.failed(&error))?;
        }
        Ok(hash)
    }

    /// Stores `bytes` so that a loss of power does not lose them, and returns their hash.
    pub fn keep(&self, bytes: &[u8]) -> Result<String, FilesError> {
        let hash = self.put(bytes)?;
        let place = self.place(&hash);
        let folder = place.parent().unwrap_or(&self.root);
        let sync = |path: &Path| fs::File::open(path)?.sync_all();
        sync(&place)
            .and_then(|()| sync(folder))
            .and_then(|()| sync(&self.root))
            .map_err(|error| self.failed(&error))?;
        Ok(hash)
    }

    fn failed(&self, error: &io::Error) -> FilesError {
        FilesError::Storage {
            path: self.root.display().to_string(),
            cause: error.to_string(),
        }
    }

    /// Returns the bytes of an object, checked against its hash.
    pub fn get(&self, hash: &str) -> Result<Vec<u8>, FilesError> {
        let bytes = fs::read(self.place(hash)).map_err(|error| FilesError::Damaged {
            cause: match error.kind() {
                io::ErrorKind::NotFound => format!("the object {} is missing", short(hash)),
                _ => format!("the object {} cannot be read ({error})", short(hash)),
            },
        })?;
        if self::hash(&bytes) != hash {
            // Out of the way, so that resolving the source again stores it anew.
            fs::remove_file(self.place(hash)).ok();
            return Err(FilesError::Damaged {
                cause: format!(
                    "the object {} does not have the content it had",
                    short(hash)
                ),
            });
        }
        Ok(bytes)
    }

    /// Tells whether an object of this hash is there at all.
    pub fn contains(&self, hash: &str) -> bool {
        self.place(hash).is_file()
    }

    fn place(&self, hash: &str) -> PathBuf {
        let (folder, name) = hash.split_at(hash.len().min(2));
        self.root.join(folder).join(name)
    }

    fn write(&self, hash: &str, bytes: &[u8]) -> io::Result<()> {
        let place = self.place(hash);
        let temporary = self.root.join(temporary_name());
        let mut file = match fs::File::create(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&self.root)?;
                fs::File::create(&temporary)?
            }
            file => file?,
        };
        let written = file
            .write_all(bytes)
            .and_then(|()| rename(&temporary, &place));
        if written.is_err() {
            fs::remove_file(&temporary).ok();
        }
        written
    }
}

/// Returns the SHA-256 of `bytes`, in hex.
pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            hex.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            hex.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
            hex
        })
}

/// Writes a small file so that a reader sees the old content or the new, never a part.
pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let temporary = folder.join(temporary_name());
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
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

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))?;
            fs::rename(from, to)
        }
        renamed => renamed,
    }
}

fn short(hash: &str) -> &str {
    &hash[..hash.len().min(12)]
}
