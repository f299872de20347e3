//! The stored agents of a project: their specs, their callers and their limits.

use flowstone_engine::Engine;
use flowstone_engine::feed_event::instant;
use serde_json::{Map, Value as Json, json};

use super::codes;
use super::compile::Target;
use super::error::{GraphError, Status};
use super::models::Fallback;
use super::offered::missing_at_servers;
use super::project;
use super::registry::Registry;
use super::shape::{self, Issue, Member, Name, Shape};
use super::spec::{Audience, GraphSpec};
use super::validate::{Report, validate};

const COUNT: Shape = Shape::Int(1, 1_000_000);
const TEXT: Shape = Shape::Text(10_000);

/// The members of an agent in requests.
const AGENT: Shape = Shape::Object(&[
    Member::optional("name", Shape::Name(Name::Agent), "The name in addresses."),
    Member::optional("display_name", TEXT, "What people call it."),
    Member::optional("description", TEXT, "What it is for."),
    Member::optional("graph_spec", Shape::Any, "The graph spec."),
    Member::optional(
        "default_model",
        Shape::Text(256),
        "The model for ids that no connection lists.",
    ),
    Member::optional(
        "connection",
        Shape::Text(256),
        "The connection for ids that no connection lists.",
    ),
    Member::optional(
        "status",
        Shape::OneOf(&["active", "disabled"]),
        "A disabled agent starts no runs.",
    ),
    Member::optional(
        "visibility",
        Shape::OneOf(&["private", "authenticated", "public"]),
        "Who may start runs.",
    ),
    Member::optional(
        "safety_acknowledged",
        Shape::Bool,
        "A public agent needs it.",
    ),
    Member::optional(
        "mcp_tool",
        Shape::Bool,
        "Clients of the MCP server who may start runs see it as a tool. Default false.",
    ),
    Member::optional(
        "strict_dedupe",
        Shape::Bool,
        "Another body within the dedupe window is a conflict.",
    ),
    Member::optional(
        "dedupe_window_seconds",
        Shape::Int(0, 86_400),
        "How long the same body starts nothing new. Default 60.",
    ),
    Member::optional(
        "max_runs_per_user_per_hour",
        COUNT,
        "Starts by one user in an hour.",
    ),
    Member::optional(
        "max_runs_per_ip_per_hour",
        COUNT,
        "Starts from one address in an hour.",
    ),
    Member::optional(
        "max_runs_per_app_per_hour",
        COUNT,
        "Starts by all users in an hour.",
    ),
    Member::optional(
        "max_concurrent_runs",
        COUNT,
        "Runs of users that are not over.",
    ),
    Member::optional(
        "daily_budget_usd",
        Shape::Number(0.0, 1e9),
        "Dollars that runs of users may cost in a day (UTC).",
    ),
]);

/// How long an equal body starts no second run, in seconds, unless the agent sets another time.
pub const DEDUPE_SECONDS: i64 = 60;

/// A stored agent.
#[derive(Debug, Clone)]
pub struct Agent {
    pub name: String,
    row: Map<String, Json>,
}

impl Agent {
    fn of(row: Json) -> Option<Agent> {
        let Json::Object(row) = row else {
            return None;
        };
        let name = row.get("name")?.as_str()?.to_owned();
        Some(Agent { name, row })
    }

    /// Returns the agent in the form of responses.
    pub fn to_json(&self) -> Json {
        Json::Object(self.row.clone())
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.row.get(key).and_then(Json::as_str)
    }

    /// Returns a limit; `None` if the agent does not have it.
    pub fn limit(&self, key: &str) -> Option<f64> {
        self.row.get(key).and_then(Json::as_f64)
    }

    pub fn visibility(&self) -> &str {
        self.text("visibility").unwrap_or("private")
    }

    pub fn is_disabled(&self) -> bool {
        self.text("status") == Some("disabled")
    }

    /// Tells whether MCP clients see it as a tool.
    pub fn is_mcp_tool(&self) -> bool {
        self.row
            .get("mcp_tool")
            .and_then(Json::as_bool)
            .unwrap_or(false)
    }

    pub fn display_name(&self) -> Option<&str> {
        self.text("display_name")
    }

    pub fn description(&self) -> Option<&str> {
        self.text("description")
    }

