//! Commands and their options, with the examples in their help.

mod connections;
mod deps;
mod docs;
mod doctor;
mod flows;
mod fmt;
mod graph;
mod import;
mod installations;
mod jobs;
mod kit;
mod lazily;
mod limits;
mod lsp;
mod mcp;
mod new;
mod permits;
mod registry;
mod resources;
mod runs;
mod schedules;
mod search;
mod serve;
mod skill;
mod steps;
mod tables;
mod tree;
mod waits;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use flowstone_engine::installation::InstallationName;
use flowstone_engine::registry::Target;

use super::home::ExchangesWith;

pub use connections::*;
pub use deps::*;
pub use docs::*;
pub use doctor::*;
pub use flows::*;
pub use fmt::*;
pub use graph::*;
pub use import::*;
pub use installations::*;
pub use jobs::*;
pub use kit::*;
use lazily::Lazily;
pub use limits::*;
pub use lsp::*;
pub use mcp::*;
pub use new::*;
pub use permits::*;
pub use registry::*;
pub use resources::*;
pub use runs::*;
pub use schedules::*;
pub use search::*;
pub use serve::*;
pub use skill::*;
pub use steps::*;
pub use tables::*;
pub use tree::*;
pub use waits::*;

/// Runs agent workflows written in Clojure syntax, and journals every finished step
#[derive(Debug, Parser)]
#[command(
    name = "flowstone",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 completed, 1 failed, 2 usage, 3 waiting, 4 cancelled, 130 interrupted.\n\
                  Each command shows examples with --help."
)]
pub struct Cli {
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,

    #[command(flatten)]
    pub server: super::remote::ServerOptions,

    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Returns the description of all commands with all their options.
    pub fn whole() -> clap::Command {
        lazily::at_once(Cli::command)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Backtest(Lazily<super::backtest::Backtest>),
    Backup(Lazily<super::backup::Backup>),
    Check(Lazily<Check>),
    Completions(Lazily<Completions>),
    Connections(Lazily<Connections>),
    Deps(Lazily<Deps>),
    Docs(Lazily<Docs>),
    Doctor(Lazily<Doctor>),
    Eval(Lazily<Eval>),
    Explain(Lazily<Explain>),
    Flows(Lazily<Flows>),
    Fmt(Lazily<Fmt>),
    Gc(Lazily<Gc>),
    Graph(Lazily<Graph>),
    Import(Lazily<Import>),
    Init(Lazily<Init>),
    Jobs(Lazily<Jobs>),
    Key(Lazily<super::key::Key>),
    Kit(Lazily<Kit>),
    Lsp(Lazily<Lsp>),
    Mcp(Lazily<Mcp>),
    New(Lazily<New>),
    Nrepl(Lazily<Nrepl>),
    #[command(hide = true)]
    Reference(Lazily<Reference>),
    Repl(Lazily<Repl>),
    Resources(Lazily<Resources>),
    Run(Lazily<Run>),
    Runs(Lazily<Runs>),
    Schedules(Lazily<Schedules>),
    Search(Lazily<Search>),
    Serve(Lazily<Serve>),
    Skill(Lazily<Skill>),
    Steps(Lazily<Steps>),
    Test(Lazily<super::test::Test>),
    Tokens(Lazily<super::tokens::Tokens>),
    Tree(Lazily<Tree>),
    Waits(Lazily<Waits>),
}

/// Checks flow files and reports what is wrong before anything runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone check flows/
  flowstone check --json flows/repo-report.edn
  flowstone check --fix --dry-run flows/
  flowstone check --bounds flows/repo-report.edn
  flowstone check --format sarif flows/ > findings.sarif
  flowstone check --against-running flows/orders.edn")]
pub struct Check {
    /// Flow files, or folders of flow files
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// Also compare each flow with its unfinished runs: same, safe (only code that no run has reached changed), or
    /// conflict
    #[arg(long)]
    pub against_running: bool,

    /// Also report what the hosted product would refuse, with severity `portability`
    #[arg(long, conflicts_with = "against_running")]
    pub portable: bool,

    /// Also print what a run of each flow uses at most: steps, model turns, tool calls, tokens and cost
    #[arg(long, conflicts_with = "against_running")]
    pub bounds: bool,

    /// Make the changes that are certain, such as of misspelt keys, and check again
    #[arg(long, conflicts_with = "against_running")]
    pub fix: bool,

    /// With --fix: print the changes as a patch and leave the files as they are
    #[arg(long, requires = "fix")]
    pub dry_run: bool,

    #[command(flatten)]
    pub home: Home,

