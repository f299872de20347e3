//! Creates tables, writes rows and deletes rows.

use flowstone_model::ports::StoreError;
use flowstone_model::table::{
    Cell, ColumnType, CreateTable, NewColumn, Partitions, Patch, Row, RowChoice, TableName,
    TableTarget, WriteMode, WriteRows,
};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use super::super::failure::{failed, rejected, with_hint};
use super::cell::{data_text, holds, infer, shown, to_sql, unify};
use super::filter::{Condition, choice};
use super::intake::Intake;
use super::partition;
use super::registry::{Column, Table, listed};
use super::rows::{Selection, read};
use super::writer::{Written, put};
use crate::edn::{self, MapText};

/// Maximum number of written rows that are shown in the result.
pub(super) const PREVIEW: usize = 5;
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
        table.add_column(db, &column.name, None, false)?;
    }
    // A computed column may refer to any other column.
    let is_computed = |column: &&NewColumn| matches!(column.definition.computed, Patch::Set(_));
    let (computed, plain): (Vec<_>, Vec<_>) = create.columns.iter().partition(is_computed);
    for column in plain.into_iter().chain(computed) {
        super::column::define(db, &mut table, &column.name, &column.definition)?;
    }
    if !create.key_fields.is_empty() {
        table.set_key(db, &create.key_fields)?;
    }
    for name in &create.index_fields {
        table.add_index(db, name)?;
    }
    Ok(reference(&table).bool("created?", true).finish())
}

/// Checks that an existing table equals the one to be created, as when a flow runs a second time.
fn check_same(table: &Table, create: &CreateTable) -> Result<(), StoreError> {
    if table.partitioned == create.partitions.is_empty() {
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
        return Err(rejected(StoreError::OTHER_TABLE, "conflict", message));
    }
    let differs = create.columns.iter().find(|declared| {
        match (table.column(&declared.name), declared_type(declared)) {
            (Some(column), Some(type_)) => column.type_ != Some(type_),
            (Some(_), None) => false,
            (None, _) => true,
        }
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
        rejected(StoreError::OTHER_TABLE, "conflict", message),
        "use another name, or leave out what differs",
    ))
}

/// Returns the declared type of a column; a computed one has the type of its lookup.
fn declared_type(column: &NewColumn) -> Option<ColumnType> {
    match column.definition.options {
        Patch::Set(_) => Some(ColumnType::Enum),
        Patch::Keep | Patch::Clear => column.definition.type_,
    }
}

pub(super) fn write(db: &Connection, write: &WriteRows, now_ms: i64) -> Result<String, StoreError> {
    let mut table = open(db, &write.table, now_ms)?;
    if write.mode == WriteMode::Replace {
        clear(db, &table)?;
    }
    fit_columns(db, &mut table, &write.rows)?;
    settle_key(db, &mut table, &Keyed::of(write))?;
    for name in &write.index_fields {
        if table.column(name).is_none() {
            table.add_column(db, name, None, true)?;
        }
        table.add_index(db, name)?;
    }
    let written = put(db, &mut table, &write.rows, write.mode)?;
    answer(db, &table, &write.rows, &written)
}

/// Opens the table and the partition to write to, and creates them if they do not exist.
pub(super) fn open(
    db: &Connection,
    target: &TableTarget,
    now_ms: i64,
) -> Result<Table, StoreError> {
    let mut table = match (&target.name, Table::find(db, &target.name)?) {
        (_, Some(table)) => table,
        (TableName::Name(name), None) => {
            let partitioned = matches!(target.partitions, Partitions::Keys(_));
            Table::create(db, name, partitioned, now_ms)?
        }
        (TableName::Id(_), None) => Table::root(db, &target.name)?,
    };
    partition::choose_to_write(db, &mut table, &target.partitions, now_ms)?;
    Ok(table)
}

/// Removes the rows of a table, or of the selected partitions.
pub(super) fn clear(db: &Connection, table: &Table) -> Result<(), StoreError> {
    let mut condition = Condition::default();
    choice(table, &RowChoice::All, &mut condition)?;
    remove(db, table, &condition).map(drop)
}

/// Removes rows and the formats of their cells.
fn remove(db: &Connection, table: &Table, rows: &Condition) -> Result<usize, StoreError> {
    let sql = format!("DELETE FROM {} WHERE {}", table.sql(), rows.sql);
    let removed = execute(db, &sql, &rows.cells)?;
    if removed > 0 {
        let sql = format!(
            "DELETE FROM table_cell_format WHERE table_id = {} AND row_id NOT IN (SELECT row_id FROM {})",
            table.id,
            table.sql()
        );
        execute(db, &sql, &[])?;
    }
    Ok(removed)
}

