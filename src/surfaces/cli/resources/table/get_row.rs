//! `flowstone resources table get-row`: prints one row.

use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

use super::render::{show, text};
use super::{Config, Refused, perform};
use crate::cli::args::TableGetRow;
use crate::cli::report::Report;
use crate::cli::{App, Open};

/// Shows the row.
pub(super) fn run(args: &TableGetRow, app: &dyn App) -> Result<(), Refused> {
    let config = Config::on("get-row", &args.target)
        .row(&args.row)?
        .names("select", &args.select);
    let found = perform(app, &args.target.home, Open::Existing, config)?;
    let row = found.get("row").cloned().unwrap_or(Value::Nil);
    let Some(map) = row.as_map() else {
        let message = format!("the table `{}` has no such row", args.target.table);
        return Err(Report::error("E0931", message)
            .hint("`flowstone resources table query` shows the rows that there are")
            .into());
    };
    show(args.target.json, &found, || {
        let lines = map.iter().map(|(key, value)| {
            let name = name_of(key).unwrap_or_else(|| "?".into());
            format!("{name}: {}\n", text(value))
        });
        lines.collect()
    });
    Ok(())
}
