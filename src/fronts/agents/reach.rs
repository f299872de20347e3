//! What a request reaches beside its own record: documents that become messages, tools that messages call, knowledge, memories.
//!
//! A caller that adds such a reference needs the right to use it, whether through a route, a platform action or a nested generation. What
//! is stored with an agent or an actor was checked when it was stored, so those who only run it need no right to it.

use flowstone_engine::Engine;
use flowstone_engine::token::Scope;
use serde_json::Value as Json;

use super::body::texts;
use super::error::ApiError;
use super::generations::Who;
use super::ids;
use super::policies::Request;
use super::records::{Record, Records, tags_of};

/// Returns a document whose text the caller may read.
///
/// # Errors
/// When the project has no such document, or the caller may not read it.
pub async fn document(
    engine: &Engine,
    who: &Who,
    (project, id): (&str, &str),
) -> Result<Record, ApiError> {
    let record = Records::Documents.get_in(engine, project, id).await?;
    let request = about(&record, "documents:GetDocument");
    check(engine, who, (Scope::Read, &request)).await?;
    Ok(record)
}

/// Returns a tool that the caller may call.
///
/// # Errors
/// When the project has no such tool, or the caller may not call it.
pub async fn tool(
    engine: &Engine,
    who: &Who,
    (project, id): (&str, &str),
) -> Result<Record, ApiError> {
    let record = Records::Tools.get_in(engine, project, id).await?;
    let request = about(&record, "tools:CallTool");
    check(engine, who, (Scope::Run, &request)).await?;
    Ok(record)
}

/// Checks that the caller may give an agent the tools of a list that it does not have yet.
///
/// # Errors
/// As for [`tool`].
pub async fn tools(
    engine: &Engine,
    who: &Who,
    (project, given, known): (&str, Option<&Json>, Option<&Json>),
) -> Result<(), ApiError> {
    let known = texts(known);
    for id in texts(given) {
        if !known.iter().any(|it| ids::key_of(it) == ids::key_of(&id)) {
            tool(engine, who, (project, &id)).await?;
        }
    }
    Ok(())
}

/// Checks that the caller may search what a `knowledge_config` names, and write to its memory.
///
/// # Errors
/// When the project lacks the memory, or the caller may not.
pub async fn knowledge(
    engine: &Engine,
    who: &Who,
    (project, config): (&str, &Json),
) -> Result<(), ApiError> {
    // A config that names no source searches all documents.
    check(engine, who, (Scope::Read, &search(project))).await?;
    match config.get("write_memory_id").and_then(Json::as_str) {
        Some(id) => written(engine, who, (project, id)).await,
        None => Ok(()),
    }
}

/// Checks that the caller may search a memory and write to it, for the memory of an actor.
///
/// # Errors
/// When the project has no such memory, or the caller may not.
pub async fn memory(
    engine: &Engine,
    who: &Who,
    (project, id): (&str, &str),
) -> Result<(), ApiError> {
    written(engine, who, (project, id)).await?;
    check(engine, who, (Scope::Read, &search(project))).await
}

/// Checks that the caller may create a memory with an actor.
///
/// # Errors
/// When the caller may not.
pub async fn new_memory(engine: &Engine, who: &Who, project: &str) -> Result<(), ApiError> {
    let request = new(project, ("memories:CreateMemory", "memory"));
    check(engine, who, (Scope::Run, &request)).await
}

async fn written(engine: &Engine, who: &Who, (project, id): (&str, &str)) -> Result<(), ApiError> {
    let record = Records::Memories.get_in(engine, project, id).await?;
    let request = about(&record, "memories:CreateMemoryEntry");
    check(engine, who, (Scope::Run, &request)).await
}

async fn check(
    engine: &Engine,
    who: &Who,
    (scope, request): (Scope, &Request),
) -> Result<(), ApiError> {
    who.rights(engine).await?.check(scope, request)
}

fn search(project: &str) -> Request {
    new(project, ("knowledge:SearchKnowledge", "knowledge"))
}

/// Returns a request that is about no record yet.
fn new(project: &str, (action, kind): (&str, &str)) -> Request {
    Request {
        action: action.to_owned(),
        project: project.to_owned(),
        kind: kind.to_owned(),
        id: "*".to_owned(),
        ..Request::default()
    }
}

fn about(record: &Record, action: &str) -> Request {
    Request {
        id: record.id().to_owned(),
        path: record.text("path").map(str::to_owned),
        tags: tags_of(record.get("tags")),
        ..new(record.project(), (action, &record.kind.resource()))
    }
}
