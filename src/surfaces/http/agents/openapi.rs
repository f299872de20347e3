//! The document of the agents API, made of its routes and the members of their bodies.

mod answers;
mod operation;
mod queries;

use std::borrow::Cow;

use axum::Router;
use axum::routing::get;
use flowstone_fronts::agents::body::Member;
use flowstone_fronts::agents::{
    actors, agent, documents, generations, keys, knowledge, memories, outputs, policies, projects,
    providers, sessions, tools,
};
use serde_json::{Map, Value as Json, json};

use self::operation::{described, error, operation, parameters, refused};
use super::client::Client;
use crate::http::answer::Answer;
use crate::http::server::Shared;

/// The address of the document, below `/api/v1`.
const DOCUMENT: &str = "/agents/openapi.json";

pub(super) fn routes() -> Router<Shared> {
    Router::new().route(&format!("/api/v1{DOCUMENT}"), get(show))
}

/// The document says nothing about a project, so a caller with any token may read it.
async fn show(_client: Client) -> Answer {
    Answer::ok(document())
}

/// A route: method, path, operation, what it does, and the members of its body.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Option<&'static [Member]>,
);

/// The routes, sorted by path.
const ROWS: &[Row] = &[
    ("get", "/actors", "listActors", "Lists actors.", None),
    (
        "post",
        "/actors",
        "createActor",
        "Creates an actor.",
        Some(actors::CREATE),
    ),
    (
        "delete",
        "/actors/{actor_id}",
        "deleteActor",
        "Deletes an actor.",
        None,
    ),
    (
        "get",
        "/actors/{actor_id}",
        "getActor",
        "Shows an actor.",
        None,
    ),
    (
        "patch",
        "/actors/{actor_id}",
        "updateActor",
        "Changes members of an actor.",
        Some(actors::UPDATE),
    ),
    (
        "get",
        "/actors/{actor_id}/tags",
        "getActorTags",
        "Shows the tags of an actor.",
        None,
    ),
    (
        "patch",
        "/actors/{actor_id}/tags",
        "mergeActorTags",
        "Adds or changes tags of an actor: the body is a map.",
        None,
    ),
    (
        "put",
        "/actors/{actor_id}/tags",
        "replaceActorTags",
        "Replaces the tags of an actor: the body is a map.",
        None,
    ),
    ("get", "/agents", "listAgents", "Lists agents.", None),
    (
        "post",
        "/agents",
        "createAgent",
        "Creates an agent.",
        Some(agent::MEMBERS),
    ),
    (
        "get",
        "/agents/generations",
        "listAgentGenerations",
        "Lists generations, newest first.",
        None,
    ),
    (
        "get",
        "/agents/generations/{generation_id}",
        "getAgentGeneration",
        "Shows a generation.",
        None,
    ),
    (
        "delete",
        "/agents/{agent_id}",
        "deleteAgent",
        "Deletes an agent.",
        None,
    ),
    (
        "get",
        "/agents/{agent_id}",
        "getAgent",
        "Shows an agent.",
        None,
    ),
    (
        "put",
        "/agents/{agent_id}",
        "updateAgent",
        "Changes members of an agent.",
        Some(agent::MEMBERS),
    ),
    (
        "post",
        "/agents/{agent_id}/actors",
        "createAgentActor",
        "Creates an actor that is linked to an agent.",
        Some(actors::CREATE_OF_AGENT),
    ),
    (
        "post",
        "/agents/{agent_id}/generate",
        "createAgentGeneration",
        "Runs a generation, and answers when it is over or needs outputs.",
        Some(generations::GENERATE),
    ),
    (
        "post",
        "/agents/{agent_id}/generate/{generation_id}/tool-outputs",
        "submitAgentToolOutputs",
        "Gives a generation the outputs of client tools.",
        Some(outputs::SUBMIT),
    ),
    (
        "get",
        "/agents/{agent_id}/sessions",
        "listAgentSessions",
        "Lists the sessions of an agent.",
        None,
    ),
    (
        "post",
        "/agents/{agent_id}/sessions",
        "createAgentSession",
        "Creates a session.",
        Some(sessions::CREATE),
    ),
    (
        "delete",
        "/agents/{agent_id}/sessions/{session_id}",
        "deleteAgentSession",
        "Deletes a session.",
        None,
    ),
    (
        "get",
        "/agents/{agent_id}/sessions/{session_id}",
        "getAgentSession",
        "Shows a session.",
        None,
    ),
    (
        "patch",
        "/agents/{agent_id}/sessions/{session_id}",
        "updateSession",
        "Changes members of a session.",
        Some(sessions::UPDATE),
    ),
    (
        "post",
        "/agents/{agent_id}/sessions/{session_id}/generate",
        "generateSessionResponse",
        "Runs a generation that answers the messages so far.",
        Some(sessions::GENERATE),
    ),
    (
        "get",
        "/agents/{agent_id}/sessions/{session_id}/messages",
        "listAgentSessionMessages",
        "Lists the messages of a session, oldest first.",
        None,
    ),
    (
        "post",
        "/agents/{agent_id}/sessions/{session_id}/messages",
        "addSessionMessage",
        "Adds a message.",
        Some(sessions::MESSAGE),
    ),
    (
        "get",
        "/agents/{agent_id}/sessions/{session_id}/tags",
        "getSessionTags",
        "Shows the tags of a session.",
        None,
    ),
    (
        "patch",
        "/agents/{agent_id}/sessions/{session_id}/tags",
        "mergeSessionTags",
        "Adds or changes tags of a session: the body is a map.",
        None,
    ),
    (
        "put",
        "/agents/{agent_id}/sessions/{session_id}/tags",
        "replaceSessionTags",
        "Replaces the tags of a session: the body is a map.",
        None,
    ),
    (
        "post",
        "/agents/{agent_id}/sessions/{session_id}/tool-outputs",
        "submitSessionToolOutputs",
        "Gives the generation of a session the outputs of client tools.",
        Some(sessions::SUBMIT),
    ),
    (
        "get",
        "/ai-providers",
        "listAiProviders",
        "Lists AI providers.",
        None,
    ),
    (
        "post",
        "/ai-providers",
        "createAiProvider",
        "Creates an AI provider.",
        Some(providers::CREATE),
    ),
    (
        "delete",
        "/ai-providers/{ai_provider_id}",
        "deleteAiProvider",
        "Deletes an AI provider.",
        None,
    ),
    (
        "get",
        "/ai-providers/{ai_provider_id}",
        "getAiProvider",
        "Shows an AI provider.",
        None,
    ),
    (
        "patch",
        "/ai-providers/{ai_provider_id}",
        "updateAiProvider",
        "Changes members of an AI provider.",
        Some(providers::UPDATE),
    ),
    ("get", "/api-keys", "listApiKeys", "Lists API keys.", None),
    (
        "post",
        "/api-keys",
        "createApiKey",
        "Creates an API key. The answer has its text, once.",
        Some(keys::CREATE),
    ),
    (
        "delete",
        "/api-keys/{api_key_id}",
        "deleteApiKey",
        "Deletes an API key: it is not accepted any more.",
        None,
    ),
    (
        "get",
        "/api-keys/{api_key_id}",
        "getApiKey",
        "Shows an API key, without its text.",
        None,
    ),
    (
        "put",
        "/api-keys/{api_key_id}",
        "updateApiKey",
        "Changes the name, the policies or the project of an API key.",
        Some(keys::UPDATE),
    ),
    (
        "get",
        "/documents",
        "listDocuments",
        "Lists documents.",
        None,
    ),
    (
        "post",
        "/documents",
        "createDocument",
        "Creates a document.",
        Some(documents::CREATE),
    ),
    (
        "delete",
        "/documents/{document_id}",
        "deleteDocument",
        "Deletes a document.",
        None,
    ),
    (
        "get",
        "/documents/{document_id}",
        "getDocument",
        "Shows a document.",
        None,
    ),
    (
        "patch",
        "/documents/{document_id}",
        "updateDocument",
        "Changes members of a document.",
        Some(documents::UPDATE),
    ),
    (
        "get",
        "/documents/{document_id}/tags",
        "getDocumentTags",
        "Shows the tags of a document.",
        None,
    ),
    (
        "patch",
        "/documents/{document_id}/tags",
        "mergeDocumentTags",
        "Adds or changes tags of a document: the body is a map.",
        None,
    ),
    (
        "put",
        "/documents/{document_id}/tags",
        "replaceDocumentTags",
        "Replaces the tags of a document: the body is a map.",
        None,
    ),
    (
        "post",
        "/knowledge/search",
        "searchKnowledge",
        "Searches documents and memories.",
        Some(knowledge::SEARCH),
    ),
    ("get", "/memories", "listMemories", "Lists memories.", None),
    (
        "post",
        "/memories",
        "createMemory",
        "Creates a memory.",
        Some(memories::CREATE),
    ),
    (
        "delete",
        "/memories/{memory_id}",
        "deleteMemory",
        "Deletes a memory with its entries.",
        None,
    ),
    (
        "get",
        "/memories/{memory_id}",
        "getMemory",
        "Shows a memory.",
        None,
    ),
    (
        "put",
        "/memories/{memory_id}",
        "updateMemory",
        "Changes members of a memory.",
        Some(memories::UPDATE_MEMORY),
    ),
    (
        "get",
        "/memories/{memory_id}/entries",
        "listMemoryEntries",
        "Lists the entries of a memory.",
        None,
    ),
    (
        "post",
        "/memories/{memory_id}/entries",
        "createMemoryEntry",
        "Writes a fact to a memory.",
        Some(memories::CREATE_ENTRY),
    ),
    (
        "delete",
        "/memories/{memory_id}/entries/{entry_id}",
        "deleteMemoryEntry",
        "Deletes an entry.",
        None,
    ),
    (
        "get",
        "/memories/{memory_id}/entries/{entry_id}",
        "getMemoryEntry",
        "Shows an entry.",
        None,
    ),
    (
        "put",
        "/memories/{memory_id}/entries/{entry_id}",
        "updateMemoryEntry",
        "Changes an entry.",
        Some(memories::UPDATE_ENTRY),
    ),
    ("get", "/policies", "listPolicies", "Lists policies.", None),
    (
        "post",
        "/policies",
        "createPolicy",
        "Creates a policy.",
        Some(policies::CREATE),
    ),
    (
        "delete",
        "/policies/{policy_id}",
        "deletePolicy",
        "Deletes a policy that no key has.",
        None,
    ),
    (
        "get",
        "/policies/{policy_id}",
        "getPolicy",
        "Shows a policy.",
        None,
    ),
    (
        "put",
        "/policies/{policy_id}",
        "updatePolicy",
        "Changes a policy.",
        Some(policies::CREATE),
    ),
    ("get", "/projects", "listProjects", "Lists projects.", None),
    (
        "post",
        "/projects",
        "createProject",
        "Creates a project.",
        Some(projects::CREATE),
    ),
    (
        "delete",
        "/projects/{project_id}",
        "deleteProject",
        "Deletes a project without records.",
        None,
    ),
    (
        "get",
        "/projects/{project_id}",
        "getProject",
        "Shows a project.",
        None,
    ),
    (
        "get",
        "/secrets",
        "listSecrets",
        "Lists secrets, without their values.",
        None,
    ),
    (
        "post",
        "/secrets",
        "createSecret",
        "Keeps a secret, encrypted.",
        Some(providers::CREATE_SECRET),
    ),
    (
        "delete",
        "/secrets/{secret_id}",
        "deleteSecret",
        "Deletes a secret.",
        None,
    ),
    (
        "get",
        "/secrets/{secret_id}",
        "getSecret",
        "Shows a secret, without its value.",
        None,
    ),
    (
        "patch",
        "/secrets/{secret_id}",
        "updateSecret",
        "Changes the name or the value of a secret.",
        Some(providers::UPDATE_SECRET),
    ),
    ("get", "/tools", "listTools", "Lists tools.", None),
    (
        "post",
        "/tools",
        "createTool",
        "Creates a tool.",
        Some(tools::CREATE),
    ),
    (
        "delete",
        "/tools/{tool_id}",
        "deleteTool",
        "Deletes a tool.",
        None,
    ),
    ("get", "/tools/{tool_id}", "getTool", "Shows a tool.", None),
    (
        "patch",
        "/tools/{tool_id}",
        "updateTool",
        "Changes members of a tool.",
        Some(tools::UPDATE),
    ),
    (
        "post",
        "/tools/{tool_id}/call",
        "callTool",
        "Calls a tool without a model.",
        Some(tools::CALL),
    ),
    (
        "get",
        "/traces",
        "listTraces",
        "Lists traces, newest first.",
        None,
    ),
    (
        "get",
        "/traces/{trace_id}",
        "getTrace",
        "Shows a trace with its steps.",
        None,
    ),
    (
        "get",
        "/traces/{trace_id}/generations",
        "getTraceGenerations",
        "Lists the generations of a trace.",
        None,
    ),
    (
        "get",
        "/traces/{trace_id}/tree",
        "getTraceTree",
        "Shows the tree of a trace.",
        None,
    ),
];

