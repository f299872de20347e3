//! Completion in a shell: commands and options, and what a project has: flows, runs, waits, connections, step types.
//!
//! The script that `flowstone completions SHELL` prints calls the program with the line so far, in [`VARIABLE`].

use std::env;
use std::ffi::OsStr;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::CompleteEnv;
use flowstone_engine::disk;
use flowstone_engine::ports::{RunQuery, WaitFilter};
use flowstone_flow::flow::name_of;
use flowstone_project::workspace::pages;

use super::args::{Cli, Home};
use super::home::Project;
use super::runtime::Runtime;
use super::{App, Open};

/// The environment variable with the name of the shell that asks.
pub const VARIABLE: &str = "FLOWSTONE_COMPLETE";
/// Maximum number of runs, and of waits, to choose from.
const MOST: usize = 50;

/// Answers a shell that asks for completions. Returns false if the program was not called for that.
pub fn answer(app: &'static dyn App) -> bool {
    if env::var_os(VARIABLE).is_none() {
        return false;
    }
    let current = env::current_dir().ok();
    let asked = CompleteEnv::with_factory(move || completable(app))
        .var(VARIABLE)
        .bin("flowstone");
    // Errors in a line are reported when it is run.
    asked
        .try_complete(env::args_os(), current.as_deref())
        .unwrap_or(true)
}

/// Returns all commands, with the values that their arguments can take.
fn completable(app: &'static dyn App) -> Command {
    with_values(Cli::whole(), "", app)
}

fn with_values(command: Command, parent: &str, app: &'static dyn App) -> Command {
    let name = command.get_name().to_owned();
    let group = parent.to_owned();
    let command = command.mut_args(|arg| match source(&group, &name, &arg) {
        Some(source) => arg.add(ArgValueCompleter::new(Values { source, app })),
        None => arg,
    });
    let inner = match parent {
        "" if command.get_name() == "flowstone" => String::new(),
        _ => command.get_name().to_owned(),
    };
    let mut command = command;
    let names: Vec<String> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    for name in names {
        let of = match inner.is_empty() {
            true => name.clone(),
            false => inner.clone(),
        };
        command = command.mut_subcommand(name, |it| with_values(it, &of, app));
    }
    command
}

/// Where the values of an argument come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Codes,
    Connections,
    FlowsAndFiles,
    Installations,
    Pages,
    Runs,
    Slugs,
    StepTypes,
    Waits,
}

/// Returns the source of the values of an argument, by its name and the names of its command and of the group of that.
fn source(group: &str, command: &str, arg: &Arg) -> Option<Source> {
    let value = arg.get_value_names().and_then(|names| names.first());
    let value = value.map(|name| name.as_str());
    Some(match (group, command, arg.get_id().as_str()) {
        (_, "explain", "code") => Source::Codes,
        ("docs", "show", "page") => Source::Pages,
        ("steps", _, "kind") => Source::StepTypes,
        ("connections", _, "name") => Source::Connections,
        ("flows", "configure" | "uninstall", "name") | (_, _, "installation") => {
            Source::Installations
        }
        ("runs", _, "id" | "ids" | "a" | "b" | "run" | "runs") => Source::Runs,
        ("waits", _, "id" | "wait") if arg.is_positional() => Source::Waits,
        (_, _, "run") if value.is_some_and(|it| ["ID", "RUN"].contains(&it)) => Source::Runs,
        (_, _, "slug") => Source::Slugs,
        (_, "run" | "picture", "file") => Source::FlowsAndFiles,
        (_, _, "flow" | "flows") => match value {
            Some("SLUG") => Source::Slugs,
            _ => Source::FlowsAndFiles,
        },
        _ => return None,
    })
}

/// The values of an argument.
struct Values {
    source: Source,
    app: &'static dyn App,
}

