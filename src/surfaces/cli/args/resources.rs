//! `flowstone resources` and its verbs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
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
    Delete(ResourcesDelete),
    Get(ResourcesGet),
    List(ResourcesList),
    Read(ResourcesRead),
    Search(Search),
    SearchIndex(SearchIndex),
    Table(super::ResourcesTable),
    Upload(ResourcesUpload),
    Url(ResourcesUrl),
    Workflow(ResourcesWorkflow),
}

/// Which resource, and how it is told.
#[derive(Debug, Args)]
pub struct OneResource {
    /// The resource: its `res://` name, or the part of it after the workspace
    pub uri: String,

    #[command(flatten)]
    pub told: ResourcesTold,
}

/// Where resources are, and how they are told.
#[derive(Debug, Args)]
pub struct ResourcesTold {
    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object, also on a terminal
    #[arg(long)]
    pub json: bool,
}

/// Removes a stored result, a file or a key
///
/// Its bytes go with the next `flowstone gc`, unless something else has the same contents. What a run that is not over
/// mentions is only removed with --force.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources delete file/reports/may.csv
  flowstone resources delete res://v1/ws/local/result/kv/report:latest --yes")]
pub struct ResourcesDelete {
    #[command(flatten)]
    pub one: OneResource,

    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,

    /// Also where a run that is not over needs it
    #[arg(long)]
    pub force: bool,
}

/// Shows the beginning of a resource: text, data, rows, or a list of files
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources read result/table/orders --limit 5
  flowstone resources read file/reports/may.csv --full
  flowstone resources read result/run/06c2k3/flow-output")]
pub struct ResourcesRead {
    #[command(flatten)]
    pub one: OneResource,

    /// As many lines, items, rows or files
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub limit: u64,

    /// All of it
    #[arg(long, conflicts_with = "limit")]
    pub full: bool,

    /// Of a table with partitions: only this one; may be repeated
    #[arg(long = "partition", value_name = "KEY")]
    pub partitions: Vec<String>,
}

/// Stores a file, and prints a reference to it that a run's input may hold
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources upload may.csv
  flowstone resources upload may.csv --folder reports --replace
  date | flowstone resources upload - --name today.txt")]
pub struct ResourcesUpload {
    /// The file, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// What it is called [default: the file's name]
    #[arg(long)]
    pub name: Option<String>,

    /// What it is, such as text/csv [default: by the end of its name]
    #[arg(long, value_name = "TYPE", value_parser = content_type)]
    pub content_type: Option<String>,

    /// Keep it in this folder: then its `res://` name is made of folder and name, and stays
    #[arg(long)]
    pub folder: Option<String>,

    /// Put it in the place of the file of that name in that folder
    #[arg(long, requires = "folder")]
    pub replace: bool,

    #[command(flatten)]
    pub told: ResourcesTold,
}

/// Makes a signed link to a resource, or checks one
///
/// A link names the resource and when it ends, and is signed with a key that stays in the project. A server of this project
/// answers it; `--check` says here what a link leads to.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources url file/reports/may.csv --ttl 900
  flowstone resources url --check 'http://localhost:8787/api/resources/content?uri=...'")]
pub struct ResourcesUrl {
    /// The resource: its `res://` name, or the part of it after the workspace; with --check, the link
    pub uri: String,

    /// Seconds that the link is good for
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(i64).range(60..=86_400))]
    pub ttl: i64,

    /// Say what a link leads to, and until when
    #[arg(long, conflicts_with = "ttl")]
    pub check: bool,

    #[command(flatten)]
    pub told: ResourcesTold,
}

/// Lists what a run, or one of its steps, made
#[derive(Debug, Args)]
pub struct ResourcesWorkflow {
    #[command(subcommand)]
    pub command: WorkflowCommand,
}

#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    List(WorkflowList),
    Step(WorkflowStep),
}

/// Lists what a run made: stored results, outputs of steps, its output
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources workflow list 06c2k3")]
pub struct WorkflowList {
    /// The run's id, or the beginning of it
    pub run: String,

    #[command(flatten)]
    pub told: ResourcesTold,
}

/// Lists what a step of a run made
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources workflow step 06c2k3 fetch")]
pub struct WorkflowStep {
    /// The run's id, or the beginning of it
    pub run: String,

    /// The step's id, or its path
    pub step: String,

    #[command(flatten)]
    pub told: ResourcesTold,
}

/// Shows what is known of a resource
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources get res://v1/ws/local/result/kv/report:latest
  flowstone resources get file/reports/may.csv --out may.csv")]
pub struct ResourcesGet {
    #[command(flatten)]
    pub one: OneResource,

    /// Also write its contents to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
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
    pub told: ResourcesTold,
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

fn content_type(text: &str) -> Result<String, String> {
    let is_token = |part: &str| !part.is_empty() && !part.contains(['/', ' ']) && part.is_ascii();
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is_type = essence
        .split_once('/')
        .is_some_and(|(kind, rest)| is_token(kind) && is_token(rest));
    match is_type && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err("a media type has two parts, as in text/csv".to_owned()),
    }
}

fn tier(text: &str) -> Result<Tier, String> {
    Tier::from_name(text).ok_or_else(|| "there are retained and ephemeral".to_owned())
}
