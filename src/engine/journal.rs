//! A run's journal as replay reads it: what it asked for and what came back, by path.

mod history;

pub(crate) use history::{
    CANCEL, COMPENSATE, Checks, FORK, History, ON_CANCEL, Recorded, inside_of, undo_again,
};
