//! Formats of other systems on the engine. A front reads its own format, makes an ordinary flow of it, and shows the
//! journal of the runs in its own shape. It has no store and executes nothing itself.

#![forbid(unsafe_code)]

pub mod agents;
pub mod graph;
pub mod rows;
pub mod tree;
