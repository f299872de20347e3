//! The document of a run: a projection of its journal in the shape that other tools read, and the file of a `file://` handle.
//!
//! The journal is authoritative. A file is written before the driver gets its reply. It contains the number of its last
//! answer and a digest of its contents, so that a file that a crash left behind is written again, and an edited one is
//! refused.

use std::io::{Read as _, Write as _};

use flowstone_engine::EngineError;
use flowstone_engine::codec;
use flowstone_engine::ports::EntryKind;
use flowstone_engine::rooted::Root;
use flowstone_lang::value::Value;
use flowstone_model::json::to_json;
use serde_json::{Value as Json, json};

use super::driver::Trees;
use super::error::TreeError;
use super::handle::{Handle, HandleKind};
use super::node::document_node;
use super::position::Position;

mod import;

pub(super) use import::import;

/// The version of the documents that are written and read.
pub(super) const SCHEMA_VERSION: u64 = 1;
/// Maximum size of a document that is read, in bytes.
const DOCUMENT_MAX: u64 = 64 << 20;
/// The member that names the run of a document, and the number of answers that it contains.
const MARK: &str = "flowstone";

/// Returns the document of a run.
pub(super) async fn of(
    trees: &Trees<'_>,
    uri: &str,
    position: &Position,
) -> Result<Json, TreeError> {
    let tree = trees.tree_of(&position.run).await?;
    let root = tree.get("root").map_or(Json::Null, document_node);
    let frozen = Frozen {
        tree: with_state(root, &tree),
        constants: constants(&tree),
    };
    made(trees, uri, position, frozen).await
}

/// The members that stay the same in all documents of a run.
struct Frozen {
    tree: Json,
    constants: Json,
}

async fn made(
    trees: &Trees<'_>,
    uri: &str,
    position: &Position,
    frozen: Frozen,
) -> Result<Json, TreeError> {
    let trace = trace(trees, position).await?;
    let input = codec::decode(&position.run.input).unwrap_or(Value::Nil);
    let tree_uri = input.get("tree-uri").and_then(Value::as_str);
    Ok(json!({
        "uri": uri,
        "schema_version": SCHEMA_VERSION,
        "created_at": codec::instant(position.run.created_ms),
        "updated_at": codec::instant(position.run.updated_ms),
        "tree_uri": tree_uri,
        "tree": frozen.tree,
        "status": position.text("status"),
        "phase": position.phase(),
        "cursor": position.text("cursor"),
        "protocol_accepted": position.is_accepted(),
        "var": position.var(),
        "const": frozen.constants,
        "runtime": position.bookkeeping(),
        "trace": trace,
    }))
}

/// Returns `$CONST` of a tree.
pub(super) fn constants(tree: &Value) -> Json {
    store(tree, "const")
}

fn store(tree: &Value, name: &str) -> Json {
    match tree.get(name).map(to_json) {
        Some(Ok(Json::Object(store))) => Json::Object(store),
        _ => json!({}),
    }
}

/// Adds the initial stores to the root node, as documents have them there.
fn with_state(mut root: Json, tree: &Value) -> Json {
    let (var, constants) = (store(tree, "var"), store(tree, "const"));
    if let Some(members) = root.as_object_mut() {
        members.insert("state".to_owned(), json!({"var": var, "const": constants}));
    }
    root
}

/// Returns the entries of the trace since the start or the last reset, oldest first.
pub(super) async fn trace(trees: &Trees<'_>, position: &Position) -> Result<Vec<Json>, TreeError> {
    let journal = &trees.engine.stores().journal;
    let entries = journal.load(&position.run.id).await;
    let mut trace = Vec::new();
    for entry in entries.map_err(EngineError::from)? {
        if entry.kind != EntryKind::Log {
            continue;
        }
        let Ok(payload) = codec::decode(&entry.payload) else {
            continue;
        };
        let data = payload.get("data").unwrap_or(&Value::Nil);
        match event_name(&payload).as_deref() {
            Some("trace") => trace.push(entry_json(data, entry.at_ms)),
            Some("imported") => {
                let imported = flowstone_model::json::items(data).unwrap_or_default();
                trace.extend(imported.iter().filter_map(|entry| to_json(entry).ok()));
            }
            Some("reset") => trace.clear(),
            _ => {}
        }
    }
    Ok(trace)
}

fn event_name(payload: &Value) -> Option<String> {
    let name = payload.get("name").or_else(|| payload.get("event"))?;
    flowstone_model::json::name_text(name)
}

fn entry_json(data: &Value, at_ms: i64) -> Json {
    let mut entry = json!({"ts": codec::instant(at_ms)});
    for key in ["kind", "cursor", "name", "submitted", "outcome", "note"] {
        if let Some(text) = data.get(key).and_then(Value::as_str) {
            entry[key] = json!(text);
        }
    }
    entry
}

/// Tells whether the document of a handle exists.
pub(super) fn exists(trees: &Trees<'_>, handle: &Handle) -> Result<bool, TreeError> {
    match &handle.kind {
        HandleKind::File(path) => Ok(folder(trees, handle)?.metadata(path).is_ok()),
        HandleKind::Memory(_) | HandleKind::Run(_) => Ok(false),
    }
}

