//! `flowstone runs`: its commands and their options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use flowstone_engine::ports::{Clock, RunOrder, RunStatus, SystemClock};

use super::{Home, Permits, RunLimits, Show};
use crate::cli::runs::{fork, replay, verify};

/// Lists, shows, moves, resumes and cancels runs
#[derive(Debug, Args)]
pub struct Runs {
    #[command(subcommand)]
    pub command: RunsCommand,
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    Cancel(RunsCancel),
    Diff(RunsDiff),
    Events(RunsEvents),
    Export(RunsExport),
    Fork(fork::RunsFork),
    Gc(Gc),
    Import(RunsImport),
    List(RunsList),
    Replay(replay::RunsReplay),
    Resume(RunsResume),
    Show(RunsShow),
    Verify(verify::RunsVerify),
    Watch(RunsWatch),
}

/// Ends a run that is not finished
///
/// Its `finally` blocks run, then what `flow/on-cancel` and `flow/compensate` registered.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs cancel r3 --reason 'wrong month'
  flowstone runs cancel r3 --force")]
pub struct RunsCancel {
    /// The run
    pub id: String,

    /// Why; kept with the run
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// End it at once: nothing of its flow runs any more
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Writes a run to a file that holds all it needs
///
/// The file has the flow's source, the input, the journal, the result and the blobs that they name; not the tokens of
/// waits. A run that is under way is written as far as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs export r3 run.edn
  flowstone runs export r3 - | ssh other flowstone runs import -")]
pub struct RunsExport {
    /// The run
    pub id: String,

    /// The file, or `-` for standard output
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// With the runs that it called
    #[arg(long)]
    pub children: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object about the file
    #[arg(long)]
    pub json: bool,
}

/// Removes the journals of runs that have been over for long
///
/// A finished run keeps its row, input and result; its journal goes after 30 days, or what `:retention` in
/// flowstone.edn says, and with it whatever only the journal referred to. Runs that are not over are never touched.
/// A worker does this once a day by itself, and so does `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone gc --dry-run
  flowstone gc --older-than 7d --keep-last 20
  flowstone gc --max-size 2GB --compact")]
pub struct Gc {
    /// Journals of runs that have been over for this long, such as 12h or 30d
    #[arg(long, value_name = "DURATION", value_parser = crate::cli::duration::parse)]
    pub older_than: Option<Duration>,

    /// Keep the newest journals of each flow, however old
    #[arg(long, value_name = "N")]
    pub keep_last: Option<usize>,

    /// While the database holds more than this, such as 500MB, also remove the oldest journals that are younger
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,

    /// Only say what would go
    #[arg(long)]
    pub dry_run: bool,

    /// Give the space back to the system: writes the file anew
    #[arg(long)]
    pub compact: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Adds a run from a file that `runs export` wrote
///
/// An imported run that is not over is held: it stays as it is until you run `runs resume`, because the original may
/// still be running where it comes from.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs import run.edn
  flowstone runs import --new-id run.edn")]
pub struct RunsImport {
    /// The file, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Give the run another id; only for runs that are over
    #[arg(long)]
    pub new_id: bool,

    /// The secret inputs of the run, which exports leave out: JSON or EDN, `@file`, or `-`
    #[arg(long, value_name = "VALUES")]
    pub secrets: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows what differs between two runs
///
/// Flows, inputs, steps by their paths, and ends are compared; times, random numbers and log lines do not count.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs diff r3 r4
  flowstone runs diff r3 r4 --all
  flowstone runs diff r3 r4 --json

Exit codes: 0 nothing differs, 1 something does.")]
pub struct RunsDiff {
    /// The first run
    pub a: String,

    /// The second run
    pub b: String,

    /// Also list the steps that are the same
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the journal of a run, an event a line
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs events r3
  flowstone runs events r3 --follow --json | jq .kind
  flowstone runs events r3 --after 120")]
pub struct RunsEvents {
    /// The run
    pub id: String,

    /// Go on until the run is over
    #[arg(long, short)]
    pub follow: bool,

    /// Only events after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub after: i64,

    #[command(flatten)]
    pub home: Home,

    /// Print each event as one JSON object on a line of its own, with all it carries
    #[arg(long)]
    pub json: bool,
}

/// Lists runs, the newest first
///
/// A moment is a duration back from now, such as 2h, or an instant, such as 2026-01-31 or 2026-01-31T09:30:00Z.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs list
  flowstone runs list --status failed --status timed-out --since 1d
  flowstone runs list --flow invoice --text 'no such customer'
  flowstone runs list --limit 20 --before ID
  flowstone runs list --status waiting --json")]
pub struct RunsList {
    /// Only runs of this flow
    #[arg(long, value_name = "SLUG")]
    pub flow: Option<String>,

