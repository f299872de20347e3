//! The connections of a project as integrations: whether each can be used, and what a person has to do otherwise.

use flowstone_flow::flow::Flow;
use flowstone_lang::value::Value;
use flowstone_project::connections::{ConnectionReport, LoginState};
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::error::KitError;
use crate::kit::unconfirmed::{self, Unconfirmed};

/// Whether a connection can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Ready,
    /// A secret, a setting or an address is missing.
    NeedsInput,
    /// Nobody is logged in.
    NeedsAuth,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::NeedsInput => "needs_input",
            State::NeedsAuth => "needs_auth",
        }
    }

    fn of(report: &ConnectionReport) -> State {
        let login = report.login.as_ref().map(|login| login.state);
        if login == Some(LoginState::NeedsLogin) {
            return State::NeedsAuth;
        }
        let lacks_secret = report.secret.as_ref().is_some_and(|secret| !secret.is_set);
        match lacks_secret || report.problem.is_some() || lacks_address(report) {
            true => State::NeedsInput,
            false => State::Ready,
        }
    }
}

/// Tells whether a slot of a flow does not lead anywhere yet: nothing says its address, and no provider has a usual one.
fn lacks_address(report: &ConnectionReport) -> bool {
    let is_slot = !matches!(&*report.source, "environment" | "flowstone.edn");
    let is_reached = match &*report.kind {
        "database" | "smtp" | "ssh" => report.base_url.is_some(),
        "http-api" => report.base_url.is_some() || report.backend.is_some(),
        _ => true,
    };
    is_slot && !is_reached
}

/// A connection or a slot of the bound flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration {
    /// What a flow calls it.
    pub slug: String,
    pub state: State,
    /// What people call it.
    pub label: Option<String>,
    /// Its place: slots of the flow come first, then the settings, then the environment.
    pub order: usize,
    pub report: ConnectionReport,
    /// A slot that leads where a program said, which no person has confirmed.
    pub unconfirmed: Option<Unconfirmed>,
}

impl Integration {
    /// Returns what a caller learns about it: `{integration, state, slug?, connect?}`.
    pub fn shown(&self) -> Json {
        let mut shown = json!({
            "integration": self.slug,
            "state": self.state.name(),
            "slug": self.slug,
        });
        if self.state != State::Ready {
            shown["connect"] = connect(&self.slug, self.state);
        }
        shown
    }
}

/// Returns what a caller learns about an integration that the project does not have: `{integration, state, slug?, connect}`.
pub fn shown_missing(integration: &str, slug: Option<&str>) -> Json {
    let state = State::NeedsInput;
    let mut shown = json!({
        "integration": integration,
        "state": state.name(),
        "connect": connect(integration, state),
    });
    if let Some(slug) = slug {
        shown["slug"] = json!(slug);
    }
    shown
}

fn connect(integration: &str, state: State) -> Json {
    json!({
        "tool": "request_connection",
        "arguments": {"integration": integration, "mode": mode_of(state)},
    })
}

/// Returns the mode of `request_connection` for a state.
fn mode_of(state: State) -> &'static str {
    match state {
        State::NeedsAuth => "oauth",
        State::Ready | State::NeedsInput => "api_key",
    }
}

/// The integrations of a project, each once.
#[derive(Debug, Clone, Default)]
pub struct Integrations(pub Vec<Integration>);

impl Integrations {
    /// Returns the slots of a flow and the connections of the project.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn of(cx: &KitCall<'_>, flow: Option<&Flow>) -> Result<Integrations, KitError> {
        let unconfirmed = match flow {
            Some(flow) => unconfirmed::of_bound(cx, flow).await?,
            None => Vec::new(),
        };
        let flows: Vec<&Flow> = flow.into_iter().collect();
        let settings = cx.engine.settings().get("connections");
        let mut all: Vec<Integration> = Vec::new();
        for mut report in cx.backend.connections(cx.engine, &flows) {
            if all.iter().any(|known| known.slug == report.name) {
                continue;
            }
            let mut unconfirmed = unconfirmed.iter().filter(|it| it.slot == report.name);
            let unconfirmed = unconfirmed.next().cloned();
            if let Some(unconfirmed) = &unconfirmed {
                report.problem = Some(unconfirmed.problem());
            }
            let slot = flow.and_then(|flow| flow.requirement(&report.name));
            let bound = report.bound_to.as_deref().unwrap_or(&report.name);
            let described = settings.and_then(|settings| settings.get(bound));
            let mut labels = slot
                .into_iter()
                .chain(described)
                .filter_map(|it| it.get("label"));
            let label = labels.find_map(Value::as_str);
            all.push(Integration {
                slug: report.name.clone(),
                state: State::of(&report),
                label: label.map(|label| label.to_string()),
                order: all.len(),
                report,
                unconfirmed,
            });
        }
        all.sort_by(|one, other| one.slug.cmp(&other.slug));
        Ok(Integrations(all))
    }

    pub fn find(&self, slug: &str) -> Option<&Integration> {
        self.0.iter().find(|known| known.slug == slug)
    }
}

#[cfg(test)]
mod tests {
    use flowstone_project::connections::SecretReport;

    use super::*;

    fn report() -> ConnectionReport {
        ConnectionReport {
            name: "crm".to_owned(),
            source: "flowstone.edn".to_owned(),
            kind: "http-api".to_owned(),
            backend: None,
            base_url: None,
            bound_to: None,
            is_optional: false,
            secret: None,
            login: None,
            problem: None,
        }
    }

    #[test]
    fn a_state_says_what_is_missing() {
        assert_eq!(State::of(&report()), State::Ready);
        let secret = |is_set| ConnectionReport {
            secret: Some(SecretReport {
                name: "crm-token".to_owned(),
                place: "environment CRM_TOKEN".to_owned(),
                is_set,
            }),
            ..report()
        };
        assert_eq!(State::of(&secret(true)), State::Ready);
        assert_eq!(State::of(&secret(false)), State::NeedsInput);
        let slot = |kind: &str, backend: Option<&str>| ConnectionReport {
            source: "digest".to_owned(),
            kind: kind.to_owned(),
            backend: backend.map(str::to_owned),
            ..report()
        };
        assert_eq!(State::of(&slot("http-api", None)), State::NeedsInput);
        assert_eq!(
            State::of(&slot("database", Some("postgres"))),
            State::NeedsInput
        );
        assert_eq!(State::of(&slot("http-api", Some("scripted"))), State::Ready);
        let problem = ConnectionReport {
            problem: Some("it has no `:base-url`".to_owned()),
            ..report()
        };
        assert_eq!(State::of(&problem), State::NeedsInput);
    }
}
