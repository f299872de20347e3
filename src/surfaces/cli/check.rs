//! `flowstone check`: reports everything that is wrong with flow files without running them.

mod bounds;
mod fix;
mod released;
mod sarif;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use flowstone_engine::catalog::NAME_TAKEN;
use flowstone_engine::diagnostic::{Diagnostic, nearest};
use flowstone_engine::disk::{self, Edited, InProject};
use flowstone_flow::flow::{Flow, name_of, portability};
use flowstone_flow::interfaces::{self, Interface};
use flowstone_flow::mcp_interfaces::{self, McpKind};
use flowstone_flow::permission::Permissions;
use flowstone_flow::step::{Step, real_path};
use flowstone_fronts::FORMATS;
use flowstone_lang::value::Value;
use serde_json::json;

use super::args::{Check, CheckFormat};
use super::exit::Exit;
use super::home::{Project, SETTINGS};
use super::needs::Needs;
use super::output;
use super::report::{self, Report, Shown, unreadable};
use super::test::is_of_tests;
use super::{App, against, ask, flow_file, graph};
pub use crate::json::of_findings;

/// File extensions of possible flows.
const ENDINGS: &[&str] = &["clj", "edn"];
/// Folders that contain no sources.
pub const SKIPPED: &[&str] = &["node_modules", "target"];

/// Checks each file, and prints the findings.
pub fn run(args: &Check, app: &dyn App) -> Exit {
    let project = Project::find(&args.home);
    let (files, mut reports) = files_of(&args.paths, &project);
    if args.against_running && reports.is_empty() {
        return against::run(&files, &project, app, args.json);
    }
    let (checking, wrong) = Checking::new(app, &project);
    reports.extend(wrong);
    let fixes = args.fix.then(|| fix::all(&checking, &files, args.dry_run));
    let format = match args.json {
        true => CheckFormat::Json,
        false => args.format,
    };
    let no_edits = Edited::new();
    let edited = match &fixes {
        Some(fixes) if args.dry_run => &fixes.edited,
        _ => &no_edits,
    };
    let (found, seen) = checking.all(&files, edited, args.portable);
    reports.extend(fixes.iter().flat_map(|fixes| fixes.failed.iter().cloned()));
    reports.extend(found);
    let notes = released::differing(app, &project, &seen.digests);
    let errors = reports
        .iter()
        .filter(|report| report.severity == report::Severity::Error)
        .count();
    let computing = bounds::Computing::new(&checking, edited);
    let bounds = args.bounds.then(|| computing.all(&files));
    match format {
        CheckFormat::Sarif => output::json(&sarif::log(&reports)),
        CheckFormat::Json => {
            let findings: Vec<_> = reports.iter().map(Shown::to_json).collect();
            let needs: Vec<_> = seen.needs.iter().map(Needs::to_json).collect();
            let mut answer = json!({"ok": errors == 0, "files": files.len(), "findings": findings, "needs": needs, "notes": notes});
            if let Some(fixes) = &fixes {
                answer["fixes"] = fixes.to_json();
            }
            if let Some(bounds) = &bounds {
                answer["bounds"] = bounds::to_json(bounds);
            }
            output::json(&answer);
        }
        CheckFormat::Text => {
            if let Some(fixes) = &fixes {
                fixes.tell();
            }
            if let Some(bounds) = &bounds {
                bounds::tell(bounds);
            }
            tell(&reports, &seen);
            notes.iter().for_each(|note| output::note(note));
            output::note(&counted(files.len(), &reports));
        }
    }
    if errors == 0 {
        Exit::Completed
    } else {
        Exit::Failed
    }
}

/// Prints findings and the permissions that flows lack.
fn tell(reports: &[Report], seen: &Seen) {
    reports.iter().for_each(output::report);
    // Permissions that the project grants already are not shown.
    let lacking = seen.needs.iter().filter(|it| it.missing().next().is_some());
    let lacking: Vec<&Needs> = lacking.collect();
    let mut lines: Vec<String> = lacking.iter().flat_map(|it| it.lines(|_| false)).collect();
    if !lacking.is_empty() {
        lines.extend(Needs::missing_lines(lacking.into_iter()));
    }
    lines.iter().for_each(|line| output::note(line));
}

