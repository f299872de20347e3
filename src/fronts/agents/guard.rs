//! What a request with an API key may do: the operation of a route as a request that policies decide about.

use flowstone_engine::Engine;
use flowstone_engine::token::Scope;
use serde_json::Value as Json;

use super::error::{ApiError, Status};
use super::policies::Request;
use super::records::Records;
use super::rights::Rights;
use super::{admission, codes, generations, ids, permissions, projects};

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
    /// The body of a request that makes a record of a project, or changes a record.
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
    let permission = permissions::of_operation(&asked.module, &asked.operation);
    // The entries of a memory belong to it.
    let named = asked.ids.iter().rev().find(|it| it.0 != "entry_id");
    let request = match named {
        Some((parameter, id)) => {
            let named = (parameter.as_str(), id.as_str());
            subject(engine, &rights, (&permission, named)).await?
        }
        None => unnamed(engine, &rights, (&permission, asked)).await?,
    };
    // The routes check the scopes of the token.
    admission::admit(&rights, Scope::Read, (&request, asked.body.as_ref()))?;
    Ok(rights.project)
}

/// Returns the request about a list or a new record.
async fn unnamed(
    engine: &Engine,
    rights: &Rights,
    (permission, asked): (&str, &Asked),
) -> Result<Request, ApiError> {
    let kind = permissions::type_of(&asked.module, permission);
    let mut request = admission::about_all("*", (permission, &kind));
    let own = rights.project.as_deref();
    if let (Some(own), Some(given)) = (own, &asked.project)
        && ids::key_of(own) != ids::key_of(given)
    {
        // Another project does not exist for the key.
        return Err(ApiError::missing(Records::Projects.noun(), given));
    }
    let given = asked.project.as_deref().or(own);
    if given.is_some() || asked.body.is_some() {
        request.project = projects::of(engine, given).await?;
    }
    if let Some(body) = &asked.body {
        admission::with_members(&mut request, body);
    }
    Ok(request)
}

/// Returns the request about the record that a path names. A record of another project does not exist for the key.
async fn subject(
    engine: &Engine,
    rights: &Rights,
    (permission, (parameter, id)): (&str, (&str, &str)),
) -> Result<Request, ApiError> {
    let noun = parameter.trim_end_matches("_id").replace('_', "-");
    if parameter == "generation_id" || parameter == "trace_id" {
        let (row, origin) = generations::find(engine, &noun, id).await?;
        let own = rights.project.as_deref();
        if own.is_some_and(|own| ids::key_of(own) != ids::key_of(&origin.project)) {
            return Err(ApiError::missing(&noun, id));
        }
        let run = (origin.project.as_str(), &row.id);
        return admission::about_run(engine, run, (permission, &noun)).await;
    }
    let kind = match parameter {
        "project_id" => Some(Records::Projects),
        other => kind_of(other),
    };
    let Some(kind) = kind else {
        let mut request = admission::about_all("*", (permission, &noun));
        request.id = id.to_owned();
        return Ok(request);
    };
    let record = admission::reached(engine, rights, (kind, id)).await?;
    Ok(admission::about(&record, permission))
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
            if action.subject == actions::Subject::New {
                assert_eq!(permissions::type_of(module, &found), action.kind);
            }
        }
    }
}
