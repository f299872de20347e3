//! `flowstone key`: lists and replaces the keys that encrypt a project's secret inputs.

use clap::{Args, Subcommand};
use serde_json::json;

use super::args::Home;
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::Report;
use super::runtime::Runtime;
use super::{App, Open, output};

/// Shows and replaces the key that encrypts secret inputs
#[derive(Debug, Args)]
pub struct Key {
    #[command(subcommand)]
    pub command: KeyCommand,
}

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    Rotate(KeyRotate),
    Show(KeyShow),
}

/// Makes a new key and encrypts all secret inputs with it
///
/// The old keys are kept, because backups and exports may need them; `--forget` removes them. If the command is
/// interrupted, nothing is lost: run it again. Workers may keep running meanwhile.
///
/// With FLOWSTONE_KEY, set the variable to the new key and the old one, `NEW,OLD`, before you run this.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone key rotate
  flowstone key rotate --forget")]
pub struct KeyRotate {
    /// Remove the old keys afterwards: older backups can then no longer be decrypted
    #[arg(long)]
    pub forget: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists the keys by their ids; never prints a key
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone key show
  flowstone key show --json")]
pub struct KeyShow {
    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Performs the command.
pub fn run(args: &Key, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        KeyCommand::Rotate(args) => (rotate(args, app), args.json),
        KeyCommand::Show(args) => (show(args, app), args.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

fn rotate(args: &KeyRotate, app: &dyn App) -> Result<Exit, Report> {
    let (changed, keys) = Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(&args.home), Open::Existing)?;
        let rotated = engine.rotate_key(args.forget).await;
        let changed = rotated.map_err(|error| of_engine_error(&error))?;
        let keys = engine.keys().map_err(|error| of_engine_error(&error))?;
        Ok::<_, Report>((changed, keys))
    })?;
    let current = keys.current.unwrap_or_default();
    if args.json {
        output::json(&json!({
            "ok": true,
            "current": current,
            "old": keys.old,
            "place": keys.place,
            "runs": changed,
        }));
        return Ok(Exit::Completed);
    }
    let runs = match changed {
        1 => "1 run was encrypted with it".to_owned(),
        count => format!("{count} runs were encrypted with it"),
    };
    output::data(&format!("the key is {current} now; {runs}"));
    if !keys.old.is_empty() && !keys.is_environment {
        let old = keys.old.join(", ");
        output::note(&format!(
            "kept for backups and exports: {old} (`--forget` removes old keys)"
        ));
    }
    Ok(Exit::Completed)
}

fn show(args: &KeyShow, app: &dyn App) -> Result<Exit, Report> {
    let keys = Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(&args.home), Open::Existing)?;
        engine.keys().map_err(|error| of_engine_error(&error))
    })?;
    if args.json {
        output::json(&json!({
            "ok": true,
            "current": keys.current,
            "old": keys.old,
            "place": keys.place,
        }));
        return Ok(Exit::Completed);
    }
    let Some(current) = keys.current else {
        output::note("there is no key yet: the first secret input creates one");
        return Ok(Exit::Completed);
    };
    output::data(&format!("{current}  current, in {}", keys.place));
    for old in keys.old {
        output::data(&format!("{old}  old"));
    }
    Ok(Exit::Completed)
}
