//! The document of a run: a projection of its journal in the shape that other tools read, and the file of a `file://` handle.
//!
//! The journal is authoritative. A file is written before the driver gets its reply. It contains the number of its last
//! answer and a digest of its contents, so that a file that a crash left behind is written again, and an edited one is
//! refused.

use std::io::Read as _;

use flowstone_engine::EngineError;
use flowstone_engine::codec;
use flowstone_engine::ports::EntryKind;
use flowstone_engine::rooted::Root;
use flowstone_lang::value::Value;
use flowstone_model::json::to_json;
use serde_json::{Map, Value as Json, json};

use super::driver::Trees;
use super::error::TreeError;
use super::handle::{Handle, HandleKind};
use super::node::document_node;
use super::position::{Position, ordered};

mod import;
mod temporary;
mod written;

pub(super) use import::import;
pub(super) use written::Document;
pub use written::Written;

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
    let trace = trace(trees, position).await?;
    made(uri, position, frozen, trace)
}

/// The members that stay the same in all documents of a run.
struct Frozen {
    tree: Json,
    constants: Json,
}

fn made(
    uri: &str,
    position: &Position,
    frozen: Frozen,
    trace: Vec<Json>,
) -> Result<Json, TreeError> {
    let input = codec::decode(&position.run.input).unwrap_or(Value::Nil);
    let tree_uri = input.get("tree-uri").and_then(Value::as_str);
    // Not by `json!`, which copies what is put into it.
    let members = [
        ("uri", Json::from(uri)),
        ("schema_version", Json::from(SCHEMA_VERSION)),
        ("created_at", json!(codec::instant(position.run.created_ms))),
        ("updated_at", json!(codec::instant(position.run.updated_ms))),
        ("tree_uri", json!(tree_uri)),
        ("tree", frozen.tree),
        ("status", Json::from(position.text("status"))),
        ("phase", Json::from(position.phase())),
        ("cursor", Json::from(position.text("cursor"))),
        ("protocol_accepted", Json::from(position.is_accepted())),
        ("var", position.var()?),
        ("const", frozen.constants),
        ("runtime", position.bookkeeping()?),
        ("trace", Json::Array(trace)),
    ];
    let members = members.map(|(name, value)| (name.to_owned(), value));
    let mut members = Map::from_iter(members);
    if let Some(ended) = position.ended() {
        members.insert("ended".to_owned(), json!(ended));
    }
    Ok(Json::Object(members))
}

/// Returns `$CONST` of a tree.
pub(super) fn constants(tree: &Value) -> Json {
    store(tree, "const")
}

