//! `flowstone resources table update-cell`: changes one cell.

use super::render::{facts, show};
use super::{Config, Refused, perform, word};
use crate::cli::args::TableUpdateCell;
use crate::cli::{App, Open, input};

/// Changes the cell.
pub(super) fn run(args: &TableUpdateCell, app: &dyn App) -> Result<(), Refused> {
    let value = word(input::read(&args.value, "--value")?);
    let config = Config::on("update-cell", &args.target)
        .row(&args.row)?
        .text("column", Some(&args.column))
        .with("value", value);
    let done = perform(app, &args.target.home, Open::Existing, config)?;
    show(args.target.json, &done, || {
        facts(&done, &["row-id", "column", "value", "previous"])
    });
    Ok(())
}
