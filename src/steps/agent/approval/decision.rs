//! A person's answer to a request for approval: one decision for all calls, or one for each.

use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

use super::super::calls::Call;
use super::super::notes::facts;
use crate::json::items;

/// The actions for a single call.
const OF_CALL: [&str; 3] = ["approve", "edit", "reject"];

/// The decision about a call.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Decision {
    Approve,
    /// The call is performed with these arguments.
    Edit(Value),
    /// Rejected, with the reason if given.
    Reject(Option<String>),
}

/// Returns the condition that an answer meets, for `:validation` of the wait.
pub(super) fn validation(calls: &[&str]) -> Value {
    let word = Value::keyword;
    let optional = || facts([("optional", Value::Bool(true))]);
    let choice = |items: Vec<Value>| Value::vector([word("enum")].into_iter().chain(items));
    let ids = calls.iter().map(|id| Value::from(*id)).collect();
    let actions = OF_CALL.map(Value::keyword).to_vec();
    let decision = Value::vector([
        word("map"),
        Value::vector([word("tool-call-id"), choice(ids)]),
        Value::vector([word("action"), choice(actions)]),
        Value::vector([word("reason"), optional(), word("string")]),
        Value::vector([word("arguments"), optional(), word("map")]),
    ]);
    let notes = facts([
        ("optional", Value::Bool(true)),
        ("title", Value::from("Decisions about single calls")),
        (
            "description",
            Value::from(
                "Empty if one decision holds for all calls. Else, for each call that is decided differently: \
                 [{:tool-call-id \"...\" :action :edit :arguments {...}}] or [{:tool-call-id \"...\" :action :reject \
                 :reason \"...\"}]",
            ),
        ),
    ]);
    let decisions = Value::vector([word("vector"), decision]);
    Value::vector([
        word("map"),
        Value::vector([word("decisions"), notes, decisions]),
    ])
}

/// Reads the result of a wait: the decision about each of these calls.
///
/// # Errors
/// What is wrong, for the person.
pub(in super::super) fn read(answer: &Value, calls: &[&Call]) -> Result<Vec<Decision>, String> {
    let all = of_all(answer);
    let given = answer.get("decisions").and_then(items).unwrap_or_default();
    let of = |call: &&Call| {
        let is_its = |it: &&Value| it.get("tool-call-id").and_then(Value::as_str) == Some(&call.id);
        let mut own = given.iter().filter(is_its);
        match (own.next(), own.next()) {
            (None, _) => Ok(all.clone()),
            (Some(own), None) => of_call(own, call),
            (Some(_), Some(_)) => Err(format!("the call `{}` has two decisions", call.id)),
        }
    };
    calls.iter().map(of).collect()
}

fn of_call(own: &Value, call: &Call) -> Result<Decision, String> {
    let action = own.get("action").and_then(name_of);
    match action.as_deref() {
        Some("approve") => Ok(Decision::Approve),
        Some("reject") => Ok(Decision::Reject(reason(own))),
        Some("edit") => match own.get("arguments") {
            Some(arguments @ Value::Map(_)) => Ok(Decision::Edit(arguments.clone())),
            _ => Err(format!(
                "the decision `:edit` about the call `{}` needs a map of `:arguments`",
                call.id
            )),
        },
        _ => Err(format!(
            "the decision about the call `{}` needs an `:action`: `:approve`, `:edit` or `:reject`",
            call.id
        )),
    }
}

/// Returns the decision for calls without one of their own.
fn of_all(answer: &Value) -> Decision {
    let action = answer.get("action").or(Some(answer)).and_then(name_of);
    let is_approved = match action.as_deref() {
        Some(action) => matches!(action, "approve" | "approved"),
        None => answer.get("approved") == Some(&Value::Bool(true)),
    };
    match is_approved {
        true => Decision::Approve,
        false => Decision::Reject(reason(answer)),
    }
}

fn reason(answer: &Value) -> Option<String> {
    let keys = ["comment", "reason", "message"];
    let text = |key: &&str| Some(answer.get(key)?.as_str()?.to_owned());
    keys.iter().find_map(text)
}
