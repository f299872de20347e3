//! Copies of tables in another database.

use flowstone_model::ports::StoreError;
use flowstone_model::table::{ColumnDefinition, JoinSource, Patch, TableName, TableOp};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::super::copied::{Known, copy_rows};
use super::super::failure::failed;
use super::computed;
use super::registry::Table;

/// Numbers of tables and partitions that a database of copies makes itself begin here, so that no copy has one of them.
const FIRST_OWN: i64 = 1 << 40;
/// The rows about a table, with the conditions that select them.
const ABOUT: &[(&str, &str)] = &[
    ("table_registry", "id = ?1"),
    ("table_column", "table_id = ?1"),
    ("table_partition", "table_id = ?1"),
    ("table_option", "table_id = ?1"),
    ("table_cell_format", "table_id = ?1"),
];

/// Prepares an empty database for copies.
///
/// # Errors
/// When the database cannot be written.
pub(crate) fn prepare_for_copies(db: &Connection) -> Result<(), StoreError> {
    for table in ["table_registry", "table_partition"] {
        db.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
            params![table, FIRST_OWN],
        )
        .map_err(failed)?;
    }
    Ok(())
}

/// Tells whether a database has a table.
///
/// # Errors
/// When the database cannot be read.
pub(crate) fn has(db: &Connection, name: &TableName) -> Result<bool, StoreError> {
    Ok(Table::find(db, name)?.is_some())
}

/// Copies a table, and the tables that its columns refer to, unless the other database has them. Must run in a transaction of
/// each.
///
/// # Errors
/// When a database cannot be read or written.
pub(crate) fn copy(from: &Connection, to: &Connection, name: &TableName) -> Result<(), StoreError> {
    let mut open = vec![name.clone()];
    while let Some(name) = open.pop() {
        if has(to, &name)? {
            continue;
        }
        let Some(table) = Table::find(from, &name)? else {
            continue;
        };
        copy_one(from, to, table.id)?;
        let references = table
            .columns
            .iter()
            .filter_map(|it| it.meta.reference.as_ref());
        open.extend(references.map(|reference| TableName::Id(reference.table)));
    }
    Ok(())
}

/// Copies the tables whose lookups need a table, with those that they refer to: its columns may not change in every way.
/// Must run in a transaction of each database.
///
/// # Errors
/// When a database cannot be read or written.
pub(crate) fn copy_dependents(
    from: &Connection,
    to: &Connection,
    name: &TableName,
) -> Result<(), StoreError> {
    let Some(table) = Table::find(from, name)? else {
        return Ok(());
    };
    let dependents = computed::dependents(from, table.id)?;
    let mut names = dependents.into_iter().map(TableName::Id);
    names.try_for_each(|name| copy(from, to, &name))
}

/// Copies the record of a join that was done, by its id.
///
/// # Errors
/// When a database cannot be read or written.
pub(crate) fn copy_operation(
    from: &Connection,
    to: &Connection,
    id: &str,
) -> Result<(), StoreError> {
    copy_rows(
        from,
        to,
        "table_operation",
        ("op_id = ?1", &id),
        Known::Stays,
    )
}

/// Returns the tables that a change reads or writes.
pub(crate) fn tables_of(op: &TableOp) -> Vec<TableName> {
    let referred = |definition: &ColumnDefinition| match &definition.reference {
        Patch::Set(reference) => Some(reference.table.clone()),
        Patch::Keep | Patch::Clear => None,
    };
    match op {
        TableOp::Create(create) => {
            let columns = create.columns.iter();
            let referred = columns.filter_map(|column| referred(&column.definition));
            let own = TableName::Name(create.name.clone());
            std::iter::once(own).chain(referred).collect()
        }
        TableOp::Write(write) => vec![write.table.name.clone()],
        TableOp::Delete { table, .. } => vec![table.name.clone()],
        TableOp::UpdateCell(update) => vec![update.table.name.clone()],
        TableOp::FormatCell(format) => vec![format.table.name.clone()],
        TableOp::SetColumn(set) => {
            let own = set.table.name.clone();
            std::iter::once(own)
                .chain(referred(&set.definition))
                .collect()
        }
        TableOp::Recompute(recompute) => vec![recompute.table.name.clone()],
        TableOp::Import(import) => vec![import.table.name.clone()],
        TableOp::Join(join) => {
            let sides = [&join.left, &join.right].into_iter();
            let read = sides.filter_map(|side| match &side.source {
                JoinSource::Table(table) => Some(table.name.clone()),
                JoinSource::Rows(_) => None,
            });
            read.chain([join.into.name.clone()]).collect()
        }
    }
}

fn copy_one(from: &Connection, to: &Connection, id: i64) -> Result<(), StoreError> {
    for (table, condition) in ABOUT {
        copy_rows(from, to, table, (condition, &id), Known::None)?;
    }
    let name = format!("t_{id}");
    let mut made = from
        .prepare("SELECT type, sql FROM sqlite_schema WHERE tbl_name = ?1 AND sql IS NOT NULL")
        .map_err(failed)?;
    let made = made.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?)));
    let made: Vec<(String, String)> = made.and_then(Iterator::collect).map_err(failed)?;
    let (tables, indexes): (Vec<_>, Vec<_>) = made.iter().partition(|(kind, _)| kind == "table");
    for (_, sql) in tables {
        to.execute_batch(sql).map_err(failed)?;
    }
    copy_rows(from, to, &name, ("?1 = ?1", &id), Known::None)?;
    // Removed rows do not give their numbers to new ones.
    let last: Option<i64> = from
        .query_row(
            "SELECT seq FROM sqlite_sequence WHERE name = ?1",
            [&name],
            |row| row.get(0),
        )
        .optional()
        .map_err(failed)?;
    if let Some(last) = last {
        let numbered = to.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [&name]);
        numbered.map_err(failed)?;
        to.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
            params![name, last],
        )
        .map_err(failed)?;
    }
    // Indexes are faster to make when the rows are there.
    for (_, sql) in indexes {
        to.execute_batch(sql).map_err(failed)?;
    }
    Ok(())
}
