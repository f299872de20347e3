//! The rows of `tests/coverage/notify.tsv`.
