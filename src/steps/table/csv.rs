//! `:op :import` and `:op :export`: move CSV files into and out of tables without turning them into values.

use std::io;
use std::path::Path;

use flowstone_flow::blob::{BlobHash, BlobOp, BlobRow};
use flowstone_flow::codec::encode;
use flowstone_flow::ports::StoreOp;
use flowstone_flow::resource::step_output;
use flowstone_flow::rooted::{Opened, open_where};
use flowstone_flow::step::{Outcome, StepContext, StepError};
use flowstone_flow::table::csv::{
    CsvContent, CsvFormat, CsvSource, ExportCsv, ImportCsv, OnBadRow, StageCsv,
};
use flowstone_flow::table::{ColumnDefinition, TableOp, TableTarget, WriteMode};
use flowstone_lang::value::Value;

use super::{columns, names, query};
use crate::fields::Fields;
use crate::resource;
use crate::text::{brief, nearest};

const CONTENT_TYPE: &str = "text/csv";

fn bad(message: impl Into<String>) -> StepError {
    StepError::config("E0723", message)
}

/// Stages a CSV file. The commit of the step adds its rows.
pub(super) async fn import(
    cx: &StepContext,
    table: TableTarget,
    fields: Fields<'_>,
) -> Result<Outcome, StepError> {
    let format = CsvFormat {
        delimiter: delimiter(fields)?,
        header: fields.bool("header?")?.unwrap_or(true),
        encoding: fields.name("encoding")?.map(|label| label.to_string()),
    };
    let on_bad_row = named(fields, "on-bad-row", OnBadRow::NAMES)?.unwrap_or(OnBadRow::Fail);
    let mode = named(fields, "write-mode", MODES)?.unwrap_or(WriteMode::Insert);
    let types = columns(fields)?
        .into_iter()
        .map(|column| {
            let only_type = ColumnDefinition {
                type_: column.definition.type_,
                ..ColumnDefinition::default()
            };
            match column.definition.type_ {
                Some(type_) if column.definition == only_type => Ok((column.name, type_)),
                _ => Err(StepError::config(
                    "E0764",
                    format!(
                        "`:columns` of an import takes only types, but `{}` has more",
                        column.name
                    ),
                )
                .hint("set the rest with `:op :set-column`")),
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let ask = StageCsv {
        source: source(cx, fields).await?,
        format: format.clone(),
        types,
        on_bad_row,
    };
    let key_fields = names(fields, "key-fields")?;
    let index_fields = names(fields, "index-fields")?;
    let csv = cx.stores()?.tables.stage(ask).await?;
    let import = ImportCsv {
        table,
        csv,
        delimiter: format.delimiter,
        header: format.header,
        mode,
        key_fields,
        index_fields,
        on_bad_row,
    };
    let op = TableOp::Import(Box::new(import));
    Ok(Outcome::Commit(StoreOp::Table(Box::new(op))))
}

const MODES: &[(WriteMode, &str)] = &[
    (WriteMode::Insert, "append"),
    (WriteMode::Replace, "replace"),
    (WriteMode::Upsert, "upsert"),
];

fn named<T: Copy>(
    fields: Fields<'_>,
    key: &str,
    all: &[(T, &str)],
) -> Result<Option<T>, StepError> {
    let Some(word) = fields.name(key)? else {
        return Ok(None);
    };
    if let Some((found, _)) = all.iter().find(|(_, name)| **name == *word) {
        return Ok(Some(*found));
    }
    let known = all.iter().map(|(_, name)| *name);
    let error = bad(format!("`:{key}` has no `:{word}`"));
    Err(match nearest(&word, known.clone()) {
        Some(near) => error.hint(format!("did you mean `:{near}`?")),
        None => error.hint(format!(
            "there are :{}",
            known.collect::<Vec<_>>().join(" :")
        )),
    })
}

fn delimiter(fields: Fields<'_>) -> Result<u8, StepError> {
    let Some(text) = fields.text("delimiter")? else {
        return Ok(b',');
    };
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r' | 0) => Ok(*byte),
        _ => Err(bad(format!(
            "`:delimiter` must be one ASCII character, got {text:?}"
        ))
        .hint("such as \",\" \";\" \"\\t\" \"|\"; a quote or the end of a line cannot be one")),
    }
}

/// Finds the CSV text, which one of `:csv`, `:from` and `:from-ref` names.
async fn source(cx: &StepContext, fields: Fields<'_>) -> Result<CsvSource, StepError> {
    const SOURCES: [&str; 3] = ["csv", "from", "from-ref"];
    let given: Vec<&str> = SOURCES.into_iter().filter(|key| fields.has(key)).collect();
    match given.as_slice() {
        ["csv"] => Ok(CsvSource::Text(
            fields.text("csv")?.unwrap_or_default().to_owned(),
        )),
        [key] => {
            let given = fields.get(key).unwrap_or(&Value::Nil);
            match (resource::uri(given), given.as_str()) {
                (Some(uri), _) => blob(cx, &uri).await.map(CsvSource::Blob),
                (None, Some(path)) if *key == "from" => {
                    Ok(CsvSource::File(file(cx, path)?))
                }
                _ => Err(bad(format!("`:{key}` is a reference, not {}", brief(given)))
                    .hint("give the value of a step that has `:persist {:type :blob}`, or `:from` with a path in the project")),
            }
        }
        [] => Err(bad("no CSV text is given").hint(
            "set `:csv` to a text, or `:from` to a path in the project or a reference to a blob",
        )),
        _ => Err(bad("the CSV text is given in more than one way")
            .hint("give one of `:csv`, `:from` and `:from-ref`")),
    }
}

async fn blob(cx: &StepContext, uri: &str) -> Result<BlobHash, StepError> {
    match cx.stores()?.blobs.find(uri).await? {
        Some(row) => Ok(row.hash),
        None => Err(
            StepError::new("E0761", "not-found", format!("there is no blob `{uri}`"))
                .hint("it was deleted, or belongs to another project"),
        ),
    }
}

/// Opens a file that the flow may read: one of the project, or another that `:allow :read` names. Links are resolved
/// before the permission is checked.
fn file(cx: &StepContext, path: &str) -> Result<Opened, StepError> {
    let root = cx.project_root();
    let refused =
        |kind, why: String| StepError::new("E0724", kind, format!("`:from` names {path:?}, {why}"));
    if path.is_empty() || path.contains('\0') {
        return Err(refused("denied", "which is not a path".to_owned())
            .hint("paths are relative to the project, as in \"data/orders.csv\""));
    }
    // Checked first: whether a file exists is reported only to flows that may read it.
    cx.gate().read(&root.join(path))?;
    let missing = |error: io::Error| {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => {
                let error = refused("not-found", "which does not exist".to_owned());
                return error.hint(match near(root, path) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => {
                        "paths are relative to the project; a file from elsewhere is given with `flowstone run --upload NAME=FILE`"
                            .to_owned()
                    }
                });
            }
            io::ErrorKind::PermissionDenied => "denied",
            _ => "unavailable",
        };
        refused(kind, format!("which cannot be read: {error}"))
            .hint("check the permissions of the file and of the folders above it")
    };
    if root.join(path).is_dir() {
        return Err(refused("bad-config", "which is a folder".to_owned())
            .hint("name a file in it, as in \"data/orders.csv\""));
    }
    open_where(&root.join(path), |found| match cx.gate().read(found) {
        Ok(_) => Ok(()),
        Err(error) => Err(Unopened::Refused(Box::new(error))),
    })
    .map_err(|error| match error {
        Unopened::Io(error) => missing(error),
        Unopened::Refused(error) => *error,
    })
}

