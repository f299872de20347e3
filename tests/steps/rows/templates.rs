//! The rows of `tests/coverage/templates.tsv`.
