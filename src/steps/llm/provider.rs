//! The choice of the provider of a call: from the step, its connection, the settings or the environment.

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use reqwest::Url;

use super::aws;
use super::azure;
use super::capability::{Capability, Lacks};
use super::dialect::{
    AZURE_OPENAI, Dialect, OLLAMA, OPENAI, OPENAI_CHAT, OPENAI_COMPATIBLE, SCRIPTED,
};
use super::prices::Prices;
use super::scripted::{self, Script};
use super::sigv4::Signer;
use super::{PROVIDERS, models};
use crate::connections::{self, Auth, Connection, KeyPlace, Proof, first_secret, missing_secret};
use crate::fields::{Fields, listed};
use crate::guard::host_of;
use crate::http::error::HttpError;
use crate::http::route::Route;
use crate::http::settings;
use crate::json as convert;
use crate::oauth::Lent;

/// The server and the model of a call.
pub(super) struct Endpoint {
    /// The name of the provider in flows.
    pub provider: String,
    pub dialect: Dialect,
    pub model: String,
    pub prices: Prices,
    /// Whether a setting lists its capabilities, so that they are not derived from the name of the model.
    pub is_vouched: bool,
    pub way: Backend,
}

impl Endpoint {
    /// Tells whether the model has a capability, as far as is known.
    pub(super) fn can(&self, capability: Capability) -> bool {
        self.dialect.can(capability) && (self.is_vouched || models::can(&self.model, capability))
    }

    /// Adds the capabilities that its connection declares.
    fn declare(&mut self, connection: &Connection, is_vouched: bool) -> Result<(), StepError> {
        let place = format!(":connections :{}", connection.id);
        let declared = connection.capabilities.as_ref();
        self.dialect.lacks = lacks(&place, self.dialect.lacks, declared)?;
        self.is_vouched = is_vouched;
        Ok(())
    }
}

/// The way to get an answer.
pub(super) enum Backend {
    Server(Box<Server>),
    Script(Script),
}

/// The target of a call.
#[derive(Clone)]
pub(super) struct Server {
    /// The address of calls, if it is not that of the family.
    pub url: Option<Url>,
    pub base: Url,
    pub headers: Vec<(String, String)>,
    pub secret_headers: Vec<(String, String)>,
    /// The signer of each request, if requests are signed.
    pub signer: Option<Signer>,
    /// The login whose token is in the headers.
    pub login: Option<Lent>,
    pub route: Route,
}

/// The providers that are tried, in this order, if none is set.
pub const BY_ENVIRONMENT: &[&str] = &[
    "openai",
    "anthropic",
    "openrouter",
    "groq",
    "deepseek",
    "mistral",
    "together",
    "fireworks",
    "azure-openai",
    "google",
    "bedrock",
];

/// Backends of connections that are for tools.
const OF_TOOLS: &[&str] = &["mcp"];

const PROVIDER_KEYS: &[&str] = &[
    "auth",
    "base-url",
    "capabilities",
    "family",
    "headers",
    "id",
    "model",
    "prices",
    "region",
    "script",
];

