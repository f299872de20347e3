//! The things of a project that a flow can use.

use flowstone_flow::flow::Flow;
use flowstone_flow::mcp_interfaces::input_schema;
use flowstone_flow::packaged;
use flowstone_flow::spec::{StepSpec, config_schema, operation_schema};
use flowstone_model::registry::Target;
use flowstone_project::registry::VersionRef;
use flowstone_project::search::rank::{Ranked, RankedText, rank};
use serde_json::{Value as Json, json};

use super::flows::flow_of;
use super::state::Integrations;
use crate::graph::registry::Registry;
use crate::kit::context::KitCall;
use crate::kit::error::KitError;

/// Maximum number of flows of the registry that are read.
const MOST_DRAFTS: usize = 200;
/// As much of a description is shown.
const DESCRIPTION: usize = 400;

/// Words that people use for what a step type does, beside those of its own description.
const ALSO: &[(&str, &str)] = &[
    (
        "agent",
        "assistant autonomous decide research tools objective multi step reason",
    ),
    ("call-flow", "reuse subflow call flow"),
    (
        "db",
        "sql query select insert postgres postgresql mysql sqlite database",
    ),
    ("fanout", "parallel each batch concurrently"),
    (
        "files",
        "code repository edit patch source folder git pull request",
    ),
    ("function", "compute calculate transform code"),
    (
        "http",
        "api rest request fetch download call endpoint web page url post get",
    ),
    ("job", "background worker queue task"),
    ("jq", "json transform filter reshape"),
    (
        "kv",
        "remember state counter key value cache last seen store",
    ),
    (
        "llm",
        "summarize summarise summary classify extract write draft translate generate rewrite answer text model prompt ai",
    ),
    ("mcp", "tool server model context protocol"),
    ("notify", "email mail send notification alert message smtp"),
    ("search", "find look up semantic documents knowledge"),
    ("sleep", "delay pause wait later"),
    ("ssh", "remote machine shell command server"),
    (
        "table",
        "rows records spreadsheet database store save list csv",
    ),
    ("time", "date now clock timezone format"),
    (
        "wait",
        "approval approve human person ask confirm review form input",
    ),
];

/// What a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Step,
    Packaged,
    Flow,
    Mcp,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Step => "step",
            Kind::Packaged => "packaged",
            Kind::Flow => "flow",
            Kind::Mcp => "mcp",
        }
    }

    /// Returns the value of `provider` that selects it.
    pub fn provider(self) -> &'static str {
        match self {
            Kind::Step | Kind::Packaged => "steps",
            Kind::Flow => "flows",
            Kind::Mcp => "mcp",
        }
    }
}

/// Something that a flow can use.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub kind: Kind,
    /// The connection, the flow, the server, or the step type that it belongs to.
    pub integration: String,
    pub name: String,
    pub description: String,
    pub input_schema: Json,
    /// The connection that it needs.
    pub connection: Option<String>,
    /// A call, as source text.
    pub example: String,
    /// What it is also found by.
    pub(super) also: String,
}

impl Candidate {
    /// Returns the tool of an answer.
    pub fn tool(&self) -> Json {
        let mut tool = json!({
            "type": self.kind.name(),
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "example": self.example,
        });
        if let Some(connection) = &self.connection {
            tool["connection"] = json!(connection);
        }
        tool
    }

    /// Returns it as an alternative.
    pub fn alternative(&self) -> Json {
        json!({
            "integration": self.integration,
            "name": self.name,
            "description": self.description,
        })
    }
}

/// All candidates.
pub struct Catalogue {
    pub candidates: Vec<Candidate>,
    texts: Vec<RankedText>,
}

impl Catalogue {
    /// Reads the project.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(
        cx: &KitCall<'_>,
        integrations: &Integrations,
    ) -> Result<Catalogue, KitError> {
        let mut candidates = Vec::new();
        for step in cx.engine.steps() {
            of_step_type(step.spec(), &mut candidates);
        }
        of_connections(integrations, &mut candidates);
        of_flows(cx, &mut candidates).await?;
        of_servers(cx, &mut candidates).await?;
        super::listed::add(cx, integrations, &mut candidates).await;
        let texts = candidates.iter().map(|it| RankedText {
            title: format!("{} {}", it.name, it.integration),
            body: format!("{} {}", it.description, it.also),
        });
        Ok(Catalogue {
            texts: texts.collect(),
            candidates,
        })
    }

    /// Returns the candidates of a use case, best first.
    pub fn find(&self, use_case: &str) -> Vec<(&Candidate, Ranked)> {
        let found = rank(use_case, &self.texts).into_iter();
        found
            .map(|ranked| (&self.candidates[ranked.at], ranked))
            .collect()
    }
}

