//! Compiles a spec to the text of an ordinary flow definition, as a person would write it with `flow.graph`.
//!
//! The text depends on the spec, the project's tools and its model connections only, so equal inputs make one version of the
//! flow.

pub(crate) mod text;

use flowstone_engine::codec::digest_bytes;
use serde_json::{Value as Json, json};

use super::builtin::Builtin;
use super::known::{FunctionBody, FunctionTool, Known, Missing, Origin, Reach, Server, Tool};
use super::models::{Chosen, Models};
use super::shape::{Issue, Position};
use super::spec::{Audience, GraphSpec, LlmNode, Node, ToolRef};
use text::{Lines, edn, keyword, object, quoted};

/// The project and the caller that a spec is compiled for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The name of the agent, or of the file.
    pub name: &'a str,
    /// Who starts the run: end users see only tools that are exposed to them.
    pub caller: Audience,
    pub known: &'a Known,
    pub models: &'a Models,
    /// The spec, if the definition is to contain it.
    pub keeps_spec: Option<&'a Json>,
}

/// Returns the slug of the flow of an agent.
pub fn slug(name: &str) -> String {
    let words = |byte: char| byte.is_ascii_alphanumeric() || byte == '-' || byte == '_';
    let name: String = name
        .chars()
        .map(|it| if words(it) { it } else { '-' })
        .collect();
    match name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        true => name,
        false => format!("agent-{name}"),
    }
}

/// Returns the tools and models that a spec needs and the project lacks, each once.
pub fn lacks(spec: &GraphSpec, target: &Target<'_>) -> Vec<Issue> {
    let mut issues = Vec::new();
    let nodes_at = Position::Member(&Position::Root, "nodes");
    for id in spec.chain() {
        let node_at = Position::Member(&nodes_at, id);
        match spec.nodes.get(id) {
            Some(Node::Llm(node)) => {
                if target.models.choose(&node.model).is_none() {
                    let message = format!(
                        "no connection of the project answers for the model `{}`",
                        node.model
                    );
                    issues.push(Position::Member(&node_at, "model").issue(message));
                }
                let tools_at = Position::Member(&node_at, "tools");
                for (idx, tool) in node.tools.iter().enumerate() {
                    let why = lacking(spec, target, tool, false);
                    issues.extend(why.map(|why| Position::Item(&tools_at, idx).issue(why)));
                }
            }
            Some(Node::Tool(node)) => {
                let why = lacking(spec, target, &node.tool_ref, true);
                let at = Position::Member(&node_at, "tool_ref");
                issues.extend(why.map(|why| at.issue(why)));
            }
            Some(Node::End(_)) | None => {}
        }
    }
    issues.extend(unused_and_missing(spec, target));
    issues
}

/// Returns the tools of the top-level block that do not exist and that no visited node names.
fn unused_and_missing(spec: &GraphSpec, target: &Target<'_>) -> Vec<Issue> {
    let used = spec.used_tools();
    let mut found = Vec::new();
    for (at, tool) in spec.listed_tools() {
        let is_used = used.iter().any(|it| {
            (it.source, &it.name, &it.server_id) == (tool.source, &tool.name, &tool.server_id)
        });
        if !is_used && target.known.tool(spec, &tool).err() == Some(Missing::Unknown) {
            let why = lacking(spec, target, &tool, false);
            found.extend(why.map(|why| Issue::at(&at, why)));
        }
    }
    found
}

/// Returns why a run cannot use a tool. An unmarked function counts only if a node is a call of it.
fn lacking(spec: &GraphSpec, target: &Target<'_>, tool: &ToolRef, is_node: bool) -> Option<String> {
    let name = &tool.name;
    match target.known.tool(spec, tool) {
        Ok(found) if is_node && !found.is_seen_by(target.caller) => {
            Some(format!("the tool `{name}` is not exposed to end users"))
        }
        Ok(_) => None,
        Err(Missing::Unmarked) if !is_node => None,
        Err(Missing::Unmarked) => Some(format!(
            "the function `{name}` is not marked as a tool: `agent_tool` is false"
        )),
        Err(Missing::Unknown) => Some(match (&tool.server_id, tool.source) {
            (Some(server), super::spec::Source::Mcp) => {
                format!("the tool `{name}` does not exist: there is no MCP server `{server}`")
            }
            (_, source) => format!(
                "the tool `{name}` does not exist: there is no {} of that name",
                noun(source)
            ),
        }),
    }
}

fn noun(source: super::spec::Source) -> &'static str {
    match source {
        super::spec::Source::Builtin => "built-in tool",
        super::spec::Source::Function => "function or flow",
        super::spec::Source::Mcp => "tool of an MCP server",
    }
}

