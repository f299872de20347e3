//! What there is to know about a table.

use flowstone_engine::ports::StoreError;
use flowstone_engine::table::TableTarget;
use rusqlite::Connection;

use super::super::edn::{self, MapText};
use super::super::failure::failed;
use super::partition;
use super::registry::{Column, Table};
use super::write::reference;

pub(super) fn schema(db: &Connection, target: &TableTarget) -> Result<String, StoreError> {
    let table = Table::root(db, &target.name)?;
    let count: i64 = db
        .query_row(
            &format!("SELECT count(*) FROM {}", table.sql()),
            [],
            |row| row.get(0),
        )
        .map_err(failed)?;
    let columns = table.columns.iter().map(|column| {
        MapText::new()
            .text("name", &column.name)
            .raw(
                "type",
                &column
                    .type_
                    .map_or("nil".to_owned(), |type_| edn::keyword(type_.name())),
            )
            .bool("inferred?", column.inferred)
            .bool("key?", column.key > 0)
            .bool("indexed?", column.indexed)
            .finish()
    });
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
