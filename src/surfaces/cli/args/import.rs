//! `flowstone import` and its subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Home;

/// Makes flow files of the workflows of other systems
#[derive(Debug, Args)]
pub struct Import {
    #[command(subcommand)]
    pub command: ImportCommand,
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    N8n(ImportN8n),
}

/// Makes a flow file of a workflow that n8n exported
///
/// Triggers become interfaces and schedules, nodes become steps. What is not taken over is listed, and is at the top of the
/// flow file. Without `--to`, the flow is printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone import n8n orders.json --to flows/orders.edn
  flowstone import n8n orders.json --slug order-sync > flows/order-sync.edn")]
pub struct ImportN8n {
    /// The exported workflow (.json)
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The flow file to write; an existing file is not replaced
    #[arg(long, value_name = "FLOW", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,

    /// The slug of the flow; by default, it is made of the name of the workflow
    #[arg(long, value_name = "SLUG")]
    pub slug: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
