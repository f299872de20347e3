//! `flowstone steps` and its subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{Home, Show};

/// Lists step types, shows their options, and performs single steps
#[derive(Debug, Args)]
pub struct Steps {
    #[command(subcommand)]
    pub command: StepsCommand,
}

#[derive(Debug, Subcommand)]
pub enum StepsCommand {
    List(StepsList),
    Run(StepsRun),
    Schema(StepsSchema),
    Show(StepsShow),
}

/// Lists the step types and their operations
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone steps list
  flowstone steps list --json")]
pub struct StepsList {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows what a step type does, its options, and examples
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone steps show kv
  flowstone steps show table query
  flowstone steps show http --json")]
pub struct StepsShow {
    /// The step type, with or without a colon
    pub kind: String,

    /// An operation of the step type
    pub operation: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the JSON Schema (2020-12) of a step type's config, or of one of its operations
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone steps schema http
  flowstone steps schema files read --tool
  flowstone steps schema kv get --result")]
pub struct StepsSchema {
    /// The step type, with or without a colon
    pub kind: String,

    /// An operation of the step type
    pub operation: Option<String>,

    /// The schema for models: names in snake_case, without the options that every step has
    #[arg(long, conflicts_with = "result")]
    pub tool: bool,

    /// The schema of the operation's result instead of its config
    #[arg(long, requires = "operation")]
    pub result: bool,
}

/// Performs one step, in a separate run
///
/// The config is JSON or EDN: inline, in a file (`@config.edn`) or on standard input (`-`). Its keys may be spelled as
/// in flows, in snake_case or in camelCase. The run is journaled like any other: `flowstone runs show` shows it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone steps run kv '{:operation :set :key \"greeting\" :value \"hello\"}'
  flowstone steps run kv '{\"operation\": \"get\", \"key\": \"greeting\"}' --json
  flowstone steps run table @query.edn --result-path rows.0
  flowstone steps run shop/fetch-orders '{:account-id \"a-1\"}' --flow flows/order-sync.edn")]
pub struct StepsRun {
    /// The step type, with or without a colon; with --flow, also one of its packaged steps
    pub kind: String,

    /// The step's config, JSON or EDN
    #[arg(
        default_value = "{}",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub config: String,

    /// Flow whose functions, templates, connections and packaged steps the step may use
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub flow: Option<PathBuf>,

    /// Show only this part of the result, such as rows.0 or body.items
    #[arg(long, value_name = "PATH")]
    pub result_path: Option<String>,

    /// Write the whole result to this file, as EDN, or as JSON if its name ends in .json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub result_file: Option<PathBuf>,

    /// Maximum depth of the result's preview
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub preview_depth: usize,

    /// Maximum number of items of a collection in the preview
    #[arg(long, value_name = "N", default_value_t = 25)]
    pub preview_items: usize,

    /// Maximum number of characters of a string in the preview
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub preview_chars: usize,

    /// Show the whole result
    #[arg(long)]
    pub full: bool,

    /// Idempotency key, by which the server recognises a repeated request
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,

    #[command(flatten)]
    pub home: Home,

    #[command(flatten)]
    pub show: Show,
}
