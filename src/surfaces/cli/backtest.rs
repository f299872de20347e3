//! `flowstone backtest`: replays past runs with an edited flow.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use flowstone_engine::SystemClock;
use flowstone_engine::ports::{Clock, RunStatus};
use flowstone_engine::{BacktestOptions, BacktestSummary, Difference, duration};
use serde_json::json;

use super::args::Home;
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::{Report, Shown};
use super::run::load_file;
use super::runtime::Runtime;
use super::{App, Open, output};

/// Replays past runs with an edited flow, and reports the differences
///
/// Requests that have not changed are answered from the journals. A changed request is answered with the recorded
/// result and marked; a new step ends the test of that run unless it only computes. Nothing is written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone backtest flows/triage.edn
  flowstone backtest flows/triage.edn --runs 'status=completed since=7d limit=20'
  flowstone backtest flows/triage.edn --runs r3 --live --json

A query is a run's id, or any of flow=, status=, since=, limit= with blanks between. Exit code 1: some run would
come to another end, or asks for something else.")]
pub struct Backtest {
    /// The edited flow
    #[arg(value_hint = ValueHint::FilePath)]
    pub flow: PathBuf,

    /// The runs to replay [default: the last 50 that are finished]
    #[arg(long, value_name = "QUERY", default_value = "limit=50")]
    pub runs: String,

    /// Perform reads and model calls that no journal answers
    #[arg(long)]
    pub live: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Performs the command.
pub fn run(args: &Backtest, app: &dyn App) -> Exit {
    let options = match query(args) {
        Ok(options) => options,
        Err(report) => {
            output::failure(&report, args.json);
            return Exit::Usage;
        }
    };
    test(args, app, options).unwrap_or_else(|report| {
        output::failure(&report, args.json);
        Exit::Failed
    })
}

fn test(args: &Backtest, app: &dyn App, options: BacktestOptions) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let summary = Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::Existing)?;
        let loaded = load_file(&engine, &args.flow, args.json)?;
        let summary = engine.backtest(&loaded, options).await;
        summary.map_err(|error| of_engine_error(&error))
    })?;
    if args.json {
        output::json(&in_json(&summary));
    } else {
        show(&summary);
    }
    let all_same = summary.tests.iter().all(|test| test.is_same()) && summary.skipped.is_empty();
    Ok(if all_same {
        Exit::Completed
    } else {
        Exit::Failed
    })
}

/// Parses a query: an id, or pairs such as `status=completed`.
fn query(args: &Backtest) -> Result<BacktestOptions, Report> {
    let mut options = BacktestOptions {
        live: args.live,
        ..BacktestOptions::default()
    };
    let filter = &mut options.runs;
    for part in args.runs.split_whitespace() {
        let Some((key, value)) = part.split_once('=') else {
            filter.id_prefix = Some(part.to_owned());
            continue;
        };
        let wrong = |wanted: &str| {
            Report::error("E0922", format!("`{part}` in `--runs` is not {wanted}"))
                .hint("write it as 'status=completed since=7d limit=20', or give a run's id")
        };
        match key {
            "flow" => filter.flow = Some(value.to_owned()),
            "limit" => filter.limit = value.parse().map_err(|_| wrong("a number"))?,
            "since" => {
                let span = duration::parse(value).ok_or_else(|| wrong("a duration"))?;
                options.since_ms = Some(SystemClock.now_ms() - duration::millis(span));
            }
            "status" => {
                let status = RunStatus::from_name(value).ok_or_else(|| wrong("a status"))?;
                filter.statuses.push(status);
            }
            _ => return Err(wrong("one of flow, limit, since, status")),
        }
    }
    Ok(options)
}

fn show(summary: &BacktestSummary) {
    for test in &summary.tests {
        let mut lines = format!("{}  {}\n", test.row.id, test.verdict());
        for met in &test.differences {
            lines += &difference(met);
        }
        match &test.now {
            Some(now) if *now != test.recorded => {
                lines += &format!("  end\n    was: {}\n    now: {now}\n", test.recorded);
            }
            Some(_) => {}
            None => lines += "  end not known without the calls that were not made (--live)\n",
        }
        output::data(&lines);
    }
    for (row, error) in &summary.skipped {
        output::data(&format!("{}  not tested\n", row.id));
        output::report(&of_engine_error(error));
    }
    let same = summary.tests.iter().filter(|test| test.is_same()).count();
    output::note(&format!(
        "{} tested, {same} the same, {} not tested",
        summary.tests.len(),
        summary.skipped.len()
    ));
}

fn difference(met: &Difference) -> String {
    let none = "nothing";
    let place = met.place.as_ref().map_or_else(String::new, |place| {
        format!(" ({}:{}:{})", place.file, place.line, place.column)
    });
    format!(
        "  {}{place} {}\n    was: {}\n    now: {}\n",
        met.path,
        met.answer.name(),
        met.recorded.as_deref().unwrap_or(none),
        met.requested.as_deref().unwrap_or(none),
    )
}

fn in_json(summary: &BacktestSummary) -> serde_json::Value {
    let tests: Vec<_> = summary
        .tests
        .iter()
        .map(|test| {
            json!({
                "run": test.row.id.as_str(),
                "verdict": test.verdict(),
                "answered": test.answered,
                "recorded": test.recorded,
                "now": test.now,
                "differences": test.differences.iter().map(difference_json).collect::<Vec<_>>(),
            })
        })
        .collect();
    let skipped: Vec<_> = summary
        .skipped
        .iter()
        .map(|(row, error)| json!({"run": row.id.as_str(), "error": of_engine_error(error).to_json()}))
        .collect();
    let same = summary.tests.iter().all(|test| test.is_same());
    json!({"ok": same && skipped.is_empty(), "tests": tests, "skipped": skipped})
}

/// Returns a difference as JSON. The names of the fields are stable.
pub fn difference_json(met: &Difference) -> serde_json::Value {
    json!({
        "step": met.path,
        "recorded": met.recorded,
        "requested": met.requested,
        "answer": met.answer.name(),
        "file": met.place.as_ref().map(|place| &place.file),
        "line": met.place.as_ref().map(|place| place.line),
        "column": met.place.as_ref().map(|place| place.column),
    })
}
