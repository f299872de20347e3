//! Creating tables, writing rows, deleting rows.

use flowstone_engine::ports::StoreError;
use flowstone_engine::table::{
    Cell, ColumnType, CreateTable, Partitions, Row, RowChoice, TableName, TableTarget, WriteMode,
    WriteRows,
};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use super::super::edn::{self, MapText};
use super::super::failure::{failed, rejected, with_hint};
use super::cell::{data_text, holds, infer, shown, to_sql, unify};
use super::filter::{Condition, choice};
use super::partition;
use super::registry::{Table, listed};

/// As many of the rows written are shown in the result.
const PREVIEW: usize = 5;
const CONTENT_TYPE: &str = "application/vnd.breyta.table+json";

pub(super) fn create(
    db: &Connection,
    create: &CreateTable,
    now_ms: i64,
) -> Result<String, StoreError> {
    let name = TableName::Name(create.name.clone());
    if let Some(table) = Table::find(db, &name)? {
        check_same(&table, create)?;
        for key in &create.partitions {
            let mut table = Table::root(db, &name)?;
            let partitions = Partitions::Keys(vec![key.clone()]);
            partition::choose_to_write(db, &mut table, &partitions, now_ms)?;
        }
        return Ok(reference(&table).bool("created?", false).finish());
    }
    let partitioned = !create.partitions.is_empty();
    let mut table = Table::create(db, &create.name, partitioned, now_ms)?;
    for key in &create.partitions {
        partition::add(db, &table, key, now_ms)?;
    }
    for column in &create.columns {
        if table.column(&column.name).is_some() {
            let message = format!("the column `{}` is declared twice", column.name);
            return Err(rejected("E0621", "bad-config", message));
        }
        table.add_column(db, &column.name, Some(column.type_), false)?;
    }
    if !create.key_fields.is_empty() {
        table.set_key(db, &create.key_fields)?;
    }
    for name in &create.index_fields {
        table.add_index(db, name)?;
    }
    Ok(reference(&table).bool("created?", true).finish())
}

/// Creating a table again is fine when nothing about it differs, as when a flow runs a second time.
fn check_same(table: &Table, create: &CreateTable) -> Result<(), StoreError> {
    if table.partitioned != !create.partitions.is_empty() {
        let message = match table.partitioned {
            true => format!(
                "the table `{}` exists already, and has partitions",
                create.name
            ),
            false => format!(
                "the table `{}` exists already, and has no partitions",
                create.name
            ),
        };
        return Err(rejected("E0626", "conflict", message));
    }
    let differs = create.columns.iter().find(|declared| {
        table.column(&declared.name).and_then(|column| column.type_) != Some(declared.type_)
    });
    let problem = match differs {
        Some(declared) => match table.column(&declared.name).and_then(|column| column.type_) {
            Some(type_) => format!("its column `{}` holds {}", declared.name, holds(type_)),
            None => format!("it has no column `{}`", declared.name),
        },
        None if !create.key_fields.is_empty() && key_names(table) != create.key_fields => {
            format!(
                "its key is {}",
                listed(key_names(table).iter().map(String::as_str))
            )
        }
        None => return Ok(()),
    };
    let message = format!("the table `{}` exists already, and {problem}", create.name);
    Err(with_hint(
        rejected("E0626", "conflict", message),
        "use another name, or leave out what differs",
    ))
}

pub(super) fn write(db: &Connection, write: &WriteRows, now_ms: i64) -> Result<String, StoreError> {
    let target = &write.table;
    let mut table = match (&target.name, Table::find(db, &target.name)?) {
        (_, Some(table)) => table,
        (TableName::Name(name), None) => {
            let partitioned = matches!(target.partitions, Partitions::Keys(_));
            Table::create(db, name, partitioned, now_ms)?
        }
        (TableName::Id(_), None) => Table::root(db, &target.name)?,
    };
    partition::choose_to_write(db, &mut table, &target.partitions, now_ms)?;
    if write.mode == WriteMode::Replace {
        let mut condition = Condition::default();
        choice(&table, &RowChoice::All, &mut condition)?;
        let sql = format!("DELETE FROM {} WHERE {}", table.sql(), condition.sql);
        execute(db, &sql, &condition.cells)?;
    }
    fit_columns(db, &mut table, &write.rows)?;
    settle_key(db, &mut table, write)?;
    for name in &write.index_fields {
        if table.column(name).is_none() {
            table.add_column(db, name, None, true)?;
        }
        table.add_index(db, name)?;
    }
    let mut written = Written::default();
    for (idx, row) in write.rows.iter().enumerate() {
        put(db, &table, (idx, row), write.mode, &mut written)?;
    }
    answer(db, &table, &write.rows, &written)
}