    /// Only runs with this status: queued, running, waiting, failed-compensating, completed, failed,
    /// cancelled, terminated, timed-out; may be repeated, or several with commas
    #[arg(long, value_name = "STATUS", value_parser = status, value_delimiter = ',')]
    pub status: Vec<Status>,

    /// Only runs that were created at this moment or later
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    pub since: Option<i64>,

    /// Only runs that were created before this moment
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    pub until: Option<i64>,

    /// Only runs with this key of `:concurrency`
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// Only runs with this text in their id, flow, key, input, result or error
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,

    /// Only runs that this started: manual, schedule, schedule:ID, call, fork, import
    #[arg(long, value_name = "WHAT")]
    pub started_by: Option<String>,

    /// Only runs that this run called
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,

    /// The order: newest, oldest or changed
    #[arg(long, value_name = "ORDER", value_parser = order, default_value = "newest")]
    pub sort: RunOrder,

    /// Only runs that come after this one in the order: the next page
    #[arg(long, value_name = "ID")]
    pub before: Option<String>,

    /// At most this many; 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// With --json: also input, result and error of each run
    #[arg(long, requires = "json")]
    pub full: bool,
}

/// Goes on with a run that was interrupted, or whose wait is over
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs resume r3
  flowstone runs resume r3 --flow flows/orders.edn
  flowstone runs resume --all")]
pub struct RunsResume {
    /// The run
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub id: Option<String>,

    /// Every run that is not finished
    #[arg(long)]
    pub all: bool,

    /// Go on with this edited flow, if the run has done nothing that the flow does not ask for
    #[arg(long, value_name = "FILE", requires = "id", value_hint = ValueHint::FilePath)]
    pub flow: Option<PathBuf>,

    /// The secret inputs of an imported run: JSON or EDN, `@file`, or `-`
    #[arg(long, value_name = "VALUES", requires = "id")]
    pub secrets: Option<String>,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,

    #[command(flatten)]
    pub home: Home,

    #[command(flatten)]
    pub show: Show,
}

/// Shows one run: what it is at, and its steps with their times, attempts, waits and results
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs show r3
  flowstone runs show r3 --step fetch#2
  flowstone runs show r3 --full
  flowstone runs show r3 --json")]
pub struct RunsShow {
    /// The run
    pub id: String,

    /// Only this step, with its whole request and result
    #[arg(long, value_name = "PATH")]
    pub step: Option<String>,

    /// Requests and results of all steps, not only their beginnings
    #[arg(long)]
    pub full: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows runs as they go on
///
/// Without an id, all runs that are not over; with one, the steps of that run, until it is over. Ends with q or Ctrl-C.
/// Where lines cannot be drawn again, each change is a line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs watch
  flowstone runs watch r3")]
pub struct RunsWatch {
    /// The run
    pub id: Option<String>,

    /// At most this many runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,

    #[command(flatten)]
    pub home: Home,
}

/// A status as a list shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Stored(RunStatus),
    /// Running by its row, and no process executes it.
    Interrupted,
}

/// What a list calls runs that no process executes although they are neither over nor waiting.
pub const INTERRUPTED: &str = "interrupted";

/// What a list calls runs that processes ended on.
pub const QUARANTINED: &str = "quarantined";

fn status(name: &str) -> Result<Status, String> {
    let stored = RunStatus::from_name(name).map(Status::Stored);
    let found = stored.or_else(|| (name == INTERRUPTED).then_some(Status::Interrupted));
    found.ok_or_else(|| {
        let names = RunStatus::NAMES.iter().map(|(_, name)| *name);
        let names: Vec<&str> = names.chain([INTERRUPTED]).collect();
        format!("one of {}", names.join(", "))
    })
}

fn order(name: &str) -> Result<RunOrder, String> {
    RunOrder::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = RunOrder::NAMES.iter().map(|(_, name)| *name).collect();
        format!("one of {}", names.join(", "))
    })
}

fn moment(text: &str) -> Result<i64, String> {
    flowstone_engine::moment(text, SystemClock.now_ms()).ok_or_else(|| {
        "write how long ago, such as 2h, or when, such as 2026-01-31 or 2026-01-31T09:30:00Z"
            .to_owned()
    })
}

fn size(text: &str) -> Result<u64, String> {
    flowstone_engine::parse_size(text)
        .ok_or_else(|| "write a size such as 500MB or 2GiB".to_owned())
}
