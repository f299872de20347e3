//! Other systems' formats on the engine: each front compiles its format to ordinary flows, and projects the journals of
//! their runs to its own events and answers. A front has no store, no runtime and no list of events of its own.

#![forbid(unsafe_code)]

pub mod graph;
