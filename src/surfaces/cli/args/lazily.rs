//! Options of a command that are described only if the command is called: there are hundreds of others.

use std::ops::Deref;

use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The arguments of a command. Its options and its help exist once the [`Command`] is built, or used.
#[derive(Debug)]
pub struct Lazily<T>(T);

impl<T> Deref for Lazily<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Lazily<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Lazily<T>, Error> {
        T::from_arg_matches(matches).map(Lazily)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Lazily<T>, Error> {
        T::from_arg_matches_mut(matches).map(Lazily)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Lazily<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}
