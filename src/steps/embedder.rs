//! Vectors from a server with the embeddings interface of OpenAI.
//!
//! The key is looked up when a request is made. Requests are retried like those of other steps; a server's message
//! about a refused request is reported without the key.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flowstone_flow::embedder::{EmbedError, Embedder};
use flowstone_flow::flow::name_of;
use flowstone_flow::permission::{Host, NetAllow, NetRow};
use flowstone_flow::ports::{Secret, Secrets, StepExchanges};
use flowstone_flow::step::{LocalFuture, StepContext, StepError};
use flowstone_lang::value::Value;
use reqwest::{Method, Url};
use serde_json::{Value as Json, json};

use crate::connections::{Auth, Connection, KeyPlace};
use crate::fields::Fields;
use crate::guard::host_of;
use crate::http::client::{Limits, Request, send};
use crate::http::error::{Again, Answer, HttpError};
use crate::http::joined;
use crate::http::route::Route;
use crate::http::settings::usual_of;
use crate::llm::PROVIDERS;
use crate::oauth::{self, Borrower};

/// Maximum numbers of texts and bytes of one request.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 96 << 10;
/// Maximum number of attempts at a request.
const ATTEMPTS: u32 = 3;
/// Maximum delay that a server may request; beyond it, the server counts as unavailable.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum length of a server's refusal in an error, in characters.
const SAID: usize = 200;

const KEYS: &[&str] = &["base-url", "connection", "dimensions", "model"];

type Find<'a> = Box<dyn Fn(&str) -> Option<Secret> + 'a>;

/// Where the logins of connections are.
struct Logins<'a> {
    home: &'a Path,
    now_ms: Box<dyn Fn() -> i64 + 'a>,
}

/// An embedder that is called over HTTP.
pub struct HttpEmbedder<'a> {
    /// The name of the model, with the length of its vectors.
    model: String,
    /// The name of the model on the server.
    wire_model: String,
    dimensions: Option<i64>,
    url: Url,
    headers: Vec<(String, String)>,
    route: Route,
    auth: Auth,
    /// The default names of the key.
    keys: Vec<String>,
    find: Find<'a>,
    logins: Option<Logins<'a>>,
}

/// Checks `:search` of a project's settings.
///
/// # Errors
/// A message that states what is wrong.
pub fn check_settings(settings: &Value) -> Result<(), String> {
    embedder(settings, |_| None).map(drop)
}

/// Returns the embedder of a project's settings, if they contain one. `find` looks up secrets.
///
/// # Errors
/// A message that states what is wrong with the settings.
pub fn embedder<'a>(
    settings: &Value,
    find: impl Fn(&str) -> Option<Secret> + 'a,
) -> Result<Option<HttpEmbedder<'a>>, String> {
    let Some(search) = settings.get("search").filter(|it| !it.is_nil()) else {
        return Ok(None);
    };
    let place = "flowstone.edn :search";
    let words = |error: flowstone_flow::step::StepError| error.message;
    let search = Fields::nested(place, search).map_err(words)?;
    search.only(&["embedder"]).map_err(words)?;
    let Some(entry) = search.map("embedder").map_err(words)? else {
        return Ok(None);
    };
    let place = "flowstone.edn :search :embedder";
    let fields = Fields::nested(place, entry).map_err(words)?;
    fields.only(KEYS).map_err(words)?;
    let model = fields.text("model").map_err(words)?;
    let model = model.filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| format!("`{place}` needs `:model`"))?;
    let dimensions = fields.int("dimensions", 1, 16_384).map_err(words)?;
    let mut connection = connection(settings, fields)?;
    if let Some(base) = fields.text("base-url").map_err(words)? {
        connection.base_url = Some(base.to_owned());
    }
    let (base, keys) = whereabouts(settings, &connection)?;
    let url = Url::parse(&joined(&base, "embeddings"))
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| format!("the address of `{place}` is not one of HTTP"))?;
    // The path of a file of authorities is relative to the working directory of the process.
    let mut usual = usual_of(settings, Path::new(""), &connection).map_err(words)?;
    // The settings name this server, and requests go to no other.
    usual.route.guard.net = Arc::new(NetAllow {
        rows: vec![NetRow::of(&host_of(&url))],
        ..NetAllow::default()
    });
    Ok(Some(HttpEmbedder {
        model: dimensions.map_or(model.to_owned(), |length| format!("{model} {length}")),
        wire_model: model.to_owned(),
        dimensions,
        url,
        headers: connection.headers,
        route: usual.route,
        auth: connection.auth,
        keys,
        find: Box::new(find),
        logins: None,
    }))
}

