//! Arguments of `connections`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use flowstone_flow::bindings::Bindings;

use super::Home;

/// Lists and tests connections, logs in for them, and shows the prices of models
#[derive(Debug, Args)]
pub struct Connections {
    #[command(subcommand)]
    pub command: ConnectionsCommand,
}

#[derive(Debug, Subcommand)]
pub enum ConnectionsCommand {
    List(ConnectionsList),
    Login(ConnectionsLogin),
    Logout(ConnectionsLogout),
    Prices(ConnectionsPrices),
    Test(ConnectionsTest),
}

/// Lists the slots of flows and the connections of the project
///
/// For each: its type, its address, the secret that it needs, where the secret is looked up, and whether it is set.
/// Secrets are never printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone connections list
  flowstone connections list flows/summarize.edn --profile prod
  flowstone connections list --json")]
pub struct ConnectionsList {
    /// Flow files whose slots to list [default: all of the project]
    #[arg(value_name = "FLOW", value_hint = ValueHint::FilePath)]
    pub flows: Vec<PathBuf>,

    #[command(flatten)]
    pub bound: Bound,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Logs in for a connection with `:auth {:type :oauth}`
///
/// Prints a link. Open it in a browser of this machine and log in; the browser comes back to 127.0.0.1. With `--device`,
/// open the link on any machine and enter the code. The tokens are kept in the project's data, readable only by you, and
/// are renewed when flows use them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone connections login linear
  flowstone connections login linear --open
  flowstone connections login github --device")]
pub struct ConnectionsLogin {
    /// The connection
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Log in with a code, on any machine
    #[arg(long, conflicts_with_all = ["open", "port"])]
    pub device: bool,

    /// Open the link in the browser of this machine
    #[arg(long)]
    pub open: bool,

    /// Port that the browser comes back to, if the registered client has a fixed one [default: any]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    /// Maximum time to wait for the person, such as 90s or 15m
    #[arg(long, value_name = "DURATION", value_parser = crate::cli::duration::parse, default_value = "10m")]
    pub timeout: Duration,

    #[command(flatten)]
    pub bound: Bound,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Deletes the login of a connection
///
/// The authorization server is asked to end it, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone connections logout linear")]
pub struct ConnectionsLogout {
    /// The connection
    #[arg(value_name = "NAME")]
    pub name: String,

    #[command(flatten)]
    pub bound: Bound,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Shows the prices of models, in US dollars per million tokens
///
/// The prices come with the program. `:prices` and `:llm-providers` of flowstone.edn override them. A model that is in
/// neither has no price, and results of its calls have no `:cost-usd`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone connections prices
  flowstone connections prices gpt-5
  flowstone connections prices --json")]
pub struct ConnectionsPrices {
    /// Only models and providers whose name contains this
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    #[command(flatten)]
    pub bound: Bound,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Tests connections, and shows which servers answer
///
/// Requests a few tokens from a model, the base address of an HTTP API, and the handshake of an MCP server. The exit
/// code is 1 if one fails.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone connections test
  flowstone connections test ai --profile prod
  flowstone connections test crm --flow flows/sync.edn")]
pub struct ConnectionsTest {
    /// The connection or slot [default: all]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// Flow file whose slots to test; may be repeated [default: all of the project]
    #[arg(long = "flow", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub flows: Vec<PathBuf>,

    #[command(flatten)]
    pub bound: Bound,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Bindings of slots to connections.
#[derive(Debug, Args)]
pub struct Bound {
    /// Profile of flowstone.edn to take bindings, connections and secrets from
    #[arg(long, value_name = "NAME", env = "FLOWSTONE_PROFILE")]
    pub profile: Option<String>,

    /// Bind a slot to a connection, as in ai.conn=openai-prod; may be repeated
    #[arg(long = "set", value_name = "SLOT.conn=NAME", value_parser = set)]
    pub set: Vec<(String, String)>,
}

impl Bound {
    /// Returns the part that a run stores.
    pub fn bindings(&self) -> Bindings {
        let profile = self
            .profile
            .as_deref()
            .map(|name| name.trim_start_matches(':'));
        Bindings {
            profile: profile.filter(|it| !it.is_empty()).map(str::to_owned),
            set: self.set.iter().cloned().collect(),
            ..Bindings::default()
        }
    }
}

/// Parses `SLOT.conn=NAME`.
fn set(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').and_then(|(slot, name)| {
        let slot = slot.trim().trim_start_matches(':').strip_suffix(".conn")?;
        Some((slot, name.trim().trim_start_matches(':')))
    });
    match parts {
        Some((slot, name)) if !slot.is_empty() && !name.is_empty() => {
            Ok((slot.to_owned(), name.to_owned()))
        }
        _ => Err("a slot is bound by its name, such as ai.conn=openai-prod".to_owned()),
    }
}
