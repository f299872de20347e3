//! Copies of rows in another database.

use flowstone_model::ports::StoreError;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, ToSql, params_from_iter};

use super::failure::failed;

/// What happens with a row that the other database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has none of them: one is an error.
    None,
    /// The row there stays.
    Stays,
}

/// Copies the rows of a table that fit a condition with one value.
///
/// # Errors
/// When a database cannot be read or written.
pub(crate) fn copy_rows(
    from: &Connection,
    to: &Connection,
    table: &str,
    (condition, value): (&str, &dyn ToSql),
    known: Known,
) -> Result<(), StoreError> {
    let mut reading = from
        .prepare(&format!("SELECT * FROM {table} WHERE {condition}"))
        .map_err(failed)?;
    let columns = reading.column_names();
    let columns: Vec<String> = columns.map(|it| format!("\"{it}\"")).collect();
    let places = vec!["?"; columns.len()].join(", ");
    let columns = columns.join(", ");
    let mut writing = to
        .prepare(&format!(
            "INSERT{} INTO {table} ({columns}) VALUES ({places})",
            match known {
                Known::None => "",
                Known::Stays => " OR IGNORE",
            }
        ))
        .map_err(failed)?;
    let count = reading.column_count();
    let mut rows = reading.query([value]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let cells: Result<Vec<Sql>, _> = (0..count).map(|idx| row.get(idx)).collect();
        let written = writing.execute(params_from_iter(cells.map_err(failed)?));
        written.map_err(failed)?;
    }
    Ok(())
}
