//! `flowstone flows push`, `pull`, `diff`, `release`, `rollback` and `archive`: versions of flows.

use std::path::{Path, PathBuf};

use flowstone_engine::Engine;
use flowstone_engine::disk::named;
use flowstone_project::registry::{
    Base, FlowRegistry, NewCommit, RegistryError, VersionFiles, VersionRef, WorkingCopy,
    check_version, deploy_key, diff as difference, files_of,
};
use serde_json::{Value as Json, json};

use crate::cli::args::{
    FlowsArchive, FlowsDiff, FlowsList, FlowsPull, FlowsPush, FlowsRelease, FlowsRollback,
    FlowsShow, FlowsVersions, Home,
};
use crate::cli::check::of_findings;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::report::{Report, Severity};
use crate::cli::rows::{list as listed, maybe, text};
use crate::cli::runtime::Runtime;
use crate::cli::table::{Column, table};
use crate::cli::{App, Open, flow_file, output};
use crate::json::{
    moved_json, ok, pushed_json, registered_json, registry_flow_json, registry_version_json,
    version_diff_json, version_with_files_json,
};

/// Opens the project's registry.
fn with_registry<T>(
    app: &dyn App,
    home: &Home,
    question: impl AsyncFnOnce(&Engine, &FlowRegistry) -> Result<T, Report>,
) -> Result<T, Report> {
    let project = Project::find(home);
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::OrMake)?;
        let registry = FlowRegistry::new(engine.stores(), engine.now_ms());
        question(&engine, &registry).await
    })
}

/// Reports an error of the registry.
pub fn of_registry(error: &RegistryError) -> Report {
    let mut report = Report::error(error.code(), error.to_string());
    if let RegistryError::Conflict(conflict) = error {
        report
            .notes
            .extend(conflict.diff.lines().map(str::to_owned));
    }
    match error.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

fn failed(error: RegistryError) -> Report {
    of_registry(&error)
}

pub(super) fn push(args: &FlowsPush, app: &dyn App) -> Result<Exit, Report> {
    let pushed = with_registry(app, &args.home, async |engine, registry| {
        let read = read(&args.path, engine.project_root(), args.json)?;
        let known = engine.read_registered().await;
        known.map_err(|error| failed(error.into()))?;
        let warnings = check_version(&read.slug, &read.files, |session, texts| {
            engine.check_version(session, &read.slug, texts)
        });
        let warnings = warnings.map_err(failed)?;
        let new = NewCommit {
            slug: read.slug.clone(),
            files: read.files,
            base: base(args),
            author: args.author.name(),
            message: args.message.clone().unwrap_or_default(),
            place: Some(read.copy.place().to_owned()),
        };
        let added = registry.commit(new).await.map_err(failed)?;
        let flow = registry.flow(&read.slug).await.map_err(failed)?;
        Ok(pushed_json(&added, &flow, &warnings))
    })?;
    tell_pushed(pushed, args.json);
    Ok(Exit::Completed)
}

/// Returns the version that a push expects to be the newest.
pub fn base(args: &FlowsPush) -> Base {
    match (args.force, args.base) {
        (true, _) => Base::Any,
        (false, None) => Base::OfPlace,
        (false, Some(0)) => Base::Nothing,
        (false, Some(number)) => Base::Version(number),
    }
}

/// The flow of a file, as the registry takes it.
pub struct ReadFlow {
    pub slug: String,
    pub files: VersionFiles,
    pub copy: WorkingCopy,
}

/// Reads a flow file. Its definition must be usable; its code is checked later.
pub fn read(path: &Path, root: &Path, quietly: bool) -> Result<ReadFlow, Report> {
    let path = flow_file::find(path, root)?;
    let name = flow_file::name_in_project(&path, root);
    let session = flowstone_lang::session::Session::new();
    let checked = flowstone_engine::disk::load(&session, &path, &name);
    let reports = of_findings(&session, &checked.findings).into_iter();
    let errors = reports.filter(|report| report.severity == Severity::Error);
    let mut first = None;
    for report in errors {
        if first.is_none() {
            first = Some(report);
        } else if !quietly {
            output::report(&report);
        }
    }
    if let Some(report) = first {
        return Err(report);
    }
    let no_flow = || Report::error("E0910", format!("{name} holds no flow"));
    let loaded = checked.loaded.ok_or_else(no_flow)?;
    Ok(ReadFlow {
        slug: loaded.flow.slug.to_string(),
        files: files_of(&loaded).map_err(failed)?,
        copy: WorkingCopy::at(&path),
    })
}

/// Prints the outcome of a push, in the form of the API.
pub fn tell_pushed(pushed: Json, as_json: bool) {
    if as_json {
        output::json(&ok(pushed));
        return;
    }
    for warning in listed(&pushed, "warnings") {
        let place = match (warning["line"].as_u64(), warning["column"].as_u64()) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}: ", text(warning, "file")),
            _ => String::new(),
        };
        let (code, message) = (text(warning, "code"), text(warning, "message"));
        output::note(&format!("warning[{code}]: {place}{message}"));
    }
    let version = &pushed["version"];
    let name = format!("{}@{}", text(version, "slug"), version["version"]);
    output::data(&match maybe(&pushed, "status").as_deref() {
        Some("no_change") => format!("{name} has these files already; nothing was pushed"),
        _ => format!("{name} {}", text(version, "message")),
    });
}