impl ValueCompleter for Values {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let Some(typed) = current.to_str() else {
            return Vec::new();
        };
        let mut found = match self.source {
            Source::Codes => codes(),
            Source::Connections => connections(self.app),
            Source::FlowsAndFiles | Source::Slugs => slugs(),
            Source::Installations => installations(self.app).unwrap_or_default(),
            Source::Pages => pages().iter().map(|(page, _)| named(page, None)).collect(),
            Source::Runs => runs(self.app).unwrap_or_default(),
            Source::StepTypes => step_types(self.app),
            Source::Waits => waits(self.app).unwrap_or_default(),
        };
        found.retain(|it| {
            it.get_value()
                .to_str()
                .is_some_and(|it| it.starts_with(typed))
        });
        if self.source == Source::FlowsAndFiles {
            found.extend(PathCompleter::any().complete(current));
        }
        found
    }
}

fn named(value: &str, help: Option<String>) -> CompletionCandidate {
    CompletionCandidate::new(value).help(help.map(StyledStr::from))
}

fn project() -> Project {
    Project::find(&Home { home: None })
}

fn slugs() -> Vec<CompletionCandidate> {
    let slugs = disk::slugs(&project().root);
    slugs.iter().map(|slug| named(slug, None)).collect()
}

fn codes() -> Vec<CompletionCandidate> {
    let pages = pages().iter();
    let codes = pages.filter_map(|(page, text)| {
        let code = page.strip_prefix("errors/")?;
        let is_code = code.starts_with('E') && code[1..].bytes().all(|it| it.is_ascii_digit());
        let title = text.lines().next()?.split_once(": ")?.1;
        is_code.then(|| named(code, Some(title.to_owned())))
    });
    codes.collect()
}

fn step_types(app: &dyn App) -> Vec<CompletionCandidate> {
    let steps = app.steps();
    let specs = steps.iter().map(|step| step.spec());
    specs
        .map(|spec| named(spec.kind, Some(spec.doc.to_owned())))
        .collect()
}

fn connections(app: &dyn App) -> Vec<CompletionCandidate> {
    let settings = app.settings(&project()).ok();
    let connections = settings.and_then(|settings| settings.get("connections").cloned());
    let names = connections.as_ref().and_then(|it| it.as_map()).into_iter();
    let names = names
        .flat_map(|map| map.iter())
        .filter_map(|(key, _)| name_of(key));
    names.map(|name| named(&name, None)).collect()
}

/// Returns the newest runs of the project.
fn runs(app: &dyn App) -> Option<Vec<CompletionCandidate>> {
    let engine = app.open(&project(), Open::Existing).ok()?;
    let query = RunQuery {
        limit: MOST,
        ..RunQuery::default()
    };
    let runtime = Runtime::start().ok()?;
    let runs = runtime.block_on(engine.summaries(query)).ok()?;
    let runs = runs.iter().map(|run| {
        let help = format!("{} {}", run.flow, run.status.name());
        named(&run.id.to_string(), Some(help))
    });
    Some(runs.collect())
}

/// Returns the installations of the project.
fn installations(app: &dyn App) -> Option<Vec<CompletionCandidate>> {
    let engine = app.open(&project(), Open::Existing).ok()?;
    let runtime = Runtime::start().ok()?;
    let rows = engine.stores().installations.installations(None);
    let rows = runtime.block_on(rows).ok()?;
    let rows = rows.iter();
    let rows = rows.map(|row| named(&row.at.to_string(), Some(row.flow.to_string())));
    Some(rows.collect())
}

/// Returns the open waits of the project.
fn waits(app: &dyn App) -> Option<Vec<CompletionCandidate>> {
    let engine = app.open(&project(), Open::Existing).ok()?;
    let runtime = Runtime::start().ok()?;
    let waits = runtime
        .block_on(engine.list_waits(WaitFilter::default()))
        .ok()?;
    let waits = waits.iter().take(MOST);
    let waits = waits.map(|wait| named(&wait.id.to_string(), Some(wait.path.clone())));
    Some(waits.collect())
}

/// Returns the script for a shell, if there is one.
pub fn script(shell: &str) -> Option<Vec<u8>> {
    let shells = clap_complete::env::Shells::builtins();
    let mut script = Vec::new();
    let completer = shells.completer(shell)?;
    completer
        .write_registration(VARIABLE, "flowstone", "flowstone", "flowstone", &mut script)
        .ok()?;
    Some(script)
}
