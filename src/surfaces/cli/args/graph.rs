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
