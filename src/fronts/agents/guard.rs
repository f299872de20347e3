//! What a request with an API key may do: the operation of a route as a request that policies decide about.

use flowstone_engine::Engine;
use flowstone_engine::token::Scope;
use serde_json::Value as Json;

use super::error::{ApiError, Status};
use super::policies::Request;
use super::records::{Records, tags_of};
use super::rights::Rights;
use super::{codes, generations, ids, permissions, projects};

/// A request to a route.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The id of the operation, such as `getDocument`.
    pub operation: String,
    /// The noun after `/api/v1/`.
    pub module: String,
    /// The parameters of the path, in their order: name and value.
    pub ids: Vec<(String, String)>,
    /// `project_id` of the query or of the body.
    pub project: Option<String>,
    /// The body of a request that makes a record of a project.
    pub body: Option<Json>,
}

/// The operation that leaves all projects there are.
const CREATE_PROJECT: &str = "createProject";

/// Returns the kind of records that a parameter of a path names.
fn kind_of(parameter: &str) -> Option<Records> {
    Some(match parameter {
        "actor_id" => Records::Actors,
        "agent_id" => Records::Agents,
        "ai_provider_id" => Records::Providers,
        "document_id" => Records::Documents,
        "memory_id" => Records::Memories,
        "secret_id" => Records::Secrets,
        "session_id" => Records::Sessions,
        "tool_id" => Records::Tools,
        _ => return None,
    })
}

/// Checks that a key may make a request. Returns the project that the key is confined to.
///
/// # Errors
/// When it may not, or its project has no such record.
pub async fn check(
    engine: &Engine,
    token: &str,
    asked: &Asked,
) -> Result<Option<String>, ApiError> {
    let rights = Rights::of_token(engine, Some(token)).await?;
    if rights.project.is_some() && asked.operation == CREATE_PROJECT {
        return Err(ApiError::new(
            Status::Forbidden,
            ("FORBIDDEN", codes::DENIED),
            "the key is for one project, and cannot create others",
        ));
    }
    let mut request = Request {
        action: permissions::of_operation(&asked.module, &asked.operation),
        project: "*".to_owned(),
        kind: permissions::type_of_module(&asked.module),
        id: "*".to_owned(),
        ..Request::default()
    };
    // The entries of a memory belong to it.
    let named = asked.ids.iter().rev().find(|it| it.0 != "entry_id");
    match named {
        Some((parameter, id)) => subject(engine, &mut request, (parameter, id)).await?,
        None => {
            let given = asked.project.as_deref().or(rights.project.as_deref());
            if given.is_some() || asked.body.is_some() {
                request.project = projects::of(engine, given).await?;
            }
            let tags = asked.body.as_ref().and_then(|it| it.get("tags"));
            request.tags = tags_of(tags);
            let path = asked.body.as_ref().and_then(|it| it.get("path"));
            request.path = path.and_then(Json::as_str).map(str::to_owned);
        }
    }
    if let (Some(own), Some((parameter, id))) = (&rights.project, named)
        && ids::key_of(own) != ids::key_of(&request.project)
    {
        // A record of another project does not exist for the key.
        return Err(ApiError::missing(parameter.trim_end_matches("_id"), id));
    }
    // The routes check the scopes of the token.
    rights.check(Scope::Read, &request)?;
    Ok(rights.project)
}

/// Fills in the record that a request is about.
async fn subject(
    engine: &Engine,
    request: &mut Request,
    (parameter, id): (&str, &str),
) -> Result<(), ApiError> {
    request.kind = parameter.trim_end_matches("_id").replace('_', "-");
    request.id = id.to_owned();
    if parameter == "generation_id" || parameter == "trace_id" {
        let (_, origin) = generations::find(engine, &request.kind, id).await?;
        request.project = origin.project;
        return Ok(());
    }
    if parameter == "project_id" {
        let project = Records::Projects.get(engine, id).await?;
        request.project = project.id().to_owned();
        return Ok(());
    }
    let Some(kind) = kind_of(parameter) else {
        return Ok(());
    };
    let record = kind.get(engine, id).await?;
    request.project = record.project().to_owned();
    request.tags = tags_of(record.get("tags"));
    request.path = record.text("path").map(str::to_owned);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::actions;

    /// Returns the id of the operation of a route.
    fn operation(action: &str) -> String {
        let mut words = action.split('-');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |text, word| {
            let (head, rest) = word.split_at(1);
            text + &head.to_ascii_uppercase() + rest
        })
    }

    #[test]
    fn a_route_and_an_action_have_one_permission() {
        for action in actions::all() {
            let module = action.permission.split(':').next().unwrap_or_default();
            let found = permissions::of_operation(module, &operation(action.name));
            assert_eq!(found, action.permission);
        }
    }
}
