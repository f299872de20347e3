//! `:inputs` as the model sees them: scalars as they are, resources as handles with the way to read them.
//!
//! The kind of a reference follows from its name and content type. If the content type is missing, a nested step looks
//! it up, so that a resumed run uses the same.

use std::collections::BTreeMap;

use flowstone_flow::resource::ResourceName;
use flowstone_flow::step::{NestedRequest, StepContext, StepError};
use flowstone_lang::value::Value;

use super::notes::{facts, shortened};
use super::toolset::Toolset;
use crate::json::items;
use crate::resource;

/// Maximum number of characters of a string in the summary.
const LONGEST: usize = 10_000;
/// Maximum depth of the summary.
const DEEPEST: usize = 12;

const TREE_OPS: &[&str] = &["list", "read", "search", "materialize"];
const CHANGESET_OPS: &[&str] = &[
    "list",
    "read",
    "search",
    "diff",
    "write-file",
    "apply-edit",
    "replace",
    "replace-lines",
    "delete-file",
    "move-file",
    "materialize",
    "publish",
    "open-change-request",
];
const TABLE_OPS: &[&str] = &["query", "get-row", "aggregate", "schema", "export"];

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tree,
    Changeset,
    Table,
    Image,
    Resource,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Tree => "source-tree",
            Kind::Changeset => "changeset",
            Kind::Table => "table",
            Kind::Image => "image",
            Kind::Resource => "resource",
        }
    }

    /// Returns the built-in tool that reads it.
    fn tool(self) -> Option<&'static str> {
        match self {
            Kind::Tree | Kind::Changeset => Some("files"),
            Kind::Table => Some("table"),
            Kind::Image | Kind::Resource => None,
        }
    }
}

/// The id of the nested step that looks up a content type.
const LOOK_UP: &str = "input-type";
/// Maximum number of listed names that begin like the one to look up.
const NEIGHBOURS: i64 = 20;

/// Returns the inputs with the content types of their references. References to missing resources stay unchanged.
///
/// # Errors
/// When the run is interrupted, or the store cannot be read.
pub(super) async fn with_types(cx: &StepContext, inputs: &Value) -> Result<Value, StepError> {
    let mut types = BTreeMap::new();
    gather_untyped(inputs, 0, &mut types);
    for (uri, found) in &mut types {
        let args = facts([
            ("prefix", Value::from(uri.as_str())),
            ("limit", Value::Int(NEIGHBOURS)),
        ]);
        let config = facts([("op", Value::keyword("resources/list")), ("args", args)]);
        let listed = cx
            .perform(NestedRequest::new("workspace", LOOK_UP, config))
            .await?;
        let listed = listed.get("resources").and_then(items).unwrap_or_default();
        let is_it = |row: &&Value| row.get("uri").and_then(Value::as_str) == Some(uri.as_str());
        let row = listed.iter().find(is_it);
        *found = row.and_then(|row| content_type(row)).map(str::to_owned);
    }
    match types.is_empty() {
        true => Ok(inputs.clone()),
        false => Ok(typed(inputs, 0, &types)),
    }
}

/// Content types by the names of resources.
type Types = BTreeMap<String, Option<String>>;

/// Returns the name in a reference that has only a name.
fn untyped(value: &Value) -> Option<String> {
    let is_open = kind_of(value) == Some(Kind::Resource) && content_type(value).is_none();
    resource::uri(value).filter(|_| is_open)
}

fn gather_untyped(value: &Value, depth: usize, found: &mut Types) {
    if let Some(uri) = untyped(value) {
        found.insert(uri, None);
        return;
    }
    if depth > DEEPEST || kind_of(value).is_some() {
        return;
    }
    match value {
        Value::Map(map) => {
            for (_, value) in map.iter() {
                gather_untyped(value, depth + 1, found);
            }
        }
        Value::Vector(_) | Value::List(_) | Value::Set(_) => {
            for item in items(value).unwrap_or_default() {
                gather_untyped(&item, depth + 1, found);
            }
        }
        _ => {}
    }
}