/// Finds the flow files that paths and names of flows stand for. Returns reports about those that cannot be found.
fn files_of(paths: &[PathBuf], project: &Project) -> (Vec<PathBuf>, Vec<Report>) {
    let (mut files, mut reports) = (Vec::new(), Vec::new());
    for path in paths {
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
    (files, reports)
}

/// What every file is checked with.
pub(super) struct Checking<'a> {
    app: &'a dyn App,
    project: &'a Project,
    steps: Vec<Box<dyn Step>>,
    settings: Value,
    registered: BTreeSet<String>,
}

impl<'a> Checking<'a> {
    /// Returns also what is wrong with the project's settings.
    fn new(app: &'a dyn App, project: &'a Project) -> (Checking<'a>, Vec<Report>) {
        let (settings, wrong) = match app.settings(project) {
            Ok(settings) => (settings, Vec::new()),
            Err(report) => (Value::Nil, vec![report]),
        };
        let checking = Checking {
            app,
            project,
            steps: app.steps(),
            settings,
            registered: released::slugs(app, project),
        };
        (checking, wrong)
    }

    fn around(&self) -> InProject<'_> {
        InProject {
            root: &self.project.root,
            settings: &self.settings,
            formats: FORMATS,
            registered: Some(&self.registered),
        }
    }

    /// Checks all files as flows of one project.
    fn all(&self, files: &[PathBuf], edited: &Edited, portable: bool) -> (Vec<Report>, Seen) {
        let mut seen = Seen {
            portable,
            permissions: self.app.permissions(self.project).unwrap_or_default(),
            ..Seen::default()
        };
        let mut reports = Vec::new();
        for file in files {
            match graph::reports(file) {
                Some(found) => reports.extend(found),
                None => reports.extend(self.file(file, edited, &mut seen)),
            }
        }
        reports.extend(unknown_slugs(&self.settings, &self.project.root, &seen));
        (reports, seen)
    }

    /// Checks one file by itself. Returns whether it could be read as a flow.
    pub(super) fn alone(&self, file: &Path, edited: &Edited) -> (bool, Vec<Report>) {
        let session = self.app.session();
        let name = file.display().to_string();
        let around = (&*self.steps, Some(self.around()));
        let checked = disk::check_edited(&session, (file, &name), around, edited);
        (
            checked.loaded.is_some(),
            of_findings(&session, &checked.findings),
        )
    }

    /// Checks one file, and the project's setup values for it.
    fn file(&self, file: &Path, edited: &Edited, seen: &mut Seen) -> Vec<Report> {
        let session = self.app.session();
        let project = self.around();
        let name = file.display().to_string();
        let around = (&*self.steps, Some(project));
        let checked = disk::check_edited(&session, (file, &name), around, edited);
        let mut findings = checked.findings;
        if let Some(loaded) = &checked.loaded {
            findings.extend(seen.clashes(&name, &loaded.flow));
            if seen.portable {
                let sources = session.world().sources.borrow();
                findings.extend(portability(&sources, &loaded.flow));
            }
        }
        let mut reports = of_findings(&session, &findings);
        if let Some(loaded) = &checked.loaded {
            let flow = &loaded.flow;
            let setup = project.settings.get("setup");
            let values = setup.and_then(|setup| setup.get(&flow.slug));
            if let Some(values) = values {
                reports.extend(ask::unknown_setup(flow, values, SETTINGS));
            }
            seen.slugs.insert(flow.slug.to_string());
            let digest = flow.digest.as_deref().map(str::to_owned);
            seen.digests
                .push((name.clone(), flow.slug.to_string(), digest));
            let is_outside = !real_path(file).starts_with(real_path(project.root));
            let allow = match is_outside {
                true => {
                    let digest = flow.digest.as_deref();
                    seen.permissions.of_outside_flow(&flow.slug, digest)
                }
                false => seen.permissions.of_flow(&flow.slug),
            };
            let needs = Needs::of(&flow.slug, &checked.needs, &allow, project.root);
            seen.needs.push(needs);
        }
        reports
    }
}

/// The declarations of the files that were checked.
#[derive(Default)]
struct Seen {
    /// Whether to report what is not portable.
    portable: bool,
    slugs: BTreeSet<String>,
    permissions: Permissions,
    needs: Vec<Needs>,
    /// Interfaces, each with its file.
    interfaces: Vec<(String, Interface)>,
    /// The files of flows, each with the slug and the digest of its texts.
    digests: Vec<(String, String, Option<String>)>,
    /// The names that are offered to clients of MCP, each with its file.
    mcp: Vec<(String, (McpKind, String))>,
}

