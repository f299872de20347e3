//! Memories and their entries.

use flowstone_engine::Engine;
use flowstone_engine::feed_event::instant;
use flowstone_engine::ports::StoreError;
use flowstone_project::knowledge::write::{
    Action, DUPLICATE, Fact, UPDATE, entry_key, hold_entries,
};
use flowstone_project::knowledge::{ENTRIES, Embedder, Library, matches};
use serde_json::{Value as Json, json};

use super::body::{Body, Kind, Member, texts};
use super::error::ApiError;
use super::generations::Who;
use super::records::{self, CHANGES_MAX, Record, Records};
use super::{ids, knowledge, projects, sight};
use crate::rows::NOT_FOUND;

/// The body of a new memory.
pub const CREATE: &[Member] = &[
    Member::optional("description", Kind::Text, "What it is for."),
    Member::required("name", Kind::Name, "The name."),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::optional("tags", Kind::Texts, "Tags, by which agents find it."),
];

/// The body of changes of a memory.
pub const UPDATE_MEMORY: &[Member] = &[
    Member::optional("description", Kind::Text, "What it is for."),
    Member::kept("name", Kind::Name, "The name."),
    Member::optional("tags", Kind::Texts, "Tags, by which agents find it."),
];

/// The body of a new entry.
pub const CREATE_ENTRY: &[Member] = &[
    Member::required("content", Kind::Text, "The fact."),
    Member::optional(
        "duplicate_threshold",
        Kind::Number(0.0, 1.0),
        "The score from which the fact is skipped; 0.95 if it is left out.",
    ),
    Member::optional(
        "source",
        Kind::OneOf(&["agent", "extraction", "manual"]),
        "Who wrote it; `manual` if it is left out.",
    ),
    Member::optional(
        "update_threshold",
        Kind::Number(0.0, 1.0),
        "The score from which the fact is appended to an entry; 0.75 if it is left out.",
    ),
];

/// The body of changes of an entry.
pub const UPDATE_ENTRY: &[Member] = &[Member::kept("content", Kind::Text, "The fact.")];

const SHOWN: &[&str] = &["description", "tags"];

/// Adds a memory.
///
/// # Errors
/// When the body is not valid.
pub async fn create(engine: &Engine, body: Json) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    add(engine, body).await
}

/// As [`create`], for a caller that holds the references.
///
/// # Errors
/// When the body is not valid.
pub(super) async fn add(engine: &Engine, body: Json) -> Result<Json, ApiError> {
    let mut body = Body::read(body, CREATE)?;
    let project = projects::of(engine, body.text("project_id")).await?;
    body.0.insert("project_id".to_owned(), json!(project));
    body.0.entry("tags").or_insert(json!([]));
    Ok(shown(&Records::Memories.create(engine, body.0).await?))
}

/// Changes a memory.
///
/// # Errors
/// When the body is not valid, or no record has that id.
pub async fn update(engine: &Engine, id: &str, body: Json) -> Result<Json, ApiError> {
    let body = Body::read_changes(body, UPDATE_MEMORY, CREATE)?;
    let changing = async |mut record: Record| {
        body.clone().change(&mut record.members);
        record.members.entry("tags").or_insert(json!([]));
        Ok(record)
    };
    Ok(shown(
        &Records::Memories.change(engine, id, changing).await?,
    ))
}

/// Deletes a memory that no agent and no actor uses, with its entries.
///
/// # Errors
/// When no record has that id, or it is in use.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let _references = records::hold_references().await;
    let record = Records::Memories.get(engine, id).await?;
    for kind in [Records::Agents, Records::Actors] {
        let users = kind.list_in(engine, Some(record.project())).await?;
        if let Some(user) = users.iter().find(|user| uses(user, record.key())) {
            return Err(ApiError::conflict(format!(
                "the {} `{}` uses the memory",
                kind.noun(),
                user.id()
            )));
        }
    }
    for entry in rows(engine, &record).await? {
        ENTRIES.delete(engine, &entry_key(&entry)).await?;
    }
    Records::Memories.delete(engine, id).await
}

fn uses(user: &Record, key: &str) -> bool {
    let config = user.get("knowledge_config");
    let mut ids = texts(config.and_then(|it| it.get("memory_ids")));
    let own = config.and_then(|it| it.get("write_memory_id"));
    let own = own
        .and_then(Json::as_str)
        .or_else(|| user.text("memory_id"));
    ids.extend(own.map(str::to_owned));
    ids.iter().any(|id| ids::key_of(id) == key)
}

/// Returns the memories of a project of the API, or of all, that a caller sees and that have one of these tags. No pattern is the same as `*`.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(
    engine: &Engine,
    who: &Who,
    (project, patterns): (Option<&str>, &[String]),
) -> Result<Vec<Json>, ApiError> {
    let records = sight::listed(engine, who, (Records::Memories, project)).await?;
    let is_tagged = |record: &&Record| {
        let tags = texts(record.get("tags"));
        let mut tags = tags.iter();
        patterns.is_empty() || tags.any(|tag| patterns.iter().any(|it| matches(it, tag)))
    };
    Ok(records.iter().filter(is_tagged).map(shown).collect())
}

