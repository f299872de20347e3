//! Runs in a file: program, input, journal, waits and blobs of a run, as text that another project can read.
//!
//! The file is one EDN form with one record per line. Its first line names the format, and its second contains a digest
//! of everything below, so that a truncated, changed or foreign file is rejected before anything is created from it.
//! Tokens of waits are left out: a person who has the file must not be able to answer for the run.

mod moving;
mod read;
mod write;

use std::collections::BTreeMap;

pub use crate::error::ArchiveError;
use crate::ports::{BlobRow, Entry, Program, RunRow, WaitEnding, WaitEvent, WaitState};

pub use moving::{ImportOptions, Imported};

/// The version of the format. Raised when an earlier build could not read what this one writes.
pub const FORMAT: i64 = 2;
/// That of files whose runs have no secret inputs: earlier builds can read them.
const PLAIN_FORMAT: i64 = 1;
/// What the first line of a file starts with.
const HEAD: &str = "{:flowstone-archive ";

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Archive {
    /// The run that was exported, and the runs it called, parents before children.
    pub runs: Vec<ArchivedRun>,
    /// By their hash.
    pub programs: BTreeMap<String, Program>,
    pub blobs: Vec<ArchivedBlob>,
}

/// One run of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedRun {
    pub row: RunRow,
    /// The journal, in order.
    pub entries: Vec<Entry>,
    pub waits: Vec<ArchivedWait>,
}

/// A wait without what would let somebody answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedWait {
    pub path: String,
    pub key: String,
    pub state: WaitState,
    pub deadline_ms: Option<i64>,
    /// EDN text.
    pub details: String,
    /// EDN text.
    pub payload: Option<String>,
    pub opened_ms: i64,
    pub ending: Option<WaitEnding>,
    pub decided_by: Option<String>,
    pub decided_ms: Option<i64>,
    pub event: Option<WaitEvent>,
    pub webhook: Option<String>,
}

/// A blob that the run refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedBlob {
    pub row: BlobRow,
    pub bytes: Vec<u8>,
}

impl Archive {
    /// Reads the text of a file, and checks every digest in it.
    ///
    /// # Errors
    /// When it is damaged, newer than this build, or something else.
    pub fn read(text: &str) -> Result<Archive, ArchiveError> {
        read::read(text)
    }

    /// Writes the text of a file: the same for equal contents.
    pub fn write(&self) -> String {
        write::write(self)
    }

    /// Returns the run that was exported.
    pub fn main(&self) -> Option<&ArchivedRun> {
        self.runs.first()
    }

    /// Returns the program of one of the runs.
    pub fn program(&self, run: &ArchivedRun) -> Option<&Program> {
        self.programs.get(&run.row.program)
    }
}
