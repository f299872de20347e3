//! Tests of the language.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use flowstone_lang::value::heap::CountingAllocator;

mod budget;
mod calls;
mod core;
mod diagnostic;
mod drops;
mod expectations;
mod fuzz;
mod host_names;
mod hostile;
mod layout;
mod leaks;
mod paid;
mod reader;
mod sharing;
mod strings;
mod values;

/// Needed by the memory limits.
#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;
