//! `flowstone run` against a server, and following a run there until it ends or waits for an answer.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use flowstone_engine::SystemClock;
use flowstone_engine::codec;
use flowstone_engine::disk::load;
use flowstone_engine::json::from_json;
use flowstone_engine::ports::{Clock as _, Random as _, RunStatus, SystemRandom};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value as Language;
use serde_json::{Value, json};

use super::jobs::{EDN, edn, values};
use super::{Remote, local_only};
use crate::cli::args::{Permits, Run, RunLimits, RunsResume, SchedulesRun, Show};
use crate::cli::exit::Exit;
use crate::cli::outcome::how_to_answer;
use crate::cli::pretty::pretty;
use crate::cli::queue::place_of_json;
use crate::cli::report::{Report, Severity, draw_pieces};
use crate::cli::rows::{self, list, wait};
use crate::cli::run::many::once;
use crate::cli::runs::fork::RunsFork;
use crate::cli::{ask, input, output};
use crate::json::ok;

/// How long a request waits for the end of a run before it is repeated.
const WAIT: &str = "60s";
/// The pause between two polls of a run.
const PAUSE: Duration = Duration::from_millis(300);

/// Refuses options for executing a run in this process.
pub(super) fn plain(limits: &RunLimits, permits: &Permits) -> Result<(), Report> {
    if limits.max_memory.is_some() {
        return Err(local_only("`--max-memory`"));
    }
    match *permits == Permits::default() {
        true => Ok(()),
        false => Err(local_only("a command with permissions")),
    }
}

pub(super) fn run(remote: &Remote, args: &Run) -> Result<Exit, Report> {
    plain(&args.limits, &args.permits)?;
    let refused = [
        (args.setup.is_some(), "`run --setup`"),
        (
            args.bound.profile.is_some() && args.many.is_some(),
            "`run --many` with `--profile`",
        ),
        (!args.bound.set.is_empty(), "`run --set`"),
        (args.exchanges.record.is_some(), "`run --record`"),
        (args.exchanges.replay.is_some(), "`run --replay`"),
        (
            args.many.is_some() && (args.target.is_some() || args.number.is_some()),
            "`run --many` with `--target` or `--version`",
        ),
    ];
    if let Some((_, what)) = refused.into_iter().find(|(is_given, _)| *is_given) {
        return Err(local_only(what));
    }
    let (slug, version) = flow(&args.file)?;
    if let Some(file) = &args.many {
        return many(remote, args, (&slug, version.as_deref()), file);
    }
    let given = ask::given(args.input.as_deref(), None, u64::MAX)?;
    let given = with_uploads(remote, given, &args.uploads)?;
    let mut body = json!({"input": edn(&given, "--input")?, "values": EDN});
    let texts = [
        ("id", &args.id),
        ("invocation", &args.invocation),
        ("profile", &args.bound.profile),
        (
            "target",
            &args.target.map(|target| target.name().to_owned()),
        ),
        (
            "installation",
            &args.installation.as_ref().map(ToString::to_string),
        ),
        ("version", &args.number.map(|it| it.to_string()).or(version)),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            body[name] = json!(text);
        }
    }
    if let Some(priority) = args.priority {
        body["priority"] = json!(priority);
    }
    if let Some(timeout) = args.timeout {
        body["timeout"] = json!(format!("{}ms", timeout.as_millis()));
    }
    let path = ["flows", &*slug, "runs"];
    if args.detach {
        let started = remote.post(&path, &body)?;
        note_warnings(list(&started, "warnings"), &args.show);
        return Ok(left(&started, args.show.json));
    }
    body["wait"] = json!(WAIT);
    // With a key, the request can be repeated until the run ends.
    let key = format!(
        "cli-{:016x}{:016x}",
        SystemRandom.next(),
        SystemRandom.next()
    );
    let mut first: Option<Value> = None;
    loop {
        let begun_ms = SystemClock.now_ms();
        let mut started = remote.post_once(&path, &body, &key)?;
        match &first {
            // The answer to a repeated request does not say how the run was started.
            Some(first) => copy_marks(first, &mut started),
            None => {
                note_warnings(list(&started, "warnings"), &args.show);
                first = Some(started.clone());
            }
        }
        let is_over = started["endedAt"].is_string();
        let is_early = SystemClock.now_ms() - begun_ms < 55_000;
        if is_over || is_early {
            return tell(remote, &started, args.show.json);
        }
    }
}

/// Stores files, and adds the references to them to the input.
fn with_uploads(
    remote: &Remote,
    input: Language,
    files: &[(String, PathBuf)],
) -> Result<Language, Report> {
    if files.is_empty() {
        return Ok(input);
    }
    let Some(map) = input.as_map() else {
        let message = format!("`--upload` needs a map as the input, got {}", input.kind());
        return Err(Report::error("E0941", message));
    };
    let mut fields: Vec<(Language, Language)> = map
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for (field, file) in files {
        let name = file.file_name().map(|name| name.to_string_lossy());
        let query = [("filename", name.unwrap_or_default().into_owned())];
        let stored = from_json(&remote.upload(&query, None, file)?);
        fields.push((Language::keyword(field), stored));
    }
    Ok(Language::map(fields))
}

