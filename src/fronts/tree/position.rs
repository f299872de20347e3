//! The position of a run: the state that its flow computed last, from the open wait or from the end of the run.

use flowstone_engine::EngineError;
use flowstone_engine::codec;
use flowstone_engine::ports::{RunRow, RunStatus, WaitRow};
use flowstone_lang::value::Value;
use flowstone_model::json::to_json;
use serde_json::{Map, Value as Json, json};

use super::error::TreeError;

/// The id of the wait step in a tree's flow.
const STEP: &str = "answer";

/// Parts of the state that grow with the tree or the driver's data. Few calls need them.
const LARGE: &[&str] = &["node-status", "retry-count", "step-index", "var"];

/// How many keys an object may have so that they stay in the order in which they were written.
const IN_ORDER: usize = 8;

/// A run of a tree, and its state.
#[derive(Debug, Clone)]
pub(super) struct Position {
    pub run: RunRow,
    /// The wait for the next answer; `None` if the run has ended.
    pub wait: Option<WaitRow>,
    /// The state, as computed by `flow.tree`, without the parts in `large`.
    state: Value,
    /// The texts of large parts, by name: they are read when they are needed.
    large: Vec<(&'static str, String)>,
    /// The number of answers so far.
    pub answers: u64,
    /// The run ended from outside, for example because it was cancelled. The tree may not have taken the last answer.
    pub is_cut_off: bool,
}

impl Position {
    /// Returns the position of a run at one of its waits; `None` if that is not the wait of a tree.
    pub(super) fn at_wait(run: RunRow, wait: WaitRow) -> Option<Position> {
        let entries = codec::entries_at(&wait.details, &["show", "data", "state"]).ok()??;
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for (key, text) in entries {
            match LARGE.iter().find(|name| key == Value::keyword(name)) {
                Some(name) => large.push((*name, text.to_owned())),
                None => small.push((key, codec::decode(text).ok()?)),
            }
        }
        let answers = occurrence(&wait.path)? - 1;
        Some(Position {
            run,
            wait: Some(wait),
            state: Value::map(small),
            large,
            answers,
            is_cut_off: false,
        })
    }

    /// Returns the position of a run that has ended. `last` is its last wait, if it had one.
    pub(super) fn at_end(run: RunRow, last: Option<WaitRow>) -> Option<Position> {
        let stored = match run.status {
            RunStatus::Completed => run.result.as_deref(),
            _ => run.error.as_deref(),
        };
        let stored = stored.and_then(|text| codec::decode(text).ok());
        let found = stored.as_ref().and_then(state_in).cloned();
        let is_answered = last.as_ref().is_some_and(|last| last.payload.is_some());
        let before = last.and_then(|last| Position::at_wait(run.clone(), last));
        let answers = before.as_ref().map_or(0, |before| before.answers);
        let is_cut_off = found.is_none();
        let (state, large) = match found {
            Some(state) => (state, Vec::new()),
            // The run was cancelled: its state is that of the last wait.
            None => {
                let before = before?;
                (failed(&before.state), before.large)
            }
        };
        Some(Position {
            run,
            wait: None,
            state,
            large,
            answers: answers + u64::from(is_answered),
            is_cut_off,
        })
    }

    /// Tells whether the run follows an earlier one that was reset after its end.
    pub(super) fn is_reset(&self) -> bool {
        let name = self.run.external_id.as_deref().unwrap_or_default();
        name.rsplit_once('#')
            .is_some_and(|(_, number)| number.parse::<u32>().is_ok())
    }

    /// Returns how the run ended from outside, such as `cancelled`. The status of its tree is `failed`.
    pub(super) fn ended(&self) -> Option<&'static str> {
        self.is_cut_off.then(|| self.run.status.name())
    }

