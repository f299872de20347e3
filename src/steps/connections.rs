//! Connections: the address of a server, and the credentials for it.
//!
//! A flow names a slot (`:connection :crm`). The connection behind the slot is merged from the project's settings
//! (`flowstone.edn`) and the flow's `:requires`; settings win. Connections contain only the names of secrets, which are
//! looked up when a request is made, so a connection can be printed.

use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use flowstone_flow::auth::{self, LITERAL_SECRET_KEYS};
use flowstone_flow::bindings::Bindings;
use flowstone_flow::diagnostic::{Diagnostic, Severity, nearest};
use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::permission::Host;
use flowstone_flow::ports::Secret;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use reqwest::Url;

use crate::fields::Fields;
use crate::guard::{Pattern, allowed_hosts};
use crate::literal::{Remarks, finding};
use crate::oauth::OAuth;
use crate::secrets::variable;

/// The code of a name that no connection has.
const UNKNOWN: &str = "E0750";

/// A server that flows make requests to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    pub id: String,
    pub base_url: Option<String>,
    pub headers: Vec<(String, String)>,
    pub auth: Auth,
    /// The provider family, such as `openai`.
    pub backend: Option<String>,
    /// Its wire format, if it does not follow from the provider.
    pub family: Option<String>,
    /// The model, for model providers.
    pub model: Option<String>,
    /// The region, for AWS.
    pub region: Option<String>,
    /// The capabilities of a model's provider, if configured.
    pub capabilities: Option<Value>,
    /// The script, for a scripted provider.
    pub script: Option<Value>,
    pub allow_link_local: bool,
    /// Hosts that the address guard lets pass.
    pub allow_hosts: Vec<Pattern>,
    /// Whether the flow asks for link-local addresses.
    pub asks_link_local: bool,
    /// The list of keys of machines, for `:ssh`.
    pub known_hosts: Option<Value>,
    /// Whether a database or mail server is spoken to by TLS; `None`: unless it is on this machine.
    pub tls: Option<bool>,
    /// The only hosts that the flow wants to reach.
    pub only_hosts: Option<Vec<Pattern>>,
}

/// How requests are authenticated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Auth {
    /// Not configured.
    #[default]
    Unsaid,
    /// Explicitly without authentication.
    None,
    Bearer {
        secret: Option<String>,
    },
    ApiKey {
        secret: Option<String>,
        place: KeyPlace,
    },
    Basic {
        username: Option<String>,
        secret: Option<String>,
    },
    /// A token that is obtained with a signed statement.
    GoogleServiceAccount {
        secret: Option<String>,
        scopes: Vec<String>,
    },
    /// Signed requests to AWS. The secrets have their default names unless others are given.
    AwsSigV4(AwsNames),
    /// The token of a login.
    Login(Box<OAuth>),
    /// A key for `:ssh`.
    PrivateKey {
        secret: Option<String>,
        passphrase: Option<String>,
    },
}

/// The names of the credentials of AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AwsNames {
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<String>,
    pub session_token: Option<String>,
    pub region: Option<String>,
    pub service: Option<String>,
}

/// Where an API key is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    Header { name: String, prefix: String },
    Query { name: String },
}

/// Credentials to add to a request.
pub(crate) enum Proof {
    None,
    Header(String, String),
    Query(String, String),
}

const KEYS: &[&str] = &[
    "allow-hosts",
    "allow-link-local",
    "auth",
    "backend",
    "base-url",
    "capabilities",
    "command",
    "cwd",
    "env",
    "family",
    "headers",
    "kind",
    "known-hosts",
    "label",
    "model",
    "models",
    "oauth",
    "optional",
    "provided-by",
    "region",
    "script",
    "slot",
    "tls",
    "type",
    "webhook",
    "workspace",
];

/// Tells whether settings or flow describe a connection.
pub(crate) fn is_known(cx: &StepContext, name: &str) -> bool {
    binding(cx.settings(), name).is_some()
        || setting(cx.settings(), name).is_some()
        || cx.flow().requirement(name).is_some()
}

/// An entry of `:bindings`.
pub(crate) enum Binding<'a> {
    /// The name of a connection.
    To(Rc<str>),
    /// The connection itself.
    Inline(&'a Value),
}

