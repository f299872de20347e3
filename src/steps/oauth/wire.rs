//! Requests to authorization servers: within the guard and the permissions of the project, and never recorded.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_flow::ports::Secret;
use flowstone_flow::redact::{Redactor, weakness};
use flowstone_flow::step::StepError;
use reqwest::{Method, Url};
use serde_json::Value as Json;

use super::error;
use crate::http::body::Body;
use crate::http::client::{self, Limits, Request};
use crate::http::error::{Answer, HttpError};
use crate::http::route::Route;

/// Maximum time of a request to an authorization server.
const TIMEOUT: Duration = Duration::from_secs(30);
const MOST_BYTES: u64 = 1 << 20;
/// Maximum lifetime that is believed: a year.
const MOST_S: i64 = 366 * 24 * 3600;

/// How authorization servers are reached.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    route: Route,
    redactor: Option<Arc<Redactor>>,
}

/// The identity at an authorization server.
#[derive(Clone)]
pub(super) struct Client {
    pub id: String,
    pub secret: Option<Secret>,
    /// Whether the secret is sent in a header rather than in the form.
    pub is_basic: bool,
}

/// Tokens that a server has granted.
pub(super) struct Granted {
    pub access_token: String,
    pub refresh_token: Option<String>,
    pub seconds: Option<i64>,
}

/// Why there are no tokens.
pub(super) enum Failure {
    /// The server answered with an error of OAuth.
    Refused {
        code: String,
        text: String,
    },
    Other(StepError),
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Failure {
        Failure::Other(error)
    }
}

impl Wire {
    pub(super) fn new(mut route: Route, redactor: Option<Arc<Redactor>>) -> Wire {
        // The hosts that a flow limits itself to are those of its own requests.
        route.guard.only = None;
        // Such an exchange contains nothing but secrets.
        route.exchanges = None;
        Wire { route, redactor }
    }

    fn request(
        &self,
        method: Method,
        url: &Url,
        headers: Vec<(String, String)>,
        (body, secret_headers): (Option<Vec<u8>>, Vec<(String, String)>),
    ) -> Request {
        Request {
            // Only what holds no secret may be moved elsewhere.
            limits: Limits {
                timeout: TIMEOUT,
                max_bytes: MOST_BYTES,
                max_redirects: if method == Method::GET { 5 } else { 0 },
            },
            method,
            url: url.clone(),
            headers,
            secret_headers,
            is_secret: body.is_some(),
            body,
            redactor: self.redactor.clone(),
            route: self.route.clone(),
            sent_ms: None,
            trace_parent: None,
            login: None,
        }
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: Vec<(String, String)>,
        body: (Option<Vec<u8>>, Vec<(String, String)>),
    ) -> Result<Answer, StepError> {
        let sent = client::send(self.request(method, url, headers, body));
        Ok(sent.await.map_err(without_preview)?)
    }

    /// Requests an address, and returns only the headers of the answer: its body may be a stream without an end.
    pub(super) async fn headers(&self, url: &Url) -> Result<Vec<(String, String)>, StepError> {
        let accept = "application/json, text/event-stream".to_owned();
        let headers = vec![("accept".to_owned(), accept)];
        let request = self.request(Method::GET, url, headers, (None, Vec::new()));
        let incoming = client::open(request).await.map_err(without_preview)?;
        Ok(incoming.headers)
    }

    /// Requests an address, whatever the status of the answer.
    pub(super) async fn get(&self, url: &Url, accept: &str) -> Result<Answer, StepError> {
        let headers = vec![("accept".to_owned(), accept.to_owned())];
        self.send(Method::GET, url, headers, (None, Vec::new()))
            .await
    }

    /// Sends a form as a client, and returns the answer's status and data.
    pub(super) async fn form(
        &self,
        url: &Url,
        client: &Client,
        mut form: Vec<(&str, String)>,
    ) -> Result<(u16, Json), StepError> {
        let mut secret_headers = Vec::new();
        match &client.secret {
            Some(secret) if client.is_basic => {
                let encoded = |text: &str| {
                    let body = Body::form(&[(String::new(), text.to_owned())]).bytes;
                    String::from_utf8_lossy(&body[1..]).into_owned()
                };
                let pair = format!("{}:{}", encoded(&client.id), encoded(secret.reveal()));
                let value = format!("Basic {}", STANDARD.encode(pair));
                secret_headers.push(("authorization".to_owned(), value));
            }
            secret => {
                form.push(("client_id", client.id.clone()));
                form.extend(
                    secret
                        .as_ref()
                        .map(|it| ("client_secret", it.reveal().to_owned())),
                );
            }
        }
        let form: Vec<(String, String)> = form
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let body = Body::form(&form);
        let headers = vec![
            ("accept".to_owned(), "application/json".to_owned()),
            ("content-type".to_owned(), body.content_type),
        ];
        let body = (Some(body.bytes), secret_headers);
        let answer = self.send(Method::POST, url, headers, body).await?;
        Ok((answer.status, data(&answer)))
    }