pub(super) fn pull(args: &FlowsPull, app: &dyn App) -> Result<Exit, Report> {
    let pulled = with_registry(app, &args.home, async |engine, registry| {
        let (slug, wanted) = VersionRef::with_slug(&args.flow).map_err(failed)?;
        let version = registry.version(slug, &wanted).await.map_err(failed)?;
        let path = args.to.clone();
        let path = path.unwrap_or_else(|| file_of(engine.project_root(), slug));
        let copy = WorkingCopy::at(&path);
        let pulled = copy.pull(registry, &version, args.force).await;
        let left_out = pulled.map_err(failed)?;
        let flow = registry.flow(slug).await.map_err(failed)?;
        Ok(json!({
            "version": registry_version_json(&version, &flow),
            "file": path.display().to_string(),
            "leftOut": left_out,
        }))
    })?;
    tell_pulled(pulled, args.json);
    Ok(Exit::Completed)
}

/// Returns the file of a flow in a project, or where it belongs.
pub fn file_of(root: &Path, slug: &str) -> PathBuf {
    let usual = || root.join("flows").join(format!("{slug}.edn"));
    named(root, slug).unwrap_or_else(|_| usual())
}

/// Prints what was pulled.
pub fn tell_pulled(pulled: Json, as_json: bool) {
    if as_json {
        output::json(&ok(pulled));
        return;
    }
    let version = &pulled["version"];
    let name = format!("{}@{}", text(version, "slug"), version["version"]);
    output::data(&format!("{name} {}", text(&pulled, "file")));
    let left_out = pulled["leftOut"].as_array().into_iter().flatten();
    for path in left_out.filter_map(Json::as_str) {
        output::note(&format!(
            "`{path}` was not written, because the flow does not include it; `flowstone flows show {name} --text` prints it"
        ));
    }
}

pub(super) fn diff(args: &FlowsDiff, app: &dyn App) -> Result<Exit, Report> {
    let found = with_registry(app, &args.home, async |engine, registry| {
        let from = VersionRef::read(&args.from).map_err(failed)?;
        if let Some(to) = &args.to {
            let to = VersionRef::read(to).map_err(failed)?;
            let found = registry.diff(&args.slug, (&from, &to)).await;
            let (old, new, found) = found.map_err(failed)?;
            return Ok(version_diff_json((&old, &new), &found));
        }
        let old = registry.version(&args.slug, &from).await.map_err(failed)?;
        let files = registry.files(&old).await.map_err(failed)?;
        let path = file_of(engine.project_root(), &args.slug);
        Ok(with_file(&path, (&old.number.to_string(), &files)))
    })?;
    tell_diff(found, args.json);
    Ok(Exit::Completed)
}

