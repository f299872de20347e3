//! `flowstone graph`: checks graph specs and prints the flows that they are compiled to. Also reads graph specs that
//! other commands get as arguments.

mod picture;
mod servers;

use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;

use flowstone_engine::Engine;
use flowstone_engine::diagnostic::Severity as Found;
use flowstone_flow::flow::LoadedFlow;
use flowstone_flow::permission::has_write_protected;
use flowstone_flow::step::real_path;
use flowstone_fronts::graph::compile::Target;
use flowstone_fronts::graph::format::is_spec;
use flowstone_fronts::graph::remarks::assumed_models;
use flowstone_fronts::graph::shape::Issue;
use flowstone_fronts::graph::spec::{Audience, GraphSpec, schema};
use flowstone_fronts::graph::validate::{self, validate};
use flowstone_fronts::graph::{codes, project};
use flowstone_fronts::json_text::{self, JsonTextError};
use flowstone_fronts::tree::is_tree_file;
use serde_json::{Value as Json, json};

use super::args::{Graph, GraphCommand, GraphEject, GraphImport, GraphValidate};
use super::check::of_findings;
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::{Report, Severity, unreadable};
use super::runtime::Runtime;
use super::{App, Open, output};

pub use servers::check_servers;

/// Performs the command.
pub fn run(args: &Graph, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        GraphCommand::Eject(args) => (eject(args, app), args.json),
        GraphCommand::Import(args) => (import(args, app), args.json),
        GraphCommand::Picture(args) => (picture::run(args, app), false),
        GraphCommand::Schema(_) => {
            output::json(&schema());
            (Ok(Exit::Completed), false)
        }
        GraphCommand::Validate(args) => (show(args, app), args.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

fn show(args: &GraphValidate, app: &dyn App) -> Result<Exit, Report> {
    let text = read(&args.file)?;
    let (spec, mut report) = validate(&text);
    if let Some(spec) = spec {
        let engine = app.open(&Project::find(&args.home), Open::OrMake)?;
        let name = stem(&args.file);
        let found = Runtime::start()?.block_on(async {
            let mut found = with_target(&engine, &spec, &name, None, |target| {
                flowstone_fronts::graph::project_warnings(&spec, target)
            })
            .await?;
            found.extend(servers::missing(&engine, &spec).await?);
            Ok::<_, Report>(found)
        })?;
        report.warnings.extend(found);
    }
    let exit = match report.is_valid() {
        true => Exit::Completed,
        false => Exit::Failed,
    };
    if args.json {
        let mut object = report.to_json();
        object["ok"] = json!(report.is_valid());
        output::json(&object);
        return Ok(exit);
    }
    for report in drawn(&args.file, &report) {
        output::report(&report);
    }
    if report.is_valid() {
        output::note(&format!("{} is a valid graph spec", args.file.display()));
    }
    Ok(exit)
}

fn eject(args: &GraphEject, app: &dyn App) -> Result<Exit, Report> {
    let text = flow_text(&args.file, &Project::find(&args.home), app)?;
    print(&text, args.json);
    Ok(Exit::Completed)
}

fn print(text: &str, as_json: bool) {
    match as_json {
        true => output::json(&json!({"ok": true, "flow": text})),
        false => output::data(text.trim_end()),
    }
}

/// Returns the text of the flow of a spec, without the spec itself.
fn flow_text(file: &Path, project: &Project, app: &dyn App) -> Result<String, Report> {
    let spec = valid(file)?;
    let engine = app.open(project, Open::OrMake)?;
    let name = stem(file);
    let made = Runtime::start()?.block_on(with_target(&engine, &spec, &name, None, |target| {
        flowstone_fronts::graph::compile::compile(&spec, target)
    }))?;
    made.map_err(|issues| lacking(file, &issues))
}

fn import(args: &GraphImport, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let shown = args.file.display();
    let absolute = std::path::absolute(&args.file).unwrap_or_else(|_| args.file.clone());
    let is_tree = spec_in(&args.file).is_none() && is_tree_file(&project.root, &absolute);
    let text = match (is_tree, read(&args.file)) {
        (true, _) => super::tree::flow_text(&absolute, &project, app)?,
        (false, Ok(json)) if is_spec(&json) => flow_text(&args.file, &project, app)?,
        (false, Err(report))
            if report.code != codes::INVALID_SPEC || spec_in(&args.file).is_some() =>
        {
            return Err(report);
        }
        (false, _) => {
            let message = format!("{shown} is neither a graph spec nor a behaviour tree");
            return Err(Report::error(codes::NOT_IMPORTABLE, message).hint(
                "a graph spec is a JSON file with `spec_version`; a behaviour tree is a YAML or JSON file of the project with `tree`, or with a node",
            ));
        }
    };
    let Some(to) = &args.to else {
        print(&text, args.json);
        return Ok(Exit::Completed);
    };
    write_new(to, &project, &text)?;
    match args.json {
        true => output::json(&json!({"ok": true, "file": to.display().to_string()})),
        false => output::note(&format!("{shown} is now the flow {}", to.display())),
    }
    Ok(Exit::Completed)
}

/// Creates a flow file with a text.
pub(super) fn write_new(to: &Path, project: &Project, text: &str) -> Result<(), Report> {
    let shown = to.display();
    let refused = |message, hint| Report::error(codes::IMPORT_EXISTS, message).hint(hint);
    if to.extension().is_none_or(|ending| ending != "edn") {
        let message = format!("{shown} is not the name of a flow file");
        return Err(refused(message, "name a file that ends in .edn"));
    }
    let folder = to.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = real_path(folder.unwrap_or(Path::new(".")));
    let place = folder.join(to.file_name().unwrap_or_default());
    let root = real_path(&project.root);
    if has_write_protected(place.strip_prefix(&root).unwrap_or(&place)) {
        let message = format!("{shown} cannot be a flow file");
        let hint = "flows are not written to .flowstone, .git, .env or the project's settings: name another file";
        return Err(refused(message, hint));
    }
    let opened = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(to);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => refused(
            format!("{shown} exists already"),
            "name another file with `--to`, or remove this one first",
        ),
        _ => refused(
            format!("{shown} cannot be written: {error}"),
            "the folder must exist",
        ),
    })
}

