//! Arguments of the commands about versions of flows.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Home;

/// Adds a version of a flow to the registry
///
/// The flow is checked first. A version has the text of the flow and of everything that it includes; it never changes. It
/// is added if the file was made from the newest version, or has the same content as it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows push flows/report.edn --message 'Count weekends'
  flowstone flows push report --base 4
  flowstone --server https://flows.example.com flows push flows/report.edn")]
pub struct FlowsPush {
    /// The flow file, or the name of a flow of the project
    #[arg(value_hint = ValueHint::FilePath)]
    pub path: PathBuf,

    /// What changed [default: the forms that changed]
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,

    /// The version that the file was made from [default: the one that was last pushed or pulled here]
    #[arg(long, value_name = "N", conflicts_with = "force")]
    pub base: Option<i64>,

    /// Add the version whatever the newest one is
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub author: Author,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Who changes the registry.
#[derive(Debug, Clone, Args)]
pub struct Author {
    /// Your name in the registry; a server takes the name of your token [env: FLOWSTONE_AUTHOR=] [default: your user name]
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
}

impl Author {
    /// Returns the name.
    pub fn name(&self) -> String {
        let given = self.name.clone();
        let user = || {
            ["FLOWSTONE_AUTHOR", "USER", "LOGNAME", "USERNAME"]
                .iter()
                .find_map(|it| std::env::var(it).ok())
        };
        given.or_else(user).unwrap_or_else(|| "owner".to_owned())
    }
}

/// Writes a version of a flow to its file
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows pull report
  flowstone flows pull report@live --to /tmp/report.edn")]
pub struct FlowsPull {
    /// The flow, and optionally its version: SLUG, SLUG@4, SLUG@live
    #[arg(value_name = "SLUG[@VERSION]")]
    pub flow: String,

    /// The file to write [default: the file of the flow, or flows/SLUG.edn]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,

    /// Replace the file, even if it has changes that were not pushed
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows what changed between two versions of a flow, or between a version and its file
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows diff report 3 4
  flowstone flows diff report live draft
  flowstone flows diff report            # the newest version and the file")]
pub struct FlowsDiff {
    /// The slug of the flow
    pub slug: String,

    /// The earlier version: a number, `draft` or `live`
    #[arg(value_name = "A", default_value = "draft")]
    pub from: String,

    /// The later version [default: the file of the flow]
    #[arg(value_name = "B")]
    pub to: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Makes a version of a flow live
///
/// Schedules, interfaces and `flowstone run SLUG` use the live version from then on. Runs that have begun keep theirs.
#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
#[command(after_help = "Examples:
  flowstone flows release report
  flowstone flows release report --version 4 --message 'For the audit'")]
pub struct FlowsRelease {
    /// The slug of the flow
    pub slug: String,

    /// The version to release [default: the newest]
    #[arg(long, value_name = "N")]
    pub version: Option<i64>,

    /// A note for the log of releases
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,

    #[command(flatten)]
    pub author: Author,

    #[command(flatten)]
    pub key: DeployKey,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The key of guarded releases.
#[derive(Debug, Clone, Args)]
pub struct DeployKey {
    /// The deploy key, if the flow has `:deploy-key-required`; the project keeps it as the secret `deploy-key`
    #[arg(
        long = "deploy-key",
        value_name = "KEY",
        env = "FLOWSTONE_DEPLOY_KEY",
        hide_env_values = true
    )]
    pub key: Option<String>,
}

/// Makes the version live that was released before
///
/// Neither runs nor data change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows rollback report
  flowstone flows rollback report --to 2")]
pub struct FlowsRollback {
    /// The slug of the flow
    pub slug: String,

    /// The version to return to [default: the one that was released before]
    #[arg(long, value_name = "N")]
    pub to: Option<i64>,

    /// A note for the log of releases
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,

    #[command(flatten)]
    pub author: Author,

    #[command(flatten)]
    pub key: DeployKey,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Stops a flow from being started
///
/// Its schedules and interfaces stop, its runs end as they would, and its versions stay readable.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows archive report
  flowstone flows archive report --undo")]
pub struct FlowsArchive {
    /// The slug of the flow
    pub slug: String,

    /// End that the flow is archived
    #[arg(long)]
    pub undo: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
