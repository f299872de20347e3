//! Adds columns, and changes their definitions.

use std::rc::Rc;

use flowstone_model::ports::StoreError;
use flowstone_model::table::{
    ColumnDefinition, ColumnType, Computed, EnumDefinition, Patch, Reference, SetColumn,
};
use rusqlite::Connection;
use rusqlite::types::Value as Sql;

use super::super::failure::{rejected, with_hint};
use super::filter::Condition;
use super::meta::{self, Closed, Lookup};
use super::options::{self, Options};
use super::registry::{Table, listed};
use super::write::reference;
use super::{coerce, computed, export, intake};

pub(super) fn set(db: &Connection, ask: &SetColumn) -> Result<String, StoreError> {
    let mut table = Table::root(db, &ask.table.name)?;
    let name = &ask.column;
    let is_new = table.column(name).is_none();
    if is_new {
        table.add_column(db, name, None, true)?;
    }
    let changed = define(db, &mut table, name, &ask.definition)?;
    let column = table.known(name)?;
    let column = export::column_edn(column, export::referred(db, column)?);
    Ok(reference(&table)
        .bool("success", true)
        .bool("created?", is_new)
        .raw("column", &column)
        .count("cells-changed", changed)
        .finish())
}

/// Applies a definition to a column; returns the number of changed cells.
pub(super) fn define(
    db: &Connection,
    table: &mut Table,
    name: &str,
    definition: &ColumnDefinition,
) -> Result<usize, StoreError> {
    let before = table.known(name)?.clone();
    let mut meta = before.meta.clone();
    patch(&mut meta.display_name, &definition.display_name);
    patch(&mut meta.semantic_type, &definition.semantic_type);
    patch(&mut meta.format, &definition.format);
    patch(&mut meta.validation, &definition.validation);
    match &definition.reference {
        Patch::Keep => {}
        Patch::Clear => meta.reference = None,
        Patch::Set(given) => meta.reference = Some(referred(db, table, name, given)?),
    }
    match &definition.computed {
        Patch::Keep => {}
        Patch::Clear => meta.lookup = None,
        Patch::Set(Computed::Lookup {
            reference_column,
            field,
        }) => {
            if before.key > 0 {
                let message = format!("`{name}` is part of the key, and cannot be computed");
                return Err(rejected("E0634", "bad-config", message));
            }
            table.known(reference_column)?;
            meta.lookup = Some(Lookup {
                reference_column: reference_column.clone(),
                field: field.clone(),
            });
        }
    }
    if definition.reference != Patch::Keep && meta.reference != before.meta.reference {
        check_not_looked_up(db, table, name, "its reference cannot change")?;
    }
    if definition.options == Patch::Clear {
        meta.options = None;
    }
    table.set_meta(db, name, meta)?;
    let wanted = wanted_type(db, table, name, definition)?;
    let mut changed = 0;
    if let Some(wanted) = wanted.filter(|wanted| before.type_ != Some(*wanted)) {
        if before.type_.is_some() {
            check_not_looked_up(db, table, name, "its type cannot change")?;
        }
        changed += coerce::retype(db, table, name, wanted)?;
        table.declare(db, name)?;
    }
    match &definition.options {
        // A declared enum tracks its options.
        Patch::Keep if definition.type_ == Some(ColumnType::Enum) => {
            if table.known(name)?.options.is_none() {
                changed += set_options(db, table, name, &EnumDefinition::default())?;
            }
        }
        Patch::Keep => {}
        Patch::Clear => {
            options::clear(db, table.id, before.idx)?;
            table.set_options(name, None);
        }
        Patch::Set(options) => changed += set_options(db, table, name, options)?,
    }
    let column = table.known(name)?;
    if let Some(validation) = &column.meta.validation {
        let type_ = column.type_.unwrap_or(ColumnType::Json);
        intake::checks(name, type_, validation)?;
    }
    if column.meta.lookup.is_some() && definition.computed != Patch::Keep {
        let all = Condition {
            sql: "1".to_owned(),
            cells: Vec::new(),
        };
        changed += computed::refresh(db, table, &all)?.len();
    }
    Ok(changed)
}

fn patch<T: Clone>(place: &mut Option<T>, change: &Patch<T>) {
    match change {
        Patch::Keep => {}
        Patch::Clear => *place = None,
        Patch::Set(value) => *place = Some(value.clone()),
    }
}

