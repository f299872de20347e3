//! `flowstone resources upload` and `flowstone run --upload`: store files for runs.

use std::fs::File;
use std::io;
use std::path::Path;

use flowstone_engine::ports::ResourceRow;
use flowstone_engine::resources::Upload;
use flowstone_engine::rooted::open_named;
use flowstone_engine::{Engine, EngineError};
use flowstone_lang::value::Value;

use super::ask_engine;
use crate::cli::args::ResourcesUpload;
use crate::cli::exit::Exit;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::{Report, unreadable};
use crate::cli::{App, Open, output};
use crate::json::{ok, reference_json};

/// Stores the file.
pub(super) fn run(args: &ResourcesUpload, app: &dyn App) -> Result<Exit, Report> {
    let is_stdin = args.file == Path::new("-");
    let file_name = args.file.file_name().map(|name| name.to_string_lossy());
    let name = match (&args.name, file_name) {
        (Some(name), _) => name.clone(),
        (None, Some(name)) if !is_stdin => name.into_owned(),
        (None, _) => {
            return Err(Report::error("E0941", "the file needs a name")
                .hint("give one: `--name today.txt`"));
        }
    };
    let upload = Upload {
        name,
        content_type: args.content_type.clone(),
        folder: args.folder.clone(),
        replace: args.replace,
        search: None,
    };
    let file = match is_stdin {
        true => None,
        false => Some(open(&args.file)?),
    };
    let row = ask_engine(app, &args.output, Open::OrMake, async |engine| match file {
        Some(file) => engine.upload(&upload, file).await,
        None => engine.upload(&upload, io::stdin().lock()).await,
    })?;
    if args.output.json {
        output::json(&ok(reference_json(&row)));
    } else {
        output::data(&row.uri);
    }
    Ok(Exit::Completed)
}

fn open(path: &Path) -> Result<File, Report> {
    let name = path.display().to_string();
    match path.is_dir() {
        true => Err(unreadable(&name, &io::ErrorKind::IsADirectory.into())),
        false => open_named(path).map_err(|error| unreadable(&name, &error)),
    }
}

/// Parses `field=path`.
///
/// # Errors
/// A message with the expected form.
pub fn upload_file(text: &str) -> Result<(String, std::path::PathBuf), String> {
    let parts = text.split_once('=');
    let (field, path) = parts
        .filter(|(field, path)| !field.is_empty() && !path.is_empty())
        .ok_or("expected FIELD=FILE, as in report=may.csv")?;
    Ok((field.trim_start_matches(':').to_owned(), path.into()))
}

/// Stores files, and returns the references to them under their fields.
///
/// # Errors
/// When one cannot be read or stored.
pub async fn references(
    engine: &Engine,
    files: &[(String, std::path::PathBuf)],
) -> Result<Vec<(Value, Value)>, Report> {
    let mut fields = Vec::with_capacity(files.len());
    for (field, path) in files {
        let file = open(path)?;
        let name = path.file_name().map(|name| name.to_string_lossy());
        let upload = Upload {
            name: name.map(std::borrow::Cow::into_owned).unwrap_or_default(),
            ..Upload::default()
        };
        let stored = engine.upload(&upload, file).await;
        let row = stored.map_err(|error: EngineError| of_engine_error(&error))?;
        fields.push((Value::keyword(field), reference(&row)));
    }
    Ok(fields)
}

fn reference(row: &ResourceRow) -> Value {
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Nil, Value::from);
    let size = row.size.and_then(|size| i64::try_from(size).ok());
    let facts = [
        ("type", Value::keyword("resource-ref")),
        ("uri", Value::from(row.uri.as_str())),
        ("content-type", text(&row.content_type)),
        ("filename", text(&row.name)),
        ("size-bytes", size.map_or(Value::Nil, Value::Int)),
    ];
    Value::map(facts.map(|(key, value)| (Value::keyword(key), value)))
}