/// Adds the columns that are missing and checks every cell against its column.
fn fit_columns(db: &Connection, table: &mut Table, rows: &[Row]) -> Result<(), StoreError> {
    for (idx, row) in rows.iter().enumerate() {
        for (name, cell) in row {
            if table.column(name).is_none() {
                table.add_column(db, name, None, true)?;
            }
            let column = table.known(name)?;
            let wanted = match (column.type_, infer(cell)) {
                (_, None) => continue,
                (Some(type_), Some(_)) if to_sql(type_, cell).is_some() => continue,
                (None, Some(found)) => type_of_all(rows, name, found),
                // Integers that turn out to have been round doubles.
                (Some(ColumnType::Long), Some(ColumnType::Double)) if column.inferred => {
                    Some(ColumnType::Double)
                }
                (Some(_), Some(_)) => None,
            };
            match wanted.filter(|type_| to_sql(*type_, cell).is_some()) {
                Some(type_) => table.set_type(db, name, type_)?,
                None => return Err(misfit(table, (idx, rows.len()), name, cell)),
            }
        }
    }
    Ok(())
}

/// The type that holds every cell of a new column, as far as they go together.
fn type_of_all(rows: &[Row], name: &str, first: ColumnType) -> Option<ColumnType> {
    let cells = rows
        .iter()
        .flat_map(|row| row.iter().filter(|(column, _)| column == name));
    let types = cells.filter_map(|(_, cell)| infer(cell));
    Some(types.fold(first, |so_far, type_| {
        unify(so_far, type_).unwrap_or(so_far)
    }))
}

fn misfit(table: &Table, (idx, count): (usize, usize), name: &str, cell: &Cell) -> StoreError {
    let holds = table
        .column(name)
        .and_then(|column| column.type_)
        .map_or("nothing yet", holds);
    let message = format!(
        "row {} of {count} does not fit the table `{}`: column `{name}` holds {holds}, and the row has {}",
        idx + 1,
        table.name,
        shown(cell),
    );
    let hint = match cell {
        Cell::Double(double) if double.is_nan() => "put nil where there is no number".to_owned(),
        _ => format!(
            "convert it before, or declare `{name}` as `json` with `:op :create`, which holds anything"
        ),
    };
    with_hint(rejected("E0623", "invalid", message), hint)
}

/// Gives the table its key, or checks that it has this one.
fn settle_key(db: &Connection, table: &mut Table, write: &WriteRows) -> Result<(), StoreError> {
    let key = key_names(table);
    if write.key_fields.is_empty() {
        if write.mode == WriteMode::Upsert && key.is_empty() {
            let message = format!(
                "the table `{}` has no key, so no row can be the same as another",
                table.name
            );
            return Err(with_hint(
                rejected("E0625", "bad-config", message),
                "name what makes a row the same row: `:key-fields [:id]`",
            ));
        }
        return Ok(());
    }
    if key == write.key_fields {
        return Ok(());
    }
    if !key.is_empty() {
        let message = format!(
            "the key of the table `{}` is {}, not {}",
            table.name,
            listed(key.iter().map(String::as_str)),
            listed(write.key_fields.iter().map(String::as_str)),
        );
        return Err(with_hint(
            rejected("E0625", "conflict", message),
            "leave `:key-fields` out, or use another table",
        ));
    }
    for name in &write.key_fields {
        let untyped = table
            .column(name)
            .is_none_or(|column| column.type_.is_none());
        if untyped && write.rows.is_empty() {
            // Nothing is written, so nothing needs the key yet.
            return Ok(());
        }
        if untyped {
            return Err(no_key((0, write.rows.len()), name));
        }
    }
    table.set_key(db, &write.key_fields)
}