/// Calls a function with the target that a spec in a file is compiled for.
async fn with_target<A>(
    engine: &Engine,
    spec: &GraphSpec,
    name: &str,
    keeps_spec: Option<&Json>,
    each: impl FnOnce(&Target<'_>) -> A,
) -> Result<A, Report> {
    let known = project::known(engine, spec).await;
    let known = known.map_err(|error| of_engine_error(&error))?;
    let models = project::models(engine, project::file_fallback());
    Ok(each(&Target {
        name,
        caller: Audience::DeveloperOnly,
        known: &known,
        models: &models,
        keeps_spec,
    }))
}

/// Returns the flow of a graph spec in a file; `None` for any other file.
///
/// # Errors
/// All errors: the file is JSON of another kind, the spec is not valid, or the project lacks something for it.
pub async fn of_file(
    engine: &Engine,
    file: &Path,
    quietly: bool,
) -> Result<Option<LoadedFlow>, Vec<Report>> {
    let Some(text) = spec_in(file) else {
        return match not_a_spec(engine.project_root(), file) {
            Some(report) => Err(vec![report]),
            None => Ok(None),
        };
    };
    let text = text.map_err(|report| vec![report])?;
    let (spec, report) = validate(&text);
    let spec = spec.ok_or_else(|| drawn(file, &report))?;
    let session = Rc::new(engine.session());
    let name = stem(file);
    let made = with_target(engine, &spec, &name, Some(&text), |target| {
        let assumed = assumed_models(&spec, target.models);
        for issue in assumed.iter().filter(|_| !quietly) {
            output::report(&warning(file, issue));
        }
        project::make(engine, &session, &spec, target)
    });
    let made = made.await.map_err(|report| vec![report])?;
    let made = made.map_err(|issues| vec![lacking(file, &issues)])?;
    let is_error =
        |finding: &&flowstone_engine::diagnostic::Diagnostic| finding.severity == Found::Error;
    let errors: Vec<_> = made
        .checked
        .findings
        .iter()
        .filter(is_error)
        .cloned()
        .collect();
    if !errors.is_empty() {
        return Err(of_findings(&session, &errors));
    }
    let Some(mut loaded) = made.checked.loaded else {
        let message = "the spec made no flow";
        return Err(vec![Report::error(codes::INVALID_SPEC, message)]);
    };
    loaded.is_outside = !real_path(file).starts_with(real_path(engine.project_root()));
    Ok(Some(loaded))
}

/// Reports that a JSON file is neither a graph spec nor a behaviour tree, or not JSON at all.
fn not_a_spec(root: &Path, file: &Path) -> Option<Report> {
    file.extension().filter(|ending| *ending == "json")?;
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    if !file.exists() || is_tree_file(root, &absolute) {
        return None;
    }
    Some(read(file).err().unwrap_or_else(|| {
        let message = format!(
            "{} is neither a graph spec nor a behaviour tree",
            file.display()
        );
        Report::error(codes::INVALID_SPEC, message).hint(
            "a graph spec has `spec_version` and `nodes`; a behaviour tree has `tree`; a flow is a file that ends in .edn",
        )
    }))
}

/// Returns the problems of a graph spec in a file; `None` for any other file.
pub fn reports(file: &Path) -> Option<Vec<Report>> {
    let Some(spec) = spec_in(file) else {
        let is_json = file.extension().is_some_and(|ending| ending == "json");
        let refused = is_json.then(|| read(file).err()).flatten();
        return refused
            .filter(|report| report.code == codes::INVALID_SPEC)
            .map(|report| vec![report]);
    };
    Some(match spec {
        Ok(spec) => drawn(file, &validate(&spec).1),
        Err(report) => vec![report],
    })
}

/// Returns the JSON of a file that is a graph spec, valid or not, or why it is refused like by [`read`].
fn spec_in(file: &Path) -> Option<Result<Json, Report>> {
    file.extension().filter(|ending| *ending == "json")?;
    let text = std::fs::read_to_string(file).ok()?;
    let json: Json = serde_json::from_str(&text).ok()?;
    is_spec(&json).then(|| {
        let checked = json_text::check(&text);
        let refused = |error| refused(&file.display().to_string(), error);
        checked.map(|()| json).map_err(refused)
    })
}

fn read(file: &Path) -> Result<Json, Report> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(&shown, &error))?;
    json_text::read(&text).map_err(|error| refused(&shown, error))
}

