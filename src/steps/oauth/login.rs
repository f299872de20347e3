//! `flowstone connections login` and `logout`: with a browser on this machine (RFC 8252), or with a code on any other (RFC
//! 8628).

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flowstone_flow::flow::Flow;
use flowstone_flow::ports::Secret;
use flowstone_flow::step::{Gate, StepError};
use flowstone_lang::value::Value;
use flowstone_model::ports::Secrets;
use reqwest::Url;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use super::OAuth;
use super::error;
use super::kept::{Login, LoginReport, Place, state};
use super::metadata::{Server, discover};
use super::redirect::{self, Door, Expected};
use super::wire::{Client, Failure, Granted, Wire, parsed, reason, seconds};
use crate::connections::{Auth, resolve};
use crate::guard::host_of;
use crate::http::settings::usual_of;

/// The grant of a device.
const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The interval of questions if the server names none, and what it grows by.
const INTERVAL: Duration = Duration::from_secs(5);
/// Maximum interval that a server can ask for.
const MOST_INTERVAL: Duration = Duration::from_secs(60);

/// What a login is made with.
pub struct LoginSources<'a> {
    pub settings: &'a Value,
    pub profile: Option<&'a str>,
    pub secrets: &'a dyn Secrets,
    pub root: &'a Path,
    pub home: &'a Path,
    /// The permissions of the project.
    pub gate: &'a Gate,
    pub now_ms: &'a dyn Fn() -> i64,
}

/// How to log in.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    pub name: String,
    /// With a code, on any machine.
    pub is_device: bool,
    /// The port that the browser comes back to; 0 is any.
    pub port: u16,
    pub limit: Duration,
}

impl LoginOptions {
    /// Nothing beyond the name of the connection.
    fn plain(name: &str) -> LoginOptions {
        LoginOptions {
            name: name.to_owned(),
            is_device: false,
            port: 0,
            limit: Duration::ZERO,
        }
    }
}

/// What a person has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginNote {
    /// Open this address in a browser of this machine.
    Open(String),
    /// Open this address anywhere, and enter the code there.
    Enter {
        url: String,
        code: String,
        /// The address with the code.
        whole: Option<String>,
    },
}

/// A login that is being made.
struct Making<'a> {
    oauth: OAuth,
    base: Url,
    is_mcp: bool,
    wire: Wire,
    around: &'a LoginSources<'a>,
    options: &'a LoginOptions,
}

/// Logs in for a connection, and keeps the tokens.
///
/// # Errors
/// E1315 to E1319.
pub async fn login(
    around: &LoginSources<'_>,
    options: &LoginOptions,
    tell: &mut dyn FnMut(&LoginNote),
) -> Result<LoginReport, StepError> {
    let making = Making::new(around, options)?;
    // Before anybody is asked.
    let place = Place::of(around.home, &making.oauth)?;
    let server = discover(&making.wire, &making.oauth, (&making.base, making.is_mcp)).await?;
    let is_device = match (options.is_device, &server.authorization, &server.device) {
        (true, _, None) => {
            return Err(
                error::no_server("the authorization server has no login with a code")
                    .hint("log in without `--device`"),
            );
        }
        (false, None, None) => {
            return Err(error::no_server(
                "the authorization server has neither an authorization endpoint nor one for devices",
            ));
        }
        (true, ..) | (false, None, _) => true,
        (false, ..) => false,
    };
    let (client, granted) = match (is_device, &server.authorization) {
        (false, Some(_)) => making.by_browser(&server, tell).await?,
        _ => making.by_code(&server, tell).await?,
    };
    making.keep(&place, server, client, granted).await
}

/// A login whose person is at the login page of the authorization server.
pub struct BegunLogin {
    /// The name of the connection.
    pub name: String,
    /// The address of the login page.
    pub url: String,
    /// What the answer of the authorization server has to repeat. Nobody can guess it.
    pub state: String,
    redirect: String,
    verifier: String,
    client: Client,
    server: Server,
}

