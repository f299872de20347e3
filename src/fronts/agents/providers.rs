//! AI providers and their secrets: where the models of agents are.
//!
//! A provider is one of the built-in ones, or a connection of the project's settings. A secret's value is encrypted; each provider
//! has a copy that is bound to the provider's host, so it goes nowhere else.

use flowstone_engine::Engine;
use flowstone_flow::permission::Host;
use flowstone_steps::llm::PROVIDERS;
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member};
use super::error::ApiError;
use super::projects;
use super::records::{Record, Records};
use crate::address::host_of;

/// The provider whose address only the user knows.
const COMPATIBLE: &str = "openai-compatible";
/// The address of the OpenAI-compatible interface of Cohere.
const COHERE: &str = "https://api.cohere.ai/compatibility/v1";
/// The host of secrets that no provider uses yet. No address has it.
const UNBOUND: &str = "unbound.invalid";

/// The body of a new provider.
pub const CREATE: &[Member] = &[
    Member::optional(
        "base_url",
        Kind::Text,
        "The address of the provider, instead of its own.",
    ),
    Member::optional(
        "config",
        Kind::Object,
        "Must be empty: further options are not built.",
    ),
    Member::required(
        "default_model",
        Kind::Text,
        "The model of agents that name none.",
    ),
    Member::required("name", Kind::Text, "The name."),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::required(
        "provider",
        Kind::Text,
        "A built-in provider such as `openai`, `anthropic` or `google`, or a connection of the project's settings.",
    ),
    Member::optional("secret_id", Kind::Text, "The secret that is the key."),
];

/// The body of changes of a provider.
pub const UPDATE: &[Member] = &[
    Member::optional("base_url", Kind::Text, "The address of the provider."),
    Member::optional(
        "config",
        Kind::Object,
        "Must be empty: further options are not built.",
    ),
    Member::optional(
        "default_model",
        Kind::Text,
        "The model of agents that name none.",
    ),
    Member::optional("name", Kind::Text, "The name."),
    Member::optional("secret_id", Kind::Text, "The secret that is the key."),
];

/// The body of a new secret.
pub const CREATE_SECRET: &[Member] = &[
    Member::required("name", Kind::Text, "The name."),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::required("value", Kind::Text, "The value. It is never shown."),
];

/// The body of changes of a secret.
pub const UPDATE_SECRET: &[Member] = &[
    Member::optional("name", Kind::Text, "The name."),
    Member::optional("value", Kind::Text, "The value. It is never shown."),
];

/// Members of a provider that answers show.
const SHOWN: &[&str] = &["base_url", "config", "secret_id"];

/// Where the models of an agent are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A connection of the project's settings.
    Connection(String),
    BuiltIn {
        provider: String,
        base_url: Option<String>,
        /// The name of the key as a secret.
        secret: Option<String>,
    },
}

/// Adds a provider.
///
/// # Errors
/// When the body is not valid, or names a provider or a secret that there is not.
pub async fn create(engine: &Engine, body: Json) -> Result<Json, ApiError> {
    let mut body = Body::read(body, CREATE)?;
    refuse_config(&body)?;
    let project = projects::of(engine, body.text("project_id")).await?;
    body.0.insert("project_id".to_owned(), json!(project));
    check(engine, &body.0)?;
    check_secret(engine, &project, &body).await?;
    let record = Records::Providers.create(engine, body.0).await?;
    bind(engine, &record)?;
    Ok(shown(&record))
}

/// Changes a provider.
///
/// # Errors
/// When the body is not valid, or there is no provider of that id.
pub async fn update(engine: &Engine, id: &str, body: Json) -> Result<Json, ApiError> {
    let body = Body::read_some(body, UPDATE)?;
    refuse_config(&body)?;
    let mut record = Records::Providers.get(engine, id).await?;
    check_secret(engine, record.project(), &body).await?;
    record.members.extend(body.0);
    check(engine, &record.members)?;
    bind(engine, &record)?;
    let record = Records::Providers.update(engine, record).await?;
    Ok(shown(&record))
}

/// Deletes a provider that no agent uses.
///
/// # Errors
/// When no record has that id, or an agent uses it.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let record = Records::Providers.get(engine, id).await?;
    let agents = Records::Agents
        .list_in(engine, Some(record.project()))
        .await?;
    let user = agents
        .iter()
        .find(|agent| agent.text("ai_provider_id") == Some(record.id()));
    if let Some(agent) = user {
        let message = format!("the agent `{}` uses the provider", agent.id());
        return Err(ApiError::conflict(message));
    }
    engine.forget_server_secret(&own_secret(&record))?;
    Records::Providers.delete(engine, id).await
}

/// Returns a provider as answers show it.
pub fn shown(record: &Record) -> Json {
    record.to_json(SHOWN)
}

