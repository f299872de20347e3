//! The rows of `tests/coverage/packaged.tsv`.
