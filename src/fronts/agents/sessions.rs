//! Sessions: conversations with an agent, whose messages are stored.
//!
//! A message of the agent is a reference to its generation, written when the generation starts; its text is that of the run. The
//! start of a generation has a receipt with the number of generations before it, so of two starts at once one counts, also after a
//! crash.

mod activity;
mod members;
mod single;
mod troubles;

use std::time::Duration;

use flowstone_engine::feed_event::instant;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::NewReceipt;
use flowstone_engine::waits::Caller;
use flowstone_engine::{Engine, Submitted};
use serde_json::{Map, Value as Json, json};

use super::agent::Agent;
use super::body::Body;
use super::error::{ApiError, Refusal, Status};
use super::generations::{self, State, View, Who};
use super::records::{self, Record, Records, Tags};
use super::{codes, context, documents, ids, knowledge, lineage, outputs, reach, sight};
use crate::rows::Rows;
use members::STATUS;
pub use members::{CREATE, GENERATE, MESSAGE, SUBMIT, UPDATE};

/// The messages, by session and time.
const MESSAGES: Rows = Rows("flowstone_api_messages");
/// How often the row of a generation is looked for, every 10 milliseconds.
const WRITTEN_TRIES: usize = 50;
/// The messages by idempotency key.
const KEYS: Rows = Rows("flowstone_api_message_keys");

/// The member of a message with its own tool context, for the generation that answers it.
const CONTEXT: &str = "tool_context";

const SHOWN: &[&str] = &["actor_id", "message_delay_seconds", "name", "tool_context"];

/// A message of the user before it is stored.
#[derive(Debug, Clone)]
pub struct Draft {
    row: Json,
    /// Whether no message had its idempotency key.
    pub is_new: bool,
    /// Whether the message was stored before.
    pub is_stored: bool,
}

impl Draft {
    /// Returns the key of its row; later messages have greater ones.
    pub fn key(&self) -> &str {
        self.row["key"].as_str().unwrap_or_default()
    }

    /// Returns the message as answers show it.
    pub fn message(&self) -> Json {
        message(&self.row)
    }
}

/// A session, with its agent.
#[derive(Debug, Clone)]
pub struct Session {
    record: Record,
    pub agent: Agent,
}

fn refused(status: Status, name: &'static str, code: &'static str, message: String) -> ApiError {
    ApiError::new(status, (name, code), message)
}

fn check(body: &Body) -> Result<(), ApiError> {
    match body.get("tool_context").and_then(Json::as_object) {
        Some(given) => context::check(given),
        None => Ok(()),
    }
}

/// Adds the members that every session has.
fn complete(members: &mut Map<String, Json>) {
    members.entry("auto_generate").or_insert(json!(false));
    members.entry("inactivity_ttl_seconds").or_insert(json!(0));
}

/// Adds a session.
///
/// # Errors
/// When the body is not valid, the caller may not see the actor, or the actor has an open session and the agent allows one.
pub async fn create(
    engine: &Engine,
    who: &Who,
    (agent, body): (&str, Json),
) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    let mut body = Body::read(body, CREATE)?;
    check(&body)?;
    let agent = Agent::find(engine, agent).await?;
    let project = agent.record.project().to_owned();
    if let Some(actor) = body.text("actor_id") {
        let actor = reach::actor(engine, who, (&project, actor)).await?;
        let id = actor.id().to_owned();
        body.0.insert("actor_id".to_owned(), json!(id));
    }
    for (name, value) in [
        ("agent_id", json!(agent.record.id())),
        ("project_id", json!(project)),
        ("status", json!("open")),
        (activity::LAST, json!(engine.now_ms())),
        ("tags", json!({})),
    ] {
        body.0.insert(name.to_owned(), value);
    }
    complete(&mut body.0);
    let key = ids::key(engine);
    let id = format!("{}{key}", Records::Sessions.prefix());
    body.0.insert("id".to_owned(), json!(id));
    let record = Record {
        kind: Records::Sessions,
        members: body.0.clone(),
    };
    let mut session = Session { record, agent };
    single::take(engine, &session).await?;
    session.record = Records::Sessions.create_as(engine, &key, body.0).await?;
    session.to_json(engine).await
}