impl Seen {
    /// Finds interfaces of a flow that have the same address as earlier ones.
    fn clashes(&mut self, file: &str, flow: &Flow) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (interface, span) in interfaces::declared(flow) {
            for (other, earlier) in &self.interfaces {
                if let Some(clash) = interfaces::clashes(&[earlier, &interface]).first() {
                    let message = format!(
                        "the address `{}` is that of an interface in {other}, too: neither is served",
                        clash.address
                    );
                    found.push(Diagnostic::error("E1042", message).at(span));
                }
            }
            self.interfaces.push((file.to_owned(), interface));
        }
        for (interface, span) in mcp_interfaces::declared(flow) {
            let key = interface.key();
            if let Some((other, _)) = self.mcp.iter().find(|(_, known)| *known == key) {
                let message = format!(
                    "`{}` is offered over MCP in {other}, too: neither is served",
                    key.1
                );
                found.push(Diagnostic::error(NAME_TAKEN, message).at(span));
            }
            self.mcp.push((file.to_owned(), key));
        }
        found
    }
}

/// Warns about setup values and permissions in the project's settings for flows that do not exist.
fn unknown_slugs(settings: &Value, root: &Path, seen: &Seen) -> Vec<Report> {
    let trusted = &seen.permissions.trusted;
    let is_seen =
        |name: &str| seen.slugs.contains(name) || trusted.iter().any(|it| it.slug == name);
    let unseen = |key: &str| {
        let map = settings.get(key).and_then(Value::as_map);
        let entries = map.into_iter().flat_map(|map| map.iter());
        let names = entries.filter_map(|(key, _)| name_of(key));
        names.filter(|name| !is_seen(name)).collect::<Vec<_>>()
    };
    let (setup, permissions) = (unseen("setup"), unseen("flows"));
    if setup.is_empty() && permissions.is_empty() {
        return Vec::new();
    }
    let mut slugs = disk::slugs(root);
    slugs.extend(seen.slugs.iter().cloned());
    let warn = |(code, key, what): (&'static str, &str, &str), name: &str| {
        let message =
            format!("`:{key}` of {SETTINGS} has {what} for `{name}`, and no flow has this slug");
        let mut report = Report::error(code, message);
        report.severity = report::Severity::Warning;
        match nearest(name, slugs.iter().map(String::as_str)) {
            Some(near) => report.hint(format!("did you mean `{near}`?")),
            None => report.hint(format!("the keys of `:{key}` are the slugs of flows")),
        }
    };
    let of_setup = ("E0429", "setup", "values");
    let of_flows = ("E0963", "flows", "permissions");
    let setup = setup.iter().map(|name| (of_setup, name));
    let permissions = permissions.iter().map(|name| (of_flows, name));
    let is_unknown = |name: &str| slugs.iter().all(|slug| slug != name);
    let unknown = setup
        .chain(permissions)
        .filter(|(_, name)| is_unknown(name));
    unknown.map(|(kind, name)| warn(kind, name)).collect()
}

/// Finds the flow files below a path. The path of a file is always accepted; in a folder, only files that look like
/// flows are.
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
        && !is_of_tests(path)
        // Reading a pipe would block.
        && path.is_file()
        && fs::read_to_string(path)
            .is_ok_and(|text| text.contains(":flow") || text.contains("(flow/step"))
}

/// Returns the last line of the command, for reports of every severity.
fn counted(files: usize, reports: &[Report]) -> String {
    let count = |severity| reports.iter().filter(|it| it.severity == severity).count();
    let (errors, warnings) = (
        count(report::Severity::Error),
        count(report::Severity::Warning),
    );
    let summary = summary(files, errors, warnings);
    match (count(report::Severity::Portability), errors + warnings) {
        (0, _) => summary,
        (more, 0) => format!(
            "{}; {more} not portable",
            summary.replace(", nothing found", ": no errors")
        ),
        (more, _) => format!("{summary}; {more} not portable"),
    }
}

/// Returns the last line of the command.
pub fn summary(files: usize, errors: usize, warnings: usize) -> String {
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
