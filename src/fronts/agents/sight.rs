//! What lists and searches show: the records that the caller may list, and whose showing no statement denies.
//!
//! A record is left out before anything is counted, so neither `total` nor a page tells of it.

use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;
use flowstone_project::knowledge::{Item, Kind};
use serde_json::Value as Json;

use super::admission::{about, about_all, about_run};
use super::error::ApiError;
use super::generations::Who;
use super::permissions;
use super::policies::Request;
use super::records::{Record, Records, compared_tags};
use super::rights::Rights;

/// The permission of searches that find records of several types.
pub const SEARCH: &str = "knowledge:SearchKnowledge";
const KNOWLEDGE: &str = "knowledge";

/// What a caller sees in one list.
#[derive(Debug, Clone)]
pub struct Sight {
    rights: Rights,
    /// The permission of the list or the search.
    action: &'static str,
}

impl Sight {
    /// Returns what a caller sees in the answer of an operation.
    ///
    /// # Errors
    /// When the rights of the caller cannot be read.
    pub async fn of(engine: &Engine, who: &Who, action: &'static str) -> Result<Sight, ApiError> {
        let rights = who.rights(engine).await?;
        Ok(Sight { rights, action })
    }

    /// Tells whether a record is in the list.
    pub fn shows(&self, record: &Record) -> bool {
        self.rights.is_open() || self.allows(&about(record, self.action))
    }

    /// Tells whether a generation or a trace is in the list, by its run.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn shows_run(
        &self,
        engine: &Engine,
        (project, run): (&str, &RunId),
        kind: &str,
    ) -> Result<bool, ApiError> {
        if self.rights.is_open() {
            return Ok(true);
        }
        let request = about_run(engine, (project, run), (self.action, kind)).await?;
        Ok(self.allows(&request))
    }

    fn allows(&self, request: &Request) -> bool {
        let get = permissions::shown_by(self.action).unwrap_or(self.action);
        self.rights.shows(request, get)
    }

    /// Tells whether a search finds a document or an entry of a memory.
    pub fn finds(&self, item: &Item) -> bool {
        if self.rights.is_open() {
            return true;
        }
        let (kind, record) = match item.kind {
            Kind::Document => (Records::Documents, &item.record),
            Kind::Entry => (Records::Memories, &item.memory),
        };
        let text = |name: &str| record.get(name).and_then(Json::as_str);
        self.finds_by(
            Request {
                id: text("id").unwrap_or_default().to_owned(),
                path: text("path").map(str::to_owned),
                tags: compared_tags(record.get("tags")),
                ..about_all(item.project(), (self.action, &kind.resource()))
            },
            kind,
        )
    }

    /// Tells whether a search finds a document, or the entries of a memory.
    pub fn finds_record(&self, record: &Record) -> bool {
        self.finds_by(about(record, self.action), record.kind)
    }

    fn finds_by(&self, request: Request, kind: Records) -> bool {
        let general = about_all(&request.project, (self.action, KNOWLEDGE));
        self.rights.finds((&request, &general), text_of(kind))
    }

    /// Tells whether a search finds each document of a project, or the entries of each memory, also of those that are stored later.
    pub fn finds_all(&self, project: &str, kind: Records) -> bool {
        let request = about_all(project, (self.action, &kind.resource()));
        let general = about_all(project, (self.action, KNOWLEDGE));
        self.rights.finds_all((&request, &general), text_of(kind))
    }
}

/// Returns the permission that shows the texts of a document or a memory.
fn text_of(kind: Records) -> &'static str {
    match kind {
        Records::Memories => "memories:GetMemoryEntry",
        other => get_of(other),
    }
}

/// Returns the permission that shows one record.
pub fn get_of(kind: Records) -> &'static str {
    let list = list_of(kind);
    permissions::shown_by(list).unwrap_or(list)
}

/// Returns the permission that lists records.
fn list_of(kind: Records) -> &'static str {
    match kind {
        Records::Actors => "actors:ListActors",
        Records::Agents => "agents:ListAgents",
        Records::Documents => "documents:ListDocuments",
        Records::Keys => "api-keys:ListApiKeys",
        Records::Memories => "memories:ListMemories",
        Records::Policies => "policies:ListPolicies",
        Records::Projects => "projects:ListProjects",
        Records::Providers => "ai-providers:ListAiProviders",
        Records::Secrets => "secrets:ListSecrets",
        Records::Sessions => "sessions:ListAgentSessions",
        Records::Tools => "tools:ListTools",
    }
}

/// Returns the records of a project of the API, or of all, that a caller sees in a list.
///
/// # Errors
/// When the store cannot be read.
pub async fn listed(
    engine: &Engine,
    who: &Who,
    (kind, project): (Records, Option<&str>),
) -> Result<Vec<Record>, ApiError> {
    let sight = Sight::of(engine, who, list_of(kind)).await?;
    let mut records = kind.list_in(engine, project).await?;
    records.retain(|record| sight.shows(record));
    Ok(records)
}
