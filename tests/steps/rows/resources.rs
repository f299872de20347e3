//! The rows of `tests/coverage/resources.tsv`.
