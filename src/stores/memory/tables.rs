//! Tables: in a SQLite database in memory, which is committed with the rows.

use flowstone_model::ports::{PortFuture, StoreError, Tables};
use flowstone_model::table::csv::{ExportCsv, ExportedCsv, StageCsv, StagedCsv};
use flowstone_model::table::{TableOp, TableQuery};

use super::{News, Session, Tx, unsupported};
use crate::sqlite::table;

impl Tables for Session {
    fn names(&self) -> PortFuture<'_, Vec<String>> {
        self.relate(table::names)
    }

    fn query(&self, query: TableQuery) -> PortFuture<'_, String> {
        self.relate(|db| table::query(db, &query))
    }

    fn apply(&self, op: TableOp, now_ms: i64) -> PortFuture<'_, String> {
        self.write(News::Some, |tx| apply(tx, &op, now_ms))
    }

    fn stage(&self, _ask: StageCsv) -> PortFuture<'_, StagedCsv> {
        Box::pin(std::future::ready(Err(unsupported("import CSV files"))))
    }

    fn export(&self, _ask: ExportCsv) -> PortFuture<'_, ExportedCsv> {
        Box::pin(std::future::ready(Err(unsupported("export CSV files"))))
    }
}

/// Makes a change and returns its result as EDN text.
pub(super) fn apply(tx: &mut Tx<'_>, op: &TableOp, now_ms: i64) -> Result<String, StoreError> {
    table::apply(tx.relations()?, op, now_ms)
}
