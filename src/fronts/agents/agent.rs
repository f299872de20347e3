//! The stored agents.

use flowstone_engine::Engine;
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member, texts};
use super::control::{Control, HELD, Known, Named};
use super::error::ApiError;
use super::generations::Who;
use super::policies::Policy;
use super::records::{self, Record, Records};
use super::{actions, knowledge, projects, reach, running, sessions, tools};

const BOUNDARY: &str = "boundary_policy";
/// The number of model calls of an agent that says nothing else.
pub const MAX_STEPS: i64 = 20;
/// The largest number of model calls that an agent may say.
const STEPS_MAX: i64 = 100;

/// The body of a new agent, and of changes of one.
pub const MEMBERS: &[Member] = &[
    Member::optional(
        "active_tool_ids",
        Kind::Texts,
        "The tools of `tool_ids` that every step offers; all if it is empty.",
    ),
    Member::required("ai_provider_id", Kind::Text, "The provider of the model."),
    Member::optional(
        "boundary_policy",
        Kind::Object,
        "A policy: the platform actions that the agent may perform at most.",
    ),
    Member::optional("instructions", Kind::Text, "The system prompt."),
    Member::optional(
        "knowledge_config",
        Kind::Object,
        "What the model gets to know: `{memory_ids, memory_tags, document_ids, document_paths, min_score, limit, role, write_memory_id}`.",
    ),
    Member::optional(
        "max_context_messages",
        Kind::Int(1, 100_000),
        "The number of recent messages that the model gets; all if it is left out.",
    ),
    Member::optional(
        "max_steps",
        Kind::Int(1, STEPS_MAX),
        "The number of model calls; 20 if it is left out.",
    ),
    Member::optional(
        "model",
        Kind::Text,
        "The model; that of the provider if it is left out.",
    ),
    Member::optional("name", Kind::Name, "The name."),
    Member::optional(
        "output_schema",
        Kind::Object,
        "JSON Schema of the answer, which is then `output.object`.",
    ),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::optional(
        "single_session_per_actor",
        Kind::Flag,
        "Whether an actor may have one open session only.",
    ),
    Member::optional(
        "step_rules",
        Kind::Objects,
        "What differs in single steps: `{step, tool_choice?, active_tool_ids?}`.",
    ),
    Member::optional(
        "stop_conditions",
        Kind::Objects,
        "Calls that end a generation: `{type: \"hasToolCall\", tool_name}`.",
    ),
    Member::optional(
        "temperature",
        Kind::Number(0.0, 2.0),
        "The sampling temperature.",
    ),
    Member::optional(
        "tool_choice",
        Kind::TextOrObject,
        "`auto`, `required`, `none`, or `{type: \"tool\", tool_name}`.",
    ),
    Member::optional("tool_ids", Kind::Texts, "The tools."),
];

const SHOWN: &[&str] = &[
    "active_tool_ids",
    "boundary_policy",
    "instructions",
    "knowledge_config",
    "max_context_messages",
    "max_steps",
    "model",
    "name",
    "output_schema",
    "step_rules",
    "stop_conditions",
    "temperature",
    "tool_choice",
    "tool_ids",
];

/// An agent with its provider and its tools.
#[derive(Debug, Clone)]
pub struct Agent {
    pub record: Record,
    pub provider: Record,
    pub tools: Vec<Record>,
}

impl Agent {
    /// Returns an agent with what it refers to.
    ///
    /// # Errors
    /// When no agent has the id, or the agent refers to a deleted record.
    pub async fn find(engine: &Engine, id: &str) -> Result<Agent, ApiError> {
        let record = Records::Agents.get(engine, id).await?;
        Agent::of(engine, record).await
    }

    async fn of(engine: &Engine, record: Record) -> Result<Agent, ApiError> {
        let project = record.project().to_owned();
        let provider = record.text("ai_provider_id").unwrap_or_default();
        let provider = Records::Providers
            .get_in(engine, &project, provider)
            .await?;
        let mut tools = Vec::new();
        for id in texts(record.get("tool_ids")) {
            tools.push(Records::Tools.get_in(engine, &project, &id).await?);
        }
        Ok(Agent {
            record,
            provider,
            tools,
        })
    }

