//! `flowstone resources` and its subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use flowstone_engine::ports::ResourceSort;
use flowstone_engine::resource::{ResourceKind, Tier};

use super::{Home, Search, SearchIndex};

/// Lists, reads and stores resources: results, files, source trees, tables, keys
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

/// A resource, and the format of the output.
#[derive(Debug, Args)]
pub struct OneResource {
    /// The resource: its `res://` name, or the part of the name after the workspace
    pub uri: String,

    #[command(flatten)]
    pub output: ResourcesOutput,
}

/// The project, and the format of the output.
#[derive(Debug, Args)]
pub struct ResourcesOutput {
    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object, also on a terminal
    #[arg(long)]
    pub json: bool,
}

/// Removes a stored result, a file or a key
///
/// The next `flowstone gc` removes its bytes, unless another resource has the same contents. A resource that an
/// unfinished run refers to is only removed with --force.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources delete file/reports/may.csv
  flowstone resources delete res://v1/ws/local/result/kv/report:latest --yes")]
pub struct ResourcesDelete {
    #[command(flatten)]
    pub one: OneResource,

    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,

    /// Remove it even if an unfinished run needs it
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

    /// Maximum number of lines, items, rows or files
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub limit: u64,

    /// Show all of it
    #[arg(long, conflicts_with = "limit")]
    pub full: bool,

    /// Only this partition of a table; may be repeated
    #[arg(long = "partition", value_name = "KEY")]
    pub partitions: Vec<String>,
}

/// Stores a file, and prints a reference to it that can be used in a run's input
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources upload may.csv
  flowstone resources upload may.csv --folder reports --replace
  date | flowstone resources upload - --name today.txt")]
pub struct ResourcesUpload {
    /// The file, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Name of the resource [default: the file's name]
    #[arg(long)]
    pub name: Option<String>,

    /// Content type, such as text/csv [default: by the extension of the name]
    #[arg(long, value_name = "TYPE", value_parser = content_type)]
    pub content_type: Option<String>,

    /// Store it in this folder under a permanent `res://` name, made of folder and name
    #[arg(long)]
    pub folder: Option<String>,

    /// Replace the file of that name in that folder
    #[arg(long, requires = "folder")]
    pub replace: bool,

    #[command(flatten)]
    pub output: ResourcesOutput,
}

/// Makes a signed link to a resource, or checks one
///
/// The link contains the resource and an expiry time, and is signed with a key that stays in the project. A server of
/// this project answers it; `--check` shows what a link refers to.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources url file/reports/may.csv --ttl 900
  flowstone resources url --check 'http://localhost:8787/api/resources/content?uri=...'")]
pub struct ResourcesUrl {
    /// The resource: its `res://` name, or the part of the name after the workspace; with --check, the link
    pub uri: String,

    /// How many seconds the link is valid
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(i64).range(60..=86_400))]
    pub ttl: i64,

    /// Show what a link refers to, and when it expires
    #[arg(long, conflicts_with = "ttl")]
    pub check: bool,

    #[command(flatten)]
    pub output: ResourcesOutput,
}

/// Lists the resources that a run, or one of its steps, created
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

/// Lists the resources that a run created: stored results, outputs of steps, its output
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources workflow list 06c2k3")]
pub struct WorkflowList {
    /// The run's id, or the beginning of the id
    pub run: String,

    #[command(flatten)]
    pub output: ResourcesOutput,
}

/// Lists the resources that a step of a run created
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone resources workflow step 06c2k3 fetch")]
pub struct WorkflowStep {
    /// The run's id, or the beginning of the id
    pub run: String,

    /// The step's id, or its path
    pub step: String,

    #[command(flatten)]
    pub output: ResourcesOutput,
}

/// Shows the metadata of a resource
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

/// Lists resources, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone resources list
  flowstone resources list --type blob --type file --tier ephemeral
  flowstone resources list --run 06c2k3 --json
  flowstone resources list --prefix file/ --sort name --limit 20")]
pub struct ResourcesList {
    /// Only resources of this kind; may be repeated
    #[arg(long = "type", value_name = "KIND", value_parser = kind)]
    pub kinds: Vec<ResourceKind>,

    /// Only resources whose name begins with this, with or without `res://v1/ws/local/`
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,

    /// Only resources that this run or its steps created: the run's id, or the beginning of the id
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// Only resources of this tier
    #[arg(long, value_parser = tier)]
    pub tier: Option<Tier>,

    /// Also resources that were deleted or have expired, as long as their names are kept
    #[arg(long)]
    pub all: bool,

    #[arg(long, value_enum, default_value_t = ResourcesSort::Time, value_name = "ORDER")]
    pub sort: ResourcesSort,

    /// Maximum number of resources on a page
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub limit: u64,

    /// Continue after an earlier page, with the cursor that it printed
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<String>,

    #[command(flatten)]
    pub output: ResourcesOutput,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResourcesSort {
    /// By name
    Name,
    /// Newest first
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
