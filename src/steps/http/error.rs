//! Errors between this machine and a server, named so that a flow and a person can act on them.

use std::net::IpAddr;
use std::time::Duration;

use flowstone_flow::permission::{Host, Missing, Need, Reach};
use flowstone_flow::ports::{ExchangeError, StoreError};
use flowstone_flow::step::StepError;

use super::tls::Fault;
use crate::guard::{Refused, Why};

/// Maximum `Retry-After` of a server.
const YEAR: Duration = Duration::from_secs(366 * 86_400);

/// Maximum size of an error's body that is kept for messages.
pub const MOST_SHOWN: usize = 64 << 10;

/// The reason why a request has no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("`{url}` is not a valid address: {why}")]
    BadUrl { url: String, why: String },
    #[error("{message}")]
    BadRequest { message: String },
    #[error("{}{} {}", .0.host, at(&.0.host, .0.address), refusal(.0.why))]
    Refused(Refused),
    #[error("{host} cannot be trusted: {}", fault.message)]
    Untrusted { host: String, fault: Fault },
    #[error("{host} cannot be reached: {cause}")]
    Unreachable {
        host: String,
        cause: String,
        is_transient: bool,
    },
    #[error("no file handle is left for a connection to {host}")]
    NoHandle { host: String },
    #[error("{host} did not {} within {}", if status.is_some() { "finish its answer" } else { "answer" }, seconds(*limit))]
    TimedOut {
        host: String,
        limit: Duration,
        status: Option<u16>,
        preview: String,
    },
    #[error("{host} answered {status}{}", reason(*status))]
    Status {
        host: String,
        answer: Box<Answer>,
        status: u16,
    },
    #[error("{host} {}", broke(*status, *got, cause))]
    CutOff {
        host: String,
        status: Option<u16>,
        got: u64,
        preview: String,
        cause: String,
    },
    #[error("the answer of {host} is larger than {limit} bytes")]
    TooLarge {
        host: String,
        status: u16,
        limit: u64,
    },
    #[error("the answer of {host} is not {wanted}: {cause}")]
    Undecodable {
        host: String,
        status: u16,
        wanted: &'static str,
        cause: String,
        preview: String,
    },
    #[error(
        "the proxy {proxy} would see the secret or the connection's headers in a request to {host}"
    )]
    SecretByProxy { host: String, proxy: String },
    #[error("{host} redirects {what}")]
    BadRedirect { host: String, what: String },
    #[error(transparent)]
    Exchange(Box<ExchangeError>),
}

/// A complete answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The final address, after redirects.
    pub url: String,
    /// The time of the request, by the clock of the run.
    pub sent_ms: Option<i64>,
}

impl Answer {
    /// Returns the first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// Returns the first header of this name, which is given in lower case.
pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(it, _)| it == name)
        .map(|(_, value)| value.as_str())
}

/// Whether repeating the same request may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Never,
    Later,
    After(Duration),
}

impl HttpError {
    /// Returns the code, and the kind that a flow can match on.
    pub fn code(&self) -> (&'static str, &'static str) {
        match self {
            Self::BadUrl { .. } => ("E0730", "bad-url"),
            Self::Refused(Refused {
                why: Why::NotAllowed(_),
                ..
            }) => (StepError::NOT_ALLOWED, "denied"),
            Self::Refused(_) => ("E0731", "denied"),
            Self::Untrusted { .. } => ("E0744", "untrusted"),
            Self::Unreachable { .. } => ("E0732", "unavailable"),
            Self::NoHandle { .. } => (StoreError::NO_HANDLE, "unavailable"),
            Self::TimedOut { .. } => ("E0733", "timeout"),
            Self::Status { status, .. } => ("E0734", status_kind(*status)),
            Self::CutOff { .. } => ("E0735", "cut-off"),
            Self::TooLarge { .. } => ("E0736", "too-large"),
            Self::Undecodable { .. } => ("E0737", "bad-response"),
            Self::BadRequest { .. } => ("E0738", "bad-request"),
            Self::BadRedirect { .. } => ("E0739", "bad-redirect"),
            Self::SecretByProxy { .. } => ("E1140", "denied"),
            Self::Exchange(error) => (error.code, error.kind),
        }
    }