pub(super) fn choose(cx: &StepContext, fields: Fields<'_>) -> Result<Endpoint, StepError> {
    let mut connection = connection(cx, fields)?;
    let named = named(fields, &connection)?;
    // The user's own server must not receive the key of the provider whose format it speaks.
    let is_own = named.is_none() && connection.base_url.is_some();
    let id = match named {
        Some(id) => id,
        None => unnamed(cx, fields, &connection)?,
    };
    let custom = custom(cx, &id)?;
    let mut dialect = match (&custom, PROVIDERS.iter().find(|it| it.id == id)) {
        (Some(custom), _) => custom.dialect,
        (None, Some(dialect)) => **dialect,
        (None, None) => return Err(unknown(&id)),
    };
    let configured = custom
        .as_ref()
        .and_then(|it| it.connection.capabilities.as_ref());
    let is_vouched = configured.is_some() || connection.capabilities.is_some();
    if dialect.id == scripted::ID {
        let custom = custom.map(|it| it.connection).unwrap_or_default();
        let mut endpoint = scripted(cx, fields, [&connection, &custom], dialect, id)?;
        endpoint.declare(&connection, is_vouched)?;
        return Ok(endpoint);
    }
    let is_keyless = custom.is_none() && !is_own && dialect.keys().next().is_none();
    if is_own {
        (dialect.key, dialect.other_key) = (None, None);
    }
    let family = match (&custom, &connection.family) {
        (Some(_), Some(_)) => return Err(said_twice(&id, &connection)),
        (Some(_), None) => Some(dialect),
        (None, Some(_)) => of_connection(&connection)?,
        (None, None) => None,
    };
    let custom = custom.map(|it| it.connection).unwrap_or_default();
    connection.region = connection.region.or_else(|| custom.region.clone());
    let auth = auth(fields, &connection, &custom)?.where_keyless(is_keyless);
    let base = match base_url(cx, fields, &connection, &custom, &dialect)? {
        Some(base) => base,
        None if family.unwrap_or(dialect).family.is_signed() => {
            aws::base_url(cx, &connection, &auth)?
        }
        None => return Err(nowhere(&id, &dialect)),
    };
    let dialect = match family {
        Some(row) => dialect.speaking(&row),
        None => usual_format(fields, dialect, &base),
    };
    let dialect = as_azure(fields, dialect, &base);
    let url = address(fields, &dialect, &base)?;
    let base_url = parsed(&base)?;
    let owner = some_of(&connection.id, &id);
    let signer = match dialect.family.is_signed() {
        true => aws::signer(cx, &connection, &auth, owner, &base)?,
        false => None,
    };
    let secret_headers = match signer {
        Some(_) => Vec::new(),
        None => proof(cx, &dialect, &auth, owner, &base)?,
    };
    let model = model(cx, fields, [&connection, &custom], &dialect, &id)?;
    let headers = [connection.headers.clone(), custom.headers].concat();
    let mut endpoint = Endpoint {
        prices: Prices::of(&cx.flow().llm_providers, cx.settings()).map_err(unclear)?,
        provider: id,
        dialect,
        model,
        is_vouched,
        way: Backend::Server(Box::new(Server {
            url,
            base: base_url,
            headers,
            secret_headers,
            signer,
            login: Lent::of(cx, &connection)?,
            route: settings::usual(cx, &connection)?.route,
        })),
    };
    endpoint.declare(&connection, is_vouched)?;
    Ok(endpoint)
}

/// Returns the provider that the step or its connection names.
fn named(fields: Fields<'_>, connection: &Connection) -> Result<Option<String>, StepError> {
    let asked = fields.name("provider")?.map(|name| name.to_string());
    contradicts(asked.as_deref(), connection)?;
    Ok(match is_scripted(connection) {
        true => connection.backend.clone(),
        false => asked.or_else(|| connection.backend.clone()),
    })
}

fn some_of<'a>(text: &'a str, other: &'a str) -> &'a str {
    match text {
        "" => other,
        text => text,
    }
}

fn said_twice(id: &str, connection: &Connection) -> StepError {
    unclear(format!(
        "both `:llm-providers` and the connection `:{}` set the family of `:{id}`",
        connection.id
    ))
    .hint("remove it from the connection")
}

/// Returns the authentication: that of the step, or else that of its connection.
fn auth(
    fields: Fields<'_>,
    connection: &Connection,
    custom: &Connection,
) -> Result<Auth, StepError> {
    Ok(match fields.map("auth")? {
        Some(auth) => Auth::read(":auth", auth)?,
        None if connection.auth != Auth::Unsaid => connection.auth.clone(),
        None => custom.auth.clone(),
    })
}

/// Returns the provider of scripted answers.
fn scripted(
    cx: &StepContext,
    fields: Fields<'_>,
    named: [&Connection; 2],
    dialect: Dialect,
    id: String,
) -> Result<Endpoint, StepError> {
    let options = fields.map("provider-opts")?;
    let own = options.and_then(|it| it.get(scripted::ID));
    let script = match (own, named.iter().find_map(|it| it.script.as_ref())) {
        (Some(script), _) => Script::read(":provider-opts :scripted", script)?,
        (None, Some(script)) => Script::read(":script", script)?,
        (None, None) => {
            return Err(unclear("a `:scripted` provider needs a script").hint(
                "give its connection `:script {:turns [...]}`, or the step `:provider-opts {:scripted {:turns [...]}}`",
            ));
        }
    };
    Ok(Endpoint {
        prices: Prices::of(&cx.flow().llm_providers, cx.settings()).map_err(unclear)?,
        model: model(cx, fields, named, &dialect, &id)?,
        is_vouched: false,
        way: Backend::Script(script),
        provider: id,
        dialect,
    })
}

/// Tells whether a connection replaces any provider, because its answers are scripted.
fn is_scripted(connection: &Connection) -> bool {
    connection.backend.as_deref() == Some(scripted::ID)
}

