//! Deliveries: whether a request from outside arrived before, and what it starts and answers.

use super::rows::{ReceiptRows, Rows};
use super::{admission, answers};
use crate::ids::RunId;
use crate::ports::{Admission, BulkAdmission, Delivered, Delivery, StoreError, WaitsAnswer};

/// Applies a delivery, unless one of its receipts is known. Must run in one transaction.
///
/// # Errors
/// When the store fails.
pub fn deliver<R: Rows + ReceiptRows>(
    rows: &mut R,
    delivery: &Delivery,
) -> Result<Delivered, StoreError> {
    let now_ms = delivery.now_ms;
    for receipt in &delivery.receipts {
        let known = rows.receipt(&receipt.scope, &receipt.key)?;
        if let Some(known) = known.filter(|known| known.until_ms > now_ms) {
            return Ok(Delivered::Known(known));
        }
    }
    let mut answered = Vec::new();
    for completion in &delivery.answers {
        answered.push(answers::complete(rows, completion)?);
    }
    let mut admitted = Vec::new();
    for (run, rules) in &delivery.runs {
        admitted.push(admission::admit(rows, run, rules)?);
    }
    let has_effect = admitted.iter().any(is_admitted) || answered.iter().any(is_taken);
    if has_effect && !delivery.receipts.is_empty() {
        let runs: Vec<RunId> = admitted
            .iter()
            .filter_map(|it| match it {
                Admission::Admitted { run, .. } => Some(run.clone()),
                Admission::Taken { .. } | Admission::WaitsForCaller { .. } => None,
            })
            .collect();
        rows.forget_receipts(now_ms)?;
        for receipt in &delivery.receipts {
            rows.write_receipt(receipt, &runs, now_ms)?;
        }
    }
    Ok(Delivered::Taken {
        answers: answered,
        runs: admitted,
    })
}

/// Works like [`deliver`]. If a run is refused, the caller rolls the transaction back.
///
/// # Errors
/// When the store fails.
pub fn deliver_all<R: Rows + ReceiptRows>(
    rows: &mut R,
    delivery: &Delivery,
) -> Result<BulkAdmission, StoreError> {
    let mut runs = match deliver(rows, delivery)? {
        Delivered::Known(past) => return Ok(BulkAdmission::Known(past)),
        Delivered::Taken { runs, .. } => runs,
    };
    Ok(match runs.iter().position(|run| !is_admitted(run)) {
        None => BulkAdmission::Admitted(runs),
        Some(idx) => BulkAdmission::Refused {
            idx,
            admission: Box::new(runs.swap_remove(idx)),
        },
    })
}

fn is_admitted(admission: &Admission) -> bool {
    matches!(admission, Admission::Admitted { .. })
}

fn is_taken(answer: &WaitsAnswer) -> bool {
    match answer {
        WaitsAnswer::Completed { .. } | WaitsAnswer::Kept | WaitsAnswer::Duplicate => true,
        WaitsAnswer::Refused(_)
        | WaitsAnswer::AlreadyDecided(_)
        | WaitsAnswer::Ambiguous(_)
        | WaitsAnswer::Missing => false,
    }
}