/// Further records with tags: path and noun.
const TAGGED: &[(&str, &str)] = &[
    ("/agents/generations/{generation_id}", "Generation"),
    ("/agents/{agent_id}", "Agent"),
    ("/ai-providers/{ai_provider_id}", "AiProvider"),
    ("/api-keys/{api_key_id}", "ApiKey"),
    ("/memories/{memory_id}", "Memory"),
    ("/policies/{policy_id}", "Policy"),
    ("/projects/{project_id}", "Project"),
    ("/secrets/{secret_id}", "Secret"),
    ("/tools/{tool_id}", "Tool"),
    ("/traces/{trace_id}", "Trace"),
];
/// What can be done with tags: method, beginning of the operation, and what it does.
const OF_TAGS: &[(&str, &str, &str)] = &[
    ("get", "get", "Shows the tags."),
    ("patch", "merge", "Adds tags, or changes them."),
    ("put", "replace", "Replaces the tags."),
];

fn tags(path: &str, noun: &str) -> Json {
    let mut at = json!({"parameters": parameters(path)});
    for (method, verb, doc) in OF_TAGS {
        at[*method] = operation(method, &format!("{verb}{noun}Tags"), doc, None);
    }
    at
}

/// A row that an address matches.
pub(super) struct Matched<'a> {
    /// The id of the operation.
    pub id: Cow<'static, str>,
    /// The members of its body.
    pub members: &'static [Member],
    /// The parameters of the path, with their values as they are in the address.
    pub ids: Vec<(&'static str, &'a str)>,
}

