//! `flowstone resources table aggregate`: prints aggregates of groups of rows.

use super::render::{items, rows, show};
use super::{Config, Refused, perform};
use crate::cli::args::TableAggregate;
use crate::cli::{App, Open};

/// Shows the groups.
pub(super) fn run(args: &TableAggregate, app: &dyn App) -> Result<(), Refused> {
    let config = Config::on("aggregate", &args.target)
        .read("where", args.filter.as_ref())?
        .listed("group-by", args.group_by.as_ref())?
        .listed("metrics", args.metrics.as_ref())?
        .read("having", args.having.as_ref())?
        .listed("order-by", args.order_by.as_ref())?
        .int("limit", args.limit);
    let found = perform(app, &args.target.home, Open::Existing, config)?;
    show(args.target.json, &found, || {
        rows(&[], &items(&found, "groups"))
    });
    Ok(())
}
