//! The connections of a project as integrations: whether each can be used, and what a person has to do otherwise.

use flowstone_flow::flow::Flow;
use flowstone_project::connections::{ConnectionReport, LoginState};
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;

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
        match lacks_secret || report.problem.is_some() {
            true => State::NeedsInput,
            false => State::Ready,
        }
    }
}

/// A connection or a slot of the bound flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration {
    /// What a flow calls it.
    pub slug: String,
    pub state: State,
    pub report: ConnectionReport,
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
            shown["connect"] = json!({
                "tool": "request_connection",
                "arguments": {"integration": self.slug, "mode": mode_of(self.state)},
            });
        }
        shown
    }
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
    pub fn of(cx: &KitCall<'_>, flow: Option<&Flow>) -> Integrations {
        let flows: Vec<&Flow> = flow.into_iter().collect();
        let mut all: Vec<Integration> = Vec::new();
        for report in cx.backend.connections(cx.engine, &flows) {
            if all.iter().any(|known| known.slug == report.name) {
                continue;
            }
            all.push(Integration {
                slug: report.name.clone(),
                state: State::of(&report),
                report,
            });
        }
        all.sort_by(|one, other| one.slug.cmp(&other.slug));
        Integrations(all)
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
        let problem = ConnectionReport {
            problem: Some("it has no `:base-url`".to_owned()),
            ..report()
        };
        assert_eq!(State::of(&problem), State::NeedsInput);
    }
}