/// Begins a login whose person comes back to an address of a server of the project. [`finish`] makes it.
///
/// # Errors
/// As [`login`], and E1315 when the authorization server has no login page.
pub async fn begin(
    around: &LoginSources<'_>,
    name: &str,
    redirect: String,
) -> Result<BegunLogin, StepError> {
    let options = LoginOptions::plain(name);
    let making = Making::new(around, &options)?;
    // Before anybody is asked.
    Place::of(around.home, &making.oauth)?;
    let server = discover(&making.wire, &making.oauth, (&making.base, making.is_mcp)).await?;
    making.begin(server, redirect).await
}

/// Makes a login from the query of the address that its person came back with, and keeps the tokens.
///
/// # Errors
/// E1315 to E1317, and E1319.
pub async fn finish(
    around: &LoginSources<'_>,
    begun: BegunLogin,
    query: &str,
) -> Result<LoginReport, StepError> {
    let options = LoginOptions::plain(&begun.name);
    let making = Making::new(around, &options)?;
    let place = Place::of(around.home, &making.oauth)?;
    let code = redirect::code_of(query, &begun.expected())?;
    let granted = making.exchange(&begun, code).await?;
    making
        .keep(&place, begun.server, begun.client, granted)
        .await
}

impl BegunLogin {
    fn expected(&self) -> Expected<'_> {
        Expected {
            state: &self.state,
            issuer: self.server.issuer.as_deref(),
        }
    }
}

/// Deletes the login of a connection, and asks the authorization server to end it. Tells whether there was one, and
/// whether its end is known to the server.
///
/// # Errors
/// E1319 when the file cannot be deleted.
pub async fn logout(around: &LoginSources<'_>, name: &str) -> Result<(bool, bool), StepError> {
    let options = LoginOptions::plain(name);
    let making = Making::new(around, &options)?;
    let place = Place::of(around.home, &making.oauth)?;
    let _lock = place.lock().await?;
    // A file that cannot be read is deleted too.
    let login = place.read().ok().flatten();
    let is_there = login.is_some();
    place.delete()?;
    let ended = match login {
        Some(login) => making.revoke(&login).await.unwrap_or(false),
        None => false,
    };
    Ok((is_there, ended))
}

