//! `flowstone resources table query`: prints a page of rows.

use flowstone_lang::value::Value;

use super::render::{items, rows, show, text};
use super::{Config, Refused, perform};
use crate::cli::args::{TablePageMode, TableQuery, TableTarget};
use crate::cli::{App, Open, output};

/// Shows the page.
pub(super) fn run(args: &TableQuery, app: &dyn App) -> Result<(), Refused> {
    let is_cursor = args.page_mode == Some(TablePageMode::Cursor) || args.cursor.is_some();
    let mut page = Config(Vec::new())
        .int("limit", args.limit)
        .int("offset", args.offset)
        .text("cursor", args.cursor.as_deref());
    if is_cursor {
        page = page.with("mode", Value::keyword("cursor"));
    } else if args.page_mode.is_some() {
        page = page.with("mode", Value::keyword("offset"));
    }
    if args.total {
        page = page.with("include-total-count", Value::Bool(true));
    }
    let config = Config::on("query", &args.target)
        .read("where", args.rows.filter.as_ref())?
        .names("select", &args.rows.select)
        .listed("sort", args.rows.sort.as_ref())?
        .with("page", page.value());
    let found = perform(app, &args.target.home, Open::Existing, config)?;
    let columns = match args.rows.select.as_slice() {
        [] => columns(&args.target, app)?,
        select => select.to_vec(),
    };
    let page = found.get("page").cloned().unwrap_or(Value::Nil);
    show(args.target.json, &found, || {
        if let Some(next) = page.get("next-cursor").filter(|next| !next.is_nil()) {
            output::note(&format!("more rows: --cursor {}", text(next)));
        } else if let Some(next) = page.get("next-offset").filter(|next| !next.is_nil()) {
            output::note(&format!("more rows: --offset {}", text(next)));
        }
        if let Some(total) = page.get("total-count") {
            output::note(&format!("{} rows in all", text(total)));
        }
        rows(&columns, &items(&found, "rows"))
    });
    Ok(())
}

/// Returns the columns in the order of the table.
fn columns(target: &TableTarget, app: &dyn App) -> Result<Vec<String>, Refused> {
    if target.json {
        return Ok(Vec::new());
    }
    let config = Config::of("schema").with("table", Value::from(target.table.as_str()));
    let schema = perform(app, &target.home, Open::Existing, config)?;
    let columns = items(&schema, "columns");
    Ok(columns
        .iter()
        .filter_map(|column| column.get("name").map(text))
        .collect())
}
