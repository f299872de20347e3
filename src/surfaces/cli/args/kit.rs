//! Arguments of `kit`.

use clap::Args;

use super::Home;

/// Calls the tools of the build kit, with which a coding agent builds, tests and schedules a flow
///
/// A tool gets its arguments as JSON and prints its answer as JSON. The flow is the one of `--flow`; no argument names
/// another. `flowstone mcp --kit SLUG` and `/api/tools` of a server offer the same tools; with --server they are those of
/// the server. Some tools ask a person before they act.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone kit list
  flowstone kit query_workflows --enable query_workflows
  flowstone kit commit_revision --flow digest --json @change.json --yes
  flowstone kit approvals
  flowstone kit approve kap_0123456789abcdef01234567
  flowstone kit connect kcr_0123456789abcdef0123456789abcdef")]
pub struct Kit {
    /// `list`, `approvals`, `approve`, `deny`, `connect`, or the name of a tool
    #[arg(value_name = "TOOL")]
    pub name: String,

    /// The approval to decide about, for `approve` and `deny`; the request for a connection, for `connect`
    #[arg(value_name = "APPROVAL")]
    pub approval: Option<String>,

    /// The flow to work on, which need not exist yet
    #[arg(long, value_name = "SLUG")]
    pub flow: Option<String>,

    /// The arguments as a JSON object, @FILE for a file, or - for standard input [default: {}]
    #[arg(long, value_name = "ARGS", num_args = 0..=1, default_missing_value = "{}")]
    pub json: Option<String>,

    /// Agree to the call without a question
    #[arg(long, short)]
    pub yes: bool,

    /// Whether a tool may be called: NAME=allow, NAME=ask or NAME=deny; may be repeated
    #[arg(long = "permission", value_name = "NAME=PERMISSION")]
    pub permissions: Vec<String>,

    /// Enable a tool that is off by default; may be repeated
    #[arg(long = "enable", value_name = "NAME")]
    pub enabled: Vec<String>,

    #[command(flatten)]
    pub home: Home,
}
