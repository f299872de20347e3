//! `flowstone run`: executes a flow file to its result.

pub mod many;
mod version;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::ports::{RunRow, RunStatus, StartDecision};
use flowstone_engine::{
    Engine, EngineError, ExecuteOptions, StartOptions, StartedInstallation, StartedRun,
};
use flowstone_flow::flow::{Checked, LoadedFlow, undeclared_inputs};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use serde_json::json;

use super::args::{Run, Show};
use super::check::of_findings;
use super::exit::Exit;
use super::home::{ExchangesWith, Project, SETTINGS};
use super::interrupt::{Interrupt, Printing};
use super::outcome::{exit, in_json, of_engine_error, tell};
use super::progress::Terminal;
use super::queue::{place_text, runs_text};
use super::report::{Report, Severity};
use super::resources::references;
use super::runtime::Runtime;
use super::{App, Open};
use super::{ask, flow_file, graph, output, permission};
use crate::json::{add_decision, place_json};
use crate::telemetry;

/// Runs the flow, and reports its outcome.
pub fn run(args: &Run, app: &dyn App) -> Exit {
    let done = Runtime::start().and_then(|runtime| runtime.block_on(execute(args, app)));
    done.unwrap_or_else(|report| {
        output::failure(&report, args.show.json);
        Exit::Failed
    })
}

async fn execute(args: &Run, app: &dyn App) -> Result<Exit, Report> {
    if let Some(file) = &args.many {
        return many::start(args, file, app).await;
    }
    let project = Project {
        exchanges: args.exchanges.with(),
        bindings: args.bound.bindings(),
        max_memory: args.limits.max_memory,
        permits: args.permits.clone(),
        ..Project::find(&args.home)
    };
    let engine = app.open(&project, Open::OrMake)?;
    let most = engine.limits().input;
    let input = match ask::given(args.input.as_deref(), args.setup.as_deref(), most) {
        Ok(input) => input,
        Err(report) => {
            output::failure(&report, args.show.json);
            return Ok(Exit::Usage);
        }
    };
    let quietly = args.show.json || args.show.quiet;
    let installed = version::installed(&engine, args).await?;
    let (loaded, installation) = match installed {
        Some((loaded, installation)) => (loaded, Some(installation)),
        None => match graph::of_file(&engine, &args.file, quietly).await {
            Ok(Some(loaded)) => (loaded, None),
            Ok(None) => (load(&engine, args).await?, None),
            Err(reports) => {
                output::failures(&reports, args.show.json);
                return Ok(Exit::Failed);
            }
        },
    };
    let input = with_uploads(&engine, input, &args.uploads).await?;
    let whose = (&*loaded.flow, args.invocation.as_deref());
    let undeclared = undeclared_inputs(&loaded.flow, args.invocation.as_deref(), &input);
    let input = match args.show.json || args.show.quiet {
        true => input,
        false => {
            undeclared.iter().for_each(output::report);
            ask::note_unknown_setup(&loaded.flow, &input);
            match installation {
                None => ask::missing(&engine, whose, input),
                // Its setup values are its own.
                Some(_) => input,
            }
        }
    };
    let begun = begin(&engine, (&loaded, installation), input, args).await?;
    let done = async {
        if args.detach {
            return left(&engine, &begun, (&undeclared, args.show.json)).await;
        }
        let (observer, options) = watched(&engine, &args.show);
        let outcome = engine.execute(begun.run(), observer, options).await?;
        let exit = match args.show.json {
            false => tell(begun.run(), &outcome, false),
            true => {
                let _printing = Printing::begin();
                let object = in_json(begun.run(), &outcome);
                output::json(&begun.with_decision(object, &undeclared));
                exit(&outcome)
            }
        };
        engine
            .collect_garbage_daily(&execute_options().interrupt)
            .await;
        engine.leave_sessions_to_process();
        Ok(exit)
    };
    done.await.map_err(|error| of_engine_error(&error))
}

/// Adds references to uploaded files to the input.
async fn with_uploads(
    engine: &Engine,
    input: Value,
    files: &[(String, PathBuf)],
) -> Result<Value, Report> {
    if files.is_empty() {
        return Ok(input);
    }
    let Some(map) = input.as_map() else {
        let message = format!("`--upload` needs a map as the input, got {}", input.kind());
        return Err(Report::error("E0941", message));
    };
    let stored = references(engine, files).await?;
    let given = map.iter().map(|(key, value)| (key.clone(), value.clone()));
    Ok(Value::map(given.chain(stored)))
}

