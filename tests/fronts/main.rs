//! The fronts: formats of other systems on the engine.

mod graph;
mod json_text;
mod kit;
mod kit_agent;
mod kit_tools;
mod kit_triggers;
mod tree;
