//! `flowstone flows` as it is typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Home;

/// Shows which flows from elsewhere are trusted, and with what
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

/// Shows what a flow needs, and lets it have that
///
/// A flow whose file is outside of the project, and one of an imported run, starts without permissions. What is written out
/// in its steps is shown, and recorded in the project's `.flowstone` folder where you agree.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows trust ../elsewhere/report.edn
  flowstone flows trust ../elsewhere/report.edn --yes")]
pub struct FlowsTrust {
    /// The flow file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Record it without a question
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub home: Home,
}

/// Lists the flows that are trusted, with what each may touch
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

/// Takes a flow's permissions away
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows untrust report")]
pub struct FlowsUntrust {
    /// The slug of the flow
    pub slug: String,

    #[command(flatten)]
    pub home: Home,
}
