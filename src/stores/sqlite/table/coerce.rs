//! Conversion of cells when a column changes its type.

use std::str::FromStr as _;

use flowstone_lang::value::BigDecimal;
use flowstone_model::codec::decode;
use flowstone_model::json::instant_millis;
use flowstone_model::ports::StoreError;
use flowstone_model::table::ColumnType;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params};

use super::super::failure::{failed, rejected, with_hint};
use super::cell::{civil, date_text, enum_text, from_value, holds, to_edn, to_plain, to_sql};
use super::registry::Table;

/// Number of cells that are read at once.
const CHUNK: usize = 10_000;
/// Maximum number of cells named in an error.
const NAMED: usize = 5;

/// Changes the type of a column and converts its cells; if one does not fit, nothing is changed. Returns the number of
/// changed cells.
pub(super) fn retype(
    db: &Connection,
    table: &mut Table,
    name: &str,
    to: ColumnType,
) -> Result<usize, StoreError> {
    let Some(from) = table.known(name)?.type_ else {
        table.set_type(db, name, to)?;
        return Ok(0);
    };
    if from == to {
        return Ok(0);
    }
    let changes = changes(db, table, name, |cell| convert(from, to, cell))?;
    if let Some((first, count)) = changes.bad.first().map(|first| (first, changes.bad_count)) {
        let rows: Vec<String> = changes
            .bad
            .iter()
            .map(|(row, cell)| format!("row {row}: {}", shown(from, cell)))
            .collect();
        let message = format!(
            "{count} cells of `{name}` cannot become {}: {}{}",
            holds(to),
            rows.join(", "),
            if count > changes.bad.len() {
                " ..."
            } else {
                ""
            }
        );
        let hint = format!(
            "correct them first, as with `{{:op :update-cell :table \"{}\" :row-id {} :column \"{name}\" :value nil}}`",
            table.name, first.0
        );
        return Err(with_hint(rejected("E0631", "invalid", message), hint));
    }
    if (from == ColumnType::Decimal) != (to == ColumnType::Decimal) {
        table.recollate(db, name, to)?;
    }
    table.set_type(db, name, to)?;
    changes.write(db, table, name)
}

/// Cells that change, by their row numbers.
pub(super) struct Changes {
    cells: Vec<(i64, Sql)>,
    bad: Vec<(i64, Sql)>,
    bad_count: usize,
}

/// Checks all cells of a column that are not nil.
pub(super) fn changes(
    db: &Connection,
    table: &Table,
    name: &str,
    mut change: impl FnMut(&Sql) -> Option<Sql>,
) -> Result<Changes, StoreError> {
    let column = table.known(name)?.sql();
    let sql = format!(
        "SELECT row_id, {column} FROM {} WHERE row_id > ?1 AND {column} IS NOT NULL ORDER BY row_id LIMIT {CHUNK}",
        table.sql()
    );
    let mut sql = db.prepare(&sql).map_err(failed)?;
    let mut changes = Changes {
        cells: Vec::new(),
        bad: Vec::new(),
        bad_count: 0,
    };
    let mut last = i64::MIN;
    loop {
        let chunk: Vec<(i64, Sql)> = sql
            .query_map([last], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect)
            .map_err(failed)?;
        let Some((id, _)) = chunk.last() else {
            return Ok(changes);
        };
        last = *id;
        for (id, cell) in chunk {
            match change(&cell) {
                Some(kept) if kept == cell => {}
                Some(kept) => changes.cells.push((id, kept)),
                None => {
                    changes.bad_count += 1;
                    if changes.bad.len() < NAMED {
                        changes.bad.push((id, cell));
                    }
                }
            }
        }
    }
}

impl Changes {
    /// Returns the first rows whose cells cannot be converted, and the number of all.
    pub(super) fn bad(&self) -> (&[(i64, Sql)], usize) {
        (&self.bad, self.bad_count)
    }

    /// Writes the changed cells.
    pub(super) fn write(
        self,
        db: &Connection,
        table: &Table,
        name: &str,
    ) -> Result<usize, StoreError> {
        let column = table.known(name)?.sql();
        let sql = format!("UPDATE {} SET {column} = ?2 WHERE row_id = ?1", table.sql());
        let mut sql = db.prepare(&sql).map_err(failed)?;
        let count = self.cells.len();
        for (id, kept) in self.cells {
            sql.execute(params![id, kept])
                .map_err(|error| match error.sqlite_error_code() {
                    Some(rusqlite::ErrorCode::ConstraintViolation) => {
                        let message = format!(
                            "`{name}` is part of the key of the table `{}`, and row {id} would have the same as another",
                            table.name
                        );
                        rejected(StoreError::ROW_KEY, "conflict", message)
                    }
                    _ => failed(error),
                })?;
        }
        Ok(count)
    }
}

fn shown(type_: ColumnType, cell: &Sql) -> String {
    let text = to_edn(type_, cell);
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{} ...", &text[..at]),
        None => text,
    }
}

/// Returns the stored form of a cell in a column of another type; `None` if that would lose information.
pub(super) fn convert(from: ColumnType, to: ColumnType, kept: &Sql) -> Option<Sql> {
    if matches!(kept, Sql::Null) || from == to {
        return Some(kept.clone());
    }
    match (from, to) {
        (_, ColumnType::Json) => Some(Sql::Text(to_edn(from, kept))),
        (ColumnType::Json, to) => {
            let Sql::Text(text) = kept else { return None };
            let cell = from_value(&decode(text).ok()?)?;
            to_sql(to, &cell).or_else(|| read(to, &to_plain(from, kept)))
        }
        (_, ColumnType::String) => Some(Sql::Text(to_plain(from, kept))),
        (_, ColumnType::Enum) => Some(Sql::Text(enum_text(&to_plain(from, kept)))),
        (ColumnType::Timestamp, ColumnType::Date) => match kept {
            Sql::Integer(millis) => Some(Sql::Text(civil(*millis)?.date().to_string())),
            _ => None,
        },
        (ColumnType::Timestamp, ColumnType::Long) => Some(kept.clone()),
        (ColumnType::Long, ColumnType::Timestamp) => match kept {
            Sql::Integer(millis) => civil(*millis).map(|_| kept.clone()),
            _ => None,
        },
        (ColumnType::Boolean, ColumnType::Long) => Some(kept.clone()),
        (from, to) => read(to, &to_plain(from, kept)),
    }
}

/// Parses text as a cell of a type.
fn read(to: ColumnType, text: &str) -> Option<Sql> {
    let text = text.trim();
    Some(match to {
        ColumnType::String | ColumnType::Json => Sql::Text(text.to_owned()),
        ColumnType::Enum => Sql::Text(enum_text(text)),
        ColumnType::Long => match text.parse::<i64>() {
            Ok(long) => Sql::Integer(long),
            Err(_) => {
                let decimal = BigDecimal::from_str(text).ok()?;
                let whole = decimal.normalized().to_plain_string();
                Sql::Integer(whole.parse().ok()?)
            }
        },
        ColumnType::Double => match text.parse::<i64>() {
            Ok(long) => Sql::Integer(long),
            Err(_) => Sql::Real(
                text.parse()
                    .ok()
                    .filter(|double: &f64| double.is_finite())?,
            ),
        },
        ColumnType::Decimal => Sql::Text(BigDecimal::from_str(text).ok()?.to_plain_string()),
        ColumnType::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Sql::Integer(1),
            "false" | "no" | "0" => Sql::Integer(0),
            _ => return None,
        },
        ColumnType::Date => Sql::Text(date_text(text)?),
        ColumnType::Timestamp => Sql::Integer(instant_millis(text)?),
    })
}