/// Compiles a spec to the text of a flow.
///
/// # Errors
/// When the project lacks something: see [`lacks`].
pub fn compile(spec: &GraphSpec, target: &Target<'_>) -> Result<String, Vec<Issue>> {
    let lacks = lacks(spec, target);
    if !lacks.is_empty() {
        return Err(lacks);
    }
    let flow = Flow {
        spec,
        target,
        tools: tools(spec, target),
    };
    Ok(flow.text())
}

/// A tool that nodes use, with its key in the flow.
struct Used<'a> {
    key: String,
    reference: &'a ToolRef,
    tool: Tool<'a>,
}

fn tools<'a>(spec: &'a GraphSpec, target: &Target<'a>) -> Vec<Used<'a>> {
    let mut used: Vec<Used<'_>> = Vec::new();
    for reference in spec.used_tools() {
        let Ok(tool) = target.known.tool(spec, reference) else {
            continue;
        };
        if !tool.is_seen_by(target.caller) {
            continue;
        }
        let same = used.iter().filter(|it| it.tool.name == tool.name).count();
        let key = match same {
            0 => tool.name.to_owned(),
            same => format!("{}.{}", tool.name, same + 1),
        };
        used.push(Used {
            key: format!("tool.{key}"),
            reference,
            tool,
        });
    }
    used
}

struct Flow<'a> {
    spec: &'a GraphSpec,
    target: &'a Target<'a>,
    tools: Vec<Used<'a>>,
}