/// Returns a memory as answers show it.
pub fn shown(record: &Record) -> Json {
    record.to_json(SHOWN)
}

async fn rows(engine: &Engine, memory: &Record) -> Result<Vec<Json>, ApiError> {
    let prefix = format!("{}.", memory.key());
    Ok(ENTRIES.list_under(engine, &prefix).await?)
}

/// Returns the entries of a memory, oldest first.
///
/// # Errors
/// When no memory has that id.
pub async fn entries(engine: &Engine, memory: &str) -> Result<Vec<Json>, ApiError> {
    let memory = Records::Memories.get(engine, memory).await?;
    let mut entries = rows(engine, &memory).await?;
    entries.sort_by(|one, other| created(one).cmp(created(other)));
    Ok(entries)
}

fn created(entry: &Json) -> &str {
    entry["created_at"].as_str().unwrap_or_default()
}

/// Writes a fact to a memory: skipped, appended to an entry, or an entry of its own. Returns the entry with `action`, and whether it
/// is new.
///
/// # Errors
/// When the body is not valid, there is no such memory, or the embedder does not answer.
pub async fn write(
    engine: &Engine,
    embedder: Option<&dyn Embedder>,
    memory: &str,
    body: Json,
) -> Result<(Json, bool), ApiError> {
    let body = Body::read(body, CREATE_ENTRY)?;
    let content = body.text("content").unwrap_or_default();
    refuse_empty(content)?;
    let memory = Records::Memories.get(engine, memory).await?;
    let number = |name: &str| body.get(name).and_then(Json::as_f64);
    let thresholds = (
        number("duplicate_threshold").unwrap_or(DUPLICATE),
        number("update_threshold").unwrap_or(UPDATE),
    );
    if thresholds.1 > thresholds.0 {
        return Err(ApiError::invalid(
            "`update_threshold` must not be above `duplicate_threshold`",
        ));
    }
    let library = Library {
        stores: engine.stores(),
        embedder,
        finds: None,
    };
    let fact = Fact {
        memory: memory.id(),
        content,
        source: body.text("source").unwrap_or("manual"),
        key: ids::key(engine),
        now_ms: engine.now_ms(),
        thresholds,
    };
    let _held = hold_entries(memory.id()).await;
    for _ in 0..CHANGES_MAX {
        let written = library.write(&fact).await.map_err(knowledge::failed)?;
        if let Some(op) = written.op_if_unchanged() {
            match engine.stores().tables.apply(op, engine.now_ms()).await {
                Ok(_) => {}
                // Another process changed the entry, so the fact is compared with it again.
                Err(StoreError::Rejected { kind, .. }) if kind == NOT_FOUND => continue,
                Err(error) => return Err(error.into()),
            }
        }
        let mut entry = written.entry;
        entry["action"] = json!(written.action.name());
        return Ok((entry, written.action == Action::Created));
    }
    Err(changed_always(memory.id()))
}

fn changed_always(memory: &str) -> ApiError {
    ApiError::conflict(format!(
        "the entries of the memory `{memory}` were changed by others all the time; send the request again"
    ))
}

fn refuse_empty(content: &str) -> Result<(), ApiError> {
    match content.trim().is_empty() {
        true => Err(ApiError::invalid("`content` is empty")),
        false => Ok(()),
    }
}

/// Returns an entry of a memory.
///
/// # Errors
/// When the memory has no entry with that id.
pub async fn entry(engine: &Engine, memory: &str, id: &str) -> Result<Json, ApiError> {
    let memory = Records::Memories.get(engine, memory).await?;
    let key = format!("{}.{}", memory.key(), ids::key_of(id));
    let entry = ENTRIES.get(engine, &key).await?;
    entry.ok_or_else(|| ApiError::missing("entry", id))
}

/// Changes an entry.
///
/// # Errors
/// When the body is not valid, or the memory has no entry with that id.
pub async fn update_entry(
    engine: &Engine,
    memory: &str,
    id: &str,
    body: Json,
) -> Result<Json, ApiError> {
    let body = Body::read_changes(body, UPDATE_ENTRY, CREATE_ENTRY)?;
    let _held = hold_entries(memory).await;
    for _ in 0..CHANGES_MAX {
        let before = entry(engine, memory, id).await?;
        let mut entry = before.clone();
        if let Some(content) = body.text("content") {
            refuse_empty(content)?;
            entry["content"] = json!(content);
        }
        entry["updated_at"] = instant(engine.now_ms());
        let key = entry_key(&entry);
        if ENTRIES
            .replace_exact(engine, &key, (&before, &entry))
            .await?
        {
            return Ok(entry);
        }
    }
    Err(changed_always(memory))
}

/// Deletes an entry.
///
/// # Errors
/// When the memory has no entry with that id.
pub async fn delete_entry(engine: &Engine, memory: &str, id: &str) -> Result<(), ApiError> {
    let _held = hold_entries(memory).await;
    let entry = entry(engine, memory, id).await?;
    ENTRIES.delete(engine, &entry_key(&entry)).await?;
    Ok(())
}
