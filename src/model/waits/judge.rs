//! Decides whether a wait takes an answer. Stores call this inside the transaction that takes the answer, so that
//! nothing changes between decision and effect.

use flowstone_lang::value::Value;

use super::answer;
use super::row::{Refusal, Target, WaitAnswer, WaitEnding, WaitEvent, WaitRow};
use crate::codec;
use crate::json::items;
use crate::names::name_of;
use crate::schema;

/// Returns the payload in the form that the wait expects, as EDN text: JSON has strings where a flow expects keywords.
///
/// # Errors
/// The reason why the wait does not take the answer; it stays open.
pub fn judge(
    row: &WaitRow,
    answer: &WaitAnswer,
    target: &Target,
    now_ms: i64,
) -> Result<String, Refusal> {
    if let Some(deadline_ms) = row.deadline_ms.filter(|deadline| *deadline <= now_ms) {
        return Err(Refusal::Expired { deadline_ms });
    }
    let details = conditions(&row.details);
    // Roles belong to people. The author of the flow declared that the event completes the wait; its sender is
    // authenticated elsewhere.
    let is_event = matches!(target, Target::Event { .. });
    let needed = if is_event {
        Vec::new()
    } else {
        roles(&details)
    };
    if !needed.is_empty() && !needed.iter().any(|role| answer.roles.contains(role)) {
        return Err(Refusal::Role { needed });
    }
    if answer.is_unattended && is_approval(&details) {
        return Err(Refusal::Unattended);
    }
    if is_stale(row, answer) {
        return Err(Refusal::Stale);
    }
    match answer.ending {
        WaitEnding::Answered => {
            let payload = fitted(&details, &answer.payload)?;
            Ok(match (&answer.by, is_approval(&details)) {
                (Some(by), true) => with_decider(payload, by),
                _ => payload,
            })
        }
        WaitEnding::Cancelled | WaitEnding::TimedOut => Ok(answer.payload.clone()),
    }
}

/// The details that decide about answers.
const CONDITIONS: &[&str] = &["actions", "question", "roles", "validation"];

/// Returns the part of a wait's details that decides about answers. What the wait shows may be large, and is not read.
pub(crate) fn conditions(details: &str) -> Value {
    let outer = entries(details);
    let shown = outer.iter().find(|(key, _)| is_named(key, &["show"]));
    // Steps that wait put the names of actions and roles beside what they show.
    let shown = shown.map(|(_, text)| read(entries(text)));
    let shown = shown.map(|shown| (Value::keyword("show"), Value::map(shown)));
    Value::map(read(outer).into_iter().chain(shown))
}

/// Returns the entries of a map with the texts of their values; none if there is no map.
fn entries(map: &str) -> Vec<(Value, &str)> {
    let found = codec::entries_at(map, &[]).ok().flatten();
    found.unwrap_or_default()
}

/// Reads those entries of a map that are conditions.
fn read(entries: Vec<(Value, &str)>) -> Vec<(Value, Value)> {
    let entries = entries.into_iter();
    let conditions = entries.filter(|(key, _)| is_named(key, CONDITIONS));
    conditions
        .filter_map(|(key, text)| Some((key, codec::decode(text).ok()?)))
        .collect()
}

fn is_named(key: &Value, names: &[&str]) -> bool {
    match key {
        Value::Keyword(name) => names.contains(&&*name.name()),
        _ => false,
    }
}

/// Tells whether a wait asks for a decision: it offers actions, or is a question about a step.
pub fn is_approval(details: &Value) -> bool {
    details.get("question").is_some() || !actions(details).is_empty()
}

/// Tells whether the token or the digest of the answer was made for something other than what the wait shows.
fn is_stale(row: &WaitRow, answer: &WaitAnswer) -> bool {
    // Waits of the first database format have no digest.
    if !row.digest.is_empty() && row.digest != shown_digest(&row.key, &row.details) {
        return true;
    }
    let seen = answer.digest.as_ref();
    seen.is_some_and(|seen| seen.len() < 8 || !row.digest.starts_with(seen.as_str()))
}

/// Returns the digest of what a wait shows and asks for.
pub fn shown_digest(key: &str, details: &str) -> String {
    let mut digest = codec::digest_bytes(format!("{key}\n{details}").as_bytes());
    digest.truncate(32);
    digest
}

/// Tells whether a wait with these details takes an answer, given as EDN text.
pub fn accepts(details: &Value, payload: &str) -> bool {
    fitted(details, payload).is_ok()
}

/// Returns the answer to a question with the name of the person who decided: the answer itself may name another.
fn with_decider(payload: String, by: &str) -> String {
    let Ok(value) = codec::decode(&payload) else {
        return payload;
    };
    let Some(map) = value.as_map() else {
        return payload;
    };
    let key = Value::keyword("by");
    let rest = map.iter().filter(|(known, _)| **known != key);
    let entries = rest.map(|(key, value)| (key.clone(), value.clone()));
    let named = [(key.clone(), Value::from(by))];
    codec::encode(&Value::map(entries.chain(named))).unwrap_or(payload)
}