impl Flow<'_> {
    fn text(&self) -> String {
        let mut out = Lines::default();
        let target = self.target;
        out.line(
            0,
            &format!(";; The graph agent `{}` as a flow.", target.name),
        );
        out.line(0, &format!("{{:slug {}", keyword(&slug(target.name))));
        if let Some(description) = &self.spec.description {
            out.line(1, &format!(":description {}", quoted(description)));
        }
        out.line(1, &format!(":graph/agent {}", quoted(target.name)));
        let nodes: Vec<String> = self
            .spec
            .chain()
            .iter()
            .map(|id| self.node_row(id))
            .collect();
        out.line(1, &format!(":graph/nodes [{}]", nodes.join(" ")));
        out.line(
            1,
            &format!(":graph/max-steps {}", self.spec.limits.max_steps),
        );
        if let Some(spec) = target.keeps_spec {
            let text = spec.to_string();
            out.line(
                1,
                &format!(":graph/hash {}", quoted(&digest_bytes(text.as_bytes()))),
            );
            out.line(1, &format!(":graph/spec {}", quoted(&text)));
        }
        self.functions(&mut out);
        self.servers(&mut out);
        out.line(1, ":flow");
        self.body(&mut out);
        out.text()
    }

    fn node_row(&self, id: &str) -> String {
        let (kind, key) = match self.spec.nodes.get(id) {
            Some(Node::Llm(node)) => ("llm", Some(&node.output_key)),
            Some(Node::Tool(node)) => ("tool", Some(&node.output_key)),
            Some(Node::End(_)) | None => ("end", None),
        };
        let key = key.map_or_else(String::new, |key| format!(" {}", quoted(key)));
        format!("[{} {}{key}]", quoted(id), keyword(kind))
    }

    fn functions(&self, out: &mut Lines) {
        let mut rows = Vec::new();
        for used in &self.tools {
            if let Origin::Function(function) = &used.tool.origin
                && let FunctionBody::Code(code) = &function.body
            {
                let id = keyword(&function.name);
                let row = format!("{{:id {id} :language :clojure :code {}}}", quoted(code));
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
        }
        out.list(":functions", &rows);
    }

    fn servers(&self, out: &mut Lines) {
        let (mut slots, mut adapters) = (Vec::new(), Vec::new());
        for (idx, (server, tools)) in self.used_servers().into_iter().enumerate() {
            let tools: Vec<String> = tools.iter().map(|name| quoted(name)).collect();
            let (connection, transport, slot) = connection_of(server);
            slots.extend(slot);
            adapters.push(format!(
                "{{:id {} :connection {connection}{transport} :allow-tools [{}]}}",
                adapter(idx),
                tools.join(" ")
            ));
        }
        out.list(":requires", &slots);
        out.list(":mcp", &adapters);
    }

    /// Returns the servers that nodes use, with the tools of each.
    fn used_servers(&self) -> Vec<(&Server, Vec<&str>)> {
        let mut servers: Vec<(&Server, Vec<&str>)> = Vec::new();
        for used in &self.tools {
            let Origin::Mcp(server) = used.tool.origin else {
                continue;
            };
            let found = servers.iter_mut().find(|(known, _)| known.id == server.id);
            match found {
                Some((_, tools)) if tools.contains(&used.tool.name) => {}
                Some((_, tools)) => tools.push(used.tool.name),
                None => servers.push((server, vec![used.tool.name])),
            }
        }
        servers
    }

    fn body(&self, out: &mut Lines) {
        let limits = &self.spec.limits;
        let mut bind = Binder::new(out);
        let limit = format!("(flow.graph/time-limit {})", limits.timeout_seconds);
        bind.binding("within", &limit);
        for (idx, (_, tools)) in self.used_servers().into_iter().enumerate() {
            let tools: Vec<String> = tools.iter().map(|name| quoted(name)).collect();
            bind.binding(
                &format!("server-{}", idx + 1),
                &format!(
                    "(flow.graph/pinned {} within (fn [] (flow/step :mcp :tools-{} {{:op :list-tools :adapter {} :total-timeout within}})) [{}])",
                    keyword(&self.spec.entry),
                    idx + 1,
                    adapter(idx),
                    tools.join(" ")
                ),
            );
        }
        let rows: Vec<String> = self
            .tools
            .iter()
            .flat_map(|used| self.tool_lines(used))
            .collect();
        let mut rows = rows.iter();
        bind.binding_of("tools", &["{", rows.next().map_or("", String::as_str)]);
        rows.for_each(|row| bind.more(&[" ", row]));
        bind.out.close("}");
        bind.binding(
            "run",
            &format!(
                "(flow.graph/begin (flow/input) {{:steps {} :calls {} :parallel {} :human-seconds {}}} within tools)",
                limits.max_steps,
                limits.max_tool_calls,
                limits.max_parallel_tools,
                limits.human_timeout_seconds
            ),
        );
        let models = self.asked_models();
        let mut shared: Vec<&Asked<'_>> = models.iter().filter(|it| it.shared.is_some()).collect();
        shared.sort_by_key(|it| it.shared);
        for model in shared {
            let options = &model.options;
            bind.binding(
                &model.name(),
                &format!("(fn [node turn] (flow/step :llm node (merge {options} turn)))"),
            );
        }
        bind.binding("state", "(flow.graph/state run)");
        let mut end = String::new();
        for id in self.spec.chain() {
            match self.spec.nodes.get(id) {
                Some(Node::Llm(node)) => {
                    let asked = models.iter().find(|it| it.is_of(node));
                    self.llm(&mut bind, id, node, asked);
                }
                Some(Node::Tool(node)) => {
                    bind.binding("state", "(flow.graph/tool run state");
                    bind.more(&["  {:node :", id]);
                    bind.more(&["   :tool ", &self.key(&node.tool_ref)]);
                    bind.more(&["   :args ", &object(&node.args_template)]);
                    bind.more(&["   :as ", &quoted(&node.output_key), "})"]);
                }
                Some(Node::End(node)) => {
                    let output = quoted(&node.output_template);
                    end = format!(
                        "(flow.graph/end run state {{:node {} :output {output}}})",
                        keyword(id)
                    );
                }
                None => {}
            }
        }
        bind.end(&end);
    }

    fn key(&self, reference: &ToolRef) -> String {
        let used = self.tools.iter().find(|it| it.reference == reference);
        used.map_or_else(|| ":tool".to_owned(), |it| keyword(&it.key))
    }

    /// Returns the models that nodes ask, each once. Those that several nodes ask are numbered, so that their calls are compiled
    /// once.
    fn asked_models(&self) -> Vec<Asked<'_>> {
        let mut asked: Vec<Asked<'_>> = Vec::new();
        let mut shared = 0;
        for id in self.spec.chain() {
            let Some(Node::Llm(node)) = self.spec.nodes.get(id) else {
                continue;
            };
            let mut known = asked.iter().position(|it| it.is_of(node));
            if known.is_none() {
                let options = of_model(node, self.target.models.choose(&node.model).as_ref());
                known = asked.iter().position(|it| it.options == options);
                match known {
                    Some(idx) => asked[idx].nodes.push(node),
                    None => asked.push(Asked {
                        nodes: vec![node],
                        options,
                        shared: None,
                    }),
                }
            }
            if let Some(model) = known.and_then(|idx| asked.get_mut(idx))
                && model.shared.is_none()
            {
                shared += 1;
                model.shared = Some(shared);
            }
        }
        asked
    }

    fn llm(&self, bind: &mut Binder<'_>, id: &str, node: &LlmNode, asked: Option<&Asked<'_>>) {
        let offered = node
            .tools
            .iter()
            .filter(|it| self.tools.iter().any(|used| used.reference == *it));
        let offered: Vec<String> = offered.map(|it| self.key(it)).collect();
        bind.binding("state", "(flow.graph/llm run state");
        bind.more(&["  {:node :", id]);
        bind.more(&["   :system ", &quoted(&node.system_prompt)]);
        bind.more(&["   :prompt ", &quoted(&node.input_template)]);
        bind.more(&["   :tools [", &offered.join(" "), "]"]);
        bind.more(&["   :as ", &quoted(&node.output_key)]);
        let options = asked.map_or("{}", |it| &it.options);
        match asked.filter(|it| it.shared.is_some()) {
            Some(shared) => bind.more(&["   :model ", &shared.name(), "})"]),
            None => bind.more(&[
                "   :ask (fn [turn] (flow/step :llm :",
                id,
                " (merge ",
                options,
                " turn)))})",
            ]),
        }
    }

    /// Returns the lines of a tool in the map of tools.
    fn tool_lines(&self, used: &Used<'_>) -> Vec<String> {
        let tool = &used.tool;
        let asks = match (tool.mode, self.listed(tool)) {
            (super::spec::Mode::ReadOnly, None) => String::new(),
            (super::spec::Mode::ReadOnly, Some(listed)) => {
                format!(" :asks? (not (:read-only? {listed}))")
            }
            (super::spec::Mode::ReadWrite, _) => " :asks? true".to_owned(),
        };
        let head = format!(
            "{{:name {} :source {}{asks}",
            quoted(tool.name),
            quoted(tool.source().name())
        );
        let described = |description: &str, schema: &Json| {
            vec![
                format!(" :description {}", quoted(description)),
                format!(" :schema {}", edn(schema)),
            ]
        };
        let (mut lines, call) = match &tool.origin {
            Origin::Builtin(builtin) => (
                [
                    described(builtin.doc, &builtin.schema()),
                    one_of(builtin).into_iter().collect(),
                ]
                .concat(),
                match builtin.function {
                    Some(function) => format!(" :call flow.graph/{function}}}"),
                    None => " :interrupt? true}".to_owned(),
                },
            ),
            Origin::Function(function) => (
                described(&function.description, &accepted(function)),
                match &function.body {
                    FunctionBody::Code(_) => format!(
                        " :call (fn [id args within] (flow/step :function id {{:ref {} :input args :total-timeout within}}))}}",
                        keyword(&function.name)
                    ),
                    FunctionBody::Flow { slug } => format!(
                        " :call (fn [id args within] (flow/step :call-flow id {{:flow-slug {} :input args :total-timeout within}}))}}",
                        keyword(slug)
                    ),
                },
            ),
            Origin::Mcp(server) => {
                let (name, listed) = (quoted(tool.name), self.listed(tool).unwrap_or_default());
                let reads = match tool.mode {
                    super::spec::Mode::ReadOnly => format!(" :read-only? (:read-only? {listed})"),
                    super::spec::Mode::ReadWrite => String::new(),
                };
                (
                    vec![
                        format!(" :description (:description {listed})"),
                        format!(" :schema (:schema {listed})"),
                    ],
                    format!(
                        " :call (fn [id args within] (:content (flow/step :mcp id {{:adapter {} :tool {name} :arguments args{reads} :total-timeout within}})))}}",
                        adapter(self.place(server))
                    ),
                )
            }
        };
        lines.insert(0, head);
        lines.insert(0, keyword(&used.key));
        lines.push(call);
        lines
    }

    /// Returns the index of a server among those that nodes use.
    fn place(&self, server: &Server) -> usize {
        let servers = self.used_servers();
        let mut servers = servers.iter();
        let found = servers.position(|(known, _)| known.id == server.id);
        found.unwrap_or(0)
    }

    /// Returns the form that reads a tool from the list which its server gave at the beginning of the run. Only the server knows
    /// whether a tool changes something.
    fn listed(&self, tool: &Tool<'_>) -> Option<String> {
        let Origin::Mcp(server) = tool.origin else {
            return None;
        };
        let idx = self.place(server) + 1;
        Some(format!("(server-{idx} {})", quoted(tool.name)))
    }
}