/// Puts content types into references.
fn typed(value: &Value, depth: usize, types: &Types) -> Value {
    if let Some(uri) = untyped(value) {
        let Some(Some(content_type)) = types.get(&uri) else {
            return value.clone();
        };
        let fact = (
            Value::keyword("content-type"),
            Value::from(content_type.as_str()),
        );
        return match value {
            Value::Map(map) => {
                let own = map.iter().map(|(key, value)| (key.clone(), value.clone()));
                Value::map(own.chain([fact]))
            }
            _ => resource::reference(&uri, &[("content-type", fact.1)]),
        };
    }
    if depth > DEEPEST || kind_of(value).is_some() {
        return value.clone();
    }
    match value {
        Value::Map(map) => Value::map(
            map.iter()
                .map(|(key, value)| (key.clone(), typed(value, depth + 1, types))),
        ),
        Value::Vector(_) | Value::List(_) | Value::Set(_) => {
            let items = items(value).unwrap_or_default();
            Value::vector(items.iter().map(|item| typed(item, depth + 1, types)))
        }
        other => other.clone(),
    }
}

/// Returns `:input-summary`.
pub(super) fn summary(inputs: &Value, tools: &Toolset) -> Value {
    let entries = inputs.as_map().into_iter().flat_map(|map| map.iter());
    Value::map(entries.map(|(key, value)| (key.clone(), enriched(value, tools, 0))))
}

/// Returns the images among the inputs, as parts of a message.
pub(super) fn images(inputs: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    gather_images(inputs, 0, &mut found);
    found
}

/// Returns the images anywhere in a value, as parts of a message.
fn gather_images(value: &Value, depth: usize, found: &mut Vec<Value>) {
    if depth > DEEPEST {
        return;
    }
    if let Some(part) = image_part(value) {
        found.push(part);
        return;
    }
    if kind_of(value).is_some() {
        return;
    }
    match value {
        Value::Map(map) => {
            for (_, value) in map.iter() {
                gather_images(value, depth + 1, found);
            }
        }
        Value::Vector(_) | Value::List(_) | Value::Set(_) => {
            for item in items(value).unwrap_or_default() {
                gather_images(&item, depth + 1, found);
            }
        }
        _ => {}
    }
}

/// Returns the part of a message for an image: an explicit one unchanged, or one for a reference to an image.
fn image_part(value: &Value) -> Option<Value> {
    if is_part(value) {
        return Some(value.clone());
    }
    (kind_of(value) == Some(Kind::Image)).then(|| {
        facts([
            ("type", Value::keyword("image-resource")),
            ("resource", value.clone()),
        ])
    })
}

fn is_part(value: &Value) -> bool {
    let type_ = value.get("type").and_then(flowstone_flow::flow::name_of);
    type_.as_deref() == Some("image-resource") && value.get("resource").is_some()
}

fn kind_of(value: &Value) -> Option<Kind> {
    if is_part(value) {
        return Some(Kind::Image);
    }
    let uri = resource::uri(value)?;
    let content_type = content_type(value).unwrap_or_default();
    if content_type.starts_with("image/") {
        return Some(Kind::Image);
    }
    Some(match ResourceName::read(&uri) {
        Some(ResourceName::Tree(_)) => Kind::Tree,
        Some(ResourceName::Changeset(_)) => Kind::Changeset,
        Some(ResourceName::Table(_)) => Kind::Table,
        _ => match content_type {
            it if it.contains("source-tree") => Kind::Tree,
            it if it.contains("changeset") => Kind::Changeset,
            it if it.contains(".table+") => Kind::Table,
            _ => Kind::Resource,
        },
    })
}

fn content_type(value: &Value) -> Option<&str> {
    ["content-type", "contentType", "mime-type"]
        .iter()
        .find_map(|key| value.get(key)?.as_str())
}

