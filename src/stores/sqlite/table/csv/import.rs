//! Import of a staged file: rows are written from the copy into the table without intermediate values.
//!
//! For a new table, indexes are created after the rows, which is much faster than updating them for each row.

use std::fs::File;

use flowstone_model::ports::StoreError;
use flowstone_model::rooted::open_regular;
use flowstone_model::table::csv::{ImportCsv, MAX_REJECTED, OnBadRow};
use flowstone_model::table::{ColumnType, Partitions, TableName, WriteMode};
use rusqlite::{Connection, Statement};

use super::super::super::failure::{failed, rejected, with_hint};
use super::super::cell::holds;
use super::super::computed;
use super::super::filter::Condition;
use super::super::intake::Intake;
use super::super::partition;
use super::super::registry::{Column, Table, listed};
use super::super::write::{check_given, reference};
use super::cell::kept;
use super::split::{Next, Splitter};
use super::{BadRow, place_of, unreadable};
use crate::edn;

/// Minimum number of new rows for which the planner's statistics are updated.
const WORTH_ANALYSING: u64 = 5_000;
/// Size of the page cache during an import, in KiB.
const CACHE_KB: i64 = 64 << 10;

/// Imports rows and returns the result as EDN text. Must run in a transaction.
///
/// # Errors
/// [`StoreError::Rejected`] when the file does not fit the table: the caller must roll back all of it.
pub(in crate::sqlite::table) fn import(
    db: &Connection,
    import: &ImportCsv,
    now_ms: i64,
) -> Result<String, StoreError> {
    let target = &import.table;
    let mut table = match (&target.name, Table::find(db, &target.name)?) {
        (_, Some(table)) => table,
        (TableName::Name(name), None) => {
            let partitioned = matches!(target.partitions, Partitions::Keys(_));
            Table::create(db, name, partitioned, now_ms)?
        }
        (TableName::Id(_), None) => Table::root(db, &target.name)?,
    };
    partition::choose_to_write(db, &mut table, &target.partitions, now_ms)?;
    if import.mode == WriteMode::Replace {
        let sql = format!("DELETE FROM {}{}", table.sql(), within(&table));
        db.execute(&sql, []).map_err(failed)?;
    }
    let was_empty = is_empty(db, &table)?;
    add_columns(db, &mut table, import)?;
    let key = settle_key(&table, import)?;
    // If bad rows are left out, the index of the key finds duplicates.
    let is_late =
        was_empty && (import.on_bad_row == OnBadRow::Fail || import.mode == WriteMode::Upsert);
    let has_key = !table.key().is_empty();
    if !has_key && !is_late && !key.is_empty() {
        table.set_key(db, &key)?;
    }
    let cache = Cache::grow(db);
    let mut load = Load {
        import,
        columns: columns(&table, import)?,
        key: &key,
        intake: Intake::of(&table)?,
        rejected: Vec::new(),
        bad: 0,
    };
    check_complete(&table, &load)?;
    let before = rows(db, &table)?;
    let written = load.run(db, &table)?;
    if let Some(intake) = &mut load.intake {
        intake.finish(db, &table)?;
    }
    if !has_key && is_late && !key.is_empty() {
        if import.mode == WriteMode::Upsert {
            remove_replaced(db, &table, &key)?;
        }
        set_key(db, &mut table, &key)?;
    }
    for name in &import.index_fields {
        table.add_index(db, name)?;
    }
    if written >= WORTH_ANALYSING {
        analyse(db, &table)?;
    }
    let has_computed = |column: &Column| column.meta.lookup.is_some();
    if table.columns.iter().any(has_computed) {
        let all = Condition {
            sql: partition::condition(&table).unwrap_or_else(|| "1".to_owned()),
            cells: Vec::new(),
        };
        computed::refresh(db, &mut table, &all)?;
    }
    drop(cache);
    let inserted = rows(db, &table)?.saturating_sub(before);
    let (rejected, bad) = (load.rejected, load.bad);
    let rejected = match import.on_bad_row {
        OnBadRow::Collect => rejected,
        OnBadRow::Fail | OnBadRow::Skip => Vec::new(),
    };
    Ok(reference(&table)
        .raw("rows-written", &written.to_string())
        .raw("rows-inserted", &inserted.to_string())
        .raw(
            "rows-updated",
            &written.saturating_sub(inserted).to_string(),
        )
        .raw("rows-rejected", &bad.to_string())
        .raw("rejected", &edn::vector(rejected.iter().map(BadRow::edn)))
        .raw("row-count", &rows(db, &table)?.to_string())
        .finish())
}

