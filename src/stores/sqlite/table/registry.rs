//! The registry of tables and their columns.

use std::rc::Rc;

use flowstone_model::diagnostic::nearest;
use flowstone_model::installation::Namespace;
use flowstone_model::ports::StoreError;
use flowstone_model::table::{ColumnType, ROW_ID, TableName, TableTarget};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::super::failure::{failed, rejected, with_hint};
use super::meta::Meta;
use super::options::Options;
use super::partition;

const MAX_NAME: usize = 128;
pub(super) const MAX_COLUMNS: usize = 1000;

/// A table in its current state.
pub(super) struct Table {
    pub id: i64,
    pub name: String,
    pub columns: Vec<Column>,
    /// Tells whether its rows belong to partitions, by the SQL column `part`.
    pub partitioned: bool,
    /// The selected partitions; `None`: all rows.
    pub parts: Option<Vec<i64>>,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub idx: i64,
    pub name: String,
    /// The type; `None` until the first cell that is not nil: before that, SQLite has no such column.
    pub type_: Option<ColumnType>,
    /// Tells whether the type was inferred from cells, not declared.
    pub inferred: bool,
    /// The position in the key, counted from 1; 0 if the column is not in the key.
    pub key: i64,
    pub indexed: bool,
    /// The rest of the column's definition.
    pub meta: Meta,
    /// The options of an enum, if they are declared.
    pub options: Option<Rc<Options>>,
}

impl Column {
    /// Returns the column in SQL; `NULL` while it does not exist there.
    pub(super) fn sql(&self) -> String {
        match self.type_ {
            Some(_) => format!("c{}", self.idx),
            None => "NULL".to_owned(),
        }
    }
}

impl Table {
    /// Opens a table with the selected partitions, for reading.
    pub(super) fn open(db: &Connection, target: &TableTarget) -> Result<Table, StoreError> {
        let mut table = Table::root(db, &target.name)?;
        partition::choose(db, &mut table, &target.partitions)?;
        Ok(table)
    }

    /// Opens a table with the single selected partition, for changes of existing rows.
    pub(super) fn open_to_change(
        db: &Connection,
        target: &TableTarget,
    ) -> Result<Table, StoreError> {
        let table = Table::open(db, target)?;
        partition::check_single(&table, &target.partitions)?;
        Ok(table)
    }

    /// Finds a table as a whole.
    pub(super) fn root(db: &Connection, name: &TableName) -> Result<Table, StoreError> {
        Table::find(db, name)?.map_or_else(|| Err(missing(db, name)?), Ok)
    }

