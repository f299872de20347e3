//! `:auth {:type :oauth}`: tokens that a person obtains once with `flowstone connections login`, and that are renewed
//! here.
//!
//! A login is a file below the project's data, for one connection and its `:base-url`. Tokens are never values: they are
//! read when a request is made, and removed from everything that a step returns. Of several callers that find an expired
//! token, in this process or another, one renews it, and the others use what it wrote.

pub(crate) mod error;
mod kept;
mod login;
mod metadata;
mod redirect;
mod wire;

use std::path::Path;
use std::sync::Arc;

use flowstone_flow::permission::{Host, NetAllow, NetRow};
use flowstone_flow::ports::Secret;
use flowstone_flow::step::{StepContext, StepError};
use reqwest::Url;

use crate::connections::{Auth, Connection};
use crate::fields::Fields;
use crate::guard::host_of;
use crate::http::client::{self, Incoming, Request};
use crate::http::error::HttpError;
use crate::http::route::Route;
use crate::http::settings;

pub(crate) use kept::state;
use kept::{Login, Place};
pub use kept::{LoginReport, LoginState};
pub use login::{BegunLogin, LoginNote, LoginOptions, LoginSources, begin, finish, login, logout};
use wire::{Client, Wire};

/// The settings of `:auth {:type :oauth}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuth {
    pub client_id: Option<String>,
    /// The name of the secret of a client that has one.
    pub client_secret: Option<String>,
    pub scopes: Vec<String>,
    /// The authorization server. Otherwise the server of the connection is asked for it.
    pub issuer: Option<String>,
    pub authorization_endpoint: Option<String>,
    pub device_authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    /// The connection that the login is for; empty for a step's own `:auth`.
    pub connection: String,
    pub base_url: Option<String>,
}

impl OAuth {
    pub(crate) fn read(fields: Fields<'_>) -> Result<OAuth, StepError> {
        let text = |key| Ok::<_, StepError>(fields.text(key)?.map(str::to_owned));
        Ok(OAuth {
            client_id: text("client-id")?,
            client_secret: fields
                .name("client-secret-ref")?
                .map(|name| name.to_string()),
            scopes: fields.texts("scopes")?,
            issuer: text("issuer")?,
            authorization_endpoint: text("authorization-endpoint")?,
            device_authorization_endpoint: text("device-authorization-endpoint")?,
            token_endpoint: text("token-endpoint")?,
            ..OAuth::default()
        })
    }

    /// Returns the address of the connection, which its login belongs to.
    fn base(&self) -> Result<Url, StepError> {
        if self.connection.is_empty() {
            return Err(StepError::config(
                "E0753",
                "`:auth {:type :oauth}` is for a connection of flowstone.edn, not for a single step",
            ));
        }
        let base = self.base_url.as_deref();
        let base = base.ok_or_else(|| {
            let message = format!(
                "the connection `:{}` needs a `:base-url` for `:auth {{:type :oauth}}`",
                self.connection
            );
            StepError::config("E0753", message)
        })?;
        Url::parse(base).map_err(|error| {
            let message = format!("`:base-url` of `:{}`: {error}", self.connection);
            StepError::config("E0753", message)
        })
    }

    /// Returns the header with the token as it is now. [`freshen`] is called before.
    pub(crate) fn header(
        &self,
        cx: &StepContext,
        host: &Host,
    ) -> Result<(String, String), StepError> {
        if is_replay(cx) {
            // A replay sends nothing and needs no token.
            return Ok(authorization("[secret]"));
        }
        let base = self.base()?;
        cx.gate().secret(&self.connection, host)?;
        if host_of(&base) != *host {
            return Err(error::other_host(&self.connection, host));
        }
        let login = Place::of(cx.home(), self)?.read()?;
        let login = login.ok_or_else(|| error::not_logged_in(&self.connection))?;
        cx.hide(&Secret::new(login.access_token.as_str()));
        Ok(authorization(&login.access_token))
    }
}

fn authorization(token: &str) -> (String, String) {
    ("authorization".to_owned(), format!("Bearer {token}"))
}

fn is_replay(cx: &StepContext) -> bool {
    cx.exchanges()
        .is_some_and(|exchanges| exchanges.is_replay())
}