fn within(table: &Table) -> String {
    partition::condition(table).map_or_else(String::new, |parts| format!(" WHERE {parts}"))
}

fn is_empty(db: &Connection, table: &Table) -> Result<bool, StoreError> {
    let sql = format!("SELECT NOT EXISTS (SELECT 1 FROM {})", table.sql());
    db.query_row(&sql, [], |row| row.get(0)).map_err(failed)
}

fn rows(db: &Connection, table: &Table) -> Result<u64, StoreError> {
    let sql = format!("SELECT count(*) FROM {}{}", table.sql(), within(table));
    let count: i64 = db.query_row(&sql, [], |row| row.get(0)).map_err(failed)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Adds the columns of the file that the table lacks; existing columns keep their types.
fn add_columns(db: &Connection, table: &mut Table, import: &ImportCsv) -> Result<(), StoreError> {
    for column in &import.csv.columns {
        match (
            table.column(&column.name).map(|known| known.type_),
            column.type_,
        ) {
            (None, type_) => table.add_column(db, &column.name, type_, true)?,
            (Some(None), Some(type_)) => table.set_type(db, &column.name, type_)?,
            (Some(_), _) => {}
        }
    }
    for name in import.key_fields.iter().chain(&import.index_fields) {
        table.known(name)?;
    }
    Ok(())
}

/// Returns the key of the table, or the one that it gets.
fn settle_key(table: &Table, import: &ImportCsv) -> Result<Vec<String>, StoreError> {
    let key: Vec<String> = table
        .key()
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let wanted = &import.key_fields;
    if key.is_empty() && wanted.is_empty() && import.mode == WriteMode::Upsert {
        let message = format!(
            "the table `{}` has no key by which existing rows could be found",
            table.name
        );
        let error = rejected(StoreError::ROW_KEY, "bad-config", message);
        return Err(with_hint(
            error,
            "name the fields that identify a row: `:key-fields [:id]`",
        ));
    }
    if !key.is_empty() && !wanted.is_empty() && key != *wanted {
        let message = format!(
            "the key of the table `{}` is {}, not {}",
            table.name,
            listed(key.iter().map(String::as_str)),
            listed(wanted.iter().map(String::as_str)),
        );
        let error = rejected(StoreError::ROW_KEY, "conflict", message);
        return Err(with_hint(
            error,
            "leave `:key-fields` out, or use another table",
        ));
    }
    let key = if key.is_empty() { wanted.clone() } else { key };
    let missing = key.iter().find(|name| {
        import
            .csv
            .columns
            .iter()
            .all(|column| column.name != **name)
    });
    match missing {
        None => Ok(key),
        Some(name) => {
            let message = format!("the CSV text has no column `{name}`, which is part of the key");
            Err(rejected(StoreError::ROW_KEY, "invalid", message))
        }
    }
}

/// Refuses a file that lacks a required column.
fn check_complete(table: &Table, load: &Load<'_>) -> Result<(), StoreError> {
    let filled = load.columns.iter().flatten();
    let given: Vec<usize> = filled.map(|column| column.place).collect();
    let missing = load
        .intake
        .as_ref()
        .and_then(|intake| intake.missing(&given));
    match missing {
        None => Ok(()),
        Some(at) => {
            let message = format!(
                "`{}` is required, and the CSV text has no value for it",
                table.columns[at].name
            );
            Err(rejected("E0632", "invalid", message))
        }
    }
}

/// A column to fill.
struct Filled {
    name: String,
    /// The place of the column in the table.
    place: usize,
    type_: ColumnType,
    sql: String,
    is_key: bool,
}

/// Returns the columns of the file in its order; `None` for a column without values.
fn columns(table: &Table, import: &ImportCsv) -> Result<Vec<Option<Filled>>, StoreError> {
    let key: Vec<&String> = match table.key().is_empty() {
        true => import.key_fields.iter().collect(),
        false => table.key().iter().map(|column| &column.name).collect(),
    };
    let filled = import.csv.columns.iter().map(|given| {
        let column: &Column = table.known(&given.name)?;
        check_given(column)?;
        let place = table
            .columns
            .iter()
            .position(|known| known.idx == column.idx);
        Ok(column.type_.map(|type_| Filled {
            name: column.name.clone(),
            place: place.unwrap_or(usize::MAX),
            type_,
            sql: column.sql(),
            is_key: key.contains(&&column.name),
        }))
    });
    filled.collect()
}

struct Load<'a> {
    import: &'a ImportCsv,
    columns: Vec<Option<Filled>>,
    key: &'a [String],
    /// The checks of the columns.
    intake: Option<Intake>,
    /// The first bad rows.
    rejected: Vec<BadRow>,
    bad: u64,
}

