//! Tests of the language.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod calls;
mod core;
mod diagnostic;
mod reader;
mod strings;
mod values;
