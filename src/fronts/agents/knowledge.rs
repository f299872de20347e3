//! Knowledge: what agents get before they generate, and the search of documents and memories.

use flowstone_engine::Engine;
use flowstone_project::knowledge::{
    Embedder, Item, Kind as Source, KnowledgeError, LIMIT, Library, MIN_SCORE, Question, Scope,
};
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member};
use super::codes;
use super::error::{ApiError, Status};
use super::generations::Who;
use super::records::Records;
use super::sight::{self, Sight};
use super::{projects, reach};

/// The name of the tool that writes facts.
pub const WRITE: &str = "write_memory";
/// The default number of results of a search, and the maximum.
const RESULTS: usize = 10;

/// The members of `knowledge_config`.
pub const CONFIG: &[Member] = &[
    Member::optional("document_ids", Kind::Texts, "The documents to search."),
    Member::optional(
        "document_paths",
        Kind::Texts,
        "Beginnings of the paths of the documents to search.",
    ),
    Member::optional(
        "limit",
        Kind::Int(1, LIMIT.1 as i64),
        "Maximum number of texts; 5 if it is left out.",
    ),
    Member::optional("memory_ids", Kind::Texts, "The memories to search."),
    Member::optional(
        "memory_tags",
        Kind::Texts,
        "Patterns of the tags of the memories to search.",
    ),
    Member::optional(
        "min_score",
        Kind::Number(0.0, 1.0),
        "Minimum score; 0.5 if it is left out.",
    ),
    Member::optional(
        "role",
        Kind::OneOf(&["system", "user"]),
        "`user` for one fenced message, `system` for a system message for each text.",
    ),
    Member::optional(
        "write_memory_id",
        Kind::Text,
        "The memory that the tool `write_memory` writes to.",
    ),
];

/// The body of a search.
pub const SEARCH: &[Member] = &[
    Member::optional("document_ids", Kind::Texts, "The documents to search."),
    Member::optional(
        "document_paths",
        Kind::Texts,
        "Beginnings of the paths of the documents to search.",
    ),
    Member::optional(
        "limit",
        Kind::Int(1, LIMIT.1 as i64),
        "Maximum number of results; 10 if it is left out.",
    ),
    Member::optional("memory_ids", Kind::Texts, "The memories to search."),
    Member::optional(
        "memory_tags",
        Kind::Texts,
        "Patterns of the tags of the memories to search.",
    ),
    Member::optional(
        "min_score",
        Kind::Number(0.0, 1.0),
        "Minimum score; 0.5 if it is left out.",
    ),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::optional(
        "query",
        Kind::Text,
        "What to look for; without it, the records of the filters.",
    ),
];

const LISTS: &[&str] = &[
    "document_ids",
    "document_paths",
    "memory_ids",
    "memory_tags",
];

/// Checks a `knowledge_config` that a caller gives, and that the records that it names are in a project of the API. Returns it without
/// members that are null.
///
/// # Errors
/// When it is malformed, the project lacks a record, or the caller may not use it.
pub async fn check(
    engine: &Engine,
    who: &Who,
    (project, config): (&str, &Json),
) -> Result<Json, ApiError> {
    let config = read(engine, project, config).await?;
    reach::knowledge(engine, who, (project, &config)).await?;
    Ok(config)
}

/// Checks a `knowledge_config` apart from the rights of the caller.
///
/// # Errors
/// When it is malformed, or the project lacks a record.
pub async fn read(engine: &Engine, project: &str, config: &Json) -> Result<Json, ApiError> {
    let body = Body::read_some(config.clone(), CONFIG)?;
    for id in body.texts("document_ids") {
        Records::Documents.get_in(engine, project, &id).await?;
    }
    let mut memories = body.texts("memory_ids");
    memories.extend(body.text("write_memory_id").map(str::to_owned));
    for id in memories {
        Records::Memories.get_in(engine, project, &id).await?;
    }
    Ok(Json::Object(body.0))
}

/// Returns two configs as one: lists are united, other members of the second count.
pub fn merged(one: Option<&Json>, other: Option<&Json>) -> Map<String, Json> {
    let members = |config: Option<&Json>| config.and_then(Json::as_object).cloned();
    let mut all = members(one).unwrap_or_default();
    for (name, value) in members(other).unwrap_or_default() {
        let known = all.get(&name).and_then(Json::as_array).cloned();
        let value = match (known, value) {
            (Some(mut known), Json::Array(more)) if LISTS.contains(&name.as_str()) => {
                let new = more.into_iter().filter(|item| !known.contains(item));
                let new: Vec<Json> = new.collect();
                known.extend(new);
                Json::Array(known)
            }
            (_, value) => value,
        };
        all.insert(name, value);
    }
    all
}

