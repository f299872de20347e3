//! Receipts of deliveries from outside, as rows. The rules are [`flowstone_model::rules::deliveries`].

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    BulkAdmission, Delivered, Delivery, NewReceipt, PastDelivery, StoreError,
};
use flowstone_model::rules::deliveries;
use flowstone_model::rules::rows::ReceiptRows;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::failed;
use super::owner::Owner;
use super::queue::{Sql as Rows, execute};

/// The tables of this part: receipts, and the mark of signals that may not decide for a person.
pub(super) const SCHEMA: &str = "
CREATE TABLE receipt (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    runs TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX receipt_until ON receipt (until_ms);
ALTER TABLE inbox ADD COLUMN unattended INTEGER NOT NULL DEFAULT 0;
";

/// Maximum number of receipts that are removed at once.
const FORGOTTEN: i64 = 100;

pub(super) fn deliver(
    db: &Connection,
    owner: &Owner,
    delivery: &Delivery,
) -> Result<Delivered, StoreError> {
    deliveries::deliver(&mut Rows::of(db, owner), delivery)
}

pub(super) fn deliver_all(
    db: &Connection,
    owner: &Owner,
    delivery: &Delivery,
) -> Result<BulkAdmission, StoreError> {
    deliveries::deliver_all(&mut Rows::of(db, owner), delivery)
}

impl ReceiptRows for Rows<'_> {
    fn receipt(&mut self, scope: &str, key: &str) -> Result<Option<PastDelivery>, StoreError> {
        self.db
            .prepare_cached(
                "SELECT digest, runs, at_ms, until_ms FROM receipt WHERE scope = ?1 AND key = ?2",
            )
            .and_then(|mut sql| {
                sql.query_row([scope, key], |row| {
                    let runs: String = row.get(1)?;
                    Ok(PastDelivery {
                        digest: row.get(0)?,
                        runs: runs.lines().map(RunId::from_text).collect(),
                        at_ms: row.get(2)?,
                        until_ms: row.get(3)?,
                    })
                })
                .optional()
            })
            .map_err(failed)
    }

    fn write_receipt(
        &mut self,
        receipt: &NewReceipt,
        runs: &[RunId],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let runs: Vec<&str> = runs.iter().map(RunId::as_str).collect();
        execute(
            self.db,
            "INSERT OR REPLACE INTO receipt (scope, key, digest, runs, at_ms, until_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                receipt.scope,
                receipt.key,
                receipt.digest,
                runs.join("\n"),
                now_ms,
                receipt.until_ms
            ],
        )
    }

    fn forget_receipts(&mut self, now_ms: i64) -> Result<(), StoreError> {
        execute(
            self.db,
            "DELETE FROM receipt WHERE (scope, key) IN
                 (SELECT scope, key FROM receipt INDEXED BY receipt_until WHERE until_ms <= ?1
                  ORDER BY until_ms LIMIT ?2)",
            params![now_ms, FORGOTTEN],
        )
    }
}