/// Returns the embedder of a project for use outside of runs. `home` is the folder of the project's data.
///
/// # Errors
/// As [`embedder`].
pub fn of_project<'a>(
    settings: &Value,
    secrets: &'a dyn Secrets,
    (home, now_ms): (&'a Path, impl Fn() -> i64 + 'a),
) -> Result<Option<HttpEmbedder<'a>>, String> {
    let found = embedder(settings, move |name| secrets.find(name))?;
    Ok(found.map(|it| it.with_logins(home, now_ms)))
}

/// Returns the embedder of a project for a step, whose run records or replays its requests.
///
/// # Errors
/// As [`embedder`].
pub fn of_step(cx: &StepContext) -> Result<Option<HttpEmbedder<'_>>, String> {
    let found = embedder(cx.settings(), |name| cx.secret_of_settings(name))?;
    let found = found.map(|it| it.with_logins(cx.home(), || cx.now_ms()));
    Ok(found.map(|it| it.seen_by(cx.exchanges())))
}

/// Returns the named connection: one of the settings, or a provider.
fn connection(settings: &Value, fields: Fields<'_>) -> Result<Connection, String> {
    let words = |error: flowstone_flow::step::StepError| error.message;
    let Some(name) = fields.name("connection").map_err(words)? else {
        return Ok(Connection::default());
    };
    let mut connection = Connection {
        id: name.to_string(),
        ..Connection::default()
    };
    let entries = settings.get("connections").and_then(Value::as_map);
    let entry = entries.and_then(|entries| {
        let mut entries = entries.iter();
        entries.find(|(key, _)| name_of(key).is_some_and(|key| *key == *name))
    });
    match entry {
        Some((_, entry)) => {
            let place = format!("flowstone.edn :connections :{name}");
            connection.add(&place, entry).map_err(words)?;
            if let Auth::Login(oauth) = &mut connection.auth {
                oauth.connection = name.to_string();
                oauth.base_url.clone_from(&connection.base_url);
            }
        }
        None if PROVIDERS.iter().any(|it| it.id == &*name) => {
            connection.backend = Some(name.to_string());
        }
        None if fields.has("base-url") => {}
        None => {
            return Err(format!(
                "`flowstone.edn :search :embedder` names the connection `:{name}`, which is not described"
            ));
        }
    }
    Ok(connection)
}

/// Returns the address of a connection, and the names that its key may have.
fn whereabouts(settings: &Value, connection: &Connection) -> Result<(String, Vec<String>), String> {
    let backend = connection.backend.as_deref().unwrap_or_default();
    let dialect = PROVIDERS.iter().find(|it| it.id == backend);
    let variable = dialect.map(|it| it.base_variable());
    let environment = || {
        let configured = settings.get("environment")?.get(&variable?)?;
        configured.as_str().map(str::to_owned)
    };
    let base = connection
        .base_url
        .clone()
        .or_else(environment)
        .or_else(|| dialect.and_then(|it| it.base_url).map(str::to_owned))
        .ok_or("`flowstone.edn :search :embedder` does not say where it is: give it a `:base-url`, or a connection that has one")?;
    let mut keys: Vec<String> = Vec::new();
    if !connection.id.is_empty() {
        keys.push(format!("{}-api-key", connection.id));
        keys.push(format!("{}-token", connection.id));
    }
    keys.extend(
        dialect
            .into_iter()
            .flat_map(|it| it.keys())
            .map(str::to_owned),
    );
    Ok((base, keys))
}

