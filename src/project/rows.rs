//! Records of fronts: rows of tables of the project, each with a key and a definition as JSON text.
//!
//! The tables are ordinary ones, so backups and exports contain them. Tools of agents cannot reach tables whose names begin with
//! `flowstone_`.

use flowstone_engine::codec;
use flowstone_engine::json::items;
use flowstone_engine::ports::{StoreError, Stores};
use flowstone_engine::{Engine, EngineError};
use flowstone_lang::value::Value;
use flowstone_model::table::{
    Cell, Filter, Page, PageStart, RowChoice, RowsQuery, Sort, TableName, TableOp, TableQuery,
    TableTarget, Test, UpdateCell, WriteMode, WriteRows,
};
use serde_json::Value as Json;

/// A table of records, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows(pub &'static str);

const KEY: &str = "key";
const DATA: &str = "data";
/// Number of rows that are read at a time.
const PAGE: usize = 1_000;
/// The kind of a store's refusal of a table that does not exist.
pub const NOT_FOUND: &str = "not-found";

impl Rows {
    fn target(self) -> TableTarget {
        TableName::Name(self.0.to_owned()).into()
    }

    /// Returns all definitions, sorted by key.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(self, engine: &Engine) -> Result<Vec<Json>, EngineError> {
        self.list_in(engine.stores()).await
    }

    /// As [`Rows::list`], without an engine.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_in(self, stores: &Stores) -> Result<Vec<Json>, EngineError> {
        let mut all = Vec::new();
        loop {
            let found = self.rows(stores, Filter::ALL, all.len()).await?;
            let is_last = found.len() < PAGE;
            all.extend(found);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Returns the definitions whose keys begin like this, sorted by key.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_under(self, engine: &Engine, prefix: &str) -> Result<Vec<Json>, EngineError> {
        let filter = Filter::Test {
            column: KEY.to_owned(),
            test: Test::StartsWith,
            operands: vec![Cell::Text(prefix.to_owned())],
        };
        let mut all = Vec::new();
        loop {
            let found = self
                .rows(engine.stores(), filter.clone(), all.len())
                .await?;
            let is_last = found.len() < PAGE;
            all.extend(found);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Returns the definition under a key.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn get(self, engine: &Engine, key: &str) -> Result<Option<Json>, EngineError> {
        self.get_in(engine.stores(), key).await
    }

    /// As [`Rows::get`], without an engine.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn get_in(self, stores: &Stores, key: &str) -> Result<Option<Json>, EngineError> {
        let filter = Filter::Test {
            column: KEY.to_owned(),
            test: Test::Equal,
            operands: vec![Cell::Text(key.to_owned())],
        };
        Ok(self.rows(stores, filter, 0).await?.into_iter().next())
    }

    /// Adds a definition. Returns false if the key is taken.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn insert(
        self,
        engine: &Engine,
        key: &str,
        data: &Json,
    ) -> Result<bool, EngineError> {
        match self.write(engine, key, data, WriteMode::Insert).await {
            Ok(()) => Ok(true),
            Err(StoreError::Rejected { code, .. }) if code == StoreError::ROW_KEY => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores a definition in place of the one under its key.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put(self, engine: &Engine, key: &str, data: &Json) -> Result<(), EngineError> {
        Ok(self.write(engine, key, data, WriteMode::Upsert).await?)
    }

    /// Deletes a definition. Returns false if the key has no definition.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn delete(self, engine: &Engine, key: &str) -> Result<bool, EngineError> {
        if self.get(engine, key).await?.is_none() {
            return Ok(false);
        }
        let op = TableOp::Delete {
            table: self.target(),
            rows: RowChoice::Key(vec![(KEY.to_owned(), Cell::Text(key.to_owned()))]),
        };
        engine.stores().tables.apply(op, engine.now_ms()).await?;
        Ok(true)
    }

    /// Deletes a definition if it is still this one.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn delete_exact(
        self,
        engine: &Engine,
        key: &str,
        data: &Json,
    ) -> Result<(), EngineError> {
        self.delete_where(engine, exactly(key, data)).await
    }

    /// Stores a definition in place of another, if that is still the one under the key. Tells whether it was: of several
    /// callers that replace the same definition, one succeeds.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn replace_exact(
        self,
        engine: &Engine,
        key: &str,
        (old, new): (&Json, &Json),
    ) -> Result<bool, EngineError> {
        let op = self.replacing(key, (old, new));
        match engine.stores().tables.apply(op, engine.now_ms()).await {
            Ok(_) => Ok(true),
            Err(StoreError::Rejected { kind, .. }) if kind == NOT_FOUND => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the definitions whose keys begin like this.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn delete_under(self, engine: &Engine, prefix: &str) -> Result<(), EngineError> {
        let filter = Filter::Test {
            column: KEY.to_owned(),
            test: Test::StartsWith,
            operands: vec![Cell::Text(prefix.to_owned())],
        };
        self.delete_where(engine, filter).await
    }

    async fn delete_where(self, engine: &Engine, filter: Filter) -> Result<(), EngineError> {
        let op = TableOp::Delete {
            table: self.target(),
            rows: RowChoice::Where(filter),
        };
        match engine.stores().tables.apply(op, engine.now_ms()).await {
            Ok(_) => Ok(()),
            // The table does not exist yet, so nothing was stored.
            Err(StoreError::Rejected { kind, .. }) if kind == NOT_FOUND => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn write(
        self,
        engine: &Engine,
        key: &str,
        data: &Json,
        mode: WriteMode,
    ) -> Result<(), StoreError> {
        let op = self.writing(key, data, mode);
        engine.stores().tables.apply(op, engine.now_ms()).await?;
        Ok(())
    }

    /// Returns the operation that stores a definition in place of the one under its key.
    pub fn putting(self, key: &str, data: &Json) -> TableOp {
        self.writing(key, data, WriteMode::Upsert)
    }

    /// Returns the operation that stores a definition in place of another, and that the store refuses as `not-found` if that is no longer
    /// the one under the key.
    pub fn replacing(self, key: &str, (old, new): (&Json, &Json)) -> TableOp {
        TableOp::UpdateCell(UpdateCell {
            table: self.target(),
            row: RowChoice::Where(exactly(key, old)),
            column: DATA.to_owned(),
            value: Cell::Text(new.to_string()),
        })
    }

    fn writing(self, key: &str, data: &Json, mode: WriteMode) -> TableOp {
        let row = vec![
            (KEY.to_owned(), Cell::Text(key.to_owned())),
            (DATA.to_owned(), Cell::Text(data.to_string())),
        ];
        TableOp::Write(WriteRows {
            table: self.target(),
            rows: vec![row],
            mode,
            key_fields: vec![KEY.to_owned()],
            index_fields: Vec::new(),
        })
    }

    async fn rows(
        self,
        stores: &Stores,
        filter: Filter,
        offset: usize,
    ) -> Result<Vec<Json>, EngineError> {
        let query = TableQuery::Rows(RowsQuery {
            table: self.target(),
            select: vec![DATA.to_owned()],
            filter,
            sort: vec![Sort {
                column: KEY.to_owned(),
                descending: false,
            }],
            page: Page {
                limit: PAGE,
                from: PageStart::Offset(offset),
                total: false,
            },
        });
        let text = match stores.tables.query(query).await {
            Ok(text) => text,
            // The table does not exist yet, so nothing was stored.
            Err(StoreError::Rejected { kind, .. }) if kind == NOT_FOUND => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let page = codec::decode(&text)?;
        let rows = page.get("rows").and_then(items).unwrap_or_default();
        Ok(rows.iter().filter_map(data_of).collect())
    }
}

/// Returns the filter for a definition under a key.
fn exactly(key: &str, data: &Json) -> Filter {
    let is = |column: &str, text: String| Filter::Test {
        column: column.to_owned(),
        test: Test::Equal,
        operands: vec![Cell::Text(text)],
    };
    Filter::And(vec![is(KEY, key.to_owned()), is(DATA, data.to_string())])
}

fn data_of(row: &Value) -> Option<Json> {
    let text = row.get(DATA)?.as_str()?;
    serde_json::from_str(text).ok()
}
