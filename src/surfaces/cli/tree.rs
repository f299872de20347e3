//! `flowstone tree`: checks tree files, and drives their runs.

mod picture;
mod show;

use std::path::{Path, PathBuf};

use flowstone_engine::Engine;
use flowstone_fronts::tree::{
    Answer, Checked, Composite, Handle, Node, Start, TreeError, Trees, check_everywhere,
    check_inside, compile, tools, tree_files,
};
use serde_json::{Value as Json, json};

use super::args::{
    Home, Tree, TreeAnswer, TreeCheck, TreeCommand, TreeConst, TreeEject, TreeEval, TreeList,
    TreeOn, TreePicture, TreeStart, TreeStatus, TreeSubmit, TreeThink, TreeTrace, TreeVar,
};
use super::exit::Exit;
use super::home::Project;
use super::report::Report;
use super::runtime::Runtime;
use super::{App, Open, output};

/// The name of the answering person, if the system does not provide one.
const LOCAL: &str = "local";

/// Performs the command.
pub fn run(args: &Tree, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        TreeCommand::Check(args) => (check_files(args, app), args.json),
        TreeCommand::Const(args) => (constants(args, app), args.json),
        TreeCommand::Eject(args) => (eject(args, app), false),
        TreeCommand::Eval(args) => (eval(args, app), args.answer.json),
        TreeCommand::Export(args) => (export(args, app), args.json),
        TreeCommand::List(args) => (list(args, app), args.json),
        TreeCommand::Next(args) => (next(args, app), args.json),
        TreeCommand::Picture(args) => (picture(args, app), false),
        TreeCommand::Reset(args) => (reset(args, app), args.json),
        TreeCommand::Resume(args) => (resume(args, app), args.json),
        TreeCommand::Show(args) => (show(args, app), args.json),
        TreeCommand::Start(args) => (start(args, app), args.json),
        TreeCommand::Submit(args) => (submit(args, app), args.answer.json),
        TreeCommand::Think(args) => (think(args, app), args.json),
        TreeCommand::Trace(args) => (trace(args, app), args.json),
        TreeCommand::Var(args) => (var(args, app), args.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

fn list(args: &TreeList, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let mut found = Vec::new();
    for file in tree_files(&project.root) {
        let (line, shown) = match checked(app, &project, Path::new(&file))? {
            Ok(Checked { tree, .. }) => {
                let (slug, nodes) = (tree.slug(), count(&tree.root));
                let about = tree.description.as_deref().and_then(|it| it.lines().next());
                let about = about.map_or(String::new(), |about| format!(": {about}"));
                let shown = json!({
                    "file": file, "ok": true, "slug": slug, "name": tree.name, "nodes": nodes,
                    "description": tree.description,
                });
                (format!("{file}  {slug} ({nodes} nodes){about}"), shown)
            }
            Err(error) => (
                format!("{file}  has problems; `flowstone tree check {file}` lists them"),
                json!({"file": file, "ok": false, "code": error.code()}),
            ),
        };
        if !args.json {
            output::data(&line);
        }
        found.push(shown);
    }
    if args.json {
        output::json(&json!({"ok": true, "trees": found}));
    } else if found.is_empty() {
        output::note("no tree files in the folders `trees` and `flows` of the project");
    }
    Ok(Exit::Completed)
}

fn picture(args: &TreePicture, app: &dyn App) -> Result<Exit, Report> {
    let is_file = [".yaml", ".yml"].iter().any(|end| args.what.ends_with(end)) || args.file;
    let document = if is_file {
        let project = Project::find(&args.home);
        let read = checked(app, &project, &absolute(Path::new(&args.what)))?;
        let tree = read.map_err(|error| of_tree_error(&error))?.tree;
        json!({"tree": tree.document()})
    } else {
        let place = (&args.home, Open::Existing);
        drive(app, place, &args.what, async |trees, handle| {
            trees.export(&handle).await
        })?
    };
    output::data(&picture::svg(&document));
    Ok(Exit::Completed)
}

fn check_files(args: &TreeCheck, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let mut exit = Exit::Completed;
    let mut found = Vec::new();
    for file in &args.files {
        let name = file.display().to_string();
        match checked(app, &project, &absolute(file))? {
            Ok(Checked { tree, warnings }) => {
                let nodes = count(&tree.root);
                if !args.json {
                    output::data(&format!("{name}: {} ({nodes} nodes)", tree.slug()));
                    for warning in &warnings {
                        output::note(&format!("warning: {name}: {warning}"));
                    }
                }
                found.push(json!({
                    "file": name, "ok": true, "slug": tree.slug(), "nodes": nodes,
                    "warnings": warnings,
                }));
            }
            Err(error) => {
                exit = Exit::Failed;
                if !args.json {
                    output::report(&of_tree_error(&error));
                }
                let problems = match &error {
                    TreeError::BadTree { problems, .. } => problems.clone(),
                    other => vec![other.to_string()],
                };
                found.push(json!({
                    "file": name, "ok": false, "code": error.code(), "problems": problems,
                }));
            }
        }
    }
    if args.json {
        output::json(&json!({"ok": exit == Exit::Completed, "files": found}));
    }
    Ok(exit)
}

/// Reads the tree in a file. The project is opened only for parts outside its folder: its permissions decide about them.
fn checked(
    app: &dyn App,
    project: &Project,
    file: &Path,
) -> Result<Result<Checked, TreeError>, Report> {
    if let Some(checked) = check_inside(&project.root, file) {
        return Ok(checked);
    }
    let engine = app.open(project, Open::OrMake)?;
    Ok(Runtime::start()?.block_on(check_everywhere(&engine, file)))
}

/// Counts the nodes of a tree.
fn count(node: &Node) -> usize {
    match node {
        Node::Composite { children, .. } => 1 + children.iter().map(count).sum::<usize>(),
        Node::Action { .. } | Node::Cycle { .. } => 1,
    }
}

fn eject(args: &TreeEject, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let text = flow_text(&absolute(&args.file), &project, app)?;
    output::data(text.trim_end());
    Ok(Exit::Completed)
}

/// Returns the text of the flow of a tree in a file, given by its absolute path.
///
/// # Errors
/// Everything that is wrong with the tree.
pub(super) fn flow_text(file: &Path, project: &Project, app: &dyn App) -> Result<String, Report> {
    let read = checked(app, project, file)?;
    let tree = read.map_err(|error| of_tree_error(&error))?.tree;
    Ok(compile::flow_text(&tree, &app.settings(project)?))
}

fn start(args: &TreeStart, app: &dyn App) -> Result<Exit, Report> {
    let path = absolute(&args.file);
    let handle = args.handle.as_deref().unwrap_or("run://");
    let (answer, run) = drive(
        app,
        (&args.home, Open::OrMake),
        handle,
        async |trees, handle| {
            let start = Start {
                tree_uri: format!("file://{}", path.display()),
                path,
                handle,
                gate: args.gate,
            };
            trees.start(&start).await
        },
    )?;
    if args.json {
        let mut answer = answer;
        answer["run"] = json!(run.as_str());
        output::json(&answer);
        return Ok(Exit::Completed);
    }
    let shown = args.handle.clone().unwrap_or_else(|| run.to_string());
    output::data(&shown);
    output::note(&format!(
        "get the first request with: flowstone tree next {shown}"
    ));
    Ok(Exit::Completed)
}

fn next(args: &TreeOn, app: &dyn App) -> Result<Exit, Report> {
    let place = (&args.home, Open::Existing);
    let request = drive(app, place, &args.handle, async |trees, handle| {
        trees.next(&handle).await
    })?;
    let end = request["status"].as_str();
    match (args.json, end) {
        (true, _) => output::json(&ok(request)),
        (false, Some(end)) => output::data(end),
        (false, None) => {
            let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
            let (body, verb) = match request["type"].as_str() {
                Some("evaluate") => (text("expression"), "eval"),
                _ => (text("instruction"), "submit"),
            };
            let answers = match verb {
                "eval" => "true|false",
                _ => "success|failure|running",
            };
            let name = one_line(&text("name"));
            output::data(&format!("{} {name}\n\n{body}", text("type")));
            let cursor = text("cursor");
            output::note(&format!(
                "answer with: flowstone tree {verb} {} {answers} --expect {cursor}",
                args.handle
            ));
        }
    }
    Ok(Exit::Completed)
}

fn eval(args: &TreeEval, app: &dyn App) -> Result<Exit, Report> {
    let answer = Answer::Eval {
        result: args.result,
        note: args.answer.note.clone(),
    };
    answer_with(app, &args.handle, &answer, &args.answer)
}

fn submit(args: &TreeSubmit, app: &dyn App) -> Result<Exit, Report> {
    let status = match args.status {
        TreeStatus::Success => "success",
        TreeStatus::Failure => "failure",
        TreeStatus::Running => "running",
    };
    let answer = Answer::Submit {
        status: status.to_owned(),
        note: args.answer.note.clone(),
    };
    answer_with(app, &args.handle, &answer, &args.answer)
}

fn answer_with(
    app: &dyn App,
    handle: &str,
    answer: &Answer,
    args: &TreeAnswer,
) -> Result<Exit, Report> {
    let place = (&args.home, Open::Existing);
    let reply = drive(app, place, handle, async |trees, handle| {
        trees.answer(&handle, answer, args.expect.as_deref()).await
    })?;
    say(reply, "status", args.json)
}

fn think(args: &TreeThink, app: &dyn App) -> Result<Exit, Report> {
    let answer = Answer::Think {
        thought: args.thought.clone(),
    };
    let place = (&args.home, Open::Existing);
    let reply = drive(app, place, &args.handle, async |trees, handle| {
        trees.answer(&handle, &answer, None).await
    })?;
    say(reply, "status", args.json)
}

fn reset(args: &TreeOn, app: &dyn App) -> Result<Exit, Report> {
    let place = (&args.home, Open::Existing);
    let reply = drive(app, place, &args.handle, async |trees, handle| {
        trees.reset(&handle).await
    })?;
    say(reply, "status", args.json)
}

fn resume(args: &TreeOn, app: &dyn App) -> Result<Exit, Report> {
    // A document of another project becomes a run of this one.
    let place = (&args.home, Open::OrMake);
    let reply = drive(app, place, &args.handle, async |trees, handle| {
        trees.resume(&handle).await
    })?;
    if args.json {
        output::json(&reply);
        return Ok(Exit::Completed);
    }
    let text = |key: &str| reply[key].as_str().unwrap_or_default();
    output::data(&format!("{}, {}", text("status"), text("phase")));
    Ok(Exit::Completed)
}

fn var(args: &TreeVar, app: &dyn App) -> Result<Exit, Report> {
    let place = (&args.home, Open::Existing);
    let found = drive(app, place, &args.handle, async |trees, handle| {
        match (&args.path, &args.set) {
            (Some(path), Some(value)) => {
                let answer = Answer::VarWrite {
                    path: path.clone(),
                    value: tools::parsed(&json!(value))?,
                };
                trees.answer(&handle, &answer, None).await
            }
            (path, _) => trees.var(&handle, path.as_deref()).await,
        }
    })?;
    store(found, args.path.is_some(), "var", args.json)
}

fn constants(args: &TreeConst, app: &dyn App) -> Result<Exit, Report> {
    let place = (&args.home, Open::Existing);
    let found = drive(app, place, &args.handle, async |trees, handle| {
        trees.constants(&handle, args.path.as_deref()).await
    })?;
    store(found, args.path.is_some(), "const", args.json)
}

/// Prints a store, or the value at one of its paths.
fn store(found: Json, is_part: bool, name: &str, as_json: bool) -> Result<Exit, Report> {
    match (as_json, is_part) {
        (true, true) => output::json(&ok(found)),
        (true, false) => output::json(&json!({"ok": true, name: found})),
        (false, true) => output::data(&value_text(&found["value"])),
        (false, false) => output::data(&value_text(&found)),
    }
    Ok(Exit::Completed)
}

fn trace(args: &TreeTrace, app: &dyn App) -> Result<Exit, Report> {
    let place = (&args.home, Open::Existing);
    let trace = drive(app, place, &args.handle, async |trees, handle| {
        trees.trace(&handle, args.from, args.to).await
    })?;
    if args.json {
        output::json(&json!({"ok": true, "trace": trace}));
        return Ok(Exit::Completed);
    }
    for entry in trace.as_array().into_iter().flatten() {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        let note = match text("note") {
            "" => String::new(),
            note => format!(" ({})", one_line(note)),
        };
        output::data(&format!(
            "{} {} {}{note}",
            text("ts"),
            one_line(text("name")),
            text("outcome")
        ));
    }
    Ok(Exit::Completed)
}

fn export(args: &TreeOn, app: &dyn App) -> Result<Exit, Report> {
    let place = (&args.home, Open::Existing);
    let document = drive(app, place, &args.handle, async |trees, handle| {
        trees.export(&handle).await
    })?;
    output::json(&document);
    Ok(Exit::Completed)
}

fn show(args: &TreeOn, app: &dyn App) -> Result<Exit, Report> {
    let place = (&args.home, Open::Existing);
    let (document, run) = drive(app, place, &args.handle, async |trees, handle| {
        Ok((trees.export(&handle).await?, trees.run(&handle).await?))
    })?;
    match args.json {
        true => {
            let mut document = ok(document);
            document["run"] = json!(run.as_str());
            output::json(&document);
        }
        false => output::data(&show::outline(&document, run.as_str())),
    }
    Ok(Exit::Completed)
}

/// Opens the project and performs `work` on the run of a handle.
fn drive<T>(
    app: &dyn App,
    (home, open): (&Home, Open),
    handle: &str,
    work: impl AsyncFnOnce(&Trees<'_>, Handle) -> Result<T, TreeError>,
) -> Result<T, Report> {
    Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(home), open)?;
        let done = async {
            let handle = read(&engine, handle)?;
            // Handles of kind `memory://` are refused, so the process needs no name.
            work(&Trees::new(&engine, "", Some(LOCAL.to_owned())), handle).await
        };
        done.await.map_err(|error| of_tree_error(&error))
    })
}