    /// Returns a text of the state, such as its `phase`; empty if it does not exist.
    pub(super) fn text(&self, key: &str) -> &str {
        self.state
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(super) fn phase(&self) -> &str {
        self.text("phase")
    }

    /// Tells whether the driver has accepted the protocol, or does not need to.
    pub(super) fn is_accepted(&self) -> bool {
        self.state.get("accepted") == Some(&Value::Bool(true))
    }

    /// Tells whether the run started with the gate.
    pub(super) fn has_gate(&self) -> bool {
        self.state.get("gate") == Some(&Value::Bool(true))
    }

    /// Returns `$VAR`.
    ///
    /// # Errors
    /// When it has no JSON form: a driver must not take that for an empty store.
    pub(super) fn var(&self) -> Result<Json, TreeError> {
        self.json("var")
    }

    /// Returns the member `runtime` of documents.
    ///
    /// # Errors
    /// When it has no JSON form.
    pub(super) fn bookkeeping(&self) -> Result<Json, TreeError> {
        Ok(json!({
            "node_status": self.json("node-status")?,
            "step_index": self.json("step-index")?,
            "retry_count": self.json("retry-count")?,
        }))
    }

    /// Returns the name of one offer of a request; after a retry, the same request has another name.
    pub(super) fn cursor(&self) -> String {
        let offer = match self.state.get("offer") {
            Some(Value::Int(offer)) => *offer,
            _ => 0,
        };
        let id = self.run.id.as_str();
        let short = id.get(id.len().saturating_sub(6)..).unwrap_or(id);
        format!("{short}-{offer}")
    }

    /// Returns the open request, or the result of the tree; `None` while the run is idle.
    pub(super) fn request(&self) -> Option<Json> {
        match self.text("status") {
            "complete" => return Some(json!({"status": "done"})),
            "failed" => return Some(json!({"status": "failure"})),
            _ => {}
        }
        let at = self.state.get("at")?;
        let text = |key: &str| at.get(key).and_then(Value::as_str);
        let field = match text("type")? {
            "evaluate" => "expression",
            _ => "instruction",
        };
        let mut request = Map::new();
        request.insert("type".to_owned(), json!(text("type")));
        request.insert("name".to_owned(), json!(text("name")));
        request.insert(field.to_owned(), json!(text("text")));
        request.insert("cursor".to_owned(), json!(self.cursor()));
        Some(Json::Object(request))
    }

    /// Returns the name of the open request.
    pub(super) fn request_name(&self) -> Option<&str> {
        self.state.get("at")?.get("name")?.as_str()
    }

    fn json(&self, key: &str) -> Result<Json, TreeError> {
        let unreadable = |why: String| {
            let run = &self.run.id;
            TreeError::from(EngineError::Internal(format!(
                "`:{key}` in the state of the run {run} cannot be read: {why}"
            )))
        };
        let large = self.large.iter().find(|(name, _)| *name == key);
        let large = large.map(|(_, text)| codec::decode(text)).transpose();
        let large = large.map_err(|error| unreadable(error.to_string()))?;
        match large.as_ref().or_else(|| self.state.get(key)) {
            None => Ok(json!({})),
            Some(found) => object(found).map_err(unreadable),
        }
    }
}

/// Returns the store of a tree as JSON, or why it has no such form.
fn object(store: &Value) -> Result<Json, String> {
    match to_json(store) {
        Ok(Json::Object(found)) => Ok(ordered(Json::Object(found))),
        Ok(_) => Err("it is not a map".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns a value with the keys of large objects in alphabetical order. The state of a run keeps the order in which they
/// were written only for small ones.
pub(super) fn ordered(value: Json) -> Json {
    match value {
        Json::Object(members) => {
            let mut members: Vec<(String, Json)> = members
                .into_iter()
                .map(|(key, value)| (key, ordered(value)))
                .collect();
            if members.len() > IN_ORDER {
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
            }
            Json::Object(Map::from_iter(members))
        }
        Json::Array(items) => Json::Array(items.into_iter().map(ordered).collect()),
        value => value,
    }
}

/// Returns `$VAR` at a wait; `None` if that is not the wait of a tree's driver.
pub(super) fn var_at(wait: &WaitRow) -> Option<Result<Json, String>> {
    occurrence(&wait.path)?;
    let entries = codec::entries_at(&wait.details, &["show", "data", "state"]).ok()??;
    let is_named = |name: &str| entries.iter().find(|(key, _)| *key == Value::keyword(name));
    is_named("phase")?;
    let (_, text) = is_named("var")?;
    let store = codec::decode(text).map_err(|error| error.to_string());
    Some(store.and_then(|store| object(&store)))
}

/// Tells whether a wait asks the driver of a tree for an answer.
pub fn is_of_driver(wait: &WaitRow) -> bool {
    let state = codec::entries_at(&wait.details, &["show", "data", "state"]);
    occurrence(&wait.path).is_some()
        && matches!(state, Ok(Some(entries)) if entries.iter().any(|(key, _)| *key == Value::keyword("phase")))
}

/// Returns a state as that of a tree that failed.
fn failed(state: &Value) -> Value {
    let ended = [("status", "failed"), ("phase", "idle"), ("cursor", "null")];
    let ended = ended.map(|(key, value)| (Value::keyword(key), Value::from(value)));
    let entries = state.as_map().into_iter().flat_map(|map| map.iter());
    let entries = entries
        .filter(|(key, _)| **key != Value::keyword("at"))
        .map(|(key, value)| (key.clone(), value.clone()));
    Value::map(entries.collect::<Vec<_>>().into_iter().chain(ended))
}

/// Returns the path of the wait for the next answer after a number of answers.
pub(super) fn path_after(answers: u64) -> String {
    match answers {
        0 => STEP.to_owned(),
        answers => format!("{STEP}#{}", answers + 1),
    }
}

/// Returns the number of a wait by its path, counted from 1.
pub(super) fn occurrence(path: &str) -> Option<u64> {
    let rest = path.strip_prefix(STEP)?;
    match rest.strip_prefix('#') {
        Some(number) => number.parse().ok(),
        None => rest.is_empty().then_some(1),
    }
}

/// Finds the state in the result of a run, or in the error of a failed one.
fn state_in(stored: &Value) -> Option<&Value> {
    if stored.get("phase").is_some() {
        return Some(stored);
    }
    match stored.get("error")? {
        Value::Exception(exception) => exception.data.get("state"),
        _ => None,
    }
}
