//! Tables: SQLite tables with indexes, created and extended by the writes to them.
//!
//! Names of tables and columns are never part of SQL: a table is `t_<id>` and its columns are `c1`, `c2` ..., and two
//! registry tables map these to the real names. Values are always bound. Each operation checks all its arguments before
//! it changes anything, and runs in the transaction of its caller.

mod aggregate;
mod cell;
mod coerce;
mod column;
mod computed;
mod copy;
pub(super) mod csv;
mod export;
mod filter;
mod groups;
mod intake;
mod join;
mod meta;
mod metric;
mod options;
mod partition;
#[cfg(test)]
mod plans;
mod registry;
mod rows;
mod update;
mod write;
mod writer;

use flowstone_model::ports::StoreError;
use flowstone_model::table::{TableOp, TableQuery};
use rusqlite::Connection;

pub(crate) use copy::{copy, copy_dependents, copy_operation, has, prepare_for_copies, tables_of};

/// The tables of this part, without those of users.
pub const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS table_registry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    created_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS table_column (
    table_id INTEGER NOT NULL REFERENCES table_registry (id),
    idx INTEGER NOT NULL,
    name TEXT NOT NULL,
    -- Empty until the first cell that is not nil tells.
    type TEXT NOT NULL,
    inferred INTEGER NOT NULL,
    -- The position in the key, counted from 1; 0 outside of it.
    key INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (table_id, idx),
    UNIQUE (table_id, name)
) WITHOUT ROWID;
";

