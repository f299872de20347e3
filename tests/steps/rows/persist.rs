//! The rows of `tests/coverage/persist.tsv`.