    pub fn is_strict(&self) -> bool {
        self.row
            .get("strict_dedupe")
            .and_then(Json::as_bool)
            .unwrap_or(false)
    }

    /// Returns how long an equal body starts no second run, in seconds.
    pub fn dedupe_seconds(&self) -> i64 {
        let seconds = self.row.get("dedupe_window_seconds");
        let seconds = seconds.and_then(shape::whole);
        seconds.unwrap_or(DEDUPE_SECONDS)
    }

    /// Returns the spec as JSON.
    pub fn spec_json(&self) -> &Json {
        self.row.get("graph_spec").unwrap_or(&Json::Null)
    }

    /// Returns the spec.
    ///
    /// # Errors
    /// When it is not valid for this build.
    pub fn spec(&self) -> Result<GraphSpec, GraphError> {
        let (spec, report) = validate(self.spec_json());
        spec.ok_or_else(|| {
            GraphError::invalid(
                codes::INVALID_SPEC,
                "the stored spec is not valid",
                &report.issues,
            )
        })
    }

    /// Returns the agent's fallback for models.
    pub fn fallback(&self) -> Fallback {
        Fallback {
            default_model: self.text("default_model").map(str::to_owned),
            connection: self.text("connection").map(str::to_owned),
            is_assumed: false,
        }
    }
}

/// Returns all agents, by name.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(engine: &Engine) -> Result<Vec<Agent>, GraphError> {
    let rows = Registry::Agents.list(engine).await?;
    Ok(rows.into_iter().filter_map(Agent::of).collect())
}

/// Returns an agent.
///
/// # Errors
/// When no agent has that name.
pub async fn get(engine: &Engine, name: &str) -> Result<Agent, GraphError> {
    let row = Registry::Agents.get(engine, name).await?;
    row.and_then(Agent::of).ok_or_else(|| no_agent(name))
}

/// Returns the error for an agent that does not exist, or that the caller may not see.
pub fn no_agent(name: &str) -> GraphError {
    GraphError::new(
        Status::NotFound,
        codes::MISSING,
        format!("there is no agent `{name}`"),
    )
}

/// Stores a new agent.
///
/// # Errors
/// When the body or its spec is not valid, or the name is taken.
pub async fn create(engine: &Engine, body: Json) -> Result<Agent, GraphError> {
    let (mut given, mut issues) = members(body);
    for key in ["name", "graph_spec"] {
        if given.get(key).is_none_or(Json::is_null) {
            issues.push(Issue::at(&[json!(key)], format!("`{key}` is missing")));
        }
    }
    refuse(
        issues,
        given.get("graph_spec").filter(|spec| !spec.is_null()),
    )?;
    let now = instant(engine.now_ms());
    let name = given
        .get("name")
        .and_then(Json::as_str)
        .unwrap_or_default()
        .to_owned();
    for (key, value) in [
        ("display_name", json!(name)),
        ("status", json!("active")),
        ("visibility", json!("private")),
        ("safety_acknowledged", json!(false)),
        ("strict_dedupe", json!(false)),
    ] {
        given.entry(key).or_insert(value);
    }
    given.insert("created_at".to_owned(), now.clone());
    given.insert("updated_at".to_owned(), now);
    refuse_unacknowledged(&given)?;
    let row = Json::Object(given);
    match Registry::Agents.insert(engine, &name, &row).await? {
        true => Agent::of(row).ok_or_else(|| no_agent(&name)),
        false => Err(GraphError::new(
            Status::Conflict,
            codes::TAKEN,
            format!("there is an agent `{name}` already"),
        )),
    }
}

/// Changes members of an agent; `null` removes one. Runs that have started keep the spec that they started with.
///
/// # Errors
/// When the body or its spec is not valid.
pub async fn patch(engine: &Engine, name: &str, body: Json) -> Result<Agent, GraphError> {
    let (given, mut issues) = members(body);
    let agent = match get(engine, name).await {
        Ok(agent) => agent,
        Err(missing) => {
            refuse(issues, None)?;
            return Err(missing);
        }
    };
    if given
        .get("name")
        .is_some_and(|new| new.is_string() && new != name)
    {
        issues.push(Issue::at(&[json!("name")], "an agent keeps its name"));
    }
    refuse(issues, given.get("graph_spec"))?;
    let mut row = agent.row;
    for (key, value) in given {
        match value.is_null() {
            true => row.remove(&key),
            false => row.insert(key, value),
        };
    }
    row.insert("updated_at".to_owned(), instant(engine.now_ms()));
    refuse_unacknowledged(&row)?;
    let row = Json::Object(row);
    Registry::Agents.put(engine, name, &row).await?;
    Agent::of(row).ok_or_else(|| no_agent(name))
}

