//! `:platform-tools`: actions on the project's agents, documents and other records as tools.
//!
//! A call is a nested `:platform` step, which decides whether the action is allowed. This module knows no action: names,
//! descriptions and schemas are in the entries.

use std::rc::Rc;

use flowstone_flow::step::{Field, FieldType, StepError};
use flowstone_lang::value::Value;
use serde_json::{Map as JsonMap, Value as Json};

use super::notes::facts;
use super::tool::{Tool, ToolKind, ToolStep};
use super::tools::{self, Shape, within};
use crate::fields::Fields;
use crate::json::{from_json, items};

/// The step type that performs an action.
const STEP: &str = "platform";
/// The action that starts a generation of another agent.
pub const GENERATE: &str = "create-agent-generation";
/// The `:finish-reason` of a generation that was not started, because the depth is used up.
const DEPTH_LIMIT: &str = "depth-limit";

/// The keys of an entry of `:platform-tools`.
pub(super) const TOOL: &[Field] = &[
    Field::required(
        "action",
        FieldType::Text,
        "The action, such as `search-documents`.",
    ),
    Field::optional(
        "description",
        FieldType::Text,
        "What the model reads about the tool.",
    ),
    Field::required("name", FieldType::Text, "The name for the model."),
    Field::optional(
        "parameters",
        FieldType::Map,
        "JSON Schema of the arguments.",
    ),
    Field::optional(
        "preset",
        FieldType::Map,
        "Arguments that the model neither sees nor changes.",
    ),
    Field::optional(
        "read-only?",
        FieldType::Bool,
        "Whether the action changes nothing. Default false.",
    ),
];
const KEYS: &[&str] = &[
    "action",
    "description",
    "name",
    "parameters",
    "preset",
    "read-only?",
];

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E1292", message)
}

/// Returns the tools of `:platform-tools`.
///
/// # Errors
/// E1292: when an entry is wrong.
pub(super) fn of(given: &Value, most: usize) -> Result<Vec<Tool>, StepError> {
    let given = items(given).ok_or_else(|| wrong("`:platform-tools` takes a vector of maps"))?;
    given.iter().map(|entry| tool(entry, most)).collect()
}

fn tool(entry: &Value, most: usize) -> Result<Tool, StepError> {
    let fields = Fields::nested("an entry of `:platform-tools`", entry)?;
    fields.only(KEYS)?;
    let needed = |key: &str| {
        let text = fields.text(key)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| wrong(format!("an entry of `:platform-tools` needs a `:{key}`")))
    };
    let (name, action) = (needed("name")?, needed("action")?.to_owned());
    let preset = tools::preset(fields.map("preset")?)?;
    let given = tools::parameters(fields.map("parameters")?)?;
    let shape = Shape::with_preset(name, &given, &preset).map_err(|error| {
        wrong(format!(
            "`:parameters` of `{name}` are not a JSON Schema: {error}"
        ))
    })?;
    let is_read = fields.bool("read-only?")?.unwrap_or(false);
    Ok(Tool {
        name: name.into(),
        step: format!("platform/{action}").into(),
        kind: match &*action {
            // It may use a model.
            GENERATE => ToolKind::Flow,
            _ => ToolKind::Platform,
        },
        description: fields.text("description")?.unwrap_or_default().to_owned(),
        parameters: shape.shown().clone(),
        ops: Vec::new(),
        answer: match &*action {
            GENERATE => Rc::new(move |_, value| within(nested_answer(&value), most)),
            _ => Rc::new(move |_, value| within(value, most)),
        },
        call: Rc::new(move |given| {
            let given = tools::without_preset(given, &preset);
            Ok(step(&action, shape.read_json(&given)?, &preset))
        }),
        mutates: Rc::new(move |_| !is_read),
        needs_approval: Rc::new(|_| false),
    })
}

fn step(action: &str, arguments: Json, preset: &JsonMap<String, Json>) -> ToolStep {
    let mut arguments = match arguments {
        Json::Object(members) => members,
        _ => JsonMap::new(),
    };
    arguments.extend(preset.clone());
    ToolStep {
        kind: STEP.into(),
        config: facts([
            ("action", Value::from(action)),
            ("arguments", from_json(&Json::Object(arguments))),
        ]),
    }
}

/// Returns what a model reads of a generation of another agent, from the result of its run.
pub fn nested_answer(value: &Value) -> Value {
    let reason = value.get("finish-reason");
    let name = reason.and_then(flowstone_flow::flow::name_of);
    if name.as_deref() == Some(DEPTH_LIMIT) {
        let message = "not performed: generations call generations too deeply here (depth_limit)";
        return facts([("error", Value::from(message))]);
    }
    let part = |key: &str| value.get(key).cloned().unwrap_or(Value::Nil);
    facts([
        ("status", Value::from("completed")),
        ("finish_reason", part("finish-reason")),
        ("content", part("content")),
    ])
}
