//! For programs that hold the language inside: functions written in Rust, limits, captured output, errors that
//! a `main` can return.
//!
//! What is here is built on [`Session`](crate::Session), [`Host`](crate::vm::Host) and
//! [`Value`](crate::Value) alone, so that an embedder can replace any of it.

mod convert;
mod failure;
mod function;
mod sandbox;

pub use convert::{Data, FromValue, IntoResult, IntoSignal, IntoValue, Mismatch, Param, Rest};
pub use failure::Failure;
pub use function::{Function, NativeFn, Plain, WithVm};
pub use sandbox::{Interrupt, Output, Sandbox};