/// Returns the sessions of an agent that a caller sees, oldest first.
///
/// # Errors
/// When no record has that id.
pub async fn list(
    engine: &Engine,
    who: &Who,
    (agent, (actor, status)): (&str, (Option<String>, Option<String>)),
) -> Result<Vec<Json>, ApiError> {
    let agent = Agent::find(engine, agent).await?;
    let wanted = (Records::Sessions, Some(agent.record.project()));
    let all = sight::listed(engine, who, wanted).await?;
    let all = activity::with_all(engine, all).await?;
    let sessions = all.into_iter().map(|record| Session {
        record,
        agent: agent.clone(),
    });
    let is_it = |wanted: &Option<String>, id: Option<&str>| {
        let wanted = wanted.as_deref().map(ids::key_of);
        wanted.is_none_or(|wanted| id.map(ids::key_of) == Some(wanted))
    };
    let sessions = sessions
        .filter(|it| it.record.text("agent_id") == Some(agent.record.id()))
        .filter(|it| is_it(&actor, it.record.text("actor_id")))
        .filter(|it| {
            status
                .as_deref()
                .is_none_or(|wanted| it.status(engine) == wanted)
        });
    let mut shown = Vec::new();
    for session in sessions {
        shown.push(session.to_json(engine).await?);
    }
    Ok(shown)
}

/// Deletes a session with its messages.
///
/// # Errors
/// When the store cannot be written.
pub async fn delete(engine: &Engine, session: &Record) -> Result<(), ApiError> {
    Records::Sessions.delete(engine, session.id()).await?;
    let prefix = format!("{}.", session.key());
    for rows in [MESSAGES, KEYS] {
        rows.delete_under(engine, &prefix).await?;
    }
    troubles::forget(engine, session).await?;
    activity::forget(engine, session).await
}

impl Session {
    /// Returns a session of an agent.
    ///
    /// # Errors
    /// When the agent has no session with that id.
    pub async fn find(engine: &Engine, agent: &str, id: &str) -> Result<Session, ApiError> {
        let record = Records::Sessions.get(engine, id).await?;
        let own = record.text("agent_id").map(ids::key_of);
        if own != Some(ids::key_of(agent)) {
            return Err(ApiError::missing("session", id));
        }
        let agent = Agent::find(engine, agent).await?;
        let record = activity::with(engine, record).await?;
        Ok(Session { record, agent })
    }

    /// Returns `open`, `closed` or `expired`.
    fn status(&self, engine: &Engine) -> &str {
        let status = self.record.text("status").unwrap_or("open");
        let number = |name: &str| self.record.get(name).and_then(Json::as_i64);
        let ends = number("inactivity_ttl_seconds")
            .filter(|seconds| *seconds > 0)
            .zip(number(activity::LAST))
            .map(|(seconds, last)| last.saturating_add(seconds.saturating_mul(1_000)));
        match ends {
            Some(ends) if status == "open" && ends <= engine.now_ms() => "expired",
            Some(_) | None => status,
        }
    }

