//! Reads the tools and models of a project for graph specs, and makes flows from specs.

use std::rc::Rc;

use flowstone_engine::diagnostic::Severity;
use flowstone_engine::{Engine, EngineError, disk};
use flowstone_flow::flow::{Checked, name_of};
use flowstone_flow::format::ProjectView;
use flowstone_flow::mcp_interfaces::input_schema;
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use super::compile::{self, Target, compile};
use super::known::{FunctionBody, FunctionTool, Known, Reach, Server, with_properties};
use super::models::{Fallback, Models};
use super::registry::Registry;
use super::shape::Issue;
use super::spec::{Audience, GraphSpec, Mode, Overrides};

/// Reads the tools of a project that a spec names.
///
/// # Errors
/// When the store cannot be read.
pub async fn known(engine: &Engine, spec: &GraphSpec) -> Result<Known, EngineError> {
    known_in(engine.view(), spec).await
}

/// As [`known`], without an engine.
///
/// # Errors
/// When the store cannot be read.
pub async fn known_in(project: ProjectView<'_>, spec: &GraphSpec) -> Result<Known, EngineError> {
    let mut known = Known::default();
    for name in &spec.tools.functions {
        if let Some(tool) = function(project, name).await? {
            known.functions.insert(name.clone(), tool);
        }
    }
    for listed in &spec.tools.mcp_servers {
        if let Some(server) = server(project, &listed.server_id).await? {
            known.servers.insert(listed.server_id.clone(), server);
        }
    }
    Ok(known)
}

/// Returns the model connections of a project.
pub fn models(engine: &Engine, fallback: Fallback) -> Models {
    Models::of_settings(engine.settings(), fallback)
}

/// Returns the fallback for models of a spec in a file: the connection that flows call `:ai` by convention.
pub fn file_fallback() -> Fallback {
    Fallback {
        default_model: None,
        connection: Some("ai".to_owned()),
        is_assumed: true,
    }
}

async fn function(
    project: ProjectView<'_>,
    name: &str,
) -> Result<Option<FunctionTool>, EngineError> {
    // A flow that is added later comes first, so that nothing that is stored replaces a file of the project.
    let flow = function_of_flow(project, name);
    if flow.as_ref().is_some_and(|flow| flow.agent_tool) {
        return Ok(flow);
    }
    let row = Registry::Functions.get_in(project.stores, name).await?;
    Ok(row.map(|row| function_of_row(name, &row)).or(flow))
}

/// Tells whether a project has a flow of a name.
pub fn has_flow(engine: &Engine, name: &str) -> bool {
    disk::find(engine.project_root(), None, name).is_ok()
}

/// Reads a stored function.
pub fn function_of_row(name: &str, row: &Json) -> FunctionTool {
    let text = |key: &str| row.get(key).and_then(Json::as_str);
    FunctionTool {
        name: name.to_owned(),
        body: FunctionBody::Code(text("code").unwrap_or_default().to_owned()),
        input_schema: with_properties(row.get("input_schema")),
        agent_tool: row
            .get("agent_tool")
            .and_then(Json::as_bool)
            .unwrap_or(false),
        description: text("agent_tool_description")
            .unwrap_or_default()
            .to_owned(),
        mode: text("agent_tool_mode")
            .and_then(Mode::named)
            .unwrap_or_default(),
        exposed_to: text("agent_tool_exposed_to")
            .and_then(Audience::named)
            .unwrap_or_default(),
    }
}

