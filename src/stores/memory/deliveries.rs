//! Receipts of deliveries from outside, in memory.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{NewReceipt, PastDelivery, StoreError};
use flowstone_model::rules::rows::ReceiptRows;

use super::Tx;

impl ReceiptRows for Tx<'_> {
    fn receipt(&mut self, scope: &str, key: &str) -> Result<Option<PastDelivery>, StoreError> {
        let place = (scope.to_owned(), key.to_owned());
        Ok(self.state.receipts.get(&place).cloned())
    }

    fn write_receipt(
        &mut self,
        receipt: &NewReceipt,
        runs: &[RunId],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let past = PastDelivery {
            digest: receipt.digest.clone(),
            runs: runs.to_vec(),
            at_ms: now_ms,
            until_ms: receipt.until_ms,
        };
        let place = (receipt.scope.clone(), receipt.key.clone());
        self.state.receipts.insert(place, past);
        Ok(())
    }

    fn forget_receipts(&mut self, now_ms: i64) -> Result<(), StoreError> {
        let receipts = self.state.receipts.iter();
        let over = receipts.filter(|(_, past)| past.until_ms <= now_ms);
        let over: Vec<(String, String)> = over.map(|(place, _)| place.clone()).collect();
        for place in over {
            self.state.receipts.remove(&place);
        }
        Ok(())
    }
}
