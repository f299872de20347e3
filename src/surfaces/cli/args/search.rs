//! Looking for things: `flowstone search`, `flowstone resources search` and `flowstone resources search-index`.

use clap::{Args, Subcommand};
use flowstone_engine::ports::SearchTarget;
use flowstone_engine::search::{Ask, Hydrate, Mode};

use super::Home;

/// Finds resources, flows, runs and connections by their words, and by their meaning where there is an embedder
///
/// The query is words, "phrases in quotes", -words that must not occur, and begin*; nothing else in it has a meaning.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone search refund policy
  flowstone search --targets flows,runs --limit 5 'invoice -draft'
  flowstone search --mode semantic 'customers who want their money back'
  flowstone resources search --path-prefix result/run/ --hydrate 'late fee'")]
pub struct Search {
    /// What to look for
    #[arg(required = true, value_name = "QUERY")]
    pub query: Vec<String>,

    /// Where to look: resources, flows, runs, connections; several with commas between them
    #[arg(long, value_name = "TARGETS", value_delimiter = ',', value_parser = target)]
    pub targets: Vec<SearchTarget>,

    /// As many of each target at most
    #[arg(long, value_name = "N", default_value_t = Ask::LIMIT.2 as u64,
          value_parser = clap::value_parser!(u64).range(Ask::LIMIT.0 as u64..=Ask::LIMIT.1 as u64))]
    pub limit: u64,

    /// keyword, semantic or hybrid
    #[arg(long, value_parser = mode)]
    pub mode: Option<Mode>,

    /// Bring along the contents of the first resources
    #[arg(long)]
    pub hydrate: bool,

    /// Of so many resources
    #[arg(long, value_name = "N", default_value_t = 5, requires = "hydrate",
          value_parser = clap::value_parser!(u64).range(1..=Hydrate::MOST.0 as u64))]
    pub top_k: u64,

    /// So much of each
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "hydrate",
          value_parser = clap::value_parser!(u64).range(1..=Hydrate::MOST.1 as u64))]
    pub max_chars: u64,

    /// Only resources that are kept there: local
    #[arg(long, value_name = "NAME")]
    pub storage_backend: Option<String>,

    /// Only resources in this folder, such as file or result/run
    #[arg(long, value_name = "FOLDER")]
    pub storage_root: Option<String>,

    /// Only resources whose path starts so
    #[arg(long, value_name = "PREFIX")]
    pub path_prefix: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows and changes what a resource is found by
#[derive(Debug, Args)]
pub struct SearchIndex {
    #[command(subcommand)]
    pub command: SearchIndexCommand,
}

#[derive(Debug, Subcommand)]
pub enum SearchIndexCommand {
    Clear(SearchIndexOf),
    Reindex(SearchIndexReindex),
    Show(SearchIndexOf),
    Update(SearchIndexUpdate),
}

/// Shows what is indexed of a resource, or takes away what was said of it; its name and contents stay
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources search-index show file/report.md")]
pub struct SearchIndexOf {
    /// The resource: its `res://` name, or the end of it where only one ends so
    pub uri: String,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Indexes a resource anew, or everything
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources search-index reindex file/report.md
  flowstone resources search-index reindex --all")]
pub struct SearchIndexReindex {
    /// The resource: its `res://` name, or the end of it where only one ends so
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub uri: Option<String>,

    /// All resources, flows, runs and connections
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Says what a resource is found by, beside its name and its contents; what is not given stays
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources search-index update file/report.md --tag finance --tag 2026 --label 'Monthly report'")]
pub struct SearchIndexUpdate {
    /// The resource: its `res://` name, or the end of it where only one ends so
    pub uri: String,

    /// Words that are not in it
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,

    /// Takes the place of the tags it has; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,

    /// Where it comes from, in words
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,

    /// Whether its contents are indexed too
    #[arg(long, value_name = "true|false")]
    pub contents: Option<bool>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn target(text: &str) -> Result<SearchTarget, String> {
    SearchTarget::from_name(text).ok_or_else(|| {
        let names = SearchTarget::ALL.map(SearchTarget::name);
        format!("there are {}", names.join(", "))
    })
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::from_name(text).ok_or_else(|| format!("there are {}", Mode::NAMES.join(", ")))
}
