//! Pull requests of GitHub and merge requests of GitLab, over their REST interfaces.
//!
//! An open change request for the same branches is found instead of opened again, so a crash between request and
//! journal does no harm. Knows nothing of flows: plain data in and out.

use flowstone_flow::step::{Retry, StepError};
use reqwest::{Method, Url};
use serde_json::{Value as Json, json};

use crate::http::client::{self, Limits, Request};
use crate::http::error::{Again, Answer, HttpError, retry_after};
use crate::http::route::Route;

/// The service that hosts the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    GitHub,
    GitLab,
}

impl Provider {
    /// Returns the named provider, or the one that follows from the host's name.
    pub(super) fn of(named: Option<&str>, repo: &Repo) -> Result<Provider, StepError> {
        let host = repo.host.to_ascii_lowercase();
        match named {
            Some("github") => Ok(Provider::GitHub),
            Some("gitlab") => Ok(Provider::GitLab),
            Some(other) => Err(StepError::config(
                "E0796",
                format!("there is no provider `:{other}` of change requests"),
            )
            .hint("there are `:github` and `:gitlab`")),
            None if host.contains("github") => Ok(Provider::GitHub),
            None if host.contains("gitlab") => Ok(Provider::GitLab),
            None => Err(StepError::config(
                "E0796",
                format!(
                    "it is not known whether {} is a GitHub or a GitLab server",
                    repo.host
                ),
            )
            .hint("set `:provider :github` or `:provider :gitlab`")),
        }
    }

    /// Returns the name, which is also the default name of its connection.
    pub(super) fn name(self) -> &'static str {
        match self {
            Provider::GitHub => "github",
            Provider::GitLab => "gitlab",
        }
    }
}

/// A repository on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repo {
    pub host: String,
    /// The origin of its pages: scheme, host and port.
    pub origin: String,
    /// The path, such as `owner/name`, or with groups in between.
    pub path: String,
}

impl Repo {
    /// Reads the address of a git repository.
    pub(super) fn read(address: &str) -> Result<Repo, StepError> {
        let bad = || {
            let shown = crate::shown_url::without_password(address);
            StepError::config("E0796", format!("`{shown}` is not on a server that takes change requests"))
                .hint("such an address looks like https://github.com/owner/name or git@gitlab.com:group/name.git")
        };
        let (origin, host, path) = match Url::parse(address) {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "ssh" | "git") => {
                let host = url.host_str().ok_or_else(bad)?.to_string();
                let origin = match url.scheme() {
                    "http" | "https" => url.origin().ascii_serialization(),
                    _ => format!("https://{host}"),
                };
                (origin, host, url.path().to_string())
            }
            Ok(url) if url.scheme() == "file" => return Err(bad()),
            _ => {
                let (server, path) = address.split_once(':').ok_or_else(bad)?;
                let host = server.rsplit('@').next().unwrap_or(server).to_string();
                let is_host = !host.is_empty()
                    && host
                        .bytes()
                        .all(|it| it.is_ascii_alphanumeric() || b".-".contains(&it));
                if !is_host || path.starts_with("//") {
                    return Err(bad());
                }
                (format!("https://{host}"), host, path.to_string())
            }
        };
        let path = path.trim_matches('/').trim_end_matches(".git").to_string();
        let is_path =
            path.contains('/') && path.split('/').all(|part| !part.is_empty() && part != "..");
        match is_path {
            true => Ok(Repo { host, origin, path }),
            false => Err(bad()),
        }
    }
}

/// Returns the address of the REST interface.
pub(super) fn api(
    provider: Provider,
    repo: &Repo,
    configured: Option<&str>,
) -> Result<Url, StepError> {
    let address = match (configured, provider) {
        (Some(configured), _) => configured.trim_end_matches('/').to_string(),
        (None, Provider::GitHub) if repo.host == "github.com" => {
            "https://api.github.com".to_string()
        }
        (None, Provider::GitHub) => format!("{}/api/v3", repo.origin),
        (None, Provider::GitLab) => format!("{}/api/v4", repo.origin),
    };
    Url::parse(&address)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some())
        .ok_or_else(|| {
            StepError::config("E0796", format!("`{address}` is not the address of a server's interface"))
                .hint("`:base-url` of the connection looks like https://api.github.com or https://gitlab.com/api/v4")
        })
}

/// Returns the error for a request without a connection.
pub(super) fn without_connection(provider: Provider, repo: &Repo) -> StepError {
    let name = provider.name();
    StepError::config("E0796", format!("no `:connection` is set for {}", repo.host)).hint(format!(
        "describe it in flowstone.edn: {{:connections {{:{name} {{:auth {{:type :bearer :secret-ref :{name}-token}}}}}}}}"
    ))
}

