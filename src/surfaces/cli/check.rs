//! `flowstone check`: all that can be said about flow files without running them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use flowstone_engine::diagnostic::{Diagnostic, Severity};
use flowstone_engine::flow;
use flowstone_engine::step::Step;
use flowstone_lang::session::Session;
use serde_json::json;

use super::args::Check;
use super::exit::Exit;
use super::home::Project;
use super::output;
use super::report::{self, Report, Shown, unreadable};
use super::{App, against, flow_file, unserved};

/// Endings of files that may be flows.
const ENDINGS: &[&str] = &["clj", "edn"];
/// Folders that hold no sources.
const SKIPPED: &[&str] = &["node_modules", "target"];

/// Checks each file, and shows what is wrong.
pub fn run(args: &Check, app: &dyn App) -> Exit {
    let mut reports = Vec::new();
    let mut files = Vec::new();
    let project = Project::find(&args.home);
    for path in &args.paths {
        let found = match path.is_dir() {
            true => Ok(path.clone()),
            false => flow_file::find(path, &project.root),
        };
        match found {
            Err(report) => reports.push(report),
            Ok(path) => {
                if let Err(error) = gather(&path, &mut files) {
                    reports.push(unreadable(&path.display().to_string(), &error));
                }
            }
        }
    }
    if args.against_running && reports.is_empty() {
        return against::run(&files, &project, app, args.json);
    }
    let steps = app.steps();
    let mut not_served = BTreeSet::new();
    for file in &files {
        reports.extend(check(
            file,
            &app.session(),
            (&steps, &project),
            &mut not_served,
        ));
    }
    let note = unserved::note(&not_served);
    let errors = reports
        .iter()
        .filter(|report| report.severity == report::Severity::Error)
        .count();
    if args.json {
        let findings: Vec<_> = reports.iter().map(Shown::to_json).collect();
        output::json(
            &json!({"ok": errors == 0, "files": files.len(), "findings": findings, "notes": note.iter().collect::<Vec<_>>()}),
        );
    } else {
        for report in &reports {
            output::report(report);
        }
        if let Some(note) = note {
            output::note(&note);
        }
        output::note(&summary(files.len(), errors, reports.len() - errors));
    }
    if errors == 0 {
        Exit::Completed
    } else {
        Exit::Failed
    }
}

/// Checks one file. Notes what it declares that is not served.
fn check(
    file: &Path,
    session: &Session,
    (steps, project): (&[Box<dyn Step>], &Project),
    not_served: &mut BTreeSet<&'static str>,
) -> Vec<Report> {
    let name = file.display().to_string();
    let checked = flow::check_in(session, file, &name, (steps, Some(&project.root)));
    if let Some(loaded) = &checked.loaded {
        not_served.extend(unserved::of(&loaded.flow));
    }
    of_findings(session, &checked.findings)
}

/// Turns findings about a flow into reports, with their places.
pub fn of_findings(session: &Session, findings: &[Diagnostic]) -> Vec<Report> {
    let sources = session.world().sources.borrow();
    findings
        .iter()
        .map(|finding| {
            let mut report =
                Report::error(finding.code, &*finding.message).at(&sources, finding.span);
            if finding.severity == Severity::Warning {
                report.severity = report::Severity::Warning;
            }
            report.label = finding.label.clone().unwrap_or_default();
            report.hints.clone_from(&finding.hints);
            report
        })
        .collect()
}

/// Finds the flow files below a path. A file that is named itself is always one; in a folder, the files that
/// look like flows are.
pub fn gather(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if entry.is_dir() {
            if !name.starts_with('.') && !SKIPPED.contains(&&*name) {
                gather(&entry, files)?;
            }
        } else if is_flow(&entry) {
            files.push(entry);
        }
    }
    Ok(())
}

fn is_flow(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ENDINGS.iter().any(|known| ending == *known)
        && fs::read_to_string(path)
            .is_ok_and(|text| text.contains(":flow") || text.contains("(flow/step"))
}

fn summary(files: usize, errors: usize, warnings: usize) -> String {
    let count = |number: usize, word: &str| match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    };
    let files = count(files, "file");
    if errors + warnings == 0 {
        return format!("{files} checked, nothing found");
    }
    format!(
        "{files} checked: {}, {}",
        count(errors, "error"),
        count(warnings, "warning")
    )
}
