//! Records of the agents API: JSON objects by key, each in a project of the API.

use flowstone_engine::Engine;
use flowstone_engine::feed_event::instant;
use flowstone_project::held::{Held, hold};
use serde_json::{Map, Value as Json, json};

use super::error::ApiError;
use super::ids;
use crate::rows::Rows;

/// Maximum number of attempts to change a record that others change at the same time.
pub(super) const CHANGES_MAX: usize = 100;

/// Holds the references between records, for a change that adds a reference or deletes what others may name: a record is stored before
/// another request of this process looks for records that name the one that it deletes, or it finds that one gone.
pub async fn hold_references() -> Held {
    hold("flowstone_api/references".to_owned()).await
}

/// A kind of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    Actors,
    Agents,
    Documents,
    Memories,
    Keys,
    Policies,
    Projects,
    Providers,
    Secrets,
    Sessions,
    Tools,
}

/// One record.
#[derive(Debug, Clone)]
pub struct Record {
    pub kind: Records,
    pub members: Map<String, Json>,
}

impl Records {
    /// Returns the name of the table.
    pub fn table(self) -> &'static str {
        match self {
            Records::Agents => "flowstone_api_agents",
            Records::Sessions => "flowstone_api_sessions",
            Records::Actors => "flowstone_api_actors",
            Records::Documents => "flowstone_api_documents",
            Records::Memories => "flowstone_api_memories",
            Records::Keys => "flowstone_api_keys",
            Records::Policies => "flowstone_api_policies",
            Records::Projects => "flowstone_api_projects",
            Records::Providers => "flowstone_api_providers",
            Records::Secrets => "flowstone_api_secrets",
            Records::Tools => "flowstone_api_tools",
        }
    }

    /// Returns the prefix of ids.
    pub fn prefix(self) -> &'static str {
        match self {
            Records::Agents => "agt_",
            Records::Sessions => "sess_",
            Records::Actors => "act_",
            Records::Documents => "doc_",
            Records::Memories => "mem_",
            Records::Keys => "key_",
            Records::Policies => "pol_",
            Records::Projects => "proj_",
            Records::Providers => "aip_",
            Records::Secrets => "sec_",
            Records::Tools => "tool_",
        }
    }

    /// Returns what an error calls a record.
    pub fn noun(self) -> &'static str {
        match self {
            Records::Agents => "agent",
            Records::Sessions => "session",
            Records::Actors => "actor",
            Records::Documents => "document",
            Records::Memories => "memory",
            Records::Keys => "API key",
            Records::Policies => "policy",
            Records::Projects => "project",
            Records::Providers => "AI provider",
            Records::Secrets => "secret",
            Records::Tools => "tool",
        }
    }

    /// Returns the type of a record in names of resources: `ai-provider`.
    pub fn resource(self) -> String {
        self.noun().to_ascii_lowercase().replace(' ', "-")
    }

    fn rows(self) -> Rows {
        Rows(self.table())
    }

    /// Returns all records, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(self, engine: &Engine) -> Result<Vec<Record>, ApiError> {
        let rows = self.rows().list(engine).await?.into_iter();
        let records = rows.filter_map(|row| self.record(row));
        Ok(records.collect())
    }

    /// Returns the records of a project of the API, or of all.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_in(
        self,
        engine: &Engine,
        project: Option<&str>,
    ) -> Result<Vec<Record>, ApiError> {
        let mut records = self.list(engine).await?;
        if let Some(project) = project {
            let project = ids::key_of(project);
            records.retain(|record| ids::key_of(record.project()) == project);
        }
        Ok(records)
    }

    /// Returns a record.
    ///
    /// # Errors
    /// When no record has that id.
    pub async fn get(self, engine: &Engine, id: &str) -> Result<Record, ApiError> {
        let row = self.rows().get(engine, ids::key_of(id)).await?;
        row.and_then(|row| self.record(row))
            .ok_or_else(|| ApiError::missing(self.noun(), id))
    }

    /// Returns a record of a project of the API.
    ///
    /// # Errors
    /// When the project has no record with that id.
    pub async fn get_in(
        self,
        engine: &Engine,
        project: &str,
        id: &str,
    ) -> Result<Record, ApiError> {
        let record = self.get(engine, id).await?;
        match ids::key_of(record.project()) == ids::key_of(project) {
            true => Ok(record),
            false => Err(ApiError::missing(self.noun(), id)),
        }
    }

    /// Adds a record with a new id.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn create(
        self,
        engine: &Engine,
        members: Map<String, Json>,
    ) -> Result<Record, ApiError> {
        self.create_as(engine, &ids::key(engine), members).await
    }

    /// Adds a record with an id that has this key.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn create_as(
        self,
        engine: &Engine,
        key: &str,
        mut members: Map<String, Json>,
    ) -> Result<Record, ApiError> {
        let now = instant(engine.now_ms());
        members.insert("id".to_owned(), json!(format!("{}{key}", self.prefix())));
        members.insert("created_at".to_owned(), now.clone());
        members.insert("updated_at".to_owned(), now);
        self.put(engine, key, members).await
    }

    /// Changes a record: reads it, lets `change` change it, and stores it if it is still what was read. Where another change came first,
    /// also one that another process made, all of this is repeated, so none is lost.
    ///
    /// # Errors
    /// When no record has that id, `change` fails, or the store cannot be written.
    pub async fn change(
        self,
        engine: &Engine,
        id: &str,
        mut change: impl AsyncFnMut(Record) -> Result<Record, ApiError>,
    ) -> Result<Record, ApiError> {
        // Changes of this process wait for each other.
        let _held = self.hold(id).await;
        for _ in 0..CHANGES_MAX {
            let record = self.get(engine, id).await?;
            let key = record.key().to_owned();
            let old = Json::Object(record.members.clone());
            let mut record = change(record).await?;
            let now = instant(engine.now_ms());
            record.members.insert("updated_at".to_owned(), now);
            let new = Json::Object(record.members.clone());
            if self
                .rows()
                .replace_exact(engine, &key, (&old, &new))
                .await?
            {
                return Ok(record);
            }
        }
        Err(ApiError::conflict(format!(
            "the {} `{id}` was changed by others all the time; send the request again",
            self.noun()
        )))
    }

    async fn hold(self, id: &str) -> Held {
        hold(format!("{}/{}", self.table(), ids::key_of(id))).await
    }

    async fn put(
        self,
        engine: &Engine,
        key: &str,
        members: Map<String, Json>,
    ) -> Result<Record, ApiError> {
        let row = Json::Object(members.clone());
        self.rows().put(engine, key, &row).await?;
        Ok(Record {
            kind: self,
            members,
        })
    }

    /// Deletes a record, after a change that is under way.
    ///
    /// # Errors
    /// When no record has that id.
    pub async fn delete(self, engine: &Engine, id: &str) -> Result<(), ApiError> {
        let _held = self.hold(id).await;
        match self.rows().delete(engine, ids::key_of(id)).await? {
            true => Ok(()),
            false => Err(ApiError::missing(self.noun(), id)),
        }
    }

    fn record(self, row: Json) -> Option<Record> {
        match row {
            Json::Object(members) => Some(Record {
                kind: self,
                members,
            }),
            _ => None,
        }
    }
}

