//! Actors: the people or programs that sessions are with.

use std::time::Duration;

use flowstone_engine::Engine;
use flowstone_project::held::hold;
use serde_json::{Value as Json, json};

use super::body::{Body, Kind, Member};
use super::error::ApiError;
use super::generations::Who;
use super::records::{self, Record, Records};
use super::{ids, memories, projects, reach};
use crate::rows::Rows;

/// The actors that have or had an external id, by project and that id.
const EXTERNAL: Rows = Rows("flowstone_api_actor_ids");
/// Milliseconds for which an actor that is not added yet has its external id.
const ADDING_MS: i64 = 10_000;
/// Time between two looks at an actor that another process adds.
const POLL: Duration = Duration::from_millis(20);

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
    let _references = records::hold_references().await;
    let (mut held, mut claimed, key) = (None, None, ids::key(engine));
    let external = body.text("external_id").map(str::to_owned);
    if let Some(external) = &external {
        // The next request finds the actor that this one adds.
        held = Some(hold(format!("{}/of/{project}", Records::Actors.table())).await);
        let known = Records::Actors.list_in(engine, Some(&project)).await?;
        let mut known = known.iter();
        if let Some(actor) = known.find(|it| it.text("external_id") == Some(external)) {
            reach::actor(engine, who, (&project, actor.id())).await?;
            return Ok((shown(actor), false));
        }
    }
    let creates = body.flag("auto_create_memory") == Some(true) && body.text("memory_id").is_none();
    body.0.remove("auto_create_memory");
    if let Some(memory) = body.text("memory_id") {
        reach::memory(engine, who, (&project, memory)).await?;
    }
    if creates {
        reach::new_memory(engine, who, &project).await?;
    }
    if let Some(external) = external {
        let row_key = format!("{}.{external}", ids::key_of(&project));
        match claim(engine, (&row_key, &external, &key)).await? {
            Claim::Taken(row) => claimed = Some((row_key, row)),
            Claim::Known(actor) => {
                reach::actor(engine, who, (&project, actor.id())).await?;
                return Ok((shown(&actor), false));
            }
        }
    }
    if creates {
        let name = body.text("name").unwrap_or_default();
        let memory = json!({"project_id": project, "name": name});
        let memory = memories::add(engine, memory).await?;
        body.0.insert("memory_id".to_owned(), memory["id"].clone());
    }
    body.0.insert("project_id".to_owned(), json!(project));
    body.0.entry("tags").or_insert(json!({}));
    let actor = Records::Actors.create_as(engine, &key, body.0).await?;
    if let Some((row_key, row)) = claimed {
        let added = json!({"actor": key});
        EXTERNAL
            .replace_exact(engine, &row_key, (&row, &added))
            .await?;
    }
    drop(held);
    Ok((shown(&actor), true))
}

/// Whose an external id is.
enum Claim {
    /// It is free for a new actor, by this row.
    Taken(Json),
    Known(Record),
}

/// Takes an external id for an actor that is about to be added, with one write that fails where another process was faster, and then
/// waits for the actor that this one adds.
async fn claim(
    engine: &Engine,
    (row_key, external, key): (&str, &str, &str),
) -> Result<Claim, ApiError> {
    let own = json!({"actor": key, "at_ms": engine.now_ms()});
    while !EXTERNAL.insert(engine, row_key, &own).await? {
        let Some(row) = EXTERNAL.get(engine, row_key).await? else {
            continue;
        };
        let actor = Records::Actors.get(engine, row["actor"].as_str().unwrap_or_default());
        let actor = match actor.await {
            Ok(actor) => Some(actor),
            Err(ApiError::Refused(_)) => None,
            Err(error) => return Err(error),
        };
        // A row without a time is of an actor that was added.
        let taken_ms = row["at_ms"].as_i64().unwrap_or(0);
        let is_adding = engine.now_ms().saturating_sub(taken_ms) < ADDING_MS;
        match actor {
            Some(actor) if actor.text("external_id") == Some(external) => {
                return Ok(Claim::Known(actor));
            }
            None if is_adding => tokio::time::sleep(POLL).await,
            // The actor was deleted, has another id by now, or was never added.
            Some(_) | None => EXTERNAL.delete_exact(engine, row_key, &row).await?,
        }
    }
    Ok(Claim::Taken(own))
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
    let _references = records::hold_references().await;
    let body = Body::read_changes(body, UPDATE, CREATE)?;
    let changing = async |mut record: Record| {
        if let Some(memory) = body.text("memory_id") {
            reach::memory(engine, who, (record.project(), memory)).await?;
        }
        body.clone().change(&mut record.members);
        record.members.entry("tags").or_insert(json!({}));
        Ok(record)
    };
    Ok(shown(&Records::Actors.change(engine, id, changing).await?))
}

/// Returns an actor as answers show it.
pub fn shown(record: &Record) -> Json {
    record.to_json(SHOWN)
}