/// Returns the error for an entry of `:bindings`.
pub(crate) fn check_binding(binding: &Value) -> Result<(), String> {
    if name_of(binding).is_some() {
        return Ok(());
    }
    let Some(map) = binding.as_map() else {
        return Err("must be `{:conn :name}`".to_owned());
    };
    let names: Vec<_> = map.iter().filter_map(|(key, _)| name_of(key)).collect();
    if names.iter().any(|it| &**it == "conn") {
        return match (names.len(), binding.get("conn").and_then(name_of)) {
            (1, Some(_)) => Ok(()),
            (1, None) => Err("must be `{:conn :name}`".to_owned()),
            _ => Err("says `:conn`, which is all it may say then".to_owned()),
        };
    }
    if let Some(secret) = names
        .iter()
        .find(|it| LITERAL_SECRET_KEYS.contains(&&***it))
    {
        return Err(format!(
            "holds a secret itself, under `:{secret}`; name it, as in `:auth {{:type :bearer :secret-ref :my-token}}`"
        ));
    }
    match names.iter().find(|it| !KEYS.contains(&&***it)) {
        Some(wrong) => Err(format!(
            "has no key `:{wrong}`; it is `{{:conn :name}}`, or a connection"
        )),
        None => Ok(()),
    }
}

/// Returns the entry that the settings bind a slot to.
pub(crate) fn binding<'a>(settings: &'a Value, slot: &str) -> Option<Binding<'a>> {
    let entry = named(settings.get("bindings")?, slot)?;
    match name_of(entry).or_else(|| entry.get("conn").and_then(name_of)) {
        Some(name) => Some(Binding::To(name)),
        None => entry.as_map().is_some().then_some(Binding::Inline(entry)),
    }
}

/// Returns the connection with a name.
///
/// # Errors
/// When neither the settings nor the flow define it, or its definition is wrong.
pub(crate) fn find(cx: &StepContext, name: &str) -> Result<Connection, StepError> {
    resolve(cx.settings(), cx.flow(), name)
}

pub(crate) fn resolve(settings: &Value, flow: &Flow, name: &str) -> Result<Connection, StepError> {
    let slot = flow.requirement(name);
    let (id, setting) = match binding(settings, name) {
        None => (name.to_owned(), setting(settings, name)),
        Some(Binding::Inline(entry)) => (name.to_owned(), Some(entry)),
        Some(Binding::To(bound)) => match setting(settings, &bound) {
            Some(setting) => (bound.to_string(), Some(setting)),
            // A provider needs no description if its environment variable is set.
            None if crate::providers::is_provider(&bound) => {
                return Ok(Connection {
                    backend: Some(bound.to_string()),
                    ..Connection::default()
                });
            }
            None => {
                let error = unknown(settings, flow, &bound);
                let message = format!("{}, to which `:bindings` binds `:{name}`", error.message);
                return Err(StepError { message, ..error });
            }
        },
    };
    if setting.is_none() && slot.is_none() {
        return Err(unknown(settings, flow, name));
    }
    let mut connection = Connection {
        id: id.clone(),
        ..Connection::default()
    };
    // The flow comes first, so that the project's settings override it.
    if let Some(slot) = slot {
        connection.add(":requires entry", slot)?;
        connection.narrow();
    }
    if let Some(setting) = setting {
        let place = format!("flowstone.edn :connections :{id}");
        Fields::nested(&place, setting)?.only(KEYS)?;
        connection.add(&place, setting)?;
    }
    if let Auth::Login(oauth) = &mut connection.auth {
        oauth.connection = id;
        oauth.base_url.clone_from(&connection.base_url);
    }
    Ok(connection)
}

/// Returns a connection outside of a run, if it is described.
pub(crate) fn planned(settings: &Value, flow: &Flow, name: &str) -> Option<Connection> {
    resolve(settings, flow, name).ok()
}