/// The run that a command executes.
enum Begun {
    /// An earlier run that was interrupted, or is queued.
    Earlier(RunId),
    New(StartedRun),
}

impl Begun {
    fn run(&self) -> &RunId {
        match self {
            Begun::Earlier(run) => run,
            Begun::New(started) => &started.run,
        }
    }

    /// Adds to the object about a run how it was started.
    fn with_decision(
        &self,
        mut object: serde_json::Value,
        undeclared: &[Report],
    ) -> serde_json::Value {
        if let (Begun::New(started), Some(fields)) = (self, object.as_object_mut()) {
            add_decision(fields, started, undeclared);
        }
        object
    }
}

/// Reports a run that a worker will execute.
async fn left(
    engine: &Engine,
    begun: &Begun,
    (undeclared, as_json): (&[Report], bool),
) -> Result<Exit, EngineError> {
    let run = begun.run();
    let place = engine.queue_place(run).await?;
    if as_json {
        let status = place.as_ref().map_or("left", |_| "queued");
        let place = place.as_ref().map(place_json);
        let object = json!({"ok": true, "run": run.as_str(), "status": status, "queue": place});
        output::json(&begun.with_decision(object, undeclared));
    } else {
        output::data(run.as_str());
        if let Some(place) = place {
            output::note(&format!("run {run} is {}", place_text(&place)));
        }
    }
    Ok(Exit::Completed)
}

/// Prints the id of a run that a worker will execute.
pub fn tell_left(run: &RunId, as_json: bool) -> Exit {
    if as_json {
        output::json(&json!({"ok": true, "run": run.as_str(), "status": "left"}));
    } else {
        output::data(run.as_str());
    }
    Exit::Completed
}

/// Reads and checks the file, or the version of the registry. The first error is returned and the others are printed;
/// warnings are counted.
async fn load(engine: &Engine, args: &Run) -> Result<LoadedFlow, Report> {
    match version::named(engine, args).await? {
        Some(loaded) => Ok(loaded),
        None => {
            let mut read = read_file(engine, &args.file)?;
            if read.checked.misses_flows {
                // If the store cannot be read, the start of the run says so.
                let _ = engine.read_registered().await;
                read = read_file(engine, &args.file)?;
            }
            usable(
                engine,
                (&read.session, read.checked),
                (&read.name, args.show.json),
            )
        }
    }
}

/// Reads and checks a file; warnings are left out if they would not be read.
pub fn load_file(engine: &Engine, file: &Path, quietly: bool) -> Result<LoadedFlow, Report> {
    let read = read_file(engine, file)?;
    usable(engine, (&read.session, read.checked), (&read.name, quietly))
}

/// A file with what was found in it.
struct ReadFile {
    session: Rc<Session>,
    name: String,
    checked: Checked,
}

fn read_file(engine: &Engine, file: &Path) -> Result<ReadFile, Report> {
    let file = &flow_file::find(file, engine.project_root())?;
    let session = Rc::new(engine.session());
    let name = flow_file::name_in_project(file, engine.project_root());
    let checked = engine.check_to_run(&session, file, &name);
    Ok(ReadFile {
        session,
        name,
        checked,
    })
}

/// Returns a flow that was checked, if it has no errors.
fn usable(
    engine: &Engine,
    (session, checked): (&Session, Checked),
    (name, quietly): (&str, bool),
) -> Result<LoadedFlow, Report> {
    let mut first = None;
    let mut warnings = Vec::new();
    for report in of_findings(session, &checked.findings) {
        if report.severity == Severity::Warning {
            warnings.push(report);
        } else if first.is_none() {
            first = Some(report);
        } else if !quietly {
            output::report(&report);
        }
    }
    if let Some(loaded) = &checked.loaded {
        let settings = engine.setup_of(&loaded.flow);
        warnings.extend(ask::unknown_setup(&loaded.flow, &settings, SETTINGS));
    }
    if let (false, Some(note)) = (quietly, warnings_note(&warnings, name)) {
        output::note(&note);
    }
    match (first, checked.loaded) {
        (None, Some(loaded)) => Ok(loaded),
        (Some(report), _) => Err(report),
        (None, None) => Err(Report::error("E0910", format!("{name} holds no flow"))),
    }
}

