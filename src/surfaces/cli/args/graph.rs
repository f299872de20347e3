//! `flowstone graph` and its subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Home;

/// Checks graph specs, and turns them into flows
///
/// A graph spec is a JSON file of nodes and edges. `flowstone run agent.json` runs it like any flow.
#[derive(Debug, Args)]
pub struct Graph {
    #[command(subcommand)]
    pub command: GraphCommand,
}

#[derive(Debug, Subcommand)]
pub enum GraphCommand {
    Eject(GraphEject),
    Import(GraphImport),
    Schema(GraphSchema),
    Validate(GraphValidate),
}

/// Prints the flow that a graph spec is compiled to
///
/// The flow uses the project's tools and model connections. Save it as a flow file to continue in Clojure.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone graph eject agent.json
  flowstone graph eject agent.json > agent.edn")]
pub struct GraphEject {
    /// The graph spec
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Makes a flow file of a graph spec or a behaviour tree
///
/// The flow does what the file does, and no longer depends on it. Without `--to`, the flow is printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone graph import agent.json --to flows/agent.edn
  flowstone graph import trees/release.yaml > flows/release.edn")]
pub struct GraphImport {
    /// The graph spec (.json) or the behaviour tree (.yaml, .json)
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The flow file to write; an existing file is not replaced
    #[arg(long, value_name = "FLOW", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the JSON Schema (2020-12) of graph specs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone graph schema > graph-spec.schema.json")]
pub struct GraphSchema {}

/// Reports all problems of a graph spec
///
/// Warnings name what the project lacks for it, such as tools and models.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone graph validate agent.json
  flowstone graph validate agent.json --json")]
pub struct GraphValidate {
    /// The graph spec
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