/// What the use of a login needs of a step, or of the embedder of a project.
pub(crate) trait Borrower {
    fn home(&self) -> &Path;

    fn now_ms(&self) -> i64;

    /// Removes a text from all that is reported.
    fn hide(&self, text: &str);

    /// Checks that the login of a connection may be used for a host.
    fn admit(&self, connection: &str, host: &Host) -> Result<(), StepError>;

    /// Returns the secret of the client of a connection, for a host.
    fn client_secret(&self, connection: &str, name: &str, host: &Host)
    -> Result<Secret, StepError>;
}

impl Borrower for StepContext {
    fn home(&self) -> &Path {
        StepContext::home(self)
    }

    fn now_ms(&self) -> i64 {
        StepContext::now_ms(self)
    }

    fn hide(&self, text: &str) {
        StepContext::hide(self, &Secret::new(text));
    }

    fn admit(&self, connection: &str, host: &Host) -> Result<(), StepError> {
        self.gate().secret(connection, host)
    }

    fn client_secret(
        &self,
        connection: &str,
        name: &str,
        host: &Host,
    ) -> Result<Secret, StepError> {
        let found = self.secret_for(name, host)?;
        found.ok_or_else(|| crate::connections::missing_secret(self, name, connection))
    }
}

/// Returns the token of a login for requests to a server outside of a step, after it was renewed if that is due or a server refused it.
///
/// # Errors
/// When nobody is logged in, the login is for another server, or the authorization server does not renew the token.
pub(crate) async fn token(
    user: &dyn Borrower,
    oauth: &OAuth,
    (mut route, host): (Route, &Host),
    refused: Option<&str>,
) -> Result<Secret, StepError> {
    let name = &oauth.connection;
    if host_of(&oauth.base()?) != *host {
        return Err(error::other_host(name, host));
    }
    let login = Place::of(user.home(), oauth)?.read()?;
    let login = login.ok_or_else(|| error::not_logged_in(name))?;
    // The server of the tokens was found when somebody logged in.
    route.guard.net = Arc::new(NetAllow {
        rows: vec![NetRow::of(&host_of(&wire::parsed(&login.token_endpoint)?))],
        ..NetAllow::default()
    });
    let lent = Lent {
        oauth: oauth.clone(),
        wire: Wire::new(route, None),
    };
    let login = lent.current(user, refused).await?;
    Ok(Secret::new(login.access_token.as_str()))
}

/// The login that a request uses, to renew its token once if the server refuses it.
#[derive(Clone, Debug)]
pub struct Lent {
    oauth: OAuth,
    wire: Wire,
}

impl Lent {
    /// Returns the login of a connection; `None` if it uses none.
    pub(crate) fn of(cx: &StepContext, connection: &Connection) -> Result<Option<Lent>, StepError> {
        let Auth::Login(oauth) = &connection.auth else {
            return Ok(None);
        };
        Ok(Some(Lent {
            oauth: (**oauth).clone(),
            wire: Wire::new(settings::usual(cx, connection)?.route, Some(cx.redactor())),
        }))
    }

    /// Returns the login with a token that is not about to expire, and is not the one that a server has just refused.
    async fn current(&self, cx: &dyn Borrower, refused: Option<&str>) -> Result<Login, StepError> {
        let name = &self.oauth.connection;
        cx.admit(name, &host_of(&self.oauth.base()?))?;
        let place = Place::of(cx.home(), &self.oauth)?;
        let missing = || error::not_logged_in(name);
        let login = place.read()?.ok_or_else(missing)?;
        if login.is_usable(cx.now_ms(), refused) {
            return Ok(login);
        }
        let _lock = place.lock().await?;
        // Meanwhile another caller may have renewed it.
        let login = place.read()?.ok_or_else(missing)?;
        if login.is_usable(cx.now_ms(), refused) {
            return Ok(login);
        }
        self.renew(cx, &place, login, refused).await
    }

