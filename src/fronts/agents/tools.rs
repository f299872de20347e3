//! Tools: what agents may call.

use std::rc::Rc;

use flowstone_engine::json::from_json;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::{Engine, ExecuteOptions, StartOptions, codec};
use flowstone_lang::value::Value;
use flowstone_model::json::{is_exact, read_integers, to_exact_json, to_json};
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member};
use super::compile::Start;
use super::error::{ApiError, Status};
use super::generations::{self, Who};
use super::records::{self, Record, Records};
use super::{actions, codes, context, credentials, platform, projects, running, servers, wording};
use crate::address::host_of;
use crate::graph::compile::text::edn;

const METHODS: &[&str] = &["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// The body of a new tool.
pub const CREATE: &[Member] = &[
    Member::optional(
        "actions",
        Kind::Texts,
        "For type `soat`: the platform actions, such as `get-document`. The model sees them as `{name}_{action}`.",
    ),
    Member::optional(
        "description",
        Kind::Text,
        "What the model reads about the tool.",
    ),
    Member::optional(
        "execute",
        Kind::Object,
        "For type `http`: `{url, method, headers}`. A tool without it ends a generation when it is called.",
    ),
    Member::optional(
        "mcp",
        Kind::Object,
        "For type `mcp`: `{url, headers, timeout_seconds}`. The model sees its tools as `{name}_{tool}`.",
    ),
    Member::required(
        "name",
        Kind::Text,
        "The name for models: letters, digits, `_` and `-`.",
    ),
    Member::optional("parameters", Kind::Object, "JSON Schema of the arguments."),
    Member::optional(
        "preset_parameters",
        Kind::Object,
        "Arguments that the model neither sees nor changes.",
    ),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::optional(
        "type",
        Kind::OneOf(&["builtin", "client", "http", "mcp", "soat"]),
        "The type; `http` if it is left out.",
    ),
];

/// The body of changes of a tool.
pub const UPDATE: &[Member] = &[
    Member::optional(
        "actions",
        Kind::Texts,
        "For type `soat`: the platform actions.",
    ),
    Member::optional(
        "description",
        Kind::Text,
        "What the model reads about the tool.",
    ),
    Member::optional(
        "execute",
        Kind::Object,
        "For type `http`: `{url, method, headers}`.",
    ),
    Member::optional(
        "mcp",
        Kind::Object,
        "For type `mcp`: `{url, headers, timeout_seconds}`.",
    ),
    Member::kept("name", Kind::Text, "The name for models."),
    Member::optional("parameters", Kind::Object, "JSON Schema of the arguments."),
    Member::optional(
        "preset_parameters",
        Kind::Object,
        "Arguments that the model neither sees nor changes.",
    ),
    Member::optional(
        "type",
        Kind::OneOf(&["builtin", "client", "http", "mcp", "soat"]),
        "The type.",
    ),
];

const EXECUTE: &[Member] = &[
    Member::optional("headers", Kind::Object, "Headers to send."),
    Member::optional(
        "method",
        Kind::Text,
        "The method; `POST` if it is left out.",
    ),
    Member::required(
        "url",
        Kind::Text,
        "The address. `{id}` in its path or query is the argument `id`.",
    ),
];

/// The body of a direct call.
pub const CALL: &[Member] = &[
    Member::optional("action", Kind::Text, "The action, for tools with several."),
    Member::optional("input", Kind::Object, "The arguments."),
];

const SHOWN: &[&str] = &[
    "actions",
    "description",
    "execute",
    "mcp",
    "parameters",
    "preset_parameters",
];

/// Adds a tool.
///
/// # Errors
/// When the body is not valid.
pub async fn create(engine: &Engine, body: Json) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    let mut body = Body::read(body, CREATE)?;
    let project = projects::of(engine, body.text("project_id")).await?;
    body.0.insert("project_id".to_owned(), json!(project));
    body.0.entry("type").or_insert_with(|| json!("http"));
    name_type(&mut body.0);
    check(engine, &mut body, (true, true))?;
    Ok(shown(&Records::Tools.create(engine, body.0).await?))
}

