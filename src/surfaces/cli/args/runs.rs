//! `flowstone runs`: its commands and their options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use flowstone_engine::SystemClock;
use flowstone_engine::ports::{Clock, RunOrder, RunStatus};

use super::{Home, Permits, RunLimits, Show};
use crate::cli::runs::{feed, fork, replay, url, verify};

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
    Feed(feed::RunsFeed),
    Fork(fork::RunsFork),
    #[command(after_help = "Examples:
  flowstone runs gc --dry-run
  flowstone runs gc --older-than 7d --keep-last 20
  flowstone runs gc --max-size 2GB --compact")]
    Gc(Gc),
    Import(RunsImport),
    List(RunsList),
    Replay(replay::RunsReplay),
    Resume(RunsResume),
    Show(RunsShow),
    Spans(RunsSpans),
    Url(url::RunsUrl),
    Verify(verify::RunsVerify),
    Watch(RunsWatch),
}

/// Cancels a run that is not finished
///
/// Runs its `finally` blocks, then the functions that `flow/on-cancel` and `flow/compensate` registered.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs cancel r3 --reason 'wrong month'
  flowstone runs cancel r3 --force")]
pub struct RunsCancel {
    /// The run's id, or the beginning of the id
    pub id: String,

    /// The reason; stored with the run
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// Terminate it at once, without running its `finally` blocks and compensations
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Writes a run to a file that contains everything it needs
///
/// The file contains the flow's source, the input, the journal, the result and the blobs that they refer to, but not
/// the tokens of waits. An unfinished run is written up to its last journal entry.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs export r3 run.edn
  flowstone runs export r3 - | ssh other flowstone runs import -")]
pub struct RunsExport {
    /// The run's id, or the beginning of the id
    pub id: String,

    /// The file, or `-` for standard output
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Include the child runs that it started
    #[arg(long)]
    pub children: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object about the file
    #[arg(long)]
    pub json: bool,
}

/// Removes the journals of runs that finished long ago
///
/// A finished run keeps its row, input and result. Its journal is removed after 30 days, or after the time in
/// `:retention` of flowstone.edn, together with everything that only the journal referred to. Unfinished runs are never
/// touched. A worker does this automatically once a day, and so does `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone gc --dry-run
  flowstone gc --older-than 7d --keep-last 20
  flowstone gc --max-size 2GB --compact")]
pub struct Gc {
    /// Remove the journals of runs that finished this long ago, such as 12h or 30d
    #[arg(long, value_name = "DURATION", value_parser = crate::cli::duration::parse)]
    pub older_than: Option<Duration>,

    /// Keep the newest N journals of each flow, whatever their age
    #[arg(long, value_name = "N")]
    pub keep_last: Option<usize>,

    /// While the database is larger than this, such as 500MB, also remove younger journals, oldest first
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,

    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,

    /// Return free space to the system by rewriting the database file
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
/// An imported run that is not finished is put on hold until you run `runs resume`, because the original may still be
/// running elsewhere.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs import run.edn
  flowstone runs import --new-id run.edn")]
pub struct RunsImport {
    /// The file, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Give the run a new id; only for finished runs
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

/// Shows the differences between two runs
///
/// Compares flows, inputs, outcomes, and steps by their paths; times, random numbers and log lines are ignored.
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

    /// Also list the steps that are equal
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the journal of a run, one event per line
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs events r3
  flowstone runs events r3 --follow --json | jq .kind
  flowstone runs events r3 --after 120")]
pub struct RunsEvents {
    /// The run's id, or the beginning of the id
    pub id: String,

    /// Keep printing events until the run ends
    #[arg(long, short)]
    pub follow: bool,

    /// Only events after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub after: i64,

    #[command(flatten)]
    pub home: Home,

