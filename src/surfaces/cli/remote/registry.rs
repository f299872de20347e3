//! Versions of flows on a server.

use std::path::Path;

use flowstone_project::registry::{Base, MAIN_FILE, RegistryError, VersionFiles, VersionRef};
use serde_json::{Map, Value, json};

use super::Remote;
use crate::cli::args::{FlowsCommand, FlowsDiff, FlowsPull, FlowsPush, Home};
use crate::cli::flows::registered::{
    base, file_of, of_registry, read, tell_archived, tell_diff, tell_moved, tell_pulled,
    tell_pushed, with_file,
};
use crate::cli::home::Project;
use crate::cli::report::Report;
use crate::cli::rows::text;

/// The code of a flow that the registry does not have.
const NO_FLOW: &str = "E1400";

pub(super) fn perform(remote: &Remote, command: &FlowsCommand) -> Result<(), Report> {
    match command {
        FlowsCommand::Archive(args) => {
            let body = json!({ "undo": args.undo });
            let row = remote.post(&["registry", &args.slug, "archive"], &body)?;
            tell_archived(row, args.json);
        }
        FlowsCommand::Diff(args) => tell_diff(diff(remote, args)?, args.json),
        FlowsCommand::Pull(args) => tell_pulled(pull(remote, args)?, args.json),
        FlowsCommand::Push(args) => tell_pushed(push(remote, args)?, args.json),
        FlowsCommand::Release(args) => {
            let mut body = message(args.message.as_deref());
            if let Some(version) = args.version {
                body.insert("version".to_owned(), json!(version));
            }
            body.extend(
                args.key
                    .key
                    .iter()
                    .map(|key| ("deployKey".to_owned(), json!(key))),
            );
            let path = ["registry", &*args.slug, "release"];
            tell_moved(remote.post(&path, &body.into())?, args.json);
        }
        FlowsCommand::Rollback(args) => {
            let mut body = message(args.message.as_deref());
            if let Some(version) = args.to {
                body.insert("to".to_owned(), json!(version));
            }
            body.extend(
                args.key
                    .key
                    .iter()
                    .map(|key| ("deployKey".to_owned(), json!(key))),
            );
            let path = ["registry", &*args.slug, "rollback"];
            tell_moved(remote.post(&path, &body.into())?, args.json);
        }
        FlowsCommand::Configure(_)
        | FlowsCommand::Install(_)
        | FlowsCommand::Installations(_)
        | FlowsCommand::List(_)
        | FlowsCommand::Pack(_)
        | FlowsCommand::Show(_)
        | FlowsCommand::Test(_)
        | FlowsCommand::Trust(_)
        | FlowsCommand::Trusted(_)
        | FlowsCommand::Uninstall(_)
        | FlowsCommand::Untrust(_)
        | FlowsCommand::Versions(_) => {}
    }
    Ok(())
}

fn message(message: Option<&str>) -> Map<String, Value> {
    let message = message.map(|message| ("message".to_owned(), json!(message)));
    message.into_iter().collect()
}

/// Returns the name under which a server remembers the version of a working copy of this machine.
fn place(place: &str) -> String {
    let host = ["HOSTNAME", "COMPUTERNAME", "HOST"];
    let host = host.iter().find_map(|name| std::env::var(name).ok());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    format!("{}:{place}", host.unwrap_or_default().trim())
}

fn push(remote: &Remote, args: &FlowsPush) -> Result<Value, Report> {
    let root = Project::find(&args.home).root;
    let flow = read(&args.path, &root, args.json)?;
    let mut body = message(args.message.as_deref());
    let texts = flow.files.iter().map(|(path, bytes)| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        (path.clone(), Value::String(text))
    });
    body.insert("files".to_owned(), Value::Object(texts.collect()));
    body.insert("place".to_owned(), json!(place(flow.copy.place())));
    match base(args) {
        Base::Any => drop(body.insert("force".to_owned(), json!(true))),
        Base::Nothing => drop(body.insert("base".to_owned(), json!(0))),
        Base::Version(number) => drop(body.insert("base".to_owned(), json!(number))),
        Base::OfPlace => {}
    }
    remote.post(&["registry", &flow.slug, "versions"], &body.into())
}

fn pull(remote: &Remote, args: &FlowsPull) -> Result<Value, Report> {
    let (slug, _) = VersionRef::with_slug(&args.flow).map_err(failed)?;
    let shown = version(remote, &args.flow)?;
    let path = args.to.clone();
    let path = path.unwrap_or_else(|| file_of(&root(&args.home), slug));
    let copy = flowstone_project::registry::WorkingCopy::at(&path);
    let place = place(copy.place());
    let known = remote.get(&["registry", slug, "copies"], &[("place", place.clone())])?;
    let contents = [&known["content"], &shown["version"]["content"]];
    let contents: Vec<&str> = contents.into_iter().filter_map(Value::as_str).collect();
    let left_out = copy.replace_by(&files(&shown), &contents, args.force);
    let left_out = left_out.map_err(failed)?;
    let body = json!({"place": place, "version": shown["version"]["version"]});
    remote.post(&["registry", slug, "copies"], &body)?;
    Ok(json!({
        "version": shown["version"],
        "file": path.display().to_string(),
        "leftOut": left_out,
    }))
}

fn failed(error: RegistryError) -> Report {
    of_registry(&error)
}

fn root(home: &Home) -> std::path::PathBuf {
    Project::find(home).root
}

fn files(shown: &Value) -> VersionFiles {
    let files = shown["files"].as_object().into_iter().flatten();
    files
        .map(|(path, text)| {
            let text = text.as_str().unwrap_or_default();
            (path.clone(), text.as_bytes().to_vec())
        })
        .collect()
}

fn diff(remote: &Remote, args: &FlowsDiff) -> Result<Value, Report> {
    if let Some(to) = &args.to {
        let query = [("from", args.from.clone()), ("to", to.clone())];
        return remote.get(&["registry", &args.slug, "diff"], &query);
    }
    let shown = version(remote, &format!("{}@{}", args.slug, args.from))?;
    let path = file_of(&root(&args.home), &args.slug);
    let number = shown["version"]["version"].to_string();
    Ok(with_file(Path::new(&path), (&number, &files(&shown))))
}

/// Returns a version with its files.
pub(super) fn version(remote: &Remote, name: &str) -> Result<Value, Report> {
    let (slug, wanted) = VersionRef::with_slug(name).map_err(failed)?;
    let shown = remote.get(&["registry", slug, "versions", &wanted.to_string()], &[])?;
    match shown["files"][MAIN_FILE].is_string() {
        true => Ok(shown),
        false => Err(Report::error(
            NO_FLOW,
            format!(
                "the server sent no text of {}",
                text(&shown["version"], "slug")
            ),
        )),
    }
}

/// Returns what the registry of a server knows of a flow; `None` if it was never pushed.
pub(super) fn known(remote: &Remote, slug: &str) -> Result<Option<Value>, Report> {
    match remote.get(&["registry", slug], &[]) {
        Ok(known) => Ok(Some(known)),
        Err(report) if report.code == NO_FLOW => Ok(None),
        Err(report) => Err(report),
    }
}

/// Returns all versions of a flow; `None` if it was never pushed.
pub(super) fn versions(remote: &Remote, slug: &str) -> Result<Option<Vec<Value>>, Report> {
    match remote.pages(&["registry", slug, "versions"], "versions", &[], 0) {
        Ok((versions, _)) => Ok(Some(versions)),
        Err(report) if report.code == NO_FLOW => Ok(None),
        Err(report) => Err(report),
    }
}
