//! The rows of `tests/coverage/sleep.tsv`.
