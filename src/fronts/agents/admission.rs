//! Whether a request is allowed: the same decision for routes and for platform actions.
//!
//! A list or a search is refused only if it could show nothing; [`super::sight`] then filters its records. A change is judged by the
//! record as it is and as it would be, so that nobody moves a record out of or into what is denied.

use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;
use flowstone_engine::token::Scope;
use serde_json::{Map, Value as Json};

use super::error::ApiError;
use super::ids;
use super::permissions::{self, Verb};
use super::policies::Request;
use super::records::{Record, Records, Tags, compared_tags};
use super::rights::Rights;

/// The types of the records that searches find, and of what they are themselves.
pub const SEARCHED: &[&str] = &["document", "knowledge", "memory"];

/// Returns a request about all records of a type, or about one that is not stored yet.
pub fn about_all(project: &str, (action, kind): (&str, &str)) -> Request {
    Request {
        action: action.to_owned(),
        project: project.to_owned(),
        kind: kind.to_owned(),
        id: "*".to_owned(),
        ..Request::default()
    }
}

/// Returns a request about a stored record.
pub fn about(record: &Record, action: &str) -> Request {
    Request {
        id: record.id().to_owned(),
        path: record.text("path").map(str::to_owned),
        tags: compared_tags(record.get("tags")),
        ..about_all(record.project(), (action, &record.kind.resource()))
    }
}

/// Returns a request about a generation or a trace, by its run.
///
/// # Errors
/// When the store cannot be read.
pub async fn about_run(
    engine: &Engine,
    (project, run): (&str, &RunId),
    (action, kind): (&str, &str),
) -> Result<Request, ApiError> {
    let tags = Tags::of_run(engine, run.as_str(), None).await?;
    Ok(Request {
        id: match kind {
            "trace" => ids::trace(run),
            _ => ids::generation(run),
        },
        tags: compared_tags(Some(&tags)),
        ..about_all(project, (action, kind))
    })
}

/// Adds the path and the tags that the body of a new record gives it.
pub fn with_members(request: &mut Request, body: &Json) {
    let members = body.as_object();
    request.tags = compared_tags(body.get("tags"));
    request.path = members.and_then(path_of);
}

/// Returns the path of a new document: the one that it is given, or `/` and the name of its file.
pub fn path_of(members: &Map<String, Json>) -> Option<String> {
    let text = |name: &str| match members.get(name)? {
        Json::String(text) => Some(text.clone()),
        // Scalars are taken as texts.
        other @ (Json::Number(_) | Json::Bool(_)) => Some(other.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    };
    let of_file = || Some(format!("/{}", text("filename")?.trim_start_matches('/')));
    text("path").or_else(of_file)
}

/// Checks that a caller may make a request. `body` is that of a change: the members of the record, or its tags.
///
/// # Errors
/// When the caller may not, or not with this change.
pub fn admit(
    rights: &Rights,
    scope: Scope,
    (request, body): (&Request, Option<&Json>),
) -> Result<(), ApiError> {
    let action = &request.action;
    let verb = permissions::verb(action);
    let is_about_all = request.id == "*";
    match verb {
        Verb::List if is_about_all => {
            return rights.check_some(scope, (request, &[&request.kind]));
        }
        Verb::Search => return rights.check_some(scope, (request, SEARCHED)),
        Verb::List | Verb::Update | Verb::Merge | Verb::Replace | Verb::Other => {}
    }
    rights.check(scope, request)?;
    // What lists a record's parts or answers with the changed record shows it.
    if let Some(get) = permissions::shown_by(action) {
        rights.check_not_denied(&request.for_action(get))?;
    }
    let Some(after) = body.and_then(|body| after(request, verb, body)) else {
        return Ok(());
    };
    let changed = rights.check(scope, &after);
    changed.map_err(|error| error.about("the record as it would be after the change"))
}

/// Returns the request about the record after a change; nothing if the operation is not a change.
fn after(request: &Request, verb: Verb, body: &Json) -> Option<Request> {
    let mut after = request.clone();
    match verb {
        Verb::Update => {
            if let Some(path) = body.get("path") {
                after.path = path.as_str().map(str::to_owned);
            }
            if let Some(tags) = body.get("tags") {
                after.tags = compared_tags(Some(tags));
            }
        }
        Verb::Merge => after.tags.extend(members(body)),
        Verb::Replace => after.tags = members(body),
        Verb::List | Verb::Search | Verb::Other => return None,
    }
    Some(after)
}

fn members(body: &Json) -> Map<String, Json> {
    body.as_object().cloned().unwrap_or_default()
}

/// Returns a record that a caller reaches. One of another project does not exist for it.
///
/// # Errors
/// When there is no such record.
pub async fn reached(
    engine: &Engine,
    rights: &Rights,
    (kind, id): (Records, &str),
) -> Result<Record, ApiError> {
    match &rights.project {
        Some(own) => kind.get_in(engine, own, id).await,
        None => kind.get(engine, id).await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_judged_by_the_record_after_it() {
        let request = Request {
            path: Some("/a".to_owned()),
            tags: members(&json!({"level": "open", "team": "red"})),
            ..about_all("proj_a", ("documents:UpdateDocument", "document"))
        };
        for (verb, body, path, tags) in [
            (
                Verb::Update,
                json!({"path": "/b"}),
                Some("/b"),
                json!({"level": "open", "team": "red"}),
            ),
            (
                Verb::Update,
                json!({"path": null, "tags": null}),
                None,
                json!({}),
            ),
            (
                Verb::Update,
                json!({"tags": ["level:secret", "level:open"]}),
                Some("/a"),
                json!({"level": ["secret", "open"]}),
            ),
            (
                Verb::Merge,
                json!({"level": "secret"}),
                Some("/a"),
                json!({"level": "secret", "team": "red"}),
            ),
            (
                Verb::Replace,
                json!({"x": "y"}),
                Some("/a"),
                json!({"x": "y"}),
            ),
        ] {
            let after = after(&request, verb, &body).expect("a change");
            assert_eq!(
                (after.path.as_deref(), Json::Object(after.tags)),
                (path, tags),
                "{body}"
            );
        }
        assert!(after(&request, Verb::Other, &json!({})).is_none());
    }
}
