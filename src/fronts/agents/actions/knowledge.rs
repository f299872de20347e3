//! Platform actions on memories and their entries, and the search of knowledge.

use flowstone_engine::Engine;
use flowstone_engine::token::Scope;
use serde_json::Value as Json;

use super::super::body::{Kind, Member, texts};
use super::super::error::ApiError;
use super::super::generations::Who;
use super::super::records::Records;
use super::super::{knowledge, memories};
use super::{Action, Given, PAGE, Subject, edit, gone, page, read, shown, write};

pub(super) const MEMORY: Member = Member::required("memory_id", Kind::Text, "The memory.");
const ENTRY: Member = Member::required("entry_id", Kind::Text, "The entry.");
const OF_MEMORY: (&[Member], Subject) = (&[MEMORY], Subject::Record(Records::Memories));
const OF_ENTRY: (&[Member], Subject) = (&[MEMORY, ENTRY], Subject::Part(Records::Memories));
const LIST: &[Member] = &[
    PAGE[0],
    PAGE[1],
    Member::optional(
        "tags",
        Kind::Texts,
        "Patterns: only memories with a tag that fits one of them.",
    ),
];

/// The actions, sorted by name.
pub(super) const ACTIONS: &[Action] = &[
    edit(
        ("create-memory", "memories:CreateMemory", "memory"),
        "Creates a memory.",
        (&[], Subject::New),
        memories::CREATE,
        |engine, given, _| Box::pin(memories::create(engine, given.body.clone())),
    ),
    write(
        (
            "create-memory-entry",
            "memories:CreateMemoryEntry",
            "memory",
        ),
        "Writes a fact to a memory: skipped if it is known, appended to an entry like it, or an entry of its own.",
        OF_MEMORY,
        memories::CREATE_ENTRY,
        |engine, given, with| {
            Box::pin(async move {
                let body = given.body.clone();
                let (entry, _) = memories::write(engine, with.embedder, given.id(0), body).await?;
                Ok(entry)
            })
        },
    ),
    edit(
        ("delete-memory", "memories:DeleteMemory", "memory"),
        "Deletes a memory that no agent and no actor uses, with its entries.",
        OF_MEMORY,
        &[],
        |engine, given, _| {
            Box::pin(async move { gone(memories::delete(engine, given.id(0)).await) })
        },
    ),
    write(
        (
            "delete-memory-entry",
            "memories:DeleteMemoryEntry",
            "memory",
        ),
        "Deletes an entry of a memory.",
        OF_ENTRY,
        &[],
        |engine, given, _| {
            Box::pin(
                async move { gone(memories::delete_entry(engine, given.id(0), given.id(1)).await) },
            )
        },
    ),
    read(
        ("get-memory", "memories:GetMemory", "memory"),
        "Shows a memory.",
        OF_MEMORY,
        |engine, given, _| Box::pin(shown(engine, Records::Memories, given, memories::shown)),
    ),
    read(
        ("get-memory-entry", "memories:GetMemoryEntry", "memory"),
        "Shows an entry of a memory.",
        OF_ENTRY,
        |engine, given, _| Box::pin(memories::entry(engine, given.id(0), given.id(1))),
    ),
    Action {
        body: LIST,
        ..read(
            ("list-memories", "memories:ListMemories", "memory"),
            "Lists memories.",
            (&[], Subject::New),
            |engine, given, with| Box::pin(listed(engine, with.who, given)),
        )
    },
    Action {
        body: PAGE,
        ..read(
            (
                "list-memory-entries",
                "memories:ListMemoryEntries",
                "memory",
            ),
            "Lists the entries of a memory, oldest first.",
            OF_MEMORY,
            |engine, given, _| {
                Box::pin(
                    async move { Ok(page(memories::entries(engine, given.id(0)).await?, given)) },
                )
            },
        )
    },
    Action {
        scope: Scope::Read,
        ..edit(
            ("search-documents", "documents:SearchDocuments", "document"),
            "Searches documents by their meaning and words.",
            (&[], Subject::New),
            knowledge::SEARCH,
            |engine, given, with| {
                let by = (with.embedder, with.who);
                let body = given.body.clone();
                Box::pin(knowledge::search_documents(engine, by, body))
            },
        )
    },
    Action {
        scope: Scope::Read,
        ..edit(
            ("search-knowledge", "knowledge:SearchKnowledge", "knowledge"),
            "Searches documents and memories by their meaning and words.",
            (&[], Subject::New),
            knowledge::SEARCH,
            |engine, given, with| {
                let by = (with.embedder, with.who);
                Box::pin(knowledge::search(engine, by, given.body.clone()))
            },
        )
    },
    edit(
        ("update-memory", "memories:UpdateMemory", "memory"),
        "Changes a memory.",
        OF_MEMORY,
        memories::UPDATE_MEMORY,
        |engine, given, _| Box::pin(memories::update(engine, given.id(0), given.body.clone())),
    ),
    write(
        (
            "update-memory-entry",
            "memories:UpdateMemoryEntry",
            "memory",
        ),
        "Changes an entry of a memory.",
        OF_ENTRY,
        memories::UPDATE_ENTRY,
        |engine, given, _| {
            let body = given.body.clone();
            Box::pin(memories::update_entry(
                engine,
                given.id(0),
                given.id(1),
                body,
            ))
        },
    ),
];

async fn listed(engine: &Engine, who: &Who, given: &Given) -> Result<Json, ApiError> {
    let patterns = texts(given.body.get("tags"));
    let all = memories::list(engine, who, (Some(&given.project), &patterns)).await?;
    Ok(page(all, given))
}