/// Summarises in one line what `check` shows in full.
fn warnings_note(warnings: &[Report], file: &str) -> Option<String> {
    match warnings {
        [] => None,
        [one] => Some(format!(
            "warning[{}]: {} (`flowstone check {file}` shows it in full)",
            one.code, one.message
        )),
        all => Some(format!(
            "warning: {} warnings (`flowstone check {file}` shows them)",
            all.len()
        )),
    }
}

/// Refuses to start a flow by hand if its manual interface is disabled.
fn may_start(loaded: &LoadedFlow, invocation: Option<&str>) -> Result<(), Report> {
    let Some(interface) = loaded.flow.manual_off(invocation) else {
        return Ok(());
    };
    let message = format!(
        "the manual interface `:{interface}` of `{}` is disabled, so runs cannot be started by hand",
        loaded.flow.slug
    );
    Err(Report::error("E0954", message).hint(
        "set `:enabled true` at it in `:interfaces :manual`; schedules and other flows can still start runs",
    ))
}

/// Starts a run, or finds the one that an earlier command started.
async fn begin(
    engine: &Engine,
    (loaded, installation): (&LoadedFlow, Option<StartedInstallation>),
    input: Value,
    args: &Run,
) -> Result<Begun, Report> {
    let failed = |error: EngineError| of_engine_error(&error);
    let options = StartOptions {
        invocation: args.invocation.clone(),
        external_id: args.id.clone(),
        priority: args.priority,
        is_left: args.detach,
        timeout: args.timeout,
        trace: telemetry::trace_of_environment(),
        installation,
        ..StartOptions::with_input(input)
    };
    // A recording covers a whole run, so it starts a new one.
    let is_whole = args.exchanges.with() != ExchangesWith::Servers;
    if !(args.new || args.id.is_some() || args.detach || is_whole)
        && let Some(earlier) = engine.earlier_run(loaded, &options).await.map_err(failed)?
    {
        if !args.show.json && earlier.quarantine.is_none() {
            tell_resumed(&earlier);
        }
        return Ok(Begun::Earlier(earlier.id));
    }
    may_start(loaded, args.invocation.as_deref())?;
    if !matches!(args.exchanges.with(), ExchangesWith::Recording(_)) {
        graph::check_servers(engine, &loaded.flow, &args.file).await?;
    }
    let started = engine.submit(loaded, options).await.map_err(failed)?;
    if !args.show.json {
        tell_decision(&started);
    }
    Ok(Begun::New(started))
}

/// Reports which run the command resumes, and how to start another.
fn tell_resumed(run: &RunRow) {
    let was = match (run.status, &run.wait_reason) {
        (RunStatus::Queued, _) => "is queued".to_owned(),
        (RunStatus::Waiting, Some(reason)) => format!("waits: {reason}"),
        _ => "was interrupted".to_owned(),
    };
    let run = &run.id;
    output::note(&format!(
        "resuming run {run}, which {was} (--new starts another)"
    ));
}

/// Reports other consequences of a start.
fn tell_decision(started: &StartedRun) {
    match started.decision {
        StartDecision::Coexisted => output::note("starts beside a run of another version"),
        StartDecision::Deduped => output::note(&format!("run {} has this id", started.run)),
        StartDecision::Blocked | StartDecision::Queued | StartDecision::Started => {}
    }
    if !started.replaced.is_empty() {
        let replaced = runs_text(&started.replaced);
        output::note(&format!("replaces {replaced}"));
    }
}

/// Returns the progress display of a run, and options with which Ctrl-C suspends it and missing permissions are asked
/// for at the terminal.
pub fn watched(engine: &Engine, show: &Show) -> (Rc<dyn Observer>, ExecuteOptions) {
    let terminal = Rc::new(Terminal::new());
    let options = ExecuteOptions {
        asker: permission::asker(show, &terminal, engine.project_root()),
        ..execute_options()
    };
    match show.quiet {
        true => (Rc::new(NoObserver), options),
        false => (terminal, options),
    }
}

/// Returns options with which Ctrl-C suspends a run.
fn execute_options() -> ExecuteOptions {
    ExecuteOptions {
        interrupt: Interrupt::listen().for_engine(),
        ..ExecuteOptions::default()
    }
}
