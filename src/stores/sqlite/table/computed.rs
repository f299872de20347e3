//! Computed columns: cells that are looked up in the table that another cell refers to.
//!
//! Their cells are stored like others, and computed when their row is written and when a flow asks for it, but not when
//! the other table changes. A lookup that depends on itself is refused when the column is defined.

use std::collections::HashSet;

use flowstone_model::ports::StoreError;
use flowstone_model::table::{ColumnType, Recompute, TableName};
use rusqlite::{Connection, params_from_iter};

use super::super::failure::{failed, rejected, with_hint};
use super::filter::{Condition, filter};
use super::meta::Lookup;
use super::registry::{Column, Table};
use crate::edn::MapText;

/// Maximum length of a chain of lookups.
const MAX_DEPTH: usize = 50;

/// Computes the computed columns of rows again; returns the numbers of the rows that changed.
pub(super) fn refresh(
    db: &Connection,
    table: &mut Table,
    rows: &Condition,
) -> Result<HashSet<i64>, StoreError> {
    let mut changed = HashSet::new();
    for name in order(table) {
        let Some(lookup) = lookup(db, table, &name)? else {
            continue;
        };
        let Some(found) = settle_type(db, table, &name, &lookup)? else {
            continue;
        };
        let column = table.known(&name)?.sql();
        let sql = format!(
            "UPDATE {} SET {column} = {found} WHERE {} AND {column} IS NOT {found} RETURNING row_id",
            table.sql(),
            rows.sql
        );
        let mut sql = db.prepare_cached(&sql).map_err(failed)?;
        let ids = sql
            .query_map(params_from_iter(&rows.cells), |row| row.get::<_, i64>(0))
            .map_err(failed)?;
        for id in ids {
            changed.insert(id.map_err(failed)?);
        }
    }
    Ok(changed)
}

/// Executes `:recompute`.
pub(super) fn recompute(db: &Connection, ask: &Recompute) -> Result<String, StoreError> {
    let mut table = Table::open_to_change(db, &ask.table)?;
    let mut condition = Condition::default();
    filter(&table, &ask.filter, &mut condition)?;
    let mut more = false;
    let mut rows = Condition::default();
    if ask.limit.is_some() || ask.offset > 0 {
        let limit = ask
            .limit
            .map_or(-1, |limit| i64::try_from(limit + 1).unwrap_or(i64::MAX));
        let sql = format!(
            "SELECT row_id FROM {} WHERE {} ORDER BY row_id LIMIT {limit} OFFSET {}",
            table.sql(),
            condition.sql,
            ask.offset
        );
        let mut ids: Vec<String> = db
            .prepare(&sql)
            .and_then(|mut sql| {
                sql.query_map(params_from_iter(&condition.cells), |row| row.get(0))?
                    .map(|id| id.map(|id: i64| id.to_string()))
                    .collect()
            })
            .map_err(failed)?;
        if let Some(limit) = ask.limit.filter(|limit| ids.len() > *limit) {
            ids.truncate(limit);
            more = true;
        }
        rows.sql = format!("row_id IN ({})", ids.join(", "));
    } else {
        rows = condition;
    }
    let scanned: i64 = db
        .prepare(&format!(
            "SELECT count(*) FROM {} WHERE {}",
            table.sql(),
            rows.sql
        ))
        .and_then(|mut sql| sql.query_row(params_from_iter(&rows.cells), |row| row.get(0)))
        .map_err(failed)?;
    let changed = refresh(db, &mut table, &rows)?;
    Ok(MapText::new()
        .text("table", &table.name)
        .raw("rows-scanned", &scanned.to_string())
        .count("rows-updated", changed.len())
        .bool("has-more", more)
        .finish())
}

/// A lookup with its target.
struct Target {
    table: Table,
    /// The column that is searched for the cell.
    key: String,
    /// The column whose cell is the result.
    field: String,
    /// The column of this table whose cell is searched for.
    by: Column,
}

fn lookup(db: &Connection, table: &Table, name: &str) -> Result<Option<Target>, StoreError> {
    let Some(Lookup {
        reference_column,
        field,
    }) = table.known(name)?.meta.lookup.clone()
    else {
        return Ok(None);
    };
    let by = table.known(&reference_column)?.clone();
    let Some(reference) = by.meta.reference.clone() else {
        return Ok(None);
    };
    Ok(Some(Target {
        table: Table::root(db, &TableName::Id(reference.table))?,
        key: reference.column,
        field,
        by,
    }))
}

/// Sets the type of a computed column to that of its lookup, and returns the lookup as SQL; `None` while a column of
/// the lookup has no type.
fn settle_type(
    db: &Connection,
    table: &mut Table,
    name: &str,
    target: &Target,
) -> Result<Option<String>, StoreError> {
    let field = target.table.known(&target.field)?;
    let key = target.table.known(&target.key)?;
    let (Some(type_), Some(_), Some(_)) = (field.type_, key.type_, target.by.type_) else {
        return Ok(None);
    };
    let own = table.known(name)?.type_;
    let widens = own == Some(ColumnType::Long) && type_ == ColumnType::Double;
    if own.is_none() || widens {
        table.set_type(db, name, type_)?;
    }
    Ok(Some(format!(
        "(SELECT r.{} FROM {} AS r WHERE r.{} = {}.{} ORDER BY r.row_id LIMIT 1)",
        field.sql(),
        target.table.sql(),
        key.sql(),
        table.sql(),
        target.by.sql()
    )))
}