/// Reads the marks of a flow of the project: `:graph/agent-tool` and its companions.
fn function_of_flow(project: ProjectView<'_>, name: &str) -> Option<FunctionTool> {
    let path = disk::find(project.root, None, name).ok()?.path;
    let checked = disk::load(&Session::new(), &path, name);
    let flow = checked.loaded?.flow;
    let mark = |key: &str| flow.definition.get(key).cloned();
    let named = |key: &str| {
        mark(key)
            .as_ref()
            .and_then(name_of)
            .map(|it| it.replace('-', "_"))
    };
    let description = mark("graph/agent-tool-description");
    let description = description.as_ref().and_then(Value::as_str);
    Some(FunctionTool {
        name: name.to_owned(),
        body: FunctionBody::Flow {
            slug: flow.slug.to_string(),
        },
        input_schema: with_properties(Some(&input_schema(flow.default_invocation()))),
        agent_tool: matches!(mark("graph/agent-tool"), Some(Value::Bool(true))),
        description: description
            .or(flow.description.as_deref())
            .unwrap_or_default()
            .to_owned(),
        // What is not understood counts as writing, so that a person approves it.
        mode: match mark("graph/agent-tool-mode") {
            None => Mode::default(),
            Some(_) => named("graph/agent-tool-mode")
                .and_then(|name| Mode::named(&name))
                .unwrap_or(Mode::ReadWrite),
        },
        exposed_to: named("graph/agent-tool-exposed-to")
            .and_then(|name| Audience::named(&name))
            .unwrap_or_default(),
    })
}

async fn server(project: ProjectView<'_>, id: &str) -> Result<Option<Server>, EngineError> {
    if let Some(row) = Registry::Servers.get_in(project.stores, id).await? {
        return Ok(Some(server_of_row(id, &row)));
    }
    let connections = project.settings.get("connections");
    let connection = connections.and_then(|all| all.get(id));
    if connection.is_none() {
        let rows = Registry::Servers.list_in(project.stores).await?;
        let named = rows.iter().find(|row| row["name"] == id);
        let id_of = |row: &Json| row["id"].as_str().unwrap_or_default().to_owned();
        return Ok(named.map(|row| server_of_row(&id_of(row), row)));
    }
    let backend = connection
        .and_then(|it| it.get("backend"))
        .and_then(name_of);
    Ok(connection
        .filter(|_| backend.as_deref() == Some("mcp"))
        .map(|connection| Server {
            id: id.to_owned(),
            name: id.to_owned(),
            reach: Reach::Connection {
                name: id.to_owned(),
                is_program: connection.get("command").is_some(),
            },
            overrides: std::collections::BTreeMap::new(),
        }))
}

/// Reads a registered server.
pub fn server_of_row(id: &str, row: &Json) -> Server {
    let text = |key: &str| row.get(key).and_then(Json::as_str).unwrap_or_default();
    let overrides = row.get("tool_acl").and_then(Json::as_object);
    let overrides = overrides.into_iter().flatten().filter_map(|(tool, given)| {
        let given: Overrides = serde_json::from_value(given.clone()).ok()?;
        Some((tool.clone(), given))
    });
    Server {
        id: id.to_owned(),
        name: text("name").to_owned(),
        reach: Reach::Address {
            url: text("url").to_owned(),
            secret: row.get("secret").and_then(Json::as_str).map(str::to_owned),
        },
        overrides: overrides.collect(),
    }
}

/// A flow that was compiled from a spec.
pub struct Made {
    pub text: String,
    pub checked: Checked,
}

/// Compiles a spec and checks the flow like any other.
///
/// # Errors
/// When the project lacks something that the spec needs.
pub fn make(
    engine: &Engine,
    session: &Rc<Session>,
    spec: &GraphSpec,
    target: &Target<'_>,
) -> Result<Made, Vec<Issue>> {
    let text = compile(spec, target)?;
    let checked = engine.check_made(
        session,
        &text,
        &format!("{}.edn", compile::slug(target.name)),
    );
    Ok(Made { text, checked })
}

/// Returns the first error of a flow that was compiled from a spec.
pub fn problem(made: &Made) -> Option<String> {
    let mut findings = made.checked.findings.iter();
    let error = findings.find(|finding| finding.severity == Severity::Error);
    error.map(|finding| format!("{}: {}", finding.code, finding.message))
}
