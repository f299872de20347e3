//! What policies decide about: the operations of the agents API, and the types of its records.
//!
//! A policy that names anything else would do nothing, so it is refused when it is stored.

use flowstone_engine::diagnostic::nearest;

/// Operations on sessions have addresses below agents, and permissions of their own.
const SESSIONS: &str = "sessions";

/// The permissions, sorted.
pub const ALL: &[&str] = &[
    "actors:CreateActor",
    "actors:DeleteActor",
    "actors:GetActor",
    "actors:GetActorTags",
    "actors:ListActors",
    "actors:MergeActorTags",
    "actors:ReplaceActorTags",
    "actors:UpdateActor",
    "agents:CreateAgent",
    "agents:CreateAgentActor",
    "agents:CreateAgentGeneration",
    "agents:DeleteAgent",
    "agents:GetAgent",
    "agents:GetAgentGeneration",
    "agents:GetAgentTags",
    "agents:GetGenerationTags",
    "agents:ListAgentGenerations",
    "agents:ListAgents",
    "agents:MergeAgentTags",
    "agents:MergeGenerationTags",
    "agents:ReplaceAgentTags",
    "agents:ReplaceGenerationTags",
    "agents:SubmitAgentToolOutputs",
    "agents:UpdateAgent",
    "ai-providers:CreateAiProvider",
    "ai-providers:DeleteAiProvider",
    "ai-providers:GetAiProvider",
    "ai-providers:GetAiProviderTags",
    "ai-providers:ListAiProviders",
    "ai-providers:MergeAiProviderTags",
    "ai-providers:ReplaceAiProviderTags",
    "ai-providers:UpdateAiProvider",
    "api-keys:CreateApiKey",
    "api-keys:DeleteApiKey",
    "api-keys:GetApiKey",
    "api-keys:GetApiKeyTags",
    "api-keys:ListApiKeys",
    "api-keys:MergeApiKeyTags",
    "api-keys:ReplaceApiKeyTags",
    "api-keys:UpdateApiKey",
    "documents:CreateDocument",
    "documents:DeleteDocument",
    "documents:GetDocument",
    "documents:GetDocumentTags",
    "documents:ListDocuments",
    "documents:MergeDocumentTags",
    "documents:ReplaceDocumentTags",
    "documents:SearchDocuments",
    "documents:UpdateDocument",
    "knowledge:SearchKnowledge",
    "memories:CreateMemory",
    "memories:CreateMemoryEntry",
    "memories:DeleteMemory",
    "memories:DeleteMemoryEntry",
    "memories:GetMemory",
    "memories:GetMemoryEntry",
    "memories:GetMemoryTags",
    "memories:ListMemories",
    "memories:ListMemoryEntries",
    "memories:MergeMemoryTags",
    "memories:ReplaceMemoryTags",
    "memories:UpdateMemory",
    "memories:UpdateMemoryEntry",
    "policies:CreatePolicy",
    "policies:DeletePolicy",
    "policies:GetPolicy",
    "policies:GetPolicyTags",
    "policies:ListPolicies",
    "policies:MergePolicyTags",
    "policies:ReplacePolicyTags",
    "policies:UpdatePolicy",
    "projects:CreateProject",
    "projects:DeleteProject",
    "projects:GetProject",
    "projects:GetProjectTags",
    "projects:ListProjects",
    "projects:MergeProjectTags",
    "projects:ReplaceProjectTags",
    "secrets:CreateSecret",
    "secrets:DeleteSecret",
    "secrets:GetSecret",
    "secrets:GetSecretTags",
    "secrets:ListSecrets",
    "secrets:MergeSecretTags",
    "secrets:ReplaceSecretTags",
    "secrets:UpdateSecret",
    "sessions:AddSessionMessage",
    "sessions:CreateAgentSession",
    "sessions:DeleteAgentSession",
    "sessions:GenerateSessionResponse",
    "sessions:GetAgentSession",
    "sessions:GetSessionTags",
    "sessions:ListAgentSessionMessages",
    "sessions:ListAgentSessions",
    "sessions:MergeSessionTags",
    "sessions:ReplaceSessionTags",
    "sessions:SubmitSessionToolOutputs",
    "sessions:UpdateSession",
    "tools:CallTool",
    "tools:CreateTool",
    "tools:DeleteTool",
    "tools:GetTool",
    "tools:GetToolTags",
    "tools:ListTools",
    "tools:MergeToolTags",
    "tools:ReplaceToolTags",
    "tools:UpdateTool",
    "traces:GetTrace",
    "traces:GetTraceGenerations",
    "traces:GetTraceTags",
    "traces:GetTraceTree",
    "traces:ListTraces",
    "traces:MergeTraceTags",
    "traces:ReplaceTraceTags",
];

/// The types in names of resources, sorted.
pub const TYPES: &[&str] = &[
    "actor",
    "agent",
    "ai-provider",
    "api-key",
    "document",
    "generation",
    "knowledge",
    "memory",
    "policy",
    "project",
    "secret",
    "session",
    "tool",
    "trace",
];

/// The permission that shows one record, for each that lists or changes some, unless its name is the same with `Get` as the verb.
const SHOWN_BY: &[(&str, &str)] = &[
    ("actors:ListActors", "actors:GetActor"),
    ("agents:ListAgentGenerations", "agents:GetAgentGeneration"),
    ("agents:ListAgents", "agents:GetAgent"),
    ("ai-providers:ListAiProviders", "ai-providers:GetAiProvider"),
    ("api-keys:ListApiKeys", "api-keys:GetApiKey"),
    ("documents:ListDocuments", "documents:GetDocument"),
    // A fact that is appended to an entry is answered with the whole entry.
    ("memories:CreateMemoryEntry", "memories:GetMemoryEntry"),
    ("memories:ListMemories", "memories:GetMemory"),
    ("memories:ListMemoryEntries", "memories:GetMemoryEntry"),
    ("policies:ListPolicies", "policies:GetPolicy"),
    ("projects:ListProjects", "projects:GetProject"),
    ("secrets:ListSecrets", "secrets:GetSecret"),
    (
        "sessions:ListAgentSessionMessages",
        "sessions:GetAgentSession",
    ),
    ("sessions:ListAgentSessions", "sessions:GetAgentSession"),
    ("sessions:UpdateSession", "sessions:GetAgentSession"),
    ("tools:ListTools", "tools:GetTool"),
    ("traces:ListTraces", "traces:GetTrace"),
];

