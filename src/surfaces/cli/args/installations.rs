//! Arguments of the commands about installations and packages.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use flowstone_engine::installation::InstallationName;
use flowstone_engine::registry::DEFAULT_WORKSPACE;

use super::Home;

/// Installs a flow: its runs use connections and setup values of their own
///
/// Without --digest, what the flow needs is shown. A flow of the registry is installed in its released version; a file, a folder,
/// an archive, a URL or a git repository is a package, which is kept apart from the flows of the project. No code of it runs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows install report
  flowstone flows install report --workspace acme --as monthly
  flowstone flows install report-1.tar.gz --digest 5f2c...
  flowstone flows install https://example.com/report.tar.gz#sha256=5f2c...
  flowstone flows install git+https://example.com/flows.git@v1.2")]
pub struct FlowsInstall {
    /// A flow of the registry, a flow file, a folder with a flow.edn, a .tar.gz or .zip file, a URL, or git+URL@REVISION
    #[arg(value_name = "SLUG|PATH|URL", value_hint = ValueHint::AnyPath)]
    pub source: String,

    /// The name of the installation [default: the slug of the flow]
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,

    /// The workspace that the installation belongs to
    #[arg(long, value_name = "NAME", default_value = DEFAULT_WORKSPACE)]
    pub workspace: String,

    /// The SHA-256 that the package must have; needed for a URL
    #[arg(long, value_name = "SHA256")]
    pub digest: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Gives an installation its connections, setup values and limits, or shows what it needs
///
/// An installation keeps its version until it is upgraded. With --auto-upgrade on, a start uses the newest release, unless
/// that needs more than somebody has agreed to.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows configure report --check
  flowstone flows configure acme/monthly --set ai.conn=acme-openai --setup '{\"region\": \"EU\"}'
  flowstone flows configure report --upgrade
  flowstone flows configure report --file bindings.edn")]
pub struct FlowsConfigure {
    /// The installation: NAME, or WORKSPACE/NAME
    #[arg(value_name = "[WORKSPACE/]NAME", value_parser = installation)]
    pub name: InstallationName,

    /// Bind a slot to a connection, as in ai.conn=openai-prod, or to none, as in ai.conn=; may be repeated
    #[arg(long = "set", value_name = "SLOT.conn=NAME", value_parser = set)]
    pub set: Vec<(String, String)>,

    /// Values of the flow's setup forms: JSON or EDN, or `@file`; a value that is null is taken away
    #[arg(long, value_name = "JSON|EDN|@FILE", allow_hyphen_values = true)]
    pub setup: Option<String>,

    /// File with bindings: {:profile {:autoUpgrade false} :bindings {:ai {:conn "openai"}} :activation {:region "EU"}}
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// Whether a start uses the newest release, if it needs nothing more
    #[arg(long, value_name = "on|off", value_parser = on_off)]
    pub auto_upgrade: Option<bool>,

    /// How many tokens models may use in all its runs together, checked before each call; 0: as many as the author allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub max_tokens: Option<i64>,

    /// Use the released version from now on, and agree to what it needs
    #[arg(long)]
    pub upgrade: bool,

    /// Change nothing; fail unless the installation is ready to run
    #[arg(long, conflicts_with_all = ["set", "setup", "file", "auto_upgrade", "max_tokens", "upgrade"])]
    pub check: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists installations, and whether they are ready to run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows installations
  flowstone flows installations --workspace acme --json")]
pub struct FlowsInstallations {
    /// Only those of this workspace
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Removes an installation; what its runs have made stays
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows uninstall acme/monthly")]
pub struct FlowsUninstall {
    /// The installation: NAME, or WORKSPACE/NAME
    #[arg(value_name = "[WORKSPACE/]NAME", value_parser = installation)]
    pub name: InstallationName,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Makes a package of a flow, to install it elsewhere
///
/// A package has the files of one version and nothing else: no bindings, settings, secrets or tests. The same version gives
/// the same package. Its SHA-256 is printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone flows pack report
  flowstone flows pack report@4 --to /tmp/report-4.tar.gz")]
pub struct FlowsPack {
    /// The flow, and optionally its version: SLUG, SLUG@4, SLUG@draft [default: the released version]
    #[arg(value_name = "SLUG[@VERSION]")]
    pub flow: String,

    /// The file to write [default: SLUG-VERSION.tar.gz]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Parses `NAME` or `WORKSPACE/NAME`.
pub fn installation(text: &str) -> Result<InstallationName, String> {
    let (workspace, name) = text.split_once('/').unwrap_or((DEFAULT_WORKSPACE, text));
    Ok(InstallationName {
        workspace: workspace.to_owned(),
        name: name.to_owned(),
    })
}

/// Parses `SLOT.conn=NAME`; the name may be missing.
fn set(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').and_then(|(slot, name)| {
        let slot = slot.trim().trim_start_matches(':').strip_suffix(".conn")?;
        Some((slot, name.trim().trim_start_matches(':')))
    });
    match parts {
        Some((slot, name)) if !slot.is_empty() => Ok((slot.to_owned(), name.to_owned())),
        _ => Err("a slot is bound by its name, such as ai.conn=openai-prod".to_owned()),
    }
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("it is `on` or `off`".to_owned()),
    }
}
