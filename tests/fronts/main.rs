//! The fronts: formats of other systems on the engine.

mod graph;
mod tree;