impl Embedder for HttpEmbedder<'_> {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> LocalFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            let mut vectors = Vec::with_capacity(texts.len());
            let mut rest = texts;
            while !rest.is_empty() {
                let (batch, after) = rest.split_at(batch(rest));
                vectors.extend(self.ask(batch).await?);
                rest = after;
            }
            Ok(vectors)
        })
    }
}

/// Returns the number of texts in the next request.
fn batch(texts: &[String]) -> usize {
    let mut bytes = 0;
    let fitting = texts.iter().take(BATCH).take_while(|text| {
        bytes += text.len();
        bytes <= BATCH_BYTES
    });
    fitting.count().max(1)
}

/// The settings name the server of an embedder, so its login is used for it.
impl Borrower for HttpEmbedder<'_> {
    fn home(&self) -> &Path {
        let logins = self.logins.as_ref();
        logins.map_or(Path::new(""), |logins| logins.home)
    }

    fn now_ms(&self) -> i64 {
        self.logins.as_ref().map_or(0, |logins| (logins.now_ms)())
    }

    /// Errors have no token but the one of the request, which [`HttpEmbedder::failed`] replaces.
    fn hide(&self, _: &str) {}

    fn admit(&self, _: &str, _: &Host) -> Result<(), StepError> {
        Ok(())
    }

    fn client_secret(&self, connection: &str, name: &str, _: &Host) -> Result<Secret, StepError> {
        (self.find)(name).ok_or_else(|| {
            let message = format!("the secret `{name}`, which `:{connection}` needs, is not set");
            StepError::new("E0752", "missing-secret", message)
        })
    }
}

/// Returns the error of a login as one of the embedder.
fn of_login(error: StepError) -> EmbedError {
    EmbedError {
        code: error.code,
        kind: error.kind,
        message: format!("the embedder: {}", error.message),
        hint: error.hints.into_iter().next(),
    }
}