impl Load<'_> {
    /// Imports the rows, and returns the number of written ones.
    fn run(&mut self, db: &Connection, table: &Table) -> Result<u64, StoreError> {
        let path = place_of(db, &self.import.csv.blob)?;
        let file = open_regular(&path).map_err(|error| StoreError::of_reading(&path, &error))?;
        let mut insert = db.prepare(&self.statement(table)).map_err(failed)?;
        let mut splitter = Splitter::new(file, self.import.delimiter);
        let mut is_header = self.import.header;
        let mut written = 0;
        loop {
            let next = splitter.next().map_err(unreadable)?;
            if next == Next::End {
                return Ok(written);
            }
            if splitter.is_blank() && self.columns.len() > 1 {
                continue;
            }
            if std::mem::take(&mut is_header) {
                continue;
            }
            let found = splitter.fields.len();
            let bad = match next {
                Next::Torn(field) => Some(BadRow::torn(splitter.line, field)),
                _ if found != self.columns.len() => {
                    Some(BadRow::width(splitter.line, found, self.columns.len()))
                }
                _ => self.put(&mut insert, &mut splitter)?,
            };
            match bad {
                None => written += 1,
                Some(bad) if self.import.on_bad_row == OnBadRow::Fail => return Err(bad.error()),
                Some(bad) => {
                    self.bad += 1;
                    if self.rejected.len() < MAX_REJECTED {
                        self.rejected.push(bad);
                    }
                }
            }
        }
    }

    fn statement(&self, table: &Table) -> String {
        let filled: Vec<&Filled> = self.columns.iter().flatten().collect();
        let mut names: Vec<&str> = filled.iter().map(|column| column.sql.as_str()).collect();
        let mut values = vec!["?".to_owned(); names.len()];
        if let Some([part]) = table.parts.as_deref() {
            names.push("part");
            values.push(part.to_string());
        }
        let mut sql = match names.is_empty() {
            true => format!("INSERT INTO {} DEFAULT VALUES", table.sql()),
            false => format!(
                "INSERT INTO {} ({}) VALUES ({})",
                table.sql(),
                names.join(", "),
                values.join(", ")
            ),
        };
        if self.import.mode == WriteMode::Upsert && !table.key().is_empty() {
            let mut key: Vec<String> = table.key().iter().map(|column| column.sql()).collect();
            if table.partitioned {
                key.insert(0, "part".to_owned());
            }
            let sets: Vec<String> = filled
                .iter()
                .filter(|column| !column.is_key)
                .map(|column| format!("{0} = excluded.{0}", column.sql))
                .collect();
            let action = match sets.is_empty() {
                // Updates the row without a change, so that it counts as written.
                true => format!("UPDATE SET {0} = excluded.{0}", key[0]),
                false => format!("UPDATE SET {}", sets.join(", ")),
            };
            sql.push_str(&format!(" ON CONFLICT ({}) DO {action}", key.join(", ")));
        }
        sql
    }

    /// Writes the row that was read last; returns the problem of a bad one.
    fn put(
        &mut self,
        insert: &mut Statement<'_>,
        splitter: &mut Splitter<File>,
    ) -> Result<Option<BadRow>, StoreError> {
        let line = splitter.line;
        let mut place = 0;
        for (idx, column) in self.columns.iter().enumerate() {
            let Some(column) = column else {
                continue;
            };
            place += 1;
            let quoted = splitter.fields[idx].quoted;
            let bytes = splitter.bytes(idx);
            // Staged text is UTF-8.
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let bad = |reason| {
                Ok(Some(BadRow {
                    line,
                    column: Some(column.name.clone()),
                    reason,
                }))
            };
            if column.is_key && text.is_empty() {
                return bad("its key field is empty".to_owned());
            }
            let Some(cell) = kept(column.type_, text, quoted) else {
                return bad(format!(
                    "the column holds {}, and the row has {}",
                    holds(column.type_),
                    shown(text)
                ));
            };
            let Some(intake) = self
                .intake
                .as_mut()
                .filter(|intake| intake.asks(column.place))
            else {
                insert.raw_bind_parameter(place, cell).map_err(failed)?;
                continue;
            };
            match intake.take(column.place, cell.into_sql())? {
                Ok(cell) => insert.raw_bind_parameter(place, cell).map_err(failed)?,
                Err(refusal) => return bad(format!("it {}", refusal.message)),
            }
        }
        match insert.raw_execute() {
            Ok(_) => Ok(None),
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
            {
                Ok(Some(BadRow {
                    line,
                    column: None,
                    reason: format!(
                        "a row with the same {} is there already",
                        listed(self.key.iter().map(String::as_str))
                    ),
                }))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// Returns a text in the form of error messages.
fn shown(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{:?} ...", &text[..at]),
        None => format!("{text:?}"),
    }
}

/// Removes all but the last of the rows with the same key.
fn remove_replaced(db: &Connection, table: &Table, key: &[String]) -> Result<(), StoreError> {
    let key = key_sql(table, key)?;
    let sql = format!(
        "DELETE FROM {0} WHERE row_id IN (
             SELECT row_id FROM (SELECT row_id, max(row_id) OVER (PARTITION BY {key}) AS last FROM {0})
             WHERE row_id < last)",
        table.sql()
    );
    // Usually no row exists yet, and the index tells that faster.
    let has_any = format!(
        "SELECT EXISTS (SELECT 1 FROM {} GROUP BY {key} HAVING count(*) > 1)",
        table.sql()
    );
    let has_any: bool = db
        .query_row(&has_any, [], |row| row.get(0))
        .map_err(failed)?;
    match has_any {
        false => Ok(()),
        true => db.execute(&sql, []).map(drop).map_err(failed),
    }
}

fn key_sql(table: &Table, key: &[String]) -> Result<String, StoreError> {
    let columns = key.iter().map(|name| table.known(name).map(Column::sql));
    Ok(columns.collect::<Result<Vec<_>, _>>()?.join(", "))
}

/// Sets the key of a table with rows; an error names the places of two rows with the same key.
fn set_key(db: &Connection, table: &mut Table, key: &[String]) -> Result<(), StoreError> {
    let Err(error) = table.set_key(db, key) else {
        return Ok(());
    };
    let columns = key_sql(table, key)?;
    let sql = format!(
        "SELECT min(row_id), max(row_id), (SELECT min(row_id) FROM {0}) FROM {0}
         GROUP BY {columns} HAVING count(*) > 1 ORDER BY min(row_id) LIMIT 1",
        table.sql()
    );
    let twice = db.query_row(&sql, [], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, i64>(1)?,
            row.get::<_, i64>(2)?,
        ))
    });
    match twice {
        Ok((one, other, first)) => {
            let message = format!(
                "rows {} and {} of the CSV text have the same {}",
                one - first + 1,
                other - first + 1,
                listed(key.iter().map(String::as_str))
            );
            Err(with_hint(
                rejected(StoreError::ROW_KEY, "conflict", message),
                "remove one of them, use `:write-mode :upsert`, or leave such rows out with `:on-bad-row :skip`",
            ))
        }
        Err(_) => Err(error),
    }
}

fn analyse(db: &Connection, table: &Table) -> Result<(), StoreError> {
    let sql = format!("PRAGMA analysis_limit = 1000; ANALYZE {}", table.sql());
    db.execute_batch(&sql).map_err(failed)
}

/// A larger page cache until it is dropped.
struct Cache<'a> {
    db: &'a Connection,
    before: i64,
}

impl Cache<'_> {
    fn grow(db: &Connection) -> Option<Cache<'_>> {
        let before = db
            .pragma_query_value(None, "cache_size", |row| row.get(0))
            .ok()?;
        db.pragma_update(None, "cache_size", -CACHE_KB).ok()?;
        Some(Cache { db, before })
    }
}

impl Drop for Cache<'_> {
    fn drop(&mut self) {
        // If it fails, the connection keeps more memory than necessary.
        let _ = self.db.pragma_update(None, "cache_size", self.before);
    }
}
