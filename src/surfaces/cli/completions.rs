//! `flowstone completions SHELL`.

use std::io::{self, Write};

use super::args::{Cli, Completions};
use super::exit::Exit;

/// Prints the script.
pub fn run(args: &Completions) -> Exit {
    let mut script = Vec::new();
    let mut command = Cli::whole();
    clap_complete::generate(args.shell, &mut command, "flowstone", &mut script);
    match io::stdout().write_all(&script) {
        Ok(()) => Exit::Completed,
        Err(_) => Exit::Failed,
    }
}