    /// Finds a table; `None` if it does not exist.
    pub(super) fn find(db: &Connection, name: &TableName) -> Result<Option<Table>, StoreError> {
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Table {
                id: row.get(0)?,
                name: row.get(1)?,
                columns: Vec::new(),
                partitioned: row.get(2)?,
                parts: None,
            })
        };
        let found = match name {
            TableName::Name(name) => db
                .prepare_cached("SELECT id, name, partitioned FROM table_registry WHERE name = ?1")
                .and_then(|mut sql| sql.query_row([name], read).optional()),
            TableName::Id(id) => db
                .prepare_cached("SELECT id, name, partitioned FROM table_registry WHERE id = ?1")
                .and_then(|mut sql| sql.query_row([id], read).optional()),
        };
        let Some(mut table) = found.map_err(failed)? else {
            return Ok(None);
        };
        table.columns = columns(db, table.id).map_err(failed)?;
        Ok(Some(table))
    }

    /// Creates an empty table, with or without partitions.
    pub(super) fn create(
        db: &Connection,
        name: &str,
        partitioned: bool,
        now_ms: i64,
    ) -> Result<Table, StoreError> {
        check_name(name, "table", "E0621")?;
        Table::make(db, name, partitioned, now_ms)
    }

    /// Creates a temporary table, with a name that no flow can use. Must be discarded.
    pub(super) fn scratch(db: &Connection, name: &str) -> Result<Table, StoreError> {
        Table::make(db, &format!("\u{1}{name}"), false, 0)
    }

    /// Removes the table with its rows.
    pub(super) fn discard(self, db: &Connection) -> Result<(), StoreError> {
        db.execute_batch(&format!(
            "DROP TABLE t_{0};
             DELETE FROM table_column WHERE table_id = {0};
             DELETE FROM table_registry WHERE id = {0}",
            self.id
        ))
        .map_err(failed)
    }

    fn make(
        db: &Connection,
        name: &str,
        partitioned: bool,
        now_ms: i64,
    ) -> Result<Table, StoreError> {
        db.execute(
            "INSERT INTO table_registry (name, created_ms, partitioned) VALUES (?1, ?2, ?3)",
            params![name, now_ms, partitioned],
        )
        .map_err(failed)?;
        let id = db.last_insert_rowid();
        let sql = match partitioned {
            false => format!("CREATE TABLE t_{id} (row_id INTEGER PRIMARY KEY AUTOINCREMENT)"),
            true => format!(
                "CREATE TABLE t_{id} (row_id INTEGER PRIMARY KEY AUTOINCREMENT, part INTEGER NOT NULL);
                 CREATE INDEX t_{id}_part ON t_{id} (part)"
            ),
        };
        db.execute_batch(&sql).map_err(failed)?;
        Ok(Table {
            id,
            name: name.to_owned(),
            columns: Vec::new(),
            partitioned,
            parts: None,
        })
    }

    /// Returns the columns of an index in SQL: the partition comes first.
    fn indexed_sql(&self, columns: &str) -> String {
        match self.partitioned {
            true => format!("part, {columns}"),
            false => columns.to_owned(),
        }
    }

    /// Returns the name of the table in SQL.
    pub(super) fn sql(&self) -> String {
        format!("t_{}", self.id)
    }

    /// Returns the `res://` name of the table.
    pub(super) fn uri(&self) -> String {
        format!("res://v1/ws/local/result/table/{}", self.id)
    }

    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Returns a column that must exist.
    pub(super) fn known(&self, name: &str) -> Result<&Column, StoreError> {
        self.column(name).ok_or_else(|| {
            let names = || self.columns.iter().map(|column| column.name.as_str());
            let message = format!("the table `{}` has no column `{name}`", self.name);
            let hint = match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has {}", listed(names())),
            };
            with_hint(rejected("E0622", "not-found", message), hint)
        })
    }

    /// Returns the columns of the key, in its order.
    pub(super) fn key(&self) -> Vec<&Column> {
        let mut key: Vec<&Column> = self
            .columns
            .iter()
            .filter(|column| column.key > 0)
            .collect();
        key.sort_by_key(|column| column.key);
        key
    }

    /// Adds a column.
    pub(super) fn add_column(
        &mut self,
        db: &Connection,
        name: &str,
        type_: Option<ColumnType>,
        inferred: bool,
    ) -> Result<(), StoreError> {
        check_name(name, "column", "E0621")?;
        if name == ROW_ID {
            let message =
                format!("`{ROW_ID}` is the store's own number of a row, and cannot be a column");
            return Err(rejected("E0621", "bad-config", message));
        }
        if self.columns.len() >= MAX_COLUMNS {
            let message = format!(
                "the table `{}` has {MAX_COLUMNS} columns, and no more fit",
                self.name
            );
            let error = rejected("E0621", "too-large", message);
            return Err(with_hint(
                error,
                "put what varies from row to row in one column, as a map",
            ));
        }
        let idx = self
            .columns
            .iter()
            .map(|column| column.idx)
            .max()
            .unwrap_or(0)
            + 1;
        db.prepare_cached("INSERT INTO table_column (table_id, idx, name, type, inferred) VALUES (?1, ?2, ?3, '', ?4)")
            .and_then(|mut sql| sql.execute(params![self.id, idx, name, inferred]))
            .map_err(failed)?;
        self.columns.push(Column {
            idx,
            name: name.to_owned(),
            type_: None,
            inferred,
            key: 0,
            indexed: false,
            meta: Meta::default(),
            options: None,
        });
        match type_ {
            Some(type_) => self.set_type(db, name, type_),
            None => Ok(()),
        }
    }

    /// Sets the type of a column: its first one, or a wider one.
    pub(super) fn set_type(
        &mut self,
        db: &Connection,
        name: &str,
        type_: ColumnType,
    ) -> Result<(), StoreError> {
        let (id, sql_name) = (self.id, self.sql());
        let Some(column) = self.columns.iter_mut().find(|column| column.name == name) else {
            return Err(StoreError::Internal(format!("no column {name} to type")));
        };
        if column.type_.is_none() {
            let sql = format!(
                "ALTER TABLE {sql_name} ADD COLUMN c{}{}",
                column.idx,
                collation(type_)
            );
            db.execute_batch(&sql).map_err(failed)?;
        }
        column.type_ = Some(type_);
        db.prepare_cached("UPDATE table_column SET type = ?3 WHERE table_id = ?1 AND idx = ?2")
            .and_then(|mut sql| sql.execute(params![id, column.idx, type_.name()]))
            .map(drop)
            .map_err(failed)
    }

    /// Makes these columns the key: no two rows may have the same values in all of them.
    pub(super) fn set_key(&mut self, db: &Connection, names: &[String]) -> Result<(), StoreError> {
        let columns = names
            .iter()
            .map(|name| self.known(name).map(Column::sql))
            .collect::<Result<Vec<_>, _>>()?;
        if columns.iter().any(|column| column == "NULL") {
            let message = format!(
                "no row has a value for a key field of {}",
                listed(names.iter().map(String::as_str))
            );
            return Err(rejected(StoreError::ROW_KEY, "invalid", message));
        }
        let sql = format!(
            "CREATE UNIQUE INDEX {}_key ON {} ({})",
            self.sql(),
            self.sql(),
            self.indexed_sql(&columns.join(", "))
        );
        db.execute_batch(&sql)
            .map_err(|error| match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::ConstraintViolation) => {
                    let key = listed(names.iter().map(String::as_str));
                    let message = format!(
                        "{key} cannot be the key of the table `{}`: two of its rows have the same values",
                        self.name
                    );
                    with_hint(
                        rejected(StoreError::ROW_KEY, "conflict", message),
                        "delete the duplicates, or choose other key fields",
                    )
                }
                _ => failed(error),
            })?;
        for (position, name) in (1_i64..).zip(names) {
            if let Some(column) = self.columns.iter_mut().find(|column| column.name == *name) {
                column.key = position;
                db.execute(
                    "UPDATE table_column SET key = ?3 WHERE table_id = ?1 AND idx = ?2",
                    params![self.id, column.idx, position],
                )
                .map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Adds an index on a column, unless it has one.
    pub(super) fn add_index(&mut self, db: &Connection, name: &str) -> Result<(), StoreError> {
        let column = self.known(name)?;
        if column.indexed || column.type_.is_none() {
            return Ok(());
        }
        let idx = column.idx;
        let sql = format!(
            "CREATE INDEX {}_i{idx} ON {} ({})",
            self.sql(),
            self.sql(),
            self.indexed_sql(&format!("c{idx}"))
        );
        db.execute_batch(&sql).map_err(failed)?;
        db.execute(
            "UPDATE table_column SET indexed = 1 WHERE table_id = ?1 AND idx = ?2",
            params![self.id, idx],
        )
        .map_err(failed)?;
        if let Some(column) = self.columns.iter_mut().find(|column| column.idx == idx) {
            column.indexed = true;
        }
        Ok(())
    }
}

impl Table {
    /// Replaces the definition of a column.
    pub(super) fn set_meta(
        &mut self,
        db: &Connection,
        name: &str,
        meta: Meta,
    ) -> Result<(), StoreError> {
        let idx = self.known(name)?.idx;
        db.prepare_cached(
            "UPDATE table_column SET definition = ?3 WHERE table_id = ?1 AND idx = ?2",
        )
        .and_then(|mut sql| sql.execute(params![self.id, idx, meta.text()]))
        .map_err(failed)?;
        if let Some(column) = self.columns.iter_mut().find(|column| column.idx == idx) {
            column.meta = meta;
        }
        Ok(())
    }

    /// Sets the options of a column, which are stored already.
    pub(super) fn set_options(&mut self, name: &str, options: Option<Rc<Options>>) {
        if let Some(column) = self.columns.iter_mut().find(|column| column.name == name) {
            column.options = options;
        }
    }

    /// Marks the type of a column as declared: cells do not widen it any more.
    pub(super) fn declare(&mut self, db: &Connection, name: &str) -> Result<(), StoreError> {
        let idx = self.known(name)?.idx;
        db.execute(
            "UPDATE table_column SET inferred = 0 WHERE table_id = ?1 AND idx = ?2",
            [self.id, idx],
        )
        .map_err(failed)?;
        if let Some(column) = self.columns.iter_mut().find(|column| column.idx == idx) {
            column.inferred = false;
        }
        Ok(())
    }

    /// Creates a column again in SQL with the collation of its new type; its cells and indexes stay.
    pub(super) fn recollate(
        &mut self,
        db: &Connection,
        name: &str,
        type_: ColumnType,
    ) -> Result<(), StoreError> {
        let column = self.known(name)?.clone();
        let (table, idx) = (self.sql(), column.idx);
        let mut sql = String::new();
        if column.key > 0 {
            sql.push_str(&format!("DROP INDEX {table}_key;\n"));
        }
        if column.indexed {
            sql.push_str(&format!("DROP INDEX {table}_i{idx};\n"));
        }
        sql.push_str(&format!(
            "ALTER TABLE {table} ADD COLUMN made{};
             UPDATE {table} SET made = c{idx};
             ALTER TABLE {table} DROP COLUMN c{idx};
             ALTER TABLE {table} RENAME COLUMN made TO c{idx};\n",
            collation(type_)
        ));
        if column.key > 0 {
            let key: Vec<String> = self.key().iter().map(|column| column.sql()).collect();
            let columns = self.indexed_sql(&key.join(", "));
            sql.push_str(&format!(
                "CREATE UNIQUE INDEX {table}_key ON {table} ({columns});\n"
            ));
        }
        if column.indexed {
            let columns = self.indexed_sql(&format!("c{idx}"));
            sql.push_str(&format!(
                "CREATE INDEX {table}_i{idx} ON {table} ({columns});\n"
            ));
        }
        db.execute_batch(&sql).map_err(failed)
    }
}

/// Returns the collation of a type, in SQL.
fn collation(type_: ColumnType) -> &'static str {
    match type_ {
        ColumnType::Decimal => " COLLATE flowstone_decimal",
        _ => "",
    }
}

