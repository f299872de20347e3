//! `flowstone test`: runs a flow on a clock that skips time, replays it, and kills it at every possible point.

mod args;
mod crash;
mod outcome;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_engine::codec;
use flowstone_engine::crash_test::{self, Case, TestError, TestOutcome, World};
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_lang::value::Value;
use serde_json::json;

pub use args::Test;

use super::check::gather;
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::pretty::pretty;
use super::progress::Terminal;
use super::report::{Report, Shown, unreadable};
use super::runtime::Runtime;
use super::table::{Column, table};
use super::{App, flow_file, input, output, run};

/// The default case of a flow, in the folder with the flow's name.
const CASE: &str = "test.edn";

/// Performs the command.
pub fn run(args: &Test, app: &dyn App) -> Exit {
    let done = match (&args.test_home, &args.flows[..]) {
        (Some(home), [file]) => one_process(args, app, file, home),
        _ => all(args, app),
    };
    done.unwrap_or_else(|(report, exit)| {
        output::failure(&report, args.json);
        exit
    })
}

/// A command that cannot be performed, and its exit code.
type Refused = (Report, Exit);

fn failed(report: Report) -> Refused {
    (report, Exit::Failed)
}

fn misused(report: Report) -> Refused {
    (report, Exit::Usage)
}

/// Tests each flow that was named, and in a folder those with a case.
fn all(args: &Test, app: &dyn App) -> Result<Exit, Refused> {
    let root = Project::find(&super::args::Home { home: None }).root;
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for path in &args.flows {
        if !path.is_dir() {
            files.push(flow_file::find(path, &root).map_err(misused)?);
            continue;
        }
        let mut found = Vec::new();
        gather(path, &mut found)
            .map_err(|error| misused(unreadable(&path.display().to_string(), &error)))?;
        // A case is an EDN file, too, but not a flow.
        found.retain(|file| file.file_name().is_none_or(|name| name != CASE));
        let (with_case, without): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|file| case_of(file).is_file());
        files.extend(with_case);
        skipped.extend(without);
    }
    let is_one = matches!(&args.flows[..], [path] if !path.is_dir());
    if let ([file], true) = (&files[..], is_one) {
        let case = case(args, file).map_err(misused)?;
        let tested = whole(args, app, (file, case), args.quiet || args.json).map_err(failed)?;
        tested.show(args);
        return Ok(tested.exit());
    }
    if args.input.is_some() || args.case.is_some() {
        let message = "`--input` and `--case` are for one flow, and several are tested";
        return Err(misused(Report::error("E0926", message).hint(
            "put the input into a case beside each flow: flows/NAME/test.edn for flows/NAME.edn",
        )));
    }
    if files.is_empty() {
        let message = "no flow has a case there";
        return Err(failed(Report::error("E0926", message).hint(
            "put one beside a flow: flows/NAME/test.edn for flows/NAME.edn; `{}` where it needs no input",
        )));
    }
    Ok(several(args, app, &files, &skipped))
}

/// Tests several flows, and reports on all of them.
fn several(args: &Test, app: &dyn App, files: &[PathBuf], skipped: &[PathBuf]) -> Exit {
    let (mut rows, mut objects, mut is_well) = (Vec::new(), Vec::new(), true);
    for file in files {
        let tested = case(args, file).and_then(|case| whole(args, app, (file, case), true));
        let name = file.display().to_string();
        let verdict = match &tested {
            Ok(tested) => outcome::verdict(&tested.problems),
            Err(_) => "not tried".to_owned(),
        };
        is_well &= matches!(&tested, Ok(tested) if tested.problems.is_empty());
        match tested {
            Ok(tested) if args.json => objects.push(tested.json),
            Ok(tested) => {
                for mut problem in tested.problems {
                    problem.message = format!("{name}: {}", problem.message);
                    output::report(&problem);
                }
            }
            Err(report) if args.json => {
                objects.push(json!({"ok": false, "flow": name, "error": report.to_json()}));
            }
            Err(report) => output::report(&report),
        }
        rows.push(vec![name, verdict]);
    }
    let skipped: Vec<String> = skipped
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    if args.json {
        output::json(&json!({"ok": is_well, "flows": objects, "skipped": skipped}));
    } else {
        output::data(&table(
            &[Column::Whole("flow"), Column::Whole("verdict")],
            rows,
        ));
        if !skipped.is_empty() {
            output::note(&format!("without a case: {}", skipped.join(", ")));
        }
    }
    match is_well {
        true => Exit::Completed,
        false => Exit::Failed,
    }
}