/// Adds the columns that are missing and checks every cell against its column.
pub(super) fn fit_columns(
    db: &Connection,
    table: &mut Table,
    rows: &[Row],
) -> Result<(), StoreError> {
    let mut places: Vec<usize> = Vec::new();
    let mut last: Option<&Row> = None;
    for (idx, row) in rows.iter().enumerate() {
        if !last.is_some_and(|last| same_columns(last, row)) {
            places = row
                .iter()
                .map(|(name, _)| place(db, table, name))
                .collect::<Result<_, _>>()?;
            last = Some(row);
        }
        for ((name, cell), place) in row.iter().zip(&places) {
            let column = &table.columns[*place];
            let wanted = match (column.type_, infer(cell)) {
                (_, None) => continue,
                (Some(type_), Some(found)) if type_ == found && !is_nan(cell) => continue,
                (Some(type_), Some(_)) if to_sql(type_, cell).is_some() => continue,
                (None, Some(found)) => type_of_all(rows, name, found),
                // Integers that turn out to be doubles without a fraction.
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

fn is_nan(cell: &Cell) -> bool {
    matches!(cell, Cell::Double(double) if double.is_nan())
}

/// Tells whether two rows have the same columns in the same order.
fn same_columns(left: &Row, right: &Row) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|((left, _), (right, _))| left == right)
}

/// Returns the index of a column to write to, and adds the column if it does not exist.
fn place(db: &Connection, table: &mut Table, name: &str) -> Result<usize, StoreError> {
    if table.column(name).is_none() {
        table.add_column(db, name, None, true)?;
    }
    let found = table.columns.iter().position(|column| column.name == name);
    let place =
        found.ok_or_else(|| StoreError::Internal(format!("no column {name} to write to")))?;
    check_given(&table.columns[place])?;
    Ok(place)
}

/// Refuses a write to a computed column.
pub(super) fn check_given(column: &Column) -> Result<(), StoreError> {
    let Some(lookup) = &column.meta.lookup else {
        return Ok(());
    };
    let message = format!(
        "`{}` is computed, from `{}`, and cannot be written",
        column.name, lookup.reference_column
    );
    let hint =
        "leave it out of the rows; `:definition {:computed nil}` turns it into an ordinary column";
    Err(with_hint(rejected("E0634", "bad-config", message), hint))
}

/// Returns the type that holds every cell of a new column, if there is one.
fn type_of_all(rows: &[Row], name: &str, first: ColumnType) -> Option<ColumnType> {
    let cells = rows
        .iter()
        .flat_map(|row| row.iter().filter(|(column, _)| column == name));
    let types = cells.filter_map(|(_, cell)| infer(cell));
    Some(types.fold(first, |so_far, type_| {
        unify(so_far, type_).unwrap_or(so_far)
    }))
}

pub(super) fn misfit(
    table: &Table,
    (idx, count): (usize, usize),
    name: &str,
    cell: &Cell,
) -> StoreError {
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
        Cell::Double(double) if double.is_nan() => "use nil for a missing number".to_owned(),
        _ => format!(
            "convert it before, or declare `{name}` as `json` with `:op :create`, which holds anything"
        ),
    };
    with_hint(rejected("E0623", "invalid", message), hint)
}

/// The key fields of a write.
pub(super) struct Keyed<'a> {
    pub key_fields: &'a [String],
    pub mode: WriteMode,
    pub rows: usize,
}

impl Keyed<'_> {
    fn of(write: &WriteRows) -> Keyed<'_> {
        Keyed {
            key_fields: &write.key_fields,
            mode: write.mode,
            rows: write.rows.len(),
        }
    }
}

