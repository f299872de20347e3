//! A graph spec: its shape as data, and the Rust values of a valid one.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::shape::{Member, Name, Shape, member, whole};

/// The version of the format.
pub const SPEC_VERSION: &str = "1";
/// Maximum length of a template, in bytes.
pub const TEMPLATE_MAX: usize = 100_000;
/// Maximum length of a spec as JSON text, in bytes.
pub const SPEC_MAX: usize = 1_000_000;
const SHORT: usize = 256;

/// The shape of a whole spec.
pub const SPEC: Shape = Shape::Object(&[
    Member::optional("$schema", Shape::Text(2_000), "The address of this schema."),
    Member::optional("name", Shape::Text(SHORT), "What people call the agent."),
    Member::optional(
        "description",
        Shape::Text(TEMPLATE_MAX),
        "What the agent is for.",
    ),
    Member::required(
        "spec_version",
        Shape::Const(SPEC_VERSION),
        "The version of the format.",
    ),
    Member::required(
        "entry",
        Shape::Name(Name::Key),
        "The node that a run begins with.",
    ),
    Member::required("nodes", Shape::MapOf(Name::Key, &NODE), "The nodes, by id."),
    Member::required("edges", Shape::List(&EDGE), "The sequence of the nodes."),
    Member::optional(
        "tools",
        Shape::Object(TOOLS),
        "The tools that nodes may use.",
    ),
    Member::optional("limits", Shape::Object(LIMITS), "The limits of a run."),
]);

const TEMPLATE: Shape = Shape::Text(TEMPLATE_MAX);

const NODE: Shape = Shape::Tagged(
    "type",
    &[
        (
            "llm",
            &[
                Member::required(
                    "model",
                    Shape::Text(SHORT),
                    "`provider/model`, or a connection of the project.",
                ),
                Member::required("system_prompt", TEMPLATE, "The system prompt, a template."),
                Member::required("input_template", TEMPLATE, "The user message, a template."),
                Member::required(
                    "output_key",
                    Shape::Name(Name::Key),
                    "The key of `state` that gets the model's last text.",
                ),
                Member::optional(
                    "tools",
                    Shape::List(&TOOL_REF),
                    "The tools that the model may call; none if it is left out.",
                ),
                Member::optional(
                    "temperature",
                    Shape::Number(0.0, 2.0),
                    "How random the model's choice of words is.",
                ),
                Member::optional(
                    "max_tokens",
                    Shape::Int(1, 1_000_000),
                    "Maximum length of one answer of the model.",
                ),
            ],
        ),
        (
            "tool",
            &[
                Member::required("tool_ref", TOOL_REF, "The tool to call."),
                Member::required(
                    "args_template",
                    Shape::MapOfAny,
                    "The arguments; every text in it is a template.",
                ),
                Member::required(
                    "output_key",
                    Shape::Name(Name::Key),
                    "The key of `state` that gets the tool's result.",
                ),
            ],
        ),
        (
            "end",
            &[Member::required(
                "output_template",
                TEMPLATE,
                "The output of the run, a template.",
            )],
        ),
    ],
);

const EDGE: Shape = Shape::Object(&[
    Member::required("from", Shape::Name(Name::Key), "The node that ends."),
    Member::required("to", Shape::Name(Name::Key), "The node that begins then."),
]);

/// The execution modes of a tool, the weaker one first.
pub const MODES: &[&str] = &["read_only", "read_write"];
/// The audiences of a tool, the narrower one first.
pub const AUDIENCES: &[&str] = &["developer_only", "end_user"];

const MODE_OVERRIDE: Member = Member::optional(
    "mode_override",
    Shape::OneOf(MODES),
    "`read_write` makes a tool that only reads ask for approval. `read_only` has no effect on a tool that writes.",
);
const EXPOSED_TO_OVERRIDE: Member = Member::optional(
    "exposed_to_override",
    Shape::OneOf(AUDIENCES),
    "`developer_only` hides a tool from end users. `end_user` has no effect on a tool for developers.",
);

const TOOL_REF: Shape = Shape::Tagged(
    "source",
    &[
        (
            "builtin",
            &[
                Member::required(
                    "name",
                    Shape::Name(Name::Tool),
                    "The name of the built-in tool.",
                ),
                MODE_OVERRIDE,
                EXPOSED_TO_OVERRIDE,
            ],
        ),
        (
            "mcp",
            &[
                Member::required("server_id", Shape::Text(SHORT), "The id of the MCP server."),
                Member::required(
                    "name",
                    Shape::Name(Name::Tool),
                    "The name of the server's tool.",
                ),
                MODE_OVERRIDE,
                EXPOSED_TO_OVERRIDE,
            ],
        ),
        (
            "function",
            &[
                Member::required(
                    "name",
                    Shape::Name(Name::Tool),
                    "The name of the function or flow.",
                ),
                MODE_OVERRIDE,
                EXPOSED_TO_OVERRIDE,
            ],
        ),
    ],
);