fn fitted(details: &Value, payload: &str) -> Result<String, Refusal> {
    let invalid = |problem: String| Refusal::Invalid {
        problems: vec![problem],
    };
    let mut value = codec::decode(payload).map_err(|error| invalid(error.to_string()))?;
    if details.get("question").is_some() {
        let answer = answer::check(details, &value)?;
        return codec::encode(&answer).map_err(|error| invalid(error.to_string()));
    }
    let offered = actions(details);
    if !offered.is_empty() {
        value = with_keyword_action(value);
    }
    let validation = details.get("validation").filter(|it| !it.is_nil());
    match validation {
        Some(form) => {
            let schema = schema::parse(form)
                .map_err(|error| invalid(format!("its `:validation` is wrong: {error}")))?;
            value = schema::decode(&schema, value);
            let problems = schema::validate(&schema, &value);
            if !problems.is_empty() {
                let problems = problems.iter().map(ToString::to_string).collect();
                return Err(Refusal::Invalid { problems });
            }
        }
        None => {
            let action = value.get("action").and_then(name_of);
            if let Some(action) = action.filter(|action| {
                !offered.is_empty() && !offered.iter().any(|known| **known == **action)
            }) {
                return Err(Refusal::NotOffered {
                    action: action.to_string(),
                    offered,
                });
            }
        }
    }
    codec::encode(&value).map_err(|error| invalid(error.to_string()))
}

/// Converts the action that decides to a keyword.
fn with_keyword_action(value: Value) -> Value {
    let Some(map) = value.as_map() else {
        return value;
    };
    let text = value.get("action").and_then(Value::as_str);
    let text = text.map(|text| text.trim_start_matches(':'));
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return value;
    };
    let action = (Value::keyword("action"), Value::keyword(text));
    let entries = map.iter().map(|(at, it)| (at.clone(), it.clone()));
    Value::map(entries.chain([action]))
}

/// Returns the actions that a wait offers; empty if any answer is accepted.
pub fn actions(details: &Value) -> Vec<String> {
    names(details, "actions")
}

/// Returns the roles of which one is required to answer; empty if none is.
pub fn roles(details: &Value) -> Vec<String> {
    names(details, "roles")
}

/// Returns the names under a key of the details, either at the top or in the part that the wait shows.
fn names(details: &Value, key: &str) -> Vec<String> {
    let found = details
        .get(key)
        .filter(|it| !it.is_nil())
        .or_else(|| details.get("show")?.get(key));
    let found = found.and_then(items).unwrap_or_default();
    let mut names: Vec<String> = found
        .iter()
        .filter_map(|item| name_of(item).map(|name| name.to_string()))
        .collect();
    names.dedup();
    names
}

/// Returns the key of an event that arrived without one, if the wait states its place in the payload.
pub fn event_key(path: &str, payload: &str) -> Option<String> {
    let path = items(&codec::decode(path).ok()?)?;
    let mut value = codec::decode(payload).ok()?;
    for part in path {
        value = match (&part, &value) {
            (Value::Int(at), Value::Vector(items)) => {
                items.iter().nth(usize::try_from(*at).ok()?)?.clone()
            }
            _ => {
                let name = name_of(&part)?;
                let text = || value.as_map()?.get(&Value::from(&*name));
                value.get(&name).or_else(text)?.clone()
            }
        };
    }
    crate::json::name_text(&value).or_else(|| match value {
        Value::Int(_) => codec::encode(&value).ok(),
        _ => None,
    })
}

/// Tells whether an early event matches a wait.
pub fn is_for(wait: &WaitEvent, name: &str, key: Option<&str>, payload: &str) -> bool {
    if wait.name != name {
        return false;
    }
    let Some(wanted) = wait.key.as_deref() else {
        return true;
    };
    match (key, &wait.path) {
        (Some(key), _) => key == wanted,
        (None, Some(path)) => event_key(path, payload).as_deref() == Some(wanted),
        (None, None) => false,
    }
}

impl Refusal {
    /// Returns the reason as a message.
    pub fn message(&self) -> String {
        match self {
            Refusal::Invalid { problems } => problems.join("; "),
            Refusal::NotOffered { action, offered } => format!(
                "`:{action}` is not offered; expected one of {}",
                super::listed(offered)
            ),
            Refusal::Role { needed } => {
                format!("one of the roles {} is required", super::listed(needed))
            }
            Refusal::Expired { deadline_ms } => {
                format!("its deadline passed at {}", codec::instant(*deadline_ms))
            }
            Refusal::Stale => "the question has changed since it was shown".to_owned(),
            Refusal::Unattended => "only a person can decide".to_owned(),
        }
    }
}
