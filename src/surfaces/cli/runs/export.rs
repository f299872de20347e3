//! `flowstone runs export`: writes a run to a file.

use std::fs;
use std::io::Write;
use std::path::Path;

use flowstone_engine::archive::Archive;
use serde_json::json;

use super::ask;
use crate::cli::args::RunsExport;
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, output};

/// Writes the file.
pub(super) fn run(args: &RunsExport, app: &dyn App) -> Result<Exit, Report> {
    let archive = ask(app, &args.home, async |engine| {
        let run = engine.find_run(&args.id).await?.id;
        engine.export_run(&run, args.children).await
    })?;
    store(&archive, archive.write(), args)
}

/// Writes the text of an archive to the file, or to standard output.
///
/// # Errors
/// When the file cannot be written.
pub fn store(archive: &Archive, text: String, args: &RunsExport) -> Result<Exit, Report> {
    if args.file == Path::new("-") {
        output::data(&text);
        return Ok(Exit::Completed);
    }
    let name = args.file.display();
    replace(&args.file, &text)
        .map_err(|error| Report::error("E0916", format!("cannot write {name}: {error}")))?;
    let runs: Vec<&str> = archive.runs.iter().map(|run| run.row.id.as_str()).collect();
    if args.json {
        output::json(&json!({"ok": true, "file": args.file, "runs": runs, "bytes": text.len()}));
    } else {
        output::note(&format!("exported {} to {name}", runs.join(", ")));
    }
    Ok(Exit::Completed)
}

/// Writes to a new file and renames it, so that readers see either the old file or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    if path.exists() && !path.is_file() {
        return fs::write(path, text);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let unfinished = path.with_file_name(name);
    let written = fs::File::create(&unfinished)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}
