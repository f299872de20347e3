//! The command line: reads what was typed, and hands it to the command.

mod args;
mod completions;
mod duration;
mod eval;
mod exit;
mod interrupt;
mod output;
mod pretty;
mod program;
mod report;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
pub use exit::Exit;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    output::set_color(cli.color);
    perform(&cli.command).into()
}

fn perform(command: &Command) -> Exit {
    match command {
        Command::Completions(args) => completions::run(args),
        Command::Eval(args) => eval::run(args),
        _ => Exit::Usage,
    }
}
