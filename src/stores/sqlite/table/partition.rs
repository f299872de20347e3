//! Partitions: parts of one table that can be read, written and removed separately.
//!
//! The SQL column `part` names the partition of a row, and every index starts with it. A table has partitions from its
//! first row on, or never.

use flowstone_model::diagnostic::nearest;
use flowstone_model::ports::StoreError;
use flowstone_model::table::Partitions;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::super::failure::{failed, rejected, with_hint};
use super::registry::{Table, check_name, listed};

/// A partition and its number of rows.
pub(super) struct Partition {
    pub key: String,
    pub rows: i64,
}

/// Sets the selected partitions of a table.
pub(super) fn choose(
    db: &Connection,
    table: &mut Table,
    partitions: &Partitions,
) -> Result<(), StoreError> {
    match (table.partitioned, partitions) {
        (false, Partitions::Unnamed) | (_, Partitions::All) => Ok(()),
        (false, Partitions::Keys(_)) => Err(not_partitioned(table)),
        (true, Partitions::Unnamed) => {
            let message = format!(
                "the table `{}` has partitions, but none is selected",
                table.name
            );
            Err(with_hint(
                rejected(StoreError::PARTITION, "bad-config", message),
                naming(db, table)?,
            ))
        }
        (true, Partitions::Keys(keys)) => {
            let parts = keys
                .iter()
                .map(|key| find(db, table, key)?.map_or_else(|| Err(missing(db, table, key)?), Ok));
            table.parts = Some(parts.collect::<Result<_, _>>()?);
            Ok(())
        }
    }
}

/// Sets the partition to write to, and creates it if it does not exist.
pub(super) fn choose_to_write(
    db: &Connection,
    table: &mut Table,
    partitions: &Partitions,
    now_ms: i64,
) -> Result<(), StoreError> {
    check_single(table, partitions)?;
    match (table.partitioned, partitions) {
        (true, Partitions::Keys(keys)) => {
            let parts = keys.iter().map(|key| match find(db, table, key)? {
                Some(part) => Ok(part),
                None => add(db, table, key, now_ms),
            });
            table.parts = Some(parts.collect::<Result<_, _>>()?);
            Ok(())
        }
        _ => choose(db, table, partitions),
    }
}

/// Checks that a change selects a single partition.
pub(super) fn check_single(table: &Table, partitions: &Partitions) -> Result<(), StoreError> {
    let found = match partitions {
        Partitions::Keys(keys) if keys.len() == 1 => return Ok(()),
        Partitions::Keys(keys) => format!("{} are selected", keys.len()),
        Partitions::All if table.partitioned => "all are selected".to_owned(),
        Partitions::All | Partitions::Unnamed => return Ok(()),
    };
    let message = format!(
        "the table `{}` is changed in one partition at a time, but {found}",
        table.name
    );
    let error = rejected(StoreError::PARTITION, "bad-config", message);
    Err(with_hint(
        error,
        "use one step for each partition: `:partitions {:key \"a\"}`",
    ))
}

/// Creates a partition.
pub(super) fn add(
    db: &Connection,
    table: &Table,
    key: &str,
    now_ms: i64,
) -> Result<i64, StoreError> {
    check_name(key, "partition", StoreError::PARTITION)?;
    db.prepare_cached("INSERT INTO table_partition (table_id, key, created_ms) VALUES (?1, ?2, ?3)")
        .and_then(|mut sql| sql.insert(params![table.id, key, now_ms]))
        .map_err(failed)
}

/// Removes the selected partitions from the registry; their rows are gone already.
pub(super) fn forget(db: &Connection, table: &Table) -> Result<(), StoreError> {
    for part in table.parts.iter().flatten() {
        db.execute("DELETE FROM table_partition WHERE id = ?1", [part])
            .map_err(failed)?;
    }
    Ok(())
}

/// Returns the keys of the selected partitions, or of all.
pub(super) fn keys(db: &Connection, table: &Table) -> Result<Vec<String>, StoreError> {
    let sql = match &table.parts {
        None => "SELECT key FROM table_partition WHERE table_id = ?1 ORDER BY key".to_owned(),
        Some(parts) => {
            let parts: Vec<String> = parts.iter().map(i64::to_string).collect();
            format!(
                "SELECT key FROM table_partition WHERE table_id = ?1 AND id IN ({}) ORDER BY key",
                parts.join(", ")
            )
        }
    };
    db.prepare(&sql)
        .and_then(|mut sql| sql.query_map([table.id], |row| row.get(0))?.collect())
        .map_err(failed)
}

/// Returns all partitions of a table with their rows, sorted by key.
pub(super) fn all(db: &Connection, table: &Table) -> Result<Vec<Partition>, StoreError> {
    if !table.partitioned {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT key, (SELECT count(*) FROM {} WHERE part = p.id) FROM table_partition p
         WHERE table_id = ?1 ORDER BY key",
        table.sql()
    );
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Partition {
            key: row.get(0)?,
            rows: row.get(1)?,
        })
    };
    db.prepare(&sql)
        .and_then(|mut sql| sql.query_map([table.id], read)?.collect())
        .map_err(failed)
}

/// Returns the SQL condition that selects the chosen partitions; `None` selects every row.
pub(super) fn condition(table: &Table) -> Option<String> {
    let parts = table.parts.as_ref()?;
    Some(match parts.as_slice() {
        [part] => format!("part = {part}"),
        parts => {
            let parts: Vec<String> = parts.iter().map(i64::to_string).collect();
            format!("part IN ({})", parts.join(", "))
        }
    })
}

fn find(db: &Connection, table: &Table, key: &str) -> Result<Option<i64>, StoreError> {
    db.prepare_cached("SELECT id FROM table_partition WHERE table_id = ?1 AND key = ?2")
        .and_then(|mut sql| {
            sql.query_row(params![table.id, key], |row| row.get(0))
                .optional()
        })
        .map_err(failed)
}

fn not_partitioned(table: &Table) -> StoreError {
    let message = format!("the table `{}` has no partitions", table.name);
    with_hint(
        rejected(StoreError::PARTITION, "bad-config", message),
        "leave `:partitions` out; a table has them when its first rows are written with `:partitions`",
    )
}

fn missing(db: &Connection, table: &Table, key: &str) -> Result<StoreError, StoreError> {
    let shown: String = key.chars().take(60).collect();
    let message = format!("the table `{}` has no partition `{shown}`", table.name);
    let error = rejected(StoreError::PARTITION, "not-found", message);
    let names = keys(db, table)?;
    Ok(match nearest(key, names.iter().map(String::as_str)) {
        Some(near) => with_hint(error, format!("did you mean `{near}`?")),
        None => with_hint(
            error,
            format!("there are {}", listed(names.iter().map(String::as_str))),
        ),
    })
}

fn naming(db: &Connection, table: &Table) -> Result<String, StoreError> {
    let names = keys(db, table)?;
    Ok(format!(
        "there are {}: `:table {{:name \"{}\" :partitions {{:key ...}}}}`, or `:keys [...]` to read several",
        listed(names.iter().map(String::as_str)),
        table.name
    ))
}
