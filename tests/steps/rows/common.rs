//! The rows of `tests/coverage/common.tsv`.