const TOOLS: &[Member] = &[
    Member::optional(
        "builtin",
        Shape::List(&Shape::Name(Name::Tool)),
        "Built-in tools.",
    ),
    Member::optional(
        "mcp_servers",
        Shape::List(&Shape::Object(&[
            Member::required(
                "server_id",
                Shape::Text(SHORT),
                "The id of a registered server.",
            ),
            Member::required(
                "tools",
                Shape::List(&Shape::Name(Name::Tool)),
                "Those of its tools that nodes may use.",
            ),
            Member::optional(
                "tool_overrides",
                Shape::MapOf(
                    Name::Tool,
                    &Shape::Object(&[MODE_OVERRIDE, EXPOSED_TO_OVERRIDE]),
                ),
                "Overrides by tool.",
            ),
        ])),
        "MCP servers and the tools of each.",
    ),
    Member::optional(
        "functions",
        Shape::List(&Shape::Name(Name::Tool)),
        "Functions and flows that are marked as agent tools.",
    ),
];

const LIMITS: &[Member] = &[
    Member::optional(
        "max_steps",
        Shape::Int(1, 200),
        "Node visits of a run, and model turns of one `llm` node. Default 20.",
    ),
    Member::optional(
        "max_tool_calls",
        Shape::Int(0, 500),
        "Tool calls of a run. Default 100.",
    ),
    Member::optional(
        "max_parallel_tools",
        Shape::Int(1, 16),
        "Tool calls at the same time. Default 4.",
    ),
    Member::optional(
        "timeout_seconds",
        Shape::Int(5, 3_600),
        "Duration of a run without its pauses. Default 600.",
    ),
    Member::optional(
        "human_timeout_seconds",
        Shape::Int(60, 604_800),
        "Duration of one pause. Default 86400.",
    ),
    Member::optional(
        "heartbeat_seconds",
        Shape::Int(1, 60),
        "Accepted for compatibility; a lease shows whether a run is executed.",
    ),
    Member::optional(
        "checkpoint_every_node",
        Shape::Bool,
        "Accepted for compatibility; every call is journaled.",
    ),
];

/// Returns the JSON Schema of specs.
pub fn schema() -> Json {
    let mut schema = SPEC.schema();
    if let Json::Object(members) = &mut schema {
        members.insert(
            "$schema".to_owned(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        members.insert("title".to_owned(), json!("Graph spec"));
    }
    schema
}

/// A valid spec.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct GraphSpec {
    pub entry: String,
    pub nodes: BTreeMap<String, Node>,
    pub edges: Vec<Edge>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub tools: Tools,
    #[serde(default, deserialize_with = "or_default")]
    pub limits: Limits,
}

/// A node of a spec.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Node {
    Llm(LlmNode),
    Tool(ToolNode),
    End(EndNode),
}

/// A node that asks a model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LlmNode {
    pub model: String,
    pub system_prompt: String,
    pub input_template: String,
    pub output_key: String,
    #[serde(default, deserialize_with = "or_default")]
    pub tools: Vec<ToolRef>,
    #[serde(default)]
    pub temperature: Option<f64>,
    #[serde(default)]
    pub max_tokens: Option<i64>,
}

/// A node that calls a tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolNode {
    pub tool_ref: ToolRef,
    pub args_template: Map<String, Json>,
    pub output_key: String,
}

/// The node that ends a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EndNode {
    pub output_template: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Edge {
    pub from: String,
    pub to: String,
}

/// The source of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Builtin,
    Function,
    Mcp,
}

impl Source {
    /// Returns the name that specs and events use.
    pub fn name(self) -> &'static str {
        match self {
            Source::Builtin => "builtin",
            Source::Function => "function",
            Source::Mcp => "mcp",
        }
    }
}

/// A tool that a node may use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ToolRef {
    pub source: Source,
    pub name: String,
    #[serde(default)]
    pub server_id: Option<String>,
    #[serde(default)]
    pub mode_override: Option<Mode>,
    #[serde(default)]
    pub exposed_to_override: Option<Audience>,
}

/// Whether a call of the tool needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    ReadOnly,
    /// A person approves each call.
    ReadWrite,
}

impl Mode {
    /// Returns the name that specs use.
    pub fn name(self) -> &'static str {
        match self {
            Mode::ReadOnly => "read_only",
            Mode::ReadWrite => "read_write",
        }
    }

    /// Returns the mode of a name.
    pub fn named(name: &str) -> Option<Mode> {
        [Mode::ReadOnly, Mode::ReadWrite]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}

/// The audience of a tool; a narrower one compares as less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    #[default]
    DeveloperOnly,
    EndUser,
}

impl Audience {
    /// Returns the name that specs use.
    pub fn name(self) -> &'static str {
        match self {
            Audience::DeveloperOnly => "developer_only",
            Audience::EndUser => "end_user",
        }
    }

    /// Returns the audience of a name.
    pub fn named(name: &str) -> Option<Audience> {
        [Audience::DeveloperOnly, Audience::EndUser]
            .into_iter()
            .find(|audience| audience.name() == name)
    }
}

