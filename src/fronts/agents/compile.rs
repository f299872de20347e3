//! From an agent to a flow: the text of an ordinary flow definition with one `:agent` step.
//!
//! The text depends on the agent, its provider, its tools and the servers that messages name only, so generations of an unchanged
//! agent share one version of the flow. What a request overrides is in the input of the run.

use std::collections::BTreeMap;

use flowstone_engine::json::from_json;
use flowstone_lang::value::Value;
use flowstone_model::json::to_json;
use serde_json::{Map, Value as Json, json};

use super::agent::{Agent, MAX_STEPS};
use super::body::Body;
use super::control::Control;
use super::error::ApiError;
use super::providers::{self, Place};
use super::records::{Record, Records};
use super::{actions, ids, knowledge, servers, sources, tools};
use crate::graph::compile::text::{Lines, edn, keyword, quoted};

/// The id of the step.
pub const STEP: &str = "generation";
/// The key of the input with what a request overrides.
pub const OVERRIDES: &str = "agent";
/// The key of the input with the number of generations that may still be nested.
pub const DEPTH: &str = "depth";
/// The key of the input with the tool context.
const CONTEXT: &str = "context";
/// The key of the input with the caller's token.
const CALLER: &str = "caller";
/// The key of the input with the loop control of the agent.
const CONTROL: &str = "control";
/// The slug of flows that call a tool directly.
pub const CALL: &str = "agents-call";
/// The beginning of the slugs of agents' flows.
const SLUG: &str = "agents-";

/// Returns the slug of the flow of an agent, by the ids of its project and its own.
pub fn slug(project: &str, agent: &str) -> String {
    format!("{SLUG}{}-{}", ids::key_of(project), ids::key_of(agent))
}

/// The agent and the project of a flow that was made from an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub project: String,
    pub agent: String,
}

/// Returns the ids in the slug of a flow; nothing for a flow that was not made from an agent.
pub fn origin(slug: &str) -> Option<Origin> {
    let (project, agent) = slug.strip_prefix(SLUG)?.split_once('-')?;
    Some(Origin {
        project: format!("{}{project}", Records::Projects.prefix()),
        agent: format!("{}{agent}", Records::Agents.prefix()),
    })
}

/// Compiles an agent to the text of a flow. `more` are servers that messages name.
///
/// # Errors
/// When its loop control names a tool that it lacks.
pub fn compile(agent: &Agent, place: &Place, more: Vec<Record>) -> Result<String, ApiError> {
    let mut config = options(agent, place)?;
    config.extend(tool_options(agent, &Map::new()));
    let record = &agent.record;
    let mut out = Lines::default();
    out.line(0, &format!(";; The agent `{}` as a flow.", record.id()));
    out.line(
        0,
        &format!("{{:slug {}", keyword(&slug(record.project(), record.id()))),
    );
    out.line(1, &format!(":api/agent {}", quoted(record.id())));
    out.line(1, &format!(":api/project {}", quoted(record.project())));
    let own = agent.tools.iter().filter(|tool| servers::is_server(tool));
    let all: BTreeMap<&str, &Record> = own.chain(&more).map(|it| (it.key(), it)).collect();
    let all = all.into_values().map(servers::definition);
    let (slots, adapters): (Vec<String>, Vec<String>) = all.unzip();
    if !slots.is_empty() {
        out.line(1, &format!(":requires [{}]", slots.join(" ")));
        out.line(1, &format!(":mcp [{}]", adapters.join(" ")));
    }
    out.line(1, ":flow");
    out.line(1, &format!("'(if (= 0 (:{DEPTH} (flow/input)))"));
    out.line(
        5,
        "{:content \"\" :tool-calls [] :finish-reason \"depth-limit\"}",
    );
    out.line(5, &format!("(let [given (:{OVERRIDES} (flow/input))"));
    sources::lines(&mut out);
    out.line(7, &format!("(flow/step :agent {}", keyword(STEP)));
    let config = edn(&Json::Object(config));
    out.line(9, &format!("(merge (assoc {config} :conclude? false)"));
    out.line(16, "given");
    out.line(16, "{:messages (mapv message (:messages given))}))))}");
    Ok(out.text())
}