/// Returns the slug of a flow and the version that the server must serve, both from its file. If there is no such file,
/// the argument is the slug, and any version is accepted.
fn flow(file: &Path) -> Result<(String, Option<String>), Report> {
    let name = file.display().to_string();
    if !file.is_file() {
        return Ok((name, None));
    }
    match load(&Session::new(), file, &name).loaded {
        Some(loaded) => Ok((loaded.flow.slug.to_string(), Some(loaded.program.hash))),
        None => Err(
            Report::error("E0910", format!("{name} holds no flow that can run"))
                .hint(format!("`flowstone check {name}` says why")),
        ),
    }
}

/// Returns the version of the flow in a file, which the server must serve.
fn version_of(file: &Path) -> Result<String, Report> {
    match flow(file)? {
        (_, Some(version)) => Ok(version),
        (name, None) => Err(Report::error(
            "E0905",
            format!("cannot read {name}: there is no such file"),
        )),
    }
}

fn many(
    remote: &Remote,
    args: &Run,
    (slug, version): (&str, Option<&str>),
    file: &Path,
) -> Result<Exit, Report> {
    let inputs = input::read_list(file)?;
    let inputs: Vec<Value> = inputs
        .iter()
        .map(|input| edn(input, "--many"))
        .collect::<Result<_, Report>>()?;
    let mut body = json!({"flow": slug, "inputs": inputs, "values": EDN});
    if let Some(version) = version {
        body["version"] = json!(version);
    }
    if let Some(invocation) = &args.invocation {
        body["invocation"] = json!(invocation);
    }
    if let Some(priority) = args.priority {
        body["priority"] = json!(priority);
    }
    if let Some(timeout) = args.timeout {
        body["timeout"] = json!(format!("{}ms", timeout.as_millis()));
    }
    let started = remote.post(&["runs"], &body)?;
    if args.show.json {
        output::json(&ok(started));
        return Ok(Exit::Completed);
    }
    let runs = list(&started, "runs");
    note_warnings(runs.flat_map(|run| list(run, "warnings")), &args.show);
    for run in list(&started, "runs") {
        output::data(run["id"].as_str().unwrap_or_default());
    }
    Ok(Exit::Completed)
}

/// What the answer to a start has besides the run.
const MARKS: [&str; 4] = [
    "concurrencyDecision",
    "concurrencyKey",
    "replaced",
    "warnings",
];

fn copy_marks(from: &Value, to: &mut Value) {
    for key in MARKS {
        if let Some(mark) = from.get(key) {
            to[key] = mark.clone();
        }
    }
}

/// Prints warnings of the server where `run` prints its own.
fn note_warnings<'a>(warnings: impl Iterator<Item = &'a Value>, show: &Show) {
    if show.json || show.quiet {
        return;
    }
    once(warnings.map(|warning| {
        let mut report =
            Report::error(&rows::text(warning, "code"), rows::text(warning, "message"));
        report.severity = Severity::Warning;
        let hints = list(warning, "hints").filter_map(Value::as_str);
        report.hints = hints.map(str::to_owned).collect();
        report
    }));
}

/// Reports a run that the server executes.
fn left(started: &Value, as_json: bool) -> Exit {
    let run = started["id"].as_str().unwrap_or_default();
    if !as_json {
        output::data(run);
        return Exit::Completed;
    }
    let status = match started["status"].as_str() {
        Some("queued") => "queued",
        _ => "left",
    };
    let mut object = json!({"ok": true, "run": run, "status": status, "queue": null});
    copy_marks(started, &mut object);
    output::json(&object);
    Exit::Completed
}

pub(super) fn resume(remote: &Remote, args: &RunsResume) -> Result<Exit, Report> {
    plain(&args.limits, &args.permits)?;
    let refused = [
        (args.all, "`runs resume --all`"),
        (args.secrets.is_some(), "`runs resume --secrets`"),
    ];
    if let Some((_, what)) = refused.into_iter().find(|(is_given, _)| *is_given) {
        return Err(local_only(what));
    }
    let id = args.id.as_deref().unwrap_or_default();
    let body = match &args.flow {
        Some(file) => json!({"version": version_of(file)?}),
        None => json!({}),
    };
    let run = remote.post(&["runs", id, "resume"], &body)?;
    follow(remote, run, &args.show)
}

pub(super) fn fork(remote: &Remote, args: &RunsFork) -> Result<Exit, Report> {
    plain(&args.limits, &args.permits)?;
    if args.no_resume {
        return Err(local_only("`runs fork --no-resume`"));
    }
    let mut set = json!({});
    for text in &args.set {
        let Some((path, value)) = text.split_once('=') else {
            let message = format!("`--set {text}` has no value");
            return Err(Report::error("E0921", message)
                .hint("write it as --set input.key=value or --set step.key=value"));
        };
        set[path] = super::jobs::value(value, "--set")?;
    }
    let mut body = json!({"set": set, "reuse": args.reuse, "values": EDN});
    if let Some(at) = &args.at {
        body["at"] = json!(at);
    }
    if let Some(file) = &args.flow {
        body["version"] = json!(version_of(file)?);
    }
    let fork = remote.post(&["runs", &args.id, "fork"], &body)?;
    follow(remote, fork, &args.show)
}

