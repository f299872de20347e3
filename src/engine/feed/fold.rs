//! Makes events of rows: their names and data. One row is one event.

use std::collections::HashMap;

use flowstone_lang::value::{Exception, Value};
use flowstone_model::feed_event::instant;
use serde_json::{Map, Value as Json, json};

use super::agents::{Agents, Nested};
use crate::codec;
use crate::flow::name_of;
use crate::ids::RunId;
use crate::json::to_exact_json;
use crate::outcome::decode_failure;
use crate::ports::{Entry, EntryKind, Event, EventKind, FeedItem, RunRow};
use crate::report::{Begun, packaged_request, title};
use crate::resource::{flow_output, step_output};

/// Results whose text is longer are sent as a reference.
const RESULT_MAX: usize = 8 << 10;

/// The data of an event.
type Fields = Map<String, Json>;

/// What the rows of a run that were read say about the rows that follow.
#[derive(Debug)]
pub(super) struct Fold {
    created_ms: i64,
    has_input: bool,
    /// The steps that have no result yet.
    steps: HashMap<String, Underway>,
    begun: Begun,
    agents: Agents,
}

/// A step that has no result yet.
#[derive(Debug, Clone, Copy, Default)]
struct Underway {
    attempts: u32,
    began_ms: Option<i64>,
    /// An attempt failed, and the next one has no entry of its own yet.
    is_between: bool,
}

impl Fold {
    pub(super) fn new(created_ms: i64, has_input: bool) -> Fold {
        Fold {
            created_ms,
            has_input,
            steps: HashMap::new(),
            begun: Begun::default(),
            agents: Agents::default(),
        }
    }

    /// Forgets the rows that were read: another pass begins.
    pub(super) fn reset(&mut self) {
        self.steps.clear();
        self.begun = Begun::default();
        self.agents.clear();
    }

    /// Takes in a row whose event is not needed.
    pub(super) fn take(&mut self, item: FeedItem) {
        match item {
            FeedItem::Event(event) if event.kind == EventKind::RunContinued => self.reset(),
            FeedItem::Event(_) => {}
            FeedItem::Entry(entry) => {
                self.step(&entry);
            }
        }
    }

    /// Returns the name and the data of a row's event.
    pub(super) fn event(
        &mut self,
        run: &RunId,
        pass: i64,
        item: FeedItem,
        row: Option<&RunRow>,
    ) -> (&'static str, Fields) {
        match item {
            FeedItem::Event(event) => {
                if event.kind == EventKind::RunContinued {
                    self.reset();
                }
                (event.kind.name(), self.of_event(&event, row))
            }
            FeedItem::Entry(entry) => self.of_entry(run, pass, &entry),
        }
    }

    fn of_event(&self, event: &Event, row: Option<&RunRow>) -> Fields {
        let data = codec::decode(&event.data).unwrap_or(Value::Nil);
        let mut fields = Fields::new();
        if !event.path.is_empty() {
            fields.insert("path".to_owned(), json!(event.path));
        }
        for (key, value) in data.as_map().into_iter().flat_map(|map| map.iter()) {
            let Some(key) = name_of(key) else {
                continue;
            };
            match &*key {
                "started-by" => insert(&mut fields, "startedBy", json_of(value)),
                "deadline" => insert(&mut fields, "deadline", at(value.as_int())),
                key => insert(&mut fields, key, json_of(value)),
            }
        }
        let Some(row) = row else {
            return fields;
        };
        if self.has_input && event.kind == EventKind::RunCreated {
            fields.insert("input".to_owned(), stored(&row.input));
        }
        if event.kind.is_end() {
            add_outcome(&mut fields, event.kind, row);
        }
        fields
    }

    /// Takes in an entry of a step, and returns when its attempt began, and which one it is.
    fn step(&mut self, entry: &Entry) -> (u32, i64, Option<Nested>) {
        let is_step = !matches!(
            entry.kind,
            EntryKind::Note | EntryKind::Log | EntryKind::Reuse
        );
        if !is_step {
            return (0, entry.at_ms, None);
        }
        let earliest = self.begun.at(&entry.path, self.created_ms);
        self.begun.note(&entry.path, entry.at_ms);
        let nested = self.agents.nested(&entry.path, &entry.what);
        let step = self.steps.entry(entry.path.clone()).or_default();
        let began_ms = *step.began_ms.get_or_insert(earliest);
        match entry.kind {
            EntryKind::Intent | EntryKind::Begin => {
                step.attempts += 1;
                step.is_between = false;
                step.began_ms = Some(entry.at_ms);
            }
            EntryKind::Timer => step.timer(entry),
            EntryKind::Result | EntryKind::Error | EntryKind::Draft => {
                step.attempts = (step.attempts + u32::from(step.is_between)).max(1);
                step.is_between = false;
            }
            EntryKind::Cost
            | EntryKind::Signal
            | EntryKind::Note
            | EntryKind::Log
            | EntryKind::Reuse => {}
        }
        let attempt = step.attempts.max(1);
        if matches!(entry.kind, EntryKind::Result | EntryKind::Error) {
            self.steps.remove(&entry.path);
            self.agents.ended(&entry.path);
            match &nested {
                Some(Nested::Turn(_)) if entry.kind == EntryKind::Result => {
                    let reply = codec::decode(&entry.payload).unwrap_or(Value::Nil);
                    self.agents.replied(&entry.path, &reply);
                }
                Some(_) => self.agents.step_ended(&entry.path),
                None => {}
            }
        }
        (attempt, began_ms, nested)
    }

