//! The language: text in, values out.
//!
//! A [`Session`] is one world of namespaces. It evaluates text, calls functions, and takes functions written in Rust:
//!
//! ```
//! use flowstone_lang::{Function, Session};
//!
//! let session = Session::new();
//! session.add(Function::new("app/greet", |name: String| format!("Hello, {name}!")));
//! let value = session.evaluate(r#"(map app/greet ["Ada" "Alan"])"#)?;
//! assert_eq!(session.show(&value), r#"("Hello, Ada!" "Hello, Alan!")"#);
//! # Ok::<(), flowstone_lang::Failure>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | evaluate text, call a function by name | [`Session::evaluate`], [`Session::evaluate_in`], [`Session::call`] |
//! | add functions written in Rust | [`Session::add`] with a [`Function`]; [`Session::register`] with rows of [`value::Native`] |
//! | pass Rust data in and out | [`to_value`], [`from_value`], [`Session::evaluate_as`], [`Data`] |
//! | limit instructions and memory, interrupt from another thread, capture what is printed | [`Sandbox`] |
//! | answer requests that leave the language, without blocking the thread | [`fiber::Fiber`], [`vm::Host::suspend`] |
//! | read data, and run nothing | [`reader::read_data`] |
//! | show an error with its place, or as data | [`Failure`], [`diagnostic::Diagnostic`] |
//!
//! Pure: this crate knows no time, files, sockets, threads, tokio or runs. Whatever a program wants from
//! the world it asks of a [`vm::Host`], and a step leaves the VM as [`fiber::Exit::Step`].
//! There are no globals: sessions do not see one another's namespaces, and as many of them as wanted may
//! live on one thread. Values stay on their thread; what crosses is text, or data through serde.
//! Inside, imports go one way: session → compiler, core → vm → value, and compiler → reader → value.

#![warn(missing_docs)]

pub(crate) mod compiler;
pub(crate) mod core;
pub mod data;
pub mod diagnostic;
#[cfg(feature = "edn-rs")]
pub mod edn_rs;
pub mod embed;
pub mod fiber;
mod instead;
pub mod library;
pub mod reader;
pub mod session;
pub mod suggest;
pub mod value;
pub mod visible;
pub mod vm;

pub use core::time::check_date_pattern;
pub use data::{DataError, from_value, to_value};
pub use embed::{Data, Failure, Function, Interrupt, Output, Rest, Sandbox};
pub use session::Session;
pub use value::Value;
