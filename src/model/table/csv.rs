//! Import and export of CSV text as data: its source, its layout, and the inferred columns.
//!
//! A file is imported in two steps. First it is staged: read once, copied into the blobs as UTF-8 and inspected,
//! without any effect on tables. Then the change that imports it names the copy, so that each attempt at the step
//! imports the same text.

use super::{ColumnType, Filter, Sort, TableTarget, WriteMode};
use crate::blob::BlobHash;
use crate::rooted::Opened;

/// Maximum size in bytes of exported text that is returned directly; larger text is stored in a blob.
pub const MAX_TEXT: usize = 1 << 20;
/// Maximum number of bad rows that are reported individually.
pub const MAX_REJECTED: usize = 100;

/// The source of CSV text.
#[derive(Debug, Clone)]
pub enum CsvSource {
    Blob(BlobHash),
    File(Opened),
    Text(String),
}

/// The layout of CSV text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvFormat {
    pub delimiter: u8,
    /// Tells whether the first row contains the names of the columns.
    pub header: bool,
    /// The label of the encoding; `None`: that of the byte order mark, or UTF-8.
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

/// The handling of a row that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnBadRow {
    /// Fails the import; no row is imported.
    Fail,
    /// Skips the row and counts it.
    Skip,
    /// Skips the row and reports its place and the reason.
    Collect,
}

impl OnBadRow {
    /// All modes with their names in flows.
    pub const NAMES: &'static [(OnBadRow, &'static str)] = &[
        (OnBadRow::Fail, "fail"),
        (OnBadRow::Skip, "skip"),
        (OnBadRow::Collect, "collect"),
    ];
}

/// A request to read, copy and inspect a file.
#[derive(Debug, Clone)]
pub struct StageCsv {
    pub source: CsvSource,
    pub format: CsvFormat,
    /// Columns whose type is set instead of inferred. If the file has no header, these are its columns.
    pub types: Vec<(String, ColumnType)>,
    pub on_bad_row: OnBadRow,
}

/// A staged file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedCsv {
    /// The copy, in UTF-8 without a byte order mark.
    pub blob: BlobHash,
    pub bytes: u64,
    /// Number of rows below the header, including bad ones.
    pub rows: u64,
    pub columns: Vec<CsvColumn>,
}

/// A column of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvColumn {
    pub name: String,
    /// The type of all its cells; `None` if all are empty.
    pub type_: Option<ColumnType>,
}

/// Adds the rows of a staged file; creates the table and missing columns.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportCsv {
    pub table: TableTarget,
    pub csv: StagedCsv,
    pub delimiter: u8,
    pub header: bool,
    pub mode: WriteMode,
    /// The columns whose values identify a row. Empty: those that the table has.
    pub key_fields: Vec<String>,
    pub index_fields: Vec<String>,
    pub on_bad_row: OnBadRow,
}

/// A request to export rows as CSV text.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportCsv {
    pub table: TableTarget,
    /// Empty: all columns.
    pub select: Vec<String>,
    pub filter: Filter,
    pub sort: Vec<Sort>,
    /// Adds an apostrophe before text that a spreadsheet would evaluate.
    pub escape_formulas: bool,
}

/// Tells whether a spreadsheet would evaluate a cell as a formula.
pub fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

/// Exported rows as CSV text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedCsv {
    pub content: CsvContent,
    pub rows: u64,
    /// A file name for the text.
    pub filename: String,
}

/// The place of exported text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsvContent {
    Text(String),
    /// A blob, for text that is too large to return directly; nothing refers to the blob yet.
    Blob {
        blob: BlobHash,
        bytes: u64,
    },
}
