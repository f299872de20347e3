//! Platform actions on the tags of records, as the routes `.../tags` have them.

use flowstone_engine::Engine;
use flowstone_engine::token::Scope;
use serde_json::Value as Json;

use super::super::body::{Kind, Member};
use super::super::error::ApiError;
use super::super::generations;
use super::super::records::{Records, Tags};
use super::super::sessions::Session;
use super::knowledge::MEMORY;
use super::{
    ACTOR, AGENT, Action, DOCUMENT, GENERATION, Given, PROVIDER, SESSION, Subject, TOOL, TRACE,
    edit, read,
};

/// Records with tags.
struct Tagged {
    kind: &'static str,
    ids: &'static [Member],
    subject: Subject,
    changed_with: Scope,
}

const OF_ACTOR: Tagged = Tagged {
    kind: "actor",
    ids: &[ACTOR],
    subject: Subject::Record(Records::Actors),
    changed_with: Scope::Run,
};
const OF_AGENT: Tagged = Tagged {
    kind: "agent",
    ids: &[AGENT],
    subject: Subject::Record(Records::Agents),
    changed_with: Scope::Edit,
};
const OF_PROVIDER: Tagged = Tagged {
    kind: "ai-provider",
    ids: &[PROVIDER],
    subject: Subject::Record(Records::Providers),
    changed_with: Scope::Edit,
};
const OF_DOCUMENT: Tagged = Tagged {
    kind: "document",
    ids: &[DOCUMENT],
    subject: Subject::Record(Records::Documents),
    changed_with: Scope::Run,
};
const OF_GENERATION: Tagged = Tagged {
    kind: "generation",
    ids: &[GENERATION],
    subject: Subject::Generation,
    changed_with: Scope::Run,
};
const OF_MEMORY: Tagged = Tagged {
    kind: "memory",
    ids: &[MEMORY],
    subject: Subject::Record(Records::Memories),
    changed_with: Scope::Run,
};
const OF_SESSION: Tagged = Tagged {
    kind: "session",
    ids: &[AGENT, SESSION],
    subject: Subject::Record(Records::Sessions),
    changed_with: Scope::Run,
};
const OF_TOOL: Tagged = Tagged {
    kind: "tool",
    ids: &[TOOL],
    subject: Subject::Record(Records::Tools),
    changed_with: Scope::Edit,
};
const OF_TRACE: Tagged = Tagged {
    kind: "trace",
    ids: &[TRACE],
    subject: Subject::Trace,
    changed_with: Scope::Run,
};
const TAGS: &[Member] = &[Member::required(
    "tags",
    Kind::Tags,
    "The tags: names with texts.",
)];

