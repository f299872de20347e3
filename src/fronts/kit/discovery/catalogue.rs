//! The things of a project that a flow can use.

use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::mcp_interfaces::input_schema;
use flowstone_flow::packaged;
use flowstone_flow::spec::{StepSpec, config_schema, operation_schema};
use flowstone_model::registry::Target;
use flowstone_project::registry::VersionRef;
use flowstone_project::search::rank::{Ranked, RankedText, leading_word, rank, words};
use serde_json::{Value as Json, json};

use super::candidate::{Candidate, Kind, shortened};
use super::spoken;
use super::state::Integrations;
use crate::graph::registry::Registry;
use crate::kit::context::KitCall;
use crate::kit::error::KitError;
use crate::kit::flows::flow_of;

/// Maximum number of flows of the registry that are read.
const MOST_DRAFTS: usize = 200;
/// The part of a use case's words that a candidate must have to fit.
const LEAST_COVERAGE: f64 = 0.45;
/// The same for a step type whose name the use case has.
const LEAST_NAMED: f64 = 0.22;
/// How much more a connection weighs that the use case names, and a step type that its first word means.
const MEANT: f64 = 2.5;
const LED: f64 = 4.0;
/// The same for a step type of which the use case has a word that means it.
const SAID: f64 = 3.0;
/// How much more an operation weighs than others of its step type if the first word means it.
const LED_OPERATION: f64 = 1.5;

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
            // What a connection is for says nothing about its name.
            title: match it.is_connection {
                true => format!("{} {}", it.integration, it.names),
                false => format!("{} {} {}", it.name, it.integration, it.names),
            },
            body: format!("{} {}", it.description, it.also),
        });
        Ok(Catalogue {
            texts: texts.collect(),
            candidates,
        })
    }

    /// Returns the candidates of a use case, best first, and whether each fits well.
    pub fn find(&self, use_case: &str) -> Vec<(&Candidate, bool)> {
        let leading = leading_word(use_case);
        let said = words(use_case);
        let ranked = rank(use_case, &self.texts).into_iter();
        let mut found: Vec<(&Candidate, Ranked, bool)> = ranked
            .map(|mut ranked| {
                let candidate = &self.candidates[ranked.at];
                let is_type = candidate.kind == Kind::Step && !candidate.is_connection;
                let step = candidate.step.as_deref().unwrap_or_default();
                let leads = |word: &String| spoken::leads(step, word);
                let is_led = is_type && leading.as_ref().is_some_and(leads);
                let is_said = is_type && spoken::means(step, &said);
                let is_meant = candidate.is_named_in(&said);
                ranked.score *= match (is_meant, is_led) {
                    (true, _) => MEANT,
                    (false, true) => LED,
                    (false, false) if is_said => SAID,
                    (false, false) => 1.0,
                };
                let leads = |word: &String| spoken::leads_operation(&candidate.name, word);
                if leading.as_ref().is_some_and(leads) {
                    ranked.score *= LED_OPERATION;
                }
                let least = match is_type && ranked.is_named {
                    true => LEAST_NAMED,
                    false => LEAST_COVERAGE,
                };
                // What a connection is for does not say that it is the right one.
                let is_covered = ranked.coverage >= least && !candidate.is_connection;
                let fits = is_meant || is_led || is_said || is_covered;
                (candidate, ranked, fits)
            })
            .collect();
        found.sort_by(|(_, one, one_fits), (_, other, other_fits)| {
            let by_score = other.score.total_cmp(&one.score);
            other_fits
                .cmp(one_fits)
                .then(by_score)
                .then(one.at.cmp(&other.at))
        });
        found.into_iter().map(|(it, _, fits)| (it, fits)).collect()
    }
}

fn of_step_type(spec: &'static StepSpec, candidates: &mut Vec<Candidate>) {
    let also = spoken::words(spec.kind);
    let first = |doc: &str| shortened(doc.split("\n\n").next().unwrap_or(doc));
    let Some(operations) = &spec.operations else {
        candidates.push(Candidate {
            kind: Kind::Step,
            integration: spec.kind.to_owned(),
            name: spec.kind.to_owned(),
            description: first(spec.doc),
            input_schema: own_fields(spec, config_schema(spec)),
            connection: None,
            step: Some(spec.kind.to_owned()),
            is_connection: false,
            names: String::new(),
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
        let name = format!("{} {}", spec.kind, operation.name);
        let own = spoken::words_of_operation(&name);
        candidates.push(Candidate {
            kind: Kind::Step,
            integration: spec.kind.to_owned(),
            name,
            description: first(operation.doc),
            input_schema: own_fields(spec, operation_schema(spec, operation)),
            connection: None,
            step: Some(spec.kind.to_owned()),
            is_connection: false,
            names: String::new(),
            example: example.copied().unwrap_or_default().to_owned(),
            also: format!("{also} {own} {}", first(spec.doc)),
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
            step: Some(step.to_owned()),
            is_connection: true,
            example,
            names: integration.label.clone().unwrap_or_default(),
            also: spoken::words(step),
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
            step: None,
            is_connection: false,
            names: String::new(),
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
            example: example(&id, &tool.parameters),
            input_schema: tool.parameters,
            connection: tool
                .step
                .defaults
                .get("connection")
                .and_then(name_of)
                .map(|it| it.to_string()),
            step: Some(tool.step.kind.to_string()),
            is_connection: false,
            names: String::new(),
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
                step: None,
                is_connection: false,
                names: String::new(),
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

/// Returns a call of a packaged step with the fields that it needs.
fn example(id: &str, schema: &Json) -> String {
    let name = id.rsplit_once('/').map_or(id, |(_, name)| name);
    let required = schema["required"].as_array().into_iter().flatten();
    let fields = required.filter_map(Json::as_str).map(|field| {
        let value = example_value(&schema["properties"][field]);
        format!(":{field} {value}")
    });
    let fields: Vec<String> = fields.collect();
    format!("(flow/step :{id} :{name} {{{}}})", fields.join(" "))
}

/// Returns a value of a schema, as source text.
fn example_value(schema: &Json) -> String {
    let first = schema["enum"].get(0).or_else(|| schema.get("const"));
    if let Some(first) = first {
        return first.to_string();
    }
    let kind = match &schema["type"] {
        Json::Array(kinds) => kinds.first().and_then(Json::as_str),
        kind => kind.as_str(),
    };
    let least = || schema.get("minimum").filter(|it| it.is_number());
    match kind {
        Some("array") => "[]".to_owned(),
        Some("boolean") => "true".to_owned(),
        Some("integer" | "number") => least().map_or_else(|| "1".to_owned(), Json::to_string),
        Some("object") => "{}".to_owned(),
        _ => "\"...\"".to_owned(),
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
                step: None,
                is_connection: false,
                names: String::new(),
                example: format!("(flow/step :mcp :call {{:adapter :{name_of_server}/all :tool \"{name}\" :arguments {{}}}})"),
                also: String::new(),
                name,
            });
        }
    }
    Ok(())
}
