//! Starts from outside: what arrives once, however often it is sent.
//!
//! A receipt remembers what a caller sent and which runs it started. It is checked and written in the transaction that
//! starts the runs, so neither a crash nor a second request between the two can start them again.

use super::{Admission, Completion, NewRun, StartRules, WaitsAnswer};
use crate::ids::RunId;

/// Something from outside that answers waits and starts runs, in one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// If one of them is known, nothing happens.
    pub receipts: Vec<NewReceipt>,
    /// Answers to waits, taken before runs are started.
    pub answers: Vec<Completion>,
    pub runs: Vec<(NewRun, StartRules)>,
    pub now_ms: i64,
}

/// A receipt to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReceipt {
    /// Who may not send the same twice: an interface, or a caller and an address.
    pub scope: String,
    pub key: String,
    /// Of what was sent.
    pub digest: String,
    /// Afterwards the receipt is forgotten.
    pub until_ms: i64,
}

/// A receipt of an earlier delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastDelivery {
    pub digest: String,
    /// The runs that it started, in order.
    pub runs: Vec<RunId>,
    pub at_ms: i64,
    pub until_ms: i64,
}

/// The outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// One outcome for each answer and each run, in order. If nothing was started, answered or kept, no receipt was
    /// written.
    Taken {
        answers: Vec<WaitsAnswer>,
        runs: Vec<Admission>,
    },
    /// It came before; nothing was changed.
    Known(PastDelivery),
}