fn key_names(table: &Table) -> Vec<String> {
    table
        .key()
        .iter()
        .map(|column| column.name.clone())
        .collect()
}

#[derive(Default)]
struct Written {
    inserted: usize,
    updated: usize,
    /// Of the first rows.
    ids: Vec<i64>,
}

impl Written {
    fn note(&mut self, id: i64) {
        if self.ids.len() < PREVIEW {
            self.ids.push(id);
        }
    }
}

fn put(
    db: &Connection,
    table: &Table,
    (idx, row): (usize, &Row),
    mode: WriteMode,
    written: &mut Written,
) -> Result<(), StoreError> {
    let mut names = Vec::new();
    let mut cells = Vec::new();
    for (name, cell) in row {
        let column = table.known(name)?;
        if let Some(type_) = column.type_ {
            names.push(column.sql());
            cells.push(
                to_sql(type_, cell).ok_or_else(|| misfit(table, (idx, idx + 1), name, cell))?,
            );
        }
    }
    if let Some([part]) = table.parts.as_deref() {
        names.push("part".to_owned());
        cells.push(Sql::Integer(*part));
    }
    let existing = match mode {
        WriteMode::Insert | WriteMode::Replace => None,
        WriteMode::Upsert => find_by_key(db, table, (idx, row))?,
    };
    if let Some(id) = existing {
        if !names.is_empty() {
            let sets: Vec<String> = names.iter().map(|name| format!("{name} = ?")).collect();
            let sql = format!(
                "UPDATE {} SET {} WHERE row_id = ?",
                table.sql(),
                sets.join(", ")
            );
            cells.push(Sql::Integer(id));
            execute(db, &sql, &cells)?;
        }
        written.updated += 1;
        written.note(id);
        return Ok(());
    }
    for column in table.key() {
        let cell = row
            .iter()
            .find(|(name, _)| *name == column.name)
            .map(|(_, cell)| cell);
        if cell.is_none_or(|cell| *cell == Cell::Nil) {
            return Err(no_key((idx, idx + 1), &column.name));
        }
    }
    let sql = match names.is_empty() {
        true => format!("INSERT INTO {} DEFAULT VALUES", table.sql()),
        false => format!(
            "INSERT INTO {} ({}) VALUES ({})",
            table.sql(),
            names.join(", "),
            vec!["?"; names.len()].join(", ")
        ),
    };
    execute(db, &sql, &cells).map_err(|error| match error {
        StoreError::Rejected { .. } => duplicate(table, (idx, row)),
        other => other,
    })?;
    written.inserted += 1;
    written.note(db.last_insert_rowid());
    Ok(())
}

fn execute(db: &Connection, sql: &str, cells: &[Sql]) -> Result<usize, StoreError> {
    let done = db
        .prepare_cached(sql)
        .and_then(|mut sql| sql.execute(params_from_iter(cells)));
    done.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::ConstraintViolation) => {
            rejected("E0625", "conflict", error.to_string())
        }
        _ => failed(error),
    })
}

fn find_by_key(
    db: &Connection,
    table: &Table,
    (idx, row): (usize, &Row),
) -> Result<Option<i64>, StoreError> {
    let mut tests = Vec::new();
    let mut cells = Vec::new();
    for column in table.key() {
        let cell = row
            .iter()
            .find(|(name, _)| *name == column.name)
            .map_or(&Cell::Nil, |(_, cell)| cell);
        let kept = column.type_.and_then(|type_| to_sql(type_, cell));
        match kept {
            Some(Sql::Null) | None => return Err(no_key((idx, idx + 1), &column.name)),
            Some(kept) => cells.push(kept),
        }
        tests.push(format!("{} = ?", column.sql()));
    }
    tests.extend(partition::condition(table));
    let sql = format!(
        "SELECT row_id FROM {} WHERE {}",
        table.sql(),
        tests.join(" AND ")
    );
    db.prepare_cached(&sql)
        .and_then(|mut sql| {
            sql.query_row(params_from_iter(&cells), |row| row.get(0))
                .optional()
        })
        .map_err(failed)
}

