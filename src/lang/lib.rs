//! The language: text in, values out.
//!
//! Pure: this crate knows no time, files, sockets, threads, tokio or runs. Whatever a program wants from
//! the world it asks of a [`vm::Host`], and a step leaves the VM as [`fiber::Exit::Step`].
//! Inside, imports go one way: session → compiler, core → vm → value, and compiler → reader → value.

pub(crate) mod compiler;
pub(crate) mod core;
pub mod diagnostic;
pub mod fiber;
pub mod library;
pub mod reader;
pub mod session;
pub mod suggest;
pub mod value;
pub mod vm;
