//! `flowstone flows install`, `configure`, `installations`, `uninstall` and `pack`.

use std::fs;

use flowstone_engine::codec::digest_bytes;
use flowstone_engine::registry::{DEFAULT_WORKSPACE, FlowName, Target, VersionFiles};
use flowstone_engine::{Engine, Limits};
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_project::installations::{
    self, Changes, InstallationError, InstallationName, NewInstallation, package,
};
use flowstone_project::registry::{FlowRegistry, VersionRef};
use serde_json::{Value as Json, json};

use super::source;
use crate::cli::args::{
    FlowsConfigure, FlowsInstall, FlowsInstallations, FlowsPack, FlowsUninstall, Home,
};
use crate::cli::exit::Exit;
use crate::cli::flows::registered::of_registry;
use crate::cli::home::Project;
use crate::cli::report::Report;
use crate::cli::rows::{list as listed, maybe, text};
use crate::cli::runtime::Runtime;
use crate::cli::table::{Column, table};
use crate::cli::{App, Open, input, output};
use crate::json::{installation_json, ok};

/// Reports an error about an installation.
pub fn of_installation(error: &InstallationError) -> Report {
    let report = Report::error(error.code(), error.to_string());
    match error.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

fn failed(error: InstallationError) -> Report {
    of_installation(&error)
}

fn with_engine<T>(
    app: &dyn App,
    home: &Home,
    question: impl AsyncFnOnce(&Engine) -> Result<T, Report>,
) -> Result<T, Report> {
    let project = Project::find(home);
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::OrMake)?;
        question(&engine).await
    })
}

pub(super) fn install(args: &FlowsInstall, app: &dyn App) -> Result<Exit, Report> {
    let shown = with_engine(app, &args.home, async |engine| {
        let flow = flow_of(engine, args).await?;
        let new = NewInstallation {
            at: InstallationName {
                workspace: args.workspace.clone(),
                name: args.name.clone().unwrap_or_else(|| flow.slug.clone()),
            },
            flow,
            is_readable: true,
        };
        let shown = installations::install(engine, new).await.map_err(failed)?;
        Ok(installation_json(&shown))
    })?;
    tell_installed(shown, args.json);
    Ok(Exit::Completed)
}

/// Returns the flow that is to be installed. That of a package is added to the registry first.
async fn flow_of(engine: &Engine, args: &FlowsInstall) -> Result<FlowName, Report> {
    let found = source::find(&args.source, args.digest.as_deref(), engine.project_root());
    let files = match found.await.map_err(failed)? {
        source::Found::Slug(slug) => {
            return Ok(FlowName {
                workspace: DEFAULT_WORKSPACE.to_owned(),
                slug,
            });
        }
        source::Found::Files(files) => files,
    };
    installations::add_package(engine, files)
        .await
        .map_err(failed)
}

/// Prints what was installed, in the form of the API.
pub fn tell_installed(shown: Json, as_json: bool) {
    if as_json {
        output::json(&ok(shown));
        return;
    }
    let (slug, version) = (text(&shown, "slug"), &shown["version"]);
    output::data(&format!(
        "{slug}@{version} is installed as {}",
        place(&shown)
    ));
    tell_needs(&shown);
}

/// Returns the name of an installation, as commands take it.
fn place(shown: &Json) -> String {
    InstallationName {
        workspace: text(shown, "workspace"),
        name: text(shown, "name"),
    }
    .to_string()
}

/// Notes what an installation needs, and what is missing.
fn tell_needs(shown: &Json) {
    for need in listed(shown, "needs") {
        let given = match (maybe(need, "bound"), &*text(need, "providedBy")) {
            (Some(bound), _) => format!(": {bound}"),
            (None, "author") => ": provided by the author".to_owned(),
            (None, _) if need["optional"] == true => ": not needed".to_owned(),
            (None, _) => String::new(),
        };
        output::note(&format!("needs {}{given}", text(need, "text")));
    }
    let problem = &shown["problem"];
    if problem.is_object() {
        output::note(&format!(
            "{}: {}",
            text(problem, "kind"),
            text(problem, "message")
        ));
        if let Some(hint) = maybe(problem, "hint") {
            output::note(&format!("hint: {hint}"));
        }
    }
    let upgrade = &shown["upgrade"];
    if upgrade.is_object() {
        let more: Vec<&str> = listed(upgrade, "needs").filter_map(Json::as_str).collect();
        let more = match more.is_empty() {
            true => String::new(),
            false => format!(", which needs more: {}", more.join(", ")),
        };
        output::note(&format!("version {} is released{more}", upgrade["version"]));
    }
}

pub(super) fn configure(args: &FlowsConfigure, app: &dyn App) -> Result<Exit, Report> {
    let changes = changes(args)?;
    let (shown, problem) = with_engine(app, &args.home, async |engine| {
        let shown = match args.check {
            true => installations::show(engine, &args.name).await,
            false => installations::configure(engine, &args.name, changes).await,
        };
        let shown = shown.map_err(failed)?;
        let json = installation_json(&shown);
        Ok((json, shown.problem))
    })?;
    match problem.filter(|_| args.check) {
        Some(problem) => Err(failed(problem)),
        None => {
            tell_configured(shown, args.json);
            Ok(Exit::Completed)
        }
    }
}

/// Prints an installation, in the form of the API.
pub fn tell_configured(shown: Json, as_json: bool) {
    if as_json {
        output::json(&ok(shown));
        return;
    }
    output::data(&format!("{} {}", place(&shown), text(&shown, "status")));
    tell_needs(&shown);
}

