//! `flowstone resources get`: what is known of a resource.

use serde_json::json;

use super::told::{facts, in_json};
use super::{ask, find, is_json};
use crate::cli::args::ResourcesGet;
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, Open, output};

/// Shows the resource.
pub(super) fn run(args: &ResourcesGet, app: &dyn App) -> Result<Exit, Report> {
    let row = ask(app, &args.home, Open::Existing, async |engine| {
        find(engine, &args.uri).await
    })?;
    if is_json(args.json) {
        output::json(&json!({"ok": true, "resource": in_json(&row)}));
    } else {
        output::data(&facts(&row));
    }
    Ok(Exit::Completed)
}