/// Deletes an agent. Its runs remain.
///
/// # Errors
/// When no agent has that name.
pub async fn delete(engine: &Engine, name: &str) -> Result<(), GraphError> {
    match Registry::Agents.delete(engine, name).await? {
        true => Ok(()),
        false => Err(no_agent(name)),
    }
}

/// Checks a given spec or the stored one, and returns what the project lacks for it.
///
/// # Errors
/// When no spec is given and no agent has that name.
pub async fn check(engine: &Engine, name: &str, body: Option<Json>) -> Result<Report, GraphError> {
    let stored = get(engine, name).await;
    let fallback = stored.as_ref().map(Agent::fallback).unwrap_or_default();
    let spec = match body {
        Some(mut body) => match body.get_mut("graph_spec") {
            Some(spec) => spec.take(),
            None => body,
        },
        None => stored?.spec_json().clone(),
    };
    let (read, mut report) = validate(&spec);
    if let Some(spec) = read {
        report
            .warnings
            .extend(warnings(engine, &spec, fallback).await?);
        let known = project::known(engine, &spec).await?;
        report
            .warnings
            .extend(missing_at_servers(engine, &spec, &known).await);
    }
    Ok(report)
}

/// Returns the tools and models that the project lacks for a spec.
///
/// # Errors
/// When the store cannot be read.
pub async fn warnings(
    engine: &Engine,
    spec: &GraphSpec,
    fallback: Fallback,
) -> Result<Vec<Issue>, GraphError> {
    let known = project::known(engine, spec).await?;
    let models = project::models(engine, fallback);
    let target = Target {
        name: "agent",
        caller: Audience::DeveloperOnly,
        known: &known,
        models: &models,
        keeps_spec: None,
    };
    Ok(super::project_warnings(spec, &target))
}

/// Returns the members of a body, and what is wrong with them. `spec` is another name for `graph_spec`.
fn members(body: Json) -> (Map<String, Json>, Vec<Issue>) {
    let mut body = body;
    if let Json::Object(given) = &mut body
        && !given.contains_key("graph_spec")
        && let Some(spec) = given.remove("spec")
    {
        given.insert("graph_spec".to_owned(), spec);
    }
    let mut issues = Vec::new();
    shape::check(&AGENT, &body, &mut issues);
    match body {
        Json::Object(given) => (given, issues),
        _ => (Map::new(), issues),
    }
}

/// Refuses a body with issues of its members, or of the spec that it gives. All are reported at once.
fn refuse(mut issues: Vec<Issue>, spec: Option<&Json>) -> Result<(), GraphError> {
    let is_body_valid = issues.is_empty();
    let of_spec = spec.map(|spec| validate(spec).1.issues);
    issues.extend(of_spec.into_iter().flatten().map(|issue| Issue {
        path: [vec![json!("graph_spec")], issue.path].concat(),
        ..issue
    }));
    match (issues.is_empty(), is_body_valid) {
        (true, _) => Ok(()),
        (false, true) => Err(GraphError::invalid(
            codes::INVALID_SPEC,
            "the graph spec is not valid",
            &issues,
        )),
        (false, false) => Err(GraphError::invalid(
            codes::MALFORMED,
            "the body is not valid",
            &issues,
        )),
    }
}

fn refuse_unacknowledged(row: &Map<String, Json>) -> Result<(), GraphError> {
    let is_public = row.get("visibility").and_then(Json::as_str) == Some("public");
    let is_acknowledged = row.get("safety_acknowledged").and_then(Json::as_bool) == Some(true);
    match is_public && !is_acknowledged {
        false => Ok(()),
        true => Err(GraphError::new(
            Status::Conflict,
            codes::UNACKNOWLEDGED,
            "anybody with the project's anonymous key can run a public agent: send `safety_acknowledged: true` with `visibility: \"public\"`",
        )),
    }
}
