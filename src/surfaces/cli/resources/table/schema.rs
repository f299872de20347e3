//! `flowstone resources table schema`: prints the columns of a table.

use super::render::{cell, items, show, text};
use super::{Config, Refused, perform};
use crate::cli::args::TableSchema;
use crate::cli::table::{Column, table};
use crate::cli::{App, Open, output};

/// Shows the columns.
pub(super) fn run(args: &TableSchema, app: &dyn App) -> Result<(), Refused> {
    let config = Config::on("schema", &args.target);
    let found = perform(app, &args.target.home, Open::Existing, config)?;
    show(args.target.json, &found, || {
        if let Some(count) = found.get("row-count") {
            output::note(&format!("{} rows", text(count)));
        }
        let mark = |is: String| {
            if is == "true" {
                "yes".to_owned()
            } else {
                String::new()
            }
        };
        let columns = items(&found, "columns");
        let rows = columns.iter().map(|column| {
            vec![
                cell(column, "name"),
                cell(column, "type"),
                mark(cell(column, "key?")),
                mark(cell(column, "indexed?")),
            ]
        });
        table(
            &["column", "type", "key", "indexed"].map(Column::Whole),
            rows,
        )
    });
    Ok(())
}
