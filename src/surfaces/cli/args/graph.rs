//! `flowstone graph` and its subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::Home;

/// Checks graph specs, turns them into flows, and draws flows
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
    Picture(GraphPicture),
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

/// Draws the steps of a flow, with its branches, and the path that a run took
///
/// The picture is made from the text of the flow: steps in their order, branches, repetitions, what runs concurrently, and agents
/// with their tools. With --run, each step shows how it ended, how often it was called, and how long it took.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone graph picture flows/expense-approval.edn > approval.svg
  flowstone graph picture refund --run 01JZ --to refund.svg
  flowstone graph picture refund --format mermaid")]
pub struct GraphPicture {
    /// The flow file, or the name of a flow
    #[arg(value_hint = ValueHint::FilePath)]
    pub flow: PathBuf,

    /// The language of the picture
    #[arg(long, value_enum, default_value_t = PictureFormat::Svg)]
    pub format: PictureFormat,

    /// Show what this run did
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,

    #[command(flatten)]
    pub home: Home,
}

/// The language of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PictureFormat {
    /// For Graphviz
    Dot,
    /// For Markdown pages that draw it
    Mermaid,
    Svg,
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