    /// Returns a hint for a person.
    pub fn hint(&self) -> String {
        match self {
            Self::BadUrl { .. } => "an address looks like https://host/path".into(),
            Self::BadRequest { .. } => "the reference page on `:http` lists what a request may hold".into(),
            Self::Refused(refused @ Refused { why: Why::Metadata, .. }) => {
                let line = refused.missing(0).line();
                format!("if this is intended, allow it in flowstone.edn, `{line}`, and set `:client-opts {{:allow-link-local true}}` on the step")
            }
            Self::Refused(refused @ Refused { why: Why::NotAllowed(port), .. }) => {
                refused.missing(*port).hints().into_iter().next().unwrap_or_default()
            }
            Self::Refused(Refused { why: Why::Narrowed, .. }) => {
                "add the host to `:allow-hosts` of the slot, or leave that out".into()
            }
            Self::Refused(Refused { host, .. }) => {
                format!("if this is intended, allow it in flowstone.edn: {{:http {{:allow-hosts [{host:?}]}}}}")
            }
            Self::Untrusted { fault, .. } => fault.hint.into(),
            Self::Unreachable { .. } => "check the address, the network, and that the server runs".into(),
            Self::NoHandle { .. } => "raise the limit of open files (`ulimit -n`), or let fewer branches go side by side with `:max`".into(),
            Self::TimedOut { .. } => "raise `:timeout`, or ask for less".into(),
            Self::Status { status, .. } => status_hint(*status).into(),
            Self::CutOff { .. } => "the server or a proxy stopped in the middle; try again".into(),
            Self::TooLarge { .. } => {
                "raise `:client-opts {:max-response-bytes n}`, or keep it out of line with `:persist {:type :blob}`".into()
            }
            Self::Undecodable { .. } => "`:response-as :text` or `:bytes` takes the answer as it is".into(),
            Self::BadRedirect { .. } => "ask for the final address directly".into(),
            Self::SecretByProxy { .. } => {
                "name the proxy in flowstone.edn, `{:http {:proxy \"...\"}}`, if it may see them, or contact the server by https".into()
            }
            Self::Exchange(error) => error.hint.clone(),
        }
    }

    /// Tells whether the same request may succeed later.
    pub fn again(&self) -> Again {
        match self {
            Self::Unreachable {
                is_transient: true, ..
            }
            | Self::NoHandle { .. }
            | Self::TimedOut { .. }
            | Self::CutOff { .. } => Again::Later,
            Self::Status {
                status: 408 | 425 | 429 | 500..=599,
                answer,
                ..
            } => match retry_after(answer) {
                Some(wait) => Again::After(wait),
                None => Again::Later,
            },
            Self::Status { .. }
            | Self::Unreachable { .. }
            | Self::BadUrl { .. }
            | Self::BadRequest { .. }
            | Self::Refused(_)
            | Self::Untrusted { .. }
            | Self::TooLarge { .. }
            | Self::Undecodable { .. }
            | Self::BadRedirect { .. }
            | Self::SecretByProxy { .. }
            | Self::Exchange(_) => Again::Never,
        }
    }

    /// Returns a place that says more than the host alone.
    #[must_use]
    pub fn at(mut self, place: &str) -> HttpError {
        match &mut self {
            Self::Unreachable { host, .. }
            | Self::NoHandle { host }
            | Self::TimedOut { host, .. }
            | Self::Status { host, .. }
            | Self::CutOff { host, .. }
            | Self::TooLarge { host, .. }
            | Self::Undecodable { host, .. }
            | Self::BadRedirect { host, .. } => place.clone_into(host),
            // These errors concern the host, whatever the request is.
            Self::Refused(_)
            | Self::Untrusted { .. }
            | Self::BadUrl { .. }
            | Self::BadRequest { .. }
            | Self::SecretByProxy { .. }
            | Self::Exchange(_) => {}
        }
        self
    }

    /// Returns the server's status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. }
            | Self::TooLarge { status, .. }
            | Self::Undecodable { status, .. } => Some(*status),
            Self::TimedOut { status, .. } | Self::CutOff { status, .. } => *status,
            Self::BadUrl { .. }
            | Self::BadRequest { .. }
            | Self::Refused(_)
            | Self::Untrusted { .. }
            | Self::Unreachable { .. }
            | Self::NoHandle { .. }
            | Self::BadRedirect { .. }
            | Self::SecretByProxy { .. }
            | Self::Exchange(_) => None,
        }
    }

    /// Returns the beginning of the server's answer.
    pub fn preview(&self) -> Option<String> {
        let text = match self {
            Self::TimedOut { preview, .. }
            | Self::CutOff { preview, .. }
            | Self::Undecodable { preview, .. } => preview.clone(),
            Self::Status { answer, .. } => preview(&answer.body),
            Self::BadUrl { .. }
            | Self::BadRequest { .. }
            | Self::Refused(_)
            | Self::Untrusted { .. }
            | Self::NoHandle { .. }
            | Self::Unreachable { .. }
            | Self::TooLarge { .. }
            | Self::BadRedirect { .. }
            | Self::SecretByProxy { .. }
            | Self::Exchange(_) => return None,
        };
        (!text.is_empty()).then_some(text)
    }
}

