//! `flowstone runs fork`: starts a new run with results of an old one.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use flowstone_engine::{ForkOptions, Setting};
use serde_json::json;

use crate::cli::args::{Home, Permits, RunLimits, Show};
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::{of_engine_error, tell};
use crate::cli::report::Report;
use crate::cli::run::{load_file, watched};
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, input, output};

/// Starts a run that takes over the results of another run up to a step
///
/// The named step and everything after it is performed again. Without --at, no results are taken over.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs fork r3 --at summarize
  flowstone runs fork r3 --at send --flow flows/orders.edn --reuse
  flowstone runs fork r3 --at send --set input.limit=5 --set 'fetch.items=[1 2]'")]
pub struct RunsFork {
    /// The run's id, or the beginning of the id
    pub id: String,

    /// The first step to perform again, by its path in `runs show`
    #[arg(long, value_name = "STEP")]
    pub at: Option<String>,

    /// Continue with this flow instead of the run's own
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub flow: Option<PathBuf>,

    /// Replace a value in the input, or in the result of a step that is kept; EDN or JSON
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,

    /// Also keep the results of later steps whose requests have not changed
    #[arg(long)]
    pub reuse: bool,

    /// Only create the run; `runs resume` executes it
    #[arg(long)]
    pub no_resume: bool,

    #[command(flatten)]
    pub limits: RunLimits,

    #[command(flatten)]
    pub permits: Permits,

    #[command(flatten)]
    pub home: Home,

    #[command(flatten)]
    pub show: Show,
}

/// Performs the command.
pub fn run(args: &RunsFork, app: &dyn App) -> Result<Exit, Report> {
    let settings: Result<Vec<Setting>, Report> =
        args.set.iter().map(|text| setting(text)).collect();
    let settings = match settings {
        Ok(settings) => settings,
        Err(report) => {
            output::failure(&report, args.show.json);
            return Ok(Exit::Usage);
        }
    };
    let project = Project::with(&args.home, &args.limits, &args.permits);
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::Existing)?;
        let flow = match &args.flow {
            Some(file) => Some(load_file(&engine, file, args.show.json)?),
            None => None,
        };
        let options = ForkOptions {
            at: args.at.clone(),
            flow,
            settings,
            reuse: args.reuse,
        };
        let forked = async {
            let origin = engine.find_run(&args.id).await?;
            engine.fork(&origin.id, options).await
        };
        let fork = forked.await.map_err(|error| of_engine_error(&error))?;
        if args.no_resume {
            if args.show.json {
                output::json(&json!({"ok": true, "run": fork.as_str(), "status": "running"}));
            } else {
                output::data(&format!("{fork}\n"));
                output::note(&format!("resume it with: flowstone runs resume {fork}"));
            }
            return Ok(Exit::Completed);
        }
        let (observer, options) = watched(&engine, &args.show);
        let outcome = engine
            .execute(&fork, observer, options)
            .await
            .map_err(|error| of_engine_error(&error))?;
        Ok(tell(&fork, &outcome, args.show.json))
    })
}

fn setting(text: &str) -> Result<Setting, Report> {
    let Some((path, value)) = text.split_once('=') else {
        let message = format!("`--set {text}` has no value");
        return Err(Report::error("E0921", message)
            .hint("write it as --set input.key=value or --set step.key=value"));
    };
    Ok(Setting {
        path: path.to_owned(),
        value: input::read(value, "--set")?,
    })
}
