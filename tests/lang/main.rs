//! Tests of the language.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod calls;
mod diagnostic;
mod core;
mod reader;
mod strings;
mod values;