    /// How to print the findings
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        conflicts_with_all = ["json", "against_running"]
    )]
    pub format: CheckFormat,

    /// Print the findings as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For a person
    Text,
    /// One JSON object
    Json,
    /// A SARIF 2.1.0 log, for code scanning and editors
    Sarif,
}

/// Prints a completion script for a shell
///
/// With the script, the shell completes commands and options, and what the project has: flows, runs, open waits, connections,
/// step types, error codes and pages of the manual. Print the script again after an update.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone completions bash > ~/.local/share/bash-completion/completions/flowstone
  flowstone completions zsh > ~/.zfunc/_flowstone
  flowstone completions fish > ~/.config/fish/completions/flowstone.fish")]
pub struct Completions {
    pub shell: Shell,
}

/// Evaluates an expression, or a program in a file
///
/// Prints the value of the last form of an expression, unless it is nil. A program in a file prints only what it prints
/// itself. A program has standard input and output and a clock, but no steps: those are for flows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone eval '(+ 1 2)'
  flowstone eval --path src program.clj
  echo '(println (read-line))' | flowstone eval -
  flowstone eval --allow-files '(count (slurp \"README.md\"))'")]
pub struct Eval {
    /// An expression, a file, or `-` for standard input
    #[arg(value_name = "EXPR|FILE|-", allow_hyphen_values = true)]
    pub source: String,

    /// Arguments for the program, as *command-line-args*
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub args: Vec<String>,

    /// Folder where `require` looks for namespaces; may be repeated
    #[arg(long = "path", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub paths: Vec<PathBuf>,

    /// Also choose the branches of this dialect in reader conditionals, such as clj; may be repeated
    #[arg(long = "feature", value_name = "NAME", value_parser = feature)]
    pub features: Vec<String>,

    /// Let the program read and write files
    #[arg(long)]
    pub allow_files: bool,

    /// Stop after this many instructions
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,

    /// Stop after this long, such as 500ms, 10s or 5m
    #[arg(long, value_name = "DURATION", value_parser = super::duration::parse)]
    pub deadline: Option<Duration>,

    #[command(flatten)]
    pub limits: RunLimits,

    /// Print the value or the error as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Writes the reference pages that are generated from the code
#[derive(Debug, Args)]
pub struct Reference {
    #[arg(value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

/// Starts the interactive prompt
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone repl
  flowstone repl --allow-files --path src
  echo '(+ 1 2)' | flowstone repl")]
pub struct Repl {
    #[command(flatten)]
    pub home: Home,

    /// Folder where `require` looks for namespaces; may be repeated
    #[arg(long = "path", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub paths: Vec<PathBuf>,

    /// Let the session read and write files
    #[arg(long)]
    pub allow_files: bool,

    /// Serve the prompt on this port of 127.0.0.1, instead of the terminal; 0 for a free port
    #[arg(long, value_name = "PORT")]
    pub socket: Option<u16>,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,
}

/// Serves editors that speak nREPL, on 127.0.0.1
///
/// Writes the port to .nrepl-port in the project's folder, where editors look for it. Sessions use steps and the functions
/// of the prompt, within the permissions of the project. Ctrl-C ends the server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone nrepl
  flowstone nrepl --port 7888 --path src")]
pub struct Nrepl {
    /// Port to listen on; 0 for a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Folder where `require` looks for namespaces; may be repeated
    #[arg(long = "path", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub paths: Vec<PathBuf>,

    /// Let sessions read and write files
    #[arg(long)]
    pub allow_files: bool,

    #[command(flatten)]
    pub home: Home,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,
}

/// The folder of a project's runs.
#[derive(Debug, Clone, Args)]
pub struct Home {
    /// Folder with runs, tables and values [default: .flowstone in this folder or one above it]
    #[arg(long, value_name = "DIR", env = "FLOWSTONE_HOME", value_hint = ValueHint::DirPath)]
    pub home: Option<PathBuf>,
}

/// Runs a flow to its result
///
/// Progress is printed on standard error, the result on standard output: a string as it is, anything else as EDN. The
/// run is stored: after a crash or Ctrl-C, the same command or `flowstone runs resume` resumes it from the last
/// finished step.
///
/// The same command means the same flow text, input, invocation and bindings. It resumes the newest such run that this
/// command started, that is not finished and that no process executes, even if the run waits for a sleep, a retry, its
/// turn in the queue, an answer or a child run. With `--new` it always starts another run.
#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
#[command(after_help = "Examples:
  flowstone run flows/repo-report.edn --input '{\"path\": \".\"}'
  flowstone run flows/expense-approval.edn --input @input.edn
  flowstone run report --target draft
  flowstone run report --installation acme/monthly
  flowstone run flow.edn --upload report=may.csv
  flowstone run flow.edn --id order-17 --priority 5 --detach
  flowstone run flow.edn --many inputs.jsonl --json
  flowstone run flow.edn --profile prod --set ai.conn=openai-eu
  flowstone run flow.edn --record answers && flowstone run flow.edn --replay answers
  cat input.json | flowstone run flow.edn --input - --json")]
pub struct Run {
    /// The flow file, or the name of a flow: its released version, or else its newest one, if it was pushed to the registry
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Which version of the registry to run: the newest (draft) or the released one (live)
    #[arg(long, value_name = "draft|live", value_parser = target, conflicts_with = "number")]
    pub target: Option<Target>,

