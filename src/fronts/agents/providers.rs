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
use super::generations::Who;
use super::records::{self, Record, Records};
use super::{projects, reach, running};
use crate::address::host_of;

/// The provider whose address only the user knows.
const COMPATIBLE: &str = "openai-compatible";
/// The address of the OpenAI-compatible interface of Cohere.
const COHERE: &str = "https://api.cohere.ai/compatibility/v1";
/// The host of secrets that no provider uses yet. No address has it.
const UNBOUND: &str = "unbound.invalid";
/// The providers of Azure's addresses.
const AZURE: &[&str] = &["azure-openai", "openai"];
const BEDROCK: &str = "bedrock";
const API_VERSION: &str = "api_version";
const DEPLOYMENT: &str = "deployment";
const REGION: &str = "region";
const SECRET: &str = "secret_id";

/// The members of `config`.
const CONFIG: &[Member] = &[
    Member::optional(
        API_VERSION,
        Kind::Text,
        "For Azure: the version of the API.",
    ),
    Member::optional(DEPLOYMENT, Kind::Text, "For Azure: the deployment."),
    Member::optional(
        "frequency_penalty",
        Kind::Number(-2.0, 2.0),
        "Sent with each request.",
    ),
    Member::optional(
        "max_tokens",
        Kind::Int(1, 10_000_000),
        "The most tokens of an answer.",
    ),
    Member::optional(
        "presence_penalty",
        Kind::Number(-2.0, 2.0),
        "Sent with each request.",
    ),
    Member::optional(
        "reasoning_effort",
        Kind::OneOf(&["high", "low", "medium"]),
        "How much the model reasons.",
    ),
    Member::optional(REGION, Kind::Text, "For Bedrock: the region."),
    Member::optional("seed", Kind::Int(0, i64::MAX), "Sent with each request."),
    Member::optional("stop", Kind::Texts, "Texts at which an answer ends."),
    Member::optional(
        "temperature",
        Kind::Number(0.0, 2.0),
        "The temperature of agents that set none.",
    ),
    Member::optional("top_p", Kind::Number(0.0, 1.0), "Sent with each request."),
];

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
        "Options of the models, such as `max_tokens`; for Azure `api_version` and `deployment`, for Bedrock `region`.",
    ),
    Member::required(
        "default_model",
        Kind::Text,
        "The model of agents that name none.",
    ),
    Member::required("name", Kind::Name, "The name."),
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
    Member::optional(SECRET, Kind::Text, "The secret that is the key."),
];

/// The body of changes of a provider.
pub const UPDATE: &[Member] = &[
    Member::optional("base_url", Kind::Text, "The address of the provider."),
    Member::optional(
        "config",
        Kind::Object,
        "Options of the models, such as `max_tokens`; for Azure `api_version` and `deployment`, for Bedrock `region`.",
    ),
    Member::kept(
        "default_model",
        Kind::Text,
        "The model of agents that name none.",
    ),
    Member::kept("name", Kind::Name, "The name."),
    Member::optional(SECRET, Kind::Text, "The secret that is the key."),
];

/// The body of a new secret.
pub const CREATE_SECRET: &[Member] = &[
    Member::required("name", Kind::Name, "The name."),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::required("value", Kind::Text, "The value. It is never shown."),
];

/// The body of changes of a secret.
pub const UPDATE_SECRET: &[Member] = &[
    Member::kept("name", Kind::Name, "The name."),
    Member::kept("value", Kind::Text, "The value. It is never shown."),
];

/// Members of a provider that answers show.
const SHOWN: &[&str] = &["base_url", "config", SECRET];

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
/// When the body is not valid, names a provider or a secret that there is not, or the caller may not use the secret.
pub async fn create(engine: &Engine, who: &Who, body: Json) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    let mut body = Body::read(body, CREATE)?;
    read_config(&mut body)?;
    let project = projects::of(engine, body.text("project_id")).await?;
    body.0.insert("project_id".to_owned(), json!(project));
    check(engine, &body.0)?;
    check_secret(engine, who, (&project, &body)).await?;
    let record = Records::Providers.create(engine, body.0).await?;
    bind(engine, &record)?;
    Ok(shown(&record))
}