/// Returns a warning for each name in `:connection` of a config for which there is no connection, if the project has any. Another
/// project or profile may have it, so the flow is not wrong.
pub(crate) fn unknown_names(flow: &Flow, settings: &Value, config: &Value) -> Remarks {
    let has_some = settings.get("connections").and_then(Value::as_map);
    let Some(given) = config.get("connection").filter(|_| has_some.is_some()) else {
        return Remarks::new();
    };
    let names = match given {
        Value::Vector(items) => items.iter().filter_map(literal_name).collect(),
        one => Vec::from_iter(literal_name(one)),
    };
    let unknown = names.iter().filter_map(|name| {
        let error = resolve(settings, flow, name).err()?;
        (error.code == UNKNOWN).then(|| Diagnostic {
            severity: Severity::Warning,
            ..finding(error)
        })
    });
    unknown.map(|warning| ("connection", warning)).collect()
}

fn literal_name(value: &Value) -> Option<Rc<str>> {
    match value {
        Value::Keyword(_) | Value::Text(_) => name_of(value),
        _ => None,
    }
}

/// Returns the project's settings for a slot, or for the connection that it is bound to.
pub(crate) fn bound<'a>(settings: &'a Value, name: &str) -> Option<&'a Value> {
    match binding(settings, name) {
        None => setting(settings, name),
        Some(Binding::Inline(entry)) => Some(entry),
        Some(Binding::To(bound)) => setting(settings, &bound),
    }
}

/// Returns the project's settings for a connection.
pub(crate) fn setting<'a>(settings: &'a Value, name: &str) -> Option<&'a Value> {
    named(settings.get("connections")?, name)
}

/// Checks the connections that were set for single slots.
///
/// # Errors
/// When no connection has that name.
pub fn check_set(settings: &Value, bindings: &Bindings) -> Result<(), StepError> {
    for name in bindings.set.values() {
        if setting(settings, name).is_none() && !crate::providers::is_provider(name) {
            let flow = Flow::bare("none", Value::Nil);
            return Err(unknown(settings, &flow, name));
        }
    }
    Ok(())
}

/// Returns the entry of a map under a name, in any spelling.
fn named<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    let entries = map.as_map()?;
    entries
        .iter()
        .find(|(key, _)| name_of(key).is_some_and(|it| *it == *name))
        .map(|(_, value)| value)
}

fn unknown(settings: &Value, flow: &Flow, name: &str) -> StepError {
    let mut known: Vec<String> = Vec::new();
    if let Some(entries) = settings.get("connections").and_then(Value::as_map) {
        known.extend(
            entries
                .iter()
                .filter_map(|(key, _)| Some(name_of(key)?.to_string())),
        );
    }
    if let Some(slots) = flow.requires.as_vector() {
        known.extend(
            slots
                .iter()
                .filter_map(|slot| Some(name_of(slot.get("slot")?)?.to_string())),
        );
    }
    let error = StepError::config(UNKNOWN, format!("there is no connection `:{name}`"));
    let error = match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => error.hint(format!("did you mean `:{near}`?")),
        None => error,
    };
    error.hint(format!(
        "describe it in flowstone.edn beside the flows: {{:connections {{:{name} {{:base-url \"https://...\" :auth {{:type :bearer :secret-ref :{name}-token}}}}}}}}"
    ))
}

impl Connection {
    /// Converts a flow's rules for addresses to those it may set: a flow can only narrow them.
    fn narrow(&mut self) {
        self.asks_link_local = std::mem::take(&mut self.allow_link_local);
        let hosts = std::mem::take(&mut self.allow_hosts);
        self.only_hosts = (!hosts.is_empty()).then_some(hosts);
        // Only the project may do without TLS, or say which machines are known.
        self.tls = None;
        self.known_hosts = None;
    }

    /// Returns the only hosts that the flow wants to reach, including its own server.
    pub(crate) fn only_hosts(&self) -> Option<Arc<Vec<Pattern>>> {
        let mut hosts = self.only_hosts.clone()?;
        let base = self.base_url.as_deref().and_then(|it| Url::parse(it).ok());
        hosts.extend(
            base.as_ref()
                .and_then(Url::host_str)
                .and_then(Pattern::read),
        );
        Some(Arc::new(hosts))
    }

