//! `flowstone runs url`: creates a link to the page of a run.

use clap::Args;
use serde_json::json;

use super::ask;
use crate::cli::args::Home;
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, output};
use crate::json::instant;

/// Prints a link to the page of a run, which anyone may open for a while
///
/// The page shows the run's status, input and result; secrets are hidden, and nothing can be decided there. The link leads to
/// the server of `:server :url` in flowstone.edn, or else to the server that runs in this project.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs url r3
  flowstone runs url r3 --ttl 86400")]
pub struct RunsUrl {
    /// The run's id, or the beginning of the id
    pub id: String,

    /// How many seconds the link is valid
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(i64).range(60..=86_400))]
    pub ttl: i64,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Creates the link.
pub(super) fn run(args: &RunsUrl, app: &dyn App) -> Result<Exit, Report> {
    let (url, expires_ms) = ask(app, &args.home, async |engine| {
        let run = engine.find_run(&args.id).await?.id;
        engine.run_link(&run, args.ttl).await
    })?;
    if args.json {
        output::json(&json!({"ok": true, "url": url, "expiresAt": instant(expires_ms)}));
    } else {
        output::data(&url);
    }
    Ok(Exit::Completed)
}