/// Changes a provider. If it gets another host, it loses its secret, unless the same body gives it one.
///
/// # Errors
/// When the body is not valid, there is no provider of that id, or the caller may not use the secret.
pub async fn update(
    engine: &Engine,
    who: &Who,
    (id, body): (&str, Json),
) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    let mut body = Body::read_changes(body, UPDATE, CREATE)?;
    read_config(&mut body)?;
    let is_given = body.get(SECRET).is_some();
    let changing = async |mut record: Record| {
        check_secret(engine, who, (record.project(), &body)).await?;
        let before = target(&record);
        body.clone().change(&mut record.members);
        if !is_given && target(&record) != before {
            record.members.remove(SECRET);
        }
        check(engine, &record.members)?;
        bind(engine, &record)?;
        Ok(record)
    };
    let record = Records::Providers.change(engine, id, changing).await?;
    Ok(shown(&record))
}

/// Deletes a provider that no agent uses.
///
/// # Errors
/// When no record has that id, an agent uses it, or a generation that is not over needs its key.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let _references = records::hold_references().await;
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
    let secret = own_secret(&record);
    let used = record.text("secret_id").map(|_| secret.as_str());
    running::refuse_of_flow(engine, &record, used).await?;
    engine.forget_server_secret(&secret)?;
    Records::Providers.delete(engine, id).await
}

/// Returns a provider as answers show it.
pub fn shown(record: &Record) -> Json {
    record.to_json(SHOWN)
}

/// Checks `config`: members that it does not have are refused, so that none is ignored.
fn read_config(body: &mut Body) -> Result<(), ApiError> {
    if let Some(config) = body.get("config").cloned() {
        let config = Body::read_some(config, CONFIG)
            .map_err(|error| ApiError::invalid(format!("`config`: {error}")))?;
        body.0.insert("config".to_owned(), Json::Object(config.0));
    }
    Ok(())
}

/// Checks that the members of `config` that are for one provider have it.
fn check_config(engine: &Engine, members: &Map<String, Json>) -> Result<(), ApiError> {
    let Some(config) = members.get("config").and_then(Json::as_object) else {
        return Ok(());
    };
    let provider = members.get("provider").and_then(Json::as_str);
    let provider = provider.unwrap_or_default();
    let is_set = is_connection(engine, provider);
    for name in [API_VERSION, DEPLOYMENT, REGION] {
        let has_use = match name {
            REGION => provider == BEDROCK,
            _ => is_set || AZURE.contains(&provider),
        };
        if config.contains_key(name) && !has_use {
            return Err(ApiError::invalid(format!(
                "`config.{name}` does not belong to the provider `{provider}`"
            )));
        }
    }
    let region = config.get(REGION).and_then(Json::as_str);
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    match region {
        Some(region) if region.is_empty() || !region.bytes().all(is_plain) => Err(
            ApiError::invalid(format!("`config.region` cannot be `{region}`")),
        ),
        Some(_) | None => Ok(()),
    }
}

/// Returns `config` of a provider as options of the `:agent` step.
pub fn options(record: &Record) -> Map<String, Json> {
    let config = record.get("config").and_then(Json::as_object);
    let config = config.into_iter().flatten();
    let options = config.filter(|(name, _)| *name != REGION);
    options
        .map(|(name, value)| (name.replace('_', "-"), value.clone()))
        .collect()
}

