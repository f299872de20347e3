//! Tests of the language.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod budget;
mod calls;
mod core;
mod diagnostic;
mod embed;
mod expectations;
mod fuzz;
mod host_names;
mod leaks;
mod reader;
mod strings;
mod values;
