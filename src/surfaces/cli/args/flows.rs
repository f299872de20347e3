//! Arguments of `flowstone flows`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Home;

/// Shows which flows from elsewhere are trusted, and with which permissions
#[derive(Debug, Args)]
pub struct Flows {
    #[command(subcommand)]
    pub command: FlowsCommand,
}

#[derive(Debug, Subcommand)]
pub enum FlowsCommand {
    Trust(FlowsTrust),
    Trusted(FlowsTrusted),
    Untrust(FlowsUntrust),
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
