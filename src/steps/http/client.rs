//! Sends a request and brings back the answer, within limits.
//!
//! Redirects are followed here rather than by the client below, so that each hop is checked and no
//! secret goes to another host. Knows nothing of flows: plain data in and out.

use std::cell::OnceCell;
use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Url};
use tokio::time::{Instant, timeout_at};

use super::error::{Answer, HttpError, preview};
use super::guard::{self, GuardedResolver, Refused};

/// What to send, and how much to take.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    /// Headers that prove who we are: never sent to another host.
    pub secret_headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    pub limits: Limits,
}

/// The limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For all of it, redirects and body included.
    pub timeout: Duration,
    pub max_bytes: u64,
    pub max_redirects: usize,
    /// Also link-local and metadata addresses.
    pub allow_link_local: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            timeout: Duration::from_secs(60),
            max_bytes: 50 << 20,
            max_redirects: 10,
            allow_link_local: false,
        }
    }
}

/// An answer whose body is still to come.
pub struct Incoming {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub host: String,
    url: String,
    response: reqwest::Response,
    deadline: Instant,
    limits: Limits,
    received: Vec<u8>,
    got: u64,
}

/// Sends the request and collects the answer, whatever its status.
pub async fn send(request: Request) -> Result<Answer, HttpError> {
    open(request).await?.collect().await
}

/// Sends the request and returns when the headers of the final answer are there.
pub async fn open(mut request: Request) -> Result<Incoming, HttpError> {
    let deadline = Instant::now() + request.limits.timeout;
    let mut hops = 0;
    loop {
        let response = send_once(&request, deadline).await?;
        let Some(next) = redirect(&request, &response)? else {
            return Ok(Incoming::new(&request, response, deadline));
        };
        hops += 1;
        if hops > request.limits.max_redirects {
            return Err(HttpError::BadRedirect {
                host: host(&request.url),
                what: format!("more than {} times", request.limits.max_redirects),
            });
        }
        follow(&mut request, next, response.status().as_u16());
    }
}

async fn send_once(request: &Request, deadline: Instant) -> Result<reqwest::Response, HttpError> {
    let host = host(&request.url);
    if !request.limits.allow_link_local {
        guard::check_host(&request.url).map_err(refused)?;
    }
    let client = client(request.limits.allow_link_local)?;
    let headers = header_map(request.headers.iter().chain(&request.secret_headers))?;
    let mut builder = client
        .request(request.method.clone(), request.url.clone())
        .headers(headers);
    if let Some(body) = &request.body {
        builder = builder.body(body.clone());
    }
    match timeout_at(deadline, builder.send()).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(failed(host, &error)),
        Err(_) => Err(HttpError::TimedOut {
            host,
            limit: request.limits.timeout,
            status: None,
            preview: String::new(),
        }),
    }
}

/// Returns where an answer redirects to, checked; `None` when it is final.
fn redirect(request: &Request, response: &reqwest::Response) -> Result<Option<Url>, HttpError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get("location") else {
        return Ok(None);
    };
    let bad = |what: String| HttpError::BadRedirect {
        host: host(&request.url),
        what,
    };
    let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
    let next = request.url.join(&location).map_err(|error| {
        bad(format!(
            "to `{location}`, which is not an address ({error})"
        ))
    })?;
    if !matches!(next.scheme(), "http" | "https") {
        return Err(bad(format!("to `{next}`, which is not HTTP")));
    }
    if request.url.scheme() == "https" && next.scheme() == "http" {
        return Err(bad(format!("to `{next}`, from https down to http")));
    }
    Ok(Some(next))
}

/// Turns the request into the one for the next hop.
fn follow(request: &mut Request, next: Url, status: u16) {
    let drops_body = status == 303 || matches!(status, 301 | 302) && request.method == Method::POST;
    if drops_body && request.method != Method::HEAD {
        request.method = Method::GET;
        request.body = None;
        request
            .headers
            .retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
    }
    let same = request.url.origin() == next.origin();
    if !same {
        request.secret_headers.clear();
        let telling = ["authorization", "cookie", "proxy-authorization"];
        request
            .headers
            .retain(|(name, _)| !telling.contains(&name.to_ascii_lowercase().as_str()));
    }
    request.url = next;
}

impl Incoming {
    fn new(request: &Request, response: reqwest::Response, deadline: Instant) -> Incoming {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Incoming {
            status: response.status().as_u16(),
            headers: response
                .headers()
                .iter()
                .map(|(name, value)| (name.to_string(), text(value)))
                .collect(),
            host: host(&request.url),
            url: request.url.to_string(),
            response,
            deadline,
            limits: request.limits,
            received: Vec::new(),
            got: 0,
        }
    }

