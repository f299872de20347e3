//! Arguments of `flowstone flows`: those about files and served flows, and about trust. Those about versions are in
//! [`super::registry`].

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Home;
use super::installations::{
    FlowsConfigure, FlowsInstall, FlowsInstallations, FlowsPack, FlowsUninstall,
};
use super::registry::{FlowsArchive, FlowsDiff, FlowsPull, FlowsPush, FlowsRelease, FlowsRollback};

/// Lists flows, keeps their versions, releases them, and grants permissions to flows from elsewhere
#[derive(Debug, Args)]
pub struct Flows {
    #[command(subcommand)]
    pub command: FlowsCommand,
}

#[derive(Debug, Subcommand)]
pub enum FlowsCommand {
    Archive(FlowsArchive),
    Configure(Box<FlowsConfigure>),
    Diff(FlowsDiff),
    Install(FlowsInstall),
    Installations(FlowsInstallations),
    List(FlowsList),
    Pack(FlowsPack),
    Pull(FlowsPull),
    Push(FlowsPush),
    Release(FlowsRelease),
    Rollback(FlowsRollback),
    Show(FlowsShow),
    Test(FlowsTest),
    Trust(FlowsTrust),
    Trusted(FlowsTrusted),
    Uninstall(FlowsUninstall),
    Untrust(FlowsUntrust),
    Versions(FlowsVersions),
}

/// Lists the flows that `serve` would serve, or those of the registry
///
/// For each: its slug, title, inputs, interfaces, schedules and version, which is the digest of its program, or the number
/// of its released version. With --registry: the newest and the released version of each flow that was pushed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows list
  flowstone flows list team/ extra.edn
  flowstone flows list --registry
  flowstone --server http://127.0.0.1:7373 flows list --json")]
pub struct FlowsList {
    /// Flow files, or folders of flow files [default: flows/]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// List the flows of the registry
    #[arg(long, conflicts_with = "paths")]
    pub registry: bool,

    /// Archived flows of the registry, too
    #[arg(long, requires = "registry")]
    pub archived: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows a flow: its inputs, interfaces, schedules and version; or a version of the registry
///
/// A flow of the registry is shown with its newest and its released version and its last releases. SLUG@VERSION shows one
/// version, --text its text.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows show report
  flowstone flows show report --json | jq .inputs
  flowstone flows show report@4
  flowstone flows show report@live --text")]
pub struct FlowsShow {
    /// The slug of the flow, and optionally a version: SLUG@4, SLUG@draft, SLUG@live
    #[arg(value_name = "SLUG[@VERSION]")]
    pub slug: String,

    /// Print the text of the version [default: the newest]
    #[arg(long, conflicts_with = "json")]
    pub text: bool,

    /// File or folder with the flow; may be repeated [default: flows/]
    #[arg(long = "flows", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists the versions of a flow
///
/// Of a flow that was pushed, these are the versions of the registry, newest first. Otherwise, and with --programs, they are
/// the programs of its runs and the one in its file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows versions report
  flowstone flows versions report --json
  flowstone flows versions report --programs")]
pub struct FlowsVersions {
    /// The slug of the flow
    pub slug: String,

    /// List the programs of runs
    #[arg(long)]
    pub programs: bool,

    /// File or folder with the flow; may be repeated [default: flows/]
    #[arg(long = "flows", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the newest version of a flow of the registry once as a test, and judges what it did
///
/// THIS REALLY ACTS: messages are sent and records are written, unless --dry is given. The test ends at the first wait or
/// approval, and after 120 seconds. The verdict is `pass` if the expected tool was called and returned, `failed` if a tool
/// or the run failed, `incomplete` if it was not called, and else `unconfirmed`. Exits with 0 for `pass`, and for
/// `unconfirmed` if no tool was expected. `flowstone test` runs the cases of test files, and never acts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows test digest --expect-tool send
  flowstone flows test digest --message 'Send the report' --dry
  flowstone flows test digest --input '{\"region\": \"EU\"}' --expect-tool send --yes --json")]
pub struct FlowsTest {
    /// The slug of the flow
    pub slug: String,

    /// The tool whose call must have returned: its name, or what follows `__` in it
    #[arg(long, value_name = "NAME")]
    pub expect_tool: Option<String>,

    /// A message of the user, as the input `messages`
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,

    /// The input as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub input: String,

    /// Leave out changes outside, and drop changes of tables, keys and files after the test
    #[arg(long)]
    pub dry: bool,

    /// Start the test without a question
    #[arg(long, short)]
    pub yes: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print the answer of `test_run` as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows which permissions a flow needs, and grants them
///
/// A flow whose file is outside of the project, or that belongs to an imported run, starts without permissions. This
/// command shows the permissions that its steps need and, if you agree, records them in the project's `.flowstone`
/// folder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows trust ../elsewhere/report.edn
  flowstone flows trust ../elsewhere/report.edn --yes")]
pub struct FlowsTrust {
    /// The flow file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Grant the permissions without asking
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub home: Home,
}

/// Lists the trusted flows with their permissions
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows trusted
  flowstone flows trusted --json")]
pub struct FlowsTrusted {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub home: Home,
}

/// Revokes a flow's permissions
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows untrust report")]
pub struct FlowsUntrust {
    /// The slug of the flow
    pub slug: String,

    #[command(flatten)]
    pub home: Home,
}
