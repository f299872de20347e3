//! `flowstone resources table set-column`: adds a column, or changes its definition.

use super::render::{facts, show};
use super::{Config, Refused, perform};
use crate::cli::args::TableSetColumn;
use crate::cli::{App, Open};

/// Changes the column.
pub(super) fn run(args: &TableSetColumn, app: &dyn App) -> Result<(), Refused> {
    let config = Config::on("set-column", &args.target)
        .text("column", Some(&args.column))
        .read("definition", Some(&args.definition))?;
    let done = perform(app, &args.target.home, Open::Existing, config)?;
    show(args.target.json, &done, || {
        facts(&done, &["created?", "column", "cells-changed"])
    });
    Ok(())
}