/// Returns the schema of the arguments that a function accepts. A flow gets also inputs that it does not declare.
fn accepted(function: &FunctionTool) -> Json {
    let mut schema = function.input_schema.clone();
    if let (FunctionBody::Flow { .. }, Json::Object(members)) = (&function.body, &mut schema) {
        members.shift_remove("additionalProperties");
    }
    schema
}

/// Returns the line with the arguments of a built-in tool that have two names, of which a call has one.
fn one_of(builtin: &Builtin) -> Option<String> {
    let groups = builtin.required().into_iter();
    let groups: Vec<String> = groups
        .filter(|names| names.len() > 1)
        .map(|names| edn(&json!(names)))
        .collect();
    (!groups.is_empty()).then(|| format!(" :one-of [{}]", groups.join(" ")))
}

/// Returns the connection of a server, the transport of its adapter, and the slot that describes it.
fn connection_of(server: &Server) -> (String, &'static str, Option<String>) {
    match &server.reach {
        Reach::Connection { name, is_program } => {
            let transport = if *is_program {
                " :transport :stdio"
            } else {
                ""
            };
            (keyword(name), transport, None)
        }
        Reach::Address { url, secret } => {
            let slot = format!(":mcp-{}", server.id);
            let auth = match secret {
                Some(name) => format!(" :auth {{:type :bearer :secret-ref {}}}", quoted(name)),
                None => String::new(),
            };
            let row = format!(
                "{{:slot {slot} :type :http-api :base-url {}{auth}}}",
                quoted(url)
            );
            (slot, "", Some(row))
        }
    }
}

