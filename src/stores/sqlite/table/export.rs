//! A table as CSV, and what there is to know about it.

use flowstone_engine::ports::StoreError;
use flowstone_engine::table::{Filter, Sort, TableTarget};
use rusqlite::Connection;

use super::super::edn::{self, MapText};
use super::super::failure::failed;
use super::cell::to_plain;
use super::filter::{Condition, filter, order};
use super::partition;
use super::registry::{Column, Table};
use super::rows::{Selection, read};
use super::write::reference;

pub(super) fn csv(
    db: &Connection,
    name: &TableTarget,
    (select, condition, sort): (&[String], &Filter, &[Sort]),
) -> Result<String, StoreError> {
    let table = Table::open(db, name)?;
    let selection = Selection::of(&table, select)?;
    let mut rows = Condition::default();
    filter(&table, condition, &mut rows)?;
    let columns = [selection.sql.clone(), vec!["row_id".to_owned()]]
        .concat()
        .join(", ");
    let sql = format!(
        "SELECT {columns} FROM {} WHERE {} ORDER BY {}",
        table.sql(),
        rows.sql,
        order(&table, sort)?
    );
    let found = read(db, &sql, &rows.cells)?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    let unwritten = |error: csv::Error| StoreError::Internal(error.to_string());
    writer.write_record(&selection.names).map_err(unwritten)?;
    for cells in &found {
        let row = selection
            .types
            .iter()
            .zip(cells)
            .map(|(type_, cell)| to_plain(*type_, cell));
        writer.write_record(row).map_err(unwritten)?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| StoreError::Internal(error.to_string()))?;
    let content = String::from_utf8_lossy(&bytes);
    Ok(MapText::new()
        .text("content", &content)
        .text("content-type", "text/csv")
        .text(
            "filename",
            &format!("{}.csv", table.name.replace(['/', '\\'], "-")),
        )
        .count("rows", found.len())
        .finish())
}

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