fn read(engine: &Engine, handle: &str) -> Result<Handle, TreeError> {
    if handle.starts_with("memory://") {
        return Err(TreeError::BadHandle {
            uri: handle.to_owned(),
            why: "memory:// lives as long as a server, and a command ends at once".to_owned(),
        });
    }
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    Handle::read(handle, engine.project_root(), Some(&folder))
}

/// Returns a path that does not depend on the current folder.
fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

/// Prints a reply as JSON, or one text of it.
fn say(reply: Json, key: &str, as_json: bool) -> Result<Exit, Report> {
    match as_json {
        true => output::json(&ok(reply)),
        false => {
            output::data(reply[key].as_str().unwrap_or_default());
            if let Some(message) = reply["message"].as_str() {
                output::note(message);
            }
        }
    }
    Ok(Exit::Completed)
}

fn ok(mut answer: Json) -> Json {
    answer["ok"] = json!(true);
    answer
}

/// Returns a text for a line of its own.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

fn value_text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

fn of_tree_error(error: &TreeError) -> Report {
    let report = Report::error(error.code(), error.to_string());
    error.hint().into_iter().fold(report, Report::hint)
}

/// Names of composite nodes, as outlines show them.
fn is_composite(kind: &str) -> bool {
    Composite::NAMES.iter().any(|(_, name)| *name == kind)
}
