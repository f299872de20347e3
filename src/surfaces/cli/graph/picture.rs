//! `flowstone graph picture`: the steps of a flow as Mermaid, DOT or SVG, and the path that a run took.

mod diagram;
mod svg;

use std::collections::HashMap;
use std::path::Path;

use flowstone_engine::{Engine, RunReport, StepStatus};
use flowstone_flow::outline::{OutlinedStep, outline};

use super::super::args::{GraphPicture, PictureFormat};
use super::super::exit::Exit;
use super::super::home::Project;
use super::super::outcome::of_engine_error;
use super::super::report::Report;
use super::super::run::load_file;
use super::super::runtime::Runtime;
use super::super::{App, Open, output};

/// The code of a run of another flow.
const OTHER_FLOW: &str = "E1592";

/// Performs the command.
pub fn run(args: &GraphPicture, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let open = match args.run {
        Some(_) => Open::Existing,
        None => Open::OrMake,
    };
    let engine = app.open(&project, open)?;
    let text = Runtime::start()?.block_on(drawn(args, &engine))?;
    match &args.to {
        None => output::data(&text),
        Some(file) => write(file, &text)?,
    }
    Ok(Exit::Completed)
}

fn write(file: &Path, text: &str) -> Result<(), Report> {
    std::fs::write(file, text).map_err(|error| {
        let message = format!("{} cannot be written: {error}", file.display());
        Report::error("E0927", message)
    })
}

async fn drawn(args: &GraphPicture, engine: &Engine) -> Result<String, Report> {
    let loaded = load_file(engine, &args.flow, true)?;
    let mut route = Route::default();
    if let Some(id) = &args.run {
        let row = engine
            .find_run(id)
            .await
            .map_err(|it| of_engine_error(&it))?;
        if *row.flow != *loaded.flow.slug {
            let message = format!(
                "the run {} is one of the flow `{}`, not of `{}`",
                row.id, row.flow, loaded.flow.slug
            );
            return Err(Report::error(OTHER_FLOW, message).hint("name the flow of the run"));
        }
        let report = engine.show_run(&row.id).await;
        route = Route::of(&report.map_err(|it| of_engine_error(&it))?);
    }
    let title = loaded.flow.name.as_deref().unwrap_or(&loaded.flow.slug);
    let parts = outline(&loaded.flow);
    Ok(match args.format {
        PictureFormat::Dot => diagram::dot(title, &parts, &route),
        PictureFormat::Mermaid => diagram::mermaid(title, &parts, &route),
        PictureFormat::Svg => svg::svg(title, &parts, &route),
    })
}

/// What a run did with the steps of a flow, by id; empty without a run.
#[derive(Debug, Default)]
struct Route {
    is_of_run: bool,
    taken: HashMap<String, Taken>,
}

/// The calls of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Taken {
    calls: usize,
    millis: i64,
    /// The worst of their states.
    state: State,
}

/// The state of a step, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Done,
    Open,
    Failed,
}

impl State {
    fn of(status: StepStatus) -> State {
        match status {
            StepStatus::Done => State::Done,
            StepStatus::Failed | StepStatus::Skipped | StepStatus::Cancelled => State::Failed,
            StepStatus::Retrying
            | StepStatus::Sleeping
            | StepStatus::Waiting
            | StepStatus::InFlight
            | StepStatus::InDoubt => State::Open,
        }
    }

    /// Returns the colours of a step: of its face and of its border.
    fn colors(self) -> (&'static str, &'static str) {
        match self {
            State::Done => ("#cfeacf", "#2e7d32"),
            State::Open => ("#fff3c4", "#b26a00"),
            State::Failed => ("#f4cccc", "#b3261e"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Open => "open",
            State::Failed => "failed",
        }
    }
}

impl Route {
    fn of(report: &RunReport) -> Route {
        let mut taken: HashMap<String, Taken> = HashMap::new();
        for step in &report.steps {
            let last = step.path.rsplit('/').next().unwrap_or(&step.path);
            let id = last.split(['#', '?']).next().unwrap_or(last);
            let state = State::of(step.status);
            let millis = step.ended_ms.map_or(0, |ended| ended - step.started_ms);
            let entry = taken.entry(id.to_owned()).or_insert(Taken {
                calls: 0,
                millis: 0,
                state,
            });
            entry.calls += 1;
            entry.millis += millis;
            entry.state = entry.state.max(state);
        }
        Route {
            is_of_run: true,
            taken,
        }
    }

    fn taken(&self, step: &OutlinedStep) -> Option<&Taken> {
        self.taken.get(&step.id)
    }
}

/// Returns the lines of text of a step: its id and type, its tools, and what a run did with it.
fn lines(step: &OutlinedStep, route: &Route) -> Vec<String> {
    let mut lines = vec![format!("{} :{}", step.id, step.kind)];
    if let Some(flow) = &step.calls {
        lines.push(format!("flow {flow}"));
    }
    if !step.tools.is_empty() {
        lines.push(format!("tools: {}", step.tools.join(", ")));
    }
    if let Some(taken) = route.taken(step) {
        let times = match taken.calls {
            1 => String::new(),
            calls => format!("{calls} times, "),
        };
        let took = took(taken.millis);
        lines.push(format!("{times}{}, {took}", taken.state.name()));
    }
    lines
}

/// Returns a duration as people write it.
fn took(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
        _ => format!(
            "{} h {} min",
            millis / 3_600_000,
            millis % 3_600_000 / 60_000
        ),
    }
}