pub(super) fn schedule(remote: &Remote, args: &SchedulesRun) -> Result<Exit, Report> {
    plain(&args.limits, &args.permits)?;
    let run = remote.post(&["schedules", &args.flow, &args.id, "run"], &json!({}))?;
    if args.detach {
        let run = run["id"].as_str().unwrap_or_default();
        match args.show.json {
            true => output::json(&json!({"ok": true, "run": run, "status": "left"})),
            false => output::data(run),
        }
        return Ok(Exit::Completed);
    }
    follow(remote, run, &args.show)
}

/// Waits until a run ends, or waits for an answer.
fn follow(remote: &Remote, mut run: Value, show: &Show) -> Result<Exit, Report> {
    loop {
        let id = rows::text(&run, "id");
        let is_halted = match run["status"].as_str() {
            Some("running") | None => false,
            Some("waiting") => {
                let query = [("run", id.clone()), ("limit", "1".to_owned())];
                let waits = remote.get(&["waits"], &query)?;
                waits["waits"].as_array().is_some_and(|it| !it.is_empty())
            }
            Some(_) => true,
        };
        if is_halted {
            return tell(remote, &run, show.json);
        }
        thread::sleep(PAUSE);
        run = remote.get(&["runs", &id], &[])?;
    }
}

/// Prints the outcome of a run, or its open waits, in the form of commands that execute runs.
fn tell(remote: &Remote, run: &Value, as_json: bool) -> Result<Exit, Report> {
    let id = rows::text(run, "id");
    let status = rows::text(run, "status");
    let known = RunStatus::from_name(&status).unwrap_or(RunStatus::Running);
    let exit = match known {
        RunStatus::Completed => Exit::Completed,
        RunStatus::Failed | RunStatus::FailedCompensating => Exit::Failed,
        RunStatus::Cancelled | RunStatus::Terminated | RunStatus::TimedOut => Exit::Cancelled,
        RunStatus::Queued | RunStatus::Waiting | RunStatus::Running => Exit::Waiting,
    };
    let whole = |name: &str| {
        let query = [
            ("full", "true".to_owned()),
            ("values", values(as_json).to_owned()),
        ];
        Ok(remote.get(&["runs", &id], &query)?[name].take())
    };
    let (name, value) = match known {
        RunStatus::Completed if as_json => ("result", run["result"].clone()),
        RunStatus::Completed => ("result", whole("result")?),
        RunStatus::Failed if as_json => ("error", whole("error")?),
        RunStatus::Failed => ("error", whole("errorText")?),
        RunStatus::FailedCompensating => ("reason", run["waitReason"].clone()),
        RunStatus::Cancelled | RunStatus::Terminated | RunStatus::TimedOut => {
            ("reason", run["cancelReason"].clone())
        }
        RunStatus::Queued => ("queue", whole("queue")?),
        RunStatus::Waiting | RunStatus::Running => {
            let query = [("run", id.clone()), ("values", values(as_json).to_owned())];
            ("waits", remote.get(&["waits"], &query)?["waits"].take())
        }
    };
    match as_json {
        true => print_json((run, &status), (name, value), exit),
        false => print_text((run, &id, &status), (name, &value)),
    }
    Ok(exit)
}

fn print_json((run, status): (&Value, &str), (name, value): (&str, Value), exit: Exit) {
    let is_good = !matches!(exit, Exit::Failed | Exit::Cancelled);
    let mut object = json!({"ok": is_good, "run": run["id"], "status": status});
    object[name] = value;
    copy_marks(run, &mut object);
    output::json(&object);
}

fn print_text((run, id, status): (&Value, &str, &str), (name, value): (&str, &Value)) {
    let text = value.as_str().unwrap_or_default();
    match name {
        "result" => match codec::decode(text) {
            Ok(Language::Text(text)) => output::data(&text),
            Ok(value) => output::data(&pretty(&value)),
            Err(_) => output::data(text),
        },
        "error" => {
            output::note(draw_pieces(value, None).trim_end());
            output::note(&format!("  run {id}"));
        }
        "queue" if value.is_object() => {
            output::note(&format!("run {id} is {}", place_of_json(value)));
        }
        "waits" => {
            let why = run["waitReason"].as_str().unwrap_or(status);
            output::note(&format!("run {id} waits: {why}"));
            for shown in value.as_array().into_iter().flatten() {
                output::note(&format!("  answer {}", how_to_answer(&wait(shown))));
            }
        }
        _ => output::note(&format!("run {id} is {status}: {text}")),
    }
}