fn contradicts(asked: Option<&str>, connection: &Connection) -> Result<(), StepError> {
    match (asked, connection.backend.as_deref()) {
        (Some(asked), Some(backend)) if asked != backend && !is_scripted(connection) => {
            Err(unclear(format!(
                "the step names `:{asked}`, but its connection `:{}` is for `:{backend}`",
                connection.id
            ))
            .hint("remove `:provider`, or name a connection of that provider"))
        }
        _ => Ok(()),
    }
}

/// Returns the model: that of the step, its connection or provider, the environment, or the default.
fn model(
    cx: &StepContext,
    fields: Fields<'_>,
    named: [&Connection; 2],
    dialect: &Dialect,
    id: &str,
) -> Result<String, StepError> {
    let configured = fields.text("model")?.map(str::to_string);
    configured
        .or_else(|| named.iter().find_map(|it| it.model.clone()))
        .or_else(|| environment(cx, &dialect.model_variable()))
        .or_else(|| dialect.model.map(str::to_string))
        .ok_or_else(|| {
            unclear(format!("no model is set for the provider `:{id}`")).hint(format!(
                "give the step a `:model`, or set {}",
                dialect.model_variable()
            ))
        })
}

/// Returns the default format of a provider. Few servers imitate OpenAI's newer interface: at another address than
/// OpenAI's own the older one is used, unless the step needs what only the newer one has.
fn usual_format(fields: Fields<'_>, dialect: Dialect, base: &str) -> Dialect {
    let is_official = is_openai_itself(base);
    let options = fields.get("provider-opts").and_then(|it| it.get("openai"));
    let wants_newer = fields.has("openai")
        || fields.has("previous-response-id")
        || options.is_some_and(|it| it.get("responses").is_some());
    match dialect.id == OPENAI.id && !is_official && !wants_newer {
        true => dialect.speaking(&OPENAI_CHAT),
        false => dialect,
    }
}

fn is_openai_itself(base: &str) -> bool {
    let host = Url::parse(base).ok();
    let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
    host == "api.openai.com" || host.ends_with(".api.openai.com")
}

/// Returns the row of OpenAI with the format of Azure, if a step sets `:deployment` or `:api-version`.
fn as_azure(fields: Fields<'_>, dialect: Dialect, base: &str) -> Dialect {
    let says = fields.has("deployment") || fields.has("api-version");
    match dialect.id == OPENAI.id && says && !is_openai_itself(base) {
        true => Dialect {
            key_header: AZURE_OPENAI.key_header,
            ..dialect
        },
        false => dialect,
    }
}

pub(super) fn unclear(message: impl Into<String>) -> StepError {
    StepError::config("E0810", message)
}

fn unknown(id: &str) -> StepError {
    let names: Vec<&str> = PROVIDERS.iter().map(|it| it.id).collect();
    let error = match OF_TOOLS.contains(&id) {
        true => unclear(format!(
            "`:{id}` is not a provider of models: a connection to an MCP server offers tools"
        )),
        false => unclear(format!("there is no provider `:{id}`")),
    };
    let error = match nearest(id, names.iter().copied()) {
        Some(near) => error.hint(format!("did you mean `:{near}`?")),
        None => error,
    };
    error.hint(format!(
        "there are {}, and those of `:llm-providers`",
        listed(&names)
    ))
}

/// Returns the step's connection. A connection that is not described stands for any provider of the environment; if
/// others are described, it is an error.
fn connection(cx: &StepContext, fields: Fields<'_>) -> Result<Connection, StepError> {
    let Some(name) = fields.name("connection")? else {
        return Ok(Connection::default());
    };
    let others = cx.settings().get("connections").is_some()
        || cx
            .flow()
            .requires
            .as_vector()
            .is_some_and(|it| !it.is_empty());
    let is_provider = PROVIDERS.iter().any(|it| it.id == &*name) || custom(cx, &name)?.is_some();
    match connections::is_known(cx, &name) {
        true => connections::find(cx, &name),
        false if is_provider => Ok(Connection {
            backend: Some(name.to_string()),
            ..Connection::default()
        }),
        false if others => connections::find(cx, &name),
        false => Ok(Connection {
            id: name.to_string(),
            ..Connection::default()
        }),
    }
}

/// What is known about the model of a connection before it answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsualModel {
    pub provider: Option<String>,
    /// The model of steps that name none.
    pub model: Option<String>,
}

