//! `flowstone doctor`: looks at everything that a run needs, without a run.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flowstone_engine::Engine;
use flowstone_engine::diagnostic::Severity;
use flowstone_flow::flow::Flow;
use serde_json::{Value as Json, json};

use super::args::Doctor;
use super::check::gather;
use super::exit::Exit;
use super::home::Project;
use super::paint::{BOLD_RED, BOLD_YELLOW, GREEN, Paint};
use super::report::Report;
use super::runtime::Runtime;
use super::{App, Open, output};

/// How long a write to the disk may take before it is mentioned: a journaled step waits for one.
const SLOW_DISK: Duration = Duration::from_millis(20);
/// How many writes are timed. Their median counts.
const WRITES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    Warning,
    Broken,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Fine => "ok",
            State::Warning => "warning",
            State::Broken => "error",
        }
    }

    fn paint(self) -> Paint {
        match self {
            State::Fine => GREEN,
            State::Warning => BOLD_YELLOW,
            State::Broken => BOLD_RED,
        }
    }
}

/// What was found about one part of the project or the machine.
struct Finding {
    part: &'static str,
    state: State,
    message: String,
    hint: Option<String>,
}

impl Finding {
    fn fine(part: &'static str, message: impl Into<String>) -> Finding {
        Finding {
            part,
            state: State::Fine,
            message: message.into(),
            hint: None,
        }
    }

    fn warning(part: &'static str, message: impl Into<String>, hint: &str) -> Finding {
        Finding {
            state: State::Warning,
            hint: Some(hint.to_owned()),
            ..Finding::fine(part, message)
        }
    }

    fn of_report(part: &'static str, report: &Report) -> Finding {
        Finding {
            state: State::Broken,
            hint: report.hints.first().cloned(),
            ..Finding::fine(part, format!("{}: {}", report.code, report.message))
        }
    }

    fn to_json(&self) -> Json {
        json!({
            "part": self.part,
            "state": self.state.word(),
            "message": self.message,
            "hint": self.hint,
        })
    }
}

/// Performs the command. Exits with 1 if something is broken.
pub fn run(args: &Doctor, app: &dyn App) -> Exit {
    let project = Project::find(&args.home);
    let mut findings = vec![Finding::fine("project", project.root.display().to_string())];
    findings.push(match app.settings(&project) {
        Ok(_) => Finding::fine("settings", "flowstone.edn can be read, or is not there"),
        Err(report) => Finding::of_report("settings", &report),
    });
    findings.push(disk(&project));
    findings.extend(programs());
    match opened(&project, app) {
        Ok(more) => findings.extend(more),
        Err(report) => findings.push(Finding::of_report("data", &report)),
    }
    let is_broken = findings
        .iter()
        .any(|finding| finding.state == State::Broken);
    match args.json {
        true => {
            let all: Vec<Json> = findings.iter().map(Finding::to_json).collect();
            output::json(&json!({"ok": !is_broken, "findings": all}));
        }
        false => findings.iter().for_each(print),
    }
    match is_broken {
        true => Exit::Failed,
        false => Exit::Completed,
    }
}

fn print(finding: &Finding) {
    let paint = finding.state.paint();
    let word = format!("{:<7}", finding.state.word());
    output::data(&format!(
        "{paint}{word}{paint:#}  {:<11}  {}",
        finding.part, finding.message
    ));
    if let Some(hint) = &finding.hint {
        output::data(&format!("                      {hint}"));
    }
}

/// Times writes that reach the disk, in the folder of the project's data.
fn disk(project: &Project) -> Finding {
    let folder = match project.home.is_dir() {
        true => &project.home,
        false => &project.root,
    };
    match timed_write(folder) {
        Err(error) => {
            let report = Report::error(
                "E0957",
                format!("{} cannot be written: {error}", folder.display()),
            );
            Finding::of_report("disk", &report)
        }
        Ok(took) => {
            let message = format!(
                "a write takes {:.1} ms to reach the disk",
                took.as_secs_f64() * 1000.0
            );
            match took > SLOW_DISK {
                true => Finding::warning(
                    "disk",
                    message,
                    "each journaled step waits for one: choose a faster disk with `--home`",
                ),
                false => Finding::fine("disk", message),
            }
        }
    }
}

