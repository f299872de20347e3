//! Errors of model calls, with the same names for every provider.

use std::time::Duration;

use flowstone_flow::step::StepError;
use serde_json::Value as Json;

use crate::http::error::{Again, Answer, HttpError, preview, retry_after, seconds};

/// The reason why there is no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum LlmError {
    #[error("{provider} does not accept the key: {message}")]
    Unauthorized { provider: String, message: String },
    #[error("{provider} does not know what was requested: {message}")]
    NotFound { provider: String, message: String },
    #[error("the conversation is too long for the model: {message}")]
    TooLong { message: String },
    #[error("{provider} limits the rate of requests: {message}")]
    RateLimited {
        provider: String,
        message: String,
        after: Option<Duration>,
    },
    #[error("the account at {provider} has no credit left: {message}")]
    NoCredit { provider: String, message: String },
    #[error("{provider} cannot answer now ({status}): {message}")]
    Overloaded {
        provider: String,
        status: u16,
        message: String,
        after: Option<Duration>,
    },
    #[error("{provider} withheld the answer: {message}")]
    Filtered { provider: String, message: String },
    #[error("the model refused: {message}")]
    Refused { message: String },
    #[error("the answer of {provider} broke off{}", after_text(*chars))]
    BrokeOff {
        provider: String,
        cause: String,
        chars: usize,
    },
    #[error("{provider} sent nothing for {}{}", seconds(*idle), after_text(*chars))]
    Stalled {
        provider: String,
        idle: Duration,
        chars: usize,
    },
    #[error("{provider} sent something that is not an answer: {cause}")]
    Malformed {
        provider: String,
        cause: String,
        preview: String,
    },
    #[error("{provider} does not accept the request ({status}): {message}")]
    BadRequest {
        provider: String,
        status: u16,
        message: String,
    },
    #[error(
        "a proxy or firewall before {provider} answered with a web page ({status}){}",
        titled(title)
    )]
    WebPage {
        provider: String,
        status: u16,
        title: String,
        after: Option<Duration>,
    },
    #[error("the answer was cut at the limit on its tokens")]
    CutShort { content: String },
    #[error("the answer is not what `:output` asks for: {problem}")]
    BadOutput { problem: String, content: String },
    #[error(transparent)]
    Http(#[from] HttpError),
}

impl LlmError {
    /// Returns the code, and the kind that a flow can match on.
    pub fn code(&self) -> (&'static str, &'static str) {
        match self {
            Self::Unauthorized { .. } => ("E0801", "unauthorized"),
            Self::NotFound { .. } => ("E0802", "not-found"),
            Self::TooLong { .. } => (StepError::TOO_LONG, "too-long"),
            Self::RateLimited { .. } => ("E0804", "rate-limited"),
            Self::NoCredit { .. } => ("E0804", "no-credit"),
            Self::Overloaded { .. } => ("E0805", "unavailable"),
            Self::Filtered { .. } => ("E0806", "content-filter"),
            Self::Refused { .. } => ("E0806", "refused"),
            Self::BrokeOff { .. } => ("E0807", "cut-off"),
            Self::Malformed { .. } => ("E0808", "bad-response"),
            Self::Stalled { .. } => ("E0812", "timeout"),
            Self::BadRequest { .. } => ("E0813", "bad-request"),
            Self::WebPage { status, .. } if passes(*status) => ("E0805", "unavailable"),
            Self::WebPage { .. } => ("E0808", "bad-response"),
            Self::CutShort { .. } => ("E0814", "cut-short"),
            Self::BadOutput { .. } => ("E0811", "bad-output"),
            Self::Http(error) => error.code(),
        }
    }

