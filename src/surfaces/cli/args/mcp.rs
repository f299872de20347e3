//! Arguments of `mcp`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{Home, Permits, RunLimits};
use crate::cli::tokens::Right;
use crate::mcp::ToolSet;

/// Offers flows and the project to a client of the Model Context Protocol, on standard input and output
///
/// A client, such as a coding agent, starts this command and sees each flow with an interface of kind `:mcp` as a tool,
/// beside tools for inspecting the project. Runs are executed by this process, as by `flowstone serve`; they survive
/// its end. The client has the owner's rights, or those of `--scope`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone mcp
  flowstone mcp --scope read --scope run
  flowstone mcp --tools tree
  flowstone mcp --kit digest --permission test_run=allow
  flowstone mcp team/flows")]
pub struct Mcp {
    /// Flow files, or folders of flow files, to offer [default: flows/ in the project]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// A right of the client; may be repeated [default: all]
    #[arg(long = "scope", value_enum, value_name = "SCOPE")]
    pub scopes: Vec<Right>,

    /// The tools to offer the client; may be repeated [default: flows and workspace, and tree if the project has tree
    /// files in `trees` or `flows`]
    #[arg(long, value_enum, value_name = "SET", conflicts_with = "kit")]
    pub tools: Vec<ToolSet>,

    /// Offer the build kit instead: the tools that build, test and schedule this flow, which need not exist yet
    #[arg(long, value_name = "SLUG")]
    pub kit: Option<String>,

    /// Whether a tool of the build kit may be called: NAME=allow, NAME=ask or NAME=deny; may be repeated
    #[arg(long = "permission", value_name = "NAME=PERMISSION", requires = "kit")]
    pub permissions: Vec<String>,

    /// Also offer a tool of the build kit that is off by default; may be repeated
    #[arg(long = "enable", value_name = "NAME", requires = "kit")]
    pub enabled: Vec<String>,

    /// Maximum number of runs that one thread executes concurrently
    #[arg(long, value_name = "N", default_value = "256", value_parser = super::serve::concurrency)]
    pub concurrency: NonZeroUsize,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,

    #[command(flatten)]
    pub home: Home,
}
