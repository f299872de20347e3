//! Options that another command calls differently: what is an unknown option of one is suggested under its name there.

use clap::error::{ContextKind, ContextValue, Error};
use clap::{Command, FromArgMatches as _, Parser as _};

use super::args::Cli;

/// Options, each with its name in other commands.
const SYNONYMS: &[(&str, &str)] = &[("deadline", "timeout")];

/// Parses the command line, or ends the process with a message.
pub fn parse() -> Cli {
    Cli::try_parse()
        .or_else(|_| parse_again())
        .unwrap_or_else(|error| {
            let args: Vec<String> = std::env::args_os()
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect();
            with_suggestion(error, &args).exit()
        })
}

/// Parses the command line with all commands described: help lists them.
fn parse_again() -> Result<Cli, Error> {
    let mut command = Cli::whole();
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| error.format(&mut command))
}

/// Adds the name under which the command has an option that it does not know.
fn with_suggestion(mut error: Error, args: &[String]) -> Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let given = given.trim_start_matches('-');
    let known = SYNONYMS.iter().filter(|(other, _)| *other == given);
    let command = command_of(args);
    let known = known.map(|(_, known)| *known);
    let mut known = known.filter(|known| {
        command
            .get_arguments()
            .any(|it| it.get_long() == Some(known))
    });
    if let Some(known) = known.next() {
        let name = ContextValue::String(format!("--{known}"));
        error.insert(ContextKind::SuggestedArg, name);
    }
    error
}

/// Returns the command that the words name.
fn command_of(args: &[String]) -> Command {
    let mut command = Cli::whole();
    for arg in args.iter().skip(1) {
        if let Some(inner) = command.find_subcommand(arg).cloned() {
            command = inner;
        }
    }
    command
}
