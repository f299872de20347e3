//! Changes of one cell: its content, and its display.

use flowstone_model::ports::StoreError;
use flowstone_model::table::{Cell, FormatCell, RowChoice, UpdateCell};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params, params_from_iter};

use super::super::failure::{failed, rejected, with_hint};
use super::cell::{data_text, to_edn, to_sql};
use super::computed;
use super::filter::{Condition, choice};
use super::intake::Intake;
use super::meta::{format_edn, format_json, read_format};
use super::registry::Table;
use super::write::{check_given, execute, fit_columns, no_key};
use crate::edn::{self, MapText};

pub(super) fn cell(db: &Connection, ask: &UpdateCell) -> Result<String, StoreError> {
    let mut table = Table::open_to_change(db, &ask.table)?;
    check_given(table.known(&ask.column)?)?;
    let id = single(db, &table, &ask.row)?;
    let row = vec![(ask.column.clone(), ask.value.clone())];
    fit_columns(db, &mut table, &[row])?;
    let column = table.known(&ask.column)?.clone();
    let Some(type_) = column.type_ else {
        // The column has no cell that is not nil.
        return answer(&table, id, &column.name, ("nil", "nil"));
    };
    if column.key > 0 && ask.value == Cell::Nil {
        return Err(no_key(0, &column.name));
    }
    let mut kept = to_sql(type_, &ask.value).unwrap_or(Sql::Null);
    if let Some(mut intake) = Intake::of(&table)? {
        let place = table
            .columns
            .iter()
            .position(|known| known.idx == column.idx);
        kept = intake
            .take(place.unwrap_or(usize::MAX), kept)?
            .map_err(|refusal| refusal.error(&format!("row {id}"), &column.name))?;
        intake.finish(db, &table)?;
    }
    let sql = format!(
        "SELECT {} FROM {} WHERE row_id = ?1",
        column.sql(),
        table.sql()
    );
    let before: Sql = db.query_row(&sql, [id], |row| row.get(0)).map_err(failed)?;
    let sql = format!(
        "UPDATE {} SET {} = ?1 WHERE row_id = ?2",
        table.sql(),
        column.sql()
    );
    execute(db, &sql, &[kept.clone(), Sql::Integer(id)]).map_err(|error| match error {
        StoreError::Rejected {
            code: StoreError::ROW_KEY,
            ..
        } => {
            let message = format!(
                "the table `{}` has a row with `{}` {} already",
                table.name,
                column.name,
                data_text(&ask.value).unwrap_or_default()
            );
            rejected(StoreError::ROW_KEY, "conflict", message)
        }
        other => other,
    })?;
    let row = Condition {
        sql: "row_id = ?".to_owned(),
        cells: vec![Sql::Integer(id)],
    };
    computed::refresh(db, &mut table, &row)?;
    let texts = (to_edn(type_, &kept), to_edn(type_, &before));
    answer(&table, id, &column.name, (&texts.0, &texts.1))
}

fn answer(
    table: &Table,
    id: i64,
    column: &str,
    (value, before): (&str, &str),
) -> Result<String, StoreError> {
    Ok(MapText::new()
        .bool("success", true)
        .text("table", &table.name)
        .raw("row-id", &id.to_string())
        .text("column", column)
        .raw("value", value)
        .raw("previous", before)
        .finish())
}

pub(super) fn format(db: &Connection, ask: &FormatCell) -> Result<String, StoreError> {
    let table = Table::open_to_change(db, &ask.table)?;
    let column = table.known(&ask.column)?;
    let id = single(db, &table, &ask.row)?;
    match &ask.format {
        None => db.execute(
            "DELETE FROM table_cell_format WHERE table_id = ?1 AND row_id = ?2 AND idx = ?3",
            params![table.id, id, column.idx],
        ),
        Some(format) => db.execute(
            "INSERT INTO table_cell_format (table_id, row_id, idx, format) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (table_id, row_id, idx) DO UPDATE SET format = excluded.format",
            params![table.id, id, column.idx, format_json(format).to_string()],
        ),
    }
    .map_err(failed)?;
    let format = ask.format.as_ref().map_or("nil".to_owned(), format_edn);
    Ok(MapText::new()
        .bool("success", true)
        .text("table", &table.name)
        .raw("row-id", &id.to_string())
        .text("column", &column.name)
        .raw("format", &format)
        .finish())
}

/// Returns the formats of cells of some rows, as EDN text: a vector of row, column and format; `None` if no cell has a
/// format.
pub(super) fn formats(
    db: &Connection,
    table: &Table,
    rows: &[i64],
) -> Result<Option<String>, StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT idx, format FROM table_cell_format WHERE table_id = ?1 AND row_id = ?2 ORDER BY idx",
        )
        .map_err(failed)?;
    let has_any: bool = db
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM table_cell_format WHERE table_id = ?1)")
        .and_then(|mut sql| sql.query_row([table.id], |row| row.get(0)))
        .map_err(failed)?;
    if !has_any {
        return Ok(None);
    }
    let mut all = Vec::new();
    for id in rows {
        let found: Vec<(i64, String)> = sql
            .query_map([table.id, *id], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect)
            .map_err(failed)?;
        for (idx, format) in found {
            let column = table.columns.iter().find(|column| column.idx == idx);
            let format = serde_json::from_str(&format)
                .ok()
                .as_ref()
                .and_then(read_format);
            if let (Some(column), Some(format)) = (column, format) {
                let map = MapText::new()
                    .raw("row-id", &id.to_string())
                    .text("column", &column.name)
                    .raw("format", &format_edn(&format));
                all.push(map.finish());
            }
        }
    }
    Ok((!all.is_empty()).then(|| edn::vector(all)))
}

/// Finds the single row that was selected.
fn single(db: &Connection, table: &Table, rows: &RowChoice) -> Result<i64, StoreError> {
    let mut condition = Condition::default();
    choice(table, rows, &mut condition)?;
    let sql = format!(
        "SELECT row_id FROM {} WHERE {} ORDER BY row_id LIMIT 2",
        table.sql(),
        condition.sql
    );
    let found: Vec<i64> = db
        .prepare(&sql)
        .and_then(|mut sql| {
            sql.query_map(params_from_iter(&condition.cells), |row| row.get(0))?
                .collect()
        })
        .map_err(failed)?;
    match found.as_slice() {
        [id] => Ok(*id),
        [] => {
            let message = format!(
                "the table `{}` has no such row: {}",
                table.name,
                named(rows)
            );
            let error = rejected("E0629", "not-found", message);
            Err(with_hint(
                error,
                "`:op :upsert` adds a row if it does not exist",
            ))
        }
        _ => {
            let message = format!(
                "the key matches more than one row of the table `{}`: {}",
                table.name,
                named(rows)
            );
            let error = rejected("E0629", "bad-config", message);
            Err(with_hint(
                error,
                "name all fields of its key, or its `:row-id`",
            ))
        }
    }
}

fn named(rows: &RowChoice) -> String {
    match rows {
        RowChoice::Id(id) => format!("`:row-id` {id}"),
        RowChoice::Key(key) => {
            let cells: Vec<String> = key
                .iter()
                .map(|(name, cell)| format!("`{name}` {}", data_text(cell).unwrap_or_default()))
                .collect();
            cells.join(", ")
        }
        RowChoice::All | RowChoice::Where(_) => "a condition".to_owned(),
    }
}
