//! Who calls, and what they may do: bearer tokens, scopes, and the count of failed proofs.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode, header};
use flowstone_engine::installation::{InstallationRow, Namespace, Side};
use flowstone_engine::installations::InstalledError;
use flowstone_engine::ports::{ResourceRow, RunRow};
use flowstone_engine::resource::{PREFIX, ResourceKind};
use flowstone_engine::token::{Scope, Token, TokenKind};
use flowstone_engine::waits;
use flowstone_project::installations::name_of_runs;
use serde_json::json;

use super::problem::{Problem, codes};

/// The schemes of `Authorization` that a token is sent with; clients of the build kit send the second.
const SCHEMES: &[&str] = &["bearer", "apikey"];
/// The id of the nested step that stores the trace of an agent.
const TRACE: &str = "trace";
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are remembered; more do not make the memory grow.
const ADDRESSES_MAX: usize = 10_000;

/// The caller of a request, known by a token.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub token: Token,
}

impl Caller {
    /// # Errors
    /// When the token does not give a right.
    pub(crate) fn need(&self, scope: Scope) -> Result<(), Problem> {
        match self.token.has(scope) {
            true => Ok(()),
            false => Err(Problem::new(
                StatusCode::FORBIDDEN,
                codes::MISSING_SCOPE,
                format!(
                    "the token `{}` lacks the scope `{}`",
                    self.token.name,
                    scope.name()
                ),
            )
            .with("required", json!(scope.name()))),
        }
    }

    /// Returns who a decision of this caller is attributed to.
    pub(crate) fn decides(&self) -> waits::Caller {
        waits::Caller {
            name: Some(self.token.attributed_to().to_owned()),
            roles: self.token.roles.clone(),
        }
    }

    /// Returns what keys of this caller belong to: a person, or a token.
    pub(super) fn identity(&self) -> String {
        match &self.token.subject {
            Some(subject) => format!("subject {subject}"),
            None => format!("token {}", self.token.id),
        }
    }

    /// Returns the workspace whose waits and jobs the caller reaches; `None` for the operator, who reaches those of all.
    pub(super) fn own_workspace(&self) -> Option<String> {
        let is_operator = self.token.is_operator();
        (!is_operator).then(|| self.token.workspace().to_owned())
    }

    /// Returns what runs of this caller have as the one who started them.
    pub(crate) fn started_by(&self) -> String {
        self.token.runs_of()
    }

    /// Tells whether the caller reaches a resource, a table or a key, by its whole name or the part after the workspace.
    /// Users reach only what their token names.
    pub(super) fn reaches_resource(&self, name: &str) -> bool {
        let short = name.strip_prefix(PREFIX).unwrap_or(name);
        let whole = format!("{PREFIX}{short}");
        let reaches = [short, &whole]
            .iter()
            .any(|name| self.token.reaches_resource(name));
        reaches && (!self.has_own_runs_only() || !self.token.limits.resources.is_empty())
    }

    /// Tells whether the caller is a person or an app's visitor, who reaches runs of their own only.
    pub(super) fn has_own_runs_only(&self) -> bool {
        self.token.has_own_runs_only()
    }

    /// Tells whether something that reaches all flows, such as a signal, is out of the caller's reach.
    pub(super) fn is_limited(&self) -> bool {
        self.token.is_limited_to_flows() || self.has_own_runs_only()
    }

    /// Tells whether the caller reaches a run: by the token's limits, and users only their own runs.
    pub(super) fn reaches_run(&self, flow: &str, labels: &[String], started_by: &str) -> bool {
        let is_own = !self.has_own_runs_only() || started_by == self.started_by();
        is_own && self.token.reaches_flow(flow, labels)
    }
}

impl Caller {
    /// Returns what the caller may see of a run: by the token's limits and workspace, and users only their own runs.
    pub(super) fn side_of_run(&self, flow: &str, labels: &[String], started_by: &str) -> Side {
        let is_own = !self.has_own_runs_only() || started_by == self.started_by();
        match is_own {
            true => self.token.reaches_side(flow, labels),
            false => Side::Neither,
        }
    }

    /// Refuses an installation of another workspace, in the words for one that does not exist.
    pub(super) fn reaches_installation(&self, row: &InstallationRow) -> Result<(), Problem> {
        let flow = name_of_runs(row).to_string();
        match self.token.reaches_side(&flow, &[]).is_installer() {
            true => Ok(()),
            false => {
                let at = row.at.clone();
                Err(InstalledError::Missing { at, near: None }.into())
            }
        }
    }

    /// Tells whether the caller reaches a resource, whose run is of this flow.
    pub(super) fn sees_resource(&self, row: &ResourceRow, flow: Option<&str>) -> bool {
        let is_project = |namespace: &Namespace| *namespace == Namespace::Project;
        let namespace = match row.kind {
            ResourceKind::Kv => Namespace::of_key(row.name.as_deref().unwrap_or_default()),
            ResourceKind::Table => Namespace::of_table(row.name.as_deref().unwrap_or_default()),
            _ => flow.map_or(Namespace::Project, Namespace::of_flow),
        };
        if is_project(&namespace) {
            return self.token.reaches_namespace(&namespace) && self.reaches_resource(&row.uri);
        }
        let side = match flow {
            _ if matches!(row.kind, ResourceKind::Kv | ResourceKind::Table) => {
                match self.token.reaches_namespace(&namespace) {
                    true => Side::Installer,
                    false => Side::Neither,
                }
            }
            Some(flow) => self.token.reaches_side(flow, &[]),
            None => Side::Neither,
        };
        let is_seen = match row.kind {
            ResourceKind::StepOutput => side.is_author(),
            _ if is_trace(row) => side.is_author(),
            _ => side.is_installer(),
        };
        let limits = &self.token.limits.resources;
        is_seen && (limits.is_empty() || self.reaches_resource(&row.uri))
    }
}

