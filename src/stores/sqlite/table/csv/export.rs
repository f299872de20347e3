//! Export of rows as CSV text, written while they are read.
//!
//! An import into columns of the same types restores the same cells: nil is an empty field, an empty string is quoted,
//! and doubles have a point.

use std::path::Path;

use flowstone_model::codec::decode;
use flowstone_model::json;
use flowstone_model::ports::StoreError;
use flowstone_model::table::ColumnType;
use flowstone_model::table::csv::{CsvContent, ExportCsv, ExportedCsv, MAX_TEXT, is_formula};
use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::super::super::blob::incoming;
use super::super::super::failure::failed;
use super::super::cell::to_plain;
use super::super::filter::{Condition, filter, order};
use super::super::registry::Table;
use super::super::rows::Selection;

/// Size of the pieces in which text is passed on, in bytes.
const PIECE: usize = 256 << 10;

/// Exports rows as text, or as a blob if the text is large.
///
/// # Errors
/// [`StoreError::Rejected`] when the query does not fit the table.
pub(in crate::sqlite) fn export(
    db: &Connection,
    folder: &Path,
    ask: &ExportCsv,
) -> Result<ExportedCsv, StoreError> {
    let mut text = String::new();
    let mut file = None;
    let (filename, rows) = write(db, ask, |piece| {
        if file.is_none() && text.len() + piece.len() <= MAX_TEXT {
            text.push_str(piece);
            return Ok(());
        }
        let file = match &mut file {
            Some(file) => file,
            None => {
                let file = file.insert(incoming::begin_here(folder)?);
                file.write(std::mem::take(&mut text).as_bytes())?;
                file
            }
        };
        file.write(piece.as_bytes())
    })?;
    let content = match file {
        None => CsvContent::Text(text),
        Some(file) => {
            let stored = file.finish()?;
            CsvContent::Blob {
                blob: stored.hash,
                bytes: stored.size,
            }
        }
    };
    Ok(ExportedCsv {
        content,
        rows,
        filename,
    })
}

fn write(
    db: &Connection,
    ask: &ExportCsv,
    mut take: impl FnMut(&str) -> Result<(), StoreError>,
) -> Result<(String, u64), StoreError> {
    let table = Table::open(db, &ask.table)?;
    let selection = Selection::of(&table, &ask.select)?;
    let mut condition = Condition::default();
    filter(&table, &ask.filter, &mut condition)?;
    let columns = match selection.sql.is_empty() {
        true => "NULL".to_owned(),
        false => selection.sql.join(", "),
    };
    let sql = format!(
        "SELECT {columns} FROM {} WHERE {} ORDER BY {}",
        table.sql(),
        condition.sql,
        order(&table, &ask.sort)?
    );
    let mut sql = db.prepare(&sql).map_err(failed)?;
    let mut rows = sql
        .query(params_from_iter(&condition.cells))
        .map_err(failed)?;
    let mut out = String::new();
    let writing = Writing {
        escape_formulas: ask.escape_formulas,
    };
    for (idx, name) in selection.names.iter().enumerate() {
        out.push_str(if idx > 0 { "," } else { "" });
        writing.text(&mut out, name);
    }
    out.push('\n');
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        for (idx, type_) in selection.types.iter().enumerate() {
            out.push_str(if idx > 0 { "," } else { "" });
            writing.cell(&mut out, *type_, row.get_ref(idx).map_err(failed)?);
        }
        out.push('\n');
        count += 1;
        if out.len() >= PIECE {
            take(&out)?;
            out.clear();
        }
    }
    take(&out)?;
    let filename = format!("{}.csv", table.name.replace(['/', '\\'], "-"));
    Ok((filename, count))
}

/// The format in which cells are written.
struct Writing {
    escape_formulas: bool,
}

impl Writing {
    fn cell(&self, out: &mut String, type_: ColumnType, cell: ValueRef<'_>) {
        use std::fmt::Write as _;
        match (type_, cell) {
            (_, ValueRef::Null | ValueRef::Blob(_)) => {}
            // A number is not evaluated, so it needs no apostrophe.
            (ColumnType::Decimal, ValueRef::Text(text)) => {
                push_text(out, &String::from_utf8_lossy(text));
            }
            (ColumnType::String | ColumnType::Date, ValueRef::Text(text)) => {
                self.text(out, &String::from_utf8_lossy(text));
            }
            (ColumnType::Long | ColumnType::Double, ValueRef::Integer(integer)) => {
                // Writing to a string does not fail.
                let _ = write!(out, "{integer}");
            }
            (ColumnType::Json, ValueRef::Text(text)) => {
                self.text(out, &data(&String::from_utf8_lossy(text)));
            }
            (type_, cell) => {
                let cell = Sql::try_from(cell).unwrap_or(Sql::Null);
                push_text(out, &to_plain(type_, &cell));
            }
        }
    }

    fn text(&self, out: &mut String, text: &str) {
        match self.escape_formulas && is_formula(text) {
            true => push_text(out, &format!("'{text}")),
            false => push_text(out, text),
        }
    }
}

/// Returns data as JSON; a string stays as it is, unless an import would read it as something else.
fn data(edn: &str) -> String {
    let tree = match decode(edn).map(|value| json::to_exact_json(&value)) {
        Ok(Ok(tree)) => tree,
        _ => return edn.to_owned(),
    };
    match &tree {
        serde_json::Value::String(text) if json::read(text).is_err() => text.clone(),
        tree => json::compact(tree),
    }
}

/// Writes a text, in quotes if necessary: also an empty one, which would be nil otherwise.
fn push_text(out: &mut String, text: &str) {
    let needs_quotes = text.is_empty()
        || text
            .bytes()
            .any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'));
    if !needs_quotes {
        out.push_str(text);
        return;
    }
    out.push('"');
    let mut parts = text.split('"');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push_str("\"\"");
        out.push_str(part);
    }
    out.push('"');
}