fn columns(db: &Connection, id: i64) -> rusqlite::Result<Vec<Column>> {
    let mut sql = db.prepare_cached(
        "SELECT idx, name, type, inferred, key, indexed, definition FROM table_column WHERE table_id = ?1 ORDER BY idx",
    )?;
    let columns = sql.query_map([id], |row| {
        let meta = Meta::read(row.get_ref(6)?.as_str()?);
        let idx = row.get(0)?;
        let options = match meta.options {
            Some(_) => Some(Rc::new(Options::load(db, id, idx)?)),
            None => None,
        };
        Ok(Column {
            idx,
            name: row.get(1)?,
            type_: ColumnType::from_name(&row.get::<_, String>(2)?),
            inferred: row.get(3)?,
            key: row.get(4)?,
            indexed: row.get(5)?,
            meta,
            options,
        })
    })?;
    columns.collect()
}

fn missing(db: &Connection, name: &TableName) -> Result<StoreError, StoreError> {
    let name = match name {
        TableName::Name(name) => name,
        TableName::Id(id) => {
            let message = format!("the table {id} of the reference does not exist");
            return Ok(with_hint(
                rejected("E0620", "not-found", message),
                "it belongs to another project, or was deleted",
            ));
        }
    };
    let mut sql = db
        .prepare("SELECT name FROM table_registry ORDER BY name LIMIT 1000")
        .map_err(failed)?;
    let mut names: Vec<String> = sql
        .query_map([], |row| row.get(0))
        .and_then(Iterator::collect)
        .map_err(failed)?;
    // What is of another namespace does not exist for who asks.
    let asked = Namespace::of_table(name);
    names.retain(|known| Namespace::of_table(known) == asked);
    let shown: String = name.chars().take(MAX_NAME).collect();
    let hint = match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => {
            "there are no tables yet; `:persist {:type :table ...}` or `:op :create` makes one"
                .to_owned()
        }
        None => format!("there are {}", listed(names.iter().map(String::as_str))),
    };
    Ok(with_hint(
        rejected("E0620", "not-found", format!("there is no table `{shown}`")),
        hint,
    ))
}

pub(super) fn check_name(name: &str, what: &str, code: &'static str) -> Result<(), StoreError> {
    let length = name.chars().count();
    let shown: String = name.chars().take(40).collect();
    let problem = if name.trim().is_empty() {
        "is empty".to_owned()
    } else if length > MAX_NAME {
        format!("has {length} characters, and at most {MAX_NAME} are allowed")
    } else if name.chars().any(char::is_control) {
        "contains a control character".to_owned()
    } else {
        return Ok(());
    };
    Err(rejected(
        code,
        "bad-config",
        format!("the {what} name {shown:?} {problem}"),
    ))
}

/// Returns names for an error message, at most the first twelve.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    let names: Vec<&str> = names.collect();
    let mut words: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len() {
        0 => return "none".to_owned(),
        count if count > SHOWN => words.push(format!("and {} more", count - SHOWN)),
        _ => {}
    }
    words.join(", ")
}
