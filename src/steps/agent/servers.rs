//! `:mcp-tools`: all tools of servers, as their lists have them when the agent starts.
//!
//! A nested step asks each server for its list, and its answer is journaled, so a resumed run offers the tools that it offered
//! before. A server that does not answer is reported in the result; a turn that requires one of its tools fails.

use std::rc::Rc;

use flowstone_flow::flow::{McpAdapter, mcp_tool_name};
use flowstone_flow::step::{Field, FieldType, NestedRequest, StepContext, StepError};
use flowstone_lang::value::Value;
use serde_json::{Map as JsonMap, Value as Json, json};

use super::mcp_resources::{self, Server};
use super::notes::facts;
use super::tool::{Tool, ToolKind, ToolStep};
use super::tools::{self, Shape, within};
use crate::fields::Fields;
use crate::json::{from_json, items, to_json};
use crate::mcp::answer::for_model;
use crate::mcp::asking::{self, QUESTIONS};
use crate::mcp::{SPEC, with_near};

/// The keys of an entry of `:mcp-tools`.
pub(super) const TOOL: &[Field] = &[
    Field::required(
        "adapter",
        FieldType::Name,
        "One of the flow's `:mcp` adapters, by its id. Without `:allow-tools` it offers every tool of its server.",
    ),
    Field::optional(
        "call-headers",
        FieldType::Map,
        "Headers of the calls, after `:headers`.",
    ),
    Field::optional(
        "headers",
        FieldType::Map,
        "Headers of the request for the list and of the calls. They are in the journal.",
    ),
    Field::required(
        "name",
        FieldType::Text,
        "The prefix of the names for the model: `github` for `github_create_issue`.",
    ),
    Field::optional(
        "preset",
        FieldType::Map,
        "Arguments that the model neither sees nor changes.",
    ),
    Field::optional(
        QUESTIONS,
        asking::FIELD,
        "What happens to questions of the server, as `:questions` of an `:mcp` step. Default: that of the adapter, otherwise `:decline`.",
    ),
    Field::optional(
        "resources",
        FieldType::Bool,
        "Whether the model may list and read the resources of the server, with the tools `NAME_list_resources` and \
         `NAME_read_resource`. Default: that of the adapter, otherwise false.",
    ),
];
const KEYS: &[&str] = &[
    "adapter",
    "call-headers",
    "headers",
    "name",
    "preset",
    QUESTIONS,
    "resources",
];
/// The id of the nested step that asks a server for its tools, before the name of the entry.
pub const LISTING: &str = "mcp_tools_";
/// The beginning of the warning of a tool of a server whose name is taken.
pub const LEFT_OUT: &str = "a tool of an MCP server is left out: ";
/// Maximum number of servers that are asked at a time.
const AT_ONCE: usize = 8;

/// An entry of `:mcp-tools`.
struct Entry {
    name: Rc<str>,
    adapter: Rc<McpAdapter>,
    headers: Vec<(Value, Value)>,
    call_headers: Vec<(Value, Value)>,
    preset: JsonMap<String, Json>,
    questions: Value,
    has_resources: bool,
}

/// A server of `:mcp-tools` whose list was asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The beginning of its tools' names, with the underscore.
    pub prefix: String,
    /// Why it did not give a list.
    pub failure: Option<String>,
}

/// The tools of `:mcp-tools`, and the servers that were asked.
#[derive(Default)]
pub(super) struct Listed {
    pub tools: Vec<Tool>,
    pub servers: Vec<Asked>,
}

/// Asks the servers of `:mcp-tools` for their tools.
///
/// # Errors
/// E1290: when an entry is wrong. A server that does not answer is not an error.
pub(super) async fn of(cx: &StepContext, given: &Value) -> Result<Listed, StepError> {
    let entries = items(given).ok_or_else(|| wrong("`:mcp-tools` takes a vector of maps"))?;
    let read = |entry: &Value| read(cx, entry);
    let entries: Vec<Entry> = entries.iter().map(read).collect::<Result<_, _>>()?;
    let requests = entries.iter().map(Entry::listing).collect();
    let answers = cx.perform_all(requests, AT_ONCE).await;
    let mut listed = Listed::default();
    for (entry, answer) in entries.into_iter().zip(answers) {
        let prefix = format!("{}_", entry.name);
        let failure = match answer.result {
            Ok(answer) => {
                let found = answer.get("tools").and_then(items).unwrap_or_default();
                let most = tools::most_chars(cx);
                let entry = Rc::new(entry);
                let first = listed.tools.len();
                for tool in &found {
                    listed.tools.extend(entry.tool(tool, most)?);
                }
                let more = entry.resources(&listed.tools[first..], most)?;
                listed.tools.extend(more);
                None
            }
            Err(error) => Some(format!(
                "the MCP server of `{}` did not list its tools: {}",
                entry.name, error.message
            )),
        };
        listed.servers.push(Asked { prefix, failure });
    }
    Ok(listed)
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E1290", message)
}

