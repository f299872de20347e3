//! Packs: many contents in one file, so that a tree of 100,000 files is one write, one sync and a few long reads.
//!
//! A pack is written next to its place, synced and renamed; it never changes after that. Contents come first, then a
//! row for each, sorted by hash, then a tail with the start of the rows. An incomplete file is not opened. The list of
//! packs is read again when the folder has changed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use flowstone_flow::private;

use super::objects::{Hash, hex, temporary_name};

const MAGIC: &[u8; 8] = b"FSPACK1\n";
const ROW: usize = 32 + 8 + 8 + 4;
const TAIL: usize = 8 + 8 + 4 + 8;

/// Number of unused folders that stay open.
const FOLDERS: usize = 16;

/// The place of a content in its pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub hash: Hash,
    pub offset: u64,
    pub size: u64,
    /// The checksum of the content: cheap to check on each read.
    pub sum: u32,
}

impl Row {
    fn read(bytes: &[u8]) -> Option<Row> {
        let number = |from: usize| {
            Some(u64::from_le_bytes(
                bytes.get(from..from + 8)?.try_into().ok()?,
            ))
        };
        Some(Row {
            hash: bytes.get(..32)?.try_into().ok()?,
            offset: number(32)?,
            size: number(40)?,
            sum: u32::from_le_bytes(bytes.get(48..52)?.try_into().ok()?),
        })
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.hash);
        to.extend(self.offset.to_le_bytes());
        to.extend(self.size.to_le_bytes());
        to.extend(self.sum.to_le_bytes());
    }
}

/// An open pack.
#[derive(Debug)]
pub(super) struct Pack {
    pub path: PathBuf,
    file: File,
    rows: Vec<Row>,
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the pack is incomplete")
}

impl Pack {
    fn open(path: &Path) -> io::Result<Pack> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let tail_at = size.checked_sub(TAIL as u64).ok_or_else(damaged)?;
        let mut tail = [0; TAIL];
        read_at(&file, &mut tail, tail_at)?;
        let number = |from: usize| {
            let bytes = tail[from..from + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let (start, count) = (number(0), number(8));
        let sum = u32::from_le_bytes(tail[16..20].try_into().unwrap_or_default());
        let length = count.checked_mul(ROW as u64).ok_or_else(damaged)?;
        if &tail[20..] != MAGIC || start.checked_add(length) != Some(tail_at) {
            return Err(damaged());
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| damaged())?];
        read_at(&file, &mut bytes, start)?;
        if crc32fast::hash(&bytes) != sum {
            return Err(damaged());
        }
        let rows = bytes.chunks_exact(ROW).filter_map(Row::read).collect();
        Ok(Pack {
            path: path.to_path_buf(),
            file,
            rows,
        })
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the row of a hash. Hashes are spread evenly, so its position is estimated from its first bytes.
    fn find(&self, hash: &Hash) -> Option<&Row> {
        let first = u64::from_be_bytes(hash[..8].try_into().ok()?);
        let count = self.rows.len();
        let guess = usize::try_from((u128::from(first) * count as u128) >> 64).ok()?;
        let (mut low, mut high, mut step) = (guess, guess, 8);
        while low > 0 && self.rows[low - 1].hash >= *hash {
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 8;
        while high < count && self.rows[high].hash <= *hash {
            high = (high + step).min(count);
            step *= 2;
        }
        let at = self.rows[low..high]
            .binary_search_by(|row| row.hash.cmp(hash))
            .ok()?;
        self.rows.get(low + at)
    }

    /// Reads a part of the file.
    pub(super) fn bytes(&self, from: u64, size: u64) -> io::Result<Vec<u8>> {
        if from.saturating_add(size) > self.file.metadata()?.len() {
            return Err(damaged());
        }
        let size = usize::try_from(size).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        read_at(&self.file, &mut bytes, from)?;
        Ok(bytes)
    }

    /// Marks the pack as recently used, because its contents are about to be referred to.
    pub(super) fn touch(&self) -> io::Result<()> {
        File::options()
            .write(true)
            .open(&self.path)?
            .set_modified(SystemTime::now())
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], from: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, from)
}

#[cfg(not(unix))]
fn read_at(file: &File, bytes: &mut [u8], from: u64) -> io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(from))?;
    file.read_exact(bytes)
}

/// A content in a pack.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub pack: Arc<Pack>,
    pub row: Row,
}

impl Found {
    /// Reads the content; `None` if it does not match its checksum.
    pub(super) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let bytes = self.pack.bytes(self.row.offset, self.row.size)?;
        Ok((crc32fast::hash(&bytes) == self.row.sum).then_some(bytes))
    }
}

/// The packs of a folder.
#[derive(Debug)]
pub(super) struct Packs {
    folder: PathBuf,
    open: RwLock<Open>,
}

#[derive(Debug, Default)]
struct Open {
    packs: Vec<Arc<Pack>>,
    /// The time of the folder when it was listed.
    seen: Option<SystemTime>,
}

impl Packs {
    /// Returns the packs of a folder, shared by all callers in this process.
    pub(super) fn of(folder: &Path) -> Arc<Packs> {
        static KNOWN: OnceLock<Mutex<HashMap<PathBuf, Arc<Packs>>>> = OnceLock::new();
        let mut known = KNOWN
            .get_or_init(Mutex::default)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(packs) = known.get(folder) {
            return Arc::clone(packs);
        }
        if known.len() >= FOLDERS {
            known.retain(|_, packs| Arc::strong_count(packs) > 1);
        }
        let packs = Arc::new(Packs {
            folder: folder.to_path_buf(),
            open: RwLock::default(),
        });
        known.insert(folder.to_path_buf(), Arc::clone(&packs));
        packs
    }