    /// Returns the next part of the body; `None` at its end. `idle` limits the wait for this part.
    pub async fn next(&mut self, idle: Option<Duration>) -> Result<Option<Vec<u8>>, HttpError> {
        let until = idle.map_or(self.deadline, |idle| {
            self.deadline.min(Instant::now() + idle)
        });
        let chunk = match timeout_at(until, self.response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return Ok(None),
            Ok(Err(error)) => return Err(self.cut_off(&error)),
            Err(_) => {
                let limit = if until < self.deadline {
                    idle.unwrap_or_default()
                } else {
                    self.limits.timeout
                };
                return Err(HttpError::TimedOut {
                    host: self.host.clone(),
                    limit,
                    status: Some(self.status),
                    preview: preview(&self.received),
                });
            }
        };
        self.got += chunk.len() as u64;
        if self.got > self.limits.max_bytes {
            return Err(HttpError::TooLarge {
                host: self.host.clone(),
                status: self.status,
                limit: self.limits.max_bytes,
            });
        }
        // The start is kept for errors; a stream may be long.
        if self.received.len() < 4096 {
            self.received.extend_from_slice(&chunk);
        }
        Ok(Some(chunk.to_vec()))
    }

    /// Reads the whole body.
    pub async fn collect(mut self) -> Result<Answer, HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.next(None).await? {
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status: self.status,
            headers: self.headers,
            body,
            url: self.url,
        })
    }

    fn cut_off(&self, error: &reqwest::Error) -> HttpError {
        HttpError::CutOff {
            host: self.host.clone(),
            status: Some(self.status),
            got: self.got,
            preview: preview(&self.received),
            cause: root_cause(error),
        }
    }
}

fn header_map<'a>(
    headers: impl Iterator<Item = &'a (String, String)>,
) -> Result<HeaderMap, HttpError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let bad = |what: &str| HttpError::BadRequest {
            message: format!("the {what} of the header `{name}` is not valid"),
        };
        let value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
        map.append(
            HeaderName::try_from(name.as_str()).map_err(|_| bad("name"))?,
            value,
        );
    }
    Ok(map)
}

/// Returns the host of an address, with its port when that is not the usual one.
pub fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or("the server");
    url.port()
        .map_or_else(|| host.to_string(), |port| format!("{host}:{port}"))
}

fn refused(refused: Refused) -> HttpError {
    HttpError::Refused {
        host: refused.host,
        address: refused.address,
    }
}

/// Names what went wrong before there was an answer.
fn failed(host: String, error: &reqwest::Error) -> HttpError {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref::<Refused>() {
            return HttpError::Refused {
                host: found.host.clone(),
                address: found.address,
            };
        }
        cause = inner.source();
    }
    let cause = root_cause(error);
    if error.is_connect() {
        let passing = !cause.contains("certificate");
        return HttpError::Unreachable {
            host,
            cause,
            passing,
        };
    }
    if error.is_builder() {
        return HttpError::BadRequest {
            message: format!("the request cannot be sent: {cause}"),
        };
    }
    HttpError::CutOff {
        host,
        status: None,
        got: 0,
        preview: String::new(),
        cause,
    }
}

/// Returns the innermost cause, which says most.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

thread_local! {
    /// One client for each thread: its connections belong to the thread's runtime.
    static GUARDED: OnceCell<Client> = const { OnceCell::new() };
    static OPEN: OnceCell<Client> = const { OnceCell::new() };
}

/// Returns this thread's client, made when it is first needed.
fn client(allow_link_local: bool) -> Result<Client, HttpError> {
    let slot = if allow_link_local { &OPEN } else { &GUARDED };
    slot.with(|slot| {
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = build(allow_link_local)?;
        Ok(slot.get_or_init(|| client).clone())
    })
}

fn build(allow_link_local: bool) -> Result<Client, HttpError> {
    // Fails when one is installed already, which is as good.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let builder = || {
        let builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("flowstone/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(10))
            .pool_idle_timeout(Duration::from_secs(30))
            .referer(false);
        if allow_link_local {
            builder
        } else {
            builder.dns_resolver(GuardedResolver)
        }
    };
    builder()
        .build()
        .or_else(|error| {
            // A bare container has no certificates of its own.
            tracing::debug!(%error, "the system's certificates cannot be used, taking the built-in ones");
            let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|der| reqwest::Certificate::from_der(der));
            let roots: Vec<_> = roots.collect::<Result<_, _>>()?;
            builder().tls_certs_only(roots).build()
        })
        .map_err(|error| HttpError::BadRequest { message: format!("no HTTPS client can be made: {}", root_cause(&error)) })
}