/// What an operation does, which is the verb in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    List,
    Search,
    Update,
    /// Adds to the tags.
    Merge,
    /// Replaces the tags.
    Replace,
    /// Any other: it shows, creates, deletes or runs one record.
    Other,
}

/// Returns what the operation of a permission does.
pub fn verb(permission: &str) -> Verb {
    let operation = permission.split_once(':').map_or("", |(_, name)| name);
    let verbs = [
        ("List", Verb::List),
        ("Search", Verb::Search),
        ("Update", Verb::Update),
        ("Merge", Verb::Merge),
        ("Replace", Verb::Replace),
    ];
    let found = verbs.iter().find(|(name, _)| operation.starts_with(name));
    found.map_or(Verb::Other, |(_, verb)| *verb)
}

/// Returns the permission that shows a record by itself, for one that lists records or changes one.
pub fn shown_by(permission: &str) -> Option<&'static str> {
    let special = SHOWN_BY.iter().find(|(name, _)| *name == permission);
    if let Some((_, get)) = special {
        return Some(get);
    }
    let changes = ["Update", "Merge", "Replace"].into_iter();
    let mut gets = changes.map(|verb| permission.replacen(&format!(":{verb}"), ":Get", 1));
    let found = gets.find(|it| it != permission)?;
    ALL.iter().copied().find(|it| *it == found)
}

/// Returns what policies call an operation of a route: `documents:GetDocument`.
pub fn of_operation(module: &str, operation: &str) -> String {
    let module = match operation.contains("Session") {
        true => SESSIONS,
        false => module,
    };
    let mut letters = operation.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    let name: String = first.into_iter().chain(letters).collect();
    format!("{module}:{name}")
}

/// Returns the type of the records of a module: `memory` of `memories`.
pub fn type_of_module(module: &str) -> String {
    match module.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => module.trim_end_matches('s').to_owned(),
    }
}

/// Returns the type of the records that an operation is about when its path names none.
pub fn type_of(module: &str, permission: &str) -> String {
    match permission {
        "agents:ListAgentGenerations" => "generation".to_owned(),
        _ => type_of_module(module),
    }
}

/// Returns what is wrong with the action of a statement, if it names no operation.
pub fn unknown_action(pattern: &str) -> Option<String> {
    let module = |permission: &&'static str| permission.split(':').next().unwrap_or_default();
    let mut modules = ALL.iter().map(module);
    let is_known = match pattern.strip_suffix(":*") {
        Some(name) => modules.any(|it| it == name),
        None => pattern == "*" || ALL.contains(&pattern),
    };
    if is_known {
        return None;
    }
    let near = match pattern.strip_suffix(":*") {
        Some(name) => closest(name, ALL.iter().map(module)).map(|it| format!("{it}:*")),
        None => closest(pattern, ALL.iter().copied()).map(str::to_owned),
    };
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "operations are in /api/v1/agents/openapi.json".to_owned(),
    };
    Some(format!("`{pattern}`, which is not an operation; {hint}"))
}

/// Returns what is wrong with the type of a resource, if no record has it.
pub fn unknown_type(name: &str) -> Option<String> {
    if name == "*" || TYPES.contains(&name) {
        return None;
    }
    let hint = match closest(name, TYPES.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of {}", TYPES.join(", ")),
    };
    Some(format!("the type `{name}`, which no record has; {hint}"))
}

/// Returns the name that differs in letter case only, or else the nearest one.
fn closest<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let same = names.clone().find(|it| it.eq_ignore_ascii_case(word));
    same.or_else(|| nearest(word, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::actions;

    #[test]
    fn the_permission_of_each_action_is_known() {
        for action in actions::all() {
            assert_eq!(unknown_action(action.permission), None);
            assert_eq!(unknown_type(action.kind), None, "{}", action.name);
        }
    }

    #[test]
    fn each_list_and_each_change_has_the_permission_that_shows_a_record() {
        for permission in ALL {
            let is_known = shown_by(permission).is_some_and(|it| ALL.contains(&it));
            let is_appended = *permission == "memories:CreateMemoryEntry";
            let needs_one = is_appended || !matches!(verb(permission), Verb::Search | Verb::Other);
            assert_eq!(is_known, needs_one, "{permission}");
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest_one() {
        for (pattern, near) in [
            ("documents:createDocument", "`documents:CreateDocument`"),
            ("document:CreateDocument", "`documents:CreateDocument`"),
            ("document:*", "`documents:*`"),
            ("documents:Nope", "openapi.json"),
        ] {
            let message = unknown_action(pattern).expect("it is refused");
            assert!(message.contains(near), "{message}");
        }
        for (name, near) in [("documents", "`document`?"), ("doc", "document")] {
            let message = unknown_type(name).expect("it is refused");
            assert!(message.contains(near), "{message}");
        }
    }

    #[test]
    fn modules_have_the_types_of_their_records() {
        for permission in ALL {
            let module = permission.split(':').next().unwrap_or_default();
            assert_eq!(unknown_type(&type_of_module(module)), None, "{module}");
        }
    }
}
