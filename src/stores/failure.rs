//! Refusals that all stores share.

use flowstone_model::ports::StoreError;

/// Refuses an operation that is invalid itself. `kind` is the `:kind` of the error in the flow.
pub(crate) fn rejected(code: &'static str, kind: &'static str, message: String) -> StoreError {
    StoreError::Rejected {
        code,
        kind,
        message,
        hint: None,
    }
}

/// Adds a hint to a refusal.
pub(crate) fn with_hint(error: StoreError, hint: impl Into<String>) -> StoreError {
    match error {
        StoreError::Rejected {
            code,
            kind,
            message,
            ..
        } => StoreError::Rejected {
            code,
            kind,
            message,
            hint: Some(hint.into()),
        },
        other => other,
    }
}

/// Rolls back a transaction whose outcome was recorded elsewhere.
pub(crate) fn rolled_back() -> StoreError {
    StoreError::Internal("the transaction was rolled back".to_owned())
}
