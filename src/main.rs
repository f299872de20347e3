//! The runner binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    flowstone::main()
}