/// Returns which model a connection or provider leads to, by the flow and the settings alone.
pub fn usual_model(flow: &Flow, settings: &Value, name: &str) -> UsualModel {
    let connection = connections::resolve(settings, flow, name).unwrap_or_default();
    let of_family = of_connection(&connection).ok().flatten();
    let is_provider = |id: &str| PROVIDERS.iter().any(|it| it.id == id);
    let lists = [Some(&flow.llm_providers), settings.get("llm-providers")];
    let custom = |id: &str| {
        let mut listed = lists
            .iter()
            .flatten()
            .filter_map(|list| convert::items(list))
            .flatten();
        listed.find(|it| it.get("id").and_then(name_of).as_deref() == Some(id))
    };
    let provider = connection
        .backend
        .clone()
        .or_else(|| of_family.map(|row| row.id.to_owned()))
        .or_else(|| (is_provider(name) || custom(name).is_some()).then(|| name.to_owned()))
        .or_else(|| {
            connection
                .base_url
                .as_ref()
                .map(|_| OPENAI_COMPATIBLE.id.to_owned())
        });
    let dialect = PROVIDERS
        .iter()
        .find(|it| Some(it.id) == provider.as_deref());
    let custom = provider.as_deref().and_then(custom);
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(|text| text.to_string());
    let variable = dialect.map(|it| it.model_variable());
    let environment = settings.get("environment");
    let model = connection
        .model
        .or_else(|| text(custom.as_ref().and_then(|it| it.get("model"))))
        .or_else(|| text(environment.and_then(|it| it.get(&variable?))))
        .or_else(|| dialect?.model.map(str::to_owned));
    UsualModel { provider, model }
}

/// Returns the provider if neither step nor connection name one.
fn unnamed(
    cx: &StepContext,
    fields: Fields<'_>,
    connection: &Connection,
) -> Result<String, StepError> {
    if let Some(row) = of_connection(connection)? {
        return Ok(row.id.to_string());
    }
    if fields.has("base-url") || connection.base_url.is_some() {
        return Ok(OPENAI_COMPATIBLE.id.to_string());
    }
    let known = BY_ENVIRONMENT.iter().find(|id| {
        let dialect = PROVIDERS.iter().find(|it| it.id == **id);
        dialect.is_some_and(|it| {
            environment(cx, &it.base_variable()).is_some()
                || it.keys().any(|key| cx.has_secret(key))
        })
    });
    if let Some(id) = known {
        return Ok((*id).to_string());
    }
    if environment(cx, OLLAMA_HOST).is_some() || environment(cx, &OLLAMA.base_variable()).is_some()
    {
        return Ok(OLLAMA.id.to_string());
    }
    if environment(cx, &OPENAI_COMPATIBLE.base_variable()).is_some() {
        return Ok(OPENAI_COMPATIBLE.id.to_string());
    }
    let mut keys: Vec<&str> = PROVIDERS.iter().filter_map(|it| it.key).collect();
    keys.dedup();
    Err(StepError::new("E0810", "missing-secret", "no model provider is set up")
        .hint(format!("set the key of one in the environment or in `.env`: {}", keys.join(", ")))
        .hint("or OLLAMA_HOST or OPENAI_BASE_URL for a server of your own")
        .hint("or describe a connection in flowstone.edn: {:connections {:ai {:backend :openai :model \"...\"}}}"))
}

/// An entry of `:llm-providers`.
struct Custom {
    connection: Connection,
    dialect: Dialect,
}

/// Returns the provider that the flow or the settings define under this id; the flow takes precedence.
fn custom(cx: &StepContext, id: &str) -> Result<Option<Custom>, StepError> {
    let lists = [
        Some(&cx.flow().llm_providers),
        cx.settings().get("llm-providers"),
    ];
    let mut entries = lists
        .into_iter()
        .flatten()
        .filter_map(Value::as_vector)
        .flat_map(|list| list.iter());
    let is_it = |entry: &&Value| {
        entry
            .get("id")
            .and_then(name_of)
            .is_some_and(|it| *it == *id)
    };
    let Some(entry) = entries.find(is_it) else {
        return Ok(None);
    };
    let place = format!(":llm-providers :{id}");
    let fields = Fields::nested(&place, entry)?;
    fields.only(PROVIDER_KEYS)?;
    let row = match fields.name("family")? {
        Some(family) => of_family(&place, &family)?,
        None => OPENAI_COMPATIBLE,
    };
    let dialect = Dialect {
        // Address, keys and model of the row belong to the provider that the row describes.
        base_url: None,
        key: None,
        other_key: None,
        model: None,
        lacks: lacks(&place, row.lacks, fields.get("capabilities"))?,
        ..row
    };
    let mut connection = Connection {
        id: id.to_string(),
        ..Connection::default()
    };
    connection.add(&place, entry)?;
    Ok(Some(Custom {
        connection,
        dialect,
    }))
}