fn refuse_config(body: &Body) -> Result<(), ApiError> {
    match body.get("config").and_then(Json::as_object) {
        Some(config) if !config.is_empty() => Err(ApiError::not_built(
            "`config` of a provider is not built: use a connection of the project's settings",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Checks that there is such a provider, and that its address is one.
fn check(engine: &Engine, members: &Map<String, Json>) -> Result<(), ApiError> {
    let text = |name: &str| members.get(name).and_then(Json::as_str);
    let provider = text("provider").unwrap_or_default();
    let base = text("base_url");
    if base.is_some_and(|base| host_of(base).is_none()) {
        return Err(ApiError::invalid(
            "`base_url` must begin with http:// or https://, without credentials in it",
        ));
    }
    if is_connection(engine, provider) {
        let extra = ["base_url", "secret_id"]
            .into_iter()
            .find(|it| text(it).is_some());
        return match extra {
            None => Ok(()),
            Some(extra) => Err(ApiError::invalid(format!(
                "`{extra}` belongs to the connection `{provider}` of the project's settings"
            ))),
        };
    }
    match provider {
        "cohere" => Ok(()),
        COMPATIBLE if base.is_none() => Err(ApiError::invalid(
            "`base_url` is missing: the address of an `openai-compatible` provider",
        )),
        name if PROVIDERS.iter().any(|it| it.id == name) => Ok(()),
        name => {
            let known = PROVIDERS.iter().map(|it| it.id);
            let near = flowstone_engine::diagnostic::nearest(name, known);
            Err(ApiError::invalid(match near {
                Some(near) => format!("there is no provider `{name}`; did you mean `{near}`?"),
                None => format!(
                    "there is no provider `{name}`: it is neither built in nor a connection of the project's settings"
                ),
            }))
        }
    }
}

fn is_connection(engine: &Engine, name: &str) -> bool {
    let connections = engine.settings().get("connections");
    connections.is_some_and(|all| all.get(name).is_some())
}

async fn check_secret(engine: &Engine, project: &str, body: &Body) -> Result<(), ApiError> {
    match body.text("secret_id") {
        None => Ok(()),
        Some(id) => Records::Secrets
            .get_in(engine, project, id)
            .await
            .map(|_| ()),
    }
}

fn base_of(record: &Record) -> Option<String> {
    let provider = record.text("provider").unwrap_or_default();
    let usual = || match provider {
        "cohere" => Some(COHERE),
        name => PROVIDERS.iter().find(|it| it.id == name)?.base_url,
    };
    record.text("base_url").or_else(usual).map(str::to_owned)
}

fn host(record: &Record) -> Option<Host> {
    host_of(&base_of(record)?)
}

/// Returns the name of the file of a record's own secret.
fn own_secret(record: &Record) -> String {
    format!("api-{}", record.key())
}

/// Copies the secret of a provider for its host.
fn bind(engine: &Engine, record: &Record) -> Result<(), ApiError> {
    let Some(secret) = record.text("secret_id") else {
        return Ok(());
    };
    let host = host(record).ok_or_else(|| {
        ApiError::invalid("`base_url` is missing: the secret needs a host that it is for")
    })?;
    let from = format!("api-{}", super::ids::key_of(secret));
    engine.copy_server_secret(&from, &own_secret(record), &host)?;
    Ok(())
}

/// Returns where the models of a provider are.
pub fn place(engine: &Engine, record: &Record) -> Place {
    let provider = record.text("provider").unwrap_or_default();
    if is_connection(engine, provider) {
        return Place::Connection(provider.to_owned());
    }
    let secret = record.text("secret_id").and_then(|_| host(record));
    Place::BuiltIn {
        provider: match provider {
            "cohere" => COMPATIBLE.to_owned(),
            name => name.to_owned(),
        },
        base_url: match provider {
            "cohere" => base_of(record),
            _ => record.text("base_url").map(str::to_owned),
        },
        secret: secret
            .map(|host| flowstone_flow::permission::server_secret(&own_secret(record), &host)),
    }
}

/// Adds a secret.
///
/// # Errors
/// When the body is not valid, or the value cannot be kept.
pub async fn create_secret(engine: &Engine, body: Json) -> Result<Json, ApiError> {
    let mut body = Body::read(body, CREATE_SECRET)?;
    let project = projects::of(engine, body.text("project_id")).await?;
    let value = body.0.remove("value");
    body.0.insert("project_id".to_owned(), json!(project));
    let record = Records::Secrets.create(engine, body.0).await?;
    keep(engine, &record, value.as_ref())?;
    Ok(record.to_json(&[]))
}

fn keep(engine: &Engine, record: &Record, value: Option<&Json>) -> Result<(), ApiError> {
    if let Some(value) = value.and_then(Json::as_str) {
        let nowhere = Host::new(UNBOUND, 0);
        engine.keep_server_secret(&own_secret(record), &nowhere, value)?;
    }
    Ok(())
}

/// Changes a secret, and the copies of the providers that use it.
///
/// # Errors
/// When the body is not valid, or there is no secret of that id.
pub async fn update_secret(engine: &Engine, id: &str, body: Json) -> Result<Json, ApiError> {
    let mut body = Body::read_some(body, UPDATE_SECRET)?;
    let mut record = Records::Secrets.get(engine, id).await?;
    let value = body.0.remove("value");
    keep(engine, &record, value.as_ref())?;
    for provider in users(engine, &record).await? {
        bind(engine, &provider)?;
    }
    record.members.extend(body.0);
    Ok(Records::Secrets.update(engine, record).await?.to_json(&[]))
}

/// Deletes a secret that no provider uses.
///
/// # Errors
/// When no record has that id, or a provider uses it.
pub async fn delete_secret(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let record = Records::Secrets.get(engine, id).await?;
    if let Some(user) = users(engine, &record).await?.first() {
        let message = format!("the provider `{}` uses the secret", user.id());
        return Err(ApiError::conflict(message));
    }
    engine.forget_server_secret(&own_secret(&record))?;
    Records::Secrets.delete(engine, id).await
}

async fn users(engine: &Engine, secret: &Record) -> Result<Vec<Record>, ApiError> {
    let mut all = Records::Providers
        .list_in(engine, Some(secret.project()))
        .await?;
    all.retain(|it| it.text("secret_id").map(super::ids::key_of) == Some(secret.key()));
    Ok(all)
}