/// Returns the row of a method and a path below `/api/v1`. A row with fewer parameters wins.
pub(super) fn matched<'a>(method: &str, path: &'a str) -> Option<Matched<'a>> {
    if path == DOCUMENT {
        return None;
    }
    let method = match method {
        "HEAD" => "get".to_owned(),
        other => other.to_ascii_lowercase(),
    };
    let found = ROWS.iter().filter(|row| row.0 == method);
    let found = found.filter_map(|(_, pattern, id, _, members)| {
        Some(Matched {
            id: Cow::Borrowed(*id),
            members: members.unwrap_or(&[]),
            ids: ids_in(pattern, path)?,
        })
    });
    let found = found.min_by_key(|it| it.ids.len());
    found.or_else(|| matched_tags(&method, path.strip_suffix("/tags")?))
}

/// Returns the operation on the tags of a record.
fn matched_tags<'a>(method: &str, path: &'a str) -> Option<Matched<'a>> {
    let (_, verb, _) = OF_TAGS.iter().find(|it| it.0 == method)?;
    let found = TAGGED.iter().filter_map(|(pattern, noun)| {
        Some(Matched {
            id: Cow::Owned(format!("{verb}{noun}Tags")),
            members: &[],
            ids: ids_in(pattern, path)?,
        })
    });
    found.min_by_key(|it| it.ids.len())
}

