//! The workspace as a tool, `:workspace` or `:breyta`: `{"op": "runs/show", "args": {...}}` for the allowed operations.

use std::rc::Rc;

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::step::StepError;
use flowstone_flow::tools::WorkspaceTool;
use flowstone_flow::workspace;
use flowstone_lang::value::Value;
use serde_json::json;

use super::super::tool::{Tool, ToolKind, ToolStep};
use super::arguments::Shape;
use super::shown::within;

/// Returns the tool with its allowed operations.
pub(super) fn tool(given: &WorkspaceTool, most: usize) -> Tool {
    let about: Vec<String> = given
        .allow
        .iter()
        .filter_map(|name| workspace::find(name))
        .map(|operation| format!("{}: {}", operation.name, operation.about))
        .collect();
    let ops: Vec<String> = given.allow.iter().map(ToString::to_string).collect();
    let parameters = json!({
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": ops, "description": about.join(" ")},
            "args": {"type": "object", "description": "What the operation is given. Default nothing."},
        },
        "required": ["op"],
        "additionalProperties": false,
    });
    let shape = Rc::new(Shape::new(given.name, &parameters));
    let rules = given.clone();
    let call = move |arguments: &Value| match &*shape {
        Ok(shape) => call(&rules, shape, arguments),
        Err(error) => Err(StepError::config("E0836", error.clone())),
    };
    let asked = given.require_approval.clone();
    Tool {
        name: Rc::from(given.name),
        step: Rc::from(given.name),
        kind: ToolKind::Workspace,
        description: "Call allowed workspace control-plane operations in the current workspace."
            .to_owned(),
        parameters: parameters.clone(),
        ops,
        call: Rc::new(call),
        mutates: Rc::new(|arguments| {
            let operation = op(arguments).and_then(|name| workspace::find(&name));
            operation.is_some_and(|operation| operation.change.is_some())
        }),
        needs_approval: Rc::new(move |arguments| {
            op(arguments).is_some_and(|name| asked.iter().any(|it| **it == *name))
        }),
        answer: Rc::new(move |_, value| within(value, most)),
    }
}

/// Returns the operation of a call, in any spelling.
fn op(arguments: &Value) -> Option<String> {
    let parsed;
    let arguments = match arguments {
        Value::Text(text) => {
            parsed = crate::json::from_json(&serde_json::from_str(text).ok()?);
            &parsed
        }
        other => other,
    };
    let name = flowstone_flow::flow::name_of(arguments.get("op")?)?;
    Some(name.trim_start_matches(':').to_owned())
}

fn call(rules: &WorkspaceTool, shape: &Shape, arguments: &Value) -> Result<ToolStep, StepError> {
    let read = shape.read(&with_plain_op(arguments, rules))?;
    let config = [
        ("op", read.get("op").cloned().unwrap_or(Value::Nil)),
        (
            "args",
            read.get("args").cloned().unwrap_or_else(|| Value::map([])),
        ),
        (
            "allow",
            Value::vector(rules.allow.iter().map(|name| Value::keyword(name))),
        ),
        ("mutations", Value::keyword(rules.mutations.name())),
    ];
    let config = config
        .into_iter()
        .map(|(key, value)| (Value::keyword(key), value));
    Ok(ToolStep {
        kind: Rc::from("workspace"),
        config: Value::map(config),
    })
}

/// Removes the colon from an operation, and accepts arguments beside it if a model forgot `args`.
fn with_plain_op(arguments: &Value, rules: &WorkspaceTool) -> Value {
    let Some(map) = arguments.as_map() else {
        return arguments.clone();
    };
    let Some(name) = op(arguments) else {
        return arguments.clone();
    };
    let name = match rules.allow.iter().any(|known| **known == *name) {
        true => name,
        false => nearest(
            &name.replace('_', "/"),
            rules.allow.iter().map(|known| &**known),
        )
        .filter(|near| near.replace('/', "_") == name)
        .map_or(name.clone(), str::to_owned),
    };
    let is_args = |key: &Value| *key == Value::keyword("args");
    let is_op = |key: &Value| *key == Value::keyword("op");
    let mut entries = vec![(Value::keyword("op"), Value::from(name))];
    match map.iter().find(|(key, _)| is_args(key)) {
        Some(_) => entries.extend(
            map.iter()
                .filter(|(key, _)| !is_op(key))
                .map(|(key, value)| (key.clone(), value.clone())),
        ),
        None => {
            let beside = map.iter().filter(|(key, _)| !is_op(key));
            let beside = Value::map(beside.map(|(key, value)| (key.clone(), value.clone())));
            entries.push((Value::keyword("args"), beside));
        }
    }
    Value::map(entries)
}
