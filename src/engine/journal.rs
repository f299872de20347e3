//! A run's journal as replay reads it: its requests and their outcomes, by path.

mod history;

pub(crate) use history::{
    CANCEL, CHANGED, COMPENSATE, Checks, FORK, History, ON_CANCEL, Recorded, changed_path,
    nested_prefix, retry_compensation,
};
