//! Behaviour trees.

mod project;
mod walk;