    fn of_entry(&mut self, run: &RunId, pass: i64, entry: &Entry) -> (&'static str, Fields) {
        let (attempt, began_ms, nested) = self.step(entry);
        let mut fields = Fields::new();
        fields.insert("path".to_owned(), json!(entry.path));
        let millis = (entry.at_ms - began_ms).max(0);
        let found = StepEntry {
            run,
            entry,
            attempt,
            millis,
        };
        let name = match (entry.kind, nested) {
            (EntryKind::Intent | EntryKind::Begin, Some(Nested::Tool(call))) => {
                fields.extend(call);
                "tool.started"
            }
            (EntryKind::Result | EntryKind::Error, Some(Nested::Tool(call))) => {
                fields.extend(call);
                fields.remove("arguments");
                found.tool_completed(&mut fields);
                "tool.completed"
            }
            (EntryKind::Result, Some(Nested::Turn(turn))) => {
                fields.insert("turn".to_owned(), json!(turn));
                found.turn_completed(&mut fields);
                "turn.completed"
            }
            (EntryKind::Result, None) => {
                fields.insert("type".to_owned(), json!(entry.what));
                fields.insert("pass".to_owned(), json!(pass));
                found.completed(&mut fields);
                "step.completed"
            }
            (EntryKind::Intent | EntryKind::Begin, _) => {
                fields.insert("type".to_owned(), json!(entry.what));
                found.started(&mut fields);
                "step.started"
            }
            (EntryKind::Error, _) => {
                fields.insert("attempt".to_owned(), json!(attempt));
                fields.insert("error".to_owned(), error_of(&entry.payload));
                "step.failed"
            }
            (EntryKind::Timer, _) => found.timer(&mut fields),
            (EntryKind::Signal, _) => {
                let answer = codec::decode(&entry.payload).unwrap_or(Value::Nil);
                let action = answer
                    .get("action")
                    .or(answer.get("kind"))
                    .and_then(name_of);
                insert(&mut fields, "action", json!(action.as_deref()));
                "step.answered"
            }
            (EntryKind::Draft, _) => {
                fields.insert("type".to_owned(), json!(entry.what));
                fields.insert("attempt".to_owned(), json!(attempt));
                "step.drafted"
            }
            (EntryKind::Cost, _) => {
                fields.extend(object(&entry.payload));
                "step.cost"
            }
            (EntryKind::Reuse, _) => "step.reused",
            (EntryKind::Note, _) => {
                fields.insert("type".to_owned(), json!(entry.what));
                "note"
            }
            (EntryKind::Log, _) => {
                fields.remove("path");
                fields.extend(object(&entry.payload));
                match &*entry.what {
                    "flow/emit" => "emit",
                    _ => "log",
                }
            }
        };
        (name, fields)
    }
}

impl Underway {
    fn timer(&mut self, entry: &Entry) {
        let note = codec::decode(&entry.payload).unwrap_or(Value::Nil);
        if kind_of(&note).as_deref() == Some("notify") {
            return;
        }
        let attempts = note.get("attempt").and_then(Value::as_int);
        let attempts = attempts.and_then(|count| u32::try_from(count).ok());
        self.attempts = attempts.unwrap_or(self.attempts);
        if kind_of(&note).as_deref() == Some("retry") {
            self.is_between = true;
            self.began_ms = note.get("due").and_then(Value::as_int).or(self.began_ms);
        }
    }
}

/// An entry of a step, with what the entries before it say.
struct StepEntry<'a> {
    run: &'a RunId,
    entry: &'a Entry,
    attempt: u32,
    millis: i64,
}

