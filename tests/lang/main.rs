//! Tests of the language.

mod values;