/// A change of the tags of a record.
#[derive(Debug, Clone)]
pub enum Tags {
    Replace(Json),
    Merge(Json),
}

/// The tags of generations, which are runs and have no record, by run.
const OF_RUNS: Rows = Rows("flowstone_api_run_tags");

impl Tags {
    fn apply(self, own: Map<String, Json>) -> Result<Map<String, Json>, ApiError> {
        let (mut tags, given) = match self {
            Tags::Replace(given) => (Map::new(), given),
            Tags::Merge(given) => (own, given),
        };
        let Json::Object(given) = given else {
            return Err(ApiError::invalid("the body must be an object of tags"));
        };
        if let Some((name, _)) = given.iter().find(|(_, value)| !value.is_string()) {
            return Err(ApiError::invalid(format!(
                "the tag `{name}` must be a string"
            )));
        }
        tags.extend(given);
        Ok(tags)
    }

    /// Returns the tags of the run of a generation, after a change if there is one.
    ///
    /// # Errors
    /// When the tags are not texts.
    pub async fn of_run(
        engine: &Engine,
        run: &str,
        change: Option<Tags>,
    ) -> Result<Json, ApiError> {
        let _held = hold(format!("flowstone_api_run_tags/{run}")).await;
        for _ in 0..CHANGES_MAX {
            let old = OF_RUNS.get(engine, run).await?;
            let own = old.as_ref().and_then(Json::as_object).cloned();
            let own = own.unwrap_or_default();
            let Some(change) = change.clone() else {
                return Ok(Json::Object(own));
            };
            let tags = Json::Object(change.apply(own)?);
            let is_stored = match &old {
                Some(old) => OF_RUNS.replace_exact(engine, run, (old, &tags)).await?,
                None => OF_RUNS.insert(engine, run, &tags).await?,
            };
            if is_stored {
                return Ok(tags);
            }
        }
        Err(ApiError::conflict(
            "the tags were changed by others all the time; send the request again",
        ))
    }
}

