//! What a caller may do: the scopes of a token, the policies and the project of a key, and the boundaries of agents.
//!
//! All of them must allow a request. They are read when the request is made, so a change holds for generations that run. What
//! cannot be read allows nothing.

use flowstone_engine::Engine;
use flowstone_engine::token::{Scope, TokenKind};

use super::body::texts;
use super::error::{ApiError, Status};
use super::policies::{self, Policy, Request};
use super::records::{Record, Records};
use super::{codes, ids};

/// The rights of a caller.
#[derive(Debug, Clone, Default)]
pub struct Rights {
    /// `None`: all.
    scopes: Option<Vec<Scope>>,
    /// The only project within reach.
    pub project: Option<String>,
    /// `None`: no policy limits the caller.
    policies: Option<Vec<Policy>>,
    /// The boundary of each agent on the way to the request, with its id.
    boundaries: Vec<(String, Boundary)>,
}

/// The boundary of an agent.
#[derive(Debug, Clone)]
enum Boundary {
    Policy(Policy),
    Unreadable,
}

impl Rights {
    /// Returns the rights of the holder of a token; `None` stands for the owner of the project on this machine.
    ///
    /// # Errors
    /// When the token is not valid any more, or the store cannot be read.
    pub async fn of_token(engine: &Engine, token: Option<&str>) -> Result<Rights, ApiError> {
        let Some(id) = token else {
            return Ok(Rights::default());
        };
        let found = engine.stores().tokens.token(id).await?;
        let now_ms = engine.now_ms();
        let Some((token, _)) = found.filter(|(token, _)| token.is_valid(now_ms)) else {
            return Err(denied(
                "the token of the caller was revoked, or has expired",
            ));
        };
        if token.kind == TokenKind::Owner {
            return Ok(Rights::default());
        }
        let mut rights = Rights {
            scopes: Some(token.scopes.clone()),
            ..Rights::default()
        };
        let key = match Records::Keys.get(engine, id).await {
            Ok(key) => key,
            Err(ApiError::Refused(_)) if token.is_limited_to_flows() => {
                return Err(denied("the token of the caller is not for this API"));
            }
            Err(ApiError::Refused(_)) => return Ok(rights),
            Err(error) => return Err(error),
        };
        rights.project = key.text("project_id").map(str::to_owned);
        let policies = texts(key.get("policy_ids"));
        if !policies.is_empty() {
            // A policy that cannot be read allows nothing.
            let policies = policies::stored(engine, &policies).await?;
            rights.policies = Some(policies.unwrap_or_default());
        }
        Ok(rights)
    }

    /// Adds the boundary of an agent.
    pub fn add_boundary(&mut self, agent: &Record) {
        if let Some(document) = agent
            .members
            .get("boundary_policy")
            .filter(|it| !it.is_null())
        {
            let boundary = match Policy::read(document, "boundary_policy") {
                Ok(policy) => Boundary::Policy(policy),
                Err(_) => Boundary::Unreadable,
            };
            self.boundaries.push((agent.id().to_owned(), boundary));
        }
    }

    /// Adds the boundary of an agent that is gone: it allows nothing.
    pub fn add_missing(&mut self, agent: &str) {
        self.boundaries
            .push((agent.to_owned(), Boundary::Unreadable));
    }

    /// Checks that all of them allow a request.
    ///
    /// # Errors
    /// Which of them does not.
    pub fn check(&self, scope: Scope, request: &Request) -> Result<(), ApiError> {
        let action = &request.action;
        let has_scope = self
            .scopes
            .as_ref()
            .is_none_or(|scopes| scopes.contains(&scope) || scopes.contains(&Scope::Admin));
        if !has_scope {
            return Err(denied(format!(
                "the caller may not perform `{action}`: the token lacks the scope `{}`",
                scope.name()
            )));
        }
        let is_own = |project: &String| ids::key_of(project) == ids::key_of(&request.project);
        if !self.project.as_ref().is_none_or(is_own) {
            return Err(denied(format!(
                "the caller may not perform `{action}`: the key is for another project"
            )));
        }
        let by_policies = self.policies.as_ref();
        if !by_policies.is_none_or(|policies| policies::allow(policies, request)) {
            return Err(denied(format!(
                "the policies of the caller do not allow `{action}`"
            )));
        }
        for (agent, boundary) in &self.boundaries {
            let is_allowed = match boundary {
                Boundary::Policy(policy) => policies::allow(std::slice::from_ref(policy), request),
                Boundary::Unreadable => false,
            };
            if !is_allowed {
                return Err(denied(format!(
                    "the boundary policy of the agent `{agent}` does not allow `{action}`"
                )));
            }
        }
        Ok(())
    }
}

fn denied(message: impl Into<String>) -> ApiError {
    ApiError::new(Status::Forbidden, ("FORBIDDEN", codes::DENIED), message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    /// Tells whether an agent with a boundary may read a document.
    fn may_read(boundary: Json) -> bool {
        let members = json!({"id": "agt_1", "boundary_policy": boundary});
        let agent = Record {
            kind: Records::Agents,
            members: members.as_object().cloned().unwrap_or_default(),
        };
        let mut rights = Rights::default();
        rights.add_boundary(&agent);
        let request = Request {
            action: "documents:GetDocument".to_owned(),
            ..Request::default()
        };
        rights.check(Scope::Read, &request).is_ok()
    }

    #[test]
    fn a_boundary_that_cannot_be_read_allows_nothing() {
        let all = json!({"effect": "Allow", "action": ["*"]});
        assert!(may_read(json!({"statement": [all]})));
        assert!(
            may_read(Json::Null),
            "without a boundary the caller decides"
        );
        for broken in [
            json!("all"),
            json!({}),
            json!({"statement": [all, {"effect": "Allow"}]}),
            json!({"statement": [all], "unknown": 1}),
        ] {
            assert!(!may_read(broken.clone()), "{broken}");
        }
    }

    #[test]
    fn the_boundary_of_an_agent_that_is_gone_allows_nothing() {
        let mut rights = Rights::default();
        rights.add_missing("agt_1");
        assert!(rights.check(Scope::Read, &Request::default()).is_err());
    }

    #[test]
    fn a_key_needs_the_scope_the_project_and_a_policy() {
        let all = json!({"statement": [{"effect": "Allow", "action": ["*"]}]});
        let rights = Rights {
            scopes: Some(vec![Scope::Read]),
            project: Some("proj_a".to_owned()),
            policies: Some(vec![Policy::read(&all, "document").expect("a policy")]),
            boundaries: Vec::new(),
        };
        let request = |project: &str| Request {
            action: "documents:GetDocument".to_owned(),
            project: project.to_owned(),
            ..Request::default()
        };
        assert!(rights.check(Scope::Read, &request("proj_a")).is_ok());
        assert!(rights.check(Scope::Edit, &request("proj_a")).is_err());
        assert!(rights.check(Scope::Read, &request("proj_b")).is_err());
        let unreadable = Rights {
            policies: Some(Vec::new()),
            ..rights
        };
        assert!(unreadable.check(Scope::Read, &request("proj_a")).is_err());
    }
}
