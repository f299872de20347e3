//! What a caller may do: the scopes of a token, the policies and the project of a key, and the boundaries of agents.
//!
//! All of them must allow a request. They are read when the request is made, so a change holds for generations that run. What
//! cannot be read allows nothing.

use flowstone_engine::Engine;
use flowstone_engine::token::{Scope, TokenKind};

use super::body::texts;
use super::error::{ApiError, Status};
use super::policies::{self, Policy, Request, extent};
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
        self.judge(scope, request, |policies| {
            policies::allow(policies, request)
        })
    }

    /// Checks that they may allow a request about some record of one of these types, which a list or a search then filters.
    ///
    /// # Errors
    /// Which of them allows it for none.
    pub fn check_some(
        &self,
        scope: Scope,
        (request, kinds): (&Request, &[&str]),
    ) -> Result<(), ApiError> {
        let of_kind = |kind: &&str| Request {
            kind: (*kind).to_owned(),
            ..request.clone()
        };
        let requests: Vec<Request> = kinds.iter().map(of_kind).collect();
        self.judge(scope, request, |policies| {
            requests.iter().any(|it| extent::allow_some(policies, it))
        })
    }

    /// Checks that none of them denies a request that need not be allowed by itself.
    ///
    /// # Errors
    /// Which of them denies it.
    pub fn check_not_denied(&self, request: &Request) -> Result<(), ApiError> {
        self.judge(Scope::Read, request, |policies| {
            !policies::deny(policies, request)
        })
    }

    /// Tells whether a list or a search by `request` shows a record: it is allowed for the record, and no statement denies `get`, the
    /// action that shows the record by itself.
    pub fn shows(&self, request: &Request, get: &str) -> bool {
        let shown = request.for_action(get);
        self.reaches(&request.project)
            && self.limits().all(|(_, policies)| {
                policies::allow(policies, request) && !policies::deny(policies, &shown)
            })
    }

    /// Tells whether a search by `request` finds a record: as [`Rights::shows`], where `general` is the same request about no
    /// record.
    pub fn finds(&self, (request, general): (&Request, &Request), get: &str) -> bool {
        let shown = request.for_action(get);
        self.reaches(&request.project)
            && self.limits().all(|(_, policies)| {
                let is_denied =
                    policies::deny(policies, request) || policies::deny(policies, &shown);
                let mut requests = [request, general].into_iter();
                !is_denied && requests.any(|it| policies::allow(policies, it))
            })
    }

    /// Tells whether a search finds every record of the type and the project of a request, also those that are stored later.
    pub fn finds_all(&self, (request, general): (&Request, &Request), get: &str) -> bool {
        let shown = request.for_action(get);
        self.reaches(&request.project)
            && self.limits().all(|(_, policies)| {
                let is_denied =
                    extent::deny_some(policies, request) || extent::deny_some(policies, &shown);
                let mut requests = [request, general].into_iter();
                !is_denied && requests.any(|it| extent::allow_all(policies, it))
            })
    }

    /// Checks that a new boundary is within all of them. `None` stands for no boundary, which allows everything.
    ///
    /// # Errors
    /// Which of them is narrower.
    pub fn check_boundary(&self, boundary: Option<&Policy>) -> Result<(), ApiError> {
        let all = Policy::all();
        let boundary = boundary.unwrap_or(&all);
        let mut limits = self.limits();
        match limits.find(|(_, policies)| !boundary.is_within(policies)) {
            None => Ok(()),
            Some((limit, _)) => Err(ApiError::new(
                Status::Forbidden,
                ("FORBIDDEN", codes::WIDER_BOUNDARY),
                format!(
                    "`boundary_policy` would allow more than {}; a caller with limits may only narrow a boundary",
                    limit.name()
                ),
            )),
        }
    }

    /// Tells whether they limit nothing but scopes, so that every record is shown.
    pub fn is_open(&self) -> bool {
        self.project.is_none() && self.limits().next().is_none()
    }

    fn reaches(&self, project: &str) -> bool {
        let own = self.project.as_deref();
        own.is_none_or(|own| ids::key_of(own) == ids::key_of(project))
    }

    /// Returns the policies that must all allow a request, each with where they come from. Those that cannot be read are empty.
    fn limits(&self) -> impl Iterator<Item = (Limit<'_>, &[Policy])> {
        let own = self.policies.iter();
        let own = own.map(|policies| (Limit::Caller, policies.as_slice()));
        let boundaries = self.boundaries.iter().map(|(agent, boundary)| {
            let policies = match boundary {
                Boundary::Policy(policy) => std::slice::from_ref(policy),
                Boundary::Unreadable => &[],
            };
            (Limit::Boundary(agent), policies)
        });
        own.chain(boundaries)
    }

    /// Checks the scope and the project of a request, and that each of the policies passes a test.
    fn judge(
        &self,
        scope: Scope,
        request: &Request,
        passes: impl Fn(&[Policy]) -> bool,
    ) -> Result<(), ApiError> {
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
        if !self.reaches(&request.project) {
            return Err(denied(format!(
                "the caller may not perform `{action}`: the key is for another project"
            )));
        }
        match self.limits().find(|(_, policies)| !passes(policies)) {
            None => Ok(()),
            Some((Limit::Caller, _)) => Err(denied(format!(
                "the policies of the caller do not allow `{action}`"
            ))),
            Some((Limit::Boundary(agent), _)) => Err(denied(format!(
                "the boundary policy of the agent `{agent}` does not allow `{action}`"
            ))),
        }
    }
}

/// Where policies that limit a caller come from.
enum Limit<'a> {
    Caller,
    /// The boundary of the agent with this id.
    Boundary(&'a str),
}

impl Limit<'_> {
    fn name(&self) -> String {
        match self {
            Limit::Caller => "the policies of the caller".to_owned(),
            Limit::Boundary(agent) => format!("the boundary policy of the agent `{agent}`"),
        }
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
