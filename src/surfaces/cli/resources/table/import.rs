//! `flowstone resources table import`: adds the rows of a CSV file to a table.

use std::path::{Path, PathBuf};

use flowstone_lang::value::Value;

use super::render::{facts, items, show, text};
use super::{Config, Refused, perform_in};
use crate::cli::args::{TableBadRow, TableImport, TableWriteMode};
use crate::cli::report::{Report, unreadable};
use crate::cli::{App, Open, input, output};

/// Imports the file.
pub(super) fn run(args: &TableImport, app: &dyn App) -> Result<(), Refused> {
    let mode = match args.write_mode {
        TableWriteMode::Append => "append",
        TableWriteMode::Replace => "replace",
        TableWriteMode::Upsert => "upsert",
    };
    let on_bad_row = match args.on_bad_row {
        TableBadRow::Collect => "collect",
        TableBadRow::Fail => "fail",
        TableBadRow::Skip => "skip",
    };
    let delimiter = match args.delimiter.as_deref() {
        Some("tab" | "\\t") => Some("\t"),
        given => given,
    };
    let config = Config::on("import", &args.target)
        .with("write-mode", Value::keyword(mode))
        .with("on-bad-row", Value::keyword(on_bad_row))
        .with("header?", Value::Bool(!args.no_header))
        .names("key-fields", &args.key_fields)
        .names("index-fields", &args.index_fields)
        .read("columns", args.columns.as_ref())?
        .text("delimiter", delimiter)
        .text("encoding", args.encoding.as_deref());
    let (config, folder) = source(config, &args.file)?;
    let done = perform_in(app, &args.target.home, Open::OrMake, (config, folder))?;
    show(args.target.json, &done, || {
        for bad in items(&done, "rejected") {
            let part = |key: &str| bad.get(key).map(text);
            let column =
                part("column").map_or_else(String::new, |column| format!(", column `{column}`"));
            let (line, reason) = (
                part("line").unwrap_or_default(),
                part("reason").unwrap_or_default(),
            );
            output::note(&format!("line {line}{column}: {reason}"));
        }
        facts(
            &done,
            &[
                "rows-written",
                "rows-inserted",
                "rows-updated",
                "rows-rejected",
                "row-count",
                "uri",
            ],
        )
    });
    Ok(())
}

/// Returns the source of the text. The step may use the folder of a named file.
fn source(config: Config, file: &str) -> Result<(Config, Option<PathBuf>), Report> {
    if file == "-" {
        let csv = input::text(Path::new(file))?;
        return Ok((config.text("csv", Some(&csv)), None));
    }
    if file.starts_with("res://") {
        return Ok((config.text("from", Some(file)), None));
    }
    let path = Path::new(file)
        .canonicalize()
        .map_err(|error| unreadable(file, &error))?;
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => {
            let name = name.to_string_lossy();
            Ok((config.text("from", Some(&name)), Some(folder.to_owned())))
        }
        _ => Err(Report::error(
            "E0905",
            format!("cannot read {file}: it is a folder"),
        )),
    }
}
