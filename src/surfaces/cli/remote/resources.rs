//! `flowstone resources` against a server: shows, reads, stores and deletes resources.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Remote, local_only};
use crate::cli::args::{
    OneResource, ResourcesDelete, ResourcesGet, ResourcesRead, ResourcesUpload,
};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::report::Report;
use crate::cli::resources::render::facts;
use crate::json::ok;

/// Returns the resource with a name.
fn find(remote: &Remote, one: &OneResource) -> Result<Value, Report> {
    let query = [
        ("prefix", one.uri.clone()),
        ("all", "true".to_owned()),
        ("limit", "500".to_owned()),
    ];
    let page = remote.get(&["resources"], &query)?;
    let mut rows = page["resources"].as_array().into_iter().flatten();
    let is_it = |row: &&Value| {
        let uri = row["uri"].as_str().unwrap_or_default();
        uri == one.uri || uri.strip_prefix("res://v1/ws/local/") == Some(&*one.uri)
    };
    rows.find(is_it).cloned().ok_or_else(|| {
        Report::error("E0936", format!("there is no resource `{}`", one.uri))
            .hint("`flowstone resources list` shows their names")
    })
}

pub(super) fn get(remote: &Remote, args: &ResourcesGet) -> Result<Exit, Report> {
    let row = find(remote, &args.one)?;
    if let Some(file) = &args.out {
        write(file, &content(remote, &row)?)?;
    }
    if args.one.output.json {
        output::json(&json!({"ok": true, "resource": row, "file": args.out}));
    } else {
        output::data(&facts(&row));
    }
    Ok(Exit::Completed)
}

fn content(remote: &Remote, row: &Value) -> Result<Vec<u8>, Report> {
    let uri = row["uri"].as_str().unwrap_or_default().to_owned();
    remote.bytes(&["resources", "content"], &[("uri", uri)])
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Report> {
    fs::write(file, bytes).map_err(|error| {
        Report::error("E0916", format!("cannot write {}: {error}", file.display()))
    })
}

pub(super) fn read(remote: &Remote, args: &ResourcesRead) -> Result<Exit, Report> {
    if !args.full {
        return Err(local_only("`resources read` without `--full`"));
    }
    if !args.partitions.is_empty() || args.one.output.json {
        return Err(local_only("`resources read` of rows, or as JSON,"));
    }
    let row = find(remote, &args.one)?;
    let bytes = content(remote, &row)?;
    output::whole(&String::from_utf8_lossy(&bytes));
    Ok(Exit::Completed)
}

pub(super) fn upload(remote: &Remote, args: &ResourcesUpload) -> Result<Exit, Report> {
    let file_name = args.file.file_name().map(|name| name.to_string_lossy());
    let is_stdin = args.file == Path::new("-");
    let name = match (&args.name, file_name) {
        (Some(name), _) => name.clone(),
        (None, Some(name)) if !is_stdin => name.into_owned(),
        (None, _) => {
            return Err(Report::error("E0941", "the file needs a name")
                .hint("give one: `--name today.txt`"));
        }
    };
    let mut query = vec![("filename", name)];
    query.extend(args.folder.iter().map(|folder| ("folder", folder.clone())));
    if args.replace {
        query.push(("replace", "true".to_owned()));
    }
    let stored = remote.upload(&query, args.content_type.as_deref(), &args.file)?;
    match args.output.json {
        true => output::json(&ok(stored)),
        false => output::data(stored["uri"].as_str().unwrap_or_default()),
    }
    Ok(Exit::Completed)
}

pub(super) fn delete(remote: &Remote, args: &ResourcesDelete) -> Result<Exit, Report> {
    if !args.yes {
        return Err(
            Report::error("E0938", "a server is not asked to delete without `--yes`")
                .hint("use `--yes` to delete without asking"),
        );
    }
    let row = find(remote, &args.one)?;
    let uri = row["uri"].as_str().unwrap_or_default().to_owned();
    let mut query = vec![("uri", uri.clone())];
    if args.force {
        query.push(("force", "true".to_owned()));
    }
    remote.delete(&["resources"], &query)?;
    if args.one.output.json {
        output::json(&json!({"ok": true, "deleted": find(remote, &args.one)?}));
    } else {
        output::note(&format!("deleted {uri}"));
    }
    Ok(Exit::Completed)
}