/// How long a server may take to list its tools, in seconds: all attempts together.
pub(super) const PROBE_SECONDS: u64 = 20;

/// Returns the text of a flow that requests the list of a server's tools.
pub fn probe_flow(server: &Server) -> String {
    let (connection, transport, slot) = connection_of(server);
    let slot = slot.unwrap_or_default();
    let id = adapter(0);
    format!(
        "{{:slug :mcp-probe :requires [{slot}] :mcp [{{:id {id} :connection {connection}{transport}}}] :flow '(flow/step :mcp :tools {{:op :list-tools :adapter {id} :total-timeout \"{PROBE_SECONDS}s\"}})}}"
    )
}

/// Returns the id of the adapter of a server.
pub(super) fn adapter(idx: usize) -> String {
    format!(":graph/server-{}", idx + 1)
}

/// A model with the options with which nodes ask it.
struct Asked<'a> {
    /// A node for each way in which nodes describe it.
    nodes: Vec<&'a LlmNode>,
    options: String,
    /// Its number, if several nodes ask it.
    shared: Option<usize>,
}

impl Asked<'_> {
    /// Tells whether a node describes the model like one of those that are known to ask it.
    fn is_of(&self, node: &LlmNode) -> bool {
        let parts = |it: &LlmNode| (it.temperature.map(f64::to_bits), it.max_tokens);
        let mut nodes = self.nodes.iter();
        nodes.any(|it| it.model == node.model && parts(it) == parts(node))
    }

    /// Returns the name of the function that asks it for several nodes.
    fn name(&self) -> String {
        format!("model-{}", self.shared.unwrap_or_default())
    }
}

fn of_model(node: &LlmNode, chosen: Option<&Chosen>) -> String {
    let mut parts = Vec::new();
    if let Some(chosen) = chosen {
        parts.push(format!(":connection {}", keyword(&chosen.connection)));
        parts.extend(
            chosen
                .model
                .as_ref()
                .map(|model| format!(":model {}", quoted(model))),
        );
    }
    parts.extend(node.temperature.map(|it| format!(":temperature {it:?}")));
    parts.extend(node.max_tokens.map(|it| format!(":max-tokens {it}")));
    format!("{{{}}}", parts.join(" "))
}

/// Writes the bindings of the `let` around the body.
struct Binder<'a> {
    out: &'a mut Lines,
    is_first: bool,
    /// Where the form of the last binding begins.
    indent: usize,
}

impl<'a> Binder<'a> {
    fn new(out: &'a mut Lines) -> Binder<'a> {
        Binder {
            out,
            is_first: true,
            indent: 0,
        }
    }

    fn binding(&mut self, name: &str, form: &str) {
        self.binding_of(name, &[form]);
    }

    /// Begins a binding with the first line of its form, which consists of several texts.
    fn binding_of(&mut self, name: &str, texts: &[&str]) {
        let head = if self.is_first { "'(let [" } else { "       " };
        self.is_first = false;
        self.indent = 1 + head.len() + name.len() + 1;
        self.out.line_of(1, &[head, name, " "]);
        texts.iter().for_each(|text| self.out.close(text));
    }

    /// Adds a line to the form of the last binding.
    fn more(&mut self, texts: &[&str]) {
        self.out.line_of(self.indent, texts);
    }

    fn end(self, body: &str) {
        self.out.close("]");
        self.out.line(1, &format!("   {body})}}"));
    }
}