fn of_step_type(spec: &'static StepSpec, candidates: &mut Vec<Candidate>) {
    let also = ALSO.iter().find(|(kind, _)| *kind == spec.kind);
    let also = also.map_or("", |(_, words)| words);
    let first = |doc: &str| shortened(doc.split("\n\n").next().unwrap_or(doc));
    let Some(operations) = &spec.operations else {
        candidates.push(Candidate {
            kind: Kind::Step,
            integration: spec.kind.to_owned(),
            name: spec.kind.to_owned(),
            description: first(spec.doc),
            input_schema: own_fields(spec, config_schema(spec)),
            connection: None,
            example: spec
                .examples
                .first()
                .copied()
                .unwrap_or_default()
                .to_owned(),
            also: format!("{also} {}", spec.doc),
        });
        return;
    };
    for operation in operations.all {
        let written = format!(":{}", operation.name);
        let shows = |example: &&&str| {
            let words = example.split([' ', '{', '}', ')']);
            words.into_iter().any(|word| word == written)
        };
        let example = spec.examples.iter().find(shows).or(spec.examples.first());
        candidates.push(Candidate {
            kind: Kind::Step,
            integration: spec.kind.to_owned(),
            name: format!("{} {}", spec.kind, operation.name),
            description: first(operation.doc),
            input_schema: own_fields(spec, operation_schema(spec, operation)),
            connection: None,
            example: example.copied().unwrap_or_default().to_owned(),
            also: format!("{also} {}", first(spec.doc)),
        });
    }
}

/// Leaves out the fields that every step has.
fn own_fields(spec: &StepSpec, mut schema: Json) -> Json {
    let is_own = |name: &str| {
        let key = spec.operations.as_ref().map(|operations| operations.key);
        key == Some(name) || spec.fields.iter().any(|field| field.name == name)
    };
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.retain(|name, _| is_own(name));
    }
    schema
}

/// Adds what the project's connections are for.
fn of_connections(integrations: &Integrations, candidates: &mut Vec<Candidate>) {
    for integration in &integrations.0 {
        let report = &integration.report;
        let slug = &integration.slug;
        let backend = report.backend.as_deref().unwrap_or_default();
        let is_model =
            report.kind == "llm-provider" || (!backend.is_empty() && report.kind == "http-api");
        let (step, example) = match (report.kind.as_str(), backend) {
            // Their tools are found one by one.
            ("secret", _) | (_, "mcp") => continue,
            ("database", _) => (
                "db",
                format!("(flow/step :db :rows {{:connection :{slug} :sql \"select 1\"}})"),
            ),
            ("smtp", _) => (
                "notify",
                format!(
                    "(flow/step :notify :mail {{:channels {{:email {{:connection :{slug} :to \"a@example.com\"}}}} :message \"...\"}})"
                ),
            ),
            ("ssh", _) => (
                "ssh",
                format!("(flow/step :ssh :run {{:connection :{slug} :command \"uptime\"}})"),
            ),
            _ if is_model => (
                "llm",
                format!("(flow/step :llm :answer {{:connection :{slug} :prompt \"...\"}})"),
            ),
            _ => (
                "http",
                format!("(flow/step :http :call {{:connection :{slug} :method :get :path \"/\"}})"),
            ),
        };
        let address = report.base_url.as_deref().unwrap_or_default();
        let description = match address {
            "" => format!("Uses the connection `{slug}` with a `:{step}` step."),
            address => format!("Uses the connection `{slug}` ({address}) with a `:{step}` step."),
        };
        candidates.push(Candidate {
            kind: Kind::Step,
            integration: slug.clone(),
            name: step.to_owned(),
            description,
            input_schema: json!({"type": "object"}),
            connection: Some(slug.clone()),
            example,
            also: match step {
                "llm" => String::new(),
                _ => "send post message create list update read call request".to_owned(),
            },
        });
    }
}