    /// Returns a hint for a person.
    pub fn hint(&self) -> String {
        match self {
            Self::Unauthorized { .. } => {
                "check the key; it belongs to one provider and may have been revoked".into()
            }
            Self::NotFound { .. } => "check `:model` and the connection's `:base-url`".into(),
            Self::TooLong { .. } => "send less, or use a model with a larger context".into(),
            Self::RateLimited { .. } => "`:retry` waits as long as the provider asks for".into(),
            Self::NoCredit { .. } => "add credit to the account, or use another `:provider`".into(),
            Self::Overloaded { .. } => "try again later, or use another `:provider`".into(),
            Self::Filtered { .. } | Self::Refused { .. } => "rephrase the request".into(),
            Self::BrokeOff { .. } => "try again: a part of an answer is never used".into(),
            Self::Stalled { .. } => "try again, or raise `:timeout`".into(),
            Self::Malformed { .. } => {
                "check that the connection's `:base-url` is that of such a provider".into()
            }
            Self::BadRequest { .. } => {
                "the provider's message says which part of the request it means".into()
            }
            Self::WebPage { status, .. } if passes(*status) => {
                "try again later, or check the proxies between this machine and the provider".into()
            }
            Self::WebPage { .. } => {
                "the key was not checked: check the connection's `:base-url`, and what the network lets pass".into()
            }
            Self::CutShort { .. } => "raise `:max-tokens`".into(),
            Self::BadOutput { .. } => {
                "`:repair 2` sends the problem back to the model up to twice".into()
            }
            Self::Http(error) => error.hint(),
        }
    }

    /// Tells whether the same call may succeed later.
    pub fn again(&self) -> Again {
        match self {
            Self::RateLimited { after, .. } | Self::Overloaded { after, .. } => {
                after.map_or(Again::Later, Again::After)
            }
            Self::WebPage { status, after, .. } if passes(*status) => {
                after.map_or(Again::Later, Again::After)
            }
            Self::BrokeOff { .. } | Self::Stalled { .. } | Self::Malformed { .. } => Again::Later,
            Self::Http(error) => error.again(),
            Self::Unauthorized { .. }
            | Self::NotFound { .. }
            | Self::TooLong { .. }
            | Self::NoCredit { .. }
            | Self::Filtered { .. }
            | Self::Refused { .. }
            | Self::BadRequest { .. }
            | Self::WebPage { .. }
            | Self::CutShort { .. }
            | Self::BadOutput { .. } => Again::Never,
        }
    }

    /// Returns the error for an answer with a status of 400 or above.
    pub fn from_answer(provider: &str, answer: &Answer) -> LlmError {
        let body: Option<Json> = serde_json::from_slice(&answer.body).ok();
        let mut found = ProviderError::read(body.as_ref());
        if let Some(kind) = answer.header("x-amzn-errortype") {
            found.kind = kind.to_ascii_lowercase();
        }
        let message = match found.message.is_empty() {
            true => preview(&answer.body),
            false => found.message.clone(),
        };
        let after = answer
            .header("retry-after-ms")
            .and_then(|ms| ms.trim().parse().ok())
            .map(Duration::from_millis)
            .or_else(|| retry_after(answer));
        if let Some(title) = page_title(&answer.body) {
            return LlmError::WebPage {
                provider: provider.to_string(),
                status: answer.status,
                title,
                after,
            };
        }
        found.error(provider, answer.status, message, after)
    }

    /// Returns the error for an error inside a stream.
    pub fn from_event(provider: &str, event: &Json) -> LlmError {
        let found = ProviderError::read(Some(event));
        let status = found.status();
        let message = found.message.clone();
        found.error(provider, status, message, None)
    }
}

/// A provider's description of an error.
struct ProviderError {
    message: String,
    /// The codes and types, in lower case.
    code: String,
    kind: String,
    /// The time to wait, for providers that do not send it in a header.
    after: Option<Duration>,
}