/// Returns the beginning of a body as text, for a person. A cut leaves `…`, in front of which redaction also finds the
/// beginning of a secret.
pub fn preview(body: &[u8]) -> String {
    const CHARS: usize = 500;
    let start = String::from_utf8_lossy(&body[..body.len().min(4 * CHARS)]);
    let mut text: String = start
        .chars()
        .map(|it| {
            if it.is_control() && !it.is_whitespace() {
                '\u{fffd}'
            } else {
                it
            }
        })
        .take(CHARS)
        .collect();
    if body.len() > 4 * CHARS || start.chars().count() > CHARS {
        text.push('…');
    }
    text
}

/// Returns the beginning of a body that did not arrive in full.
pub(super) fn preview_of_part(body: &[u8]) -> String {
    let text = preview(body);
    match text.is_empty() || text.ends_with('…') {
        true => text,
        false => text + "…",
    }
}

/// Reads `Retry-After`: seconds, or a date. The server's own `Date` tells how far off a date is, so that no two clocks
/// have to agree; without it, the local clock is used.
pub fn retry_after(answer: &Answer) -> Option<Duration> {
    let value = answer.header("retry-after")?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        let is_sane = (0.0..=YEAR.as_secs_f64()).contains(&seconds);
        return is_sane.then(|| Duration::from_secs_f64(seconds));
    }
    let instant = |text: &str| {
        let parser = jiff::fmt::rfc2822::DateTimeParser::new();
        parser.parse_timestamp(text.trim()).ok()
    };
    let sent = || jiff::Timestamp::from_millisecond(answer.sent_ms?).ok();
    let now = answer.header("date").and_then(instant).or_else(sent)?;
    let wait = instant(value)?.duration_since(now);
    // A time in the past allows a retry at once.
    Some(Duration::try_from(wait).unwrap_or(Duration::ZERO).min(YEAR))
}

fn status_kind(status: u16) -> &'static str {
    match status {
        401 => "unauthorized",
        403 => "denied",
        404 | 410 => "not-found",
        408 | 504 => "timeout",
        409 => "conflict",
        429 => "rate-limited",
        500..=599 | 425 => "unavailable",
        _ => "http-status",
    }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        401 => "check the secret that `:auth` or the connection names",
        403 => "the secret is known but may not do this",
        404 | 410 => "check the address",
        429 => "the server limits the rate of requests; `:retry` waits as long as it asks for",
        500..=599 => "the server has a problem; `:retry {:max-attempts 3}` tries again",
        _ => "the error's `:data` has the whole answer, under `:body`",
    }
}

fn reason(status: u16) -> String {
    let status = reqwest::StatusCode::from_u16(status).ok();
    match status.and_then(|it| it.canonical_reason()) {
        Some(reason) => format!(" {reason}"),
        None => String::new(),
    }
}

fn broke(status: Option<u16>, got: u64, cause: &str) -> String {
    // Errors of the libraries below about malformed bytes.
    let is_wrong = [
        "invalid",
        "parsed",
        "too large",
        "decompress",
        "corrupt",
        "overflow",
    ]
    .iter()
    .any(|words| cause.to_ascii_lowercase().contains(words));
    match status {
        Some(status) if is_wrong => format!(
            "sent an answer that is not well formed: {cause} (status {status}, {got} bytes received)"
        ),
        Some(status) => format!(
            "closed the connection before its answer was complete (status {status}, {got} bytes received)"
        ),
        None if is_wrong => format!("does not answer in HTTP ({cause})"),
        None => "closed the connection without an answer".into(),
    }
}

fn at(host: &str, address: Option<IpAddr>) -> String {
    match address {
        Some(address) if host.trim_matches(['[', ']']) != address.to_string() => {
            format!(" ({address})")
        }
        _ => String::new(),
    }
}

impl Refused {
    /// Returns the permission that would allow it.
    pub fn missing(&self, port: u16) -> Missing {
        let need = Need::Net {
            // Ports other than that of HTTPS are included.
            host: Host::new(&self.host, if port == 0 { 443 } else { port }),
            address: self.address,
            reach: Reach::Private,
        };
        Missing::of(&need).in_rows_of(self.own.as_ref())
    }
}

fn refusal(why: Why) -> &'static str {
    match why {
        Why::Metadata => "is a link-local or metadata address, which is refused",
        Why::Redirect => {
            "is in a network further in than the server that redirects there, which is refused"
        }
        Why::NotAllowed(_) => "is not among the hosts that the flow may connect to",
        Why::Narrowed => "is not among the hosts of `:allow-hosts` in the flow's `:requires`",
        Why::Private => "is this machine or in a private network, which the settings refuse",
    }
}

impl From<Refused> for HttpError {
    fn from(refused: Refused) -> HttpError {
        HttpError::Refused(refused)
    }
}

/// Returns the innermost cause, which is the most specific.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Formats a duration.
pub fn seconds(limit: Duration) -> String {
    match limit.subsec_millis() {
        0 => format!("{} s", limit.as_secs()),
        _ => format!("{:.1} s", limit.as_secs_f64()),
    }
}
