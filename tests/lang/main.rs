//! Tests of the language.

mod calls;
mod reader;
mod strings;
mod values;
