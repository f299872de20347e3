//! Behaviour trees.

mod check;
mod documents;
mod doors;
mod drivers;
mod naive;
mod project;
mod random;
mod tick;
mod walk;
mod walks;