/// Sets the key of the table, or checks that it has this one.
pub(super) fn settle_key(
    db: &Connection,
    table: &mut Table,
    write: &Keyed<'_>,
) -> Result<(), StoreError> {
    let key = key_names(table);
    if write.key_fields.is_empty() {
        if write.mode == WriteMode::Upsert && key.is_empty() {
            let message = format!(
                "the table `{}` has no key by which existing rows could be found",
                table.name
            );
            return Err(with_hint(
                rejected(StoreError::ROW_KEY, "bad-config", message),
                "name the fields that identify a row: `:key-fields [:id]`",
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
            rejected(StoreError::ROW_KEY, "conflict", message),
            "leave `:key-fields` out, or use another table",
        ));
    }
    for name in write.key_fields {
        let untyped = table
            .column(name)
            .is_none_or(|column| column.type_.is_none());
        if untyped && write.rows == 0 {
            // No row is written, so the key is not needed yet.
            return Ok(());
        }
        if untyped {
            return Err(no_key(0, name));
        }
    }
    table.set_key(db, write.key_fields)
}

fn key_names(table: &Table) -> Vec<String> {
    table
        .key()
        .iter()
        .map(|column| column.name.clone())
        .collect()
}

/// Executes a change, and returns the number of changed rows.
pub(super) fn execute(db: &Connection, sql: &str, cells: &[Sql]) -> Result<usize, StoreError> {
    db.prepare_cached(sql)
        .and_then(|mut sql| sql.execute(params_from_iter(cells)))
        .map_err(unexecuted)
}

pub(super) fn unexecuted(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::ConstraintViolation) => {
            rejected(StoreError::ROW_KEY, "conflict", error.to_string())
        }
        Some(rusqlite::ErrorCode::TooBig) => {
            let error = rejected(
                "E0623",
                "too-large",
                "a cell is larger than the database allows".to_owned(),
            );
            with_hint(
                error,
                "store it in a blob, and the blob's reference in the table",
            )
        }
        _ => failed(error),
    }
}

/// The error for a row without a part of its key.
pub(super) fn no_key(idx: usize, name: &str) -> StoreError {
    let message = format!("row {} has no value for the key field `{name}`", idx + 1);
    with_hint(
        rejected(StoreError::ROW_KEY, "invalid", message),
        "every row needs all key fields; leave out rows without, or choose another key",
    )
}

pub(super) fn duplicate(table: &Table, (idx, row): (usize, &Row)) -> StoreError {
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
        rejected(StoreError::ROW_KEY, "conflict", message),
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
    let deleted = remove(db, &table, &condition)?;
    if *rows == RowChoice::All {
        partition::forget(db, &table)?;
    }
    Ok(MapText::new()
        .bool("success", true)
        .text("table", &table.name)
        .count("rows-deleted", deleted)
        .finish())
}

/// Returns the reference to a table, as the start of a result.
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
    let has_computed = table
        .columns
        .iter()
        .any(|column| column.meta.lookup.is_some());
    let as_given = !has_computed && Intake::of(table)?.is_none();
    let preview = match as_given {
        true => edn::vector(rows.iter().take(PREVIEW).map(row_text)),
        false => preview(db, table, &written.ids)?,
    };
    let map = counted(db, table)?
        .count("count", rows.len())
        .count("rows-written", written.inserted + written.updated)
        .count("rows-inserted", written.inserted)
        .count("rows-updated", written.updated)
        .raw(
            "row-ids",
            &edn::vector(written.ids.iter().map(i64::to_string)),
        );
    Ok(map.raw("preview", &preview).finish())
}

/// Returns the reference to what was written, with the current number of rows.
pub(super) fn counted(db: &Connection, table: &Table) -> Result<MapText, StoreError> {
    let within =
        partition::condition(table).map_or(String::new(), |parts| format!(" WHERE {parts}"));
    let total: i64 = db
        .query_row(
            &format!("SELECT count(*) FROM {}{within}", table.sql()),
            [],
            |row| row.get(0),
        )
        .map_err(failed)?;
    let mut answer = reference(table);
    if table.parts.is_some() {
        let keys = partition::keys(db, table)?;
        let key = keys.first().map_or("nil".to_owned(), |key| edn::text(key));
        answer = answer.raw("partitions", &format!("{{:key {key}}}"));
    }
    Ok(answer.raw("row-count", &total.to_string()))
}

/// Returns the current state of rows, by their numbers.
pub(super) fn preview(db: &Connection, table: &Table, ids: &[i64]) -> Result<String, StoreError> {
    let selection = Selection::of(table, &[])?;
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    let columns = [selection.sql.clone(), vec!["row_id".to_owned()]].concat();
    let sql = format!(
        "SELECT {} FROM {} WHERE row_id IN ({}) ORDER BY row_id",
        columns.join(", "),
        table.sql(),
        ids.join(", ")
    );
    let found = read(db, &sql, &[])?;
    Ok(edn::vector(
        found.iter().map(|cells| selection.row_text(cells)),
    ))
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