/// Returns the row that stands for all providers of a family.
fn of_family(place: &str, family: &str) -> Result<Dialect, StepError> {
    if matches!(family, "chat-completions-compatible" | "openai-compatible") {
        return Ok(OPENAI_COMPATIBLE);
    }
    if family == scripted::ID {
        return Ok(SCRIPTED);
    }
    let row = PROVIDERS.iter().find(|it| it.family.id() == family);
    row.map(|row| **row).ok_or_else(|| {
        let mut names: Vec<&str> = PROVIDERS.iter().map(|it| it.family.id()).collect();
        names.sort_unstable();
        names.dedup();
        unclear(format!("`{place}` has the unknown family `:{family}`"))
            .hint(format!("there are {}", listed(&names)))
    })
}

/// Returns the row of the family that a connection names.
fn of_connection(connection: &Connection) -> Result<Option<Dialect>, StepError> {
    let place = format!(":connections :{}", connection.id);
    let family = connection.family.as_deref();
    family.map(|family| of_family(&place, family)).transpose()
}

/// Returns the missing capabilities of a provider by its `:capabilities`; by default, those of its row.
fn lacks(place: &str, row: Lacks, declared: Option<&Value>) -> Result<Lacks, StepError> {
    let Some(declared) = declared else {
        return Ok(row);
    };
    let known: Vec<&str> = Capability::DECLARED.iter().map(|it| it.name()).collect();
    let names: Option<Vec<_>> =
        convert::items(declared).and_then(|items| items.iter().map(name_of).collect());
    let Some(names) = names else {
        return Err(
            unclear(format!("`{place} :capabilities` takes a set of names"))
                .hint(format!("there are {}", listed(&known))),
        );
    };
    if let Some(wrong) = names.iter().find(|name| !known.contains(&&***name)) {
        return Err(unclear(format!(
            "`{place} :capabilities` has the unknown capability `:{wrong}`"
        ))
        .hint(format!("there are {}", listed(&known))));
    }
    let missing = Capability::DECLARED.iter().copied();
    let missing = missing.filter(|it| !names.iter().any(|name| **name == *it.name()));
    Ok(row
        .but(Capability::DECLARED)
        .and(&missing.collect::<Vec<_>>()))
}

const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// Returns the names of the environment variables with addresses of providers and names of models.
pub(super) fn variables() -> Vec<String> {
    let own = PROVIDERS
        .iter()
        .flat_map(|it| [it.base_variable(), it.model_variable()]);
    own.chain(
        [OLLAMA_HOST]
            .into_iter()
            .chain(aws::REGIONS)
            .map(str::to_string),
    )
    .collect()
}

pub(super) fn environment(cx: &StepContext, name: &str) -> Option<String> {
    cx.settings()
        .get("environment")?
        .get(name)?
        .as_str()
        .map(str::to_string)
}

fn base_url(
    cx: &StepContext,
    fields: Fields<'_>,
    connection: &Connection,
    custom: &Connection,
    dialect: &Dialect,
) -> Result<Option<String>, StepError> {
    if let Some(base) = fields.text("base-url")? {
        return Ok(Some(base.to_string()));
    }
    let described = connection
        .base_url
        .clone()
        .or_else(|| custom.base_url.clone());
    let host = || {
        (dialect.id == OLLAMA.id)
            .then(|| environment(cx, OLLAMA_HOST))
            .flatten()
            .map(|host| ollama(&host))
    };
    Ok(described
        .or_else(|| environment(cx, &dialect.base_variable()))
        .or_else(host)
        .or_else(|| dialect.base_url.map(str::to_string)))
}

fn nowhere(id: &str, dialect: &Dialect) -> StepError {
    unclear(format!("no base URL is set for provider `:{id}`")).hint(format!(
        "give the step or its connection a `:base-url`, or set {}",
        dialect.base_variable()
    ))
}

