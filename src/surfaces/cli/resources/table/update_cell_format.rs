//! `flowstone resources table update-cell-format`: changes how one cell is displayed.

use super::render::{facts, show};
use super::{Config, Refused, perform};
use crate::cli::args::TableUpdateCellFormat;
use crate::cli::{App, Open};

/// Changes the format.
pub(super) fn run(args: &TableUpdateCellFormat, app: &dyn App) -> Result<(), Refused> {
    let config = Config::on("update-cell-format", &args.target)
        .row(&args.row)?
        .text("column", Some(&args.column))
        .read("format", Some(&args.format))?;
    let done = perform(app, &args.target.home, Open::Existing, config)?;
    show(args.target.json, &done, || {
        facts(&done, &["row-id", "column", "format"])
    });
    Ok(())
}