    /// Returns the tools by ids and names.
    pub fn known(&self) -> Known {
        let tools = self.tools.iter().map(|tool| Named {
            id: tool.id().to_owned(),
            names: tools::names(tool),
        });
        let config = self.record.get("knowledge_config");
        let writes = config.is_some_and(|config| config.get("write_memory_id").is_some());
        let own = writes.then(|| Named {
            id: String::new(),
            names: vec![knowledge::WRITE.to_owned()],
        });
        Known(tools.chain(own).collect())
    }

    /// Tells whether its generations can start others.
    pub fn may_nest(&self) -> bool {
        let mut tools = self.tools.iter().filter(|tool| actions::is_platform(tool));
        tools.any(|tool| {
            let actions = texts(tool.get("actions"));
            actions.iter().any(|it| it == actions::GENERATE)
        })
    }

    /// Checks what a request overrides together with what it leaves as it is: a named tool must be among the active ones.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_overrides(&self, given: &Body) -> Result<(), ApiError> {
        self.control().check_overrides(given)
    }

    /// Returns the loop control of the agent.
    pub fn control(&self) -> Control {
        let own = HELD.into_iter().filter_map(|name| {
            let value = self.record.get(name)?;
            Some((name.to_owned(), value.clone()))
        });
        Control {
            known: self.known(),
            own: Body(own.collect()),
        }
    }

    /// Refuses a generation of an agent without tools that must call one.
    ///
    /// # Errors
    /// When a choice of the request or of the agent requires a call.
    pub fn check_required(&self, given: &Body) -> Result<(), ApiError> {
        let of = |name: &str| given.get(name).or_else(|| self.record.get(name));
        let required = Some(json!("required"));
        let rules = of("step_rules")
            .and_then(Json::as_array)
            .into_iter()
            .flatten();
        let is_required = of("tool_choice") == required.as_ref()
            || rules
                .into_iter()
                .any(|rule| rule.get("tool_choice") == required.as_ref());
        match is_required && self.known().0.is_empty() {
            true => Err(ApiError::invalid(
                "`tool_choice` requires a call, and the agent has no tools",
            )),
            false => Ok(()),
        }
    }

    /// Checks what the parts of an agent say about one another.
    fn check(&self) -> Result<(), ApiError> {
        let mut names: Vec<String> = Vec::new();
        for name in self.known().0.into_iter().flat_map(|it| it.names) {
            if names.contains(&name) {
                return Err(ApiError::invalid(format!(
                    "`tool_ids` has two tools that the model would call `{name}`"
                )));
            }
            names.push(name);
        }
        self.known().options(&Body(self.record.members.clone()))?;
        if let Some(boundary) = self.record.get("boundary_policy") {
            Policy::read(boundary, "boundary_policy")?.check_names("boundary_policy")?;
        }
        if let Some(schema) = self.record.get("output_schema") {
            let is_schema = jsonschema::validator_for(schema);
            is_schema.map_err(|error| {
                ApiError::invalid(format!("`output_schema` is not a JSON Schema: {error}"))
            })?;
        }
        Ok(())
    }
}

/// Adds an agent.
///
/// # Errors
/// When the body is not valid, or refers to a record that does not exist or that the caller may not use.
pub async fn create(engine: &Engine, who: &Who, body: Json) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    let mut body = Body::read(body, MEMBERS)?;
    let project = projects::of(engine, body.text("project_id")).await?;
    body.0.insert("project_id".to_owned(), json!(project));
    complete(&mut body.0);
    check_given(engine, who, (&mut body.0, &Map::new(), &project)).await?;
    let draft = Record {
        kind: Records::Agents,
        members: body.0.clone(),
    };
    Agent::of(engine, draft).await?.check()?;
    Ok(shown(&Records::Agents.create(engine, body.0).await?))
}

/// Changes an agent. Generations that have started keep the agent that they started with.
///
/// # Errors
/// When the body is not valid, no agent has the id, or the boundary would allow more than the caller may do.
pub async fn update(
    engine: &Engine,
    who: &Who,
    (id, body): (&str, Json),
) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    let body = Body::read_changes(body, MEMBERS, MEMBERS)?;
    let changing = async |record: Record| changed(engine, who, (record, body.clone())).await;
    Ok(shown(&Records::Agents.change(engine, id, changing).await?))
}

