//! The description of a table: its columns, key, partitions and row count.

use flowstone_model::ports::StoreError;
use flowstone_model::table::{TableName, TableTarget};
use rusqlite::Connection;

use super::super::failure::failed;
use super::meta::{format_edn, validation_edn};
use super::partition;
use super::registry::{Column, Table};
use super::write::reference;
use crate::edn::{self, MapText};

pub(super) fn schema(db: &Connection, target: &TableTarget) -> Result<String, StoreError> {
    let table = Table::root(db, &target.name)?;
    let count: i64 = db
        .query_row(
            &format!("SELECT count(*) FROM {}", table.sql()),
            [],
            |row| row.get(0),
        )
        .map_err(failed)?;
    let columns = table
        .columns
        .iter()
        .map(|column| Ok(column_edn(column, referred(db, column)?)))
        .collect::<Result<Vec<_>, StoreError>>()?;
    let names =
        |columns: Vec<&Column>| edn::vector(columns.iter().map(|column| edn::text(&column.name)));
    let indexed = table
        .columns
        .iter()
        .filter(|column| column.indexed)
        .collect();
    let mut answer = reference(&table).bool("partitioned?", table.partitioned);
    if table.partitioned {
        let partitions = partition::all(db, &table)?.into_iter().map(|part| {
            MapText::new()
                .text("key", &part.key)
                .raw("row-count", &part.rows.to_string())
                .finish()
        });
        answer = answer.raw("partitions", &edn::vector(partitions));
    }
    Ok(answer
        .raw("columns", &edn::vector(columns))
        .raw("key-fields", &names(table.key()))
        .raw("index-fields", &names(indexed))
        .raw("row-count", &count.to_string())
        .finish())
}

/// Returns the reference of a column as EDN text.
pub(super) fn referred(db: &Connection, column: &Column) -> Result<Option<String>, StoreError> {
    let Some(reference) = &column.meta.reference else {
        return Ok(None);
    };
    let table = Table::root(db, &TableName::Id(reference.table))?;
    Ok(Some(
        MapText::new()
            .text("table", &table.name)
            .text("column", &reference.column)
            .finish(),
    ))
}

/// Returns the description of a column as EDN text; `referred` is its reference.
pub(super) fn column_edn(column: &Column, referred: Option<String>) -> String {
    let type_ = column.type_;
    let mut map = MapText::new()
        .text("name", &column.name)
        .raw(
            "type",
            &type_.map_or("nil".to_owned(), |type_| edn::keyword(type_.name())),
        )
        .bool("inferred?", column.inferred)
        .bool("key?", column.key > 0)
        .bool("indexed?", column.indexed);
    let meta = &column.meta;
    if let Some(name) = &meta.display_name {
        map = map.text("display-name", name);
    }
    if let Some(type_) = &meta.semantic_type {
        map = map.text("semantic-type", type_);
    }
    if let (Some(options), Some(closed)) = (&column.options, meta.options) {
        let options = MapText::new()
            .raw("options", &options.edn())
            .bool("closed?", closed.0);
        map = map.raw("enum", &options.finish());
    }
    if let Some(referred) = referred {
        map = map.raw("reference", &referred);
    }
    if let Some(lookup) = &meta.lookup {
        let lookup = MapText::new()
            .text("type", "lookup")
            .text("reference-column", &lookup.reference_column)
            .text("field", &lookup.field);
        map = map.raw("computed", &lookup.finish());
    }
    if let Some(format) = &meta.format {
        map = map.raw("format", &format_edn(format));
    }
    if let Some(validation) = &meta.validation {
        map = map.raw("validation", &validation_edn(validation));
    }
    map.finish()
}
