//! The runner binary.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use flowstone::CountingAllocator;

/// Counts what each run allocates, for its memory limit.
#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    flowstone::main()
}
