//! The rows of `tests/coverage/kv.tsv`.