impl<'a> HttpEmbedder<'a> {
    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut body =
            json!({"model": self.wire_model, "input": texts, "encoding_format": "float"});
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = Json::from(dimensions);
        }
        let mut key = self.key(None).await?;
        let mut attempt = 1;
        let mut is_renewed = false;
        let answer = loop {
            let error = match self.send(&body, key.as_ref()).await {
                Ok(answer) => break answer,
                Err(error) => error,
            };
            let is_refused = matches!(error, HttpError::Status { status: 401, .. });
            if is_refused && !is_renewed && matches!(self.auth, Auth::Login(_)) {
                is_renewed = true;
                let refused = key.as_ref().map(|key| key.reveal().to_owned());
                key = self.key(refused.as_deref()).await?;
                continue;
            }
            let pause = match error.again() {
                Again::Never => None,
                Again::Later => Some(Duration::from_millis(200 << attempt)),
                Again::After(pause) => Some(pause).filter(|pause| *pause <= PATIENCE),
            };
            match pause.filter(|_| attempt < ATTEMPTS) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(self.failed(&error, key.as_ref())),
            }
            attempt += 1;
        };
        read(&answer.body, texts.len()).ok_or_else(|| EmbedError {
            code: "E0729",
            kind: "bad-response",
            message: format!(
                "the embedder at {} did not return a vector for each text",
                self.host()
            ),
            hint: Some("check that `:model` is an embedding model".to_owned()),
        })
    }

    async fn send(&self, body: &Json, key: Option<&Secret>) -> Result<Answer, HttpError> {
        let mut request = Request {
            method: Method::POST,
            url: self.url.clone(),
            headers: vec![
                ("content-type".to_owned(), "application/json".to_owned()),
                ("accept".to_owned(), "application/json".to_owned()),
            ],
            secret_headers: self.headers.clone(),
            body: Some(body.to_string().into_bytes()),
            limits: Limits::default(),
            route: self.route.clone(),
            sent_ms: None,
            is_secret: false,
            redactor: None,
            trace_parent: None,
            login: None,
        };
        if let Some(key) = key {
            let (name, value) = self.proof(key);
            request.secret_headers.push((name, value));
        }
        let answer = send(request).await?;
        match answer.status {
            200..=299 => Ok(answer),
            status => Err(HttpError::Status {
                host: self.host(),
                status,
                answer: Box::new(answer),
            }),
        }
    }

    /// Returns the key, if one is needed; of a login a token that is not the refused one.
    async fn key(&self, refused: Option<&str>) -> Result<Option<Secret>, EmbedError> {
        let named = match &self.auth {
            Auth::None => return Ok(None),
            Auth::Login(oauth) if self.logins.is_some() => {
                let exchanges = self.route.exchanges.as_ref();
                if exchanges.is_some_and(StepExchanges::is_replay) {
                    // A replay sends nothing and needs no token.
                    return Ok(Some(Secret::new("[secret]")));
                }
                let to = (self.route.clone(), &host_of(&self.url));
                let token = oauth::token(self, oauth, to, refused).await;
                return token.map(Some).map_err(of_login);
            }
            Auth::Bearer { secret } | Auth::ApiKey { secret, .. } | Auth::Basic { secret, .. } => {
                secret.as_deref()
            }
            Auth::GoogleServiceAccount { .. }
            | Auth::AwsSigV4(_)
            | Auth::Login(_)
            | Auth::PrivateKey { .. } => {
                return Err(EmbedError {
                    code: "E0753",
                    kind: "bad-config",
                    message: "the embedder cannot sign requests, or use a service account"
                        .to_owned(),
                    hint: Some("give it an `:api-key` or a `:bearer` token".to_owned()),
                });
            }
            Auth::Unsaid => None,
        };
        let found = match named {
            Some(name) => (self.find)(name),
            None => self.keys.iter().find_map(|name| (self.find)(name)),
        };
        let name = named.or(self.keys.last().map(String::as_str));
        match (found, name) {
            (Some(key), _) => Ok(Some(key)),
            // A private server often needs no key.
            (None, _) if self.auth == Auth::Unsaid && !self.is_public() => Ok(None),
            (None, name) => {
                let name = name.unwrap_or("embedder-api-key");
                Err(EmbedError {
                    code: "E0752",
                    kind: "missing-secret",
                    message: format!("the secret `{name}`, which the embedder needs, is not set"),
                    hint: Some(format!(
                        "set {} in the environment, or in `.env` beside the flows",
                        crate::secrets::variable(name)
                    )),
                })
            }
        }
    }

    /// Lets connections use the logins of a project.
    fn with_logins(mut self, home: &'a Path, now_ms: impl Fn() -> i64 + 'a) -> Self {
        self.logins = Some(Logins {
            home,
            now_ms: Box::new(now_ms),
        });
        self
    }

    /// Passes the requests to the recorder or replayer of a run.
    fn seen_by(mut self, exchanges: Option<StepExchanges>) -> Self {
        self.route.exchanges = exchanges;
        self
    }

    /// Tells whether this is the address of a provider that always requires a key.
    fn is_public(&self) -> bool {
        PROVIDERS.iter().any(|it| {
            it.key.is_some()
                && it
                    .base_url
                    .is_some_and(|base| self.url.as_str().starts_with(base))
        })
    }

    fn proof(&self, key: &Secret) -> (String, String) {
        let key = key.reveal();
        match &self.auth {
            Auth::ApiKey {
                place: KeyPlace::Header { name, prefix },
                ..
            } => (name.clone(), format!("{prefix}{key}")),
            Auth::Basic { username, .. } => {
                use base64::Engine as _;
                let pair = match username {
                    Some(username) => format!("{username}:{key}"),
                    None => key.to_owned(),
                };
                let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
                ("authorization".to_owned(), format!("Basic {encoded}"))
            }
            Auth::ApiKey { .. }
            | Auth::Bearer { .. }
            | Auth::GoogleServiceAccount { .. }
            | Auth::AwsSigV4(_)
            | Auth::Login(_)
            | Auth::PrivateKey { .. }
            | Auth::Unsaid
            | Auth::None => ("authorization".to_owned(), format!("Bearer {key}")),
        }
    }

    fn host(&self) -> String {
        crate::http::client::host(&self.url)
    }

    fn failed(&self, error: &HttpError, key: Option<&Secret>) -> EmbedError {
        let mut message = format!("the request to the embedder failed: {error}");
        if let (HttpError::Status { .. }, Some(configured)) = (error, error.preview()) {
            let configured = match key {
                Some(key) if !key.reveal().is_empty() => {
                    configured.replace(key.reveal(), "[secret]")
                }
                _ => configured,
            };
            let configured = flowstone_flow::redact::cut(&configured, SAID);
            message = format!("{message}: {}", configured.trim());
        }
        EmbedError {
            code: "E0729",
            kind: error.code().1,
            message,
            hint: Some(error.hint()),
        }
    }
}