/// Reads the changes that a command makes: those of its file, and over them those of its options.
pub fn changes(args: &FlowsConfigure) -> Result<Changes, Report> {
    let mut changes = match &args.file {
        Some(file) => of_file(&format!("@{}", file.display()))?,
        None => Changes::default(),
    };
    changes.set.extend(args.set.iter().cloned());
    if let Some(setup) = &args.setup {
        let most = Limits::default().input;
        changes.setup = Some(input::read_within(setup, "--setup", most)?);
    }
    changes.auto_upgrade = args.auto_upgrade.or(changes.auto_upgrade);
    changes.max_tokens = args.max_tokens.or(changes.max_tokens);
    changes.upgrade = args.upgrade;
    Ok(changes)
}

/// Reads a file with bindings.
fn of_file(file: &str) -> Result<Changes, Report> {
    let wrong = |message: String| {
        Report::error("E1446", message).hint(
            "as in {:profile {:autoUpgrade false} :bindings {:ai {:conn \"openai\"}} :activation {:region \"EU\"}}",
        )
    };
    let whole = input::read_within(file, "--file", Limits::default().input)?;
    let mut changes = Changes::default();
    let Some(map) = whole.as_map() else {
        return Err(wrong(format!("bindings are a map, not {}", whole.kind())));
    };
    for (key, value) in map.iter() {
        match name_of(key).as_deref() {
            Some("profile") => {
                changes.auto_upgrade = match value.get("autoUpgrade") {
                    None | Some(Value::Nil) => None,
                    Some(Value::Bool(is_on)) => Some(*is_on),
                    Some(_) => return Err(wrong("`:autoUpgrade` is true or false".to_owned())),
                };
            }
            Some("activation") => changes.setup = Some(value.clone()),
            Some("bindings") => {
                for (slot, bound) in value.as_map().into_iter().flat_map(|map| map.iter()) {
                    let slot = name_of(slot).unwrap_or_default().to_string();
                    let Some(name) = bound.get("conn").and_then(name_of) else {
                        return Err(wrong(format!(
                            "the binding of `{slot}` needs `:conn`, the name of a connection"
                        )));
                    };
                    changes.set.insert(slot, name.to_string());
                }
            }
            name => {
                let name = name.unwrap_or_default();
                return Err(wrong(format!("bindings have no key `{name}`")));
            }
        }
    }
    Ok(changes)
}

pub(super) fn list(args: &FlowsInstallations, app: &dyn App) -> Result<Exit, Report> {
    let all = with_engine(app, &args.home, async |engine| {
        let all = installations::list(engine, args.workspace.as_deref()).await;
        Ok(all.map_err(failed)?.iter().map(installation_json).collect())
    })?;
    tell_list(all, args.json);
    Ok(Exit::Completed)
}

/// Prints installations, in the form of the API.
pub fn tell_list(all: Vec<Json>, as_json: bool) {
    if as_json {
        output::json(&json!({"ok": true, "installations": all}));
        return;
    }
    if all.is_empty() {
        output::note("nothing is installed; `flowstone flows install` installs a flow");
        return;
    }
    let columns = [
        Column::Whole("installation"),
        Column::Whole("flow"),
        Column::Whole("version"),
        Column::Whole("status"),
        Column::Whole("upgrade"),
        Column::Extra("author"),
    ];
    let rows = all.iter().map(|shown| {
        let upgrade = &shown["upgrade"];
        vec![
            place(shown),
            text(shown, "slug"),
            shown["version"].to_string(),
            text(shown, "status"),
            match upgrade.is_object() {
                true => format!("{} {}", upgrade["version"], text(upgrade, "status")),
                false => "-".to_owned(),
            },
            text(shown, "author"),
        ]
    });
    output::data(&table(&columns, rows));
}

pub(super) fn uninstall(args: &FlowsUninstall, app: &dyn App) -> Result<Exit, Report> {
    with_engine(app, &args.home, async |engine| {
        installations::uninstall(engine, &args.name)
            .await
            .map_err(failed)
    })?;
    tell_uninstalled(&args.name, args.json);
    Ok(Exit::Completed)
}

pub fn tell_uninstalled(name: &InstallationName, as_json: bool) {
    match as_json {
        true => output::json(&json!({"ok": true, "uninstalled": name.to_string()})),
        false => output::note(&format!("the installation `{name}` is removed")),
    }
}

pub(super) fn pack(args: &FlowsPack, app: &dyn App) -> Result<Exit, Report> {
    let (slug, wanted) = match args.flow.contains('@') {
        true => VersionRef::with_slug(&args.flow).map_err(|error| of_registry(&error))?,
        false => (&*args.flow, VersionRef::Target(Target::Live)),
    };
    let (number, files) = with_engine(app, &args.home, async |engine| {
        let registry = FlowRegistry::new(engine.stores(), engine.now_ms());
        let version = registry.version(slug, &wanted).await;
        let version = version.map_err(|error| of_registry(&error))?;
        let files = registry.files(&version).await;
        Ok::<(i64, VersionFiles), Report>((
            version.number,
            files.map_err(|error| of_registry(&error))?,
        ))
    })?;
    let packed = package::write(&files).map_err(failed)?;
    let to = args.to.clone();
    let to = to.unwrap_or_else(|| format!("{slug}-{number}.tar.gz").into());
    fs::write(&to, &packed).map_err(|error| {
        Report::error(
            "E1413",
            format!("{} cannot be written: {error}", to.display()),
        )
    })?;
    let digest = digest_bytes(&packed);
    match args.json {
        true => output::json(&json!({
            "ok": true, "slug": slug, "version": number, "file": to.display().to_string(),
            "sha256": digest, "bytes": packed.len(),
        })),
        false => output::data(&format!("{} sha256={digest}", to.display())),
    }
    Ok(Exit::Completed)
}
