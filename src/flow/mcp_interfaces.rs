//! The tools, prompts and resources that a flow offers to clients of the Model Context Protocol: `:mcp` of
//! `:interfaces`.
//!
//! An entry is a tool by default. With `:kind`, it is a prompt, whose messages are the result of a run, or a resource,
//! whose contents are the result of a run. Reads definitions that have passed their checks; the checks report malformed
//! entries.

use flowstone_lang::value::{Span, Value};
use flowstone_model::names::name_of;
use serde_json::{Map, Value as Json, json};

use crate::definition::{Flow, Input, Invocation, option_value};
use crate::interfaces::Unservable;
use crate::json::{self, items};
use crate::schema;

/// A tool, prompt or resource that a flow offers.
#[derive(Debug, Clone, PartialEq)]
pub struct McpInterface {
    pub kind: McpKind,
    /// The name of a tool or a prompt, and of a resource in lists.
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub invocation: String,
    /// The URI of a resource.
    pub uri: Option<UriPattern>,
    /// The media type of a resource's text.
    pub media: Option<String>,
    /// JSON Schema of the arguments, if it is more exact than the inputs of the invocation.
    pub input_schema: Option<Json>,
    /// JSON Schema of a tool's result.
    pub output_schema: Option<Json>,
    /// When a call of the tool becomes a task.
    pub task: TaskMoment,
    /// Only clients that know tasks may call the tool.
    pub needs_task: bool,
}

/// When a call of a tool becomes a task, for clients that know tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaskMoment {
    /// After the client has answered what the run asks first.
    AfterInput,
    /// At once.
    AtOnce,
    /// When the run takes longer than a call waits.
    #[default]
    Late,
}

impl TaskMoment {
    pub const NAMES: &[&str] = &["after-input", "at-once", "late"];

    fn from_name(name: &str) -> Option<TaskMoment> {
        match name {
            "after-input" => Some(TaskMoment::AfterInput),
            "at-once" => Some(TaskMoment::AtOnce),
            "late" => Some(TaskMoment::Late),
            _ => None,
        }
    }
}

/// The kinds of things that a flow offers to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum McpKind {
    Prompt,
    Resource,
    Tool,
}

impl McpInterface {
    /// Returns the key that must be unique in a project: the kind, and the name or address.
    pub fn key(&self) -> (McpKind, String) {
        let name = match &self.uri {
            Some(uri) => uri.shape(),
            None => self.name.clone(),
        };
        (self.kind, name)
    }
}

impl McpKind {
    pub const NAMES: &[&str] = &["prompt", "resource", "tool"];

    fn from_name(name: &str) -> Option<McpKind> {
        match name {
            "prompt" => Some(McpKind::Prompt),
            "resource" => Some(McpKind::Resource),
            "tool" => Some(McpKind::Tool),
            _ => None,
        }
    }
}

/// Maximum length of the name of a tool.
const NAME_MAX: usize = 64;
/// The prefix of names that are reserved for the workspace's own tools.
pub const WORKSPACE: &str = "workspace_";
/// Names of tools that have a fixed meaning for their clients, sorted.
const RESERVED: &[&str] = &[
    "annotate_trace",
    "commit_revision",
    "const_read",
    "create_schedule",
    "create_subscription",
    "discover_tools",
    "discover_triggers",
    "eval",
    "get_execution",
    "list_deliveries",
    "list_schedules",
    "next_step",
    "query_spans",
    "read_trace",
    "remove_schedule",
    "remove_subscription",
    "request_connection",
    "reset_execution",
    "resume_execution",
    "start_execution",
    "submit",
    "test_run",
    "test_subscription",
    "think",
    "var_read",
    "var_write",
];

/// The address of a resource, whose `{parts}` are inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriPattern {
    text: String,
    /// Plain texts and names of parameters, alternating, beginning with a text.
    parts: Vec<String>,
}

impl UriPattern {
    /// Reads an address such as `orders://{order}/lines`.
    ///
    /// # Errors
    /// A message that states what is wrong with the address.
    pub fn parse(text: &str) -> Result<UriPattern, String> {
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
        let is_scheme = scheme.starts_with(|char: char| char.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char));
        if !is_scheme
            || text
                .chars()
                .any(|char| char.is_whitespace() || char.is_control())
        {
            return Err(format!(
                "`{text}` is not an address such as `orders://{{order}}`"
            ));
        }
        if ["flowstone", "res", "http", "https", "file"].contains(&scheme) {
            return Err(format!("addresses with `{scheme}://` are reserved"));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((plain, after)) = rest.split_once('{') {
            let (name, after) = after
                .split_once('}')
                .filter(|(name, _)| crate::definition::is_identifier(name))
                .ok_or_else(|| format!("`{text}` has a `{{` without a name and `}}`"))?;
            if plain.is_empty() {
                return Err(format!("two parts of `{text}` have no text between them"));
            }
            parts.extend([plain.to_owned(), name.to_owned()]);
            rest = after;
        }
        parts.push(rest.to_owned());
        Ok(UriPattern {
            text: text.to_owned(),
            parts,
        })
    }

