//! `flowstone test`: runs flows on a clock that skips time, replays them, and kills them at every possible point; and the
//! tests of `clojure.test`.

mod args;
mod code;
mod coverage;
mod crash;
mod evals;
mod find;
mod flow;
mod format;
mod outcome;
mod recording;
mod suite;
mod trial;
mod update;
mod watch;

use std::path::Path;

use flowstone_engine::crash_test::{Case, World};
use flowstone_lang::value::Value;

pub use args::Test;

use super::exit::Exit;
use super::home::Project;
use super::report::Report;
use super::{App, flow_file, input, output};
use find::Found;
use flow::{Setting, of_test_error};
use trial::{Ended, Trials};

/// The code of a file of cases that is malformed.
const NOT_A_SUITE: &str = "E1590";

/// Tells whether a file has cases of a flow, by its name.
pub fn is_suite(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "test.edn" || name.ends_with("_test.edn")
}

/// Tells whether a file has cases or an evaluation set, and not a flow, by its name.
pub fn is_of_tests(path: &Path) -> bool {
    is_suite(path) || evals::is_set(path)
}

/// Performs the command.
pub fn run(args: &Test, app: &'static dyn App) -> Exit {
    let done = match (&args.test_home, &args.flows[..]) {
        (Some(home), [file]) => one_process(args, app, file, home),
        _ if args.flows.iter().all(|path| evals::is_set(path)) => evals::evaluate(args, app),
        _ if args.watch => watch::watch(args, app),
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

/// Tests everything that was named, and reports on it.
fn all(args: &Test, app: &'static dyn App) -> Result<Exit, Refused> {
    let mut found = find::find(args).map_err(misused)?;
    overridden(args, Case::default()).map_err(misused)?;
    let is_one = matches!(&args.flows[..], [path] if !path.is_dir());
    if is_one && found.trials.is_empty() && found.unusable.len() == 1 {
        return Err(misused(found.unusable.remove(0).1));
    }
    if args.compare.is_some() || args.repeat.is_some() {
        let message =
            "`--repeat` and `--compare` are for evaluation sets, and other tests are named";
        return Err(misused(
            Report::error("E0926", message).hint("name files that end in _eval.edn"),
        ));
    }
    if let ([trial], true, true) = (&found.trials[..], is_one, found.unusable.is_empty())
        && trial.is_alone()
        && !args.tap
        && args.junit.is_none()
        && !args.coverage
        && !args.update
    {
        let tested = trial.flow(args, app).map_err(failed)?;
        tested.show(args);
        return Ok(match tested.problems.is_empty() {
            true => Exit::Completed,
            false => Exit::Failed,
        });
    }
    if args.input.is_some() || (args.case.is_some() && !is_one) {
        let message = "`--input` and `--case` are for one flow, and several are tested";
        return Err(misused(Report::error("E0926", message).hint(
            "put the input into a case beside each flow: flows/NAME/test.edn for flows/NAME.edn",
        )));
    }
    let trials = found.selected(args.filter.as_deref());
    if trials.is_empty() && found.unusable.is_empty() {
        return Err(failed(nothing_found(&found, args)));
    }
    let records = args.update && args.live;
    if records {
        update::check_recordings(&trials).map_err(misused)?;
    }
    let mut all = Trials { args, app, records };
    let mut ended = all.perform(&trials);
    if args.update {
        all.records = false;
        update::update(&all, &trials, &mut ended).map_err(failed)?;
    }
    format::report(args, &found, &ended).map_err(failed)?;
    if args.coverage && !args.json {
        coverage::show(&ended);
    }
    let is_well = found.unusable.is_empty() && ended.iter().all(Ended::is_well);
    Ok(match is_well {
        true => Exit::Completed,
        false => Exit::Failed,
    })
}

fn nothing_found(found: &Found, args: &Test) -> Report {
    if let (Some(filter), false) = (&args.filter, found.trials.is_empty()) {
        let message = format!(
            "none of the {} tests has `{filter}` in its name",
            found.trials.len()
        );
        return Report::error("E0926", message);
    }
    let message = "no flow has a case there";
    Report::error("E0926", message).hint(
        "put one beside a flow: flows/NAME/test.edn for flows/NAME.edn; `{}` where it needs no input",
    )
}

/// Overrides a case by the command line.
fn overridden(args: &Test, mut case: Case) -> Result<Case, Report> {
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
    let case = match &args.case {
        Some(case) => {
            let value = input::read(&format!("@{}", case.display()), "--case").map_err(misused)?;
            Case::of_value(&value).map_err(|error| misused(of_test_error(&error)))?
        }
        None => match suite::suites_of(file).first() {
            None => Case::default(),
            Some(cases) => {
                let cases = suite::Suite::read(cases, Some(file))
                    .map_err(misused)?
                    .cases;
                cases
                    .into_iter()
                    .next()
                    .map(|named| named.case)
                    .unwrap_or_default()
            }
        },
    };
    let case = overridden(args, case).map_err(misused)?;
    let world = World::new(case, home, args.crash_at);
    let setting = Setting {
        args,
        file,
        replay: None,
        is_quiet: true,
    };
    let (outcome, _) = flow::play(&setting, app, &world).map_err(failed)?;
    output::json(&outcome::to_json(&outcome));
    Ok(Exit::Completed)
}

/// Finds the file of a flow from an argument.
fn flow_file(path: &Path) -> Result<std::path::PathBuf, Report> {
    let root = Project::find(&super::args::Home { home: None }).root;
    flow_file::find(path, &root)
}
