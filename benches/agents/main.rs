//! Agents in figures: what a turn costs beyond the model's own time, many agents at once, and an agent that is killed.
//! `cargo bench --bench agents`, or with parts of names after it; `FLOWSTONE_BENCH_DIR` says on which disk.
//!
//! The model is a script (`:backend :scripted`), so that all that is measured is Flowstone's; in `held.rs` it is a slow
//! server, because connections take memory too. Every row commits with
//! FULL durability unless it says otherwise, and checks that each tool call happened once.

mod generations;
mod held;
#[path = "../durable/machine.rs"]
mod machine;
mod many;
#[path = "../shared/process.rs"]
mod process;
mod resume;
#[path = "../shared/run.rs"]
mod run;
mod turns;
mod world;

use std::io::{Result, Write, stdout};
use std::path::Path;

/// What is measured.
pub struct Row {
    pub name: &'static str,
    pub target: &'static str,
    pub measure: fn(&Path) -> Result<Measured>,
}

/// The result of a measurement.
pub struct Measured {
    pub words: String,
    /// Whether the target is met, and each call happened once.
    pub is_met: bool,
}

/// The subjects, each a file with its rows.
const ROWS: &[&[Row]] = &[
    turns::ROWS,
    many::ROWS,
    generations::ROWS,
    held::ROWS,
    resume::ROWS,
];

fn main() -> Result<()> {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    let folder = match std::env::var_os("FLOWSTONE_BENCH_DIR") {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let mut out = stdout();
    writeln!(out, "{}\n", machine::words(folder.path())?)?;
    writeln!(out, "{:<38}{:<28}{:<84}met", "row", "target", "measured")?;
    for (number, row) in ROWS.iter().copied().flatten().enumerate() {
        if !wanted(row.name) {
            continue;
        }
        let place = folder.path().join(number.to_string());
        std::fs::create_dir_all(&place)?;
        let measured = (row.measure)(&place)?;
        let met = if measured.is_met { "yes" } else { "NO" };
        writeln!(
            out,
            "{:<38}{:<28}{:<84}{met}",
            row.name, row.target, measured.words
        )?;
        std::fs::remove_dir_all(&place)?;
    }
    Ok(())
}