/// Tells whether a resource is the trace of an agent.
fn is_trace(row: &ResourceRow) -> bool {
    let step = row.path.as_deref().and_then(|path| path.rsplit('/').next());
    step.is_some_and(|step| step == TRACE || step.starts_with(&format!("{TRACE}#")))
}

impl Caller {
    /// Tells whether the caller may see the input and the outcome of a run within reach: with the scope `read`, or because
    /// it is their own.
    pub(crate) fn may_read(&self, run: &RunRow) -> bool {
        self.token.has(Scope::Read) || run.started_by == self.started_by()
    }

    /// Tells whether the caller may name files of the project that are written for its runs.
    pub(crate) fn may_name_files(&self) -> bool {
        match self.token.kind {
            TokenKind::Owner => true,
            TokenKind::Service => self.token.has(Scope::Edit),
            TokenKind::User | TokenKind::Anon => false,
        }
    }
}

/// Returns the text of a bearer token; `None` if there is no such header.
///
/// # Errors
/// When the header is there twice, or holds something else.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Problem::malformed(
            "the request has several `Authorization` headers",
        ));
    }
    let text = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        let is_known = SCHEMES
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known));
        is_known.then_some(token.trim())
    });
    match text {
        Some(token) => Ok(Some(token)),
        None => Err(unauthorized("expected `Authorization: Bearer TOKEN`")),
    }
}

/// The answer to a request without a token that is accepted.
pub(super) fn unauthorized(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, codes::UNAUTHORIZED, detail)
        .header(header::WWW_AUTHENTICATE, "Bearer")
        .hint("create a token with `flowstone tokens create`, and send it as `Authorization: Bearer TOKEN`")
}

/// What a failed proof was about. Each has a count of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ProofClass {
    KitLink,
    ResourceLink,
    RunLink,
    Token,
    WaitLink,
    /// A digest of the address of an interface.
    Interface(u64),
}

/// Counts failed proofs by address, so that nobody can try many.
#[derive(Debug)]
pub(super) struct Failures {
    /// Failed proofs of one address in one class within [`WINDOW`] before further ones are refused unread.
    most: usize,
    counts: Mutex<HashMap<(IpAddr, ProofClass), Vec<Instant>>>,
}

impl Failures {
    pub(super) fn new(most: usize) -> Failures {
        Failures {
            most,
            counts: Mutex::default(),
        }
    }

    /// Refuses an address that failed too often within the last minute. A good proof always passes, so this is asked
    /// after the proof failed.
    pub(super) fn note(&self, address: IpAddr, class: ProofClass, now: Instant) -> Option<Problem> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Instant| now.duration_since(*at) < WINDOW;
        if counts.len() >= ADDRESSES_MAX {
            counts.retain(|_, failed| failed.iter().any(is_recent));
        }
        if counts.len() >= ADDRESSES_MAX && !counts.contains_key(&(address, class)) {
            return Some(too_many(WINDOW));
        }
        let failed = counts.entry((address, class)).or_default();
        failed.retain(is_recent);
        if failed.len() < self.most {
            failed.push(now);
            return None;
        }
        let oldest = failed.first().copied().unwrap_or(now);
        Some(too_many(WINDOW.saturating_sub(now.duration_since(oldest))))
    }
}

fn too_many(wait: Duration) -> Problem {
    let seconds = wait.as_secs().max(1);
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        codes::TOO_MANY,
        "too many requests from this address were refused",
    )
    .header(header::RETRY_AFTER, &seconds.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_proofs_of_an_address_are_limited_for_a_minute() {
        let failures = Failures::new(30);
        let start = Instant::now();
        let (one, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        for number in 0..30 {
            let now = start + Duration::from_secs(number);
            assert!(failures.note(one, ProofClass::Token, now).is_none());
        }
        let now = start + Duration::from_secs(30);
        let refused = failures
            .note(one, ProofClass::Token, now)
            .expect("one too many");
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.headers[0].1, "30");
        assert!(failures.note(other, ProofClass::Token, now).is_none());
        let later = start + Duration::from_secs(61);
        assert!(failures.note(one, ProofClass::Token, later).is_none());
    }

    #[test]
    fn only_one_bearer_token_is_taken() {
        let mut headers = HeaderMap::new();
        assert!(matches!(bearer(&headers), Ok(None)));
        headers.insert(
            header::AUTHORIZATION,
            "bearer abc".parse().expect("a value"),
        );
        assert!(matches!(bearer(&headers), Ok(Some("abc"))));
        headers.insert(
            header::AUTHORIZATION,
            "ApiKey abc".parse().expect("a value"),
        );
        assert!(matches!(bearer(&headers), Ok(Some("abc"))));
        headers.append(
            header::AUTHORIZATION,
            "Bearer def".parse().expect("a value"),
        );
        assert_eq!(
            bearer(&headers).expect_err("two").status,
            StatusCode::BAD_REQUEST
        );
        headers.insert(
            header::AUTHORIZATION,
            "Basic YTpi".parse().expect("a value"),
        );
        assert_eq!(
            bearer(&headers).expect_err("basic").status,
            StatusCode::UNAUTHORIZED
        );
    }
}