impl<'a> Making<'a> {
    fn new(
        around: &'a LoginSources<'a>,
        options: &'a LoginOptions,
    ) -> Result<Making<'a>, StepError> {
        let bare = Flow::bare("none", Value::Nil);
        let connection = resolve(around.settings, &bare, &options.name)?;
        let Auth::Login(oauth) = &connection.auth else {
            let message = format!("the connection `:{}` has no login", options.name);
            return Err(StepError::config("E0753", message)
                .hint("give it `:auth {:type :oauth}` in flowstone.edn"));
        };
        let oauth = (**oauth).clone();
        let base = oauth.base()?;
        let mut route = usual_of(around.settings, around.root, &connection)?.route;
        route.guard.net = around.gate.net();
        Ok(Making {
            is_mcp: connection.backend.as_deref() == Some("mcp"),
            wire: Wire::new(route, None),
            oauth,
            base,
            around,
            options,
        })
    }

    fn scope(&self, server: &Server) -> Option<String> {
        let scopes = match self.oauth.scopes.is_empty() {
            true => &server.scopes,
            false => &self.oauth.scopes,
        };
        (!scopes.is_empty()).then(|| scopes.join(" "))
    }

    /// Returns the client: that of the settings, or one that is registered now (RFC 7591).
    async fn client(&self, server: &Server, redirect: Option<&str>) -> Result<Client, StepError> {
        if let Some(id) = &self.oauth.client_id {
            return Ok(Client {
                id: id.clone(),
                secret: self.secret(&server.token)?,
                is_basic: server.is_basic,
            });
        }
        let Some(url) = &server.registration else {
            return Err(error::no_server(
                "the authorization server does not register clients by itself",
            )
            .hint("register Flowstone there, and write the id of the client in `:auth`: `:client-id \"...\"`")
            .hint("for a login with a browser, the redirect address is http://127.0.0.1/callback"));
        };
        let grant = match redirect {
            Some(_) => "authorization_code",
            None => DEVICE,
        };
        let mut about = json!({
            "client_name": "Flowstone",
            "grant_types": [grant, "refresh_token"],
            "token_endpoint_auth_method": "none",
        });
        if let Some(redirect) = redirect {
            about["redirect_uris"] = json!([redirect]);
            about["response_types"] = json!(["code"]);
        }
        if let Some(scope) = self.scope(server) {
            about["scope"] = json!(scope);
        }
        let (status, answer) = self.wire.json(url, &about).await?;
        match answer["client_id"].as_str() {
            Some(id) if status < 300 => Ok(Client {
                id: id.to_owned(),
                secret: answer["client_secret"].as_str().map(Secret::new),
                is_basic: server.is_basic,
            }),
            _ => Err(error::refused(
                "the authorization server does not register Flowstone as a client",
                &reason(&answer),
            )
            .hint("register it there yourself, and write `:client-id \"...\"` in `:auth`")),
        }
    }

    /// Returns the secret of the client that the settings name.
    fn secret(&self, url: &Url) -> Result<Option<Secret>, StepError> {
        let Some(name) = &self.oauth.client_secret else {
            return Ok(None);
        };
        self.around.gate.secret(name, &host_of(url))?;
        let found = self.around.secrets.find_in(self.around.profile, name);
        found.map(Some).ok_or_else(|| {
            let message = format!(
                "the secret `{name}`, which `:{}` needs, is not set",
                self.options.name
            );
            StepError::new("E0752", "missing-secret", message)
        })
    }

    async fn by_browser(
        &self,
        server: &Server,
        tell: &mut dyn FnMut(&LoginNote),
    ) -> Result<(Client, Granted), StepError> {
        let door = Door::open(self.options.port).await?;
        let begun = self.begin(server.clone(), door.uri.clone()).await?;
        tell(&LoginNote::Open(begun.url.clone()));
        let code = door.code(&begun.expected(), self.options.limit).await?;
        let granted = self.exchange(&begun, code).await?;
        Ok((begun.client, granted))
    }

    /// Makes the address of the login page, and what must be known when its answer comes.
    async fn begin(&self, server: Server, redirect: String) -> Result<BegunLogin, StepError> {
        let mut url = server
            .authorization
            .clone()
            .ok_or_else(|| error::no_server("the authorization server has no login page"))?;
        let client = self.client(&server, Some(&redirect)).await?;
        let (state, verifier) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", &redirect)
                .append_pair("state", &state)
                .append_pair("code_challenge", &challenge)
                .append_pair("code_challenge_method", "S256");
            if let Some(scope) = self.scope(&server) {
                query.append_pair("scope", &scope);
            }
            if let Some(resource) = &server.resource {
                query.append_pair("resource", resource);
            }
        }
        Ok(BegunLogin {
            name: self.options.name.clone(),
            url: url.into(),
            state,
            redirect,
            verifier,
            client,
            server,
        })
    }

    /// Exchanges the code of an answer for tokens.
    async fn exchange(&self, begun: &BegunLogin, code: String) -> Result<Granted, StepError> {
        let mut form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code),
            ("redirect_uri", begun.redirect.clone()),
            ("code_verifier", begun.verifier.clone()),
        ];
        form.extend(begun.server.resource.clone().map(|it| ("resource", it)));
        let granted = self.wire.token(&begun.server.token, &begun.client, form);
        granted.await.map_err(no_token)
    }

    /// Keeps the tokens of a new login.
    async fn keep(
        &self,
        place: &Place,
        server: Server,
        client: Client,
        granted: Granted,
    ) -> Result<LoginReport, StepError> {
        let is_registered = self.oauth.client_id.is_none();
        let new = Login {
            connection: self.options.name.clone(),
            base_url: self.base.to_string(),
            token_endpoint: server.token.to_string(),
            revocation_endpoint: server.revocation.as_ref().map(Url::to_string),
            client_secret: client
                .secret
                .filter(|_| is_registered)
                .map(|it| it.reveal().to_owned()),
            client_id: client.id,
            is_basic: server.is_basic,
            resource: server.resource,
            access_token: String::new(),
            refresh_token: None,
            renew_at_ms: None,
            expires_at_ms: None,
            is_refused: false,
        };
        let now_ms = (self.around.now_ms)();
        let _lock = place.lock().await?;
        place.write(&new.renewed(granted, now_ms))?;
        state(self.around.home, &self.oauth, now_ms)
    }

    async fn by_code(
        &self,
        server: &Server,
        tell: &mut dyn FnMut(&LoginNote),
    ) -> Result<(Client, Granted), StepError> {
        let Some(device) = &server.device else {
            return Err(error::no_server(
                "the authorization server has no login with a code",
            ));
        };
        let client = self.client(server, None).await?;
        let mut form = Vec::new();
        form.extend(self.scope(server).map(|it| ("scope", it)));
        form.extend(server.resource.clone().map(|it| ("resource", it)));
        let (status, answer) = self.wire.form(device, &client, form).await?;
        let text = |key: &str| answer[key].as_str().filter(|it| !it.is_empty());
        let url = text("verification_uri").or(text("verification_url"));
        let (Some(code), Some(shown), Some(url), 200) =
            (text("device_code"), text("user_code"), url, status)
        else {
            return Err(error::refused(
                "the authorization server begins no login with a code",
                &reason(&answer),
            ));
        };
        let whole = text("verification_uri_complete").map(parsed).transpose()?;
        tell(&LoginNote::Enter {
            url: parsed(url)?.to_string(),
            code: error::quoted(shown),
            whole: whole.map(|it| it.to_string()),
        });
        let granted = self.poll(server, &client, code, &answer).await?;
        Ok((client, granted))
    }

    /// Asks for the tokens until the person has answered.
    async fn poll(
        &self,
        server: &Server,
        client: &Client,
        code: &str,
        answer: &Json,
    ) -> Result<Granted, StepError> {
        let duration = |key: &str| seconds(&answer[key]).map(|it| Duration::from_secs(it as u64));
        let mut interval = duration("interval").unwrap_or(INTERVAL).min(MOST_INTERVAL);
        interval = interval.max(Duration::from_secs(1));
        let life = duration("expires_in").unwrap_or(self.options.limit);
        let limit = life.min(self.options.limit);
        let until = Instant::now() + limit;
        loop {
            if Instant::now() + interval > until {
                sleep(until.saturating_duration_since(Instant::now())).await;
                return Err(error::too_late(format!(
                    "the code was not entered within {} s",
                    limit.as_secs()
                )));
            }
            sleep(interval).await;
            let form = vec![
                ("grant_type", DEVICE.to_owned()),
                ("device_code", code.to_owned()),
            ];
            match self.wire.token(&server.token, client, form).await {
                Ok(granted) => return Ok(granted),
                Err(Failure::Refused { code, text }) => match code.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => interval = (interval + INTERVAL).min(MOST_INTERVAL),
                    "expired_token" => {
                        return Err(error::too_late("the code has expired"));
                    }
                    _ => {
                        return Err(error::refused(
                            "the authorization server refuses the login",
                            &text,
                        ));
                    }
                },
                // It may be back in a moment.
                Err(Failure::Other(error)) if error.retry != flowstone_flow::step::Retry::Never => {
                    interval = (interval * 2).min(MOST_INTERVAL);
                }
                Err(Failure::Other(error)) => return Err(error),
            }
        }
    }

    /// Asks the authorization server to end a login (RFC 7009). Tells whether it has.
    async fn revoke(&self, login: &Login) -> Result<bool, StepError> {
        let Some(url) = login.revocation_endpoint.as_deref() else {
            return Ok(false);
        };
        let url = parsed(url)?;
        let client = Client {
            id: login.client_id.clone(),
            secret: match &login.client_secret {
                Some(secret) => Some(Secret::new(secret.as_str())),
                None => self.secret(&url)?,
            },
            is_basic: login.is_basic,
        };
        let (token, hint) = match &login.refresh_token {
            Some(token) => (token, "refresh_token"),
            None => (&login.access_token, "access_token"),
        };
        let form = vec![
            ("token", token.clone()),
            ("token_type_hint", hint.to_owned()),
        ];
        let (status, _) = self.wire.form(&url, &client, form).await?;
        Ok(status < 300)
    }
}

fn no_token(failure: Failure) -> StepError {
    match failure {
        Failure::Refused { text, .. } => {
            error::refused("the authorization server gives no token", &text)
        }
        Failure::Other(error) => error,
    }
}

/// Returns 256 random bits as text.
fn random() -> Result<String, StepError> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| error::no_server("the operating system gives no random bytes"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
