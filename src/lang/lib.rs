//! The language: text in, values out.
//!
//! A [`Session`] is one world of namespaces. It evaluates text and calls functions:
//!
//! ```
//! use flowstone_lang::Session;
//!
//! let session = Session::new();
//! let value = session.evaluate("(map inc [1 2])")?;
//! assert_eq!(session.show(&value), "(2 3)");
//! # Ok::<(), flowstone_lang::Failure>(())
//! ```
//!
//! Programs that embed the language use the crate `flowstone-embed`: typed functions and data through serde.
//!
//! This crate is pure: it uses no time, files, sockets, threads, tokio or runs. A program reaches the world only
//! through a [`vm::Host`], and a step leaves the VM as [`fiber::Exit::Step`]. There are no globals: sessions do not see
//! each other's namespaces, and any number of them may live on one thread. Values stay on their thread; only text
//! crosses. Inside, imports go one way: session → compiler, core → vm → value, and compiler → reader → value.

#![warn(missing_docs, unreachable_pub)]

pub(crate) mod compiler;
pub(crate) mod core;
pub mod diagnostic;
mod failure;
pub mod fiber;
mod instead;
pub mod library;
pub mod reader;
mod sandbox;
pub mod session;
pub mod suggest;
pub mod syntax;
pub mod value;
pub mod visible;
pub mod vm;

pub use core::time::check_date_pattern;
pub use failure::Failure;
pub use sandbox::{Interrupt, Output, Sandbox};
pub use session::Session;
pub use value::Value;
