//! `:mcp`: adapters between the flow and servers of the Model Context Protocol, read from the definition.
//!
//! An adapter sets the connection to a server, the tools that may be used, and their names for models. A flow cannot
//! set the command of a server: that belongs to the project's settings.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use flowstone_lang::value::{Span, Value};
use serde_json::Value as Json;

use super::packaged::is_packaged_id;
use super::reading::{Reading, keywords};
use super::{Flow, name_of};
use crate::codec;
use crate::diagnostic::{Diagnostic, nearest};
use crate::forms::{entry_spans, item_span, quoted};
use crate::{json, schema};

/// An entry of `:mcp`.
#[derive(Debug, Clone)]
pub struct McpAdapter {
    /// Qualified, without its colon: `linear/issues`.
    pub id: Rc<str>,
    /// A slot of `:requires`, or a connection of the project's settings.
    pub connection: Rc<str>,
    pub transport: McpTransport,
    /// The path below the connection's `:base-url`.
    pub path: Option<Rc<str>>,
    /// The tools that may be used. With `None`, only tools that are referred to by name may be used.
    pub allow_tools: Option<Vec<Rc<str>>>,
    /// The prefix of the tools' names for models; may be empty.
    pub tool_prefix: Rc<str>,
    pub timeout: Option<Duration>,
    /// Descriptions of tools that need no request to the server.
    pub tools: Vec<McpToolDefinition>,
    /// `:questions` of the calls that agents make; nil if it is absent.
    pub questions: Value,
    /// Whether agents may list and read the resources of the server.
    pub has_resources: bool,
    pub span: Span,
}

/// The transport to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpTransport {
    StreamableHttp,
    Stdio,
}

/// A tool that a definition describes.
#[derive(Debug, Clone)]
pub struct McpToolDefinition {
    pub name: Rc<str>,
    pub description: Option<Rc<str>>,
    /// JSON Schema of the arguments.
    pub input_schema: Option<Json>,
    pub read_only: Option<bool>,
}

impl McpAdapter {
    /// Tells whether the adapter lets a tool be used.
    pub fn allows(&self, tool: &str) -> bool {
        let allowed = self.allow_tools.as_ref();
        allowed.is_none_or(|allowed| allowed.iter().any(|name| **name == *tool))
    }

    /// Returns the definition of a tool, if the adapter has one.
    pub fn tool(&self, name: &str) -> Option<&McpToolDefinition> {
        self.tools.iter().find(|tool| *tool.name == *name)
    }

    /// Returns the part of the id before its slash.
    pub fn namespace(&self) -> &str {
        self.id.split_once('/').map_or("", |(space, _)| space)
    }

    /// Returns a tool's name for models: the prefix and the tool's name, in the characters that providers accept.
    pub fn model_name(&self, tool: &str) -> String {
        tool_name(&self.tool_prefix, tool)
    }
}

/// Returns the name of a server's tool for models: a prefix, which may be empty, and the tool's name, in the characters that
/// providers accept.
pub fn tool_name(prefix: &str, tool: &str) -> String {
    let whole = match prefix {
        "" => tool.to_owned(),
        prefix => format!("{prefix}_{tool}"),
    };
    let name: String = whole
        .chars()
        .map(|char| match char {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => char,
            _ => '_',
        })
        .collect();
    if name.len() <= TOOL_NAME {
        return name;
    }
    let digest = codec::digest_bytes(whole.as_bytes());
    format!("{}_{}", &name[..TOOL_NAME - 9], &digest[..8])
}

impl Flow {
    /// Returns an adapter of `:mcp`, by its id without the colon.
    pub fn mcp_adapter(&self, id: &str) -> Option<&Rc<McpAdapter>> {
        self.mcp.iter().find(|adapter| &*adapter.id == id)
    }
}

impl McpTransport {
    const NAMES: &[&str] = &["stdio", "streamable-http"];

    fn from_name(name: &str) -> Option<McpTransport> {
        match name {
            "stdio" => Some(McpTransport::Stdio),
            "streamable-http" => Some(McpTransport::StreamableHttp),
            _ => None,
        }
    }
}