fn timed_write(folder: &Path) -> io::Result<Duration> {
    let path = folder.join(format!(".flowstone-doctor-{}", std::process::id()));
    let timed = || -> io::Result<Vec<Duration>> {
        let mut file = File::create(&path)?;
        let mut times = Vec::new();
        for _ in 0..WRITES {
            let begun = Instant::now();
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
            times.push(begun.elapsed());
        }
        times.sort();
        Ok(times)
    };
    let times = timed();
    let _ = fs::remove_file(&path);
    let times = times?;
    Ok(times.get(WRITES / 2).copied().unwrap_or_default())
}

/// Looks for the programs that steps start.
fn programs() -> Vec<Finding> {
    let looked = [(
        "git",
        "sources and changesets of git repositories need it: install git",
    )];
    let found = |(name, hint): (&'static str, &str)| {
        let ran = Command::new(name)
            .arg("--version")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        match ran {
            Ok(ran) if ran.status.success() => {
                let version = String::from_utf8_lossy(&ran.stdout);
                Finding::fine(name, version.trim().to_owned())
            }
            Ok(_) | Err(_) => Finding::warning(name, "it is not in the PATH", hint),
        }
    };
    looked.into_iter().map(found).collect()
}

/// Looks at what needs the project's stores: data, flows, connections.
fn opened(project: &Project, app: &dyn App) -> Result<Vec<Finding>, Report> {
    if !project.home.is_dir() {
        let message = format!(
            "there is no data yet: {} does not exist",
            project.home.display()
        );
        return Ok(vec![Finding::fine("data", message)]);
    }
    Runtime::start()?.block_on(async {
        let engine = app.open(project, Open::Existing)?;
        let message = format!("{} can be opened", project.home.display());
        let mut findings = vec![Finding::fine("data", message)];
        let (flows, of_flows) = flows(&engine);
        findings.push(of_flows);
        let flows: Vec<&Flow> = flows.iter().map(|flow| &**flow).collect();
        findings.extend(connections(app, &engine, &flows));
        Ok(findings)
    })
}

fn flows(engine: &Engine) -> (Vec<std::rc::Rc<Flow>>, Finding) {
    let mut flows = Vec::new();
    let mut wrong = Vec::new();
    let mut files = Vec::new();
    // A folder that cannot be read has no flows that could run.
    let _ = gather(&engine.project_root().join("flows"), &mut files);
    for file in files {
        let name = file.strip_prefix(engine.project_root()).unwrap_or(&file);
        let name = name.display().to_string();
        let checked = engine.check(&engine.session(), &file, &name);
        let is_error = checked
            .findings
            .iter()
            .any(|finding| finding.severity == Severity::Error);
        if is_error {
            wrong.push(name);
        }
        flows.extend(checked.loaded.map(|loaded| loaded.flow));
    }
    let finding = match wrong.first() {
        None => Finding::fine("flows", format!("{} in the folder of flows", flows.len())),
        Some(first) => Finding {
            state: State::Broken,
            hint: Some(format!("`flowstone check {first}` shows the errors")),
            ..Finding::fine("flows", format!("with errors: {}", wrong.join(", ")))
        },
    };
    (flows, finding)
}

fn connections(app: &dyn App, engine: &Engine, flows: &[&Flow]) -> Vec<Finding> {
    let reports = app.connections(engine, flows);
    let needed = reports.iter().filter(|report| !report.is_optional);
    let mut findings: Vec<Finding> = needed
        .filter_map(|report| {
            let unset = report.secret.as_ref().filter(|secret| !secret.is_set);
            let unset = unset.map(|secret| format!("its secret is not set: {}", secret.place));
            let problem = report.problem.clone().or(unset)?;
            let message = format!("{}: {problem}", report.name);
            let hint = "`flowstone connections list` shows where its secret is looked for";
            Some(Finding::warning("connections", message, hint))
        })
        .collect();
    // A slot and the connection that it is bound to lack the same secret.
    findings.dedup_by(|one, other| one.message == other.message);
    if findings.is_empty() {
        let message = format!("{}, each with its secret", reports.len());
        findings.push(Finding::fine("connections", message));
    }
    findings
}
