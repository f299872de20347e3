//! What a request reaches beside its own record: documents that become messages, tools that messages call, knowledge, memories.
//!
//! A caller that adds such a reference needs the right to use it, whether through a route, a platform action or a nested generation. What
//! is stored with an agent or an actor was checked when it was stored, so those who only run it need no right to it.

use flowstone_engine::Engine;
use flowstone_engine::token::Scope;
use serde_json::Value as Json;

use super::admission::{SEARCHED, about, about_all, with_members};
use super::body::texts;
use super::error::{ApiError, Status};
use super::generations::Who;
use super::policies::Request;
use super::records::{Record, Records};
use super::sight::{self, Sight};
use super::{codes, ids};

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
/// Records are stored and moved later, too, so a config that names more than single records needs the right to all of their type.
///
/// # Errors
/// When the project lacks a record, or the caller may not.
pub async fn knowledge(
    engine: &Engine,
    who: &Who,
    (project, config): (&str, &Json),
) -> Result<(), ApiError> {
    let rights = who.rights(engine).await?;
    rights.check_some(Scope::Read, (&search(project), SEARCHED))?;
    let sight = Sight::of(engine, who, sight::SEARCH).await?;
    let names = |member: &str| !texts(config.get(member)).is_empty();
    let memories = names("memory_ids") || names("memory_tags");
    let documents = names("document_ids") || names("document_paths") || !memories;
    for (kind, is_reached, list, is_open) in [
        (
            Records::Documents,
            documents,
            "document_ids",
            names("document_paths") || !names("document_ids"),
        ),
        (
            Records::Memories,
            memories,
            "memory_ids",
            names("memory_tags"),
        ),
    ] {
        if !is_reached || sight.finds_all(project, kind) {
            continue;
        }
        if is_open {
            return Err(narrow(kind, list));
        }
        for id in texts(config.get(list)) {
            found(engine, &sight, (project, kind, &id)).await?;
        }
    }
    match config.get("write_memory_id").and_then(Json::as_str) {
        Some(id) => written(engine, who, (project, id)).await,
        None => Ok(()),
    }
}

/// Checks that a search of the caller finds a record.
async fn found(
    engine: &Engine,
    sight: &Sight,
    (project, kind, id): (&str, Records, &str),
) -> Result<(), ApiError> {
    let record = kind.get_in(engine, project, id).await?;
    match sight.finds_record(&record) {
        true => Ok(()),
        false => Err(forbidden(format!(
            "the policies of the caller or the boundary policy of an agent do not allow `{}` for the {} `{id}`",
            sight::SEARCH,
            kind.noun()
        ))),
    }
}

fn narrow(kind: Records, list: &str) -> ApiError {
    let noun = kind.noun();
    forbidden(format!(
        "the policies of the caller or the boundary policy of an agent do not allow `{}` for each {noun} of the project: name single records in `{list}`",
        sight::SEARCH
    ))
}

fn forbidden(message: String) -> ApiError {
    ApiError::new(Status::Forbidden, ("FORBIDDEN", codes::DENIED), message)
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
    let rights = who.rights(engine).await?;
    rights.check_some(Scope::Read, (&search(project), SEARCHED))?;
    let sight = Sight::of(engine, who, sight::SEARCH).await?;
    found(engine, &sight, (project, Records::Memories, id)).await
}

/// Returns an actor that the caller may make a session with.
///
/// # Errors
/// When the project has no such actor, or a policy denies to see it.
pub async fn actor(
    engine: &Engine,
    who: &Who,
    (project, id): (&str, &str),
) -> Result<Record, ApiError> {
    not_denied(engine, who, (project, Records::Actors, id)).await
}

/// Checks that the caller may give an agent a provider.
///
/// # Errors
/// When the project has no such provider, or a policy denies to see it.
pub async fn provider(
    engine: &Engine,
    who: &Who,
    (project, id): (&str, &str),
) -> Result<(), ApiError> {
    let found = not_denied(engine, who, (project, Records::Providers, id)).await;
    found.map(|_| ())
}

/// Checks that the caller may give a provider a secret, whose value then goes to the host of the provider.
///
/// # Errors
/// When the project has no such secret, or the caller may not see it.
pub async fn secret(
    engine: &Engine,
    who: &Who,
    (project, id): (&str, &str),
) -> Result<(), ApiError> {
    let record = Records::Secrets.get_in(engine, project, id).await?;
    let request = about(&record, "secrets:GetSecret");
    check(engine, who, (Scope::Read, &request)).await
}

/// Returns a record that no policy denies to see.
async fn not_denied(
    engine: &Engine,
    who: &Who,
    (project, kind, id): (&str, Records, &str),
) -> Result<Record, ApiError> {
    let record = kind.get_in(engine, project, id).await?;
    let request = about(&record, sight::get_of(kind));
    who.rights(engine).await?.check_not_denied(&request)?;
    Ok(record)
}

/// Checks that the caller may create a memory with an actor.
///
/// # Errors
/// When the caller may not.
pub async fn new_memory(engine: &Engine, who: &Who, project: &str) -> Result<(), ApiError> {
    let request = about_all(project, ("memories:CreateMemory", "memory"));
    check(engine, who, (Scope::Run, &request)).await
}

/// Checks that the caller may create an actor with an agent.
///
/// # Errors
/// When the caller may not.
pub async fn new_actor(
    engine: &Engine,
    who: &Who,
    (project, body): (&str, &Json),
) -> Result<(), ApiError> {
    let mut request = about_all(project, ("actors:CreateActor", "actor"));
    with_members(&mut request, body);
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
    about_all(project, (sight::SEARCH, "knowledge"))
}
