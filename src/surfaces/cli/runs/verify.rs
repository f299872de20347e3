//! `flowstone runs verify`: checks that all stored data is intact.

use clap::Args;
use flowstone_engine::ports::{Flaw, Verified};
use serde_json::{Value, json};

use super::ask;
use crate::cli::args::Home;
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, output};

/// Checks that all stored data is intact
///
/// Reads the whole database and checks its structure, the texts of flows and large values against their digests,
/// journals for gaps and for values that cannot be read, keys, waits and cells of tables, the files of blobs, and the
/// files in source trees and changesets. Nothing is changed. The exit code is 0 if everything is intact, otherwise 1.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs verify
  flowstone runs verify --home backups/monday --json")]
pub struct RunsVerify {
    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Checks the project's data, and reports all flaws.
pub(super) fn run(args: &RunsVerify, app: &dyn App) -> Result<Exit, Report> {
    let found = ask(app, &args.home, async |engine| engine.verify_stores().await)?;
    match args.json {
        true => output::json(&in_json(&found)),
        false => tell(&found),
    }
    Ok(match found.flaws.is_empty() {
        true => Exit::Completed,
        false => Exit::Failed,
    })
}

fn tell(found: &Verified) {
    for Flaw { what, name, detail } in &found.flaws {
        output::data(&format!("{what} {name}: {detail}"));
    }
    let counts = format!(
        "{} runs, {} journal entries, {} flow texts, {} large values, {} blobs and {} files of source trees",
        found.runs, found.entries, found.programs, found.payloads, found.blobs, found.files
    );
    output::note(&match found.flaws.len() {
        0 => format!("no flaws in {counts}"),
        flaws => {
            format!("{flaws} flaws in {counts}; docs/guide/backup.md says how to restore a backup")
        }
    });
}

/// Returns the findings as JSON. The names of the fields are stable.
fn in_json(found: &Verified) -> Value {
    let flaws = found
        .flaws
        .iter()
        .map(|flaw| json!({"what": flaw.what, "name": flaw.name, "detail": flaw.detail}));
    json!({
        "ok": found.flaws.is_empty(),
        "runs": found.runs,
        "entries": found.entries,
        "programs": found.programs,
        "values": found.payloads,
        "blobs": found.blobs,
        "files": found.files,
        "flaws": flaws.collect::<Vec<_>>(),
    })
}
