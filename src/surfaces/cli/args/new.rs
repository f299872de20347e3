//! Arguments of `flowstone init` and `flowstone new`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// Makes a project: settings, a first flow with its test, and what git should leave out
///
/// Files that exist already stay as they are.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone init
  flowstone init desk && cd desk && flowstone run flows/hello.edn --input '{\"who\": \"Ada\"}'")]
pub struct Init {
    /// The folder of the project; made if it does not exist
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Print the files as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Writes a flow that works, to be changed, and its test
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone new invoices
  flowstone new support-desk --kind agent
  flowstone new prices --kind approval --folder lib/flows")]
pub struct New {
    /// The flow's slug: letters, digits, `-` and `_`, beginning with a letter
    pub slug: String,

    /// What the flow does
    #[arg(long, value_enum, default_value_t = FlowKind::Hello)]
    pub kind: FlowKind,

    /// The folder to write it to
    #[arg(long, value_name = "DIR", default_value = "flows", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Print the files as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FlowKind {
    /// An agent with a tool
    Agent,
    /// An agent with two tools; a person approves calls of one of them
    AgentApproval,
    /// A write that a person approves
    Approval,
    /// Input, a stored number, a result
    Hello,
    /// A request to an HTTP API
    Http,
    /// A run every morning
    Schedule,
}
