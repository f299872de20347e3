//! `flowstone completions SHELL`.

use super::args::Completions;
use super::complete::script;
use super::exit::Exit;
use super::output;

/// Prints the script.
pub fn run(args: &Completions) -> Exit {
    match script(&args.shell.to_string()) {
        Some(script) => {
            output::whole(&String::from_utf8_lossy(&script));
            Exit::Completed
        }
        None => Exit::Failed,
    }
}
