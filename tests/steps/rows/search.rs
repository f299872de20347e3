//! The rows of `tests/coverage/search.tsv`.