    /// Returns the address as the flow writes it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the address without the names of its parts.
    fn shape(&self) -> String {
        let plain: Vec<&str> = self.parts.iter().step_by(2).map(String::as_str).collect();
        plain.join("{}")
    }

    /// Tells whether it is a single address, without parameters.
    pub fn is_plain(&self) -> bool {
        self.parts.len() == 1
    }

    /// Returns the parameters of an address that matches. A parameter is not empty and contains no slash.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let mut rest = uri;
        let mut found = Vec::new();
        let mut parts = self.parts.iter();
        rest = rest.strip_prefix(parts.next()?.as_str())?;
        while let (Some(name), Some(plain)) = (parts.next(), parts.next()) {
            let end = match plain.is_empty() {
                true => rest.len(),
                false => rest.find(plain.as_str())?,
            };
            let (value, after) = rest.split_at(end);
            if value.is_empty() || value.contains('/') {
                return None;
            }
            found.push((name.clone(), value.to_owned()));
            rest = &after[plain.len()..];
        }
        rest.is_empty().then_some(found)
    }
}

/// Returns the entries that a flow offers. Malformed ones are left out; the checks report them.
pub fn of(flow: &Flow) -> Vec<McpInterface> {
    let declared = declared(flow).into_iter();
    declared.map(|(interface, _)| interface).collect()
}

/// As [`of`], with the place of each entry in the flow's text.
pub fn declared(flow: &Flow) -> Vec<(McpInterface, Span)> {
    let interfaces = flow.definition.get("interfaces");
    let entries = interfaces.and_then(|it| it.get("mcp")).and_then(items);
    let entries = entries.unwrap_or_default().into_iter();
    entries
        .filter_map(|entry| Some((read(&entry).ok()?, entry.span())))
        .collect()
}

/// Reads an entry of `:mcp`.
///
/// # Errors
/// The reason why the entry cannot be served. The error has no message if the entry is turned off.
pub fn read(entry: &Value) -> Result<McpInterface, Unservable> {
    let wrong = |key: &'static str, message: String| Unservable { key, message };
    if entry.get("enabled") == Some(&Value::Bool(false)) {
        return Err(wrong("enabled", String::new()));
    }
    let text = |key: &str| {
        let found = entry.get(key).and_then(Value::as_str);
        found.map(|text| text.to_string())
    };
    let name = entry.get("tool-name").and_then(name_of).unwrap_or_default();
    check_name(&name).map_err(|message| wrong("tool-name", message))?;
    let kind = match entry.get("kind").and_then(name_of) {
        None => McpKind::Tool,
        Some(kind) => McpKind::from_name(&kind).ok_or_else(|| {
            let message = format!("`:kind` must be one of {}", McpKind::NAMES.join(", "));
            wrong("kind", message)
        })?,
    };
    let uri = match (kind, text("uri")) {
        (McpKind::Resource, Some(uri)) => {
            Some(UriPattern::parse(&uri).map_err(|message| wrong("uri", message))?)
        }
        (McpKind::Resource, None) => {
            return Err(wrong("", "a resource needs a `:uri`".to_owned()));
        }
        (McpKind::Tool | McpKind::Prompt, Some(_)) => {
            let message = "only an entry of `:kind :resource` can have a `:uri`".to_owned();
            return Err(wrong("uri", message));
        }
        (McpKind::Tool | McpKind::Prompt, None) => None,
    };
    let task = match entry.get("task").and_then(name_of) {
        None => TaskMoment::default(),
        Some(_) if kind != McpKind::Tool => {
            return Err(wrong("task", "only a tool has a `:task`".to_owned()));
        }
        Some(name) => TaskMoment::from_name(&name).ok_or_else(|| {
            let message = format!("`:task` must be one of {}", TaskMoment::NAMES.join(", "));
            wrong("task", message)
        })?,
    };
    Ok(McpInterface {
        kind,
        task,
        needs_task: entry.get("task-required") == Some(&Value::Bool(true)),
        name: name.to_string(),
        title: text("label"),
        description: text("description"),
        invocation: entry
            .get("invocation")
            .and_then(name_of)
            .map_or_else(|| "default".to_owned(), |name| name.to_string()),
        uri,
        media: text("mime-type"),
        input_schema: object_schema(entry, "input-schema")?,
        output_schema: object_schema(entry, "output-schema")?,
    })
}