fn no_key((idx, _): (usize, usize), name: &str) -> StoreError {
    let message = format!("row {} has no value for the key field `{name}`", idx + 1);
    with_hint(
        rejected("E0625", "invalid", message),
        "every row needs all key fields; leave out rows without, or choose another key",
    )
}

fn duplicate(table: &Table, (idx, row): (usize, &Row)) -> StoreError {
    let key: Vec<String> = table
        .key()
        .iter()
        .filter_map(|column| row.iter().find(|(name, _)| *name == column.name))
        .map(|(name, cell)| format!("`{name}` {}", data_text(cell).unwrap_or_default()))
        .collect();
    let message = format!(
        "row {}: the table `{}` has a row with {} already",
        idx + 1,
        table.name,
        key.join(", ")
    );
    with_hint(
        rejected("E0625", "conflict", message),
        "write with `:write-mode :upsert` or `:op :upsert` to replace it",
    )
}

pub(super) fn delete(
    db: &Connection,
    target: &TableTarget,
    rows: &RowChoice,
) -> Result<String, StoreError> {
    let table = Table::open_to_change(db, target)?;
    let mut condition = Condition::default();
    choice(&table, rows, &mut condition)?;
    let sql = format!("DELETE FROM {} WHERE {}", table.sql(), condition.sql);
    let deleted = execute(db, &sql, &condition.cells)?;
    if *rows == RowChoice::All {
        partition::forget(db, &table)?;
    }
    Ok(MapText::new()
        .bool("success", true)
        .text("table", &table.name)
        .count("rows-deleted", deleted)
        .finish())
}

/// What a flow uses to refer to a table, as the start of a result.
pub(super) fn reference(table: &Table) -> MapText {
    let uri = table.uri();
    let inner = MapText::new()
        .raw("type", ":resource-ref")
        .text("uri", &uri)
        .text("content-type", CONTENT_TYPE);
    MapText::new()
        .raw("type", ":resource-ref")
        .text("uri", &uri)
        .text("resource-uri", &uri)
        .raw("ref", &inner.finish())
        .text("content-type", CONTENT_TYPE)
        .text("table", &table.name)
}

fn answer(
    db: &Connection,
    table: &Table,
    rows: &[Row],
    written: &Written,
) -> Result<String, StoreError> {
    let within =
        partition::condition(table).map_or(String::new(), |parts| format!(" WHERE {parts}"));
    let total: i64 = db
        .query_row(
            &format!("SELECT count(*) FROM {}{within}", table.sql()),
            [],
            |row| row.get(0),
        )
        .map_err(failed)?;
    let preview = rows.iter().take(PREVIEW).map(row_text);
    let mut answer = reference(table);
    if table.parts.is_some() {
        let keys = partition::keys(db, table)?;
        let key = keys.first().map_or("nil".to_owned(), |key| edn::text(key));
        answer = answer.raw("partitions", &format!("{{:key {key}}}"));
    }
    Ok(answer
        .count("count", rows.len())
        .count("rows-written", written.inserted + written.updated)
        .count("rows-inserted", written.inserted)
        .count("rows-updated", written.updated)
        .raw("row-count", &total.to_string())
        .raw(
            "row-ids",
            &edn::vector(written.ids.iter().map(i64::to_string)),
        )
        .raw("preview", &edn::vector(preview))
        .finish())
}

fn row_text(row: &Row) -> String {
    let entries: Vec<String> = row
        .iter()
        .map(|(name, cell)| {
            format!(
                "{} {}",
                edn::keyword(name),
                data_text(cell).unwrap_or_else(|| "nil".to_owned())
            )
        })
        .collect();
    format!("{{{}}}", entries.join(" "))
}