/// Returns the parameters of a path, if it has the form of a pattern.
fn ids_in<'a>(pattern: &'static str, path: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
    let mut ids = Vec::new();
    let mut parts = path.split('/');
    for expected in pattern.split('/') {
        let found = parts.next()?;
        let name = expected
            .strip_prefix('{')
            .and_then(|it| it.strip_suffix('}'));
        match name {
            Some(name) if !found.is_empty() => ids.push((name, found)),
            None if expected == found => {}
            Some(_) | None => return None,
        }
    }
    parts.next().is_none().then_some(ids)
}

/// Returns the OpenAPI document of the agents API.
pub(crate) fn document() -> Json {
    let mut paths = Map::new();
    for (method, path, id, doc, members) in ROWS {
        let at = paths
            .entry(format!("/api/v1{path}"))
            .or_insert_with(|| json!({"parameters": parameters(path)}));
        at[*method] = operation(method, id, doc, *members);
    }
    for (path, noun) in TAGGED {
        paths.insert(format!("/api/v1{path}/tags"), tags(path, noun));
    }
    paths.insert(format!("/api/v1{DOCUMENT}"), of_document());
    let mut schemas = answers::schemas();
    schemas.insert("Error".to_owned(), error());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Flowstone agents API",
            "version": "1",
            "description": "Stored agents, their generations, tools, sessions and knowledge. The guide is docs/guide/agents-api.md.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

/// Returns the operation that shows the document itself.
fn of_document() -> Json {
    let schema = json!({"type": "object", "required": ["openapi", "paths"]});
    json!({"get": {
        "operationId": "getAgentsDocument",
        "summary": "Shows this document.",
        "responses": {"200": described("An OpenAPI document.", &schema), "default": refused()},
    }})
}

#[cfg(test)]
mod tests {
    use flowstone_fronts::agents::permissions;

    use super::*;

    #[test]
    fn the_permission_of_each_route_is_known() {
        let rows = ROWS.iter().map(|row| (row.1, row.2.to_owned()));
        let tagged = TAGGED.iter().flat_map(|(path, noun)| {
            let verbs = OF_TAGS.iter();
            verbs.map(move |(_, verb, _)| (*path, format!("{verb}{noun}Tags")))
        });
        for (path, operation) in rows.chain(tagged) {
            let module = path.split('/').nth(1).unwrap_or_default();
            let permission = permissions::of_operation(module, &operation);
            assert_eq!(permissions::unknown_action(&permission), None);
        }
    }
}
