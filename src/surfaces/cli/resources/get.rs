//! `flowstone resources get`: shows the metadata of a resource, and writes its contents to a file.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use super::ask_engine;
use super::render::facts;
use crate::cli::args::ResourcesGet;
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, Open, output};
use crate::json::resource_json;

/// Shows the resource.
pub(super) fn run(args: &ResourcesGet, app: &dyn App) -> Result<Exit, Report> {
    let output = &args.one.output;
    let (row, bytes) = ask_engine(app, output, Open::Existing, async |engine| {
        let Some(_) = &args.out else {
            return Ok((engine.resource(&args.one.uri).await?, None));
        };
        let row = engine.live_resource(&args.one.uri).await?;
        let bytes = engine.resource_bytes(&row).await?;
        Ok((row, Some(bytes)))
    })?;
    if let (Some(file), Some(bytes)) = (&args.out, &bytes) {
        write(file, bytes).map_err(|error| {
            Report::error("E0916", format!("cannot write {}: {error}", file.display()))
        })?;
    }
    if output.json {
        output::json(&json!({"ok": true, "resource": resource_json(&row), "file": args.out}));
    } else {
        output::data(&facts(&resource_json(&row)));
    }
    Ok(Exit::Completed)
}

/// Writes to a new file and renames it, so that readers see either the old file or the new one.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if path.exists() && !path.is_file() {
        return fs::write(path, bytes);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let unfinished = path.with_file_name(name);
    let written = fs::File::create(&unfinished)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}