impl ProviderError {
    /// Reads the known forms: `{error: {message, code, type}}`, `{error: text}`, `{message}`, `{detail}`, `{error:
    /// {status, details: [{reason}, {retryDelay}]}}`, `{__type, message}`, a list of one.
    fn read(body: Option<&Json>) -> ProviderError {
        let text = |json: Option<&Json>| match json {
            Some(Json::String(text)) => text.clone(),
            Some(Json::Number(number)) => number.to_string(),
            Some(Json::Object(_) | Json::Array(_)) => json.map(Json::to_string).unwrap_or_default(),
            _ => String::new(),
        };
        let Some(body) = body else {
            return ProviderError {
                message: String::new(),
                code: String::new(),
                kind: String::new(),
                after: None,
            };
        };
        let body = body.get(0).unwrap_or(body);
        let inner = body
            .get("error")
            .filter(|error| error.is_object())
            .unwrap_or(body);
        let details = inner.get("details").and_then(Json::as_array);
        let of_details = |key: &'static str| {
            let details = details.into_iter().flatten();
            details.filter_map(move |it| it.get(key)?.as_str())
        };
        let mut kinds = vec![text(
            ["type", "status", "__type"]
                .iter()
                .find_map(|key| inner.get(key)),
        )];
        kinds.extend(of_details("reason").map(str::to_string));
        let delay = of_details("retryDelay").next();
        let delay = delay.and_then(|it| it.strip_suffix('s')?.parse().ok());
        let message = ["message", "Message", "error", "detail"]
            .iter()
            .map(|key| text(inner.get(*key)))
            .find(|it| !it.is_empty());
        ProviderError {
            message: message.unwrap_or_default(),
            code: text(inner.get("code")).to_ascii_lowercase(),
            kind: kinds.join(" ").to_ascii_lowercase(),
            after: delay.and_then(|it| Duration::try_from_secs_f64(it).ok()),
        }
    }

    /// Returns the status that corresponds to an error without one.
    fn status(&self) -> u16 {
        const NAMED: &[(&str, u16)] = &[
            ("overloaded", 529),
            ("rate_limit", 429),
            ("authentication", 401),
            ("permission", 403),
            ("not_found", 404),
            ("too_large", 413),
            ("invalid", 400),
            ("unsupported", 400),
        ];
        let is_one = |status: &u16| (400..600).contains(status);
        let number = self.code.parse().ok().filter(is_one);
        let named = NAMED
            .iter()
            .find(|(word, _)| self.code.contains(word) || self.kind.contains(word));
        number.or(named.map(|it| it.1)).unwrap_or(500)
    }

    fn error(
        &self,
        provider: &str,
        status: u16,
        message: String,
        after: Option<Duration>,
    ) -> LlmError {
        let provider = provider.to_string();
        let after = after.or(self.after);
        let lower = message.to_ascii_lowercase();
        let is_code = |codes: &[&str]| {
            codes
                .iter()
                .any(|code| self.code.contains(code) || self.kind.contains(code))
        };
        let speaks_of = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let too_long = is_code(&["context_length", "exceed_context", "request_too_large"])
            || matches!(status, 400 | 413 | 422)
                && speaks_of(&[
                    "context length",
                    "maximum context",
                    "context window",
                    "context size",
                    "too many tokens",
                    "prompt is too long",
                    "input is too long",
                    "exceeds the maximum number of tokens",
                ]);
        if too_long {
            return LlmError::TooLong { message };
        }
        if is_code(&["content_filter", "content_policy", "moderation"]) {
            return LlmError::Filtered { provider, message };
        }
        if status == 402 || is_code(&["insufficient_quota", "billing"]) {
            return LlmError::NoCredit { provider, message };
        }
        match status {
            401 | 403 => LlmError::Unauthorized { provider, message },
            404 => LlmError::NotFound { provider, message },
            429 => LlmError::RateLimited {
                provider,
                message,
                after,
            },
            _ if is_code(&["rate_limit", "servicequota", "throttl"]) => LlmError::RateLimited {
                provider,
                message,
                after,
            },
            _ if is_code(&["api_key_invalid", "invalid_api_key"]) => {
                LlmError::Unauthorized { provider, message }
            }
            408 | 409 | 424 | 425 | 500..=599 => LlmError::Overloaded {
                provider,
                status,
                message,
                after,
            },
            _ => LlmError::BadRequest {
                provider,
                status,
                message,
            },
        }
    }
}

/// Tells whether a request that failed with this status may succeed later.
fn passes(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// Returns the title of a web page, which may be empty; `None` if the body is not a page.
fn page_title(body: &[u8]) -> Option<String> {
    const MOST: usize = 80;
    let start = String::from_utf8_lossy(&body[..body.len().min(16 << 10)]);
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let lower = start.to_ascii_lowercase();
    if !lower.starts_with("<!doctype html") && !lower.starts_with("<html") {
        return None;
    }
    let title = || {
        let open = lower.find("<title")?;
        let begin = open + lower[open..].find('>')? + 1;
        let end = begin + lower[begin..].find("</title")?;
        let words: Vec<&str> = start[begin..end].split_whitespace().collect();
        Some(flowstone_flow::redact::cut(&words.join(" "), MOST))
    };
    Some(title().unwrap_or_default())
}

fn titled(title: &str) -> String {
    match title {
        "" => String::new(),
        title => format!(": \"{title}\""),
    }
}

fn after_text(chars: usize) -> String {
    match chars {
        0 => " before it began".into(),
        chars => format!(" after {chars} characters"),
    }
}