/// The reason why a file was not opened.
enum Unopened {
    Io(io::Error),
    Refused(Box<StepError>),
}

impl From<io::Error> for Unopened {
    fn from(error: io::Error) -> Unopened {
        Unopened::Io(error)
    }
}

/// Returns the path of a file with a similar name, in the folder of `path` or else in the root of the project.
fn near(root: &Path, path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let found = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).ok()?;
        let files = entries.flatten().filter(|entry| entry.path().is_file());
        let mut names: Vec<String> = files
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        let near = nearest(name, names.iter().map(String::as_str))?;
        Some(match folder {
            "" => near.to_owned(),
            folder => format!("{folder}/{near}"),
        })
    };
    found(folder).or_else(|| found(""))
}

/// Exports rows as CSV: a small text becomes the step's value, a large one is stored as a blob.
pub(super) async fn export(
    cx: &StepContext,
    table: TableTarget,
    fields: Fields<'_>,
) -> Result<Outcome, StepError> {
    let ask = ExportCsv {
        table,
        select: names(fields, "select")?,
        filter: query::filter(fields, "where")?,
        sort: query::sort(fields, "sort")?,
        escape_formulas: fields.bool("escape-formulas?")?.unwrap_or(false),
    };
    let exported = cx.stores()?.tables.export(ask).await?;
    let rows = i64::try_from(exported.rows).unwrap_or(i64::MAX);
    let mut facts = vec![
        ("content-type", Value::from(CONTENT_TYPE)),
        ("filename", Value::from(exported.filename.as_str())),
        ("rows", Value::Int(rows)),
    ];
    let (blob, bytes) = match exported.content {
        CsvContent::Text(text) => {
            facts.insert(0, ("content", Value::from(text)));
            let facts = facts
                .into_iter()
                .map(|(key, value)| (Value::keyword(key), value));
            return Ok(Outcome::Value(Value::map(facts)));
        }
        CsvContent::Blob { blob, bytes } => (blob, bytes),
    };
    if fields.has("persist") {
        // `:persist` needs the whole text.
        let text = cx.stores()?.blobs.get(&blob).await?;
        facts.push((
            "content",
            Value::from(String::from_utf8_lossy(&text).into_owned()),
        ));
        let facts = facts
            .into_iter()
            .map(|(key, value)| (Value::keyword(key), value));
        return Ok(Outcome::Value(Value::map(facts)));
    }
    let uri = step_output(&cx.pass_name(), &cx.path().to_string());
    facts.push((
        "size-bytes",
        Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX)),
    ));
    let reference = resource::reference(&uri, &facts);
    facts.extend([
        ("resource-uri", Value::from(uri.as_str())),
        ("ref", reference.clone()),
        ("blob-ref", reference),
        ("sha256", Value::from(blob.0.as_str())),
    ]);
    let value = encode(&resource::reference(&uri, &facts));
    let value = value.map_err(|error| StepError::new(error.code(), "store", error.to_string()))?;
    let blob = BlobRow {
        filename: Some(exported.filename),
        content_type: Some(CONTENT_TYPE.to_owned()),
        run: Some(cx.run_id().to_string()),
        path: Some(cx.path().to_string()),
        ..BlobRow::new(uri, blob, bytes)
    };
    Ok(Outcome::Commit(StoreOp::Blob(BlobOp::Register {
        blob: Box::new(blob),
        value,
    })))
}
