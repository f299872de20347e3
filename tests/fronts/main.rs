//! Tests of the fronts: formats of other systems, as values.

mod graph;