/// Returns tags as names with values. Those of a memory are texts: `role:admin` is `{"role": "admin"}`, and `vip` is `{"vip": ""}`.
pub fn tags_of(tags: Option<&Json>) -> Map<String, Json> {
    match tags {
        Some(Json::Array(texts)) => texts.iter().filter_map(Json::as_str).map(pair).collect(),
        Some(Json::Object(own)) => own.clone(),
        Some(_) | None => Map::new(),
    }
}

/// Returns tags as conditions compare them: a name that a memory has with several values has the list of them.
pub fn compared_tags(tags: Option<&Json>) -> Map<String, Json> {
    let Some(Json::Array(texts)) = tags else {
        return tags_of(tags);
    };
    let mut compared: Map<String, Json> = Map::new();
    for (name, value) in texts.iter().filter_map(Json::as_str).map(pair) {
        let values = compared.entry(name).or_insert_with(|| json!([]));
        if let Json::Array(values) = values {
            values.push(value);
        }
    }
    compared
}

fn pair(text: &str) -> (String, Json) {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    (name.to_owned(), json!(value))
}

fn text_of((name, value): (&String, &Json)) -> Json {
    match value.as_str().filter(|value| !value.is_empty()) {
        Some(value) => json!(format!("{name}:{value}")),
        None => json!(name),
    }
}

impl Record {
    /// Returns the tags of the record as names with values, after a change if there is one.
    ///
    /// # Errors
    /// When the tags are not texts.
    pub async fn tags(&self, engine: &Engine, change: Option<Tags>) -> Result<Json, ApiError> {
        let Some(change) = change else {
            return Ok(Json::Object(tags_of(self.get("tags"))));
        };
        let mut tags = Map::new();
        let changing = async |mut record: Record| {
            tags = change.clone().apply(tags_of(record.get("tags")))?;
            record
                .members
                .insert("tags".to_owned(), self.stored_tags(&tags));
            Ok(record)
        };
        self.kind.change(engine, self.id(), changing).await?;
        Ok(Json::Object(tags))
    }

    /// Returns tags as the record has them.
    fn stored_tags(&self, tags: &Map<String, Json>) -> Json {
        match self.kind {
            Records::Memories => tags.iter().map(text_of).collect(),
            Records::Actors
            | Records::Agents
            | Records::Documents
            | Records::Keys
            | Records::Policies
            | Records::Projects
            | Records::Providers
            | Records::Secrets
            | Records::Sessions
            | Records::Tools => Json::Object(tags.clone()),
        }
    }

    pub fn id(&self) -> &str {
        self.text("id").unwrap_or_default()
    }

    pub fn key(&self) -> &str {
        ids::key_of(self.id())
    }

    /// Returns the id of its project of the API.
    /// Returns the id of the project of the API that the record is in. A project is in itself.
    pub fn project(&self) -> &str {
        match self.kind {
            Records::Projects => self.id(),
            Records::Actors
            | Records::Agents
            | Records::Documents
            | Records::Keys
            | Records::Memories
            | Records::Policies
            | Records::Providers
            | Records::Secrets
            | Records::Sessions
            | Records::Tools => self.text("project_id").unwrap_or_default(),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Json> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Json::as_str)
    }

    /// Returns the record as answers show it: with `null` for each of these members that it lacks.
    pub fn to_json(&self, members: &[&str]) -> Json {
        let mut shown = self.members.clone();
        for name in members {
            shown.entry((*name).to_owned()).or_insert(Json::Null);
        }
        Json::Object(shown)
    }
}