/// Returns the options of the `:agent` step that do not depend on tools.
fn options(agent: &Agent, place: &Place) -> Result<Map<String, Json>, ApiError> {
    let record = &agent.record;
    let mut options = providers::options(&agent.provider);
    options.extend(agent.known().options(&Body(record.members.clone()))?);
    let mut put = |key: &str, value: Json| {
        options.insert(key.to_owned(), value);
    };
    match place {
        Place::Connection(name) => put("connection", json!(name)),
        Place::BuiltIn {
            provider,
            base_url,
            secret,
        } => {
            put("provider", json!(provider));
            if let Some(base) = base_url {
                put("base-url", json!(base));
            }
            if let Some(secret) = secret {
                put("auth", json!({"type": "bearer", "secret-ref": secret}));
            }
        }
    }
    let model = record.text("model");
    if let Some(model) = model.or_else(|| agent.provider.text("default_model")) {
        put("model", json!(model));
    }
    if let Some(instructions) = record.text("instructions") {
        put("instructions", json!(instructions));
    }
    if let Some(temperature) = record.get("temperature") {
        put("temperature", temperature.clone());
    }
    if let Some(schema) = record.get("output_schema") {
        put("json-schema", schema.clone());
    }
    if let Some(config) = record.get("knowledge_config") {
        let config = knowledge::merged(Some(config), None);
        put("knowledge", knowledge::option(record.project(), &config));
    }
    let steps = record.get("max_steps").and_then(Json::as_i64);
    put("max-iterations", json!(steps.unwrap_or(MAX_STEPS)));
    put("max-tool-calls", json!(1_000));
    put("client-timeout", json!(servers::PAUSE));
    Ok(options)
}

/// Returns the options with the tools of an agent. `headers` are sent to the servers of tools.
pub fn tool_options(agent: &Agent, headers: &Map<String, Json>) -> Map<String, Json> {
    let of = |is_it: &dyn Fn(&Record) -> bool| -> Vec<Json> {
        let tools = agent.tools.iter().filter(|tool| is_it(tool));
        tools.map(|tool| tools::entry(tool, headers)).collect()
    };
    let client = of(&tools::is_client);
    let idle = of(&tools::is_idle);
    let http = of(&|tool| tool.text("type") == Some("http") && !tools::is_idle(tool));
    let servers = agent.tools.iter().filter(|tool| servers::is_server(tool));
    let servers: Vec<Json> = servers.map(|tool| servers::entry(tool, headers)).collect();
    let mut platform = Vec::new();
    for tool in agent.tools.iter().filter(|tool| actions::is_platform(tool)) {
        platform.extend(actions::entries(tool));
    }
    let mut options = Map::new();
    if !platform.is_empty() {
        options.insert("platform-tools".to_owned(), Json::Array(platform));
    }
    if !client.is_empty() {
        options.insert("client-tools".to_owned(), Json::Array(client));
    }
    if !http.is_empty() {
        options.insert("http-tools".to_owned(), Json::Array(http));
    }
    if !servers.is_empty() {
        options.insert("mcp-tools".to_owned(), Json::Array(servers));
    }
    if !idle.is_empty() {
        options.insert("tools".to_owned(), json!({"definitions": idle}));
    }
    options
}

/// What a generation starts with.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// Options of the `:agent` step.
    pub overrides: Map<String, Json>,
    /// The number of generations that may still be nested, with this one.
    pub depth: i64,
    /// The tool context, which nested generations get, too.
    pub context: Map<String, Json>,
    /// The id of the token with whose rights it acts; nothing: those of the owner of the project.
    pub caller: Option<String>,
    /// The loop control of the agent: later changes of the agent do not count. Nothing for a direct call of a tool.
    pub control: Option<Control>,
}

impl Start {
    /// Returns the input of the run.
    pub fn input(&self) -> Value {
        from_json(&json!({
            OVERRIDES: self.overrides,
            DEPTH: self.depth,
            CONTEXT: self.context,
            CALLER: self.caller,
            CONTROL: self.control.as_ref().map(Control::to_json),
        }))
    }

    /// Reads the input of a run, apart from the options.
    pub fn of_input(input: &Value) -> Start {
        let read = |key: &str| input.get(key).and_then(|it| to_json(it).ok());
        Start {
            overrides: Map::new(),
            depth: read(DEPTH).and_then(|it| it.as_i64()).unwrap_or(0),
            context: read(CONTEXT)
                .and_then(|it| it.as_object().cloned())
                .unwrap_or_default(),
            caller: read(CALLER).and_then(|it| it.as_str().map(str::to_owned)),
            control: read(CONTROL).as_ref().and_then(Control::of_json),
        }
    }
}
