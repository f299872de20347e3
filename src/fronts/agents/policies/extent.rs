//! What policies say about records that are not known yet: all those of a type in a project.
//!
//! Lists are refused only if no record could be in them, and a right to a whole type is one that no statement takes from any record.

use super::{Condition, Policy, Request, Resource, Statement, is_like, plain};
use crate::agents::{ids, permissions};

/// Which of the records of a request a statement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    None,
    Some,
    All,
}

impl Extent {
    fn of(is_all: bool) -> Extent {
        if is_all { Extent::All } else { Extent::None }
    }
}

impl Statement {
    /// Returns which records of the type and the project of a request the statement is about. The id, the path and the tags of the
    /// request do not count.
    fn extent(&self, request: &Request) -> Extent {
        if !self.names_action(&request.action) {
            return Extent::None;
        }
        let resources = self.resources.iter().map(|it| it.extent(request));
        let conditions = self.conditions.iter().map(|it| it.extent(request));
        let resources = resources.max().unwrap_or(Extent::None);
        resources.min(conditions.min().unwrap_or(Extent::All))
    }

    /// Tells whether the statement is about all records that another one is about.
    fn covers(&self, other: &Statement) -> bool {
        let is_covered = |it: &Resource| self.resources.iter().any(|own| own.covers(it));
        other.resources.iter().all(is_covered)
            && self
                .conditions
                .iter()
                .all(|it| other.conditions.contains(it))
    }
}

impl Resource {
    fn extent(&self, request: &Request) -> Extent {
        let Resource::Named { project, kind, id } = self else {
            return Extent::All;
        };
        let of_project = match (project.as_str(), request.project.as_str()) {
            ("*", _) => Extent::All,
            // The request is about all projects.
            (_, "*") => Extent::Some,
            (own, other) => Extent::of(ids::key_of(own) == ids::key_of(other)),
        };
        let of_kind = Extent::of(kind == "*" || *kind == plain(&request.kind));
        let of_id = if id == "*" { Extent::All } else { Extent::Some };
        of_project.min(of_kind).min(of_id)
    }

    /// Tells whether each record of another resource is one of this.
    fn covers(&self, other: &Resource) -> bool {
        match (self, other) {
            (Resource::All, _) => true,
            (Resource::Named { .. }, Resource::All) => false,
            (
                Resource::Named { project, kind, id },
                Resource::Named {
                    project: other_project,
                    kind: other_kind,
                    id: other_id,
                },
            ) => {
                let is_same = |own: &str, other: &str| {
                    own == "*" || (other != "*" && ids::key_of(own) == ids::key_of(other))
                };
                // A `?` would match the `*` of the other pattern.
                let is_below = id.starts_with('/')
                    && other_id.starts_with('/')
                    && !id.contains('?')
                    && is_like(id, other_id);
                let is_id = if id.starts_with('/') || other_id.starts_with('/') {
                    id == "*" || id == other_id || is_below
                } else {
                    is_same(id, other_id)
                };
                is_same(project, other_project) && (kind == "*" || kind == other_kind) && is_id
            }
        }
    }
}

impl Condition {
    fn extent(&self, request: &Request) -> Extent {
        match self.tag {
            Some(_) => Extent::Some,
            None => Extent::of(self.holds(request)),
        }
    }
}

fn most(policies: &[Policy], allows: bool, request: &Request) -> Extent {
    let statements = policies.iter().flat_map(|it| &it.0);
    let extents = statements.filter(|it| it.allows == allows);
    extents
        .map(|it| it.extent(request))
        .max()
        .unwrap_or(Extent::None)
}

/// Tells whether policies may allow an action on a record of the type and the project of a request.
pub fn allow_some(policies: &[Policy], request: &Request) -> bool {
    most(policies, true, request) > Extent::None && most(policies, false, request) < Extent::All
}

/// Tells whether policies allow an action on every record of the type and the project of a request.
pub fn allow_all(policies: &[Policy], request: &Request) -> bool {
    most(policies, true, request) == Extent::All && most(policies, false, request) == Extent::None
}

/// Tells whether policies deny an action on some record of the type and the project of a request.
pub fn deny_some(policies: &[Policy], request: &Request) -> bool {
    most(policies, false, request) > Extent::None
}

impl Policy {
    /// Returns the policy that allows everything, which is the same as no boundary.
    pub fn all() -> Policy {
        Policy(vec![Statement {
            allows: true,
            actions: vec!["*".to_owned()],
            resources: vec![Resource::All],
            conditions: Vec::new(),
        }])
    }

