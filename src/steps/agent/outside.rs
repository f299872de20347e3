//! Client tools: calls whose results come from outside. The loop waits in a `:wait` step and resumes with them.

use std::rc::Rc;

use flowstone_flow::flow::name_of;
use flowstone_flow::step::{Field, FieldType, NestedRequest, StepError};
use flowstone_lang::value::Value;
use serde_json::{Map as JsonMap, Value as Json};

use super::calls::{Answered, Call};
use super::notes::facts;
use super::tools::{self, Shape};
use crate::fields::Fields;
use crate::json::{from_json, items};

/// The keys of an entry of `:client-tools`.
pub(super) const TOOL: &[Field] = &[
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
];

/// A tool whose calls are performed outside.
#[derive(Clone)]
pub(super) struct ClientTool {
    pub name: Rc<str>,
    pub description: String,
    /// JSON Schema of the arguments, without the preset ones.
    pub parameters: Json,
    shape: Rc<Shape>,
    preset: JsonMap<String, Json>,
}

impl ClientTool {
    /// Reads `:client-tools`.
    ///
    /// # Errors
    /// E1280: when an entry is wrong.
    pub(super) fn read_all(given: Option<&Value>) -> Result<Vec<ClientTool>, StepError> {
        let Some(given) = given else {
            return Ok(Vec::new());
        };
        let wrong = |message: &str| StepError::config("E1280", message);
        let given = items(given).ok_or_else(|| wrong("`:client-tools` takes a vector of maps"))?;
        let tool = |entry: &Value| {
            let fields = Fields::nested("an entry of `:client-tools`", entry)?;
            fields.only(&["description", "name", "parameters", "preset"])?;
            let name = fields.text("name")?.filter(|name| !name.is_empty());
            let preset = tools::preset(fields.map("preset")?)?;
            let name = name.ok_or_else(|| wrong("an entry of `:client-tools` needs a `:name`"))?;
            let parameters = tools::parameters(fields.map("parameters")?)?;
            let shape = Shape::with_preset(name, &parameters, &preset).map_err(|error| {
                wrong(&format!(
                    "`:parameters` of the client tool `{name}` are not a JSON Schema: {error}"
                ))
            })?;
            Ok(ClientTool {
                name: name.into(),
                description: fields.text("description")?.unwrap_or_default().to_owned(),
                parameters: shape.shown().clone(),
                shape: Rc::new(shape),
                preset,
            })
        };
        given.iter().map(tool).collect()
    }

    /// Returns a call with its arguments as data. Their names stay as the model wrote them.
    ///
    /// # Errors
    /// E0837, with a message for the model, when they do not match the schema.
    pub(super) fn checked(&self, call: &Call) -> Result<Call, StepError> {
        let own = tools::without_preset(&call.arguments, &self.preset);
        Ok(Call {
            arguments: self.shape.read_as_named(&own)?,
            ..call.clone()
        })
    }

    /// Returns a checked call with the preset arguments. The conversation keeps those that the model gave.
    pub(super) fn complete(&self, given: &Call, checked: &Call) -> Call {
        let Value::Map(own) = &checked.arguments else {
            return checked.clone();
        };
        if self.preset.is_empty() {
            return checked.clone();
        }
        let own = own.iter().map(|(key, value)| (key.clone(), value.clone()));
        let preset = from_json(&Json::Object(self.preset.clone()));
        let preset = preset.as_map().into_iter().flat_map(|map| map.iter());
        let preset: Vec<(Value, Value)> = preset
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let original = match &given.arguments {
            // A text is the JSON that the model wrote.
            Value::Text(_) => checked.arguments.clone(),
            arguments => arguments.clone(),
        };
        Call {
            arguments: Value::map(own.chain(preset)),
            original: given.original.clone().or(Some(original)),
            ..checked.clone()
        }
    }
}

/// The id of the step that waits for the results of client tools.
pub(super) const WAIT: &str = "client";
/// The key under which the wait shows the calls.
const CALLS: &str = "client-calls";

/// Returns the step that waits for the results of these calls.
pub(super) fn wait(
    scope: &str,
    turn: i64,
    calls: &[Call],
    timeout: Option<&Value>,
) -> NestedRequest {
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let mut config = vec![
        ("key", Value::from(format!("client:{turn}:{scope}"))),
        (
            "message",
            Value::from(format!("The agent calls {}.", names.join(", "))),
        ),
        (
            "data",
            facts([
                (CALLS, Value::vector(calls.iter().map(Call::record))),
                ("turn", Value::Int(turn)),
            ]),
        ),
        (
            "validation",
            facts([("required", Value::vector([Value::keyword("outputs")]))]),
        ),
    ];
    if let Some(timeout) = timeout {
        config.push(("timeout", timeout.clone()));
    }
    NestedRequest::new("wait", WAIT, facts(config))
}

/// Pairs calls with their outputs: `{:outputs [{:tool-call-id "..." :output ...}]}`. A call without an output failed.
///
/// # Errors
/// E1280: when the answer has another form.
pub(super) fn answered(calls: Vec<Call>, answer: &Value) -> Result<Vec<Answered>, StepError> {
    let outputs = answer.get("outputs").and_then(items).ok_or_else(|| {
        StepError::config("E1280", "the submitted outputs need a vector `:outputs`")
            .hint("such as `{:outputs [{:tool-call-id \"c1\" :output \"42\"}]}`")
    })?;
    for output in &outputs {
        Fields::nested("an entry of `:outputs`", output)?.only(&["output", "tool-call-id"])?;
    }
    let of = |call: &Call| {
        let is_it = |it: &&Value| {
            let id = it.get("tool-call-id").and_then(name_of);
            id.as_deref() == Some(call.id.as_str())
        };
        let found = outputs.iter().find(is_it);
        found.map(|it| it.get("output").cloned().unwrap_or(Value::Nil))
    };
    let answered = calls.into_iter().map(|call| {
        let output = of(&call);
        Answered::outside(call, output)
    });
    Ok(answered.collect())
}