/// Returns the address in `OLLAMA_HOST`, which may be `host`, `host:port` or a whole address.
fn ollama(host: &str) -> String {
    let text = if host.contains("://") {
        host.to_string()
    } else {
        format!("http://{host}")
    };
    let Ok(mut url) = Url::parse(&text) else {
        return text;
    };
    if url.host_str() == Some("0.0.0.0") {
        // An address to listen on stands for this machine.
        url.set_host(Some("127.0.0.1")).ok();
    }
    if url.port().is_none() && url.scheme() == "http" && !host.contains("://") {
        url.set_port(Some(11434)).ok();
    }
    crate::http::joined(url.as_str(), "v1")
}

/// Returns the address of calls, if it is not that of the family.
fn address(fields: Fields<'_>, dialect: &Dialect, base: &str) -> Result<Option<Url>, StepError> {
    let (deployment, version) = (fields.text("deployment")?, fields.text("api-version")?);
    let is_newer = dialect.family.id() == OPENAI.family.id();
    let says = deployment.is_some() || version.is_some();
    let is_azure =
        dialect.id == AZURE_OPENAI.id || dialect.id == OPENAI.id && says && !is_openai_itself(base);
    if is_newer && deployment.is_some() && is_azure {
        return Err(
            StepError::config("E0809", "an Azure `:deployment` needs chat completions")
                .hint("with the Responses API, set the deployment as `:model`"),
        );
    }
    if is_azure {
        let call = match is_newer {
            true => "responses",
            false => "chat/completions",
        };
        return parsed(&azure::address(base, deployment, version, call)).map(Some);
    }
    if deployment.is_some() || version.is_some() {
        return Err(StepError::config(
            "E0809",
            format!(
                "`:deployment` and `:api-version` do not apply to `:{}`",
                dialect.id
            ),
        ));
    }
    Ok(None)
}

pub(super) fn parsed(text: &str) -> Result<Url, StepError> {
    let bad = |why: String| HttpError::BadUrl {
        url: crate::shown_url::without_password(text),
        why,
    };
    let url = Url::parse(text).map_err(|error| bad(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(bad(format!("`{other}:` is not HTTP")).into()),
    }
}

/// Returns the header with the provider's key.
fn proof(
    cx: &StepContext,
    dialect: &Dialect,
    auth: &Auth,
    owner: &str,
    base: &str,
) -> Result<Vec<(String, String)>, StepError> {
    let host = &host_of(&parsed(base)?);
    // A secret that is configured as a bearer token is sent as one.
    let is_token = matches!(auth, Auth::Bearer { secret: Some(_) });
    let own_way = |key: &str| match dialect.key_header {
        Some(header) if !is_token => vec![(header.to_string(), key.to_string())],
        Some(_) | None => vec![("authorization".to_string(), format!("Bearer {key}"))],
    };
    let secret = match auth {
        Auth::None => return Ok(Vec::new()),
        // An API key without a configured header is sent in the provider's own.
        Auth::ApiKey {
            secret,
            place: KeyPlace::Header { name, prefix },
        } if name == "x-api-key" && prefix.is_empty() => secret,
        Auth::Bearer { secret } => secret,
        Auth::ApiKey { .. }
        | Auth::AwsSigV4(_)
        | Auth::Basic { .. }
        | Auth::GoogleServiceAccount { .. }
        | Auth::Login(_)
        | Auth::PrivateKey { .. } => {
            return match auth.proof(cx, owner, host)? {
                Proof::Header(name, value) => Ok(vec![(name, value)]),
                Proof::None => Ok(Vec::new()),
                Proof::Query(..) => Err(StepError::config(
                    "E0753",
                    "a model provider's key must be sent in a header, not in the query",
                )),
            };
        }
        Auth::Unsaid => &None,
    };
    if let Some(name) = secret {
        return cx
            .secret_for(name, host)?
            .map(|secret| own_way(secret.reveal()))
            .ok_or_else(|| missing_secret(cx, name, owner));
    }
    let own = [format!("{owner}-api-key"), format!("{owner}-token")];
    let keys = dialect.keys().map(|key| -> &str { key });
    let names = keys.chain(own.iter().map(String::as_str));
    let found = first_secret(cx, names, host)?;
    match (found, dialect.key) {
        (Some(secret), _) => Ok(own_way(secret.reveal())),
        (None, Some(key))
            if dialect.base_url == Some(base)
                || *auth != Auth::Unsaid
                || dialect.id == AZURE_OPENAI.id =>
        {
            Err(missing_secret(cx, key, owner))
        }
        (None, None) if *auth != Auth::Unsaid => {
            Err(missing_secret(cx, &format!("{owner}-api-key"), owner))
        }
        // A private server often needs no key.
        (None, _) => Ok(Vec::new()),
    }
}
