//! Tests of the language.

mod calls;
mod diagnostic;
mod core;
mod reader;
mod strings;
mod values;
