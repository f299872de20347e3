//! Durable runs in figures: each row with its target, the machine, and a file that proves how often each effect ran.
//! `cargo bench --bench durable`, or with parts of names after it; `FLOWSTONE_BENCH_DIR` says on which disk, and
//! `FLOWSTONE_BENCH_PROGRAM` which program is measured where a process is the unit.
//!
//! Every row commits with FULL durability. Where a process is the unit, it is the built `flowstone`.

mod counter;
mod crash;
mod growth;
mod machine;
#[path = "../shared/process.rs"]
mod process;
#[path = "../shared/run.rs"]
mod run;
mod server;
mod spans;
mod steps;
mod trees;
mod versions;
mod waking;
mod world;

use std::io::{Result, Write, stdout};
use std::path::Path;

/// What is measured.
struct Row {
    name: &'static str,
    target: &'static str,
    measure: fn(&Path) -> Result<Measured>,
}

/// The result of a measurement.
struct Measured {
    words: String,
    /// Whether the target is met, and the effects are as they should be.
    is_met: bool,
}

const ROWS: &[Row] = &[
    Row {
        name: "1,000 external steps in a row",
        target: ">= 1,200/s",
        measure: steps::in_a_row,
    },
    Row {
        name: "1,000 runs of 10 external steps",
        target: ">= 8,000 steps/s",
        measure: steps::side_by_side,
    },
    Row {
        name: "kill -9 to resumed",
        target: "< 0.3 s, at most the step in flight redone",
        measure: crash::to_resumed,
    },
    Row {
        name: "10,000 runs suspended on a signal",
        target: "< 20 MB above idle",
        measure: waking::suspended,
    },
    Row {
        name: "10,000 suspended runs woken",
        target: "< 3 s",
        measure: waking::all_woken,
    },
    Row {
        name: "wake a run of 10,000 steps",
        target: "< 50 ms",
        measure: waking::long_run,
    },
    Row {
        name: "resident size of the idle server",
        target: "< 30 MB",
        measure: waking::idle,
    },
    Row {
        name: "database bytes for each step",
        target: "< 1,000",
        measure: growth::bytes_a_step,
    },
    Row {
        name: "a run of 100,000 steps",
        target: "ends; replayed in < 2 s",
        measure: growth::long_run,
    },
    Row {
        name: "100,000 finished runs",
        target: "list and find < 20 ms",
        measure: growth::finished_runs,
    },
    Row {
        name: "spans of 100,000 runs",
        target: "trace < 20 ms; newest 100 < 100 ms; page < 1 s",
        measure: spans::of_many_runs,
    },
    Row {
        name: "a transcript of 1,000 turns",
        target: "< 20 times its own size",
        measure: growth::transcript,
    },
    Row {
        name: "starts over HTTP",
        target: ">= 2,000/s; p99 < 50 ms at half of it",
        measure: server::starts,
    },
    Row {
        name: "1,000 runs of 10 calls over HTTP",
        target: ">= 5,000 steps/s",
        measure: server::external_steps,
    },
    Row {
        name: "1,000 runs of 10 steps over HTTP",
        target: ">= 5,000 steps/s",
        measure: server::own_steps,
    },
    Row {
        name: "1,000 readers of one run",
        target: "< 100 MB above idle",
        measure: server::readers,
    },
    Row {
        name: "10,000 waiting webhooks",
        target: "< 40 MB above idle",
        measure: server::webhooks,
    },
    Row {
        name: "next and submit of a tree",
        target: "CPU < 2 ms",
        measure: trees::in_database,
    },
    Row {
        name: "next and submit with a document",
        target: "CPU < 2 ms",
        measure: trees::with_document,
    },
    Row {
        name: "1,000 versions of each of 100 flows",
        target: "push, list, diff < 20 ms; < 1,000 bytes each",
        measure: versions::of_many_flows,
    },
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
    writeln!(out, "{:<34}{:<46}{:<62}met", "row", "target", "measured")?;
    for (number, row) in ROWS.iter().enumerate() {
        if !wanted(row.name) {
            continue;
        }
        let place = folder.path().join(number.to_string());
        std::fs::create_dir_all(&place)?;
        let measured = (row.measure)(&place)?;
        let met = if measured.is_met { "yes" } else { "NO" };
        writeln!(
            out,
            "{:<34}{:<46}{:<62}{met}",
            row.name, row.target, measured.words
        )?;
        std::fs::remove_dir_all(&place)?;
    }
    Ok(())
}