/// Adds the flows that the caller reaches, with their packaged steps and the tools of their MCP adapters.
async fn of_flows(cx: &KitCall<'_>, candidates: &mut Vec<Candidate>) -> Result<(), KitError> {
    let served = cx.catalog.flows(cx.engine);
    let mut known: Vec<String> = Vec::new();
    for served in &served {
        known.push(served.slug.clone());
        if cx.reaches_flow(&served.slug) {
            of_flow(cx, &served.loaded.flow, candidates);
        }
    }
    let registry = cx.registry();
    let rows = registry.flows(false).await?.into_iter();
    let drafts =
        rows.filter(|row| !known.contains(&row.name.slug) && cx.reaches_flow(&row.name.slug));
    for row in drafts.take(MOST_DRAFTS) {
        let head = VersionRef::Target(Target::Draft);
        let head = registry.version(&row.name.slug, &head).await?;
        let files = registry.files(&head).await?;
        if let Some(flow) = flow_of(cx, &row.name.slug, files) {
            of_flow(cx, &flow, candidates);
        }
    }
    Ok(())
}

fn of_flow(cx: &KitCall<'_>, flow: &Flow, candidates: &mut Vec<Candidate>) {
    let slug = flow.slug.to_string();
    let is_bound = cx.bound == Some(&*slug);
    if !is_bound {
        let name = flow.name.as_deref().unwrap_or(&slug);
        let described = flow.description.as_deref();
        candidates.push(Candidate {
            kind: Kind::Flow,
            integration: slug.clone(),
            name: slug.clone(),
            description: shortened(described.unwrap_or(&format!("Runs the flow `{name}`."))),
            input_schema: input_schema(flow.default_invocation()),
            connection: None,
            example: format!("(flow/call-flow :{slug} {{}})"),
            also: name.to_owned(),
        });
    }
    for tool in packaged::tools(flow) {
        let id = tool.step.id.to_string();
        let space = id.split_once('/').map_or(&*id, |(space, _)| space);
        let whose = match is_bound {
            true => String::new(),
            false => {
                format!(" Defined in the flow `{slug}`: copy its entry of `:steps` or `:agents`.")
            }
        };
        candidates.push(Candidate {
            kind: Kind::Packaged,
            integration: space.to_owned(),
            name: id.clone(),
            description: shortened(&format!("{}{whose}", tool.description)),
            input_schema: tool.parameters,
            connection: None,
            example: format!("(flow/step :{id} {{}})"),
            also: tool.name.to_string(),
        });
    }
    for adapter in &flow.mcp {
        let listed = adapter.tools.iter().map(|tool| tool.name.to_string());
        let allowed = adapter
            .allow_tools
            .iter()
            .flatten()
            .map(ToString::to_string);
        let mut names: Vec<String> = listed.chain(allowed).collect();
        names.sort();
        names.dedup();
        for name in names {
            let defined = adapter.tool(&name);
            let described = defined.and_then(|tool| tool.description.as_deref());
            let schema = defined.and_then(|tool| tool.input_schema.clone());
            candidates.push(Candidate {
                kind: Kind::Mcp,
                integration: adapter.connection.to_string(),
                description: shortened(described.unwrap_or("A tool of an MCP server.")),
                input_schema: schema.unwrap_or_else(|| json!({"type": "object"})),
                connection: Some(adapter.connection.to_string()),
                example: format!(
                    "(flow/step :mcp :call {{:adapter :{} :tool \"{name}\" :arguments {{}}}})",
                    adapter.id
                ),
                also: adapter.id.to_string(),
                name,
            });
        }
    }
}

/// Adds the tools of the MCP servers that the project has registered, as they were last listed.
async fn of_servers(cx: &KitCall<'_>, candidates: &mut Vec<Candidate>) -> Result<(), KitError> {
    for server in Registry::Servers.list(cx.engine).await? {
        let text = |value: &Json, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let name_of_server = text(&server, "name");
        let tools = server["tools"].as_array().cloned().unwrap_or_default();
        for tool in tools {
            let name = text(&tool, "name");
            let schema = ["input_schema", "inputSchema"]
                .iter()
                .find_map(|key| tool.get(key));
            candidates.push(Candidate {
                kind: Kind::Mcp,
                integration: name_of_server.clone(),
                description: shortened(&text(&tool, "description")),
                input_schema: schema.cloned().unwrap_or_else(|| json!({"type": "object"})),
                connection: None,
                example: format!("(flow/step :mcp :call {{:adapter :{name_of_server}/all :tool \"{name}\" :arguments {{}}}})"),
                also: String::new(),
                name,
            });
        }
    }
    Ok(())
}

pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
