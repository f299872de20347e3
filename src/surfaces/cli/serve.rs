//! `flowstone serve`: a worker in this process, with lines that report its activity.

mod inventory;
pub(super) mod listen;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use flowstone_engine::EngineError;
use flowstone_engine::diagnostic::Diagnostic;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::worker::{
    self, ServeError, Served, Until, Watch, WorkerEvent, WorkerOptions,
};
use flowstone_lang::session::Session;
use serde_json::{Value, json};

use super::args::Serve;
use super::check::of_findings;
use super::exit::Exit;
use super::home::Project;
use super::interrupt::Interrupt;
use super::outcome::{in_json, of_engine_error};
use super::output;
use super::report::{Report, Shown};
use super::{App, Open};
use crate::json::instant;
use crate::metrics::{Measured, Metrics};

/// The default folder of a project's flows.
const FLOWS: &str = "flows";

/// Executes due runs until interrupted, or until no run is due.
pub fn run(args: &Serve, app: &'static dyn App) -> Exit {
    match serve(args, app) {
        Ok(served) => {
            let lines = Lines::of(args);
            lines.show(Message {
                event: "ended",
                text: format!("stopped; executions: {}, ended runs: {}", served.executions, served.ended),
                fields: json!({"drives": served.executions, "over": served.ended, "setAside": served.set_aside}),
                is_wrong: false,
            });
            Exit::Completed
        }
        Err(report) => {
            output::failure(&report, args.json);
            Exit::Failed
        }
    }
}

fn serve(args: &Serve, app: &'static dyn App) -> Result<Served, Report> {
    let project = Project {
        max_memory: args.limits.max_memory,
        permits: args.permits.clone(),
        ..Project::find(&args.home)
    };
    let stores = app.stores(&project, Open::OrMake)?;
    let options = WorkerOptions {
        threads: args.threads.unwrap_or_else(cores),
        concurrency: args.concurrency,
        until: match args.until_idle {
            true => Until::Idle,
            false => Until::Interrupted,
        },
        flows: flows(args, &project),
        interrupt: Interrupt::listen().for_engine(),
    };
    let lines = Lines::of(args);
    lines.show(place(&project, &options.flows));
    let open = || app.engine(&project, stores.clone());
    if let Some(message) = inventory::differing(&open, options.flows.clone())? {
        lines.show(message);
    }
    let watch: Arc<dyn Watch> = Arc::new(Lines::of(args));
    let metrics = Arc::new(Metrics::default());
    let watch: Arc<dyn Watch> = match args.listen {
        None => watch,
        Some(_) => Arc::new(Measured {
            metrics: metrics.clone(),
            watch,
        }),
    };
    let work = || {
        worker::serve(&open, &options, &watch).map_err(|error| match error {
            ServeError::Open(report) => report,
            ServeError::Engine(error) => of_engine_error(&error),
        })
    };
    match args.listen {
        None => work(),
        Some(address) => listen::listen(
            address,
            (&project, &options, app),
            (&open, metrics),
            &lines,
            work,
        ),
    }
}

/// Returns the files and folders given as arguments, or else the project's folder of flows, if it exists.
fn flows(args: &Serve, project: &Project) -> Vec<PathBuf> {
    let given: Vec<PathBuf> = args.paths.iter().chain(&args.flows).cloned().collect();
    flows_of(project, given)
}

/// Returns the given files and folders, or else the project's folder of flows, if it exists.
pub fn flows_of(project: &Project, given: Vec<PathBuf>) -> Vec<PathBuf> {
    let usual = project.root.join(FLOWS);
    match given.is_empty() {
        true if usual.is_dir() => vec![usual],
        _ => given,
    }
}

/// Reports which project is served, and where schedules are read from.
fn place(project: &Project, flows: &[PathBuf]) -> Message {
    let home = project.home.display().to_string();
    let paths: Vec<String> = flows
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let from = match paths.is_empty() {
        true => {
            format!("no schedules are read: there is no folder `{FLOWS}`, and no flows were given")
        }
        false => format!("schedules are read from {}", paths.join(", ")),
    };
    Message {
        event: "serving",
        text: format!("serving {home}; {from}"),
        fields: json!({"home": home, "flows": paths}),
        is_wrong: false,
    }
}

fn count(number: usize, word: &str) -> String {
    match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    }
}

pub(super) fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Prints events: text on standard error, or lines of JSON on standard output.
pub(super) struct Lines {
    pub as_json: bool,
    pub quiet: bool,
}

/// The event as a line of text.
struct Message {
    event: &'static str,
    text: String,
    /// The event as a JSON object.
    fields: Value,
    /// Whether it is printed with `--quiet` too.
    is_wrong: bool,
}

impl Lines {
    fn of(args: &Serve) -> Lines {
        Lines {
            as_json: args.json,
            quiet: args.quiet,
        }
    }

    fn show(&self, message: Message) {
        if self.quiet && !message.is_wrong {
            return;
        }
        if !self.as_json {
            output::note(&message.text);
            return;
        }
        let mut line = json!({"event": message.event});
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, message.fields) {
            line.extend(fields);
        }
        output::data(&line.to_string());
    }
}

