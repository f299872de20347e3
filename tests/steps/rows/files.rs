//! The rows of `tests/coverage/files.tsv`.