/// The additions of format 3.
pub const FORMAT_3: &str = "
ALTER TABLE table_registry ADD COLUMN partitioned INTEGER NOT NULL DEFAULT 0;
-- The rest of its definition, as JSON.
ALTER TABLE table_column ADD COLUMN definition TEXT NOT NULL DEFAULT '{}';
CREATE TABLE IF NOT EXISTS table_partition (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    table_id INTEGER NOT NULL REFERENCES table_registry (id),
    key TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    UNIQUE (table_id, key)
);
CREATE TABLE IF NOT EXISTS table_option (
    table_id INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    position INTEGER NOT NULL,
    -- As the cells of the column are kept.
    id TEXT NOT NULL,
    name TEXT,
    -- A JSON array.
    aliases TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (table_id, idx, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS table_cell_format (
    table_id INTEGER NOT NULL,
    row_id INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    format TEXT NOT NULL,
    PRIMARY KEY (table_id, row_id, idx)
) WITHOUT ROWID;
-- Joins that were done, by the name the flow gave them.
CREATE TABLE IF NOT EXISTS table_operation (
    op_id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    made_ms INTEGER NOT NULL
) WITHOUT ROWID;
";

/// Prepares a connection; required once for each one that reads or writes tables.
///
/// # Errors
/// When SQLite does not accept the functions.
pub fn prepare(db: &Connection) -> Result<(), StoreError> {
    cell::prepare(db).map_err(super::failure::failed)
}

/// Makes a change and returns its result as EDN text. Must run in a transaction.
///
/// # Errors
/// [`StoreError::Rejected`] when the operation does not fit the table: the caller must roll the transaction back to the
/// state before the call.
pub fn apply(db: &Connection, op: &TableOp, now_ms: i64) -> Result<String, StoreError> {
    match op {
        TableOp::Import(import) => csv::import(db, import, now_ms),
        TableOp::Create(create) => write::create(db, create, now_ms),
        TableOp::Write(rows) => write::write(db, rows, now_ms),
        TableOp::Delete { table, rows } => write::delete(db, table, rows),
        TableOp::UpdateCell(cell) => update::cell(db, cell),
        TableOp::FormatCell(format) => update::format(db, format),
        TableOp::SetColumn(set) => column::set(db, set),
        TableOp::Recompute(recompute) => computed::recompute(db, recompute),
        TableOp::Join(join) => join::materialize(db, join, now_ms),
    }
}

/// Returns id, name and time of creation of each table.
pub(crate) fn registered(db: &Connection) -> Result<Vec<(i64, String, i64)>, StoreError> {
    let mut sql = db
        .prepare_cached("SELECT id, name, created_ms FROM table_registry ORDER BY id")
        .map_err(super::failure::failed)?;
    let rows = sql
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(super::failure::failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>()
        .map_err(super::failure::failed)
}

/// Returns the names of all tables, sorted.
///
/// # Errors
/// When the database cannot be read.
pub fn names(db: &Connection) -> Result<Vec<String>, StoreError> {
    db.prepare_cached("SELECT name FROM table_registry ORDER BY name")
        .and_then(|mut sql| sql.query_map([], |row| row.get(0))?.collect())
        .map_err(super::failure::failed)
}

/// Answers a query, as EDN text.
///
/// # Errors
/// [`StoreError::Rejected`] when the query does not fit the table.
pub fn query(db: &Connection, query: &TableQuery) -> Result<String, StoreError> {
    match query {
        TableQuery::Rows(rows) => rows::page(db, rows),
        TableQuery::Row { table, row, select } => rows::one(db, table, row, select),
        TableQuery::Aggregate(aggregate) => aggregate::aggregate(db, aggregate),
        TableQuery::Schema { table } => export::schema(db, table),
    }
}

#[cfg(test)]
mod tests {
    use flowstone_model::table::{
        Cell, Partitions, SetColumn, TableName, TableTarget, WriteMode, WriteRows,
    };

    use super::*;

    /// A table in the state that a build of format 2 wrote.
    const FORMAT_2_TABLE: &str = "
        INSERT INTO table_registry (name, created_ms) VALUES ('orders', 1);
        CREATE TABLE t_1 (row_id INTEGER PRIMARY KEY AUTOINCREMENT);
        ALTER TABLE t_1 ADD COLUMN c1;
        ALTER TABLE t_1 ADD COLUMN c2;
        ALTER TABLE t_1 ADD COLUMN c3 COLLATE flowstone_decimal;
        INSERT INTO table_column (table_id, idx, name, type, inferred, key, indexed) VALUES
            (1, 1, 'id', 'long', 1, 1, 0), (1, 2, 'status', 'enum', 1, 0, 1), (1, 3, 'total', 'decimal', 0, 0, 0),
            (1, 4, 'empty', '', 1, 0, 0);
        CREATE UNIQUE INDEX t_1_key ON t_1 (c1);
        CREATE INDEX t_1_i2 ON t_1 (c2);
        INSERT INTO t_1 (c1, c2, c3) VALUES (1, ':open', '10'), (2, 'done', '9.5');";

    #[test]
    fn tables_of_format_2_can_be_read_and_written() {
        let db = Connection::open_in_memory().expect("a database");
        prepare(&db).expect("functions");
        db.execute_batch(SCHEMA).expect("format 1");
        db.execute_batch(FORMAT_2_TABLE).expect("a table");
        db.execute_batch(FORMAT_3).expect("format 3");
        let target = TableTarget::from(TableName::Name("orders".to_owned()));
        let schema = |db: &Connection| {
            query(
                db,
                &TableQuery::Schema {
                    table: target.clone(),
                },
            )
            .expect("a schema")
        };
        let before = schema(&db);
        assert!(before.contains(":partitioned? false"), "{before}");
        assert!(before.contains(":row-count 2"), "{before}");
        let row = vec![
            ("id".to_owned(), Cell::Long(2)),
            ("status".to_owned(), Cell::Keyword("lost".to_owned())),
            ("empty".to_owned(), Cell::Text("no more".to_owned())),
        ];
        let write = TableOp::Write(WriteRows {
            table: target.clone(),
            rows: vec![row],
            mode: WriteMode::Upsert,
            key_fields: Vec::new(),
            index_fields: Vec::new(),
        });
        let written = apply(&db, &write, 2).expect("a row");
        assert!(written.contains(":rows-updated 1"), "{written}");
        let set = TableOp::SetColumn(SetColumn {
            table: target.clone(),
            column: "status".to_owned(),
            definition: flowstone_model::table::ColumnDefinition {
                type_: Some(flowstone_model::table::ColumnType::Enum),
                ..Default::default()
            },
        });
        let set = apply(&db, &set, 3).expect("a column");
        assert!(
            set.contains("{:id :open") && set.contains("{:id :lost"),
            "{set}"
        );
        let elsewhere = TableTarget {
            partitions: Partitions::Keys(vec!["a".to_owned()]),
            ..target
        };
        let refused = query(
            &db,
            &TableQuery::Schema {
                table: elsewhere.clone(),
            },
        );
        assert!(refused.is_ok(), "the schema is of the whole");
        let write = WriteRows {
            table: elsewhere,
            rows: Vec::new(),
            mode: WriteMode::Insert,
            key_fields: Vec::new(),
            index_fields: Vec::new(),
        };
        assert!(
            apply(&db, &TableOp::Write(write), 4).is_err(),
            "it has no partitions"
        );
    }
}
