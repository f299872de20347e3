//! `flowstone jobs` and its subcommands.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use flowstone_engine::ports::JobStatus;

use super::Home;

/// Lists jobs of `:job` steps, and works on them
#[derive(Debug, Args)]
pub struct Jobs {
    #[command(subcommand)]
    pub command: JobsCommand,
}

#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    Claim(JobsClaim),
    Complete(JobsComplete),
    Fail(JobsFail),
    List(JobsList),
    Progress(JobsProgress),
    Show(JobsShow),
}

/// Claims queued jobs under a lease: the highest priority first, then the oldest
///
/// Prints each job with the token of its lease, which `progress`, `complete` and `fail` need. If a worker does not
/// report before the lease ends, it loses the job, and the job is queued again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone jobs claim --type image
  flowstone jobs claim --type image --type video --max 10 --lease 2m --worker gpu-1 --json
  flowstone jobs claim --type image --wait 30s --json")]
pub struct JobsClaim {
    /// Type of the jobs to claim; may be repeated
    #[arg(long = "type", value_name = "TYPE", required = true)]
    pub types: Vec<String>,

    /// Name of the worker, shown with its jobs
    #[arg(
        long,
        value_name = "NAME",
        default_value = "local",
        env = "FLOWSTONE_WORKER"
    )]
    pub worker: String,

    /// Maximum number of jobs, up to 100
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub max: usize,

    /// How long the lease lasts, from 5s to 1h
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = crate::cli::duration::parse)]
    pub lease: Duration,

    /// How long to wait for a job if none is queued, up to 30s
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = crate::cli::duration::parse)]
    pub wait: Duration,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Completes a claimed job with its result, or several jobs of a file
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone jobs complete j1 --lease TOKEN --result '{\"uri\": \"res://...\"}'
  flowstone jobs complete j1 --lease TOKEN --no-changes
  flowstone jobs complete --many done.json --json")]
pub struct JobsComplete {
    /// The job's id
    #[arg(required_unless_present = "many", requires = "lease")]
    pub id: Option<String>,

    /// The token that `jobs claim` printed
    #[arg(long, value_name = "TOKEN")]
    pub lease: Option<String>,

    /// The `:result` that the `:job` step returns: JSON or EDN, `@file`, or `-`
    #[arg(long, value_name = "JSON|EDN|@FILE|-", allow_hyphen_values = true)]
    pub result: Option<String>,

    /// End the job with status `no_changes` instead of `succeeded`: there was nothing to do
    #[arg(long)]
    pub no_changes: bool,

    /// A file with a list of up to 100 maps with `id`, `lease`, `result` and `status`; all are completed in one
    /// transaction, and each can fail independently
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["id", "lease", "result", "no_changes"]
    )]
    pub many: Option<PathBuf>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Reports that a claimed job failed; it is queued again until its attempts are used up
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone jobs fail j1 --lease TOKEN --message 'the server is down'
  flowstone jobs fail j1 --lease TOKEN --message 'not an image' --kind bad-input --no-retry")]
pub struct JobsFail {
    /// The job's id
    pub id: String,

    /// The token that `jobs claim` printed
    #[arg(long, value_name = "TOKEN")]
    pub lease: String,

    /// The error message
    #[arg(long, value_name = "TEXT")]
    pub message: String,

    /// The kind of the error, a keyword that flows can check
    #[arg(long, value_name = "NAME")]
    pub kind: Option<String>,

    /// Data about the error: JSON or EDN, `@file`, or `-`
    #[arg(long, value_name = "JSON|EDN|@FILE|-", allow_hyphen_values = true)]
    pub data: Option<String>,

    /// End the job at once, because another attempt would fail too
    #[arg(long)]
    pub no_retry: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists jobs, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone jobs list
  flowstone jobs list --type image --status queued --json
  flowstone jobs list --batch b1 --limit 1000")]
pub struct JobsList {
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,

    /// Only jobs with this status: queued, claimed, succeeded, no_changes, failed, cancelled or timed_out
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub status: Option<JobStatus>,

    /// Only jobs of this batch
    #[arg(long, value_name = "ID")]
    pub batch: Option<String>,

    /// Only jobs that this run submitted
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,

    /// Maximum number of jobs
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: usize,

    /// Continue after this job, the last one of the previous page
    #[arg(long, value_name = "ID")]
    pub after: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Reports that the worker of a job is still at work, and extends its lease from now on
///
/// Prints when the lease ends, and whether the worker should stop because the job was cancelled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone jobs progress j1 --lease TOKEN
  flowstone jobs progress j1 --lease TOKEN --progress '{\"done\": 3, \"of\": 10}' --extend 5m --json")]
pub struct JobsProgress {
    /// The job's id
    pub id: String,

    /// The token that `jobs claim` printed
    #[arg(long, value_name = "TOKEN")]
    pub lease: String,

    /// The progress of the work: JSON or EDN, `@file`, or `-`
    #[arg(long, value_name = "JSON|EDN|@FILE|-", allow_hyphen_values = true)]
    pub progress: Option<String>,

    /// Duration of the extended lease, from 5s to 1h [default: as claimed]
    #[arg(long, value_name = "DURATION", value_parser = crate::cli::duration::parse)]
    pub extend: Option<Duration>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows one job: its payload, its worker, its progress and its outcome
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone jobs show j1
  flowstone jobs show j1 --json")]
pub struct JobsShow {
    /// The job's id, or the beginning of the id
    pub id: String,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Parses a status.
fn status(text: &str) -> Result<JobStatus, String> {
    JobStatus::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = JobStatus::NAMES.iter().map(|(_, name)| *name).collect();
        format!("a status is one of {}", names.join(", "))
    })
}
