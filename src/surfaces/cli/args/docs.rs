//! Arguments of `flowstone docs` and `flowstone explain`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Finds and shows pages of the manual, which is in the program
#[derive(Debug, Args)]
pub struct Docs {
    #[command(subcommand)]
    pub command: DocsCommand,
}

#[derive(Debug, Subcommand)]
pub enum DocsCommand {
    Find(DocsFind),
    List(DocsList),
    Man(DocsMan),
    Show(DocsShow),
}

/// Finds the sections of the manual that answer a question best
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone docs find retry after a timeout
  flowstone docs find --limit 3 --json approval")]
pub struct DocsFind {
    /// The words to look for
    #[arg(required = true, value_name = "WORDS")]
    pub words: Vec<String>,

    /// Maximum number of sections
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=50))]
    pub limit: u64,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists the pages of the manual, without those of error codes
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone docs list
  flowstone docs list --json")]
pub struct DocsList {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the manual page of a command for `man`, or writes those of all commands
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone docs man runs fork | man -l -
  flowstone docs man --to ~/.local/share/man/man1")]
pub struct DocsMan {
    /// The command, such as `runs fork` [default: the page about the whole program]
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,

    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
    pub to: Option<PathBuf>,
}

/// Shows a page of the manual as Markdown
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone docs show guide/agents
  flowstone docs show agents --section 'Tools'
  flowstone docs show E0501 --json")]
pub struct DocsShow {
    /// The page, with or without its folder
    pub page: String,

    /// Show only the section with this heading
    #[arg(long, value_name = "HEADING")]
    pub section: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Explains an error code: what it means, why it happens, and what to do
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone explain E0501
  flowstone explain 501")]
pub struct Explain {
    /// The code, such as E0501
    pub code: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
