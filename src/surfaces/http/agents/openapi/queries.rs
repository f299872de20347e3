//! The parameters of the addresses of the agents API, by operation.

use flowstone_fronts::agents::generations::{LIMIT, State};
use serde_json::{Value as Json, json};

/// The names of the parameters of operations that have some.
const OF_OPERATIONS: &[(&str, &[&str])] = &[
    ("addSessionMessage", &["async"]),
    ("generateSessionResponse", &["async"]),
    (
        "listActors",
        &["external_id", "limit", "offset", "project_id"],
    ),
    (
        "listAgentGenerations",
        &["agent_id", "limit", "offset", "project_id", "status"],
    ),
    ("listAgentSessionMessages", &["limit", "offset"]),
    (
        "listAgentSessions",
        &["actor_id", "limit", "offset", "status"],
    ),
    ("listAgents", &["limit", "offset", "project_id"]),
    ("listAiProviders", &["limit", "offset", "project_id"]),
    ("listApiKeys", &["limit", "offset"]),
    ("listDocuments", &["limit", "offset", "project_id"]),
    ("listMemories", &["limit", "offset", "project_id", "tags"]),
    ("listMemoryEntries", &["limit", "offset"]),
    ("listPolicies", &["limit", "offset"]),
    ("listProjects", &["limit", "offset", "project_id"]),
    ("listSecrets", &["limit", "offset", "project_id"]),
    ("listTools", &["limit", "offset", "project_id"]),
    ("listTraces", &["limit", "offset", "project_id"]),
];

/// The operations whose answers tell how many records there are.
const PAGED: &[&str] = &[
    "listActors",
    "listAgentGenerations",
    "listAgentSessionMessages",
    "listAgentSessions",
    "listTraces",
];

/// Returns the parameters of an operation, apart from those of its path.
pub(super) fn of(operation: &str) -> Vec<Json> {
    let found = OF_OPERATIONS.iter().find(|(id, _)| *id == operation);
    let names = found.map_or(&[][..], |it| it.1);
    let parameter = |name: &&str| {
        let (doc, schema) = described(operation, name);
        json!({"name": name, "in": "query", "required": false, "description": doc, "schema": schema})
    };
    names.iter().map(parameter).collect()
}

fn described(operation: &str, name: &str) -> (&'static str, Json) {
    let text = || json!({"type": "string"});
    match name {
        "actor_id" => ("The sessions of this actor.", text()),
        "agent_id" => ("The generations of this agent.", text()),
        "async" => (
            "Whether the answer comes when the generation has started.",
            json!({"type": "boolean"}),
        ),
        "external_id" => ("The actor with this id elsewhere.", text()),
        "limit" if !PAGED.contains(&operation) => (
            "Maximum number of records; all if it is left out.",
            json!({"type": "integer", "minimum": 1, "maximum": LIMIT.1}),
        ),
        "limit" => (
            "Maximum number of records.",
            json!({"type": "integer", "minimum": 1, "maximum": LIMIT.1, "default": LIMIT.0}),
        ),
        "offset" => (
            "Number of records to leave out.",
            json!({"type": "integer", "minimum": 0, "default": 0}),
        ),
        "project_id" => ("The records of this project.", text()),
        "status" => ("The records with this status.", statuses(operation)),
        "tags" => (
            "Patterns of tags, such as `user-*`; the parameter may be repeated.",
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        _ => ("", json!({})),
    }
}

fn statuses(operation: &str) -> Json {
    let names: Vec<&str> = match operation {
        "listAgentGenerations" => State::NAMES.iter().map(|it| it.1).collect(),
        _ => vec!["closed", "expired", "open"],
    };
    json!({"type": "string", "enum": names})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_is_described() {
        for (operation, names) in OF_OPERATIONS {
            for name in *names {
                assert!(
                    !described(operation, name).0.is_empty(),
                    "{operation} {name}"
                );
            }
        }
    }
}