    pub(crate) fn add(&mut self, place: &str, map: &Value) -> Result<(), StepError> {
        let fields = Fields::nested(place, map)?;
        if let Some(url) = fields.text("base-url")? {
            self.base_url = Some(url.to_string());
        }
        if let Some(headers) = fields.map("headers")? {
            self.headers
                .extend(text_pairs(&format!("{place} :headers"), headers)?);
        }
        if let Some(backend) = fields.name("backend")? {
            self.backend = Some(backend.to_string());
        }
        if let Some(family) = fields.name("family")? {
            self.family = Some(family.to_string());
        }
        if let Some(model) = fields.text("model")? {
            self.model = Some(model.to_string());
        }
        if let Some(region) = fields.name("region")? {
            self.region = Some(region.to_string());
        }
        if let Some(capabilities) = fields.get("capabilities") {
            self.capabilities = Some(capabilities.clone());
        }
        if let Some(script) = fields.map("script")? {
            self.script = Some(script.clone());
        }
        if let Some(allow) = fields.bool("allow-link-local")? {
            self.allow_link_local = allow;
        }
        if let Some(hosts) = fields.get("allow-hosts") {
            self.allow_hosts = allowed_hosts(&format!("{place} :allow-hosts"), hosts)?;
        }
        if let Some(known) = fields.get("known-hosts") {
            self.known_hosts = Some(known.clone());
        }
        if let Some(tls) = fields.name("tls")? {
            self.tls = Some(match &*tls {
                "verify" => true,
                "off" => false,
                other => {
                    let message = format!("`{place} :tls` is `:verify` or `:off`, not `:{other}`");
                    return Err(StepError::config("E1462", message));
                }
            });
        }
        if let Some(auth) = fields.map("auth")? {
            self.auth = Auth::read(&format!("{place} :auth"), auth)?;
        }
        Ok(())
    }
}

impl Auth {
    /// Reads an `:auth` map. It names a secret; a literal secret is refused.
    pub(crate) fn read(place: &str, map: &Value) -> Result<Auth, StepError> {
        let fields = Fields::nested(place, map)?;
        for key in LITERAL_SECRET_KEYS {
            if fields.has(key) {
                return Err(StepError::config("E0753", format!("`{place}` holds a secret itself, under `:{key}`"))
                    .hint("name it instead, `:secret-ref :my-token`, and set MY_TOKEN in the environment or in `.env`"));
            }
        }
        let type_ = fields.name("type")?;
        let types = auth::types(auth::CONNECTION);
        let own = types
            .iter()
            .find(|(name, _)| type_.as_deref() == Some(*name));
        // If the type is wrong, that is reported first.
        if let Some((_, own)) = own {
            fields.only(own)?;
        }
        let secret = fields.name("secret-ref")?.map(|name| name.to_string());
        match type_.as_deref() {
            Some("bearer") => Ok(Auth::Bearer { secret }),
            Some("api-key") => {
                let place = match (fields.text("query")?, fields.text("header")?) {
                    (Some(name), None) => KeyPlace::Query {
                        name: name.to_string(),
                    },
                    (None, header) => KeyPlace::Header {
                        name: header.unwrap_or("x-api-key").to_string(),
                        prefix: fields.text("prefix")?.unwrap_or_default().to_string(),
                    },
                    (Some(_), Some(_)) => {
                        return Err(StepError::config(
                            "E0753",
                            format!("`{place}` takes `:header` or `:query`, not both"),
                        ));
                    }
                };
                Ok(Auth::ApiKey { secret, place })
            }
            Some("basic") => Ok(Auth::Basic {
                username: fields.text("username")?.map(str::to_string),
                secret,
            }),
            Some("google-service-account") => {
                let scopes = fields.texts("scopes")?;
                if scopes.is_empty() {
                    let message = format!("`{place}` needs `:scopes`");
                    return Err(StepError::config("E0753", message).hint(
                        "as in `:scopes [\"https://www.googleapis.com/auth/spreadsheets.readonly\"]`",
                    ));
                }
                Ok(Auth::GoogleServiceAccount { secret, scopes })
            }
            Some("aws-sigv4") => {
                let name = |key| fields.name(key).map(|name| name.map(|it| it.to_string()));
                Ok(Auth::AwsSigV4(AwsNames {
                    access_key_id: name("access-key-id-ref")?,
                    secret_access_key: name("secret-access-key-ref")?,
                    session_token: name("session-token-ref")?,
                    region: name("region")?,
                    service: name("service")?,
                }))
            }
            Some("none") => Ok(Auth::None),
            Some("private-key") => Ok(Auth::PrivateKey {
                secret,
                passphrase: fields
                    .name("passphrase-secret-ref")?
                    .map(|name| name.to_string()),
            }),
            Some("oauth") => Ok(Auth::Login(Box::new(OAuth::read(fields)?))),
            other => {
                let message = match other {
                    Some(other) => format!("`{place}` has no type `:{other}`"),
                    None => format!("`{place}` needs `:type`"),
                };
                Err(StepError::config("E0753", message)
                    .hint("there are `:bearer`, `:api-key`, `:basic`, `:google-service-account`, `:aws-sigv4`, `:oauth`, `:private-key` and `:none`"))
            }
        }
    }

