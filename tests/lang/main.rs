//! Tests of the language.

mod reader;
mod values;