    /// Tells whether the policy certainly allows nothing that policies do not allow: each statement that allows something is in one of
    /// theirs, and each of their statements that deny something is in one of its own.
    pub fn is_within(&self, policies: &[Policy]) -> bool {
        permissions::ALL
            .iter()
            .all(|action| self.is_within_for(action, policies))
    }

    fn is_within_for(&self, action: &str, policies: &[Policy]) -> bool {
        let own = |allows: bool| {
            let statements = self.0.iter();
            statements.filter(move |it| it.allows == allows && it.names_action(action))
        };
        let theirs = |allows: bool| {
            let statements = policies.iter().flat_map(|it| &it.0);
            statements.filter(move |it| it.allows == allows && it.names_action(action))
        };
        if own(true).next().is_none() {
            return true;
        }
        own(true).all(|it| theirs(true).any(|limit| limit.covers(it)))
            && theirs(false).all(|limit| own(false).any(|it| it.covers(limit)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn policy(statements: Json) -> Policy {
        Policy::read(&json!({"statement": statements}), "document").expect("a policy")
    }

    fn request(project: &str) -> Request {
        Request {
            action: "documents:ListDocuments".to_owned(),
            project: project.to_owned(),
            kind: "document".to_owned(),
            id: "*".to_owned(),
            ..Request::default()
        }
    }

    #[test]
    fn a_list_is_open_to_those_who_may_list_some_record() {
        let all = json!({"effect": "Allow", "action": ["*"]});
        let tagged = json!({"StringEquals": {"soat:ResourceTag/level": "secret"}});
        for (statements, some, every) in [
            (json!([all]), true, true),
            (json!([]), false, false),
            (
                json!([all, {"effect": "Deny", "action": ["documents:*"]}]),
                false,
                false,
            ),
            (
                json!([all, {"effect": "Deny", "action": ["documents:*"], "resource": ["soat:*:document:/p/*"]}]),
                true,
                false,
            ),
            (
                json!([all, {"effect": "Deny", "action": ["*"], "condition": tagged}]),
                true,
                false,
            ),
            (
                json!([all, {"effect": "Deny", "action": ["*"], "resource": ["soat:proj_b:*:*"]}]),
                true,
                true,
            ),
            (
                json!([all, {"effect": "Deny", "action": ["*"], "resource": ["soat:proj_a:*:*"]}]),
                false,
                false,
            ),
            (
                json!([{"effect": "Allow", "action": ["*"], "resource": ["soat:*:document:/p/*"]}]),
                true,
                false,
            ),
            (
                json!([{"effect": "Allow", "action": ["*"], "resource": ["soat:*:agent:*"]}]),
                false,
                false,
            ),
        ] {
            let policies = [policy(statements.clone())];
            let found = (
                allow_some(&policies, &request("proj_a")),
                allow_all(&policies, &request("proj_a")),
            );
            assert_eq!(found, (some, every), "{statements}");
        }
        let other = policy(
            json!([all, {"effect": "Deny", "action": ["*"], "resource": ["soat:proj_b:*:*"]}]),
        );
        assert!(allow_some(std::slice::from_ref(&other), &request("*")));
        assert!(!allow_all(&[other], &request("*")));
    }

    #[test]
    fn a_policy_is_within_another_if_it_certainly_allows_no_more() {
        let all = json!({"effect": "Allow", "action": ["*"]});
        let documents = json!({"effect": "Allow", "action": ["documents:*"]});
        let reports = json!({"effect": "Allow", "action": ["documents:*"], "resource": ["soat:*:document:/reports/*"]});
        let year = json!({"effect": "Allow", "action": ["documents:GetDocument"], "resource": ["soat:*:document:/reports/2026/*"]});
        let no_reports = json!({"effect": "Deny", "action": ["documents:*"], "resource": ["soat:*:document:/reports/*"]});
        let nothing = json!({"effect": "Deny", "action": ["documents:*"]});
        for (own, limit, expected) in [
            (json!([all]), json!([all]), true),
            (json!([]), json!([]), true),
            (json!([documents]), json!([all]), true),
            (json!([all]), json!([documents]), false),
            (json!([reports]), json!([documents]), true),
            (json!([year]), json!([reports]), true),
            (json!([reports]), json!([year]), false),
            (json!([documents]), json!([all, no_reports]), false),
            (
                json!([documents, no_reports]),
                json!([all, no_reports]),
                true,
            ),
            (json!([documents, nothing]), json!([all, no_reports]), true),
        ] {
            let found = policy(own.clone()).is_within(&[policy(limit.clone())]);
            assert_eq!(found, expected, "{own} within {limit}");
        }
        assert!(Policy::all().is_within(&[policy(json!([all]))]));
        assert!(!Policy::all().is_within(&[policy(json!([documents]))]));
    }
}
