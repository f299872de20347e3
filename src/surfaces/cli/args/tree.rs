//! `flowstone tree` and its subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::Home;

/// Runs behaviour trees whose requests an agent answers one at a time
///
/// A tree file (YAML or JSON) decides what comes next; the agent does the work. Each answer is stored before the command
/// ends, so any process can continue the run. A HANDLE is the path of a document (`run.json`, `file:///path/run.json`), which is
/// written after each answer, or the name or id of a run (`release-4`, `run://release-4`).
///
/// These commands refuse `--server`: they use the project in this folder. On a server, agents answer trees over MCP.
#[derive(Debug, Args)]
pub struct Tree {
    #[command(subcommand)]
    pub command: TreeCommand,
}

#[derive(Debug, Subcommand)]
pub enum TreeCommand {
    Check(TreeCheck),
    Const(TreeConst),
    Eject(TreeEject),
    Eval(TreeEval),
    /// Prints the document of a run, with its tree, for other tools
    #[command(after_help = "Example:
  flowstone tree export release-4 > run.json")]
    Export(TreeOn),
    List(TreeList),
    /// Prints the request to answer next, or how the tree ended
    #[command(after_help = "Examples:
  flowstone tree next run.json
  flowstone tree next release-4 --json")]
    Next(TreeOn),
    Picture(TreePicture),
    /// Restarts the tree, with an empty trace and the initial stores
    #[command(after_help = "Example:
  flowstone tree reset run.json")]
    Reset(TreeOn),
    /// Confirms that a run can be continued, and imports a document of another project
    #[command(after_help = "Example:
  flowstone tree resume run.json")]
    Resume(TreeOn),
    /// Shows the whole tree of a run, with the state of each node
    #[command(after_help = "Examples:
  flowstone tree show run.json
  flowstone tree show release-4 --json")]
    Show(TreeOn),
    Start(TreeStart),
    Submit(TreeSubmit),
    Think(TreeThink),
    Trace(TreeTrace),
    Var(TreeVar),
}

/// Checks tree files and reports every problem
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tree check release.yaml
  flowstone tree check trees/a.yaml trees/b.json --json")]
pub struct TreeCheck {
    /// Tree files
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists the tree files in the folders `trees` and `flows` of the project
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tree list
  flowstone tree list --json")]
pub struct TreeList {
    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints a picture in SVG: of a tree file, or of a run with the state of each node
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tree picture flows/release-checklist.yaml > release.svg
  flowstone tree picture release-4 > release-4.svg
  flowstone tree picture trees/release.json --file > release.svg")]
pub struct TreePicture {
    /// A tree file (.yaml or .yml), or the handle of a run
    #[arg(value_name = "FILE|HANDLE", value_hint = ValueHint::FilePath)]
    pub what: String,

    /// Read a tree file, also if its name ends in .json
    #[arg(long)]
    pub file: bool,

    #[command(flatten)]
    pub home: Home,
}

/// Prints the flow that runs a tree, to save and edit as an ordinary flow
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone tree eject release.yaml > flows/release.edn")]
pub struct TreeEject {
    /// The tree file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    #[command(flatten)]
    pub home: Home,
}

/// Starts a tree as a new run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tree start release.yaml run.json
  flowstone tree start release.yaml release-4
  flowstone tree start release.yaml --gate --json")]
pub struct TreeStart {
    /// The tree file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The handle of the new run [default: the run's id]
    #[arg(value_name = "HANDLE")]
    pub handle: Option<String>,

    /// Begin with a request to accept the protocol
    #[arg(long)]
    pub gate: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// One run, by its handle.
#[derive(Debug, Args)]
pub struct TreeOn {
    /// The handle of the run
    #[arg(value_name = "HANDLE")]
    pub handle: String,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Which request is answered, and why.
#[derive(Debug, Args)]
pub struct TreeAnswer {
    /// One sentence about why, recorded in the trace
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Option<String>,

    /// The cursor that `next` printed with the request; if another request is open by now, nothing is recorded
    #[arg(long, value_name = "CURSOR")]
    pub expect: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Answers an `evaluate` request
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tree eval run.json true
  flowstone tree eval run.json false --note 'coverage is 71' --expect 4kq2rs-3")]
pub struct TreeEval {
    /// The handle of the run
    #[arg(value_name = "HANDLE")]
    pub handle: String,

    /// Whether the expression holds
    #[arg(action = clap::ArgAction::Set, value_name = "true|false")]
    pub result: bool,

    #[command(flatten)]
    pub answer: TreeAnswer,
}

/// How the work of an `instruct` request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TreeStatus {
    /// The work is done.
    Success,
    /// The work cannot be done; the action fails.
    Failure,
    /// The work continues; the request stays open.
    Running,
}

/// Answers an `instruct` request
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tree submit run.json success
  flowstone tree submit run.json failure --note 'the registry refuses the image'")]
pub struct TreeSubmit {
    /// The handle of the run
    #[arg(value_name = "HANDLE")]
    pub handle: String,

    /// How the work went
    #[arg(value_enum)]
    pub status: TreeStatus,

    #[command(flatten)]
    pub answer: TreeAnswer,
}

/// Adds a thought about the open request to the trace
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone tree think run.json 'two of three suites are green'")]
pub struct TreeThink {
    /// The handle of the run
    #[arg(value_name = "HANDLE")]
    pub handle: String,

    /// The thought
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub thought: String,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Reads `$VAR`, or writes a value to it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tree var run.json
  flowstone tree var run.json tests.passed
  flowstone tree var run.json tests.passed --set true
  flowstone tree var run.json offset --set -1")]
pub struct TreeVar {
    /// The handle of the run
    #[arg(value_name = "HANDLE")]
    pub handle: String,

    /// Keys separated by dots [default: the whole store]
    #[arg(value_name = "PATH")]
    pub path: Option<String>,

    /// The value to write: JSON, or a text
    #[arg(
        long,
        value_name = "VALUE",
        requires = "path",
        allow_hyphen_values = true
    )]
    pub set: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Reads `$CONST`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tree const run.json
  flowstone tree const run.json threshold")]
pub struct TreeConst {
    /// The handle of the run
    #[arg(value_name = "HANDLE")]
    pub handle: String,

    /// Keys separated by dots [default: the whole store]
    #[arg(value_name = "PATH")]
    pub path: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the trace: one entry for each decision
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tree trace run.json
  flowstone tree trace run.json --from 10 --to 20 --json")]
pub struct TreeTrace {
    /// The handle of the run
    #[arg(value_name = "HANDLE")]
    pub handle: String,

    /// The index of the first entry, counted from 0
    #[arg(long, value_name = "N")]
    pub from: Option<u64>,

    /// The index after the last entry
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
