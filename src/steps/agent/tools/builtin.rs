//! Built-in step types as tools: `:files`, `:table` and `:search`, each one tool with only those operations that suit
//! agents.
//!
//! The schema is flat, an object with `op` and the fields of all operations, because that is what models fill in best;
//! which of them an operation needs is checked here.

use std::rc::Rc;

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::step::{Effect, Operation, Step, StepError, StepSpec, respelled, tool_schema};
use flowstone_lang::value::Value;
use serde_json::{Map as JsonMap, Value as Json, json};

use super::super::tool::{Tool, ToolKind, ToolStep};
use super::arguments::{Shape, example};
use super::shown::within;
use crate::json::from_json;

/// One of the tools.
struct Row {
    kind: &'static str,
    description: &'static str,
    /// Fields whose schema for models differs from that for flows.
    fields: &'static [Shown],
}

/// A field, and its schema for models.
type Shown = (&'static str, fn() -> Json);

const ROWS: &[Row] = &[
    Row {
        kind: "files",
        description: "Inspect, search, diff, and edit existing source-tree and changeset resources.",
        fields: &[
            ("changeset", || {
                reference("The changeset to look at or to change")
            }),
            (
                "content",
                || json!({"type": "string", "description": "The text to write."}),
            ),
            ("source", || reference("The source tree to look at")),
        ],
    },
    Row {
        kind: "search",
        description: "Search the resources, flows, runs and connections of the project.",
        fields: &[],
    },
    Row {
        kind: "table",
        description: "Query, aggregate, inspect, export, and mutate bounded table resources.",
        fields: &[("table", || {
            json!({
                "type": ["string", "object"],
                "description": "The table: its name, its `res://` reference, or `{\"ref\": \"res://...\"}`.",
            })
        })],
    },
];

fn reference(what: &str) -> Json {
    json!({
        "type": ["string", "object"],
        "description": format!("{what}: its `res://` reference, as it was given to you."),
    })
}

/// Returns one of the tools by the name of its step type.
pub(super) fn tool(name: &str, steps: &[Box<dyn Step>], most: usize) -> Option<Tool> {
    let row = ROWS.iter().find(|row| row.kind == name)?;
    let spec = steps
        .iter()
        .map(|step| step.spec())
        .find(|spec| spec.kind == name)?;
    let parameters = parameters(row, spec);
    let shape = Rc::new(Shape::new(row.kind, &parameters).ok()?);
    let call = {
        let shape = shape.clone();
        move |given: &Value| call(row, spec, &shape, given)
    };
    let mutates = move |given: &Value| {
        let read = shape.read_json(given).ok();
        let operation = read.and_then(|json| operation(spec, &json).ok().flatten());
        operation.is_some_and(|operation| !matches!(operation.effect, Effect::Pure | Effect::Read))
    };
    Some(Tool {
        name: Rc::from(row.kind),
        step: Rc::from(row.kind),
        kind: ToolKind::BuiltIn,
        description: row.description.to_owned(),
        parameters,
        ops: operations(spec).map(|it| it.name.to_owned()).collect(),
        call: Rc::new(call),
        mutates: Rc::new(mutates),
        needs_approval: Rc::new(|_| false),
        answer: Rc::new(move |_, value| within(value, most)),
    })
}

/// Returns the operations for agents; none for a step type without operations.
fn operations(spec: &'static StepSpec) -> impl Iterator<Item = &'static Operation> {
    let all = spec.operations.as_ref().map_or(&[][..], |it| it.all);
    all.iter().filter(|operation| operation.for_agents)
}

fn parameters(row: &Row, spec: &'static StepSpec) -> Json {
    let ops: Vec<&str> = operations(spec).map(|it| it.name).collect();
    if ops.is_empty() {
        return tool_schema(spec, None);
    }
    let mut properties = JsonMap::new();
    let about: Vec<String> = operations(spec)
        .map(|operation| format!("{}: {}", operation.name, first_line(operation.doc)))
        .collect();
    properties.insert(
        "op".to_owned(),
        json!({"type": "string", "enum": ops, "description": about.join(" ")}),
    );
    let mut users: Vec<(String, Vec<&str>)> = Vec::new();
    for operation in operations(spec) {
        let schema = tool_schema(spec, Some(operation));
        let own = schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        for (name, property) in own {
            match users.iter_mut().find(|(known, _)| *known == name) {
                Some((_, ops)) => ops.push(operation.name),
                None => {
                    let given = row.fields.iter().find(|(field, _)| *field == name);
                    properties.insert(name.clone(), given.map_or(property, |(_, make)| make()));
                    users.push((name, vec![operation.name]));
                }
            }
        }
    }
    for (name, users) in users {
        if users.len() < ops.len() {
            let described = properties[&name]["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            properties[&name]["description"] =
                json!(format!("For {}. {described}", users.join(", ")));
        }
    }
    json!({"type": "object", "properties": properties, "required": ["op"], "additionalProperties": false})
}

fn first_line(doc: &str) -> &str {
    doc.lines().next().unwrap_or_default()
}

fn call(
    row: &Row,
    spec: &'static StepSpec,
    shape: &Shape,
    given: &Value,
) -> Result<ToolStep, StepError> {
    let json = shape.read_json(given)?;
    fits(row, spec, shape, &json)?;
    let read = from_json(&json);
    shape.without_options(&read)?;
    let config = respelled(spec, &read);
    let entries = config.as_map().into_iter().flat_map(|map| map.iter());
    // References may be given as text or as a map.
    let entries = entries.map(|(key, value)| match value.get("ref") {
        Some(uri @ Value::Text(_)) if value.get("name").is_none() => (key.clone(), uri.clone()),
        _ => (key.clone(), value.clone()),
    });
    Ok(ToolStep {
        kind: Rc::from(row.kind),
        config: Value::map(entries),
    })
}

/// Returns the selected operation, if the step type has any.
fn operation(spec: &'static StepSpec, json: &Json) -> Result<Option<&'static Operation>, ()> {
    if operations(spec).next().is_none() {
        return Ok(None);
    }
    let asked = json["op"].as_str().unwrap_or_default();
    operations(spec)
        .find(|operation| operation.name == asked)
        .map(Some)
        .ok_or(())
}

/// Checks the conditions that the flat schema cannot express.
fn fits(row: &Row, spec: &'static StepSpec, shape: &Shape, json: &Json) -> Result<(), StepError> {
    let Ok(Some(operation)) = operation(spec, json) else {
        return Ok(());
    };
    let schema = tool_schema(spec, Some(operation));
    let known: Vec<&str> = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(|it| it.keys().map(String::as_str))
        .collect();
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Json::as_str);
    let op = operation.name;
    let like = || {
        let mut sample = schema.clone();
        sample["properties"]["op"] = json!({"const": op});
        for (field, make) in row.fields {
            if known.contains(field) {
                sample["properties"][*field] = make();
            }
        }
        if let Some(required) = sample["required"].as_array_mut() {
            required.insert(0, json!("op"));
        }
        example(&sample)
    };
    let wrong = |message: String| {
        let mut error = shape.wrong(message);
        error.hints = vec![format!("an example: {}", like())];
        error
    };
    for name in required {
        if json.get(name).is_none_or(Json::is_null) {
            return Err(wrong(format!("`{op}` needs `{name}`")));
        }
    }
    for (name, value) in json.as_object().into_iter().flat_map(JsonMap::iter) {
        if name == "op" {
            continue;
        }
        if !known.contains(&name.as_str()) {
            let meant = nearest(name, known.iter().copied());
            let meant = meant.map_or_else(
                || format!("; it takes {}", known.join(", ")),
                |near| format!("; did you mean `{near}`?"),
            );
            return Err(wrong(format!("`{op}` has no `{name}`{meant}")));
        }
        if matches!(name.as_str(), "source" | "changeset") && !is_reference(value) {
            return Err(wrong(format!(
                "`{name}` is a reference that begins with `res://`, as it was given to you"
            )));
        }
    }
    if row.kind == "files"
        && op != "init-changeset"
        && !["source", "changeset"]
            .iter()
            .any(|name| json.get(name).is_some())
    {
        return Err(wrong(format!(
            "`{op}` needs `source` or `changeset`: a reference that begins with `res://`"
        )));
    }
    Ok(())
}

/// Only existing trees and changesets: a model does not choose folders or repositories.
fn is_reference(value: &Json) -> bool {
    let text = match value {
        Json::Object(map) => ["uri", "ref", "resource-uri"]
            .iter()
            .find_map(|key| map.get(*key)?.as_str()),
        other => other.as_str(),
    };
    text.is_some_and(|text| text.starts_with("res://"))
}