fn refused(shown: &str, error: JsonTextError) -> Report {
    let message = match error {
        JsonTextError::Syntax(why) => format!("{shown} is not JSON: {why}"),
        JsonTextError::Twice { .. } | JsonTextError::Digits { .. } => {
            format!("{shown}: {error}")
        }
    };
    Report::error(codes::INVALID_SPEC, message)
}

/// Returns the spec in a file. Of several errors, the last is returned and those before it are printed.
fn valid(file: &Path) -> Result<GraphSpec, Report> {
    let (spec, report) = validate(&read(file)?);
    spec.ok_or_else(|| {
        let mut reports = drawn(file, &report);
        let last = reports.pop();
        reports.iter().for_each(output::report);
        last.unwrap_or_else(|| Report::error(codes::INVALID_SPEC, "the spec is not valid"))
    })
}

/// Returns the issues and warnings of a validation as reports.
fn drawn(file: &Path, report: &validate::Report) -> Vec<Report> {
    let of = |issue: &Issue| {
        let message = format!("{}: {}: {}", file.display(), issue.place(), issue.message);
        Report::error(codes::INVALID_SPEC, message)
    };
    let issues = report.issues.iter().map(of);
    let warnings = report.warnings.iter().map(|issue| warning(file, issue));
    issues.chain(warnings).collect()
}

fn warning(file: &Path, issue: &Issue) -> Report {
    let message = format!("{}: {}: {}", file.display(), issue.place(), issue.message);
    let mut report = Report::error(codes::INVALID_SPEC, message);
    report.severity = Severity::Warning;
    report
}

fn lacking(file: &Path, issues: &[Issue]) -> Report {
    lacking_of(file, issues).hint(
        "a model needs a connection in flowstone.edn that lists it under `:models`, or one called `:ai`; a function needs a flow with `:graph/agent-tool true`, or `POST /v1/default/functions`",
    )
}

/// Reports what the project lacks, without a hint.
fn lacking_of(file: &Path, issues: &[Issue]) -> Report {
    let texts: Vec<String> = issues
        .iter()
        .map(|issue| format!("{}: {}", issue.place(), issue.message))
        .collect();
    let message = format!(
        "{} cannot run in this project: {}",
        file.display(),
        texts.join("; ")
    );
    Report::error(codes::LACKING, message)
}

fn stem(file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy());
    stem.map_or_else(|| "agent".to_owned(), |stem| stem.into_owned())
}