/// Changes a tool. Generations that have started keep the tool that they started with. A server is replaced as a whole, so it loses its
/// credential unless the same body gives it one.
///
/// # Errors
/// When the body is not valid, or there is no tool of that id.
pub async fn update(engine: &Engine, id: &str, body: Json) -> Result<Json, ApiError> {
    let body = Body::read_changes(body, UPDATE, CREATE)?;
    // A server that was stored before was checked then.
    let given = (body.get("mcp").is_some(), body.get("execute").is_some());
    let named = ["mcp", "execute"].into_iter();
    let named: Vec<&str> = named.filter(|name| body.0.contains_key(*name)).collect();
    let mut before = Map::new();
    let changing = async |mut record: Record| {
        let mut members = record.members.clone();
        body.clone().change(&mut members);
        members.entry("type").or_insert_with(|| json!("http"));
        name_type(&mut members);
        let mut changed = Body(members);
        check(engine, &mut changed, given)?;
        before = std::mem::replace(&mut record.members, changed.0);
        Ok(record)
    };
    let changed = Records::Tools.change(engine, id, changing).await?;
    for name in named {
        credentials::forget(engine, before.get(name))?;
    }
    Ok(shown(&changed))
}

/// Deletes a tool that no agent uses.
///
/// # Errors
/// When no record has that id, an agent uses it, or a generation that is not over needs its credential.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let _references = records::hold_references().await;
    let record = Records::Tools.get(engine, id).await?;
    let agents = Records::Agents
        .list_in(engine, Some(record.project()))
        .await?;
    let uses = |agent: &&Record| {
        let ids = super::body::texts(agent.get("tool_ids"));
        ids.iter().any(|id| super::ids::key_of(id) == record.key())
    };
    if let Some(agent) = agents.iter().find(uses) {
        let message = format!("the agent `{}` uses the tool", agent.id());
        return Err(ApiError::conflict(message));
    }
    for name in ["mcp", "execute"] {
        running::refuse_of_flow(engine, &record, credentials::id(record.get(name))).await?;
    }
    for name in ["mcp", "execute"] {
        credentials::forget(engine, record.get(name))?;
    }
    Records::Tools.delete(engine, id).await
}

/// Returns a tool as answers show it.
pub fn shown(record: &Record) -> Json {
    let mut shown = record.to_json(SHOWN);
    for name in ["mcp", "execute"] {
        if let Some(server) = record.get(name) {
            shown[name] = credentials::shown(server);
        }
    }
    shown
}

/// Gives the type that has two names the one that clients of this API know.
fn name_type(members: &mut Map<String, Json>) {
    if members.get("type") == Some(&json!("builtin")) {
        members.insert("type".to_owned(), json!("soat"));
    }
}

/// Checks a tool. A server or a request that is not new was checked before.
fn check(
    engine: &Engine,
    body: &mut Body,
    (has_server, has_execute): (bool, bool),
) -> Result<(), ApiError> {
    let name = body.text("name").unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_plain) {
        return Err(ApiError::invalid(
            "`name` must be 1 to 64 letters, digits, `_` or `-`",
        ));
    }
    let kind = body.text("type").unwrap_or_default().to_owned();
    let is_platform = matches!(&*kind, "builtin" | "soat");
    for (other, belongs) in [
        ("actions", is_platform),
        ("execute", kind == "http"),
        ("mcp", kind == "mcp"),
        ("parameters", !is_platform && kind != "mcp"),
    ] {
        if !belongs && body.get(other).is_some() {
            let message = format!("`{other}` does not belong to a tool of type `{kind}`");
            return Err(ApiError::invalid(message));
        }
    }
    if is_platform {
        return actions::check(body);
    }
    if kind == "mcp" && (has_server || body.get("mcp").is_none()) {
        return servers::check(engine, body);
    }
    if let Some(schema) = body.get("parameters") {
        let is_schema = jsonschema::validator_for(schema);
        is_schema.map_err(|error| {
            ApiError::invalid(format!("`parameters` is not a JSON Schema: {error}"))
        })?;
        let preset = body.get("preset_parameters").and_then(Json::as_object);
        if let Some(reference) = preset
            .filter(|preset| !preset.is_empty())
            .and_then(|_| flowstone_steps::agent::unresolved(schema))
        {
            return Err(ApiError::invalid(format!(
                "`parameters` refers to `{reference}`, so `preset_parameters` cannot be hidden from the model; write the properties out, or refer to `#/$defs/...`"
            )));
        }
    }
    let Some(execute) = body.get("execute").filter(|_| has_execute).cloned() else {
        return Ok(());
    };
    let mut execute = Body::read(execute, EXECUTE)?;
    check_execute(engine, &mut execute)?;
    check_parameters_of(execute.text("url").unwrap_or_default(), body)?;
    body.0.insert("execute".to_owned(), Json::Object(execute.0));
    Ok(())
}