/// The change request to open.
#[derive(Clone, Debug)]
pub(super) struct NewChangeRequest {
    /// The branch with the changes.
    pub branch: String,
    /// The branch to merge into; by default the repository's default branch.
    pub base: Option<String>,
    pub title: String,
    pub body: String,
    pub draft: bool,
}

/// An open change request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub url: String,
    pub number: i64,
    pub created: bool,
}

/// A repository on a server, with the connection to it.
pub(super) struct Server {
    pub provider: Provider,
    pub api: Url,
    pub repo: Repo,
    pub secret_headers: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub route: Route,
}

impl Server {
    /// Finds the open change request for these branches, or opens one.
    pub(super) async fn open(&self, asked: &NewChangeRequest) -> Result<Opened, StepError> {
        for (key, text) in [("branch", &asked.branch), ("title", &asked.title)] {
            if text.trim().is_empty() {
                return Err(StepError::config(
                    StepError::OPTION_BOUNDS,
                    format!("`:{key}` of a change request is empty"),
                ));
            }
        }
        let base = match &asked.base {
            Some(base) => base.clone(),
            None => self.usual_base().await?,
        };
        if let Some(found) = self.find(asked, &base).await? {
            return Ok(found);
        }
        let answer = self
            .send(
                Method::POST,
                self.requests()?,
                Some(self.body(asked, &base)),
            )
            .await?;
        // Another process has opened one in the meantime.
        if matches!(answer.status, 409 | 422)
            && let Some(found) = self.find(asked, &base).await?
        {
            return Ok(found);
        }
        let opened = self.checked(answer)?;
        self.opened(&opened, true)
    }

    async fn usual_base(&self) -> Result<String, StepError> {
        let answer = self.send(Method::GET, self.project(&[])?, None).await?;
        let project = self.checked(answer)?;
        let branch = project.get("default_branch").and_then(Json::as_str);
        branch.map(str::to_string).ok_or_else(|| {
            StepError::new(
                "E0798",
                "invalid",
                format!("{} has no branch to merge into yet", self.repo.path),
            )
            .hint("name it with `:base`")
        })
    }

    async fn find(
        &self,
        asked: &NewChangeRequest,
        base: &str,
    ) -> Result<Option<Opened>, StepError> {
        let mut url = self.requests()?;
        let owner = self.repo.path.split('/').next().unwrap_or_default();
        let question = match self.provider {
            Provider::GitHub => [
                ("state", "open".to_string()),
                ("head", format!("{owner}:{}", asked.branch)),
                ("base", base.to_string()),
            ],
            Provider::GitLab => [
                ("state", "opened".to_string()),
                ("source_branch", asked.branch.clone()),
                ("target_branch", base.to_string()),
            ],
        };
        url.query_pairs_mut().extend_pairs(question);
        let answer = self.send(Method::GET, url, None).await?;
        let found = self.checked(answer)?;
        match found.as_array().and_then(|found| found.first()) {
            Some(first) => self.opened(first, false).map(Some),
            None => Ok(None),
        }
    }

    fn body(&self, asked: &NewChangeRequest, base: &str) -> Json {
        match self.provider {
            Provider::GitHub => json!({
                "title": asked.title,
                "body": asked.body,
                "head": asked.branch,
                "base": base,
                "draft": asked.draft,
            }),
            Provider::GitLab => json!({
                "title": if asked.draft { format!("Draft: {}", asked.title) } else { asked.title.clone() },
                "description": asked.body,
                "source_branch": asked.branch,
                "target_branch": base,
            }),
        }
    }

    fn opened(&self, answer: &Json, created: bool) -> Result<Opened, StepError> {
        let (url, number) = match self.provider {
            Provider::GitHub => ("html_url", "number"),
            Provider::GitLab => ("web_url", "iid"),
        };
        match (
            answer.get(url).and_then(Json::as_str),
            answer.get(number).and_then(Json::as_i64),
        ) {
            (Some(url), Some(number)) => Ok(Opened {
                url: url.to_string(),
                number,
                created,
            }),
            _ => Err(StepError::new(
                "E0798",
                "bad-response",
                format!("the answer of {} has no `{number}`", self.repo.host),
            )
            .hint("check that `:base-url` of the connection is the address of the REST interface")),
        }
    }

    fn requests(&self) -> Result<Url, StepError> {
        self.project(match self.provider {
            Provider::GitHub => &["pulls"],
            Provider::GitLab => &["merge_requests"],
        })
    }