    /// Returns the authentication, or none for a provider without keys, such as a local server, unless it names a
    /// secret: the flow's general settings for keys do not apply to such a provider.
    pub(crate) fn where_keyless(self, is_keyless: bool) -> Auth {
        match is_keyless && self.secret_name().is_none() {
            true => Auth::Unsaid,
            false => self,
        }
    }

    /// Returns the name of the secret, if it is configured.
    pub(crate) fn secret_name(&self) -> Option<&str> {
        match self {
            Auth::Bearer { secret }
            | Auth::ApiKey { secret, .. }
            | Auth::Basic { secret, .. }
            | Auth::GoogleServiceAccount { secret, .. }
            | Auth::PrivateKey { secret, .. } => secret.as_deref(),
            Auth::AwsSigV4(names) => names.secret_access_key.as_deref(),
            Auth::Unsaid | Auth::None | Auth::Login(_) => None,
        }
    }

    /// Returns the name of what may be sent to the connection's server, for permissions.
    pub(crate) fn permitted_name(&self) -> Option<&str> {
        match self {
            Auth::Login(oauth) => Some(&oauth.connection),
            other => other.secret_name(),
        }
    }

    /// Looks up the secret now, for a host.
    pub(crate) fn secret(
        &self,
        cx: &StepContext,
        owner: &str,
        host: &Host,
    ) -> Result<Secret, StepError> {
        match self.secret_name() {
            Some(name) => cx
                .secret_for(name, host)?
                .ok_or_else(|| missing_secret(cx, name, owner)),
            None if owner.is_empty() => {
                Err(StepError::config("E0753", "`:auth` needs `:secret-ref`"))
            }
            None => {
                let names = [
                    format!("{owner}-api-key"),
                    format!("{owner}-token"),
                    owner.to_string(),
                ];
                first_secret(cx, names.iter().map(String::as_str), host)?
                    .ok_or_else(|| missing_secret(cx, &names[0], owner))
            }
        }
    }

    /// Returns the additions to a request. [`crate::http`] obtains tokens that must be requested first.
    pub(crate) fn proof(
        &self,
        cx: &StepContext,
        owner: &str,
        host: &Host,
    ) -> Result<Proof, StepError> {
        let header = |name: &str, value| Proof::Header(name.to_string(), value);
        Ok(match self {
            Auth::Unsaid | Auth::None => Proof::None,
            Auth::Bearer { .. } => header(
                "authorization",
                format!("Bearer {}", self.secret(cx, owner, host)?.reveal()),
            ),
            Auth::ApiKey {
                place: KeyPlace::Header { name, prefix },
                ..
            } => header(
                name,
                format!("{prefix}{}", self.secret(cx, owner, host)?.reveal()),
            ),
            Auth::ApiKey {
                place: KeyPlace::Query { name },
                ..
            } => Proof::Query(
                name.clone(),
                self.secret(cx, owner, host)?.reveal().to_string(),
            ),
            Auth::Basic { username, .. } => {
                let secret = self.secret(cx, owner, host)?;
                let pair = match username {
                    Some(username) => format!("{username}:{}", secret.reveal()),
                    None => secret.reveal().to_string(),
                };
                let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
                cx.hide(&Secret::new(encoded.as_str()));
                header("authorization", format!("Basic {encoded}"))
            }
            Auth::GoogleServiceAccount { .. } => {
                return Err(StepError::config(
                    "E0753",
                    "`:google-service-account` is for requests of `:http` and `:notify`",
                ));
            }
            Auth::Login(oauth) => {
                let (name, value) = oauth.header(cx, host)?;
                Proof::Header(name, value)
            }
            Auth::AwsSigV4(_) => {
                return Err(StepError::config(
                    "E0753",
                    "`:aws-sigv4` is for the provider `:bedrock`",
                ));
            }
            Auth::PrivateKey { .. } => {
                return Err(StepError::config(
                    "E0753",
                    "`:private-key` is for the step `:ssh`",
                ));
            }
        })
    }
}

