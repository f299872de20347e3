//! The rows of `tests/coverage/http.tsv`.
