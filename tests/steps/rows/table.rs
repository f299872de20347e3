//! The rows of `tests/coverage/table.tsv`.