    async fn renew(
        &self,
        cx: &dyn Borrower,
        place: &Place,
        login: Login,
        refused: Option<&str>,
    ) -> Result<Login, StepError> {
        let name = &self.oauth.connection;
        for text in login.secrets() {
            cx.hide(text);
        }
        let is_refused = refused == Some(login.access_token.as_str());
        let still_works = !is_refused && !login.is_over(cx.now_ms());
        let Some(token) = login.refresh_token.clone().filter(|_| !login.is_refused) else {
            return match still_works && !login.is_refused {
                true => Ok(login),
                false => Err(error::expired(name)),
            };
        };
        let url = wire::parsed(&login.token_endpoint)?;
        let secret = match &self.oauth.client_secret {
            Some(secret) => Some(cx.client_secret(name, secret, &host_of(&url))?),
            None => login.client_secret.as_deref().map(Secret::new),
        };
        let client = Client {
            id: login.client_id.clone(),
            secret,
            is_basic: login.is_basic,
        };
        let mut form = vec![("grant_type", "refresh_token".to_owned())];
        form.push(("refresh_token", token));
        form.extend(login.resource.clone().map(|it| ("resource", it)));
        match self.wire.token(&url, &client, form).await {
            Ok(granted) => {
                let renewed = login.renewed(granted, cx.now_ms());
                for text in renewed.secrets() {
                    cx.hide(text);
                }
                place.write(&renewed)?;
                tracing::debug!(target: "flowstone::oauth", connection = %name, "renewed the token");
                Ok(renewed)
            }
            // The server may be back before the token ends.
            Err(wire::Failure::Other(_)) if still_works => Ok(login),
            Err(wire::Failure::Other(error)) => Err(error),
            Err(wire::Failure::Refused { code, text }) => {
                if code == "invalid_grant" {
                    place.write(&Login {
                        is_refused: true,
                        ..login
                    })?;
                }
                Err(error::refresh_refused(name, &text))
            }
        }
    }

    /// Returns the header with a token that is not about to expire.
    pub(crate) async fn fresh(&self, cx: &StepContext) -> Result<(String, String), StepError> {
        if is_replay(cx) {
            return Ok(authorization("[secret]"));
        }
        let login = self.current(cx, None).await?;
        cx.hide(&Secret::new(login.access_token.as_str()));
        Ok(authorization(&login.access_token))
    }

    /// Renews the token that a server refused, and returns the header with the new one.
    pub(crate) async fn renewed(
        &self,
        cx: &StepContext,
        refused: &str,
    ) -> Result<(String, String), StepError> {
        if is_replay(cx) {
            return Ok(authorization("[secret]"));
        }
        let login = self.current(cx, Some(refused)).await?;
        cx.hide(&Secret::new(login.access_token.as_str()));
        Ok(authorization(&login.access_token))
    }
}

/// Renews the token of a connection if it is about to expire. Connections of other kinds need nothing.
///
/// # Errors
/// E1314 when nobody is logged in, or the authorization server does not renew the token.
pub(crate) async fn freshen(cx: &StepContext, connection: &Connection) -> Result<(), StepError> {
    match Lent::of(cx, connection)? {
        Some(lent) if !is_replay(cx) => lent.current(cx, None).await.map(drop),
        Some(_) | None => Ok(()),
    }
}

/// The header of a token in a list of headers.
pub(crate) fn token_of(headers: &[(String, String)]) -> Option<&str> {
    let mut found = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    found.next()?.1.strip_prefix("Bearer ")
}

/// Replaces the token in a list of headers.
pub(crate) fn replace(headers: &mut Vec<(String, String)>, header: (String, String)) {
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
    headers.push(header);
}

/// Sends a request, and once more with a new token if the server refuses the token of a login.
///
/// # Errors
/// The outer one when there is no new token, the inner one when the request fails.
pub(crate) async fn open(
    cx: &StepContext,
    request: Request,
) -> Result<Result<Incoming, HttpError>, StepError> {
    let Some(lent) = request.login.clone() else {
        return Ok(client::open(request).await);
    };
    let Some(used) = token_of(&request.secret_headers).map(str::to_owned) else {
        return Ok(client::open(request).await);
    };
    let mut again = request.clone();
    match client::open(request).await {
        // A redirect may have led to a server that never saw the token.
        Ok(incoming) if incoming.status == 401 => {
            drop(incoming);
            let header = lent.renewed(cx, &used).await?;
            again.redactor = Some(cx.redactor());
            replace(&mut again.secret_headers, header);
            Ok(client::open(again).await)
        }
        other => Ok(other),
    }
}