    /// Sends data, and returns the answer's status and data.
    pub(super) async fn json(&self, url: &Url, json: &Json) -> Result<(u16, Json), StepError> {
        let headers =
            ["accept", "content-type"].map(|name| (name.to_owned(), "application/json".to_owned()));
        let body = Some(json.to_string().into_bytes());
        let sent = self.send(Method::POST, url, headers.to_vec(), (body, Vec::new()));
        let answer = sent.await?;
        Ok((answer.status, data(&answer)))
    }

    /// Requests tokens.
    pub(super) async fn token(
        &self,
        url: &Url,
        client: &Client,
        form: Vec<(&str, String)>,
    ) -> Result<Granted, Failure> {
        let (status, answer) = self.form(url, client, form).await?;
        // Some servers answer an error with status 200.
        let is_broken = status >= 500;
        if let Some(code) = answer["error"].as_str().filter(|code| {
            !is_broken && !["server_error", "temporarily_unavailable"].contains(code)
        }) {
            return Err(Failure::Refused {
                code: code.to_owned(),
                text: reason(&answer),
            });
        }
        let host = client::host(url);
        if status != 200 {
            let message = format!("the authorization server {host} answers with status {status}");
            let error = error::no_server(message);
            let may_recover = is_broken || status == 429 || answer["error"].is_string();
            return Err(Failure::Other(match may_recover {
                true => error.retry(flowstone_flow::step::Retry::Backoff),
                false => error,
            }));
        }
        granted(&answer)
            .map_err(|why| Failure::Other(error::no_server(format!("the answer of {host} {why}"))))
    }
}

/// Reads the answer of a token endpoint.
fn granted(answer: &Json) -> Result<Granted, &'static str> {
    let text = |key: &str| answer[key].as_str().filter(|it| !it.is_empty());
    let access_token = text("access_token").ok_or("has no `access_token`")?;
    let is_visible = |byte: u8| (0x21..=0x7e).contains(&byte);
    if !access_token.bytes().all(is_visible) || weakness(access_token).is_some() {
        return Err("has an `access_token` that cannot be used");
    }
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err("has a token that is not a bearer token");
    }
    Ok(Granted {
        access_token: access_token.to_owned(),
        refresh_token: text("refresh_token").map(str::to_owned),
        seconds: seconds(&answer["expires_in"]),
    })
}

/// Reads a number of seconds, which some servers send as text.
pub(super) fn seconds(value: &Json) -> Option<i64> {
    let number = match value {
        Json::String(text) => text.parse().ok(),
        other => other.as_i64(),
    };
    number.map(|seconds| seconds.clamp(0, MOST_S))
}

/// Returns the error that an answer names, as text.
pub(super) fn reason(answer: &Json) -> String {
    let text = |key: &str| answer[key].as_str().map(error::quoted);
    match (text("error"), text("error_description")) {
        (Some(code), Some(text)) => format!("{text} ({code})"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => "it gives no reason".to_owned(),
    }
}

/// Removes what was received of an answer from an error: it may be part of a token.
fn without_preview(error: HttpError) -> HttpError {
    match error {
        HttpError::CutOff {
            host,
            status,
            got,
            cause,
            ..
        } => HttpError::CutOff {
            host,
            status,
            got,
            cause,
            preview: String::new(),
        },
        HttpError::TimedOut {
            host,
            limit,
            status,
            ..
        } => HttpError::TimedOut {
            host,
            limit,
            status,
            preview: String::new(),
        },
        other => other,
    }
}

fn data(answer: &Answer) -> Json {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

/// Parses the address of an authorization server: HTTPS, except on this machine.
pub(super) fn parsed(text: &str) -> Result<Url, StepError> {
    let shown = error::quoted(&crate::shown_url::without_password(text));
    let wrong = |why: &str| error::no_server(format!("the address {shown:?} {why}"));
    let url = Url::parse(text).map_err(|_| wrong("is not an address"))?;
    let is_here = crate::guard::is_local_name(url.host_str().unwrap_or_default())
        || crate::guard::literal(&url)
            .is_some_and(|it| crate::guard::zone(it) == crate::guard::Zone::Loopback);
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("contains a password"));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_here => Ok(url),
        _ => Err(wrong("is not one of HTTPS")),
    }
}