    /// Returns when the generation began that is not over, if there is one.
    async fn generating_at(&self, engine: &Engine) -> Result<Option<Json>, ApiError> {
        let rows = self.rows(engine).await?;
        let last = rows.iter().rev().find(|it| it["generation_id"].is_string());
        let Some(last) = last else {
            return Ok(None);
        };
        let id = last["generation_id"].as_str().unwrap_or_default();
        match generations::view(engine, id).await {
            Ok(view) if !view.is_over() => Ok(Some(last["created_at"].clone())),
            Ok(_) | Err(ApiError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the session as answers show it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn to_json(&self, engine: &Engine) -> Result<Json, ApiError> {
        let mut shown = self.record.to_json(SHOWN);
        shown["status"] = json!(self.status(engine));
        if let Some(last) = self.record.get(activity::LAST).and_then(Json::as_i64) {
            shown["last_activity_at"] = instant(last);
        }
        if let Some(members) = shown.as_object_mut() {
            complete(members);
            members.remove(activity::LAST);
        }
        shown["generating_at"] = self.generating_at(engine).await?.unwrap_or(Json::Null);
        shown["problems"] = troubles::of(engine, &self.record).await?;
        Ok(shown)
    }

    pub fn generates_by_itself(&self) -> bool {
        self.record.get("auto_generate") == Some(&json!(true))
    }

    pub fn id(&self) -> &str {
        self.record.id()
    }

    /// Returns how long a message waits for others, if it does.
    pub fn delay_ms(&self) -> Option<i64> {
        let seconds = self.record.get("message_delay_seconds")?.as_i64()?;
        (seconds > 0).then(|| seconds.saturating_mul(1_000))
    }

    /// Returns the state of the last generation, if it is not over.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn unfinished(&self, engine: &Engine) -> Result<Option<State>, ApiError> {
        let rows = self.rows(engine).await?;
        Ok(unfinished(engine, &rows).await?.map(|it| it.1))
    }

    /// Tells whether there are messages that no generation has seen. They are counted, because one of two messages at once may be
    /// stored after a generation has started with the other, although its key is the lower one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn has_unseen(&self, engine: &Engine) -> Result<bool, ApiError> {
        let rows = self.rows(engine).await?;
        Ok(unseen(&rows).next().is_some())
    }

    /// Changes the session.
    ///
    /// # Errors
    /// When the body is not valid, or the session is opened again and its actor has another.
    pub async fn update(mut self, engine: &Engine, body: Json) -> Result<Json, ApiError> {
        let body = Body::read_changes(body, UPDATE, &[STATUS])?;
        check(&body)?;
        let given = body.text("status").map(|status| status == "open");
        let id = self.id().to_owned();
        let changing = async |record: Record| {
            self.record = record;
            if given == Some(true) && self.status(engine) != "open" {
                single::take(engine, &self).await?;
                self.touch(engine).await?;
            }
            let mut record = self.record.clone();
            body.clone().change(&mut record.members);
            complete(&mut record.members);
            Ok(record)
        };
        self.record = Records::Sessions.change(engine, &id, changing).await?;
        if given == Some(false) {
            single::free(engine, &self).await?;
        }
        self.to_json(engine).await
    }

    /// Returns the tags of the session, after a change if there is one.
    ///
    /// # Errors
    /// When the tags are not texts.
    pub async fn tags(&self, engine: &Engine, change: Option<Tags>) -> Result<Json, ApiError> {
        self.record.tags(engine, change).await
    }

    /// Deletes the session with its messages. Its generations remain.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn delete(self, engine: &Engine) -> Result<(), ApiError> {
        delete(engine, &self.record).await?;
        single::free(engine, &self).await
    }

    /// Refuses a session that takes no messages.
    fn refuse_over(&self, engine: &Engine) -> Result<(), ApiError> {
        let id = self.record.id();
        match self.status(engine) {
            "open" => Ok(()),
            "expired" => Err(refused(
                Status::Gone,
                "SESSION_EXPIRED",
                codes::EXPIRED,
                format!("the session `{id}` has expired"),
            )),
            status => Err(ApiError::conflict(format!(
                "the session `{id}` is {status}"
            ))),
        }
    }

    async fn touch(&mut self, engine: &Engine) -> Result<(), ApiError> {
        let now = json!(activity::note(engine, &self.record).await?);
        self.record.members.insert(activity::LAST.to_owned(), now);
        Ok(())
    }

    /// Returns a message of the user, which is stored next.
    ///
    /// # Errors
    /// When the body is not valid, the caller may not read the document, or the session takes no messages.
    pub async fn draft(&self, engine: &Engine, who: &Who, body: &Json) -> Result<Draft, ApiError> {
        let body = Body::read(body.clone(), MESSAGE)?;
        self.check_context(&body)?;
        self.refuse_over(engine)?;
        if body.text("idempotency_key") == Some("") {
            let message =
                "`idempotency_key` must not be empty: leave it out, or give each message its own";
            return Err(ApiError::invalid(message));
        }
        let given = body.text("message").filter(|text| !text.is_empty());
        let text = match (given, body.text("document_id")) {
            (Some(text), None) => text.to_owned(),
            (None, Some(id)) => documents::text(engine, who, (self.record.project(), id)).await?,
            (Some(_), Some(_)) => {
                let message = "`message` and `document_id` cannot both be given";
                return Err(ApiError::invalid(message));
            }
            (None, None) => {
                return Err(ApiError::invalid("`message` or `document_id` is missing"));
            }
        };
        let key = format!("{}.{}", self.record.key(), ids::key(engine));
        let mut row = json!({"key": key, "role": "user", "content": text, "document_id": body.get("document_id"),
                             "created_at": instant(engine.now_ms())});
        if let Some(context) = body.get("tool_context") {
            row[CONTEXT] = context.clone();
        }
        if let Some(given) = body.text("idempotency_key") {
            let known = format!("{}.{given}", self.record.key());
            if !KEYS.insert(engine, &known, &row).await?
                && let Some(row) = KEYS.get(engine, &known).await?
            {
                let key = row["key"].as_str().unwrap_or_default();
                // A crash may have come between the key and the message.
                let is_stored = MESSAGES.get(engine, key).await?.is_some();
                return Ok(Draft {
                    row,
                    is_new: false,
                    is_stored,
                });
            }
        }
        Ok(Draft {
            row,
            is_new: true,
            is_stored: false,
        })
    }