fn read(cx: &StepContext, entry: &Value) -> Result<Entry, StepError> {
    let fields = Fields::nested("an entry of `:mcp-tools`", entry)?;
    fields.only(KEYS)?;
    let name = fields.text("name")?.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| wrong("an entry of `:mcp-tools` needs a `:name`"))?;
    let adapter = fields.name("adapter")?.unwrap_or_default();
    let known = cx.flow().mcp_adapter(adapter.trim_start_matches(':'));
    let adapter = known.cloned().ok_or_else(|| {
        let error = wrong(format!("the flow has no adapter `:{adapter}`"));
        with_near(error, &adapter, cx.flow().mcp.iter().map(|it| &*it.id), ":")
    })?;
    let pairs = |key: &str| -> Result<Vec<(Value, Value)>, StepError> {
        let map = fields.map(key)?.and_then(Value::as_map);
        let pairs = map.into_iter().flat_map(|map| map.iter());
        Ok(pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect())
    };
    let questions = fields.get(QUESTIONS).unwrap_or(&adapter.questions).clone();
    let has_resources = fields.bool("resources")?;
    Ok(Entry {
        name: name.into(),
        questions,
        has_resources: has_resources.unwrap_or(adapter.has_resources),
        adapter,
        headers: pairs("headers")?,
        call_headers: pairs("call-headers")?,
        preset: tools::preset(fields.map("preset")?)?,
    })
}

impl Entry {
    /// Returns the step that asks the server for its list.
    fn listing(&self) -> NestedRequest {
        let mut config = vec![
            ("op", Value::keyword("list-tools")),
            ("adapter", Value::keyword(&self.adapter.id)),
        ];
        if !self.headers.is_empty() {
            config.push(("headers", Value::map(self.headers.clone())));
        }
        NestedRequest::new(SPEC.kind, format!("{LISTING}{}", self.name), facts(config))
    }

    /// Returns the tools for the server's resources, beside its own tools.
    fn resources(&self, own: &[Tool], most: usize) -> Result<Vec<Tool>, StepError> {
        if !self.has_resources {
            return Ok(Vec::new());
        }
        let server = Server {
            adapter: &self.adapter,
            headers: &self.all_headers(),
            name: &|tool| mcp_tool_name(&self.name, tool),
            most,
        };
        mcp_resources::of(&server, |name| own.iter().any(|it| *it.name == *name))
    }

    /// Returns a tool of the server's list; nothing if it has no name.
    fn tool(self: &Rc<Entry>, listed: &Value, most: usize) -> Result<Option<Tool>, StepError> {
        let text = |key: &str| listed.get(key).and_then(Value::as_str);
        let Some(tool) = text("name") else {
            return Ok(None);
        };
        let name = mcp_tool_name(&self.name, tool);
        let schema = listed.get("input-schema");
        let schema = schema.and_then(|schema| to_json(schema).ok());
        let schema = schema.unwrap_or_else(|| json!({"type": "object"}));
        let parameters = tools::hidden::without(&schema, &self.preset);
        // If the schema is invalid, only the server checks the arguments.
        let shape = Shape::with_preset(&name, &schema, &self.preset);
        let shape = shape.or_else(|_| Shape::with_preset(&name, &json!({}), &self.preset));
        let shape = shape.map_err(wrong)?;
        let (entry, own_name) = (self.clone(), tool.to_owned());
        Ok(Some(Tool {
            step: format!("{}/{tool}", self.adapter.namespace()).into(),
            kind: ToolKind::Mcp,
            description: text("description").unwrap_or_default().to_owned(),
            parameters,
            ops: Vec::new(),
            call: Rc::new(move |given| {
                let given = tools::without_preset(given, &entry.preset);
                entry.step(&own_name, shape.read_json(&given)?)
            }),
            // Only a definition can declare that a tool changes nothing.
            mutates: Rc::new(|_| true),
            needs_approval: Rc::new(|_| false),
            answer: Rc::new(move |_, value| within(for_model(&value), most)),
            name: name.into(),
        }))
    }

    fn all_headers(&self) -> Vec<(Value, Value)> {
        let all = self.headers.iter().chain(&self.call_headers);
        all.cloned().collect()
    }

    fn step(&self, tool: &str, arguments: Json) -> Result<ToolStep, StepError> {
        let mut arguments = match arguments {
            Json::Object(members) => members,
            _ => JsonMap::new(),
        };
        arguments.extend(self.preset.clone());
        let mut config = vec![
            ("adapter", Value::keyword(&self.adapter.id)),
            ("tool", Value::from(tool)),
            ("arguments", from_json(&Json::Object(arguments))),
            // A call in doubt is reported to the model; nothing is sent twice.
            ("on-doubt", Value::keyword("fail")),
        ];
        if !self.questions.is_nil() {
            config.push((QUESTIONS, self.questions.clone()));
        }
        let headers = self.all_headers();
        if !headers.is_empty() {
            config.push(("headers", Value::map(headers)));
        }
        Ok(ToolStep {
            kind: SPEC.kind.into(),
            config: facts(config),
        })
    }
}