/// Writes the document of a `file://` handle. `before`: the document that it replaces, if that is one of this run.
pub(super) async fn write(
    trees: &Trees<'_>,
    handle: &Handle,
    position: &Position,
    before: Option<Json>,
) -> Result<(), TreeError> {
    let HandleKind::File(path) = &handle.kind else {
        return Ok(());
    };
    let run = json!(position.run.id.as_str());
    let mut document = match before.filter(|before| before[MARK]["run"] == run) {
        Some(mut before) => {
            let frozen = Frozen {
                tree: before["tree"].take(),
                constants: before["const"].take(),
            };
            made(trees, &handle.uri, position, frozen).await?
        }
        None => of(trees, &handle.uri, position).await?,
    };
    document[MARK] = json!({
        "run": run, "answers": position.answers, "digest": digest(&document),
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    let root = folder(trees, handle)?;
    replace(&root, path, &text).map_err(|error| TreeError::Unwritable {
        uri: handle.uri.clone(),
        why: error.to_string(),
    })
}

/// Writes the document again if a crash left it behind its run.
pub(super) async fn catch_up(
    trees: &Trees<'_>,
    handle: &Handle,
    position: &Position,
    before: Option<Json>,
) -> Result<(), TreeError> {
    let mark = before.as_ref().map_or(&Json::Null, |before| &before[MARK]);
    let is_of_run = mark["run"].as_str() == Some(position.run.id.as_str());
    match is_of_run && mark["answers"].as_u64() == Some(position.answers) {
        true => Ok(()),
        false => write(trees, handle, position, before).await,
    }
}

/// Returns the document of a handle, or refuses one that does not belong to its run.
pub(super) fn compare(
    trees: &Trees<'_>,
    handle: &Handle,
    position: &Position,
) -> Result<Option<Json>, TreeError> {
    let Some(document) = read(trees, handle)? else {
        return Ok(None);
    };
    let mark = &document[MARK];
    let is_of_run = mark["run"].as_str() == Some(position.run.id.as_str());
    let answers = mark["answers"].as_u64();
    let is_whole = mark["digest"].as_str() == Some(digest(&document).as_str());
    let is_behind = answers.is_some_and(|answers| answers <= position.answers);
    // After the reset of an ended run, a crash may leave the document of the previous run.
    let is_of_earlier = position.answers == 0 && position.is_reset();
    if is_whole && (is_of_run && is_behind || !is_of_run && is_of_earlier) {
        return Ok(Some(document));
    }
    let text = |key: &str| document[key].as_str().unwrap_or("?").to_owned();
    let shown = match (is_whole, answers) {
        (true, Some(answers)) => format!("{answers} answers of run {}", mark["run"]),
        _ => format!("phase {}, cursor {}, edited", text("phase"), text("cursor")),
    };
    Err(TreeError::Differs {
        uri: handle.uri.clone(),
        run: position.run.id.to_string(),
        document: shown,
        journal: format!(
            "{} answers, phase {}, cursor {}",
            position.answers,
            position.phase(),
            position.text("cursor")
        ),
    })
}

/// Returns the document of a handle, if it has one.
fn read(trees: &Trees<'_>, handle: &Handle) -> Result<Option<Json>, TreeError> {
    let HandleKind::File(path) = &handle.kind else {
        return Ok(None);
    };
    let bad = |why: String| TreeError::BadDocument {
        uri: handle.uri.clone(),
        why,
    };
    let root = folder(trees, handle)?;
    let file = match root.file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(bad(error.to_string())),
    };
    let mut text = String::new();
    let size = file.take(DOCUMENT_MAX).read_to_string(&mut text);
    size.map_err(|error| bad(error.to_string()))?;
    let document = serde_json::from_str(&text);
    document
        .map(Some)
        .map_err(|error| bad(format!("it is not JSON: {error}")))
}

fn folder(trees: &Trees<'_>, handle: &Handle) -> Result<Root, TreeError> {
    Root::open(trees.engine.project_root()).map_err(|error| TreeError::Unwritable {
        uri: handle.uri.clone(),
        why: error.to_string(),
    })
}

/// Replaces a file so that a reader sees the old text or the new one, also after a loss of power.
fn replace(root: &Root, path: &str, text: &str) -> std::io::Result<()> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let process = std::process::id();
    let temporary = match folder {
        "" => format!(".{name}.{process}.tmp"),
        folder => format!("{folder}/.{name}.{process}.tmp"),
    };
    // An earlier process with the same id may have left a file.
    let _ = root.remove(&temporary);
    let written = root.create(&temporary, 0o666).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_data()
    });
    let renamed = written.and_then(|()| root.rename(&temporary, path));
    if renamed.is_err() {
        let _ = root.remove(&temporary);
    }
    renamed?;
    root.sync_folder(folder)
}

/// Returns the digest of a document without the member about itself.
fn digest(document: &Json) -> String {
    let members = document.as_object().into_iter().flatten();
    let mut text = String::new();
    for (key, value) in members.filter(|(key, _)| *key != MARK) {
        text.push_str(&format!("{key} {value}\n"));
    }
    codec::digest_bytes(text.as_bytes())
}
