//! The facade: Flowstone as a library is its command line with everything plugged in.

#![forbid(unsafe_code)]

mod app;
mod limits;

use std::process::ExitCode;

pub use flowstone_lang::value::heap::CountingAllocator;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    limits::raise();
    flowstone_surfaces::cli::main(&app::Flowstone)
}