/// Returns the difference between a version and the file of its flow.
pub fn with_file(path: &Path, (number, files): (&str, &VersionFiles)) -> Json {
    let name = path.display().to_string();
    let session = flowstone_lang::session::Session::new();
    let loaded = flowstone_engine::disk::load(&session, path, &name).loaded;
    let mut own = loaded
        .and_then(|loaded| files_of(&loaded).ok())
        .unwrap_or_default();
    if own.is_empty()
        && let Ok(bytes) = std::fs::read(path)
    {
        own.insert("flow.edn".to_owned(), bytes);
    }
    let found = difference(files, &own, (number, "file"));
    let files: Vec<Json> = found
        .files
        .iter()
        .map(|file| {
            json!({"path": file.path, "change": file.change.name(), "added": file.added,
                   "removed": file.removed, "diff": file.diff})
        })
        .collect();
    let forms: Vec<Json> = found
        .forms
        .iter()
        .map(|form| json!({"form": form.form, "change": form.change.name()}))
        .collect();
    json!({"from": number.parse::<i64>().ok(), "to": null, "file": name, "files": files, "forms": forms})
}

/// Prints a difference, in the form of the API.
pub fn tell_diff(found: Json, as_json: bool) {
    if as_json {
        output::json(&ok(found));
        return;
    }
    if listed(&found, "files").next().is_none() {
        output::note("the files are equal");
        return;
    }
    for form in listed(&found, "forms") {
        output::note(&format!("{} {}", text(form, "change"), text(form, "form")));
    }
    for file in listed(&found, "files") {
        output::whole(&text(file, "diff"));
    }
}

pub(super) fn release(args: &FlowsRelease, app: &dyn App) -> Result<Exit, Report> {
    let moved = with_registry(app, &args.home, async |engine, registry| {
        let by = (
            &*args.author.name(),
            args.message.as_deref().unwrap_or_default(),
        );
        let keys = (args.key.key.as_deref(), deploy_key(engine));
        let keys = (keys.0, keys.1.as_deref());
        let checked = registry.check_deploy_key(&args.slug, args.version, keys);
        checked.await.map_err(failed)?;
        let moved = registry.release(&args.slug, args.version, by).await;
        Ok(moved_json(&args.slug, &moved.map_err(failed)?))
    })?;
    tell_moved(moved, args.json);
    Ok(Exit::Completed)
}

pub(super) fn rollback(args: &FlowsRollback, app: &dyn App) -> Result<Exit, Report> {
    let moved = with_registry(app, &args.home, async |engine, registry| {
        let by = (
            &*args.author.name(),
            args.message.as_deref().unwrap_or_default(),
        );
        let keys = (args.key.key.as_deref(), deploy_key(engine));
        let keys = (keys.0, keys.1.as_deref());
        let checked = registry.check_deploy_key(&args.slug, args.to, keys);
        checked.await.map_err(failed)?;
        let moved = registry.rollback(&args.slug, args.to, by).await;
        Ok(moved_json(&args.slug, &moved.map_err(failed)?))
    })?;
    tell_moved(moved, args.json);
    Ok(Exit::Completed)
}

/// Prints the outcome of a release or a rollback, in the form of the API.
pub fn tell_moved(moved: Json, as_json: bool) {
    if as_json {
        output::json(&ok(moved));
        return;
    }
    let (slug, live) = (text(&moved, "slug"), &moved["live"]);
    let before = moved["release"]["before"].as_i64();
    let was = match (maybe(&moved, "status").as_deref(), before) {
        (Some("no_change"), _) => " was live already".to_owned(),
        (_, Some(before)) => format!(" is live; before, it was {before}"),
        (_, None) => " is live".to_owned(),
    };
    output::data(&format!("{slug}@{live}{was}"));
}

