//! Tests of the language.

mod calls;
mod diagnostic;
mod reader;
mod strings;
mod values;