/// Returns the computed columns of a table, each after those that it depends on.
fn order(table: &Table) -> Vec<String> {
    fn visit(table: &Table, name: &str, out: &mut Vec<String>, depth: usize) {
        let Some(column) = table.column(name) else {
            return;
        };
        let Some(lookup) = &column.meta.lookup else {
            return;
        };
        if depth > MAX_DEPTH || out.iter().any(|done| done == name) {
            return;
        }
        visit(table, &lookup.reference_column, out, depth + 1);
        let by = table.column(&lookup.reference_column);
        let reference = by.and_then(|by| by.meta.reference.as_ref());
        if let Some(reference) = reference.filter(|reference| reference.table == table.id) {
            visit(table, &lookup.field, out, depth + 1);
            visit(table, &reference.column, out, depth + 1);
        }
        out.push(name.to_owned());
    }
    let mut out = Vec::new();
    for column in &table.columns {
        visit(table, &column.name, &mut out, 0);
    }
    out
}

/// Checks that a column can be computed by a lookup, and returns its type.
pub(super) fn check(
    db: &Connection,
    table: &Table,
    name: &str,
) -> Result<Option<ColumnType>, StoreError> {
    let Some(lookup) = &table.known(name)?.meta.lookup else {
        return Ok(None);
    };
    let by = table.known(&lookup.reference_column)?;
    let Some(reference) = &by.meta.reference else {
        let message = format!(
            "`{name}` looks up by `{}`, but that column has no `:reference`",
            by.name
        );
        let hint = format!(
            "set it first: `{{:op :set-column :table \"{}\" :column \"{}\" :definition {{:reference {{:table \"...\" :column \"id\"}}}}}}`",
            table.name, by.name
        );
        return Err(with_hint(rejected("E0634", "bad-config", message), hint));
    };
    let other = Table::root(db, &TableName::Id(reference.table))?;
    let field = other.known(&lookup.field)?.type_;
    check_types(by, &other, other.known(&reference.column)?)?;
    let mut path = vec![(table.id, name.to_owned())];
    check_cycle(db, table, name, &mut path)?;
    Ok(field)
}

/// Checks that the cells of two columns can be equal.
pub(super) fn check_types(by: &Column, other: &Table, key: &Column) -> Result<(), StoreError> {
    use ColumnType::{Double, Long};
    let fits = match (by.type_, key.type_) {
        (Some(Long | Double), Some(Long | Double)) | (None, _) | (_, None) => true,
        (Some(left), Some(right)) => left == right,
    };
    if fits {
        return Ok(());
    }
    let holds = |column: &Column| column.type_.map_or("nothing yet", super::cell::holds);
    let message = format!(
        "`{}` holds {}, and `{}` of the table `{}` holds {}: they are never equal",
        by.name,
        holds(by),
        key.name,
        other.name,
        holds(key)
    );
    let hint = "give one of them the type of the other with `:op :set-column` and `:type-hint`";
    Err(with_hint(rejected("E0634", "bad-config", message), hint))
}

fn check_cycle(
    db: &Connection,
    table: &Table,
    name: &str,
    path: &mut Vec<(i64, String)>,
) -> Result<(), StoreError> {
    if path.len() > MAX_DEPTH {
        let message =
            format!("the chain of lookups from `{name}` has more than {MAX_DEPTH} columns");
        return Err(rejected("E0634", "too-large", message));
    }
    let Some(Target {
        table: other,
        key,
        field,
        by,
    }) = lookup(db, table, name)?
    else {
        return Ok(());
    };
    for (place, next) in [(table, &by.name), (&other, &key), (&other, &field)] {
        let step = (place.id, next.clone());
        if path.contains(&step) {
            let names: Vec<&str> = path.iter().map(|(_, name)| name.as_str()).collect();
            let message = format!("the lookups form a cycle: {} -> {next}", names.join(" -> "));
            return Err(rejected("E0634", "bad-config", message));
        }
        path.push(step);
        check_cycle(db, place, next, path)?;
        path.pop();
    }
    Ok(())
}

/// Returns the tables that have a lookup.
fn looking_up(db: &Connection) -> Result<Vec<i64>, StoreError> {
    db.prepare_cached(
        "SELECT DISTINCT table_id FROM table_column WHERE definition LIKE '%\"lookup\"%' ORDER BY table_id",
    )
    .and_then(|mut sql| sql.query_map([], |row| row.get(0))?.collect())
    .map_err(failed)
}

/// Returns the tables with a lookup in a table.
pub(super) fn dependents(db: &Connection, table: i64) -> Result<Vec<i64>, StoreError> {
    let mut found = Vec::new();
    for id in looking_up(db)? {
        let other = Table::root(db, &TableName::Id(id))?;
        for column in &other.columns {
            let target = lookup(db, &other, &column.name)?;
            if target.is_some_and(|target| target.table.id == table) {
                found.push(id);
                break;
            }
        }
    }
    Ok(found)
}

/// Returns a column whose lookup needs this one, as `table.column`.
pub(super) fn dependent(
    db: &Connection,
    table: &Table,
    name: &str,
) -> Result<Option<String>, StoreError> {
    for id in looking_up(db)? {
        let other = Table::root(db, &TableName::Id(id))?;
        for column in &other.columns {
            let Some(target) = lookup(db, &other, &column.name)? else {
                continue;
            };
            let needs_here = target.table.id == table.id
                && [&target.key, &target.field].contains(&&name.to_owned());
            let needs_own = other.id == table.id && target.by.name == name;
            if needs_here || needs_own {
                return Ok(Some(format!("{}.{}", other.name, column.name)));
            }
        }
    }
    Ok(None)
}
