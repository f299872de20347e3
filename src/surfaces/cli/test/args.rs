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

  flowstone test . --junit report.xml
  flowstone test flows/ --watch --filter refund
  flowstone test flows/ --coverage
  flowstone test flows/ --update
  flowstone test sort-mail_eval.edn --repeat 5 --compare sort-mail-2.edn

A case beside the flow, in flows/NAME/test.edn for flows/NAME.edn, is taken where --case names no other:
  {:input {:url \"https://example.com\"} :mock {:fetch {:status 200 :body \"hello\"}} :answers {:approval {:action :approve}}}")]
pub struct Test {
    /// Flow files, names of flows, files of cases, files with tests of clojure.test, or folders with any of them; or
    /// evaluation sets (files that end in _eval.edn)
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

    /// Test only the cases whose names contain this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,

    /// Folder where `require` in tests of clojure.test looks for namespaces; may be repeated
    #[arg(long = "path", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub paths: Vec<PathBuf>,

    /// Number of tests to perform at once [default: one for each core]
    #[arg(long, short = 'j', value_name = "N")]
    pub jobs: Option<usize>,

    /// Number of runs of each case of an evaluation set [default: what the set says]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub repeat: Option<usize>,

    /// Evaluate this flow, too, and compare it with that of the evaluation set
    #[arg(long, value_name = "FLOW", value_hint = ValueHint::FilePath)]
    pub compare: Option<PathBuf>,

    /// Report which steps and branches of the flows the tests reach
    #[arg(long, conflicts_with_all = ["crash_everywhere", "tap"])]
    pub coverage: bool,

    /// Write what the flows return and do into the files of the cases that expect something else; with --live, also
    /// record the answers of servers again for cases with `:replay`
    #[arg(long, conflicts_with_all = ["crash_everywhere", "watch", "input", "invocation", "mocks", "answers", "record", "replay"])]
    pub update: bool,

    /// Test again whenever a file of the tests changes
    #[arg(long, conflicts_with_all = ["json", "tap", "junit", "record"])]
    pub watch: bool,

    /// Write a report for CI servers, as JUnit's XML, to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,

    /// Print the results as lines of TAP, the Test Anything Protocol
    #[arg(long, conflicts_with = "json")]
    pub tap: bool,

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