    /// Returns the address of a part of the repository.
    fn project(&self, rest: &[&str]) -> Result<Url, StepError> {
        let mut url = self.api.clone();
        {
            let mut parts = url.path_segments_mut().map_err(|()| {
                StepError::config("E0796", "the address of the interface takes no path")
            })?;
            parts.pop_if_empty();
            match self.provider {
                Provider::GitHub => parts.push("repos").extend(self.repo.path.split('/')),
                // The whole path is one part, with its slashes written as %2F.
                Provider::GitLab => parts.push("projects").push(&self.repo.path),
            };
            parts.extend(rest);
        }
        Ok(url)
    }

    async fn send(
        &self,
        method: Method,
        url: Url,
        body: Option<Json>,
    ) -> Result<Answer, StepError> {
        let mut headers = vec![
            ("accept".to_string(), "application/json".to_string()),
            ("user-agent".to_string(), "flowstone".to_string()),
        ];
        if self.provider == Provider::GitHub {
            headers[0].1 = "application/vnd.github+json".to_string();
            headers.push(("x-github-api-version".to_string(), "2022-11-28".to_string()));
        }
        if body.is_some() {
            headers.push(("content-type".to_string(), "application/json".to_string()));
        }
        headers.extend(self.headers.iter().cloned());
        let request = Request {
            method,
            url,
            headers,
            secret_headers: self.secret_headers.clone(),
            body: body.map(|body| body.to_string().into_bytes()),
            limits: Limits {
                max_bytes: 20 << 20,
                ..Limits::default()
            },
            route: self.route.clone(),
            sent_ms: None,
            is_secret: false,
            redactor: None,
            trace_parent: None,
            login: None,
        };
        client::send(request)
            .await
            .map_err(|error| unreachable(&error))
    }

    fn checked(&self, answer: Answer) -> Result<Json, StepError> {
        let body: Json = serde_json::from_slice(&answer.body).unwrap_or(Json::Null);
        let detail = detail_of(&body);
        let host = &self.repo.host;
        let path = &self.repo.path;
        let message = |what: String| match detail.as_str() {
            "" => what,
            detail => format!("{what}: {detail}"),
        };
        let is_rationed = answer.status == 429
            || answer.status == 403
                && (answer.header("x-ratelimit-remaining") == Some("0")
                    || answer.header("retry-after").is_some());
        let error = match answer.status {
            200..=299 => return Ok(body),
            _ if is_rationed => {
                let retry = retry_after(&answer).map_or(Retry::Backoff, Retry::After);
                StepError::new("E0799", "rate-limited", message(format!("{host} limits the rate of requests")))
                    .hint("wait, or give the step a `:retry`")
                    .retry(retry)
            }
            401 | 403 => StepError::new("E0797", "denied", message(format!("{host} does not allow this connection to open a change request for {path}")))
                .hint("the token of the `:connection` needs the permission to write pull requests (GitHub) or the scope `api` (GitLab)"),
            404 => StepError::new("E0797", "not-found", message(format!("{host} has no repository {path}")))
                .hint("check the repository's address; a private repository is reported as missing to a token without access"),
            400..=499 => StepError::new("E0798", "invalid", message(format!("{host} refused the change request with {}", answer.status)))
                .hint("the branch must be published, differ from the base, and the base must exist"),
            status => StepError::new("E0799", "unavailable", message(format!("{host} answered {status}")))
                .hint("try again later; an open change request is found, not opened twice")
                .retry(Retry::Backoff),
        };
        Err(error.with("status", i64::from(answer.status)))
    }
}

/// Returns the server's message about a failure.
fn detail_of(body: &Json) -> String {
    let text = |value: &Json| match value {
        Json::String(text) => Some(text.clone()),
        Json::Object(_) => value
            .get("message")
            .and_then(Json::as_str)
            .map(str::to_string),
        Json::Array(_) | Json::Bool(_) | Json::Null | Json::Number(_) => None,
    };
    let mut lines: Vec<String> = Vec::new();
    for key in ["message", "error", "error_description", "errors"] {
        match body.get(key) {
            Some(Json::Array(items)) => lines.extend(items.iter().filter_map(text)),
            Some(value) => lines.extend(text(value)),
            None => {}
        }
    }
    flowstone_flow::redact::cut(&lines.join("; "), 500)
}

fn unreachable(error: &HttpError) -> StepError {
    let retry = match error.again() {
        Again::Never => Retry::Never,
        Again::Later => Retry::Backoff,
        Again::After(wait) => Retry::After(wait),
    };
    let (_, kind) = error.code();
    StepError::new("E0799", kind, error.to_string())
        .hint(error.hint())
        .retry(retry)
}
