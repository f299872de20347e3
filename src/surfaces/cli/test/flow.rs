//! One case of a flow: it is run, replayed, and perhaps killed everywhere.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_engine::codec;
use flowstone_engine::crash_test::{self, Case, Correction, TestError, TestOutcome, World};
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_flow::outline::{Part, outline};
use flowstone_lang::value::Value;
use flowstone_lang::vm::CoveredArm;
use serde_json::json;

use super::super::App;
use super::super::args::Home;
use super::super::home::{ExchangesWith, Project};
use super::super::outcome::of_engine_error;
use super::super::output;
use super::super::pretty::pretty;
use super::super::progress::Terminal;
use super::super::report::Report;
use super::super::run;
use super::super::runtime::Runtime;
use super::recording::NewRecording;
use super::{Test, crash, outcome};

/// The result of testing a flow.
pub struct Tested {
    pub outcome: TestOutcome,
    /// The steps of the flow's text.
    pub declared: Vec<String>,
    /// The branches of the flow's text.
    pub arms: Vec<CoveredArm>,
    pub crashes: Option<crash::Crashes>,
    pub problems: Vec<Report>,
    /// What the case would have to expect instead, with `--update`.
    pub corrections: Vec<Correction>,
    pub json: serde_json::Value,
}

/// A case to test.
pub struct Trial<'a> {
    pub args: &'a Test,
    /// The flow file.
    pub file: &'a Path,
    pub case: Case,
    /// The folder with recorded answers.
    pub replay: Option<&'a Path>,
    /// Whether the answers are recorded again.
    pub records: bool,
    /// Whether to show no progress.
    pub is_quiet: bool,
}

impl Tested {
    /// Prints the outcome of the only case that was tested.
    pub fn show(&self, args: &Test) {
        if args.json {
            output::json(&self.json);
            return;
        }
        outcome::show(&self.outcome, self.crashes.as_ref(), &self.problems);
        if args.show_result
            && let Ok(value) = codec::decode(&self.outcome.end)
        {
            match value {
                Value::Text(text) => output::data(&text),
                value => output::data(&pretty(&value)),
            }
        }
    }
}

/// Tests a case.
///
/// # Errors
/// When the test cannot be performed.
pub fn whole(trial: Trial<'_>, app: &dyn App) -> Result<Tested, Report> {
    let Trial {
        args,
        file,
        case,
        replay,
        records,
        is_quiet,
    } = trial;
    let folder = scratch_folder()?;
    let home = folder.path().join("undisturbed");
    let world = World::new(case, &home, None);
    let mut setting = Setting {
        args,
        file,
        replay: replay.map(Answers::Recording),
        is_quiet,
    };
    let new = replay
        .filter(|_| records)
        .map(NewRecording::beside)
        .transpose()?;
    if let Some(new) = &new {
        setting.replay = Some(Answers::Servers(new.path()));
    }
    let expected = match play(&setting, app, &world) {
        Ok(outcome) => outcome,
        Err(report) => return Err(with_misspelt(report, &world)),
    };
    let (expected, declared) = expected;
    if let Some(new) = new
        && crash_test::ends_as_expected(&expected, &world.case)
    {
        new.keep()?;
    }
    let corrections = match args.update {
        true => crash_test::corrections(&expected, &world.case)
            .map_err(|error| of_test_error(&error))?,
        false => Vec::new(),
    };
    let mut problems = outcome::unexpected(&expected, &world.case)?;
    let crashes = match args.crash_everywhere {
        false => None,
        true => {
            let effects = crash_test::read_effects(&home).map_err(|error| of_test_error(&error))?;
            let plan = crash::Plan {
                args,
                file,
                replay,
                folder: folder.path(),
                case: &hand_over(&world.case, folder.path())?,
                expected: &expected,
                effects: &effects,
            };
            Some(crash::everywhere(&plan)?)
        }
    };
    let mut uses = world.uses().map_err(|error| of_test_error(&error))?;
    let is_as_expected = problems.is_empty();
    if let Some(crashes) = &crashes {
        uses.add(crashes.uses.clone());
        problems.extend(crashes.problems.iter().cloned().map(outcome::problem));
    }
    problems.extend(outcome::unused(&world.case, &uses, is_as_expected));
    let mut json = to_json(file, &expected, &problems);
    if let Some(crashes) = &crashes {
        json["crashes"] = crashes.to_json(&expected);
    }
    Ok(Tested {
        outcome: expected,
        declared,
        arms: world.coverage.arms(),
        crashes,
        problems,
        corrections,
        json,
    })
}