/// Returns a config as the option `knowledge` of the `:agent` step.
pub fn option(project: &str, config: &Map<String, Json>) -> Json {
    let mut option = Map::new();
    for (name, value) in config {
        let name = match name.as_str() {
            "write_memory_id" => "write-memory".to_owned(),
            name => name.replace('_', "-"),
        };
        option.insert(name, value.clone());
    }
    option.insert("project".to_owned(), json!(project));
    Json::Object(option)
}

/// Answers a search with what the caller may find. Without a query, the records of its filters have no scores.
///
/// # Errors
/// When the body is not valid, or the embedder does not answer.
pub async fn search(
    engine: &Engine,
    (embedder, who): (Option<&dyn Embedder>, &Who),
    body: Json,
) -> Result<Json, ApiError> {
    let sight = Sight::of(engine, who, sight::SEARCH).await?;
    search_by(engine, (embedder, &|it| sight.finds(it)), body).await
}

/// Answers a search among documents only, as [`search`].
///
/// # Errors
/// As for [`search`].
pub async fn search_documents(
    engine: &Engine,
    (embedder, who): (Option<&dyn Embedder>, &Who),
    body: Json,
) -> Result<Json, ApiError> {
    let sight = Sight::of(engine, who, "documents:SearchDocuments").await?;
    let finds = |it: &Item| it.kind == Source::Document && sight.finds(it);
    search_by(engine, (embedder, &finds), body).await
}

/// Tells whether the caller may find an item.
type Finds<'a> = &'a dyn Fn(&Item) -> bool;

async fn search_by(
    engine: &Engine,
    (embedder, finds): (Option<&dyn Embedder>, Finds<'_>),
    body: Json,
) -> Result<Json, ApiError> {
    let body = Body::read(body, SEARCH)?;
    let project = projects::of(engine, body.text("project_id")).await?;
    let scope = Scope {
        project: Some(project),
        memory_ids: body.texts("memory_ids"),
        memory_tags: body.texts("memory_tags"),
        document_ids: body.texts("document_ids"),
        document_paths: body.texts("document_paths"),
        all_memories: true,
    };
    let limit = body.int("limit").and_then(|it| usize::try_from(it).ok());
    let limit = limit.unwrap_or(RESULTS);
    let library = Library {
        stores: engine.stores(),
        embedder,
        finds: Some(finds),
    };
    let results: Vec<Json> = match body.text("query").filter(|it| !it.trim().is_empty()) {
        None => {
            let items = library.items(&scope).await.map_err(failed)?;
            items.iter().take(limit).map(|it| shown(it, None)).collect()
        }
        Some(query) => {
            let question = Question {
                query: query.to_owned(),
                scope,
                min_score: body
                    .get("min_score")
                    .and_then(Json::as_f64)
                    .unwrap_or(MIN_SCORE),
                limit,
            };
            let pieces = library.find(&question).await.map_err(failed)?;
            pieces
                .iter()
                .map(|it| shown(&it.item, Some(it.score)))
                .collect()
        }
    };
    Ok(json!({"results": results}))
}

fn shown(item: &Item, score: Option<f64>) -> Json {
    let of = |name: &str| item.record.get(name).cloned().unwrap_or(Json::Null);
    let mut shown = match item.kind {
        Source::Document => json!({
            "source_type": "document",
            "document_id": of("id"),
            "project_id": of("project_id"),
            "path": of("path"),
            "filename": of("filename"),
            "title": of("title"),
            "metadata": of("metadata"),
            "tags": of("tags"),
            "size": item.content().len(),
        }),
        Source::Entry => json!({
            "source_type": "memory",
            "entry_id": of("id"),
            "memory_id": of("memory_id"),
            "memory_name": item.memory.get("name"),
        }),
    };
    shown["content"] = of("content");
    if let Some(score) = score {
        shown["score"] = json!(score);
    }
    shown["created_at"] = of("created_at");
    shown["updated_at"] = of("updated_at");
    shown
}

/// Returns why knowledge could not be read or changed.
pub fn failed(error: KnowledgeError) -> ApiError {
    match error {
        KnowledgeError::NoMemory { id } => ApiError::missing("memory", &id),
        KnowledgeError::Engine(error) => error.into(),
        KnowledgeError::Search(error) => ApiError::new(
            Status::BadGateway,
            ("KNOWLEDGE_SEARCH_FAILED", codes::KNOWLEDGE),
            error.to_string(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_united_and_other_members_replaced() {
        let stored = json!({"memory_ids": ["a", "b"], "limit": 5, "min_score": 0.4});
        let given = json!({"memory_ids": ["b", "c"], "limit": 2, "document_ids": ["d"]});
        assert_eq!(
            Json::Object(merged(Some(&stored), Some(&given))),
            json!({"memory_ids": ["a", "b", "c"], "limit": 2, "min_score": 0.4, "document_ids": ["d"]})
        );
        assert_eq!(merged(None, None), Map::new());
    }
}