/// The tools of a spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Tools {
    #[serde(default, deserialize_with = "or_default")]
    pub builtin: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub mcp_servers: Vec<McpServer>,
    #[serde(default, deserialize_with = "or_default")]
    pub functions: Vec<String>,
}

/// A server and those of its tools that nodes may use.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct McpServer {
    pub server_id: String,
    pub tools: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub tool_overrides: BTreeMap<String, Overrides>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Overrides {
    #[serde(default)]
    pub mode_override: Option<Mode>,
    #[serde(default)]
    pub exposed_to_override: Option<Audience>,
}

/// The limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Limits {
    pub max_steps: i64,
    pub max_tool_calls: i64,
    pub max_parallel_tools: i64,
    pub timeout_seconds: i64,
    pub human_timeout_seconds: i64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_steps: 20,
            max_tool_calls: 100,
            max_parallel_tools: 4,
            timeout_seconds: 600,
            human_timeout_seconds: 86_400,
        }
    }
}

/// Writes a whole number without a fraction: `5.0` becomes `5`.
fn as_whole(value: &mut Json) {
    if let Some(number) = whole(value) {
        *value = json!(number);
    }
}

/// Tells whether [`GraphSpec::read`] has to change a spec first: a number is written as `5.0`, or a limit is `null`.
fn has_other_numbers(spec: &Json) -> bool {
    let object = |name: &str| spec.get(name).and_then(Json::as_object);
    let limits = object("limits").into_iter().flat_map(Map::values);
    let nodes = object("nodes").into_iter().flat_map(Map::values);
    let lengths = nodes.filter_map(|node| member(node.as_object()?, "max_tokens"));
    let is_other = |value: &Json| value.is_null() || value.is_f64();
    limits.chain(lengths).any(is_other)
}

/// Treats `null` like a missing member.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

impl GraphSpec {
    /// Returns the ids of the nodes that a run visits, in their order. The spec is valid, so the last one is an `end`.
    pub fn chain(&self) -> Vec<&str> {
        let edges = self.edges.iter().rev();
        let next: HashMap<&str, &str> = edges.map(|edge| (&*edge.from, &*edge.to)).collect();
        let mut chain = Vec::new();
        let mut at = Some(self.entry.as_str());
        while let Some(id) = at {
            if chain.len() > self.nodes.len() {
                break;
            }
            chain.push(id);
            at = next.get(id).copied();
        }
        chain
    }

    /// Returns the tools of the top-level block with their places.
    pub fn listed_tools(&self) -> Vec<(Vec<Json>, ToolRef)> {
        let tool = |source, name: &String, server_id: Option<&String>| ToolRef {
            source,
            name: name.clone(),
            server_id: server_id.cloned(),
            mode_override: None,
            exposed_to_override: None,
        };
        let at = |list: &str, idx: usize| vec![json!("tools"), json!(list), json!(idx)];
        let tools = &self.tools;
        let builtin = tools.builtin.iter().enumerate();
        let builtin =
            builtin.map(|(idx, name)| (at("builtin", idx), tool(Source::Builtin, name, None)));
        let functions = tools.functions.iter().enumerate();
        let functions =
            functions.map(|(idx, name)| (at("functions", idx), tool(Source::Function, name, None)));
        let servers = tools.mcp_servers.iter().enumerate();
        let of_servers = servers.flat_map(|(idx, server)| {
            let names = server.tools.iter();
            names.map(move |name| {
                let found = tool(Source::Mcp, name, Some(&server.server_id));
                (at("mcp_servers", idx), found)
            })
        });
        builtin.chain(functions).chain(of_servers).collect()
    }

    /// Returns the tools that the visited nodes use, each once, in the order of the nodes.
    pub fn used_tools(&self) -> Vec<&ToolRef> {
        let mut used: Vec<&ToolRef> = Vec::new();
        for id in self.chain() {
            let refs: &[ToolRef] = match self.nodes.get(id) {
                Some(Node::Llm(node)) => &node.tools,
                Some(Node::Tool(node)) => std::slice::from_ref(&node.tool_ref),
                Some(Node::End(_)) | None => &[],
            };
            for tool in refs {
                if !used.contains(&tool) {
                    used.push(tool);
                }
            }
        }
        used
    }
}

impl GraphSpec {
    /// Reads a spec that has passed the checks.
    ///
    /// # Errors
    /// When the spec does not match.
    pub fn read(spec: &Json) -> Result<GraphSpec, serde_json::Error> {
        if !has_other_numbers(spec) {
            return GraphSpec::deserialize(spec);
        }
        let mut spec = spec.clone();
        if let Some(limits) = spec.get_mut("limits").and_then(Json::as_object_mut) {
            limits.retain(|_, value| !value.is_null());
            limits.values_mut().for_each(as_whole);
        }
        let nodes = spec.get_mut("nodes").and_then(Json::as_object_mut);
        for node in nodes.into_iter().flat_map(|nodes| nodes.values_mut()) {
            node.get_mut("max_tokens").into_iter().for_each(as_whole);
        }
        serde_json::from_value(spec)
    }
}