    /// The version of the registry to run
    #[arg(long = "version", value_name = "N")]
    pub number: Option<i64>,

    /// The installation of the flow to run, with its own connections and setup values
    #[arg(
        long,
        value_name = "[WORKSPACE/]NAME",
        value_parser = installations::installation,
        conflicts_with_all = ["target", "number", "many", "setup", "profile", "set"]
    )]
    pub installation: Option<InstallationName>,

    /// The input: JSON or EDN, `@file`, or `-` for standard input
    #[arg(long, value_name = "JSON|EDN|@FILE|-", allow_hyphen_values = true)]
    pub input: Option<String>,

    /// Start a run for each input of this file, `-` for standard input: a JSON or EDN list, or one input a line; at most
    /// 1000. All inputs are checked first, and all runs start in one transaction, or none. Prints the ids;
    /// `flowstone serve` executes the runs
    #[arg(
        long,
        value_name = "FILE|-",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["input", "uploads", "new", "id", "detach", "record", "replay"]
    )]
    pub many: Option<PathBuf>,

    /// Values of the flow's setup forms, merged over those of flowstone.edn: JSON or EDN, or `@file`
    #[arg(long, value_name = "JSON|EDN|@FILE", allow_hyphen_values = true)]
    pub setup: Option<String>,

    /// Store a file, and put a reference to it into this field of the input, as in report=may.csv; may be repeated
    #[arg(long = "upload", value_name = "FIELD=FILE", value_parser = super::resources::upload_file)]
    pub uploads: Vec<(String, PathBuf)>,

    /// The invocation of the flow to use [default: default]
    #[arg(long, value_name = "ID")]
    pub invocation: Option<String>,

    /// Start another run even if one of this flow with this input is unfinished
    #[arg(long)]
    pub new: bool,

    /// Your own name for the run; if a run has this name already, no other is started
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,

    /// Priority in the queue: runs with higher numbers start first [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub priority: Option<i64>,

    /// Cancel the run if it takes longer than this, such as 30s, 10m or 2h
    #[arg(long, value_name = "DURATION", value_parser = super::duration::parse)]
    pub timeout: Option<Duration>,

    /// Only add the run and print its id; `flowstone serve` executes it
    #[arg(long, visible_alias = "no-wait", conflicts_with_all = ["record", "replay"])]
    pub detach: bool,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,

    #[command(flatten)]
    pub bound: Bound,

    #[command(flatten)]
    pub exchanges: Exchanges,

    #[command(flatten)]
    pub home: Home,

    #[command(flatten)]
    pub show: Show,
}

/// Where the answers to a run's requests come from.
#[derive(Debug, Args)]
pub struct Exchanges {
    /// Record each exchange with a model or another server in this folder, without secrets, as files to read, edit and
    /// replay
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "replay")]
    pub record: Option<PathBuf>,

    /// Answer all requests from a recording: nothing is sent, and no secret is needed
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub replay: Option<PathBuf>,
}

/// How a run is shown.
#[derive(Debug, Args)]
pub struct Show {
    /// Print one JSON object with the run's id, status and result
    #[arg(long)]
    pub json: bool,

    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Parses the name of a pointer of the registry.
fn target(text: &str) -> Result<Target, String> {
    Target::named(text).ok_or_else(|| "a target is `draft` or `live`".to_owned())
}

/// Parses the name of a feature, with or without a colon.
fn feature(text: &str) -> Result<String, String> {
    let name = text.strip_prefix(':').unwrap_or(text);
    let is_name = |char: char| char.is_ascii_alphanumeric() || "-_.+*".contains(char);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err("a feature is a name, such as clj or cljs".to_owned());
    }
    Ok(name.to_owned())
}

impl Exchanges {
    /// Returns where answers come from.
    pub fn with(&self) -> ExchangesWith {
        match (&self.record, &self.replay) {
            (Some(folder), _) => ExchangesWith::RecordedServers(folder.clone()),
            (None, Some(folder)) => ExchangesWith::Recording(folder.clone()),
            (None, None) => ExchangesWith::Servers,
        }
    }
}
