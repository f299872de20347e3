//! `flowstone resources` and its verbs.

use clap::{Args, Subcommand, ValueEnum};
use flowstone_engine::ports::ResourceSort;
use flowstone_engine::resource::{ResourceKind, Tier};

use super::{Home, Search, SearchIndex};

/// Lists, reads and keeps what has a `res://` name: stored results, files, trees, tables, keys
#[derive(Debug, Args)]
pub struct Resources {
    #[command(subcommand)]
    pub command: ResourcesCommand,
}

#[derive(Debug, Subcommand)]
pub enum ResourcesCommand {
    Get(ResourcesGet),
    List(ResourcesList),
    Search(Search),
    SearchIndex(SearchIndex),
}

/// Shows what is known of a resource
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources get res://v1/ws/local/result/kv/report:latest")]
pub struct ResourcesGet {
    /// The resource: its `res://` name, or the end of it where only one ends so
    pub uri: String,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists resources, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources list
  flowstone resources list --type blob --type file --tier ephemeral
  flowstone resources list --run 06c2k3 --json
  flowstone resources list --prefix file/ --sort name --limit 20")]
pub struct ResourcesList {
    /// Only of this kind; may be repeated
    #[arg(long = "type", value_name = "KIND", value_parser = kind)]
    pub kinds: Vec<ResourceKind>,

    /// Only those whose name starts so, with or without `res://v1/ws/local/`
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,

    /// Only what this run made, also the outputs of its steps: its id, or the beginning of it
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// Only those of this tier
    #[arg(long, value_parser = tier)]
    pub tier: Option<Tier>,

    /// Also what was deleted or has expired, as long as it is remembered
    #[arg(long)]
    pub all: bool,

    #[arg(long, value_enum, default_value_t = ResourcesSort::Time, value_name = "ORDER")]
    pub sort: ResourcesSort,

    /// As many at once
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub limit: u64,

    /// Go on where a list ended, as that list says
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResourcesSort {
    /// By name
    Name,
    /// The newest first
    Time,
}

impl From<ResourcesSort> for ResourceSort {
    fn from(sort: ResourcesSort) -> ResourceSort {
        match sort {
            ResourcesSort::Name => ResourceSort::Name,
            ResourcesSort::Time => ResourceSort::Created,
        }
    }
}

fn kind(text: &str) -> Result<ResourceKind, String> {
    ResourceKind::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = ResourceKind::NAMES.iter().map(|(_, name)| *name).collect();
        format!("there are {}", names.join(", "))
    })
}

fn tier(text: &str) -> Result<Tier, String> {
    Tier::from_name(text).ok_or_else(|| "there are retained and ephemeral".to_owned())
}