fn scratch_folder() -> Result<tempfile::TempDir, Report> {
    let folder = tempfile::Builder::new().prefix("flowstone-test-").tempdir();
    folder.map_err(|error| {
        let message = format!("there is no place for scratch folders: {error}");
        Report::error("E0927", message)
    })
}

/// Returns the outcome of a case for programs.
fn to_json(file: &Path, expected: &TestOutcome, problems: &[Report]) -> serde_json::Value {
    let messages: Vec<&str> = problems.iter().map(|problem| &*problem.message).collect();
    json!({
        "ok": problems.is_empty(),
        "flow": file.display().to_string(),
        "status": expected.status,
        "result": outcome::end_json(expected),
        "commits": expected.commits,
        "steps": expected.steps.iter().map(|step| &step.path).collect::<Vec<_>>(),
        "problems": messages,
    })
}

/// Adds to an error the entries of the case that are probably misspelt.
fn with_misspelt(report: Report, world: &World) -> Report {
    let uses = world.uses().unwrap_or_default();
    let unused = crash_test::unused(&world.case, &uses).into_iter();
    let near = unused.filter_map(|entry| Some((entry.near?, entry.message)));
    near.fold(report, |report, (near, message)| {
        report.hint(format!("{message}: did you mean `{near}`?"))
    })
}

/// How a flow is run.
pub struct Setting<'a> {
    pub args: &'a Test,
    pub file: &'a Path,
    pub replay: Option<Answers<'a>>,
    pub is_quiet: bool,
}

/// Where the answers of servers come from, if a case says so.
#[derive(Debug, Clone, Copy)]
pub enum Answers<'a> {
    /// From the recording in a folder.
    Recording(&'a Path),
    /// From the servers; they are recorded in a folder.
    Servers(&'a Path),
}

/// Runs the flow in this process. Returns the ids of the steps of its text, too.
///
/// # Errors
/// When it cannot be run to its end, or its replay differs.
pub fn play(
    setting: &Setting<'_>,
    app: &dyn App,
    world: &World,
) -> Result<(TestOutcome, Vec<String>), Report> {
    let Setting {
        args,
        file,
        replay,
        is_quiet,
    } = *setting;
    let home = world.home().to_path_buf();
    let project = Project {
        home: home.clone(),
        exchanges: match replay {
            Some(Answers::Recording(folder)) => ExchangesWith::Recording(folder.to_path_buf()),
            Some(Answers::Servers(folder)) => ExchangesWith::RecordedServers(folder.to_path_buf()),
            None => args.exchanges.with(),
        },
        permits: args.permits.clone(),
        ..Project::find(&Home { home: None })
    };
    std::fs::create_dir_all(&home).map_err(|error| {
        Report::error(
            "E0927",
            format!("{} cannot be made: {error}", home.display()),
        )
    })?;
    Runtime::start()?.block_on(async {
        let engine = app.open_test(&project, world)?;
        let loaded = run::load_file(&engine, file, args.json || is_quiet)?;
        let observer: Rc<dyn Observer> = match is_quiet {
            true => Rc::new(NoObserver),
            false => Rc::new(Terminal::new()),
        };
        let declared = step_ids(&outline(&loaded.flow));
        let outcome = crash_test::play(&engine, world, &loaded, observer).await;
        let outcome = outcome.map_err(|error| of_test_error(&error))?;
        Ok((outcome, declared))
    })
}

/// Returns the ids of steps that are not computed.
fn step_ids(parts: &[Part]) -> Vec<String> {
    let mut ids = Vec::new();
    for part in parts {
        match part {
            Part::Step(step) if step.id.contains(['(', ' ', '\u{2026}']) => {}
            Part::Step(step) => ids.push(step.id.clone()),
            Part::Repeat { parts, .. } => ids.extend(step_ids(parts)),
            Part::Branch { arms, .. } | Part::Together { arms, .. } => {
                ids.extend(arms.iter().flat_map(|arm| step_ids(&arm.parts)));
            }
        }
    }
    ids
}

/// Describes why a test could not be performed.
pub fn of_test_error(error: &TestError) -> Report {
    if let TestError::Engine(error) = error {
        return of_engine_error(error);
    }
    let report = Report::error(error.code(), error.to_string());
    match error.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

/// Writes the case to a file for another process.
fn hand_over(case: &Case, folder: &Path) -> Result<PathBuf, Report> {
    let path = folder.join("case.edn");
    let text = case.encode().map_err(|error| of_test_error(&error))?;
    std::fs::write(&path, text).map_err(|error| {
        Report::error(
            "E0927",
            format!("{} cannot be written: {error}", path.display()),
        )
    })?;
    Ok(path)
}
