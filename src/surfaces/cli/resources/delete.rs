//! `flowstone resources delete`: removes a resource after confirmation.

use std::io::{self, BufRead as _, IsTerminal as _};

use flowstone_engine::EngineError;
use serde_json::json;

use super::ask_engine;
use crate::cli::args::ResourcesDelete;
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, Open, output};
use crate::json::resource_json;

/// Removes the resource.
pub(super) fn run(args: &ResourcesDelete, app: &dyn App) -> Result<Exit, Report> {
    let output = &args.one.output;
    if !args.yes && !io::stdin().is_terminal() {
        return Err(
            Report::error("E0938", "there is no terminal to confirm the deletion")
                .hint("use `--yes` to delete without asking"),
        );
    }
    let row = ask_engine(app, output, Open::Existing, async |engine| {
        let row = engine.live_resource(&args.one.uri).await?;
        if !args.yes && !is_agreed(row.name.as_deref().unwrap_or(&row.uri)) {
            return Ok::<_, EngineError>(None);
        }
        let row = engine.delete_resource(&row.uri, args.force).await?;
        Ok(Some(row))
    })?;
    let Some(row) = row else {
        output::note("nothing was deleted");
        return Ok(Exit::Cancelled);
    };
    if output.json {
        output::json(&json!({"ok": true, "deleted": resource_json(&row)}));
    } else {
        output::note(&format!("deleted {}", row.uri));
    }
    Ok(Exit::Completed)
}

fn is_agreed(what: &str) -> bool {
    output::note_part(&format!("delete {what}? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
