//! Formats of other systems on the engine. A front reads its own format, makes an ordinary flow of it, and shows the
//! journal of the runs in its own shape. It has no store and executes nothing itself.

#![forbid(unsafe_code)]

mod address;
pub mod graph;
pub mod tree;