/// Returns the names of the `{name}` parts of an address.
fn names_in(url: &str) -> impl Iterator<Item = &str> {
    let parts = url.split('{').skip(1);
    parts.filter_map(|part| part.split_once('}').map(|(name, _)| name))
}

/// Checks that each `{name}` in the path and the query of an address is a parameter or a preset one. Where a tool lists no
/// parameters, those of its address are all that it has.
fn check_parameters_of(url: &str, body: &Body) -> Result<(), ApiError> {
    let properties = body.get("parameters").and_then(|it| it.get("properties"));
    if properties.is_none() {
        return Ok(());
    }
    let groups = [properties, body.get("preset_parameters")];
    let is_known = |name: &str| {
        groups
            .into_iter()
            .flatten()
            .any(|it| it.get(name).is_some())
    };
    match names_in(url).find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(ApiError::invalid(format!(
            "`execute.url` has `{{{name}}}`, which is neither in the `properties` of `parameters` nor in `preset_parameters`"
        ))),
    }
}

fn check_execute(engine: &Engine, execute: &mut Body) -> Result<(), ApiError> {
    let url = execute.text("url").unwrap_or_default();
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('{') {
        return Err(ApiError::invalid(
            "`execute.url` has a parameter in its host; parameters may be in the path and the query",
        ));
    }
    let Some(host) = host_of(url) else {
        return Err(ApiError::invalid(
            "`execute.url` must begin with http:// or https://, without credentials in it",
        ));
    };
    let method = execute
        .text("method")
        .unwrap_or("POST")
        .to_ascii_uppercase();
    if !METHODS.contains(&method.as_str()) {
        return Err(ApiError::invalid(format!(
            "`execute.method` must be one of {}, got `{method}`",
            METHODS.join(", ")
        )));
    }
    execute.0.insert("method".to_owned(), json!(method));
    credentials::keep(engine, execute, (&host, "execute.headers"))
}

/// Calls a tool without a model, in a run of its own, and returns its output.
///
/// # Errors
/// When there is no tool of that id, it cannot be called directly, or the call fails.
pub async fn call(engine: &Engine, id: &str, body: Json, who: &Who) -> Result<Json, ApiError> {
    let body = Body::read(body, CALL)?;
    let record = Records::Tools.get(engine, id).await?;
    if is_client(&record) || is_idle(&record) {
        return Err(ApiError::new(
            Status::Unprocessable,
            ("TOOL_CALL_NOT_SUPPORTED", codes::NOT_CALLABLE),
            format!(
                "the tool `{}` has no executor that a direct call could use",
                record.id()
            ),
        ));
    }
    let text = match servers::is_server(&record) {
        true => server_flow(&record, &body)?,
        false if actions::is_platform(&record) => action_flow(&record, &body)?,
        false => http_flow(&record, &body)?,
    };
    let start = Start {
        depth: generations::MAX_DEPTH,
        caller: who.token.clone(),
        ..Start::default()
    };
    let session = Rc::new(engine.session());
    let checked = engine.check_made(&session, &text, "agents-call.edn");
    let loaded = checked
        .loaded
        .ok_or_else(|| failed("the call cannot be described as a flow", None))?;
    let options = StartOptions {
        started_by: Some(who.started_by.clone()),
        ..StartOptions::with_input(start.input())
    };
    let run = engine.start(&loaded, options).await?;
    let outcome = engine
        .execute(&run, Rc::new(NoObserver), ExecuteOptions::default())
        .await?;
    match outcome {
        RunOutcome::Completed(value) => Ok(output(&value, actions::is_platform(&record))),
        RunOutcome::Failed(failure) => {
            let (message, data) = (failure.exception.display_text(), &failure.exception.data);
            let data = to_json(data).ok();
            let refused = actions::is_platform(&record).then(|| refused(message, data.as_ref()));
            Err(refused.flatten().unwrap_or_else(|| failed(message, data)))
        }
        RunOutcome::Waiting { .. }
        | RunOutcome::Cancelled { .. }
        | RunOutcome::Stuck { .. }
        | RunOutcome::Queued { .. }
        | RunOutcome::Interrupted => Err(failed("the tool did not answer in time", None)),
    }
}

