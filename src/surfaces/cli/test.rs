//! `flowstone test`: a flow on a clock that skips time, replayed at its end, and killed wherever it can be killed.

mod args;
mod crash;
mod told;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_engine::codec;
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::trial::{self, Case, Told, TrialError, World};
use flowstone_lang::value::Value;
use serde_json::json;

pub use args::Test;

use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::pretty::pretty;
use super::progress::Terminal;
use super::report::Report;
use super::runtime::Runtime;
use super::{App, input, output, run};

/// The case that is taken where none is given, in the folder with the flow's name.
const CASE: &str = "test.edn";

/// Performs the command.
pub fn run(args: &Test, app: &dyn App) -> Exit {
    let case = match case(args) {
        Ok(case) => case,
        Err(report) => {
            output::failure(&report, args.json);
            return Exit::Usage;
        }
    };
    let done = match &args.trial {
        Some(home) => one_process(args, app, case, home),
        None => whole(args, app, case),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, args.json);
        Exit::Failed
    })
}

/// Gathers what the flow is tried with: the case beside the flow or the one that was named, and over it what stands on
/// the command line.
fn case(args: &Test) -> Result<Case, Report> {
    let file = match &args.case {
        Some(file) => Some(file.clone()),
        None => Some(args.file.with_extension("").join(CASE)).filter(|file| file.is_file()),
    };
    let mut case = match file {
        None => Case::default(),
        Some(file) => {
            let value = input::read(&format!("@{}", file.display()), "--case")?;
            Case::of_value(&value).map_err(|error| of_trial_error(&error))?
        }
    };
    if let Some(text) = &args.input {
        case.input = input::read(text, "--input")?;
    }
    if case.input.is_nil() {
        case.input = Value::map([]);
    }
    if let Some(invocation) = &args.invocation {
        case.invocation = Value::from(invocation.as_str());
    }
    case.live |= args.live;
    for file in &args.mocks {
        let mocks = input::read(&format!("@{}", file.display()), "--mock")?;
        case.add_mocks(&mocks)
            .map_err(|error| of_trial_error(&error))?;
    }
    for answer in &args.answers {
        let Some((target, value)) = answer.split_once('=') else {
            let words = format!("`{answer}` is no answer: there is no `=` in it");
            return Err(Report::error("E0926", words)
                .hint("give KEY=VALUE, such as --answer 'approval={:action :approve}'"));
        };
        let target = target.trim().trim_start_matches(':');
        case.add_answer(target, input::read(value, "--answer")?);
    }
    Ok(case)
}

/// One process of a trial, started by [`crash`]: dies at its point, or prints what came of the trial.
fn one_process(args: &Test, app: &dyn App, case: Case, home: &Path) -> Result<Exit, Report> {
    let told = play(args, app, &World::new(case, home, args.crash_at), true)?;
    output::json(&told::to_json(&told));
    Ok(Exit::Completed)
}

fn whole(args: &Test, app: &dyn App, case: Case) -> Result<Exit, Report> {
    let folder = tempfile::Builder::new()
        .prefix("flowstone-test-")
        .tempdir()
        .map_err(|error| {
            Report::error(
                "E0927",
                format!("there is no place for scratch folders: {error}"),
            )
        })?;
    let home = folder.path().join("undisturbed");
    let world = World::new(case, &home, None);
    let expected = play(args, app, &world, args.quiet || args.json)?;
    let mut problems = told::unexpected(&expected, &world.case)?;
    let crashes = match args.crash_everywhere {
        false => None,
        true => {
            let effects = trial::read_effects(&home).map_err(|error| of_trial_error(&error))?;
            let plan = crash::Plan {
                args,
                folder: folder.path(),
                case: &hand_over(&world.case, folder.path())?,
                expected: &expected,
                effects: &effects,
            };
            Some(crash::everywhere(&plan)?)
        }
    };
    if let Some(crashes) = &crashes {
        problems.extend(crashes.problems.iter().cloned());
    }
    if args.json {
        let mut whole = json!({
            "ok": problems.is_empty(),
            "flow": args.file.display().to_string(),
            "status": expected.status,
            "result": told::end_json(&expected),
            "commits": expected.commits,
            "problems": problems,
        });
        if let Some(crashes) = &crashes {
            whole["crashes"] = crashes.to_json(&expected);
        }
        output::json(&whole);
    } else {
        told::show(&expected, crashes.as_ref(), &problems);
        if args.show_result
            && let Ok(value) = codec::decode(&expected.end)
        {
            match value {
                Value::Text(text) => output::data(&text),
                value => output::data(&pretty(&value)),
            }
        }
    }
    Ok(match problems.is_empty() {
        true => Exit::Completed,
        false => Exit::Failed,
    })
}

/// Plays the flow in this process.
fn play(args: &Test, app: &dyn App, world: &World, quietly: bool) -> Result<Told, Report> {
    let home = world.home().to_path_buf();
    let project = Project {
        home: home.clone(),
        exchanges: args.exchanges.with(),
        ..Project::find(&super::args::Home { home: None })
    };
    std::fs::create_dir_all(&home).map_err(|error| {
        Report::error(
            "E0927",
            format!("{} cannot be made: {error}", home.display()),
        )
    })?;
    Runtime::start()?.block_on(async {
        let engine = app.open_trial(&project, world)?;
        let loaded = run::load_file(&engine, &args.file, args.json || quietly)?;
        let observer: Rc<dyn Observer> = match quietly {
            true => Rc::new(NoObserver),
            false => Rc::new(Terminal::new()),
        };
        let told = trial::play(&engine, world, &loaded, observer).await;
        told.map_err(|error| of_trial_error(&error))
    })
}

fn of_trial_error(error: &TrialError) -> Report {
    if let TrialError::Engine(error) = error {
        return of_engine_error(error);
    }
    let report = Report::error(error.code(), error.to_string());
    match error.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

/// The file that hands a case to another process.
fn hand_over(case: &Case, folder: &Path) -> Result<PathBuf, Report> {
    let path = folder.join("case.edn");
    let text = case.encode().map_err(|error| of_trial_error(&error))?;
    std::fs::write(&path, text).map_err(|error| {
        Report::error(
            "E0927",
            format!("{} cannot be written: {error}", path.display()),
        )
    })?;
    Ok(path)
}