/// Checks the name of a tool.
///
/// # Errors
/// A message that states what is wrong with the name.
fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) {
        return Err(format!(
            "a `:tool-name` must have 1 to {NAME_MAX} letters, digits, `_` and `-`, got `{name}`"
        ));
    }
    if name.starts_with(WORKSPACE) || RESERVED.contains(&name) {
        return Err(format!("the name `{name}` is reserved"));
    }
    Ok(())
}

/// Reads the schema of an object: JSON Schema, or a Malli schema, which is converted to JSON Schema.
fn object_schema(entry: &Value, key: &'static str) -> Result<Option<Json>, Unservable> {
    let Some(given) = entry.get(key).filter(|it| !it.is_nil()) else {
        return Ok(None);
    };
    let form = crate::forms::quoted(given).unwrap_or_else(|| given.clone());
    let made = match &form {
        Value::Map(_) => json::to_json(&form).map_err(|error| error.to_string()),
        _ => schema::parse(&form)
            .map(|schema| schema::to_json_schema(&schema))
            .map_err(|error| error.to_string()),
    };
    match made {
        Ok(json) if json.get("type").and_then(Json::as_str) == Some("object") => Ok(Some(json)),
        Ok(_) => Err(Unservable {
            key,
            message: format!("`:{key}` must be the schema of an object"),
        }),
        Err(why) => Err(Unservable {
            key,
            message: format!("`:{key}` is not a schema: {why}"),
        }),
    }
}

/// Returns the JSON Schema of an invocation's inputs.
pub fn input_schema(invocation: Option<&Invocation>) -> Json {
    let inputs = invocation.map_or(&[][..], |invocation| &invocation.inputs);
    let mut properties = Map::new();
    let mut required = Vec::new();
    for input in inputs {
        properties.insert(input.name.to_string(), property(input));
        if input.required && input.default.is_nil() {
            required.push(json!(&*input.name));
        }
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = Json::Array(required);
    }
    schema
}

/// Returns the schema of one input.
fn property(input: &Input) -> Json {
    let string = |format: Option<&str>| match format {
        Some(format) => json!({"type": "string", "format": format}),
        None => json!({"type": "string"}),
    };
    let mut one = match &*input.type_ {
        "email" => string(Some("email")),
        "date" => string(Some("date")),
        "time" => string(Some("time")),
        "datetime" => string(Some("date-time")),
        "text" | "string" | "textarea" | "password" | "secret" => string(None),
        "number" => json!({"type": "number"}),
        "boolean" | "checkbox" => json!({"type": "boolean"}),
        "select" => select(input),
        "list" => json!({"type": "array"}),
        "any" | "json" => json!({}),
        // Files and other references to stored resources.
        _ => json!({
            "type": "object",
            "properties": {"uri": {"type": "string", "format": "uri"}},
            "required": ["uri"],
        }),
    };
    if input.multiple {
        one = json!({"type": "array", "items": one});
    }
    if let Some(title) = &input.label {
        one["title"] = json!(&**title);
    }
    if let Some(description) = &input.description {
        one["description"] = json!(&**description);
    }
    let default = Some(&input.default).filter(|default| !default.is_nil());
    if let Some(Ok(default)) = default.map(json::to_json) {
        one["default"] = default;
    }
    one
}

fn select(input: &Input) -> Json {
    let options: Vec<Json> = input
        .options
        .iter()
        .filter_map(|option| json::to_json(option_value(option)).ok())
        .collect();
    match options.is_empty() {
        true => json!({}),
        false => json!({"enum": options}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(pattern: &str, uri: &str) -> String {
        match UriPattern::parse(pattern) {
            Err(message) => message,
            Ok(pattern) => format!("{:?}", pattern.matches(uri)),
        }
    }

    #[test]
    fn addresses_of_resources_have_parts() {
        for (pattern, uri, expected) in [
            ("orders://all", "orders://all", "Some([])"),
            ("orders://all", "orders://some", "None"),
            (
                "t://a/{id}/data",
                "t://a/12/data",
                "Some([(\"id\", \"12\")])",
            ),
            ("t://a/{id}/data", "t://a//data", "None"),
            ("t://a/{id}", "t://a/b/c", "None"),
            (
                "t://{a}-{b}",
                "t://x-y",
                "Some([(\"a\", \"x\"), (\"b\", \"y\")])",
            ),
            (
                "t://{a}{b}",
                "",
                "two parts of `t://{a}{b}` have no text between them",
            ),
            ("t://{", "", "`t://{` has a `{` without a name and `}`"),
            (
                "plain",
                "",
                "`plain` is not an address such as `orders://{order}`",
            ),
            ("res://v1", "", "addresses with `res://` are reserved"),
        ] {
            assert_eq!(matched(pattern, uri), expected, "{pattern} {uri}");
        }
    }

    #[test]
    fn names_of_tools_are_those_that_clients_take() {
        for name in ["enrich_company", "a", "A-1"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "a b",
            "ä",
            "workspace_runs_list",
            "think",
            &"x".repeat(65),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