/// Every key of an entry, sorted.
const KEYS: &[&str] = &[
    "allow-tools",
    "connection",
    "id",
    "path",
    "questions",
    "resources",
    "timeout-ms",
    "tool-prefix",
    "tools",
    "transport",
];

/// Every key of an entry of `:tools`, sorted.
const TOOL_KEYS: &[&str] = &["description", "input-schema", "name", "read-only?"];

/// Keys that may be expected here but belong elsewhere.
const ELSEWHERE: &[&str] = &[
    "args", "auth", "base-url", "command", "cwd", "env", "headers", "url",
];

const ELSEWHERE_HINT: &str = "the URL or the command of a server belongs to its connection, in \
    flowstone.edn: `{:connections {:files-mcp {:backend :mcp :command [\"node\" \"server.js\"]}}}`";

/// Maximum length of a tool's name that model providers accept.
const TOOL_NAME: usize = 64;

/// Maximum length of a tool's name in the protocol.
const NAME: usize = 128;

/// Maximum timeout of a call.
const DAY_MS: i64 = 86_400_000;

pub(super) fn read(reading: &mut Reading<'_>, map: &Value) -> Vec<Rc<McpAdapter>> {
    no_commands(reading, map);
    let mut adapters: Vec<Rc<McpAdapter>> = Vec::new();
    for (entry, span) in reading.maps(map, "mcp") {
        known_keys(reading, &entry, KEYS, "an adapter of `:mcp`");
        let Some(adapter) = adapter(reading, map, &entry, span) else {
            continue;
        };
        if adapters.iter().any(|known| known.id == adapter.id) {
            let at = reading.value_at(&entry, "id").or(span);
            let message = format!("there are two adapters `:{}`", adapter.id);
            reading.error("E0467", message, at);
            continue;
        }
        adapters.push(Rc::new(adapter));
    }
    same_names(reading, &adapters);
    adapters
}

/// Rejects slots that set the command of a server: a flow from elsewhere must not start programs.
fn no_commands(reading: &mut Reading<'_>, map: &Value) {
    let slots = map.get("requires").and_then(Value::as_vector);
    let slots: Vec<Value> = slots.map_or_else(Vec::new, |slots| slots.iter().cloned().collect());
    for slot in slots {
        for key in ["command", "cwd", "env"] {
            if slot.get(key).is_some() {
                let at = reading.key_at(&slot, key);
                reading.push(
                    Diagnostic::error(
                        "E0466",
                        format!("a slot of `:requires` has no key `:{key}`"),
                    )
                    .at(at)
                    .hint(ELSEWHERE_HINT),
                );
            }
        }
    }
}

fn adapter(
    reading: &mut Reading<'_>,
    map: &Value,
    entry: &Value,
    span: Span,
) -> Option<McpAdapter> {
    let id = id(reading, entry, span)?;
    let connection = connection(reading, map, entry, (&id, span));
    let transport = transport(reading, entry);
    let allow_tools = allow_tools(reading, entry);
    let tools = tools(reading, entry, allow_tools.as_deref());
    let space = id.split_once('/').map_or("", |(space, _)| space);
    let prefix = prefix(reading, entry).unwrap_or_else(|| space.replace('.', "_").into());
    Some(McpAdapter {
        path: path(reading, entry, transport),
        timeout: timeout(reading, entry),
        connection: connection?,
        transport,
        allow_tools,
        tool_prefix: prefix,
        tools,
        questions: questions(reading, entry),
        has_resources: has_resources(reading, entry),
        span,
        id,
    })
}

fn wrong(message: impl Into<String>, at: Span) -> Diagnostic {
    Diagnostic::error("E0465", message).at(at)
}

/// Returns the text of a keyword or string.
fn named(value: &Value) -> Option<Rc<str>> {
    match value {
        Value::Keyword(_) | Value::Text(_) => {
            name_of(value).map(|name| Rc::from(name.trim_start_matches(':')))
        }
        _ => None,
    }
}