fn enriched(value: &Value, tools: &Toolset, depth: usize) -> Value {
    if let Some(kind) = kind_of(value) {
        return handle(kind, value, tools);
    }
    if depth > DEEPEST {
        return Value::from("…");
    }
    match value {
        Value::Text(text) => Value::from(shortened(text.as_str(), LONGEST)),
        Value::Map(map) => Value::map(
            map.iter()
                .map(|(key, value)| (key.clone(), enriched(value, tools, depth + 1))),
        ),
        Value::Vector(_) | Value::List(_) => {
            let items = items(value).unwrap_or_default();
            Value::vector(items.iter().map(|item| enriched(item, tools, depth + 1)))
        }
        other => other.clone(),
    }
}

/// Returns the description of a resource, with the way to read it.
fn handle(kind: Kind, value: &Value, tools: &Toolset) -> Value {
    let at = match is_part(value) {
        true => value.get("resource").unwrap_or(value),
        false => value,
    };
    let uri = resource::uri(at).unwrap_or_default();
    let mut described = vec![
        ("kind", Value::keyword(kind.name())),
        ("uri", Value::from(uri.as_str())),
    ];
    if let Some(content_type) = content_type(at) {
        described.push(("content-type", Value::from(content_type)));
    }
    for (key, from) in [("filename", "filename"), ("size-bytes", "size-bytes")] {
        if let Some(fact) = at.get(from).filter(|fact| !fact.is_nil()) {
            described.push((key, fact.clone()));
        }
    }
    if let Some(tool) = kind.tool() {
        let enabled = tools.has_step(tool);
        described.push(("recommended-tool", Value::keyword(tool)));
        described.push(("tool-enabled?", Value::Bool(enabled)));
        described.push(("access", access(kind, tool, &uri)));
        if !enabled {
            described.push(("missing-tool", missing(tool)));
        }
    }
    facts(described)
}

fn access(kind: Kind, tool: &str, uri: &str) -> Value {
    let uri = || Value::from(uri);
    let ops = |ops: &[&str]| Value::vector(ops.iter().map(|op| Value::keyword(op)));
    let tool = ("tool", Value::keyword(tool));
    let read = || ("read-args", facts([("source", uri())]));
    match kind {
        Kind::Tree => facts([tool, read(), ("common-ops", ops(TREE_OPS))]),
        Kind::Changeset => facts([
            tool,
            read(),
            ("write-args", facts([("changeset", uri())])),
            ("common-ops", ops(CHANGESET_OPS)),
        ]),
        Kind::Table => facts([
            tool,
            ("args", facts([("table", facts([("ref", uri())]))])),
            ("common-ops", ops(TABLE_OPS)),
        ]),
        Kind::Image | Kind::Resource => facts([tool]),
    }
}

/// Returns the error for an input that needs a disabled built-in tool.
pub(super) fn missing(tool: &str) -> Value {
    let constraint = format!(
        "Hydrated inputs recommend the {tool} built-in tool, but it is not enabled for this agent run. Do not invent {tool} tool calls."
    );
    facts([
        ("tool", Value::keyword(tool)),
        ("name", Value::from(tool)),
        ("constraint", Value::from(constraint)),
    ])
}

/// Returns the disabled built-in tools that inputs need.
pub(super) fn missing_tools(inputs: &Value, tools: &Toolset) -> Vec<&'static str> {
    let mut found = Vec::new();
    gather_missing(inputs, tools, 0, &mut found);
    found
}

fn gather_missing(value: &Value, tools: &Toolset, depth: usize, found: &mut Vec<&'static str>) {
    if let Some(kind) = kind_of(value) {
        if let Some(tool) = kind.tool()
            && !tools.has_step(tool)
            && !found.contains(&tool)
        {
            found.push(tool);
        }
        return;
    }
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Map(map) => {
            for (_, value) in map.iter() {
                gather_missing(value, tools, depth + 1, found);
            }
        }
        Value::Vector(_) | Value::List(_) | Value::Set(_) => {
            for item in items(value).unwrap_or_default() {
                gather_missing(&item, tools, depth + 1, found);
            }
        }
        _ => {}
    }
}