impl Watch for Lines {
    fn event(&self, event: &WorkerEvent<'_>) {
        self.show(match event {
            WorkerEvent::Ready { threads } => Message {
                event: "ready",
                text: format!("ready, with {threads} threads"),
                fields: json!({"threads": threads}),
                is_wrong: false,
            },
            WorkerEvent::Planned { flows, schedules } => Message {
                event: "planned",
                text: match schedules {
                    0 => "no flow has a schedule".to_owned(),
                    _ => format!(
                        "{}, of {}",
                        count(*schedules, "schedule"),
                        count(*flows, "flow")
                    ),
                },
                fields: json!({"flows": flows, "schedules": schedules}),
                is_wrong: false,
            },
            WorkerEvent::Recovered { runs } => Message {
                event: "recovered",
                text: format!("resuming runs of a process that has ended: {runs}"),
                fields: json!({"runs": runs}),
                is_wrong: false,
            },
            WorkerEvent::Skipped { run, flow, error } => skipped(run, flow, error),
            WorkerEvent::Executed {
                run,
                flow,
                outcome,
                millis,
            } => executed(run, flow, outcome, *millis),
            WorkerEvent::SetAside {
                run,
                flow,
                error,
                again_ms,
            } => set_aside(run, flow, error, *again_ms),
            WorkerEvent::BrokenFlow {
                file,
                session,
                findings,
            } => broken(file, session, findings),
            WorkerEvent::Scheduled {
                flow,
                schedule,
                tick_ms,
                started,
            } => scheduled(flow, schedule, *tick_ms, started),
            WorkerEvent::StoreFailed { error } => troubled(error),
            WorkerEvent::Stopping { active } => Message {
                event: "stopping",
                text: format!("stopping; runs under way: {active} (again: at once)"),
                fields: json!({"active": active}),
                is_wrong: false,
            },
        });
    }

    fn observer(&self) -> Rc<dyn Observer> {
        Rc::new(NoObserver)
    }
}

fn executed(run: &RunId, flow: &str, outcome: &RunOutcome, millis: i64) -> Message {
    let mut fields = in_json(run, outcome);
    let status = fields["status"].as_str().unwrap_or_default().to_owned();
    let detail = match outcome {
        RunOutcome::Failed(failure) => {
            let exception = &failure.exception;
            format!(": {} {}", exception.code, exception.text())
        }
        RunOutcome::Waiting { reason, .. }
        | RunOutcome::Cancelled { reason, .. }
        | RunOutcome::Stuck { reason } => {
            format!(": {reason}")
        }
        _ => String::new(),
    };
    // A reason is the text of a caller, and a line is about one run.
    let detail = detail.replace('\r', "\\r").replace('\n', "\\n");
    if let Value::Object(fields) = &mut fields {
        fields.insert("flow".to_owned(), json!(flow));
        fields.insert("millis".to_owned(), json!(millis));
    }
    Message {
        event: "run",
        text: format!("run {run} {flow} {status}{detail} ({millis} ms)"),
        fields,
        is_wrong: matches!(outcome, RunOutcome::Failed(_) | RunOutcome::Stuck { .. }),
    }
}

fn skipped(run: &RunId, flow: &str, error: &EngineError) -> Message {
    let report = of_engine_error(error);
    Message {
        event: "skipped",
        text: format!("run {run} {flow} is skipped\n{}", report.draw().trim_end()),
        fields: json!({"run": run.as_str(), "flow": flow, "error": report.to_json()}),
        is_wrong: true,
    }
}

fn set_aside(run: &RunId, flow: &str, error: &EngineError, again_ms: i64) -> Message {
    let report = of_engine_error(error);
    let again = instant(again_ms);
    Message {
        event: "set-aside",
        text: format!(
            "run {run} {flow} cannot be executed, and is retried at {}\n{}",
            again.as_str().unwrap_or_default(),
            report.draw().trim_end()
        ),
        fields: json!({"run": run.as_str(), "flow": flow, "again": again, "error": report.to_json()}),
        is_wrong: true,
    }
}

fn broken(file: &Path, session: &Session, findings: &[Diagnostic]) -> Message {
    let reports = of_findings(session, findings);
    let drawn: Vec<String> = reports.iter().map(Shown::draw).collect();
    let found: Vec<Value> = reports.iter().map(Shown::to_json).collect();
    Message {
        event: "broken-flow",
        text: format!(
            "{}the schedules in {} are unchanged",
            drawn.concat(),
            file.display()
        ),
        fields: json!({"file": file.display().to_string(), "findings": found}),
        is_wrong: true,
    }
}

fn scheduled(
    flow: &str,
    schedule: &str,
    tick_ms: i64,
    started: &Result<RunId, EngineError>,
) -> Message {
    let tick = instant(tick_ms);
    let at = tick.as_str().unwrap_or_default();
    let (text, what, outcome) = match started {
        Ok(run) => (
            format!("schedule {flow} {schedule} of {at}: run {run}"),
            "run",
            json!(run.as_str()),
        ),
        Err(error) => {
            let report = of_engine_error(error);
            let text = format!(
                "schedule {flow} {schedule} of {at} started no run\n{}",
                report.draw().trim_end()
            );
            (text, "error", report.to_json())
        }
    };
    let mut fields = json!({"flow": flow, "schedule": schedule, "moment": tick});
    fields[what] = outcome;
    Message {
        event: "scheduled",
        text,
        fields,
        is_wrong: started.is_err(),
    }
}

fn troubled(error: &EngineError) -> Message {
    let report = of_engine_error(error);
    Message {
        event: "trouble",
        text: report.draw().trim_end().to_owned(),
        fields: json!({"error": report.to_json()}),
        is_wrong: true,
    }
}