fn known_keys(reading: &mut Reading<'_>, entry: &Value, known: &[&str], what: &str) {
    for (key, _) in entry.as_map().into_iter().flat_map(|map| map.iter()) {
        let name = name_of(key).unwrap_or_default();
        if key.as_keyword().is_some() && known.contains(&&*name) {
            continue;
        }
        let shown = crate::text::brief(key);
        let at = entry_spans(reading.sources, entry, &shown).key;
        let finding = Diagnostic::error("E0466", format!("{what} has no key `{shown}`")).at(at);
        if ELSEWHERE.contains(&&*name) {
            reading.push(finding.hint(ELSEWHERE_HINT));
            continue;
        }
        let suggested = finding.suggest(&name, known.iter().copied());
        reading.push(match suggested.hints.is_empty() {
            true => suggested.hint(format!("its keys are {}", keywords(known))),
            false => suggested,
        });
    }
}

fn id(reading: &mut Reading<'_>, entry: &Value, span: Span) -> Option<Rc<str>> {
    let Some(given) = entry.get("id").filter(|id| !id.is_nil()) else {
        reading.push(
            wrong("an entry of `:mcp` needs an `:id`", span)
                .hint("a keyword with a namespace, such as `:id :linear/issues`"),
        );
        return None;
    };
    let name = named(given).filter(|name| is_packaged_id(name));
    if name.is_none() {
        let shown = crate::text::brief(given);
        let at = reading.value_at(entry, "id");
        reading.push(
            wrong(format!("`{shown}` cannot be the `:id` of an adapter"), at).hint(
                "it is a keyword with a namespace, both of letters, digits, `-` and `_`: `:linear/issues`",
            ),
        );
    }
    name
}

fn connection(
    reading: &mut Reading<'_>,
    map: &Value,
    entry: &Value,
    (id, span): (&str, Span),
) -> Option<Rc<str>> {
    let Some(given) = entry.get("connection").filter(|it| !it.is_nil()) else {
        reading.push(
            wrong(format!("the adapter `:{id}` needs a `:connection`"), span).hint(
                "a slot of `:requires` with `:backend :mcp`, or a connection of flowstone.edn",
            ),
        );
        return None;
    };
    let at = reading.value_at(entry, "connection");
    let Some(name) = named(given) else {
        let message = format!("`:connection` is a keyword, not {}", given.kind());
        reading.push(wrong(message, at));
        return None;
    };
    let slots = map.get("requires").and_then(Value::as_vector);
    let is_it = |slot: &&Value| {
        slot.get("slot")
            .and_then(name_of)
            .is_some_and(|it| it == name)
    };
    let slot = slots.and_then(|slots| slots.iter().find(is_it));
    let backend = slot.and_then(|slot| slot.get("backend")).and_then(name_of);
    if let Some(backend) = backend.filter(|backend| **backend != *"mcp") {
        reading.push(
            wrong(
                format!("the slot `:{name}` is for `:{backend}`, not for a server of MCP"),
                at,
            )
            .hint("give the slot `:backend :mcp`, or name another one"),
        );
    }
    Some(name)
}

fn transport(reading: &mut Reading<'_>, entry: &Value) -> McpTransport {
    let given = entry.get("transport").filter(|it| !it.is_nil());
    let Some(given) = given else {
        return McpTransport::StreamableHttp;
    };
    let name = named(given).unwrap_or_default();
    McpTransport::from_name(&name).unwrap_or_else(|| {
        let at = reading.value_at(entry, "transport");
        let message = format!("`:transport` is one of {}", keywords(McpTransport::NAMES));
        reading.push(wrong(message, at).suggest(&name, McpTransport::NAMES.iter().copied()));
        McpTransport::StreamableHttp
    })
}

fn path(reading: &mut Reading<'_>, entry: &Value, transport: McpTransport) -> Option<Rc<str>> {
    let path = text(reading, entry, "path")?;
    let at = reading.value_at(entry, "path");
    if transport == McpTransport::Stdio {
        reading.push(wrong("`:path` does not apply to `:transport :stdio`", at));
    }
    if !path.starts_with('/') || path.starts_with("//") {
        reading.push(
            wrong("`:path` must begin with one `/`", at)
                .hint("it is appended to the connection's `:base-url`, as in `:path \"/mcp\"`"),
        );
    }
    Some(path)
}

