//! Deliveries from outside: they take effect once, however often they are sent.
//!
//! A receipt records what a caller sent and which runs it started. It is checked and written in the transaction that
//! starts the runs, so neither a crash nor a second request in between can start them again.

use super::{Admission, Completion, NewRun, StartRules, WaitsAnswer};
use crate::ids::RunId;

/// A request from outside that answers waits and starts runs, in one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Receipts of the delivery. If one of them is known, nothing is done.
    pub receipts: Vec<NewReceipt>,
    /// Answers to waits, applied before runs are started.
    pub answers: Vec<Completion>,
    pub runs: Vec<(NewRun, StartRules)>,
    pub now_ms: i64,
}

/// A receipt to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReceipt {
    /// The scope in which a key is unique: an interface, or a caller and an address.
    pub scope: String,
    pub key: String,
    /// The digest of what was sent.
    pub digest: String,
    /// The receipt is forgotten at this time, in milliseconds since 1970.
    pub until_ms: i64,
}

/// A receipt of an earlier delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastDelivery {
    pub digest: String,
    /// The runs that the delivery started, in order.
    pub runs: Vec<RunId>,
    pub at_ms: i64,
    pub until_ms: i64,
}

/// The outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// The delivery was accepted: one outcome for each answer and each run, in order. If nothing was started, answered
    /// or kept, no receipt was written.
    Taken {
        answers: Vec<WaitsAnswer>,
        runs: Vec<Admission>,
    },
    /// The delivery arrived before; nothing was changed.
    Known(PastDelivery),
}
