//! `flowstone backup`: a consistent copy of a home while it is in use.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::json;

use super::args::Home;
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::Report;
use super::runs::size;
use super::runtime::Runtime;
use super::{App, Open, output};

/// Copies all data of a project to another folder
///
/// Copies runs, journals, waits, tables, values and blobs as of one point in time; workers and commands may keep
/// running. The copy is itself a home: read it with `--home`, or put it in place of a lost one. Two workers must not
/// resume the same runs from a home and from its copy.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone backup backups/monday
  flowstone runs verify --home backups/monday
  mv .flowstone lost && cp -r backups/monday .flowstone")]
pub struct Backup {
    /// The folder to create; it must not exist yet
    #[arg(value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Makes the copy, and reports its contents.
pub fn run(args: &Backup, app: &dyn App) -> Exit {
    copy(args, app).unwrap_or_else(|report| {
        output::failure(&report, args.json);
        Exit::Failed
    })
}

fn copy(args: &Backup, app: &dyn App) -> Result<Exit, Report> {
    let copied = Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(&args.home), Open::Existing)?;
        let copied = engine.backup(&args.folder).await;
        copied.map_err(|error| of_engine_error(&error))
    })?;
    let folder = args.folder.display().to_string();
    if args.json {
        output::json(&json!({
            "ok": true,
            "folder": folder,
            "runs": copied.runs,
            "files": copied.files,
            "bytes": copied.bytes,
            "key": copied.has_key,
        }));
    } else {
        let (runs, files) = (copied.runs, copied.files);
        let bytes = size(copied.bytes);
        output::data(&format!("{folder}: {runs} runs, {files} files, {bytes}"));
        if copied.has_key {
            output::note(
                "the key of the secret inputs is in the copy: keep it as safe as the secrets",
            );
        }
    }
    Ok(Exit::Completed)
}