/// Returns the first of these secrets that is set, for a host.
pub(crate) fn first_secret<'a>(
    cx: &StepContext,
    names: impl IntoIterator<Item = &'a str>,
    host: &Host,
) -> Result<Option<Secret>, StepError> {
    match names.into_iter().find(|name| cx.has_secret(name)) {
        Some(name) => cx.secret_for(name, host),
        None => Ok(None),
    }
}

/// Reports which secret is missing and how to set it.
pub(crate) fn missing_secret(cx: &StepContext, name: &str, owner: &str) -> StepError {
    let variable = variable(name);
    let why = match owner {
        "" => String::new(),
        owner => format!(", which `:{owner}` needs,"),
    };
    if let Some(error) = cx.secret_weakness(name) {
        return error;
    }
    if let Some(problem) = cx.secret_problem(name) {
        let message = format!("the secret `{name}`{why} cannot be had: {problem}");
        return StepError::new("E0752", "missing-secret", message)
            .hint("flowstone.edn says under `:secrets` where it is");
    }
    let error = StepError::new(
        "E0752",
        "missing-secret",
        format!("the secret `{name}`{why} is not set"),
    );
    if let Some(remedy) = cx.secret_remedy(name) {
        return error.hint(format!(
            "{remedy}: flowstone.edn says under `:secrets` that it is there"
        ));
    }
    error
        .hint(format!(
            "set {variable} in the environment, or in `.env` beside the flows"
        ))
        .hint(format!(
            "or say where it is in flowstone.edn: {{:secrets {{:{name} {{:env \"...\"}}}}}}"
        ))
}

/// Reads a map of names to texts, such as headers. Keywords and numbers are converted; nil is left out.
pub(crate) fn text_pairs(place: &str, map: &Value) -> Result<Vec<(String, String)>, StepError> {
    let Some(entries) = map.as_map() else {
        return Err(StepError::config(
            StepError::OPTION_KIND,
            format!("`{place}` takes a map, not {}", map.kind()),
        ));
    };
    let mut pairs = Vec::new();
    for (key, value) in entries.iter() {
        let Some(name) = crate::json::name_text(key) else {
            return Err(StepError::config(
                StepError::OPTION_KIND,
                format!("`{place}` has {} as a key", key.kind()),
            ));
        };
        let values = match value {
            Value::Vector(_) | Value::List(_) | Value::Set(_) | Value::Seq(_) | Value::Lazy(_) => {
                crate::json::items(value).unwrap_or_default()
            }
            single => vec![single.clone()],
        };
        for value in values {
            if !value.is_nil() {
                let text = scalar_text(&value).ok_or_else(|| {
                    StepError::config(
                        StepError::OPTION_KIND,
                        format!("`{place}` has {} under `{name}`", value.kind()),
                    )
                })?;
                pairs.push((name.clone(), text));
            }
        }
    }
    Ok(pairs)
}

/// Returns a scalar as text for a URL, a header or a form.
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    crate::json::name_text(value).or_else(|| match crate::json::to_json(value).ok()? {
        serde_json::Value::String(text) => Some(text),
        json @ (serde_json::Value::Bool(_) | serde_json::Value::Number(_)) => {
            Some(json.to_string())
        }
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
            None
        }
    })
}