/// Returns the path of a flow's case, if it has one.
fn case_of(file: &Path) -> PathBuf {
    file.with_extension("").join(CASE)
}

/// Builds the test's case: from the case beside the flow or the one that was named, overridden by the command line.
fn case(args: &Test, flow: &Path) -> Result<Case, Report> {
    let file = match &args.case {
        Some(file) => Some(file.clone()),
        None => Some(case_of(flow)).filter(|file| file.is_file()),
    };
    let mut case = match file {
        None => Case::default(),
        Some(file) => {
            let value = input::read(&format!("@{}", file.display()), "--case")?;
            Case::of_value(&value).map_err(|error| of_test_error(&error))?
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
            .map_err(|error| of_test_error(&error))?;
    }
    for answer in &args.answers {
        let Some((target, value)) = answer.split_once('=') else {
            let words = format!("`{answer}` is not an answer: it has no `=`");
            return Err(Report::error("E0926", words)
                .hint("give KEY=VALUE, such as --answer 'approval={:action :approve}'"));
        };
        let target = target.trim().trim_start_matches(':');
        case.add_answer(target, input::read(value, "--answer")?);
    }
    Ok(case)
}

/// One process of a crash test, started by [`crash`]: it dies at its crash point, or prints the outcome.
fn one_process(args: &Test, app: &dyn App, file: &Path, home: &Path) -> Result<Exit, Refused> {
    let case = case(args, file).map_err(misused)?;
    let world = World::new(case, home, args.crash_at);
    let outcome = play((args, file), app, &world, true).map_err(failed)?;
    output::json(&outcome::to_json(&outcome));
    Ok(Exit::Completed)
}

/// The result of testing a flow.
struct Tested {
    outcome: TestOutcome,
    crashes: Option<crash::Crashes>,
    problems: Vec<Report>,
    json: serde_json::Value,
}

impl Tested {
    fn exit(&self) -> Exit {
        match self.problems.is_empty() {
            true => Exit::Completed,
            false => Exit::Failed,
        }
    }

    fn show(&self, args: &Test) {
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

fn whole(
    args: &Test,
    app: &dyn App,
    (file, case): (&Path, Case),
    quietly: bool,
) -> Result<Tested, Report> {
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
    let expected = match play((args, file), app, &world, quietly) {
        Ok(outcome) => outcome,
        Err(report) => return Err(with_misspelt(report, &world)),
    };
    let mut problems = outcome::unexpected(&expected, &world.case)?;
    let crashes = match args.crash_everywhere {
        false => None,
        true => {
            let effects = crash_test::read_effects(&home).map_err(|error| of_test_error(&error))?;
            let plan = crash::Plan {
                args,
                file,
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
    let messages: Vec<&str> = problems.iter().map(|problem| &*problem.message).collect();
    let mut json = json!({
        "ok": problems.is_empty(),
        "flow": file.display().to_string(),
        "status": expected.status,
        "result": outcome::end_json(&expected),
        "commits": expected.commits,
        "problems": messages,
    });
    if let Some(crashes) = &crashes {
        json["crashes"] = crashes.to_json(&expected);
    }
    Ok(Tested {
        outcome: expected,
        crashes,
        problems,
        json,
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

/// Runs the flow in this process.
fn play(
    (args, file): (&Test, &Path),
    app: &dyn App,
    world: &World,
    quietly: bool,
) -> Result<TestOutcome, Report> {
    let home = world.home().to_path_buf();
    let project = Project {
        home: home.clone(),
        exchanges: args.exchanges.with(),
        permits: args.permits.clone(),
        ..Project::find(&super::args::Home { home: None })
    };
    std::fs::create_dir_all(&home).map_err(|error| {
        Report::error(
            "E0927",
            format!("{} cannot be made: {error}", home.display()),
        )
    })?;
    Runtime::start()?.block_on(async {
        let engine = app.open_test(&project, world)?;
        let loaded = run::load_file(&engine, file, args.json || quietly)?;
        let observer: Rc<dyn Observer> = match quietly {
            true => Rc::new(NoObserver),
            false => Rc::new(Terminal::new()),
        };
        let outcome = crash_test::play(&engine, world, &loaded, observer).await;
        outcome.map_err(|error| of_test_error(&error))
    })
}

fn of_test_error(error: &TestError) -> Report {
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
