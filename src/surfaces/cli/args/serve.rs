//! Arguments of `serve`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{Home, Permits, RunLimits};

/// Executes due runs: schedules, timers, answered waits, interrupted runs
///
/// Executes every due run of the project, whichever command started it, so that commands do not have to wait for each
/// other. With `--listen`, it also answers HTTP requests; each needs a token, and the first start writes the owner's
/// token to `.flowstone/owner.token`. Ctrl-C or SIGTERM ends it in order: effects in progress are finished, and every
/// run resumes later from its last finished step.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone serve
  flowstone serve --listen 127.0.0.1:7373
  flowstone serve --threads 2 --json >> worker.log
  flowstone serve --until-idle")]
pub struct Serve {
    /// Flow files, or folders of flow files, to serve; their schedules start runs [default: flows/ in the project]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// Also serve the HTTP API, links and webhooks on this address; port 0 chooses a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,

    /// Number of threads that execute runs [default: one for each core]
    #[arg(long, value_name = "N", value_parser = |text: &str| count(text, THREADS_MAX))]
    pub threads: Option<NonZeroUsize>,

    /// Maximum number of runs that one thread executes concurrently
    #[arg(long, value_name = "N", default_value = "256", value_parser = concurrency)]
    pub concurrency: NonZeroUsize,

    /// The same as PATH; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub flows: Vec<PathBuf>,

    /// Exit when no run is due
    #[arg(long, visible_alias = "once")]
    pub until_idle: bool,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,

    #[command(flatten)]
    pub home: Home,

    /// Print events as lines of JSON
    #[arg(long)]
    pub json: bool,

    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// The maximum number of threads; more do not help on any machine.
const THREADS_MAX: usize = 1_000;
/// Each thread takes two memory mappings; a process has about 65,000.
const DRIVES_MAX: usize = 30_000;

fn count(text: &str, most: usize) -> Result<NonZeroUsize, String> {
    let count = text.parse().ok().filter(|count| *count <= most);
    count
        .and_then(NonZeroUsize::new)
        .ok_or_else(|| format!("expected a number from 1 to {most}"))
}

/// Reads the number of runs that a thread executes concurrently.
pub(super) fn concurrency(text: &str) -> Result<NonZeroUsize, String> {
    count(text, DRIVES_MAX)
}
