//! The functions that a project stores for agents: Clojure code with the attributes of a tool.

use flowstone_engine::Engine;
use flowstone_engine::feed_event::instant;
use serde_json::{Map, Value as Json, json};

use super::codes;
use super::error::{GraphError, Status};
use super::known::with_properties;
use super::project;
use super::registry::Registry;
use super::shape::{self, Issue, Member, Name, Shape};
use super::spec::{AUDIENCES, MODES};

const FUNCTION: Shape = Shape::Object(&[
    Member::optional(
        "name",
        Shape::Name(Name::Tool),
        "The name that specs and models use.",
    ),
    Member::optional(
        "code",
        Shape::Text(1_000_000),
        "A Clojure function of one map, such as `(fn [{:keys [id]}] {:id id})`.",
    ),
    Member::optional(
        "input_schema",
        Shape::MapOfAny,
        "JSON Schema of the arguments.",
    ),
    Member::optional(
        "agent_tool",
        Shape::Bool,
        "Agents may call it. Default false.",
    ),
    Member::optional(
        "agent_tool_description",
        Shape::Text(10_000),
        "What models are told about it.",
    ),
    Member::optional(
        "agent_tool_mode",
        Shape::OneOf(MODES),
        "Whether a person approves each call. Default read_only.",
    ),
    Member::optional(
        "agent_tool_exposed_to",
        Shape::OneOf(AUDIENCES),
        "Whose runs may call it. Default developer_only.",
    ),
]);

/// Returns all functions, by name.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(engine: &Engine) -> Result<Vec<Json>, GraphError> {
    Ok(Registry::Functions.list(engine).await?)
}

/// Stores a new function.
///
/// # Errors
/// When the body is not valid, the code is not Clojure, or another function or a flow of the project has the name.
pub async fn create(engine: &Engine, body: Json) -> Result<Json, GraphError> {
    let mut given = members(body)?;
    let missing: Vec<Issue> = ["name", "code"]
        .into_iter()
        .filter(|key| given.get(*key).is_none_or(Json::is_null))
        .map(|key| Issue::at(&[json!(key)], format!("`{key}` is missing")))
        .collect();
    refuse(&missing)?;
    check_code(engine, &given)?;
    let name = given
        .get("name")
        .and_then(Json::as_str)
        .unwrap_or_default()
        .to_owned();
    if project::has_flow(engine, &name) {
        return Err(GraphError::new(
            Status::Conflict,
            codes::TAKEN,
            format!("there is a flow `{name}` in the project, which specs name in the same way"),
        ));
    }
    given.retain(|_, value| !value.is_null());
    for (key, value) in [
        ("agent_tool", json!(false)),
        ("agent_tool_description", json!("")),
        ("agent_tool_mode", json!(MODES[0])),
        ("agent_tool_exposed_to", json!(AUDIENCES[0])),
    ] {
        given.entry(key).or_insert(value);
    }
    let schema = with_properties(given.get("input_schema"));
    given.insert("input_schema".to_owned(), schema);
    given.insert("created_at".to_owned(), instant(engine.now_ms()));
    given.insert("updated_at".to_owned(), instant(engine.now_ms()));
    let row = Json::Object(given);
    match Registry::Functions.insert(engine, &name, &row).await? {
        true => Ok(row),
        false => Err(GraphError::new(
            Status::Conflict,
            codes::TAKEN,
            format!("there is a function `{name}` already"),
        )),
    }
}

/// Changes members of a function. Runs that have started keep the function that they started with.
///
/// # Errors
/// When the body is not valid, or there is no such function.
pub async fn patch(engine: &Engine, name: &str, body: Json) -> Result<Json, GraphError> {
    let given = members(body)?;
    let stored = Registry::Functions.get(engine, name).await?;
    let Some(Json::Object(mut row)) = stored else {
        return Err(missing(name));
    };
    if given.get("name").is_some_and(|new| new != name) {
        refuse(&[Issue::at(&[json!("name")], "a function keeps its name")])?;
    }
    check_code(engine, &given)?;
    for (key, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
        row.insert(key, value);
    }
    let schema = with_properties(row.get("input_schema"));
    row.insert("input_schema".to_owned(), schema);
    row.insert("updated_at".to_owned(), instant(engine.now_ms()));
    let row = Json::Object(row);
    Registry::Functions.put(engine, name, &row).await?;
    Ok(row)
}

/// Deletes a function.
///
/// # Errors
/// When no function has that name.
pub async fn delete(engine: &Engine, name: &str) -> Result<(), GraphError> {
    match Registry::Functions.delete(engine, name).await? {
        true => Ok(()),
        false => Err(missing(name)),
    }
}

fn missing(name: &str) -> GraphError {
    GraphError::new(
        Status::NotFound,
        codes::MISSING,
        format!("there is no function `{name}`"),
    )
}

fn members(body: Json) -> Result<Map<String, Json>, GraphError> {
    let mut issues = Vec::new();
    shape::check(&FUNCTION, &body, &mut issues);
    refuse(&issues)?;
    match body {
        Json::Object(given) => Ok(given),
        _ => Ok(Map::new()),
    }
}

fn refuse(issues: &[Issue]) -> Result<(), GraphError> {
    match issues.is_empty() {
        true => Ok(()),
        false => Err(GraphError::invalid(
            codes::MALFORMED,
            "the body is not valid",
            issues,
        )),
    }
}

/// Checks the code as part of a flow that contains it.
fn check_code(engine: &Engine, given: &Map<String, Json>) -> Result<(), GraphError> {
    let Some(code) = given.get("code").and_then(Json::as_str) else {
        return Ok(());
    };
    let code = flowstone_engine::codec::encode(&flowstone_lang::value::Value::from(code));
    let text = format!(
        "{{:slug :function :functions [{{:id :function :language :clojure :code {}}}] :flow '(flow/step :function :call {{:ref :function :input {{}}}})}}",
        code.unwrap_or_default()
    );
    let checked = engine.check_text(&engine.session(), &text);
    let mut findings = checked.findings.iter();
    let error = findings.find(|it| it.severity == flowstone_engine::diagnostic::Severity::Error);
    match error {
        None => Ok(()),
        Some(error) => refuse(&[Issue::at(
            &[json!("code")],
            format!("{}: {}", error.code, error.message),
        )]),
    }
}