/// The actions, sorted by name.
pub(super) const ACTIONS: &[Action] = &[
    read_tags("get-actor-tags", "actors:GetActorTags", &OF_ACTOR),
    read_tags("get-agent-tags", "agents:GetAgentTags", &OF_AGENT),
    read_tags(
        "get-ai-provider-tags",
        "ai-providers:GetAiProviderTags",
        &OF_PROVIDER,
    ),
    read_tags(
        "get-document-tags",
        "documents:GetDocumentTags",
        &OF_DOCUMENT,
    ),
    read_tags(
        "get-generation-tags",
        "agents:GetGenerationTags",
        &OF_GENERATION,
    ),
    read_tags("get-memory-tags", "memories:GetMemoryTags", &OF_MEMORY),
    read_tags("get-session-tags", "sessions:GetSessionTags", &OF_SESSION),
    read_tags("get-tool-tags", "tools:GetToolTags", &OF_TOOL),
    read_tags("get-trace-tags", "traces:GetTraceTags", &OF_TRACE),
    merge_tags("merge-actor-tags", "actors:MergeActorTags", &OF_ACTOR),
    merge_tags("merge-agent-tags", "agents:MergeAgentTags", &OF_AGENT),
    merge_tags(
        "merge-ai-provider-tags",
        "ai-providers:MergeAiProviderTags",
        &OF_PROVIDER,
    ),
    merge_tags(
        "merge-document-tags",
        "documents:MergeDocumentTags",
        &OF_DOCUMENT,
    ),
    merge_tags(
        "merge-generation-tags",
        "agents:MergeGenerationTags",
        &OF_GENERATION,
    ),
    merge_tags("merge-memory-tags", "memories:MergeMemoryTags", &OF_MEMORY),
    merge_tags(
        "merge-session-tags",
        "sessions:MergeSessionTags",
        &OF_SESSION,
    ),
    merge_tags("merge-tool-tags", "tools:MergeToolTags", &OF_TOOL),
    merge_tags("merge-trace-tags", "traces:MergeTraceTags", &OF_TRACE),
    replace_tags("replace-actor-tags", "actors:ReplaceActorTags", &OF_ACTOR),
    replace_tags("replace-agent-tags", "agents:ReplaceAgentTags", &OF_AGENT),
    replace_tags(
        "replace-ai-provider-tags",
        "ai-providers:ReplaceAiProviderTags",
        &OF_PROVIDER,
    ),
    replace_tags(
        "replace-document-tags",
        "documents:ReplaceDocumentTags",
        &OF_DOCUMENT,
    ),
    replace_tags(
        "replace-generation-tags",
        "agents:ReplaceGenerationTags",
        &OF_GENERATION,
    ),
    replace_tags(
        "replace-memory-tags",
        "memories:ReplaceMemoryTags",
        &OF_MEMORY,
    ),
    replace_tags(
        "replace-session-tags",
        "sessions:ReplaceSessionTags",
        &OF_SESSION,
    ),
    replace_tags("replace-tool-tags", "tools:ReplaceToolTags", &OF_TOOL),
    replace_tags("replace-trace-tags", "traces:ReplaceTraceTags", &OF_TRACE),
];

const fn read_tags(name: &'static str, permission: &'static str, of: &Tagged) -> Action {
    read(
        (name, permission, of.kind),
        "Shows the tags of a record.",
        (of.ids, of.subject),
        |engine, given, _| Box::pin(tags(engine, given, None)),
    )
}

const fn merge_tags(name: &'static str, permission: &'static str, of: &Tagged) -> Action {
    Action {
        scope: of.changed_with,
        ..edit(
            (name, permission, of.kind),
            "Adds or changes tags of a record.",
            (of.ids, of.subject),
            TAGS,
            |engine, given, _| Box::pin(tags(engine, given, Some(Tags::Merge))),
        )
    }
}

const fn replace_tags(name: &'static str, permission: &'static str, of: &Tagged) -> Action {
    Action {
        scope: of.changed_with,
        ..edit(
            (name, permission, of.kind),
            "Replaces the tags of a record.",
            (of.ids, of.subject),
            TAGS,
            |engine, given, _| Box::pin(tags(engine, given, Some(Tags::Replace))),
        )
    }
}

async fn tags(
    engine: &Engine,
    given: &Given,
    change: Option<fn(Json) -> Tags>,
) -> Result<Json, ApiError> {
    let change = change.map(|change| change(given.body["tags"].clone()));
    let id = given.ids.last().map_or("", String::as_str);
    match given.subject {
        Subject::Record(Records::Sessions) => {
            let session = Session::find(engine, given.id(0), given.id(1)).await?;
            session.tags(engine, change).await
        }
        Subject::Record(kind) | Subject::Part(kind) => {
            let record = kind.get_in(engine, &given.project, id).await?;
            record.tags(engine, change).await
        }
        Subject::Generation | Subject::Trace | Subject::New => {
            let noun = match given.subject {
                Subject::Trace => "trace",
                Subject::Generation | Subject::New | Subject::Part(_) | Subject::Record(_) => {
                    "generation"
                }
            };
            let (row, _) = generations::find(engine, noun, id).await?;
            Tags::of_run(engine, row.id.as_str(), change).await
        }
    }
}
