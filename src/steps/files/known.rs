//! The files that an earlier snapshot of a folder read, with the metadata by which unchanged files are recognised.
//!
//! The table only saves time: a table that is missing, damaged or of another build counts as empty. Rows are sorted by
//! path.

use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::manifest::{Entry, Kind};
use super::objects::{self, Hash};
use super::snapshot::{Found, Taken};

const MAGIC: &[u8; 8] = b"FSKNOWN1";

/// The metadata by which an unchanged file is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    modified: i64,
    changed: i64,
    node: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Stamp {
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
            modified: metadata.modified().map_or(0, nanoseconds),
            changed,
            node,
        }
    }
}

fn nanoseconds(time: SystemTime) -> i64 {
    let since = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |it| it.as_nanos());
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// A file that an earlier snapshot read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known {
    path: String,
    stamp: Stamp,
    pub hash: Hash,
    lines: u64,
    binary: bool,
}

impl Known {
    /// Adds the known facts to an entry.
    pub(super) fn apply(&self, entry: &mut Entry) {
        entry.kind = if self.binary {
            Kind::Binary
        } else {
            Kind::File
        };
        entry.hash = objects::hex(&self.hash);
        entry.lines = self.lines;
    }

    fn of(taken: &Taken) -> Option<Known> {
        Some(Known {
            path: taken.entry.path.clone(),
            stamp: taken.stamp?,
            hash: objects::unhex(&taken.entry.hash)?,
            lines: taken.entry.lines,
            binary: taken.entry.kind == Kind::Binary,
        })
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.extend(
            u32::try_from(self.path.len())
                .unwrap_or(u32::MAX)
                .to_le_bytes(),
        );
        to.extend(self.path.as_bytes());
        to.extend(self.stamp.size.to_le_bytes());
        to.extend(self.stamp.modified.to_le_bytes());
        to.extend(self.stamp.changed.to_le_bytes());
        to.extend(self.stamp.node.to_le_bytes());
        to.extend(self.hash);
        to.extend(self.lines.to_le_bytes());
        to.push(u8::from(self.binary));
    }

    fn read(from: &mut &[u8]) -> Option<Known> {
        let length = u32::from_le_bytes(take(from, 4)?.try_into().ok()?);
        let path = take(from, usize::try_from(length).ok()?)?;
        let path = std::str::from_utf8(path).ok()?.to_string();
        let mut number = || Some(u64::from_le_bytes(take(from, 8)?.try_into().ok()?));
        let (size, modified, changed, node) = (number()?, number()?, number()?, number()?);
        let stamp = Stamp {
            size,
            modified: modified.cast_signed(),
            changed: changed.cast_signed(),
            node,
        };
        let hash = take(from, 32)?.try_into().ok()?;
        let lines = u64::from_le_bytes(take(from, 8)?.try_into().ok()?);
        let binary = take(from, 1)? == [1];
        Some(Known {
            path,
            stamp,
            hash,
            lines,
            binary,
        })
    }
}

fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

/// The files of one folder.
#[derive(Default)]
pub(super) struct Table {
    files: Vec<Known>,
    /// The time at which the table was written, by the clock of the same disk.
    written: i64,
}

impl Table {
    pub(super) fn load(path: &Path) -> Table {
        let Some(files) = fs::read(path).ok().and_then(|bytes| decode(&bytes)) else {
            return Table::default();
        };
        let written = fs::metadata(path).and_then(|it| it.modified());
        Table {
            files,
            written: written.map_or(0, nanoseconds),
        }
    }

    /// Returns, for each found file in the order of paths, the known facts that are still valid.
    pub(super) fn beside<'a>(&'a self, found: &[Found]) -> Vec<Option<&'a Known>> {
        let mut known = self.files.iter().peekable();
        found
            .iter()
            .map(|found| {
                while known.next_if(|it| it.path < found.path).is_some() {}
                let known = known.peek().filter(|it| it.path == found.path)?;
                let stamp = Stamp::of(found.metadata.as_ref().ok()?);
                self.holds(known, &stamp).then_some(*known)
            })
            .collect()
    }

    fn holds(&self, known: &Known, stamp: &Stamp) -> bool {
        // A file that was changed in the same instant as the table was written may have changed once more without a new
        // time, so such an entry is not used.
        const TICK: i64 = 2_000_000_000;
        known.stamp == *stamp && stamp.modified.max(stamp.changed) + TICK < self.written
    }

    /// Tells whether the table already has exactly these rows.
    pub(super) fn says(&self, taken: &[Taken]) -> bool {
        let mut files = self.files.iter();
        let same = taken.iter().filter_map(Known::of).all(|known| {
            files
                .next()
                .is_some_and(|it| *it == known && self.holds(it, &known.stamp))
        });
        same && files.next().is_none()
    }

    /// Writes the table of these files.
    pub(super) fn save(path: &Path, taken: &[Taken]) {
        let mut bytes = Vec::with_capacity(taken.len() * 160);
        bytes.extend(MAGIC);
        for known in taken.iter().filter_map(Known::of) {
            known.write(&mut bytes);
        }
        let sum = crc32fast::hash(&bytes);
        bytes.extend(sum.to_le_bytes());
        if let Err(error) = objects::replace_file(path, &bytes) {
            tracing::debug!(%error, "the table of known files was not written");
        }
    }
}

fn decode(bytes: &[u8]) -> Option<Vec<Known>> {
    let (rows, sum) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    if crc32fast::hash(rows).to_le_bytes() != sum {
        return None;
    }
    let mut rows = rows.strip_prefix(MAGIC)?;
    let mut files = Vec::with_capacity(rows.len() / 160);
    while !rows.is_empty() {
        files.push(Known::read(&mut rows)?);
    }
    Some(files)
}