/// Checks that there is such a provider, and that its address is one.
fn check(engine: &Engine, members: &Map<String, Json>) -> Result<(), ApiError> {
    check_config(engine, members)?;
    let text = |name: &str| members.get(name).and_then(Json::as_str);
    let provider = text("provider").unwrap_or_default();
    let base = text("base_url");
    if base.is_some_and(|base| host_of(base).is_none()) {
        return Err(ApiError::invalid(
            "`base_url` must begin with http:// or https://, without credentials in it",
        ));
    }
    if is_connection(engine, provider) {
        let extra = ["base_url", SECRET]
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

async fn check_secret(
    engine: &Engine,
    who: &Who,
    (project, body): (&str, &Body),
) -> Result<(), ApiError> {
    match body.text(SECRET) {
        None => Ok(()),
        Some(id) => reach::secret(engine, who, (project, id)).await,
    }
}

fn base_of(record: &Record) -> Option<String> {
    let provider = record.text("provider").unwrap_or_default();
    let usual = || match provider {
        "cohere" => Some(COHERE.to_owned()),
        name => {
            let row = PROVIDERS.iter().find(|it| it.id == name)?;
            row.base_url.map(str::to_owned)
        }
    };
    own_base(record).or_else(usual)
}

/// Returns the address that a provider gives; for Bedrock also by its region.
fn own_base(record: &Record) -> Option<String> {
    let of_region = || {
        let region = record.get("config")?.get(REGION)?.as_str()?;
        Some(format!("https://bedrock-runtime.{region}.amazonaws.com"))
    };
    let given = record.text("base_url").map(str::to_owned);
    given.or_else(of_region)
}

fn host(record: &Record) -> Option<Host> {
    host_of(&base_of(record)?)
}

/// Returns where the requests of a provider go: its host, and whether they are encrypted.
fn target(record: &Record) -> Option<(Host, bool)> {
    let base = base_of(record)?;
    Some((host_of(&base)?, base.starts_with("https://")))
}

/// Returns the name of the file of a record's own secret.
fn own_secret(record: &Record) -> String {
    format!("api-{}", record.key())
}

/// Copies the secret of a provider for its host.
fn bind(engine: &Engine, record: &Record) -> Result<(), ApiError> {
    let Some(secret) = record.text(SECRET) else {
        return Ok(engine.forget_server_secret(&own_secret(record))?);
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
    let secret = record.text(SECRET).and_then(|_| host(record));
    Place::BuiltIn {
        provider: match provider {
            "cohere" => COMPATIBLE.to_owned(),
            name => name.to_owned(),
        },
        base_url: match provider {
            "cohere" => base_of(record),
            _ => own_base(record),
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
    let _references = records::hold_references().await;
    let mut body = Body::read(body, CREATE_SECRET)?;
    check_secret_text(body.text("value"), "value")?;
    let project = projects::of(engine, body.text("project_id")).await?;
    let value = body.0.remove("value");
    body.0.insert("project_id".to_owned(), json!(project));
    let record = Records::Secrets.create(engine, body.0).await?;
    keep(engine, &record, value.as_ref())?;
    Ok(record.to_json(&[]))
}

/// Refuses a text that cannot be kept out of journals.
///
/// # Errors
/// Why it cannot. `at` is the place that the error names.
pub(super) fn check_secret_text(text: Option<&str>, at: &str) -> Result<(), ApiError> {
    match text.and_then(flowstone_model::redact::weakness) {
        Some(why) => Err(ApiError::invalid(format!(
            "`{at}` cannot be a secret: {why}"
        ))),
        None => Ok(()),
    }
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
    let mut body = Body::read_changes(body, UPDATE_SECRET, CREATE_SECRET)?;
    check_secret_text(body.text("value"), "value")?;
    let value = body.0.remove("value");
    let changing = async |mut record: Record| {
        keep(engine, &record, value.as_ref())?;
        for provider in users(engine, &record).await? {
            bind(engine, &provider)?;
        }
        body.clone().change(&mut record.members);
        Ok(record)
    };
    let record = Records::Secrets.change(engine, id, changing).await?;
    Ok(record.to_json(&[]))
}

/// Deletes a secret that no provider uses.
///
/// # Errors
/// When no record has that id, or a provider uses it.
pub async fn delete_secret(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let _references = records::hold_references().await;
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
    all.retain(|it| it.text(SECRET).map(super::ids::key_of) == Some(secret.key()));
    Ok(all)
}
