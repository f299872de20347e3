//! The rows of `tests/coverage/function.tsv`.
