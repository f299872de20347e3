//! `flowstone deps`: fetches shared code of git revisions, and checks that it is what the project asks for.

use std::fs;
use std::io;
use std::path::Path;

use flowstone_engine::disk::namespaces_in;
use flowstone_flow::dependencies::{Dependency, Origin, Revision, dependencies, digest};
use flowstone_flow::private;
use serde_json::json;

use super::args::Deps;
use super::exit::Exit;
use super::home::Project;
use super::report::{Report, Shown as _};
use super::table::{Column, table};
use super::{App, output};
use crate::json::ok;

/// The code of a digest that is missing or differs.
const WRONG_DIGEST: &str = "E1621";
/// The code of a folder that does not exist, or cannot be written.
const NO_FOLDER: &str = "E1622";

/// A dependency, and the outcome of looking for its files.
struct Done {
    name: String,
    origin: String,
    outcome: Result<(State, Vec<String>), Report>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A folder, used where it is.
    Folder,
    /// It was fetched before.
    Kept,
    Fetched,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Folder => "folder",
            State::Kept => "kept",
            State::Fetched => "fetched",
        }
    }
}

/// Performs the command.
pub fn run(args: &Deps, app: &dyn App) -> Exit {
    let project = Project::find(&args.home);
    let all = app.settings(&project).and_then(|settings| {
        dependencies(&settings).map_err(|message| Report::error("E0751", message))
    });
    let all = match all {
        Ok(all) => all,
        Err(report) => {
            output::failure(&report, args.json);
            return Exit::Failed;
        }
    };
    let done: Vec<Done> = all
        .iter()
        .map(|dependency| Done {
            name: dependency.name.clone(),
            origin: origin(dependency),
            outcome: provide(dependency, &project, app),
        })
        .collect();
    match args.json {
        true => show_json(&done),
        false => show(&done),
    }
    match done.iter().all(|done| done.outcome.is_ok()) {
        true => Exit::Completed,
        false => Exit::Failed,
    }
}

fn origin(dependency: &Dependency) -> String {
    match &dependency.origin {
        Origin::Folder(path) => path.clone(),
        Origin::Git(revision) => format!("{} {}", revision.repo, &revision.commit[..12]),
    }
}

fn show(done: &[Done]) {
    if done.is_empty() {
        output::note("flowstone.edn has no :deps");
        return;
    }
    let rows = done.iter().filter_map(|done| {
        let (state, namespaces) = done.outcome.as_ref().ok()?;
        Some(vec![
            done.name.clone(),
            state.word().to_owned(),
            namespaces.join(" "),
        ])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        let columns = [
            Column::Whole("dependency"),
            Column::Whole("state"),
            Column::Cut("namespaces"),
        ];
        output::data(&table(&columns, rows));
    }
    for report in done.iter().filter_map(|done| done.outcome.as_ref().err()) {
        output::report(report);
    }
}

fn show_json(done: &[Done]) {
    let all: Vec<_> = done
        .iter()
        .map(|done| match &done.outcome {
            Ok((state, namespaces)) => json!({
                "name": done.name,
                "from": done.origin,
                "state": state.word(),
                "namespaces": namespaces,
            }),
            Err(report) => json!({
                "name": done.name,
                "from": done.origin,
                "error": report.to_json(),
            }),
        })
        .collect();
    let mut object = ok(json!({"dependencies": all}));
    object["ok"] = done.iter().all(|done| done.outcome.is_ok()).into();
    output::json(&object);
}

/// Makes sure that the files of a dependency are there. Returns their namespaces.
fn provide(
    dependency: &Dependency,
    project: &Project,
    app: &dyn App,
) -> Result<(State, Vec<String>), Report> {
    let folder = dependency.folder(&project.root);
    let revision = match (&dependency.origin, &folder) {
        (Origin::Folder(path), Some(folder)) => {
            if folder.is_dir() {
                return Ok((State::Folder, namespaces_in(folder)));
            }
            let message = format!("the folder {path} of `{}` does not exist", dependency.name);
            return Err(Report::error(NO_FOLDER, message)
                .hint("the path is relative to the folder of flowstone.edn"));
        }
        (Origin::Folder(_), None) => unreachable!("a folder needs no digest"),
        (Origin::Git(revision), _) => revision,
    };
    if let Some(folder) = &folder
        && is_whole(folder, revision)
    {
        return Ok((State::Kept, namespaces_in(folder)));
    }
    let files = app.dependency(project, revision)?;
    if files.is_empty() {
        let message = format!(
            "`{}` has no Clojure files at {}",
            dependency.name,
            origin(dependency)
        );
        return Err(Report::error(NO_FOLDER, message)
            .hint("`:root` names the folder with the namespaces in the repository"));
    }
    let found = digest(files.iter().map(|(path, bytes)| (&**path, &**bytes)));
    let Some(folder) = folder.filter(|_| revision.digest.as_ref() == Some(&found)) else {
        return Err(not_as_expected(dependency, revision, &found));
    };
    keep(&folder, &files).map_err(|error| {
        let message = format!("{} cannot be written: {error}", folder.display());
        Report::error(NO_FOLDER, message)
    })?;
    Ok((State::Fetched, namespaces_in(&folder)))
}

fn not_as_expected(dependency: &Dependency, revision: &Revision, found: &str) -> Report {
    let name = &dependency.name;
    match &revision.digest {
        None => Report::error(
            WRONG_DIGEST,
            format!("`{name}` has no digest in flowstone.edn"),
        )
        .hint(format!(
            "if you trust this revision, add :digest \"{found}\""
        )),
        Some(expected) => {
            let message = format!(
                "the files of `{name}` are not those that flowstone.edn expects: their digest is {found}, not {expected}"
            );
            Report::error(WRONG_DIGEST, message).hint(
                "the revision or the root was changed without the digest, or the repository serves other files; look at them before you change it",
            )
        }
    }
}

/// Tells whether a folder has all files of a revision, unchanged.
fn is_whole(folder: &Path, revision: &Revision) -> bool {
    let mut files = Vec::new();
    if read_below(folder, "", &mut files).is_err() || files.is_empty() {
        return false;
    }
    files.sort();
    let found = digest(files.iter().map(|(path, bytes)| (&**path, &**bytes)));
    revision.digest.as_ref() == Some(&found)
}

fn read_below(folder: &Path, before: &str, files: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{before}{}", entry.file_name().to_string_lossy());
        match entry.file_type()?.is_dir() {
            true => read_below(&entry.path(), &format!("{path}/"), files)?,
            false => files.push((path, fs::read(entry.path())?)),
        }
    }
    Ok(())
}

/// Writes files into a new folder, and renames it, so that readers see all files or none.
fn keep(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    let above = folder.parent().unwrap_or(Path::new("."));
    private::make_folder(above)?;
    let unfinished = tempfile::Builder::new().prefix(".new-").tempdir_in(above)?;
    for (path, bytes) in files {
        let path = unfinished.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(unfinished.path()))?;
        fs::write(path, bytes)?;
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::rename(unfinished.path(), folder)?;
    // Nothing is left to remove.
    let _ = unfinished.keep();
    Ok(())
}
