//! CSV text on its way into a table and out of it, as data: where it is, how it is laid out, what was seen in it.
//!
//! A file goes in in two moves. It is staged: read once, copied into the blobs as UTF-8 and looked at, which
//! disturbs nobody. Then the change that imports it names the copy, so that it is the same however often the
//! step is tried.

use super::{ColumnType, Filter, Sort, TableTarget, WriteMode};
use crate::blob::BlobHash;
use crate::rooted::Opened;

/// Exported text is handed over up to this size, and in a blob beyond.
pub const MAX_TEXT: usize = 1 << 20;
/// Maximum number of bad rows that are reported individually.
pub const MAX_REJECTED: usize = 100;

/// Where CSV text is.
#[derive(Debug, Clone)]
pub enum CsvSource {
    Blob(BlobHash),
    File(Opened),
    Text(String),
}

/// How CSV text is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvFormat {
    pub delimiter: u8,
    /// Whether the first row names the columns.
    pub header: bool,
    /// The label of an encoding; `None`: UTF-8, or what a byte order mark says.
    pub encoding: Option<String>,
}

impl Default for CsvFormat {
    fn default() -> CsvFormat {
        CsvFormat {
            delimiter: b',',
            header: true,
            encoding: None,
        }
    }
}

/// What to do with a row that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnBadRow {
    /// Import nothing.
    Fail,
    /// Leave it out and count it.
    Skip,
    /// Leave it out and say where it is and why.
    Collect,
}

impl OnBadRow {
    /// All ways with the names that flows use.
    pub const NAMES: &'static [(OnBadRow, &'static str)] = &[
        (OnBadRow::Fail, "fail"),
        (OnBadRow::Skip, "skip"),
        (OnBadRow::Collect, "collect"),
    ];
}

/// Asks for a file to be read, copied and looked at.
#[derive(Debug, Clone)]
pub struct StageCsv {
    pub source: CsvSource,
    pub format: CsvFormat,
    /// Columns whose type is given instead of inferred. Without a header, these are the columns.
    pub types: Vec<(String, ColumnType)>,
    pub on_bad_row: OnBadRow,
}

/// A file that was staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedCsv {
    /// The copy, in UTF-8 without a mark.
    pub blob: BlobHash,
    pub bytes: u64,
    /// Rows below the header, bad ones too.
    pub rows: u64,
    pub columns: Vec<CsvColumn>,
}

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvColumn {
    pub name: String,
    /// What all its cells are; `None` while all are empty.
    pub type_: Option<ColumnType>,
}

/// Adds the rows of a staged file; makes the table and columns where they are missing.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportCsv {
    pub table: TableTarget,
    pub csv: StagedCsv,
    pub delimiter: u8,
    pub header: bool,
    pub mode: WriteMode,
    /// What makes a row the same row. Empty: what the table has.
    pub key_fields: Vec<String>,
    pub index_fields: Vec<String>,
    pub on_bad_row: OnBadRow,
}

/// Asks for rows as CSV text.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportCsv {
    pub table: TableTarget,
    /// Empty: all columns.
    pub select: Vec<String>,
    pub filter: Filter,
    pub sort: Vec<Sort>,
    /// Write an apostrophe before text that a spreadsheet would compute.
    pub escape_formulas: bool,
}

/// Tells whether a spreadsheet takes a cell for a formula.
pub fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

/// Rows as CSV text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedCsv {
    pub content: CsvContent,
    pub rows: u64,
    /// A name for the file.
    pub filename: String,
}

/// Where exported text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsvContent {
    Text(String),
    /// It was too large; nothing refers to the blob yet.
    Blob {
        blob: BlobHash,
        bytes: u64,
    },
}
