//! Arguments of `flowstone search`, `flowstone resources search` and `flowstone resources search-index`.

use clap::{Args, Subcommand};
use flowstone_engine::ports::SearchTarget;
use flowstone_project::search::{Ask, Hydrate, Mode};

use super::Home;

/// Finds resources, flows, runs and connections by words, and by meaning if an embedder is configured
///
/// The query consists of words, "phrases in quotes", -words that must not occur, and prefixes*; nothing else has a
/// special meaning.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone search refund policy
  flowstone search --targets flows,runs --limit 5 'invoice -draft'
  flowstone search --mode semantic 'customers who want their money back'
  flowstone resources search --path-prefix result/run/ --hydrate 'late fee'")]
pub struct Search {
    /// The words to search for
    #[arg(required = true, value_name = "QUERY")]
    pub query: Vec<String>,

    /// What to search: resources, flows, runs, connections; several with commas
    #[arg(long, value_name = "TARGETS", value_delimiter = ',', value_parser = target)]
    pub targets: Vec<SearchTarget>,

    /// Maximum number of results per target
    #[arg(long, value_name = "N", default_value_t = Ask::LIMIT.2 as u64,
          value_parser = clap::value_parser!(u64).range(Ask::LIMIT.0 as u64..=Ask::LIMIT.1 as u64))]
    pub limit: u64,

    /// Kind of search: keyword, semantic or hybrid
    #[arg(long, value_parser = mode)]
    pub mode: Option<Mode>,

    /// Include the contents of the first resources
    #[arg(long)]
    pub hydrate: bool,

    /// How many resources to include contents of
    #[arg(long, value_name = "N", default_value_t = 5, requires = "hydrate",
          value_parser = clap::value_parser!(u64).range(1..=Hydrate::MOST.0 as u64))]
    pub top_k: u64,

    /// Maximum number of characters per resource
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "hydrate",
          value_parser = clap::value_parser!(u64).range(1..=Hydrate::MOST.1 as u64))]
    pub max_chars: u64,

    /// Only resources in this store: local
    #[arg(long, value_name = "NAME")]
    pub storage_backend: Option<String>,

    /// Only resources in this folder, such as file or result/run
    #[arg(long, value_name = "FOLDER")]
    pub storage_root: Option<String>,

    /// Only resources whose path begins with this
    #[arg(long, value_name = "PREFIX")]
    pub path_prefix: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows and changes the search index of resources
#[derive(Debug, Args)]
pub struct SearchIndex {
    #[command(subcommand)]
    pub command: SearchIndexCommand,
}

#[derive(Debug, Subcommand)]
pub enum SearchIndexCommand {
    /// Removes the custom text, tags and source of a resource from the index; name and contents stay indexed
    #[command(after_help = "Example:
  flowstone resources search-index clear file/report.md")]
    Clear(SearchIndexOf),
    Reindex(SearchIndexReindex),
    /// Shows the index entry of a resource
    #[command(after_help = "Example:
  flowstone resources search-index show file/report.md")]
    Show(SearchIndexOf),
    Update(SearchIndexUpdate),
}

/// A resource, and how to print its index entry.
#[derive(Debug, Args)]
pub struct SearchIndexOf {
    /// The resource: its `res://` name, or the end of it if no other name ends the same way
    pub uri: String,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Indexes one resource again, or everything
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources search-index reindex file/report.md
  flowstone resources search-index reindex --all")]
pub struct SearchIndexReindex {
    /// The resource: its `res://` name, or the end of it if no other name ends the same way
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub uri: Option<String>,

    /// Index all resources, flows, runs and connections
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Sets by which text, tags and source a resource is found, beside its name and contents; options that are not given
/// keep their value
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources search-index update file/report.md --tag finance --tag 2026 --label 'Monthly report'")]
pub struct SearchIndexUpdate {
    /// The resource: its `res://` name, or the end of it if no other name ends the same way
    pub uri: String,

    /// Additional text to find it by
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,

    /// Replace its tags; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,

    /// A label for its source
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,

    /// Whether to index its contents too
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
