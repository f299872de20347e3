//! Actors: the people or programs that sessions are with.

use flowstone_engine::Engine;
use flowstone_project::held::hold;
use serde_json::{Value as Json, json};

use super::body::{Body, Kind, Member};
use super::error::ApiError;
use super::generations::Who;
use super::records::{Record, Records};
use super::{memories, projects, reach};

/// The body of a new actor.
pub const CREATE: &[Member] = &[
    Member::optional(
        "auto_create_memory",
        Kind::Flag,
        "Whether the actor gets a memory of its own, unless `memory_id` names one.",
    ),
    Member::optional("external_id", Kind::Name, "The id of the actor elsewhere."),
    Member::optional(
        "instructions",
        Kind::Text,
        "Added to the instructions of the agent in sessions with the actor.",
    ),
    Member::optional(
        "memory_id",
        Kind::Text,
        "The memory that agents search and write in sessions with the actor.",
    ),
    Member::required("name", Kind::Name, "The name."),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::optional("tags", Kind::Tags, "Tags."),
];

/// The body of a new actor of an agent.
pub const CREATE_OF_AGENT: &[Member] = &[
    Member::optional("external_id", Kind::Name, "The id of the actor elsewhere."),
    Member::required("name", Kind::Name, "The name."),
    Member::optional("tags", Kind::Tags, "Tags."),
    Member::optional("type", Kind::Name, "What the actor is, such as `customer`."),
];

/// The body of changes of an actor.
pub const UPDATE: &[Member] = &[
    Member::optional(
        "instructions",
        Kind::Text,
        "Added to the instructions of the agent in sessions with the actor.",
    ),
    Member::optional(
        "memory_id",
        Kind::Text,
        "The memory that agents search and write in sessions with the actor.",
    ),
    Member::kept("name", Kind::Name, "The name."),
    Member::optional("tags", Kind::Tags, "Tags."),
];

const SHOWN: &[&str] = &[
    "agent_id",
    "external_id",
    "instructions",
    "memory_id",
    "type",
];

/// Adds an actor, unless the project has one with the same `external_id`. Returns it, and whether it is new.
///
/// # Errors
/// When the body is not valid, the project has no such memory, or the caller may not use it or see the actor.
pub async fn create(engine: &Engine, who: &Who, body: Json) -> Result<(Json, bool), ApiError> {
    let body = Body::read(body, CREATE)?;
    let project = projects::of(engine, body.text("project_id")).await?;
    add(engine, who, (project, body)).await
}

/// Adds an actor that is linked to an agent, to the project of the agent.
///
/// # Errors
/// As for [`create`], or when there is no such agent, or the caller may not create actors.
pub async fn create_of_agent(
    engine: &Engine,
    who: &Who,
    (agent, body): (&str, Json),
) -> Result<(Json, bool), ApiError> {
    let agent = Records::Agents.get(engine, agent).await?;
    reach::new_actor(engine, who, (agent.project(), &body)).await?;
    let mut body = Body::read(body, CREATE_OF_AGENT)?;
    body.0.insert("agent_id".to_owned(), json!(agent.id()));
    add(engine, who, (agent.project().to_owned(), body)).await
}

async fn add(
    engine: &Engine,
    who: &Who,
    (project, mut body): (String, Body),
) -> Result<(Json, bool), ApiError> {
    let mut held = None;
    if let Some(external) = body.text("external_id") {
        // The next request finds the actor that this one adds.
        held = Some(hold(format!("{}/of/{project}", Records::Actors.table())).await);
        let known = Records::Actors.list_in(engine, Some(&project)).await?;
        let mut known = known.iter();
        if let Some(actor) = known.find(|it| it.text("external_id") == Some(external)) {
            reach::actor(engine, who, (&project, actor.id())).await?;
            return Ok((shown(actor), false));
        }
    }
    let creates = body.flag("auto_create_memory") == Some(true);
    body.0.remove("auto_create_memory");
    match body.text("memory_id") {
        Some(memory) => {
            reach::memory(engine, who, (&project, memory)).await?;
        }
        None if creates => {
            reach::new_memory(engine, who, &project).await?;
            let name = body.text("name").unwrap_or_default();
            let memory = json!({"project_id": project, "name": name});
            let memory = memories::create(engine, memory).await?;
            body.0.insert("memory_id".to_owned(), memory["id"].clone());
        }
        None => {}
    }
    body.0.insert("project_id".to_owned(), json!(project));
    body.0.entry("tags").or_insert(json!({}));
    let actor = Records::Actors.create(engine, body.0).await?;
    drop(held);
    Ok((shown(&actor), true))
}

/// Changes an actor.
///
/// # Errors
/// When the body is not valid, or no record has that id.
pub async fn update(
    engine: &Engine,
    who: &Who,
    (id, body): (&str, Json),
) -> Result<Json, ApiError> {
    let body = Body::read_changes(body, UPDATE, CREATE)?;
    let _held = Records::Actors.hold(id).await;
    let mut record = Records::Actors.get(engine, id).await?;
    if let Some(memory) = body.text("memory_id") {
        reach::memory(engine, who, (record.project(), memory)).await?;
    }
    body.change(&mut record.members);
    record.members.entry("tags").or_insert(json!({}));
    Ok(shown(&Records::Actors.update(engine, record).await?))
}

/// Returns an actor as answers show it.
pub fn shown(record: &Record) -> Json {
    record.to_json(SHOWN)
}