    /// Print each event with all its fields as one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Prints the spans of a run, which are derived from its journal
///
/// A running process sends its spans to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, if it is set. This
/// command shows the same spans without a collector, and can send them again: spans that a killed process could not
/// send are missing in the collector, but not in the journal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs spans r3
  flowstone runs spans r3 --json | jq '.spans[].name'
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 flowstone runs spans r3 --send")]
pub struct RunsSpans {
    /// The run's id, or the beginning of the id
    pub id: String,

    /// Send them to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names
    #[arg(long)]
    pub send: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object, with the spans in the JSON format of OTLP
    #[arg(long)]
    pub json: bool,
}

/// Lists runs, newest first
///
/// Times are durations before now, such as 2h, or instants, such as 2026-01-31 or 2026-01-31T09:30:00Z.
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

    /// Only runs with this status: queued, running, waiting, failed-compensating, completed, failed, cancelled,
    /// terminated, timed-out; may be repeated, or several with commas
    #[arg(long, value_name = "STATUS", value_parser = status, value_delimiter = ',')]
    pub status: Vec<Status>,

    /// Only runs created at this time or later
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub since: Option<i64>,

    /// Only runs created before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub until: Option<i64>,

    /// Only runs with this `:concurrency` key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// Only runs with this text in their id, flow, key, input, result or error
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,

    /// Only runs started this way: manual, schedule, schedule:ID, call, fork, import
    #[arg(long, value_name = "WHAT")]
    pub started_by: Option<String>,

    /// Only child runs of this run
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,

    /// The order: newest, oldest or changed
    #[arg(long, value_name = "ORDER", value_parser = order, default_value = "newest")]
    pub sort: RunOrder,

    /// Only runs that come after this one in the order, for the next page
    #[arg(long, value_name = "ID")]
    pub before: Option<String>,

    /// Maximum number of runs; 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// With --json: also print each run's input, result and error
    #[arg(long, requires = "json")]
    pub full: bool,
}

/// Resumes a run that was interrupted, or whose wait has ended
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs resume r3
  flowstone runs resume r3 --flow flows/orders.edn
  flowstone runs resume --all")]
pub struct RunsResume {
    /// The run's id, or the beginning of the id
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub id: Option<String>,

    /// Resume every run that is not finished
    #[arg(long)]
    pub all: bool,

    /// Continue with this edited flow, if it makes the same requests as the run has made so far
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

/// Shows one run: its current state, and its steps with their times, attempts, waits and results
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs show r3
  flowstone runs show r3 --step fetch#2
  flowstone runs show r3 --full
  flowstone runs show r3 --json")]
pub struct RunsShow {
    /// The run's id, or the beginning of the id
    pub id: String,

    /// Only this step, with its whole request and result
    #[arg(long, value_name = "PATH")]
    pub step: Option<String>,

    /// Print requests and results of all steps in full
    #[arg(long)]
    pub full: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows the progress of runs
///
/// Without an id, shows all unfinished runs; with one, the steps of that run until it ends. Press q or Ctrl-C to leave.
/// If the terminal cannot redraw lines, each change is printed on a separate line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs watch
  flowstone runs watch r3")]
pub struct RunsWatch {
    /// The run's id, or the beginning of the id
    pub id: Option<String>,

    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,

    #[command(flatten)]
    pub home: Home,
}

/// A status in a list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Stored(RunStatus),
    /// The run's row says running, but no process executes it.
    Interrupted,
}

/// The status that lists show for runs that are neither finished nor waiting, and that no process executes.
pub const INTERRUPTED: &str = "interrupted";

/// The status that lists show for runs in quarantine.
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

fn instant(text: &str) -> Result<i64, String> {
    flowstone_engine::read_instant(text, SystemClock.now_ms()).ok_or_else(|| {
        "write how long ago, such as 2h, or when, such as 2026-01-31 or 2026-01-31T09:30:00Z"
            .to_owned()
    })
}

fn size(text: &str) -> Result<u64, String> {
    flowstone_engine::parse_size(text)
        .ok_or_else(|| "write a size such as 500MB or 2GiB".to_owned())
}
