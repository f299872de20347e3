//! Arguments of `flowstone schedules`.

use clap::{Args, Subcommand};

use super::{Home, Permits, RunLimits, Show};

/// Lists schedules, and starts them out of turn
#[derive(Debug, Args)]
pub struct Schedules {
    #[command(subcommand)]
    pub command: SchedulesCommand,
}

#[derive(Debug, Subcommand)]
pub enum SchedulesCommand {
    List(SchedulesList),
    Run(Box<SchedulesRun>),
}

/// Lists the schedules that a worker knows, with their next and last ticks
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone schedules list
  flowstone schedules list --json")]
pub struct SchedulesList {
    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Starts a schedule's run now, and executes it to its result
///
/// The run gets the schedule's input. Its next tick does not change.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone schedules run daily-report nightly")]
pub struct SchedulesRun {
    /// The flow's slug
    pub flow: String,

    /// The schedule's id
    pub id: String,

    /// Only add the run, and print its id: `flowstone serve` executes it
    #[arg(long)]
    pub detach: bool,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,

    #[command(flatten)]
    pub home: Home,

    #[command(flatten)]
    pub show: Show,
}
