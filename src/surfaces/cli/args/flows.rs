//! Arguments of `flowstone flows`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Home;

/// Lists and shows flows, and grants permissions to flows from elsewhere
#[derive(Debug, Args)]
pub struct Flows {
    #[command(subcommand)]
    pub command: FlowsCommand,
}

#[derive(Debug, Subcommand)]
pub enum FlowsCommand {
    List(FlowsList),
    Show(FlowsShow),
    Trust(FlowsTrust),
    Trusted(FlowsTrusted),
    Untrust(FlowsUntrust),
    Versions(FlowsVersions),
}

/// Lists the flows that `serve` would serve
///
/// For each: its slug, title, inputs, interfaces, schedules and version, which is the digest of its program.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows list
  flowstone flows list team/ extra.edn
  flowstone --server http://127.0.0.1:7373 flows list --json")]
pub struct FlowsList {
    /// Flow files, or folders of flow files [default: flows/]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows a flow: its inputs, interfaces, schedules and version
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows show report
  flowstone flows show report --json | jq .inputs")]
pub struct FlowsShow {
    /// The slug of the flow
    pub slug: String,

    /// File or folder with the flow; may be repeated [default: flows/]
    #[arg(long = "flows", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists the versions of a flow: the one in its file, and those of its runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows versions report
  flowstone flows versions report --json")]
pub struct FlowsVersions {
    /// The slug of the flow
    pub slug: String,

    /// File or folder with the flow; may be repeated [default: flows/]
    #[arg(long = "flows", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
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
