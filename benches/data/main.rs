//! The data steps in figures, beside the tools that people use for the same work: each row with its target.
//! `cargo bench --bench data`, or with parts of names after it; `FLOWSTONE_BENCH_DIR` says on which disk.
//!
//! A row goes through an engine over a real database, as a flow's step does. Missing tools are reported.

mod files;
#[path = "../shared/run.rs"]
mod run;
mod tables;
mod world;

use std::io::{Result, Write, stdout};
use std::path::Path;

/// What is measured.
pub struct Row {
    pub name: &'static str,
    pub target: &'static str,
    pub measure: fn(&Path) -> Result<Vec<Measured>>,
}

/// The result of a measurement: a row may have several figures.
pub struct Measured {
    pub what: String,
    pub words: String,
    /// Whether the target is met; `None` where there is nothing to compare with.
    pub is_met: Option<bool>,
}

/// The subjects, each a file with its rows.
const ROWS: &[&[Row]] = &[files::ROWS, tables::ROWS];

fn main() -> Result<()> {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    let mut out = stdout();
    for (number, row) in ROWS.iter().copied().flatten().enumerate() {
        if !wanted(row.name) {
            continue;
        }
        let folder = match std::env::var_os("FLOWSTONE_BENCH_DIR") {
            Some(folder) => tempfile::tempdir_in(folder)?,
            None => tempfile::tempdir()?,
        };
        let place = folder.path().join(number.to_string());
        std::fs::create_dir_all(&place)?;
        writeln!(out, "\n{} ({})", row.name, row.target)?;
        for measured in (row.measure)(&place)? {
            let met = match measured.is_met {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "",
            };
            writeln!(out, "  {:<44}{:<58}{met}", measured.what, measured.words)?;
        }
    }
    Ok(())
}