/// Returns the config of the step that calls an `http` tool. `headers` are sent after its own.
///
/// # Errors
/// When an action is named, or the arguments do not fill the address.
pub fn http_call(
    record: &Record,
    body: &Body,
    headers: &Map<String, Json>,
) -> Result<Value, ApiError> {
    if body.get("action").is_some() {
        let message = "`action` is for tools with several actions; this one has none";
        return Err(ApiError::invalid(message));
    }
    if is_idle(record) {
        return Err(ApiError::invalid(format!(
            "the tool `{}` has no `execute`, so it cannot be called",
            record.id()
        )));
    }
    let entry = from_json(&entry(record, headers));
    let input = body.get("input").cloned().unwrap_or_else(|| json!({}));
    flowstone_steps::agent::http_call(&entry, &from_json(&input))
        .map_err(|error| ApiError::invalid(error.message))
}

/// Returns the config of the step that calls a tool of a server. `headers` are sent after the tool's own.
///
/// # Errors
/// When no action is named.
pub fn server_call(
    record: &Record,
    body: &Body,
    headers: &Map<String, Json>,
) -> Result<Json, ApiError> {
    let Some(tool) = body.text("action") else {
        let message = "`action` is missing: the name of a tool of the server";
        return Err(ApiError::invalid(message));
    };
    let input = body.get("input").and_then(Json::as_object);
    let input = input.cloned().unwrap_or_default();
    Ok(servers::call(record, tool, (input, headers)))
}

/// Returns the platform action of a call, and its arguments. Presets win.
///
/// # Errors
/// When the tool has no such action.
pub fn action_call(
    record: &Record,
    body: &Body,
) -> Result<(&'static actions::Action, Map<String, Json>), ApiError> {
    let names = super::body::texts(record.get("actions"));
    let action = body
        .text("action")
        .filter(|name| names.iter().any(|it| it == name));
    let Some(action) = action.and_then(actions::find) else {
        return Err(ApiError::invalid(format!(
            "`action` must be one of {}",
            names.join(", ")
        )));
    };
    let input = body.get("input").and_then(Json::as_object);
    let mut arguments = input.cloned().unwrap_or_default();
    if let Some(Json::Object(preset)) = actions::preset(record, action) {
        arguments.extend(preset);
    }
    Ok((action, arguments))
}

/// Returns the flow of a direct call of an `http` tool.
fn http_flow(record: &Record, body: &Body) -> Result<String, ApiError> {
    let config = http_call(record, body, &Map::new())?;
    let config = codec::encode(&config).map_err(|error| ApiError::invalid(error.to_string()))?;
    Ok(format!(
        "{{:slug :agents-call :flow '(flow/step :http :call {config})}}"
    ))
}

/// Returns the flow of a direct call of a tool of a server.
fn server_flow(record: &Record, body: &Body) -> Result<String, ApiError> {
    let config = server_call(record, body, &Map::new())?;
    let (slot, adapter) = servers::definition(record);
    Ok(format!(
        "{{:slug :agents-call :requires [{slot}] :mcp [{adapter}] :flow '(flow/step :mcp :call {})}}",
        edn(&config)
    ))
}

/// Returns the flow of a direct call of a platform action.
fn action_flow(record: &Record, body: &Body) -> Result<String, ApiError> {
    let (action, arguments) = action_call(record, body)?;
    Ok(platform::call_flow(
        record.project(),
        action.name,
        arguments,
    ))
}

/// Returns what a tool gave: its JSON, or its text under `output`.
fn output(value: &Value, is_platform: bool) -> Json {
    let content = match is_platform {
        true => Some(value),
        false => value.get("body").or_else(|| value.get("content")),
    };
    let data = content.map_or(Json::Null, |it| to_exact_json(it).unwrap_or(Json::Null));
    let data = match data {
        Json::String(text) => read_integers(text.as_bytes()).unwrap_or(Json::String(text)),
        data => data,
    };
    match &data {
        Json::Object(members) if !is_exact(&data) => Json::Object(members.clone()),
        _ => json!({"output": data}),
    }
}

