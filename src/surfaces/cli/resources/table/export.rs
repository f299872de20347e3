//! `flowstone resources table export`: writes rows as CSV.

use flowstone_engine::EngineError;
use flowstone_engine::blob::BlobHash;
use flowstone_lang::value::Value;
use serde_json::json;

use super::render::text;
use super::{Config, Refused, ask, perform};
use crate::cli::args::TableExport;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::{App, Open, output};

/// Writes the rows.
pub(super) fn run(args: &TableExport, app: &dyn App) -> Result<(), Refused> {
    let config = Config::on("export", &args.target)
        .read("where", args.rows.filter.as_ref())?
        .names("select", &args.rows.select)
        .listed("sort", args.rows.sort.as_ref())?
        .with("escape-formulas?", Value::Bool(args.escape_formulas));
    let found = perform(app, &args.target.home, Open::Existing, config)?;
    let bytes = content(args, app, &found)?;
    let rows = found.get("rows").map_or_else(String::new, text);
    let Some(file) = &args.out else {
        match args.target.json {
            true => output::json(&json!({
                "ok": true,
                "rows": rows.parse::<u64>().unwrap_or(0),
                "filename": found.get("filename").map(text),
                "contentType": found.get("content-type").map(text),
                "content": String::from_utf8_lossy(&bytes),
            })),
            false => output::whole(&String::from_utf8_lossy(&bytes)),
        }
        return Ok(());
    };
    std::fs::write(file, &bytes).map_err(|error| {
        Report::error("E0932", format!("cannot write {}: {error}", file.display()))
    })?;
    match args.target.json {
        true => output::json(&json!({
            "ok": true,
            "rows": rows.parse::<u64>().unwrap_or(0),
            "file": file.display().to_string(),
            "sizeBytes": bytes.len(),
        })),
        false => output::note(&format!("{rows} rows in {}", file.display())),
    }
    Ok(())
}

/// Returns the text, even if it was too large for an inline value.
fn content(args: &TableExport, app: &dyn App, found: &Value) -> Result<Vec<u8>, Refused> {
    if let Some(content) = found.get("content").and_then(Value::as_str) {
        return Ok(content.as_bytes().to_vec());
    }
    let blob = BlobHash(found.get("sha256").map_or_else(String::new, text));
    let bytes = ask(app, &args.target.home, Open::Existing, async |engine| {
        let read = engine.stores().blobs.get(&blob).await;
        read.map_err(|error| of_engine_error(&EngineError::from(error)))
    })?;
    Ok(bytes)
}
