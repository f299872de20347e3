//! `flowstone resources table recompute`: recomputes computed columns.

use super::render::{facts, show};
use super::{Config, Refused, perform};
use crate::cli::args::TableRecompute;
use crate::cli::{App, Open};

/// Computes them.
pub(super) fn run(args: &TableRecompute, app: &dyn App) -> Result<(), Refused> {
    let config = Config::on("recompute", &args.target)
        .read("where", args.filter.as_ref())?
        .int("limit", args.limit)
        .int("offset", args.offset);
    let done = perform(app, &args.target.home, Open::Existing, config)?;
    show(args.target.json, &done, || {
        facts(&done, &["rows-scanned", "rows-updated", "has-more"])
    });
    Ok(())
}
