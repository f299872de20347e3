//! Arguments of `flowstone test`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::args::{Exchanges, Permits};

/// Tests a flow on a clock that skips time, with mocks, and with a crash at every point
///
/// The flow runs in a scratch home, and is replayed at its end. Models, and steps that change something outside, are
/// answered by mocks. With --crash-everywhere, the process is killed at each commit, and before and after each effect;
/// another process resumes the run and must reach the same result.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone test flows/repo-report.edn
  flowstone test flows/
  flowstone test flows/feed-digest.edn --crash-everywhere
  flowstone test flows/summarize.edn --replay answers
  flowstone test flow.edn --input '{:n 3}' --mock mocks.edn --answer 'approval={:action :approve}'

A case beside the flow, in flows/NAME/test.edn for flows/NAME.edn, is taken where --case names no other:
  {:input {:url \"https://example.com\"} :mock {:fetch {:status 200 :body \"hello\"}} :answers {:approval {:action :approve}}}")]
pub struct Test {
    /// Flow files, names of flows, or folders, in which each flow with a case is tested
    #[arg(required = true, value_name = "FLOW", value_hint = ValueHint::AnyPath)]
    pub flows: Vec<PathBuf>,

    /// The input: JSON or EDN, `@file`, or `-` for standard input
    #[arg(long, value_name = "JSON|EDN|@FILE|-", allow_hyphen_values = true)]
    pub input: Option<String>,

    /// The invocation of the flow to use [default: default]
    #[arg(long, value_name = "ID")]
    pub invocation: Option<String>,

    /// File with input, mocks and answers [default: test.edn in the folder with the flow's name]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub case: Option<PathBuf>,

    /// File with the results of steps, by path, id or type; may be repeated
    #[arg(long = "mock", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub mocks: Vec<PathBuf>,

    /// The answer to a wait, by step id, path or key, or `*` for all; may be repeated
    #[arg(long = "answer", value_name = "KEY=VALUE")]
    pub answers: Vec<String>,

    /// Perform steps that change something outside, and call models, if no mock answers
    #[arg(long)]
    pub live: bool,

    #[command(flatten)]
    pub exchanges: Exchanges,

    #[command(flatten)]
    pub permits: Permits,

    /// Kill the process at every commit and effect, resume in another, and compare the results
    #[arg(long, conflicts_with = "record")]
    pub crash_everywhere: bool,

    /// Print the result of the flow
    #[arg(long)]
    pub show_result: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,

    /// Run as one process of a test in this home
    #[arg(long, value_name = "DIR", hide = true)]
    pub test_home: Option<PathBuf>,

    /// Die at this point
    #[arg(long, value_name = "N", hide = true, requires = "test_home")]
    pub crash_at: Option<u64>,
}
