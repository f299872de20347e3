//! What may be typed after `serve`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{Home, Permits, RunLimits};

/// Keeps runs going: schedules, timers, answered waits, interrupted runs
///
/// Whatever can go on in the project is driven, whichever command started it; the commands need not wait for each
/// other. Ctrl-C, or SIGTERM, ends it in good order: effects under way are finished, and every run goes on later from its
/// last finished step.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone serve
  flowstone serve --threads 2 --json >> worker.log
  flowstone serve --until-idle")]
pub struct Serve {
    /// How many threads drive runs [default: one for each core]
    #[arg(long, value_name = "N", value_parser = |text: &str| count(text, THREADS_MAX))]
    pub threads: Option<NonZeroUsize>,

    /// How many runs a thread drives at the same time, at most
    #[arg(long, value_name = "N", default_value = "256", value_parser = |text: &str| count(text, DRIVES_MAX))]
    pub drives: NonZeroUsize,

    /// A flow file, or a folder of them, whose schedules start runs; may be repeated [default: flows/ in the project]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub flows: Vec<PathBuf>,

    /// End when no run can go on now
    #[arg(long, visible_alias = "once")]
    pub until_idle: bool,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,

    #[command(flatten)]
    pub home: Home,

    /// Tell what happens as lines of JSON
    #[arg(long)]
    pub json: bool,

    /// Tell only what goes wrong
    #[arg(long, short)]
    pub quiet: bool,
}

/// More threads do not help on any machine.
const THREADS_MAX: usize = 1_000;
/// Each takes two mappings of memory, of which a process has some 65,000.
const DRIVES_MAX: usize = 30_000;

fn count(text: &str, most: usize) -> Result<NonZeroUsize, String> {
    let count = text.parse().ok().filter(|count| *count <= most);
    count
        .and_then(NonZeroUsize::new)
        .ok_or_else(|| format!("expected a number from 1 to {most}"))
}