pub(super) fn archive(args: &FlowsArchive, app: &dyn App) -> Result<Exit, Report> {
    let row = with_registry(app, &args.home, async |_, registry| {
        let row = registry.archive(&args.slug, !args.undo).await;
        Ok(registered_json(&row.map_err(failed)?))
    })?;
    tell_archived(row, args.json);
    Ok(Exit::Completed)
}

/// Prints a flow that was archived, or is not any more, in the form of the API.
pub fn tell_archived(row: Json, as_json: bool) {
    if as_json {
        output::json(&ok(row));
        return;
    }
    let slug = text(&row, "slug");
    output::note(&match row["archivedAt"].is_null() {
        true => format!("the flow `{slug}` is not archived"),
        false => format!("the flow `{slug}` is archived: it does not start any more"),
    });
}

/// Prints versions of a flow, in the form of the API.
pub fn tell_versions(versions: Vec<Json>, as_json: bool) {
    if as_json {
        output::json(&json!({"ok": true, "versions": versions, "next": null}));
        return;
    }
    let columns = [
        Column::Whole("version"),
        Column::Whole("target"),
        Column::Whole("author"),
        Column::Whole("created"),
        Column::Cut("message"),
        Column::Extra("revision"),
    ];
    let rows = versions.iter().map(|version| {
        let targets: Vec<&str> = listed(version, "targets")
            .filter_map(Json::as_str)
            .collect();
        vec![
            version["version"].to_string(),
            match targets.is_empty() {
                true => "-".to_owned(),
                false => targets.join(" "),
            },
            text(version, "author"),
            text(version, "createdAt"),
            text(version, "message")
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            text(version, "revision"),
        ]
    });
    output::data(&table(&columns, rows));
}

/// Number of versions that are listed; `--json` of the API has pages for more.
const LISTED: usize = 500;

pub(super) fn list(args: &FlowsList, app: &dyn App) -> Result<Exit, Report> {
    let flows = with_registry(app, &args.home, async |_, registry| {
        let flows = registry.flows(args.archived).await.map_err(failed)?;
        Ok(flows.iter().map(registered_json).collect())
    })?;
    tell_list(flows, args.json);
    Ok(Exit::Completed)
}

/// Prints the flows of the registry, in the form of the API.
pub fn tell_list(flows: Vec<Json>, as_json: bool) {
    if as_json {
        output::json(&json!({"ok": true, "flows": flows}));
        return;
    }
    if flows.is_empty() {
        output::note("the registry has no flows; `flowstone flows push PATH` adds one");
        return;
    }
    let columns = [
        Column::Whole("flow"),
        Column::Whole("draft"),
        Column::Whole("live"),
        Column::Whole("changed"),
        Column::Extra("archived"),
    ];
    let rows = flows.iter().map(|flow| {
        let live = flow["live"].as_i64();
        let archived = maybe(flow, "archivedAt");
        vec![
            text(flow, "slug"),
            flow["draft"].to_string(),
            live.map_or_else(|| "-".to_owned(), |live| live.to_string()),
            text(flow, "updatedAt"),
            archived.unwrap_or_else(|| "-".to_owned()),
        ]
    });
    output::data(&table(&columns, rows));
}

/// Returns what the registry knows of a flow; `None` if it was never pushed.
pub(super) async fn shown_of(engine: &Engine, slug: &str) -> Result<Option<Json>, Report> {
    let registry = FlowRegistry::new(engine.stores(), engine.now_ms());
    match registry.find(slug).await.map_err(failed)? {
        Some(_) => Ok(Some(
            registry_flow_json(&registry, slug).await.map_err(failed)?,
        )),
        None => Ok(None),
    }
}

