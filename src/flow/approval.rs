//! `:confirm` and `:review`: a person decides before a step, or about its value.

use std::time::Duration;

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use crate::duration;
use crate::option_problem::{Wrong, keys};

const CODE: &str = "E0453";
const KEYS: &[&str] = &["actions", "message", "on-timeout", "roles", "timeout"];

/// An approval that a step waits for, before it starts or before its value is used.
#[derive(Debug, Clone)]
pub struct Approval {
    /// The message for the people who decide.
    pub message: Option<String>,
    pub timeout: Option<Duration>,
    pub on_timeout: OnTimeout,
    /// The roles that may decide, or nil.
    pub roles: Value,
    pub actions: Vec<&'static str>,
}

/// What happens when nobody answers before the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    /// The step fails with kind `:timeout`.
    Fail,
    Approve,
    Reject,
}

impl Approval {
    /// Reads `:confirm` or `:review`: `true`, or a map. Returns `None` if the option is off.
    pub fn of(key: &'static str, given: &Value) -> Result<Option<Approval>, Wrong> {
        let all: &[&'static str] = match key {
            "review" => &["approve", "edit", "reject"],
            _ => &["approve", "reject"],
        };
        let mut approval = Approval {
            message: None,
            timeout: None,
            on_timeout: OnTimeout::Fail,
            roles: Value::Nil,
            actions: all.to_vec(),
        };
        match given {
            Value::Nil | Value::Bool(false) => return Ok(None),
            Value::Bool(true) => return Ok(Some(approval)),
            _ => {}
        }
        let wrong = |inner: &str, expected: &str| Wrong::value(CODE, key, inner, expected);
        let map = keys(CODE, key, given, KEYS)?;
        let get = |name: &str| map.get(&Value::keyword(name)).filter(|it| !it.is_nil());
        if let Some(message) = get("message") {
            let text = message.as_str().map(str::to_owned);
            approval.message = Some(text.ok_or_else(|| wrong("message", "a string"))?);
        }
        if let Some(timeout) = get("timeout") {
            let read = duration::of_value(timeout).filter(|timeout| !timeout.is_zero());
            let expected = "seconds or a duration such as \"2h\"";
            approval.timeout = Some(read.ok_or_else(|| wrong("timeout", expected))?);
        }
        if let Some(silence) = get("on-timeout") {
            approval.on_timeout = match name_of(silence).as_deref() {
                Some("approve") => OnTimeout::Approve,
                Some("fail") => OnTimeout::Fail,
                Some("reject") => OnTimeout::Reject,
                _ => return Err(wrong("on-timeout", "`:approve`, `:fail` or `:reject`")),
            };
            if map.get(&Value::keyword("timeout")).is_none() {
                let message = format!("`:on-timeout` of `:{key}` needs a `:timeout`");
                return Err(Wrong::new(CODE, key, message));
            }
        }
        if let Some(roles) = get("roles") {
            let named = names(roles).filter(|roles| !roles.is_empty());
            if named.is_none() {
                return Err(wrong("roles", "a vector of names"));
            }
            approval.roles = roles.clone();
        }
        if let Some(actions) = get("actions") {
            let listed: Vec<String> = all.iter().map(|name| format!("`:{name}`")).collect();
            let expected = format!("a vector with some of {}", listed.join(", "));
            let given = names(actions).ok_or_else(|| wrong("actions", &expected))?;
            let unknown = given.iter().any(|name| !all.contains(&name.as_str()));
            if unknown || given.is_empty() {
                return Err(wrong("actions", &expected));
            }
            approval
                .actions
                .retain(|action| given.iter().any(|name| name == action));
        }
        Ok(Some(approval))
    }
}

/// Returns the names in a vector, list or set.
fn names(value: &Value) -> Option<Vec<String>> {
    let items: Vec<&Value> = match value {
        Value::Vector(items) => items.iter().collect(),
        Value::Set(items) => items.iter().collect(),
        Value::List(items) => items.iter().collect(),
        _ => return None,
    };
    items
        .into_iter()
        .map(|item| name_of(item).map(|name| name.to_string()))
        .collect()
}