fn store(tree: &Value, name: &str) -> Json {
    match tree.get(name).map(to_json) {
        Some(Ok(Json::Object(store))) => ordered(Json::Object(store)),
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
    let mut trace = Vec::new();
    continue_trace(trees, position, &mut trace, 0).await?;
    Ok(trace)
}

/// Adds the entries after a place of the journal to a trace, and returns the place of the last one.
async fn continue_trace(
    trees: &Trees<'_>,
    position: &Position,
    trace: &mut Vec<Json>,
    mut place: i64,
) -> Result<i64, TreeError> {
    let journal = &trees.engine.stores().journal;
    let entries = journal
        .load_after(&position.run.id, place, usize::MAX)
        .await;
    for (at, entry) in entries.map_err(EngineError::from)? {
        place = at;
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
    Ok(place)
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
    before: Option<Document>,
) -> Result<(), TreeError> {
    let HandleKind::File(path) = &handle.kind else {
        return Ok(());
    };
    let root = folder(trees, handle)?;
    // A document that this process wrote last was written without a crash.
    if before.as_ref().is_none_or(|before| before.place.is_none()) {
        temporary::remove_stale(&root, path);
    }
    let run = json!(position.run.id.as_str());
    let before = before.filter(|before| before.json[MARK]["run"] == run);
    let (mut json, place) = match before {
        Some(before) => following(trees, handle, position, before).await?,
        None => (of(trees, &handle.uri, position).await?, None),
    };
    json[MARK] = json!({
        "run": run, "answers": position.answers, "digest": digest(&json),
    });
    let mut text = serde_json::to_string_pretty(&json).unwrap_or_default();
    text.push('\n');
    temporary::replace(&root, path, &text).map_err(|error| TreeError::Unwritable {
        uri: handle.uri.clone(),
        why: error.to_string(),
    })?;
    trees.keep(Document { json, text, place });
    Ok(())
}

/// Returns the document that follows another one of the same run, and the place of the journal that it goes up to.
async fn following(
    trees: &Trees<'_>,
    handle: &Handle,
    position: &Position,
    mut before: Document,
) -> Result<(Json, Option<i64>), TreeError> {
    let frozen = Frozen {
        tree: before.json["tree"].take(),
        constants: before.json["const"].take(),
    };
    let (mut trace, known) = match (before.json["trace"].take(), before.place) {
        (Json::Array(trace), Some(place)) => (trace, place),
        _ => (Vec::new(), 0),
    };
    let place = continue_trace(trees, position, &mut trace, known).await?;
    let json = made(&handle.uri, position, frozen, trace)?;
    Ok((json, Some(place)))
}

/// Writes the document again if it is behind its run: after a crash, or after an end that no driver brought about.
pub(super) async fn catch_up(
    trees: &Trees<'_>,
    handle: &Handle,
    position: &Position,
    before: Option<Document>,
) -> Result<(), TreeError> {
    let is_current = before.as_ref().is_some_and(|before| {
        let mark = &before.json[MARK];
        let is_of_run = mark["run"].as_str() == Some(position.run.id.as_str());
        let is_of_answers = mark["answers"].as_u64() == Some(position.answers);
        // A run that is cancelled ends without an answer.
        is_of_run && is_of_answers && before.json["status"] == *position.text("status")
    });
    if !is_current {
        return write(trees, handle, position, before).await;
    }
    before.into_iter().for_each(|before| trees.keep(before));
    Ok(())
}

/// Returns the document of a handle, or refuses one that does not belong to its run.
pub(super) fn compare(
    trees: &Trees<'_>,
    handle: &Handle,
    position: &Position,
) -> Result<Option<Document>, TreeError> {
    let Some(text) = text_of(trees, handle)? else {
        return Ok(None);
    };
    let (found, is_known) = match trees.kept(&text) {
        Some(kept) => (kept, true),
        None => (unknown(handle, text)?, false),
    };
    let document = &found.json;
    let mark = &document[MARK];
    let is_of_run = mark["run"].as_str() == Some(position.run.id.as_str());
    let answers = mark["answers"].as_u64();
    let is_whole = is_known || mark["digest"].as_str() == Some(digest(document).as_str());
    let is_behind = answers.is_some_and(|answers| answers <= position.answers);
    // After the reset of an ended run, a crash may leave the document of the previous run.
    let is_of_earlier = position.answers == 0 && position.is_reset();
    if is_whole && (is_of_run && is_behind || !is_of_run && is_of_earlier) {
        return Ok(Some(found));
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
    let text = text_of(trees, handle)?;
    let document = text.map(|text| unknown(handle, text)).transpose()?;
    Ok(document.map(|document| document.json))
}

/// Reads the text of a document that this process has not written.
fn unknown(handle: &Handle, text: String) -> Result<Document, TreeError> {
    let json = serde_json::from_str(&text)
        .map_err(|error| bad_document(handle, format!("it is not JSON: {error}")))?;
    let place = None;
    Ok(Document { json, text, place })
}

/// Returns the text of a document, where the handle has one.
fn text_of(trees: &Trees<'_>, handle: &Handle) -> Result<Option<String>, TreeError> {
    let HandleKind::File(path) = &handle.kind else {
        return Ok(None);
    };
    let root = folder(trees, handle)?;
    let file = match root.file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(bad_document(handle, error.to_string())),
    };
    let mut text = String::new();
    let size = file.take(DOCUMENT_MAX).read_to_string(&mut text);
    size.map_err(|error| bad_document(handle, error.to_string()))?;
    Ok(Some(text))
}

fn bad_document(handle: &Handle, why: String) -> TreeError {
    TreeError::BadDocument {
        uri: handle.uri.clone(),
        why,
    }
}

fn folder(trees: &Trees<'_>, handle: &Handle) -> Result<Root, TreeError> {
    Root::open(trees.engine.project_root()).map_err(|error| TreeError::Unwritable {
        uri: handle.uri.clone(),
        why: error.to_string(),
    })
}

/// Returns the digest of a document without the member about itself.
fn digest(document: &Json) -> String {
    let members = document.as_object().into_iter().flatten();
    let mut text = Vec::new();
    for (key, value) in members.filter(|(key, _)| *key != MARK) {
        text.extend(key.as_bytes());
        text.push(b' ');
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut text, value);
        text.push(b'\n');
    }
    codec::digest_bytes(&text)
}