/// Returns the vectors of an answer in the order of the texts.
fn read(body: &[u8], count: usize) -> Option<Vec<Vec<f32>>> {
    let json: Json = serde_json::from_slice(body).ok()?;
    let rows = json.get("data")?.as_array()?;
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (place, row) in rows.iter().enumerate() {
        let idx = row.get("index").and_then(Json::as_u64);
        let idx = idx.map_or(Some(place), |idx| usize::try_from(idx).ok())?;
        let numbers = row.get("embedding")?.as_array()?.iter();
        let vector: Option<Vec<f32>> = numbers
            .map(|number| number.as_f64().map(|number| number as f32))
            .collect();
        *vectors.get_mut(idx)? = Some(vector?);
    }
    vectors.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use flowstone_lang::reader::read_data;

    use super::{batch, check_settings, read};

    #[test]
    fn answers_are_put_in_the_order_of_the_texts() {
        let body = br#"{"data": [{"index": 1, "embedding": [2, 3]}, {"index": 0, "embedding": [0, 1.5]}]}"#;
        assert_eq!(read(body, 2), Some(vec![vec![0.0, 1.5], vec![2.0, 3.0]]));
        for wrong in [
            &br#"{"data": [{"index": 0, "embedding": [1]}]}"#[..],
            br#"{"data": [{"index": 7, "embedding": [1]}, {"index": 0, "embedding": [1]}]}"#,
            br#"{"data": [{"embedding": ["a"]}, {"embedding": [1]}]}"#,
            br#"{"error": "no"}"#,
            b"not json",
        ] {
            assert_eq!(read(wrong, 2), None);
        }
    }

    #[test]
    fn requests_are_of_a_bounded_size() {
        let texts = |count: usize, length: usize| vec!["x".repeat(length); count];
        for (texts, expected) in [
            (texts(3, 10), 3),
            (texts(200, 10), 64),
            (texts(3, 40 << 10), 2),
            (texts(1, 1 << 20), 1),
        ] {
            assert_eq!(batch(&texts), expected);
        }
    }

    #[test]
    fn settings_are_checked() {
        let cases = [
            ("{}", ""),
            ("{:search {}}", ""),
            (
                "{:search {:embedder {:base-url \"http://localhost:1\" :model \"m\" :dimensions 3}}}",
                "",
            ),
            (
                "{:search {:embedder {:connection :openai :model \"m\"}}}",
                "",
            ),
            (
                "{:search {:embeder {}}}",
                "`flowstone.edn :search` has no key `:embeder`",
            ),
            (
                "{:search {:embedder {:connection :openai}}}",
                "`flowstone.edn :search :embedder` needs `:model`",
            ),
            (
                "{:search {:embedder {:connection :mine :model \"m\"}}}",
                "`flowstone.edn :search :embedder` names the connection `:mine`, which is not described",
            ),
            (
                "{:search {:embedder {:model \"m\" :dimensions 0 :base-url \"http://x\"}}}",
                "`flowstone.edn :search :embedder :dimensions` must be from 1 to 16384, and is 0",
            ),
            (
                "{:search {:embedder {:model \"m\" :base-url \"ftp://x\"}}}",
                "the address of `flowstone.edn :search :embedder` is not one of HTTP",
            ),
        ];
        for (settings, expected) in cases {
            let settings = read_data(settings).expect("well formed");
            let found = check_settings(&settings).err().unwrap_or_default();
            assert_eq!(found, expected);
        }
    }
}