/// Describes what the registry knows of a flow, in the form of the API.
pub(super) fn describe(known: &Json) -> String {
    let mut out = String::from("\n");
    let mut line = |name: &str, version: &Json| {
        let (author, at) = (text(version, "author"), text(version, "createdAt"));
        let message = text(version, "message");
        let message = message.lines().next().unwrap_or_default();
        let number = &version["version"];
        out.push_str(&format!("{name:<8} {number}  {at}  {author}  {message}\n"));
    };
    line("draft", &known["draft"]);
    if known["live"].is_object() {
        line("live", &known["live"]);
    }
    if let Some(archived) = maybe(&known["flow"], "archivedAt") {
        out.push_str(&format!("archived {archived}\n"));
    }
    let columns = [
        Column::Whole("release"),
        Column::Whole("version"),
        Column::Whole("before"),
        Column::Whole("at"),
        Column::Whole("author"),
        Column::Cut("note"),
    ];
    let rows: Vec<Vec<String>> = listed(known, "releases").map(release_row).collect();
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&table(&columns, rows));
    }
    out
}

fn release_row(release: &Json) -> Vec<String> {
    let before = release["before"].as_i64();
    vec![
        text(release, "kind"),
        release["version"].to_string(),
        before.map_or_else(|| "-".to_owned(), |number| number.to_string()),
        text(release, "at"),
        text(release, "author"),
        text(release, "message"),
    ]
}

pub(super) fn show_version(args: &FlowsShow, app: &dyn App) -> Result<Exit, Report> {
    let shown = with_registry(app, &args.home, async |_, registry| {
        let (slug, wanted) = VersionRef::with_slug(&args.slug).map_err(failed)?;
        let shown = version_with_files_json(registry, slug, &wanted).await;
        shown.map_err(failed)
    })?;
    tell_version(shown, args);
    Ok(Exit::Completed)
}

/// Prints a version with its files, in the form of the API.
pub fn tell_version(shown: Json, args: &FlowsShow) {
    if args.json {
        output::json(&ok(shown));
        return;
    }
    if args.text {
        output::whole(shown["files"]["flow.edn"].as_str().unwrap_or_default());
        return;
    }
    let version = &shown["version"];
    let targets: Vec<&str> = listed(version, "targets")
        .filter_map(Json::as_str)
        .collect();
    let parent = version["parent"].as_i64();
    let facts = [
        ("flow", text(version, "slug")),
        ("version", version["version"].to_string()),
        ("target", targets.join(" ")),
        ("revision", text(version, "revision")),
        ("content", text(version, "content")),
        (
            "parent",
            parent.map_or_else(String::new, |it| it.to_string()),
        ),
        ("author", text(version, "author")),
        ("created", text(version, "createdAt")),
        ("message", text(version, "message")),
    ];
    let mut out = String::new();
    for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        out.push_str(&format!("{name:<8} {fact}\n"));
    }
    for (path, text) in shown["files"].as_object().into_iter().flatten() {
        let bytes = text.as_str().unwrap_or_default().len();
        out.push_str(&format!("file     {path} ({bytes} bytes)\n"));
    }
    output::whole(&out);
}

/// Lists the versions of a flow in the registry; `None` if it was never pushed.
pub(super) fn versions(args: &FlowsVersions, app: &dyn App) -> Result<Option<Exit>, Report> {
    let found = with_registry(app, &args.home, async |_, registry| {
        let Some(flow) = registry.find(&args.slug).await.map_err(failed)? else {
            return Ok(None);
        };
        let versions = registry.versions(&args.slug, None, LISTED).await;
        let versions = versions.map_err(failed)?;
        let shown = versions.iter().map(|row| registry_version_json(row, &flow));
        Ok(Some(shown.collect::<Vec<Json>>()))
    })?;
    Ok(found.map(|versions| {
        tell_versions(versions, args.json);
        Exit::Completed
    }))
}