    /// Checks the tool context of a message, alone and with that of the session: both are sent with one generation.
    fn check_context(&self, body: &Body) -> Result<(), ApiError> {
        check(body)?;
        let Some(given) = body.get(CONTEXT).and_then(Json::as_object) else {
            return Ok(());
        };
        let mut all = self.own_context();
        all.extend(given.clone());
        context::check(&all)
    }

    fn own_context(&self) -> Map<String, Json> {
        let own = self.record.get(CONTEXT).and_then(Json::as_object);
        own.cloned().unwrap_or_default()
    }

    /// Returns the place of a stored message in the conversation. A generation that is in progress has its place, too.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn position(&self, engine: &Engine, draft: &Draft) -> Result<usize, ApiError> {
        let rows = self.rows(engine).await?;
        Ok(rows.partition_point(|row| row["key"].as_str() < Some(draft.key())))
    }

    /// Stores a message of the user.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn add(&mut self, engine: &Engine, draft: &Draft) -> Result<(), ApiError> {
        if draft.is_stored {
            return Ok(());
        }
        MESSAGES.put(engine, draft.key(), &draft.row).await?;
        self.touch(engine).await?;
        // Keys have milliseconds: a message that is sent after this answer gets a later one.
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(())
    }

    async fn rows(&self, engine: &Engine) -> Result<Vec<Json>, ApiError> {
        let prefix = format!("{}.", self.record.key());
        Ok(MESSAGES.list_under(engine, &prefix).await?)
    }

    /// Returns the messages, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn messages(&self, engine: &Engine) -> Result<Vec<Json>, ApiError> {
        messages_of(engine, &self.rows(engine).await?).await
    }

    /// Starts a generation that answers the messages so far.
    ///
    /// # Errors
    /// When the body is not valid, the session takes no messages or has none, or its last generation is not over.
    pub async fn generate(
        &mut self,
        engine: &Engine,
        who: &Who,
        body: Json,
    ) -> Result<RunId, ApiError> {
        let body = Body::read(body, GENERATE)?;
        check(&body)?;
        self.refuse_over(engine)?;
        let rows = self.rows(engine).await?;
        if let Some((last, _)) = unfinished(engine, &rows).await? {
            return Err(busy(&last));
        }
        let before = rows.iter().filter(|row| row["generation_id"].is_string());
        let count = before.count();
        let messages = messages_of(engine, &rows).await?;
        let messages = messages
            .iter()
            .map(|it| json!({"role": it["role"], "content": it["content"]}));
        let actor = self.actor(engine).await?;
        let request = json!({
            "messages": messages.collect::<Vec<_>>(),
            "tool_context": self.context(actor.as_ref(), &rows, &body),
        });
        let mut more = Map::new();
        if let Some(model) = body.get("model") {
            more.insert("model".to_owned(), model.clone());
        }
        if let Some(actor) = &actor {
            self.add_actor(engine, actor, &mut more).await?;
        }
        let receipt = NewReceipt {
            scope: format!("agents session {}", self.record.key()),
            key: count.to_string(),
            digest: String::new(),
            until_ms: i64::MAX,
        };
        let submitted =
            generations::start_once(engine, (&self.agent, who), (request, more), vec![receipt])
                .await?;
        let (run, is_new) = match submitted {
            Submitted::Started(started) => (started.run, true),
            Submitted::Known(past) => match past.runs.first() {
                Some(run) => (run.clone(), false),
                None => return Err(ApiError::conflict("the generation has no run")),
            },
        };
        let key = format!("{}.{run}", self.record.key());
        if !is_new && is_written(engine, &key).await? {
            return Err(busy(&ids::generation(&run)));
        }
        let seen = match is_new {
            true => of_users(&rows),
            // A crash came between the start of the generation and its row: it saw the messages before it.
            false => of_users(&earlier(&rows, &key)),
        };
        let row = json!({"key": key, "generation_id": ids::generation(&run), "seen": seen,
                         "created_at": instant(engine.now_ms())});
        MESSAGES.put(engine, &key, &row).await?;
        if !is_new {
            return Err(busy(&ids::generation(&run)));
        }
        troubles::forget(engine, &self.record).await?;
        self.touch(engine).await?;
        Ok(run)
    }

    /// Notes why no generation answers the last messages.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn note_refusal(&self, engine: &Engine, refusal: &Refusal) -> Result<(), ApiError> {
        troubles::note(engine, &self.record, refusal).await
    }

    /// Gives the generation of the session the outputs of client tools.
    ///
    /// # Errors
    /// When the body is not valid, or the session has no such generation.
    pub async fn submit(
        &self,
        engine: &Engine,
        body: Json,
        caller: Caller,
    ) -> Result<RunId, ApiError> {
        let body = Body::read(body, SUBMIT)?;
        let id = body.text("generation_id").unwrap_or_default();
        let (row, agent) = generations::find_of(engine, self.agent.record.id(), id).await?;
        let above = lineage::of(engine, &row).await?;
        let own = above.root.unwrap_or_else(|| row.id.clone());
        let key = format!("{}.{own}", self.record.key());
        if MESSAGES.get(engine, &key).await?.is_none() {
            return Err(ApiError::missing("generation", id));
        }
        let outputs = json!({"tool_outputs": body.get("tool_outputs")});
        let agent = Agent::find(engine, &agent).await?;
        outputs::submit(engine, &agent, &row, outputs, caller).await?;
        Ok(own)
    }

    async fn actor(&self, engine: &Engine) -> Result<Option<Record>, ApiError> {
        let Some(id) = self.record.text("actor_id") else {
            return Ok(None);
        };
        match Records::Actors.get(engine, id).await {
            Ok(actor) => Ok(Some(actor)),
            // The actor was deleted, and the session remains.
            Err(ApiError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds the memory and the instructions of an actor to a generation. The right to the memory was checked when the actor got it.
    async fn add_actor(
        &self,
        engine: &Engine,
        actor: &Record,
        more: &mut Map<String, Json>,
    ) -> Result<(), ApiError> {
        let agent = &self.agent.record;
        if let Some(memory) = actor.text("memory_id") {
            let config = agent.get("knowledge_config");
            let mut own = json!({"memory_ids": [memory]});
            if config.and_then(|it| it.get("write_memory_id")).is_none() {
                own["write_memory_id"] = json!(memory);
            }
            let own = knowledge::read(engine, agent.project(), &own).await?;
            let merged = knowledge::merged(config, Some(&own));
            let option = knowledge::option(agent.project(), &merged);
            more.insert("knowledge".to_owned(), option);
        }
        if let Some(own) = actor.text("instructions") {
            let parts = [agent.text("instructions"), Some(own)];
            let parts: Vec<&str> = parts.into_iter().flatten().collect();
            more.insert("instructions".to_owned(), json!(parts.join("\n\n")));
        }
        Ok(())
    }

    /// Returns the tool context of a generation: that of the session, of the messages that it answers, and of the request, then what the
    /// server sets. Later ones replace earlier ones.
    fn context(&self, actor: Option<&Record>, rows: &[Json], body: &Body) -> Json {
        let mut context = self.own_context();
        for row in unseen(rows) {
            context = context::after(
                Some(&context),
                row[CONTEXT].as_object().unwrap_or(&Map::new()),
            );
        }
        let given = body.get(CONTEXT).and_then(Json::as_object);
        context.extend(given.cloned().unwrap_or_default());
        let mut context = context::of_caller(Some(&Json::Object(context)));
        let mut own = vec![("sessionId", self.record.id().to_owned())];
        if let Some(actor) = self.record.text("actor_id") {
            own.push(("actorId", actor.to_owned()));
        }
        if let Some(external) = actor.and_then(|actor| actor.text("external_id")) {
            own.push(("actorExternalId", external.to_owned()));
        }
        for (name, value) in own {
            context.retain(|known, _| !known.eq_ignore_ascii_case(name));
            context.insert(name.to_owned(), json!(value));
        }
        Json::Object(context)
    }
}

/// Returns the messages of these rows. A generation that is not completed has none.
async fn messages_of(engine: &Engine, rows: &[Json]) -> Result<Vec<Json>, ApiError> {
    let mut messages = Vec::new();
    for (position, row) in rows.iter().enumerate() {
        let Some(generation) = row["generation_id"].as_str() else {
            let mut message = message(row);
            message["position"] = json!(position);
            messages.push(message);
            continue;
        };
        let view = generations::view(engine, generation).await?;
        if view.state == State::Completed {
            messages.push(json!({
                "role": "assistant",
                "content": view.text(),
                "document_id": Json::Null,
                "generation_id": generation,
                "created_at": row["created_at"],
                "position": position,
            }));
        }
    }
    Ok(messages)
}

/// Returns the rows before a key.
fn earlier(rows: &[Json], key: &str) -> Vec<Json> {
    let rows = rows.iter().filter(|row| row["key"].as_str() < Some(key));
    rows.cloned().collect()
}

/// Returns the last generation with its state, if it is not over.
async fn unfinished(engine: &Engine, rows: &[Json]) -> Result<Option<(String, State)>, ApiError> {
    let mut ids = rows
        .iter()
        .rev()
        .filter_map(|row| row["generation_id"].as_str());
    let Some(last) = ids.next() else {
        return Ok(None);
    };
    let state = generations::view(engine, last).await?.state;
    Ok(match state {
        State::InProgress | State::RequiresAction => Some((last.to_owned(), state)),
        State::Completed | State::Failed => None,
    })
}

/// Waits until the request that started a generation has written its row, which says how many messages the generation saw. Returns
/// false if it does not, because its server was killed.
async fn is_written(engine: &Engine, key: &str) -> Result<bool, ApiError> {
    for _ in 0..WRITTEN_TRIES {
        if MESSAGES.get(engine, key).await?.is_some() {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(false)
}

/// Returns the messages of users that no generation has seen.
fn unseen(rows: &[Json]) -> impl Iterator<Item = &Json> {
    let seen = rows.iter().filter_map(|row| row["seen"].as_u64()).max();
    let seen = usize::try_from(seen.unwrap_or(0)).unwrap_or(usize::MAX);
    let users = rows.iter().filter(|row| !row["generation_id"].is_string());
    users.skip(seen)
}

/// Returns the number of messages of users.
fn of_users(rows: &[Json]) -> u64 {
    let users = rows.iter().filter(|row| !row["generation_id"].is_string());
    u64::try_from(users.count()).unwrap_or(u64::MAX)
}

fn busy(generation: &str) -> ApiError {
    let message = format!("the generation `{generation}` of the session is not over");
    let error = refused(
        Status::Conflict,
        "GENERATION_ALREADY_IN_PROGRESS",
        codes::BUSY,
        message,
    );
    error.with(json!({"generation_id": generation}))
}

/// Returns a message of a user as answers show it.
fn message(row: &Json) -> Json {
    let mut shown = row.clone();
    if let Some(members) = shown.as_object_mut() {
        members.remove("key");
        members.remove(CONTEXT);
    }
    shown
}

/// Returns the answer to a request of a session that does not wait for its generation.
pub fn accepted(session: &str, run: &RunId) -> Json {
    json!({
        "status": "accepted",
        "session_id": session,
        "generation_id": ids::generation(run),
        "trace_id": ids::trace(run),
    })
}

/// Returns a generation as the answer to a request of a session.
pub fn answer(view: &View) -> Json {
    let message = match view.state {
        State::Completed => {
            json!({"role": "assistant", "content": view.text(), "model": view.model()})
        }
        State::InProgress | State::RequiresAction | State::Failed => Json::Null,
    };
    let mut answer = view.to_answer();
    answer["message"] = message;
    answer
}
