//! Options of a command that are described only if the command is called: there are hundreds of others.

use std::cell::Cell;
use std::ops::Deref;

use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches};

thread_local! {
    /// Whether options are described although their commands are not called.
    static IS_WHOLE: Cell<bool> = const { Cell::new(false) };
}

/// Returns what `describe` makes of commands with all their options: help lists commands, and completions contain
/// everything.
pub fn at_once<T>(describe: impl FnOnce() -> T) -> T {
    let before = IS_WHOLE.replace(true);
    let described = describe();
    IS_WHOLE.set(before);
    described
}

fn deferred(command: Command, describe: fn(Command) -> Command) -> Command {
    match IS_WHOLE.get() {
        true => describe(command),
        false => command.defer(describe),
    }
}

/// The arguments of a command. Outside of [`at_once`], its options and its help exist once the command is called.
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
        deferred(command, T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        deferred(command, T::augment_args_for_update)
    }
}
