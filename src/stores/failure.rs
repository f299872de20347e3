//! Refusals that all stores share.

use flowstone_model::ports::StoreError;

/// Refuses an operation that is wrong itself. `kind` is what the flow sees under `:kind`.
pub(crate) fn rejected(code: &'static str, kind: &'static str, message: String) -> StoreError {
    StoreError::Rejected {
        code,
        kind,
        message,
        hint: None,
    }
}

/// Adds what to try to a refusal.
pub(crate) fn with_hint(error: StoreError, words: impl Into<String>) -> StoreError {
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
            hint: Some(words.into()),
        },
        other => other,
    }
}

/// Undoes a transaction whose outcome was noted elsewhere.
pub(crate) fn undone() -> StoreError {
    StoreError::Internal("the transaction was undone".to_owned())
}