/// Returns the record of an agent with changes that were checked.
async fn changed(
    engine: &Engine,
    who: &Who,
    (mut record, body): (Record, Body),
) -> Result<Record, ApiError> {
    let is_own = |given: &Json| {
        let given = given.as_str().map(super::ids::key_of);
        given == Some(super::ids::key_of(record.project()))
    };
    if body.0.get("project_id").is_some_and(|it| !is_own(it)) {
        return Err(ApiError::invalid(
            "`project_id` of an agent cannot be changed",
        ));
    }
    let project = record.project().to_owned();
    let before = record.members.clone();
    body.change(&mut record.members);
    record
        .members
        .insert("project_id".to_owned(), json!(project));
    complete(&mut record.members);
    check_given(engine, who, (&mut record.members, &before, &project)).await?;
    Agent::of(engine, record.clone()).await?.check()?;
    check_boundary(engine, who, (&record.members, &before)).await?;
    Ok(record)
}

/// Deletes an agent and its sessions. Its generations remain.
///
/// # Errors
/// When no agent has the id, or one of its generations is not over.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let _references = records::hold_references().await;
    let record = Records::Agents.get(engine, id).await?;
    running::refuse_of_agent(engine, &record).await?;
    let sessions = Records::Sessions
        .list_in(engine, Some(record.project()))
        .await?;
    for session in sessions {
        if session.text("agent_id") == Some(record.id()) {
            sessions::delete(engine, &session).await?;
        }
    }
    Records::Agents.delete(engine, id).await
}

/// Checks a changed boundary. One that allows no more than before is always right; any other must be within the limits of the caller,
/// or a caller with limits would free the agent for all who run it.
async fn check_boundary(
    engine: &Engine,
    who: &Who,
    (members, before): (&Map<String, Json>, &Map<String, Json>),
) -> Result<(), ApiError> {
    let of =
        |members: &Map<String, Json>| members.get(BOUNDARY).filter(|it| !it.is_null()).cloned();
    let (new, old) = (of(members), of(before));
    if new == old {
        return Ok(());
    }
    let read = |given: &Json| Policy::read(given, BOUNDARY);
    let new = new.as_ref().map(read).transpose()?;
    let old = match old.as_ref().map(read) {
        // A boundary that cannot be read allows nothing.
        Some(policy) => policy.ok().into_iter().collect(),
        None => vec![Policy::all()],
    };
    match &new {
        Some(new) if new.is_within(&old) => Ok(()),
        Some(_) | None => who.rights(engine).await?.check_boundary(new.as_ref()),
    }
}

/// Adds the members that every agent has.
fn complete(members: &mut Map<String, Json>) {
    members.entry("max_steps").or_insert(json!(MAX_STEPS));
    members.entry("tool_ids").or_insert(json!([]));
    members
        .entry("single_session_per_actor")
        .or_insert(json!(false));
}

/// Returns an agent as answers show it.
pub fn shown(record: &Record) -> Json {
    let mut shown = record.to_json(SHOWN);
    if let Some(members) = shown.as_object_mut() {
        complete(members);
    }
    shown
}

/// Checks what an agent refers to. For what it did not have before, the caller needs the right.
async fn check_given(
    engine: &Engine,
    who: &Who,
    (members, before, project): (&mut Map<String, Json>, &Map<String, Json>, &str),
) -> Result<(), ApiError> {
    let is_new = |name: &str, members: &Map<String, Json>| members.get(name) != before.get(name);
    if let Some(config) = members.get_mut("knowledge_config") {
        *config = match before.get("knowledge_config") == Some(config) {
            true => knowledge::read(engine, project, config).await?,
            false => knowledge::check(engine, who, (project, config)).await?,
        };
    }
    let provider = members.get("ai_provider_id").and_then(Json::as_str);
    if let Some(provider) = provider.filter(|_| is_new("ai_provider_id", members)) {
        reach::provider(engine, who, (project, provider)).await?;
    }
    let tools = (members.get("tool_ids"), before.get("tool_ids"));
    reach::tools(engine, who, (project, tools.0, tools.1)).await
}