    /// Reads the list of packs again, if the folder has changed since.
    pub(super) fn refresh(&self) {
        let Ok(now) = fs::metadata(&self.folder).and_then(|it| it.modified()) else {
            let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
            *open = Open::default();
            return;
        };
        if self
            .open
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .seen
            == Some(now)
        {
            return;
        }
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let mut packs = Vec::new();
        for path in files(&self.folder) {
            match open.packs.iter().find(|pack| pack.path == path) {
                Some(pack) => packs.push(Arc::clone(pack)),
                None => match Pack::open(&path) {
                    Ok(pack) => packs.push(Arc::new(pack)),
                    Err(error) => {
                        tracing::warn!(path = %path.display(), %error, "a pack of source files is left out")
                    }
                },
            }
        }
        // A pack that was added within the resolution of the folder's clock may not have changed its time.
        let settled = now.elapsed().is_ok_and(|age| age.as_millis() > 50);
        *open = Open {
            packs,
            seen: settled.then_some(now),
        };
    }

    /// Returns the place of a content in the known packs.
    pub(super) fn find(&self, hash: &Hash) -> Option<Found> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.packs.iter().rev().find_map(|pack| {
            pack.find(hash).map(|row| Found {
                pack: Arc::clone(pack),
                row: *row,
            })
        })
    }

    /// Returns all packs.
    pub(super) fn all(&self) -> Vec<Arc<Pack>> {
        self.refresh();
        self.open
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .packs
            .clone()
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the contents that `keep` names into a new pack, and removes the old one.
    pub(super) fn rewrite(&self, pack: &Pack, keep: &dyn Fn(&Hash) -> bool) -> io::Result<()> {
        let mut writer = PackWriter::new(&self.folder)?;
        for row in pack.rows.iter().filter(|row| keep(&row.hash)) {
            let bytes = pack.bytes(row.offset, row.size)?;
            if crc32fast::hash(&bytes) == row.sum {
                writer.add(row.hash, &bytes)?;
            }
        }
        let written = writer.finish()?;
        if written.as_deref() != Some(&pack.path) {
            fs::remove_file(&pack.path)?;
        }
        Ok(())
    }
}

/// The pack files of a folder, by name.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "pack"))
        .collect();
    paths.sort();
    paths
}

/// A pack that is being written.
#[derive(Debug)]
pub(super) struct PackWriter {
    folder: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
    rows: Vec<Row>,
    at: u64,
    is_done: bool,
}

impl PackWriter {
    pub(super) fn new(folder: &Path) -> io::Result<PackWriter> {
        private::make_folder(folder)?;
        let temporary = folder.join(temporary_name());
        Ok(PackWriter {
            folder: folder.to_path_buf(),
            file: BufWriter::with_capacity(1 << 20, private::create(&temporary)?),
            temporary,
            rows: Vec::new(),
            at: 0,
            is_done: false,
        })
    }

    /// Adds a content that is not in it yet.
    pub(super) fn add(&mut self, hash: Hash, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.rows.push(Row {
            hash,
            offset: self.at,
            size: bytes.len() as u64,
            sum: crc32fast::hash(bytes),
        });
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Writes the pack to disk under its name, and returns the path; `None` if it is empty.
    pub(super) fn finish(mut self) -> io::Result<Option<PathBuf>> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        self.rows.sort_by_key(|row| row.hash);
        let mut rows = Vec::with_capacity(self.rows.len() * ROW + TAIL);
        for row in &self.rows {
            row.write(&mut rows);
        }
        let name = hex(&super::objects::digest(&rows));
        let sum = crc32fast::hash(&rows);
        rows.extend(self.at.to_le_bytes());
        rows.extend((self.rows.len() as u64).to_le_bytes());
        rows.extend(sum.to_le_bytes());
        rows.extend(MAGIC);
        self.file.write_all(&rows)?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        let place = self.folder.join(format!("{}.pack", &name[..32]));
        fs::rename(&self.temporary, &place)?;
        self.is_done = true;
        // The name itself is on disk when its folder is.
        File::open(&self.folder)?.sync_all()?;
        Ok(Some(place))
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        if !self.is_done {
            fs::remove_file(&self.temporary).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::objects::digest;

    #[test]
    fn only_a_whole_pack_is_opened() {
        let folder = std::env::temp_dir().join(temporary_name());
        let mut writer = PackWriter::new(&folder).expect("a folder");
        let contents: Vec<Vec<u8>> = (0..300_u32).map(|it| it.to_string().into_bytes()).collect();
        for content in &contents {
            writer.add(digest(content), content).expect("it is written");
        }
        let path = writer.finish().expect("it is synced").expect("a pack");
        let pack = Arc::new(Pack::open(&path).expect("it is whole"));
        for content in &contents {
            let row = *pack.find(&digest(content)).expect("it is there");
            let found = Found {
                pack: Arc::clone(&pack),
                row,
            };
            assert_eq!(found.read().expect("it is read").as_ref(), Some(content));
        }
        assert_eq!(pack.find(&digest(b"absent")), None);
        let whole = fs::read(&path).expect("a file");
        let rows = whole.len() - TAIL - 7;
        let mut flipped = whole.clone();
        flipped[rows] ^= 1;
        for bytes in [&whole[..whole.len() - 1], &whole[..10], &[], &flipped] {
            fs::write(&path, bytes).expect("a file");
            assert!(Pack::open(&path).is_err());
        }
        fs::remove_dir_all(&folder).expect("it is removed");
    }
}