impl StepEntry<'_> {
    fn started(&self, fields: &mut Fields) {
        let request = self.entry.request.clone().map(packaged_request);
        let title = request.and_then(|(_, request)| title(&request));
        insert(fields, "title", json!(title));
        fields.insert("attempt".to_owned(), json!(self.attempt));
    }

    fn completed(&self, fields: &mut Fields) {
        fields.insert("attempt".to_owned(), json!(self.attempt));
        fields.insert("millis".to_owned(), json!(self.millis));
        self.add_result(fields);
    }

    fn tool_completed(&self, fields: &mut Fields) {
        let is_done = self.entry.kind == EntryKind::Result;
        let status = if is_done { "done" } else { "failed" };
        fields.insert("status".to_owned(), json!(status));
        fields.insert("millis".to_owned(), json!(self.millis));
        match is_done {
            true => self.add_result(fields),
            false => {
                fields.insert("error".to_owned(), error_of(&self.entry.payload));
            }
        }
    }

    fn turn_completed(&self, fields: &mut Fields) {
        let reply = codec::decode(&self.entry.payload).unwrap_or(Value::Nil);
        for key in ["model", "usage"] {
            if let Some(value) = reply.get(key) {
                insert(fields, key, json_of(value));
            }
        }
        let dollars = match reply.get("cost-usd") {
            Some(Value::Float(dollars)) => Some(*dollars),
            Some(Value::Int(dollars)) => Some(*dollars as f64),
            _ => None,
        };
        if let Some(dollars) = dollars {
            let micros = (dollars * 1e6).round() as i64;
            fields.insert("costMicros".to_owned(), json!(micros));
        }
        fields.insert("millis".to_owned(), json!(self.millis));
    }

    fn add_result(&self, fields: &mut Fields) {
        let uri = || step_output(self.run.as_str(), &self.entry.path);
        add_result(fields, &self.entry.payload, uri);
    }

    fn timer(&self, fields: &mut Fields) -> &'static str {
        let note = codec::decode(&self.entry.payload).unwrap_or(Value::Nil);
        let kind = kind_of(&note);
        let due = at(note.get("due").and_then(Value::as_int));
        fields.insert("attempt".to_owned(), json!(self.attempt));
        match kind.as_deref() {
            Some("retry") => {
                let message = note.get("message").and_then(Value::as_str);
                insert(fields, "error", json!({ "message": message }));
                insert(fields, "againAt", due);
                "step.retrying"
            }
            Some("sleep") => {
                insert(fields, "until", due);
                "step.sleeping"
            }
            Some("notify") => {
                fields.remove("attempt");
                "step.notified"
            }
            other => {
                insert(fields, "for", json!(other));
                if let Some(run) = note.get("run").and_then(Value::as_str) {
                    fields.insert("child".to_owned(), json!(run));
                }
                "step.waiting"
            }
        }
    }
}

/// Adds how a run ended.
fn add_outcome(fields: &mut Fields, kind: EventKind, row: &RunRow) {
    if let Some(result) = &row.result {
        add_result(fields, result, || flow_output(row.id.as_str()));
    }
    if let Some(failure) = row.error.as_deref().and_then(decode_failure) {
        fields.insert("error".to_owned(), error_json(&failure.exception));
    }
    if matches!(kind, EventKind::RunCancelled | EventKind::RunTerminated) {
        insert(fields, "reason", json!(row.cancel_requested));
    }
}

/// Adds a result, or the name under which it can be read.
fn add_result(fields: &mut Fields, text: &str, uri: impl FnOnce() -> String) {
    match text.len() <= RESULT_MAX {
        true => fields.insert("result".to_owned(), stored(text)),
        false => fields.insert("resultRef".to_owned(), json!(uri())),
    };
}

fn error_of(payload: &str) -> Json {
    match codec::decode(payload) {
        Ok(Value::Exception(exception)) => error_json(&exception),
        _ => json!({ "message": payload }),
    }
}

/// Returns what an event says about an error.
fn error_json(exception: &Exception) -> Json {
    let mut fields = Fields::new();
    if !exception.code.is_empty() {
        fields.insert("code".to_owned(), json!(exception.code));
    }
    fields.insert(
        "message".to_owned(),
        json!(exception.display_text().to_string()),
    );
    if let Some(kind) = exception.data.get("kind") {
        insert(&mut fields, "kind", json_of(kind));
    }
    Json::Object(fields)
}

fn kind_of(note: &Value) -> Option<std::rc::Rc<str>> {
    note.get("kind").and_then(name_of)
}

/// Inserts a field unless it is null.
fn insert(fields: &mut Fields, key: &str, value: Json) {
    if !value.is_null() {
        fields.insert(key.to_owned(), value);
    }
}

fn at(millis: Option<i64>) -> Json {
    millis.map_or(Json::Null, instant)
}

/// Returns a value as JSON; one that JSON cannot represent as text.
pub(super) fn json_of(value: &Value) -> Json {
    to_exact_json(value).unwrap_or_else(|_| codec::encode(value).map_or(Json::Null, Json::String))
}

/// Returns stored EDN text as JSON.
fn stored(text: &str) -> Json {
    match codec::decode(text) {
        Ok(value) => to_exact_json(&value).unwrap_or_else(|_| json!(text)),
        Err(_) => json!(text),
    }
}

fn object(text: &str) -> Fields {
    match stored(text) {
        Json::Object(fields) => fields,
        other => Fields::from_iter([("data".to_owned(), other)]),
    }
}