/// Refuses a change that would break a lookup that depends on the column.
fn check_not_looked_up(
    db: &Connection,
    table: &Table,
    name: &str,
    what: &str,
) -> Result<(), StoreError> {
    match computed::dependent(db, table, name)? {
        None => Ok(()),
        Some(dependent) => {
            let message = format!("`{dependent}` looks up by `{name}`, so {what}");
            let hint = "remove the lookup first, with `:definition {:computed nil}`";
            Err(with_hint(rejected("E0634", "conflict", message), hint))
        }
    }
}

/// Returns the type that the column is to have; `None`: its current one.
fn wanted_type(
    db: &Connection,
    table: &Table,
    name: &str,
    definition: &ColumnDefinition,
) -> Result<Option<ColumnType>, StoreError> {
    let contradiction = |why: String| {
        let message = format!("`:type-hint` of `{name}` contradicts the definition: {why}");
        Err(rejected("E0631", "bad-config", message))
    };
    let column = table.known(name)?;
    if column.meta.lookup.is_some() {
        let found = computed::check(db, table, name)?;
        return match (definition.type_, found) {
            (Some(declared), Some(found)) if declared != found => {
                contradiction(format!("the looked-up column is `{}`", found.name()))
            }
            (declared, found) => Ok(found.or(declared)),
        };
    }
    if column.meta.options.is_some() || matches!(definition.options, Patch::Set(_)) {
        return match definition.type_ {
            None | Some(ColumnType::Enum) => Ok(Some(ColumnType::Enum)),
            Some(_) => contradiction(
                "a column with `:enum` options holds enums; `:enum nil` removes them".to_owned(),
            ),
        };
    }
    Ok(definition.type_)
}

/// Finds the column that another one refers to, and adds an index to it.
fn referred(
    db: &Connection,
    table: &Table,
    name: &str,
    given: &Reference,
) -> Result<meta::Reference, StoreError> {
    let mut other = Table::root(db, &given.table)?;
    if other.partitioned {
        let message = format!(
            "`{name}` cannot refer to the table `{}`, which has partitions",
            other.name
        );
        let hint = "keep what is looked up in a table without partitions";
        return Err(with_hint(rejected("E0634", "bad-config", message), hint));
    }
    let key = other.known(&given.column)?.clone();
    computed::check_types(table.known(name)?, &other, &key)?;
    if other.key().iter().map(|column| column.idx).next() != Some(key.idx) {
        other.add_index(db, &given.column)?;
    }
    Ok(meta::Reference {
        table: other.id,
        column: key.name,
    })
}

/// Replaces the options of a column, and converts its cells to their ids.
fn set_options(
    db: &Connection,
    table: &mut Table,
    name: &str,
    definition: &EnumDefinition,
) -> Result<usize, StoreError> {
    let mut options = Options::of(definition, name)?;
    let mut full = None;
    let changes = coerce::changes(db, table, name, |cell| {
        let Sql::Text(text) = cell else { return None };
        if let Some(id) = options.find(text) {
            return Some(Sql::Text(id.to_owned()));
        }
        if definition.closed {
            return None;
        }
        if let Err(error) = options.grow(text, name) {
            full.get_or_insert(error);
        }
        Some(cell.clone())
    })?;
    if let Some(error) = full {
        return Err(error);
    }
    if let (rows @ [_, ..], count) = changes.bad() {
        let shown: Vec<String> = rows
            .iter()
            .map(|(id, cell)| format!("row {id}: {}", super::cell::to_edn(ColumnType::Enum, cell)))
            .collect();
        let message = format!(
            "{count} cells of `{name}` are not among its options: {}",
            shown.join(", ")
        );
        let hint = format!("the options are {}", listed(options.names()));
        return Err(with_hint(rejected("E0633", "invalid", message), hint));
    }
    let idx = table.known(name)?.idx;
    options::clear(db, table.id, idx)?;
    options.save(db, table.id, idx)?;
    let mut meta = table.known(name)?.meta.clone();
    meta.options = Some(Closed(definition.closed));
    table.set_meta(db, name, meta)?;
    let changed = changes.write(db, table, name)?;
    table.set_options(name, Some(Rc::new(options)));
    Ok(changed)
}