fn text(reading: &mut Reading<'_>, entry: &Value, key: &str) -> Option<Rc<str>> {
    match entry.get(key).filter(|value| !value.is_nil())? {
        Value::Text(text) => Some(Rc::from(&***text)),
        other => {
            let message = format!("`:{key}` must be a string, not {}", other.kind());
            let at = reading.value_at(entry, key);
            reading.push(wrong(message, at));
            None
        }
    }
}

fn prefix(reading: &mut Reading<'_>, entry: &Value) -> Option<Rc<str>> {
    let prefix = text(reading, entry, "tool-prefix")?;
    let fits = prefix.len() <= TOOL_NAME / 2
        && prefix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if !fits {
        let at = reading.value_at(entry, "tool-prefix");
        reading.push(
            wrong("this cannot be the prefix of tools", at)
                .hint("up to 32 letters, digits, `_` and `-`; `\"\"` for none"),
        );
    }
    Some(prefix)
}

fn timeout(reading: &mut Reading<'_>, entry: &Value) -> Option<Duration> {
    let given = entry.get("timeout-ms").filter(|it| !it.is_nil())?;
    let millis = given.as_int().filter(|it| (1..=DAY_MS).contains(it));
    if millis.is_none() {
        let at = reading.value_at(entry, "timeout-ms");
        reading.push(
            wrong(
                "`:timeout-ms` must be a number of milliseconds, at most a day",
                at,
            )
            .hint("as in `:timeout-ms 30000`"),
        );
    }
    millis
        .and_then(|it| u64::try_from(it).ok())
        .map(Duration::from_millis)
}

fn questions(reading: &mut Reading<'_>, entry: &Value) -> Value {
    let given = entry.get("questions").cloned().unwrap_or(Value::Nil);
    let is_known = match &given {
        Value::Nil | Value::Map(_) => true,
        other => named(other).is_some_and(|name| matches!(&*name, "ask" | "decline")),
    };
    if !is_known {
        let at = reading.value_at(entry, "questions");
        reading.push(
            wrong("`:questions` is `:ask`, `:decline` or a map", at)
                .hint("as in `:questions {:timeout \"1h\" :roles [:ops]}`"),
        );
    }
    given
}

fn has_resources(reading: &mut Reading<'_>, entry: &Value) -> bool {
    match entry.get("resources").filter(|it| !it.is_nil()) {
        None => false,
        Some(Value::Bool(given)) => *given,
        Some(other) => {
            let message = format!("`:resources` is true or false, not {}", other.kind());
            let at = reading.value_at(entry, "resources");
            reading.push(wrong(message, at));
            false
        }
    }
}

fn is_tool_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME
        && !name
            .chars()
            .any(|char| char.is_whitespace() || char.is_control())
}

fn allow_tools(reading: &mut Reading<'_>, entry: &Value) -> Option<Vec<Rc<str>>> {
    let given = entry.get("allow-tools").filter(|it| !it.is_nil())?;
    let at = reading.value_at(entry, "allow-tools");
    let items = given.as_vector().filter(|items| !items.is_empty());
    let Some(items) = items else {
        reading.push(
            wrong("`:allow-tools` must be a vector of tool names", at)
                .hint("as in `:allow-tools [\"list_issues\" \"get_issue\"]`; only the named tools can be used"),
        );
        return Some(Vec::new());
    };
    let mut names: Vec<Rc<str>> = Vec::new();
    for (idx, item) in items.iter().enumerate() {
        let at = item_span(given, idx).or(at);
        match named(item).filter(|name| is_tool_name(name)) {
            None => {
                let message = format!("`{}` is not the name of a tool", crate::text::brief(item));
                reading.push(wrong(message, at));
            }
            Some(name) if names.contains(&name) => {
                let message = format!("`:allow-tools` contains `{name}` twice");
                reading.error("E0467", message, at);
            }
            Some(name) => names.push(name),
        }
    }
    Some(names)
}