/// Returns the refusal of a platform action, as the route of the action answers it; nothing for a failure of another kind.
fn refused(message: &str, data: Option<&Json>) -> Option<ApiError> {
    let text = |key: &str| data?.get(key)?.as_str();
    let (code, kind) = (text("code")?, text("kind")?);
    let message = wording::of_message(message);
    Some(match (code, kind) {
        (codes::DENIED, "denied") => {
            ApiError::new(Status::Forbidden, ("FORBIDDEN", codes::DENIED), message)
        }
        (codes::ARGUMENTS, "invalid") => ApiError::invalid(message),
        (codes::ACTION, "not-found") => ApiError::new(
            Status::NotFound,
            ("RESOURCE_NOT_FOUND", codes::MISSING),
            message,
        ),
        ("CONFLICT", "invalid") => ApiError::conflict(message),
        _ => return None,
    })
}

fn failed(message: impl Into<String>, data: Option<Json>) -> ApiError {
    let error = ApiError::new(
        Status::BadGateway,
        ("TOOL_CALL_FAILED", codes::CALL_FAILED),
        wording::of_message(&message.into()),
    );
    let member = |key: &str| data.as_ref().and_then(|data| data.get(key)).cloned();
    match member("status") {
        None => error,
        Some(status) => error.with(json!({"status": status, "body": member("body")})),
    }
}

/// Tells whether the caller performs the calls of a tool.
pub fn is_client(record: &Record) -> bool {
    record.text("type") == Some("client")
}

/// Tells whether nobody performs the calls of a tool.
pub fn is_idle(record: &Record) -> bool {
    record.text("type") == Some("http") && record.get("execute").is_none()
}

/// Returns the names under which models see a tool: `github_*` for those of a server.
pub fn names(record: &Record) -> Vec<String> {
    if actions::is_platform(record) {
        return actions::names(record);
    }
    match servers::is_server(record) {
        true => vec![servers::names(record)],
        false => record.text("name").map(str::to_owned).into_iter().collect(),
    }
}

/// Returns the schema of a tool that lists no parameters, but has some in its address.
fn of_address(record: &Record) -> Option<Json> {
    let given = record.get("parameters");
    if given.is_some_and(|it| it.get("properties").is_some()) {
        return None;
    }
    let url = record.get("execute")?.get("url")?.as_str()?;
    let preset = record.get("preset_parameters");
    let is_preset = |name: &str| preset.is_some_and(|it| it.get(name).is_some());
    let names: Vec<&str> = names_in(url).filter(|name| !is_preset(name)).collect();
    if names.is_empty() {
        return None;
    }
    let part = |name: &&str| {
        (
            (*name).to_owned(),
            json!({"description": "A part of the address."}),
        )
    };
    let properties: Map<String, Json> = names.iter().map(part).collect();
    let mut schema = given.cloned().unwrap_or_else(|| json!({"type": "object"}));
    schema["properties"] = Json::Object(properties);
    schema["required"] = json!(names);
    Some(schema)
}

/// Returns a tool as an entry of `:client-tools`, `:http-tools` or `:definitions`. `headers` are sent after the tool's own.
pub fn entry(record: &Record, headers: &Map<String, Json>) -> Json {
    let mut entry = Map::new();
    let mut put = |key: &str, value: Option<&Json>| {
        if let Some(value) = value {
            entry.insert(key.to_owned(), value.clone());
        }
    };
    put("name", record.get("name"));
    put("description", record.get("description"));
    put("parameters", record.get("parameters"));
    if is_idle(record) {
        let preset = record.get("preset_parameters").and_then(Json::as_object);
        if let (Some(schema), Some(preset)) = (entry.get_mut("parameters"), preset) {
            *schema = flowstone_steps::agent::without_preset(schema, preset);
        }
        return Json::Object(entry);
    }
    put("preset", record.get("preset_parameters"));
    put("parameters", of_address(record).as_ref());
    if let Some(execute) = record.get("execute") {
        put("url", execute.get("url"));
        let method = execute.get("method").and_then(Json::as_str);
        let method = method.unwrap_or("POST").to_ascii_lowercase();
        put("method", Some(&json!(method)));
        let own = execute.get("headers").and_then(Json::as_object);
        let all = context::after(own, headers);
        if !all.is_empty() {
            put("headers", Some(&Json::Object(all)));
        }
        put("auth", credentials::auth(Some(execute)).as_ref());
    }
    Json::Object(entry)
}