fn tools(
    reading: &mut Reading<'_>,
    entry: &Value,
    allowed: Option<&[Rc<str>]>,
) -> Vec<McpToolDefinition> {
    let mut tools: Vec<McpToolDefinition> = Vec::new();
    for (tool, span) in reading.maps(entry, "tools") {
        known_keys(reading, &tool, TOOL_KEYS, "a tool of `:mcp`");
        let name = tool.get("name").and_then(named);
        let Some(name) = name.filter(|name| is_tool_name(name)) else {
            reading.push(
                wrong(
                    "an entry of `:tools` needs the `:name` that the server gives the tool",
                    span,
                )
                .hint("as in `{:name \"list_issues\" :description \"...\"}`"),
            );
            continue;
        };
        let at = reading.value_at(&tool, "name").or(span);
        if tools.iter().any(|known| known.name == name) {
            reading.error("E0467", format!("`:tools` describes `{name}` twice"), at);
            continue;
        }
        if allowed.is_some_and(|allowed| !allowed.contains(&name)) {
            let message =
                format!("`:tools` describes `{name}`, which `:allow-tools` does not name");
            let finding = Diagnostic::warning("E0465", message).at(at);
            let near = nearest(&name, allowed.into_iter().flatten().map(|it| &**it));
            reading.push(match near {
                Some(near) => finding.hint(format!("did you mean `{near}`?")),
                None => finding,
            });
        }
        tools.push(McpToolDefinition {
            description: text(reading, &tool, "description"),
            input_schema: input_schema(reading, &tool),
            read_only: read_only(reading, &tool),
            name,
        });
    }
    tools
}

fn read_only(reading: &mut Reading<'_>, tool: &Value) -> Option<bool> {
    match tool.get("read-only?").filter(|it| !it.is_nil())? {
        Value::Bool(is_it) => Some(*is_it),
        other => {
            let message = format!("`:read-only?` is true or false, not {}", other.kind());
            let at = reading.value_at(tool, "read-only?");
            reading.push(wrong(message, at));
            None
        }
    }
}

/// Reads JSON Schema, or a Malli schema, which is converted to JSON Schema.
fn input_schema(reading: &mut Reading<'_>, tool: &Value) -> Option<Json> {
    let given = tool.get("input-schema").filter(|it| !it.is_nil())?;
    let form = quoted(given).unwrap_or_else(|| given.clone());
    let made = match &form {
        Value::Map(_) => json::to_json(&form).map_err(|error| error.to_string()),
        _ => schema::parse(&form)
            .map(|schema| schema::to_json_schema(&schema))
            .map_err(|error| error.to_string()),
    };
    let made = made.and_then(|json| match json.get("type").and_then(Json::as_str) {
        Some("object") => Ok(json),
        _ => Err("the arguments of a tool must be an object".to_owned()),
    });
    match made {
        Ok(json) => Some(json),
        Err(why) => {
            let at = reading.value_at(tool, "input-schema");
            reading.push(
                wrong(format!("`:input-schema` is not a schema of arguments: {why}"), at).hint(
                    "JSON Schema as a map, `{:type \"object\" :properties {...}}`, or a Malli form, `[:map [:team_id :string]]`",
                ),
            );
            None
        }
    }
}

/// Finds tools that would have the same name for models.
fn same_names(reading: &mut Reading<'_>, adapters: &[Rc<McpAdapter>]) {
    let mut seen: HashMap<String, (Rc<str>, Rc<str>)> = HashMap::new();
    for adapter in adapters {
        let allowed = adapter.allow_tools.iter().flatten();
        let described = adapter.tools.iter().map(|tool| &tool.name);
        let mut own: Vec<&Rc<str>> = allowed.chain(described).collect();
        own.sort();
        own.dedup();
        for tool in own {
            let name = adapter.model_name(tool);
            let this = (adapter.id.clone(), tool.clone());
            let Some((id, other)) = seen.get(&name) else {
                seen.insert(name, this);
                continue;
            };
            let message = format!(
                "models would call `{other}` of `:{id}` and `{tool}` of `:{}` the same: `{name}`",
                adapter.id
            );
            reading.push(
                Diagnostic::error("E0467", message)
                    .at(adapter.span)
                    .hint("give one of the adapters another `:tool-prefix`"),
            );
        }
    }
}
