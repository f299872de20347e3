//! Reads the `:tools` envelope of an `:agent` or `:llm` step, and reports what is wrong with it.
//!
//! Both users share the code: `check` reads the envelope as it is written, where forms may be anything, and shows each
//! problem at its place; a step reads the known values. Pure: knows nothing of the effects of tools.

pub mod flows;
pub mod kit;
pub mod mcp;
mod require;

use std::rc::Rc;

use flowstone_lang::suggest::respelling;
use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use crate::definition::{Flow, Origin, PackagedStep};
use crate::diagnostic::{Change, nearest};
use crate::json::items;
use crate::text::brief;
use crate::workspace;

/// The step types that can be used directly as tools.
pub const BUILT_IN: &[&str] = &["files", "search", "table"];

/// The names of the workspace tool: the documented one, and ours.
pub const WORKSPACE: &[&str] = &["breyta", "workspace"];

/// Tools that an agent with a memory has automatically.
const MEMORY: &[&str] = &[
    "memory_checkpoint",
    "memory_plan",
    "memory_recall",
    "memory_record",
];

/// Every key of the envelope, sorted.
pub const KEYS: &[&str] = &[
    "agents",
    "allowed",
    "breyta",
    "choice",
    "definitions",
    "flows",
    "kit",
    "max-iterations",
    "max-repeated-tool-calls",
    "max-tool-calls",
    "mcp",
    "mode",
    "require",
    "steps",
    "workspace",
];

const REQUIRE_KEYS: &[&str] = &["agents", "mcp", "steps", "tool-names"];
const WORKSPACE_KEYS: &[&str] = &["allow", "mutations", "require-approval"];
const LIMITS: &[(&str, i64)] = &[
    ("max-iterations", 100),
    ("max-repeated-tool-calls", 100),
    ("max-tool-calls", 1000),
];

/// The tools that a step may give to its model, by name.
#[derive(Debug, Clone, Default)]
pub struct Envelope {
    /// `:definitions`, or a vector of them: their calls are returned to the flow, not executed.
    pub definitions: Vec<Value>,
    /// Whether `:mode :execute` is set.
    pub is_execute: bool,
    /// `auto`, `required` or `none`, if it is set.
    pub choice: Option<Rc<str>>,
    /// The names from [`BUILT_IN`], in the order given.
    pub built_in: Vec<Rc<str>>,
    /// Ids of `:steps`.
    pub steps: Vec<Rc<str>>,
    /// Ids of `:agents`.
    pub agents: Vec<Rc<str>>,
    /// Ids of `:mcp`: of adapters, or of single tools.
    pub mcp: Vec<Rc<str>>,
    /// Names and paths of flows, graph specs and behaviour trees.
    pub flows: Vec<Rc<str>>,
    pub workspace: Option<WorkspaceTool>,
    /// Names of tools of the build kit.
    pub kit: Vec<Rc<str>>,
    pub require: Require,
    pub max_iterations: Option<i64>,
    pub max_tool_calls: Option<i64>,
    pub max_repeated_tool_calls: Option<i64>,
}

/// The workspace tool: `:workspace`, or `:breyta`.
#[derive(Debug, Clone)]
pub struct WorkspaceTool {
    /// The name of the tool for models.
    pub name: &'static str,
    /// The allowed operations, in the order given.
    pub allow: Vec<Rc<str>>,
    pub mutations: workspace::Mutations,
    /// The allowed operations that need a person's approval.
    pub require_approval: Vec<Rc<str>>,
}

/// The tools that must be called before the final answer.
#[derive(Debug, Clone, Default)]
pub struct Require {
    pub tool_names: Vec<Rc<str>>,
    pub steps: Vec<Rc<str>>,
    pub agents: Vec<Rc<str>>,
    pub mcp: Vec<Rc<str>>,
}

impl Envelope {
    /// Tells whether any tool is to be executed.
    pub fn executes(&self) -> bool {
        self.is_execute
            || self.workspace.is_some()
            || [
                &self.built_in,
                &self.steps,
                &self.agents,
                &self.mcp,
                &self.flows,
                &self.kit,
            ]
            .iter()
            .any(|names| !names.is_empty())
    }
}

/// An error in the envelope, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The path in the config of the step: keys with a colon, and indices of vectors.
    pub path: Vec<String>,
    /// Whether the place is the last key of the path, and not the value under it.
    pub is_key: bool,
    pub message: String,
    pub hint: Option<String>,
    /// The change to the name that was probably meant.
    pub change: Option<Change>,
}

impl Wrong {
    /// Returns the path as text: `:tools :steps 0`.
    pub fn place(&self) -> String {
        self.path.join(" ")
    }
}

/// Reads `:tools` and `:available-steps` of a step's config. With `is_literal`, forms in it are not evaluated yet, and
/// not reported.
pub fn read(flow: &Flow, config: &Value, is_literal: bool) -> (Envelope, Vec<Wrong>) {
    let mut reader = Reader {
        flow,
        is_literal,
        path: Vec::new(),
        envelope: Envelope::default(),
        wrong: Vec::new(),
        is_open: false,
    };
    if let Some(steps) = reader.given(config, "available-steps") {
        reader.under("available-steps", |reader| reader.built_in(&steps));
    }
    if let Some(tools) = reader.given(config, "tools") {
        reader.under("tools", |reader| reader.tools(&tools));
    }
    let has_hook = ["after-tool-call", "before-tool-call"];
    let has_hook = has_hook.iter().any(|key| has(config, key));
    let has_memory = has(config, "memory");
    if !has_hook {
        reader.required(has_memory);
    }
    (reader.envelope, reader.wrong)
}

fn has(map: &Value, key: &str) -> bool {
    map.get(key).is_some_and(|given| !given.is_nil())
}

struct Reader<'a> {
    flow: &'a Flow,
    is_literal: bool,
    path: Vec<String>,
    envelope: Envelope,
    wrong: Vec<Wrong>,
    /// Whether a part of the envelope is not known yet.
    is_open: bool,
}

impl Reader<'_> {
    fn say(&mut self, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.wrong.push(Wrong {
            path: self.path.clone(),
            is_key: false,
            message: message.into(),
            hint: hint.into(),
            change: None,
        });
    }

    /// Adds the change of a word to the name that it probably stands for to the last problem.
    fn respell<'n>(&mut self, word: &str, names: impl IntoIterator<Item = &'n str>) {
        if let Some(last) = self.wrong.last_mut() {
            let near = respelling(word, names.into_iter());
            last.change = near.map(|near| Change::respell(word, near));
        }
    }

    fn under(&mut self, step: impl ToString, read: impl FnOnce(&mut Self)) {
        let step = step.to_string();
        let is_position = step.bytes().all(|byte| byte.is_ascii_digit());
        self.path.push(match is_position {
            true => step,
            false => format!(":{step}"),
        });
        read(self);
        self.path.pop();
    }

    fn is_unknown_yet(&mut self, value: &Value) -> bool {
        let is_form = matches!(value, Value::List(_) | Value::Symbol(_) | Value::Name(_));
        let is_open = self.is_literal && is_form;
        self.is_open |= is_open;
        is_open
    }

    /// Returns the value under a key, if it is known.
    fn given(&mut self, map: &Value, key: &str) -> Option<Value> {
        let value = map.get(key).filter(|value| !value.is_nil())?.clone();
        (!self.is_unknown_yet(&value)).then_some(value)
    }

    fn tools(&mut self, tools: &Value) {
        match tools {
            Value::Map(_) => self.envelope(tools),
            _ => match items(tools) {
                Some(items) => self.vector(&items),
                None => self.say(
                    format!("`:tools` is a map or a vector, not {}", tools.kind()),
                    "such as `:tools {:allowed [\"files\"] :steps [:github/open-pr]}`".to_owned(),
                ),
            },
        }
    }

    fn envelope(&mut self, tools: &Value) {
        self.keys(tools, KEYS, "`:tools`");
        for (key, read) in [
            ("definitions", Reader::definitions as fn(&mut Self, &Value)),
            ("mode", Reader::mode),
            ("choice", Reader::choice),
            ("allowed", Reader::built_in),
            ("steps", |reader, given| {
                reader.packaged(given, Origin::Step)
            }),
            ("agents", |reader, given| {
                reader.packaged(given, Origin::Agent)
            }),
            ("mcp", Reader::mcp),
            ("flows", Reader::flows),
            ("kit", Reader::kit),
            ("require", Reader::require),
        ] {
            if let Some(given) = self.given(tools, key) {
                self.under(key, |reader| read(reader, &given));
            }
        }
        for name in WORKSPACE {
            if let Some(given) = self.given(tools, name) {
                self.under(name, |reader| reader.workspace(name, &given));
            }
        }
        for (key, most) in LIMITS {
            if let Some(given) = self.given(tools, key) {
                self.under(key, |reader| reader.limit((key, *most), &given));
            }
        }
    }

    fn keys(&mut self, map: &Value, known: &[&str], what: &str) {
        for (key, _) in map.as_map().into_iter().flat_map(|map| map.iter()) {
            let name = name_of(key).unwrap_or_default();
            if known.contains(&&*name) {
                continue;
            }
            let hint = match nearest(&name, known.iter().copied()) {
                Some(near) => format!("did you mean `:{near}`?"),
                None => format!("its keys are {}", keywords(known)),
            };
            self.under(name.as_ref(), |reader| {
                reader.say(format!("{what} has no key `{}`", brief(key)), hint);
                if let Some(last) = reader.wrong.last_mut() {
                    last.is_key = true;
                }
                reader.respell(&name, known.iter().copied());
            });
        }
    }

    /// Reads a vector of definitions, or of names and ids of tools to execute.
    fn vector(&mut self, tools: &[Value]) {
        for (idx, tool) in tools.iter().enumerate() {
            if self.is_unknown_yet(tool) {
                continue;
            }
            self.under(idx, |reader| match tool {
                Value::Map(_) => reader.definition(tool),
                Value::Keyword(_) | Value::Text(_) => reader.any_tool(tool),
                other => reader.say(
                    format!(
                        "a tool is a definition, a name or an id, not {}",
                        other.kind()
                    ),
                    None,
                ),
            });
        }
    }

    fn any_tool(&mut self, given: &Value) {
        let name = name_of(given).unwrap_or_default();
        let name = name.trim_start_matches(':');
        if !name.contains('/') {
            self.built_in_name(given);
            return;
        }
        match self.flow.packaged_step(name).map(|step| step.origin) {
            Some(Origin::Step) => push(&mut self.envelope.steps, name),
            Some(Origin::Agent) => push(&mut self.envelope.agents, name),
            None if mcp::find(self.flow, name).is_some() => {
                let known = self.mcp_id(&Rc::from(name));
                known.iter().for_each(|id| push(&mut self.envelope.mcp, id));
            }
            None => {
                let ids: Vec<String> = self
                    .flow
                    .packaged
                    .iter()
                    .map(|step| step.id.to_string())
                    .chain(mcp::ids(self.flow))
                    .collect();
                let hint = near(name, ids.iter().map(String::as_str)).unwrap_or_else(|| {
                    "qualified ids are those of the flow's `:steps`, `:agents` and `:mcp`"
                        .to_owned()
                });
                self.say(format!("there is no tool `:{name}`"), hint);
                self.respell(name, ids.iter().map(String::as_str));
            }
        }
    }

    fn definitions(&mut self, given: &Value) {
        let Some(items) = self.items(given, "definitions of tools") else {
            return;
        };
        for (idx, item) in items.iter().enumerate() {
            if !self.is_unknown_yet(item) {
                self.under(idx, |reader| reader.definition(item));
            }
        }
    }

    fn definition(&mut self, given: &Value) {
        if given.as_map().is_none() {
            let message = format!("the definition of a tool is a map, not {}", given.kind());
            self.say(
                message,
                "`{:name \"...\" :description \"...\" :parameters {...}}`".to_owned(),
            );
            return;
        }
        // Providers put the name in different places.
        let inner = given.get("function").unwrap_or(given);
        let name = inner.get("name").filter(|name| !name.is_nil()).cloned();
        let Some(name) = name else {
            self.say("the definition of a tool needs a `:name`", None);
            return;
        };
        if self.is_unknown_yet(&name) {
            return;
        }
        let name = name_of(&name).unwrap_or_default();
        let same = |known: &Value| {
            let inner = known.get("function").unwrap_or(known);
            inner.get("name").and_then(name_of).as_ref() == Some(&name)
        };
        if self.envelope.definitions.iter().any(same) {
            self.say(format!("there are two tools `{name}`"), None);
            return;
        }
        self.envelope.definitions.push(given.clone());
    }

    fn mode(&mut self, given: &Value) {
        let name = name_of(given).unwrap_or_default();
        match &*name {
            "execute" => self.envelope.is_execute = true,
            "return" | "definitions" => {}
            _ => self.say(
                format!("`:mode` of `:tools` cannot be `{}`", brief(given)),
                "`:execute` runs the calls; `:return`, with `:definitions`, gives them to the flow"
                    .to_owned(),
            ),
        }
    }

    fn choice(&mut self, given: &Value) {
        match name_of(given).filter(|name| ["auto", "none", "required"].contains(&&**name)) {
            Some(name) => self.envelope.choice = Some(name),
            None => self.say(
                format!(
                    "`:choice` of `:tools` is `:auto`, `:required` or `:none`, not `{}`",
                    brief(given)
                ),
                None,
            ),
        }
    }

    fn limit(&mut self, (key, most): (&str, i64), given: &Value) {
        let Some(limit) = given.as_int().filter(|limit| (1..=most).contains(limit)) else {
            let message = format!(
                "`:{key}` is a whole number from 1 to {most}, not {}",
                brief(given)
            );
            self.say(message, None);
            return;
        };
        match key {
            "max-iterations" => self.envelope.max_iterations = Some(limit),
            "max-tool-calls" => self.envelope.max_tool_calls = Some(limit),
            _ => self.envelope.max_repeated_tool_calls = Some(limit),
        }
    }

    fn items(&mut self, given: &Value, what: &str) -> Option<Vec<Value>> {
        let items = items(given);
        // A wrong value of a field is reported by the check of the fields.
        if items.is_none() && self.path.len() > 1 {
            self.say(
                format!("expected a vector of {what}, not {}", given.kind()),
                None,
            );
        }
        items
    }

    /// Reads names of built-in tools: strings or keywords.
    fn built_in(&mut self, given: &Value) {
        let Some(items) = self.items(given, "names of tools") else {
            return;
        };
        for (idx, item) in items.iter().enumerate() {
            if !self.is_unknown_yet(item) {
                self.under(idx, |reader| reader.built_in_name(item));
            }
        }
    }

    fn built_in_name(&mut self, given: &Value) {
        let name = match given {
            Value::Keyword(_) | Value::Text(_) => name_of(given).unwrap_or_default(),
            other => {
                self.say(
                    format!(
                        "the name of a tool is a string or a keyword, not {}",
                        other.kind()
                    ),
                    None,
                );
                return;
            }
        };
        let name = name.trim_start_matches(':');
        if BUILT_IN.contains(&name) {
            push(&mut self.envelope.built_in, name);
            return;
        }
        let hint = match name {
            _ if WORKSPACE.contains(&name) => {
                format!(
                    "set the allowed operations: `:tools {{:{name} {{:allow [:runs/list :runs/show]}}}}`"
                )
            }
            "capture" | "db" | "http" | "function" | "kv" | "notify" | "sleep" | "ssh" | "wait"
            | "llm" | "agent" => format!(
                "a `:{name}` step becomes a tool when it is packaged: `:steps [{{:id :my/{name} :type :{name} :input-schema [...]}}]` and `:tools {{:steps [:my/{name}]}}`"
            ),
            _ if name.contains('/') => format!(
                "ids are listed under `:tools {{:steps [:{name}]}}`, or `:agents` or `:mcp`; the built-in tools are `files`, `search` and `table`"
            ),
            _ => near(name, BUILT_IN.iter().copied()).unwrap_or_else(|| {
                "the built-in tools are `files`, `search` and `table`".to_owned()
            }),
        };
        self.say(format!("there is no built-in tool `{name}`"), hint);
        self.respell(name, BUILT_IN.iter().copied());
    }

    fn packaged(&mut self, given: &Value, origin: Origin) {
        for name in self.known_ids(given, origin) {
            let list = match origin {
                Origin::Step => &mut self.envelope.steps,
                Origin::Agent => &mut self.envelope.agents,
            };
            push(list, &name);
        }
    }

    fn known_ids(&mut self, given: &Value, origin: Origin) -> Vec<Rc<str>> {
        let mut known = Vec::new();
        let Some(items) = self.items(given, &format!("ids of `:{}`", origin.key())) else {
            return known;
        };
        for (idx, item) in items.iter().enumerate() {
            if self.is_unknown_yet(item) {
                continue;
            }
            let name = id_of(item);
            self.under(idx, |reader| match reader.flow.packaged_step(&name) {
                Some(step) if step.origin == origin => known.push(name.clone()),
                found => {
                    let (message, hint) = missing(reader.flow, &name, origin, found);
                    reader.say(message, hint);
                }
            });
        }
        known
    }

    fn mcp(&mut self, given: &Value) {
        for name in self.mcp_ids(given) {
            push(&mut self.envelope.mcp, &name);
        }
    }

    fn mcp_ids(&mut self, given: &Value) -> Vec<Rc<str>> {
        let mut known = Vec::new();
        let Some(items) = self.items(given, "ids of `:mcp`") else {
            return known;
        };
        for (idx, item) in items.iter().enumerate() {
            if self.is_unknown_yet(item) {
                continue;
            }
            let name = id_of(item);
            self.under(idx, |reader| known.extend(reader.mcp_id(&name)));
        }
        known
    }

    fn mcp_id(&mut self, name: &Rc<str>) -> Option<Rc<str>> {
        match mcp::find(self.flow, name) {
            Some((adapter, None)) if adapter.allow_tools.is_none() && !adapter.has_resources => {
                let hint = format!(
                    "give the adapter `:allow-tools [\"...\"]`, or name one tool: `:{}/tool_name`",
                    adapter.namespace()
                );
                self.say(
                    format!("`:{name}` does not name the tools that may be used"),
                    hint,
                );
                None
            }
            Some(_) => Some(name.clone()),
            None => {
                let ids: Vec<String> = mcp::ids(self.flow).collect();
                let hint = near(name, ids.iter().map(String::as_str));
                let hint = hint.unwrap_or_else(|| mcp::hint(&ids));
                self.say(format!("there is no MCP adapter or tool `:{name}`"), hint);
                self.respell(name, ids.iter().map(String::as_str));
                None
            }
        }
    }

    fn workspace(&mut self, name: &'static str, given: &Value) {
        if given.as_map().is_none() {
            self.say(
                format!("`:{name}` is a map, not {}", given.kind()),
                format!("`:{name} {{:allow [:flows/list :runs/show] :mutations :none}}`"),
            );
            return;
        }
        if self.envelope.workspace.is_some() {
            self.say(
                "`:breyta` and `:workspace` are the same tool: name one",
                None,
            );
            return;
        }
        self.keys(given, WORKSPACE_KEYS, &format!("`:{name}`"));
        let mut tool = WorkspaceTool {
            name,
            allow: Vec::new(),
            mutations: workspace::Mutations::None,
            require_approval: Vec::new(),
        };
        if let Some(mode) = self.given(given, "mutations") {
            self.under("mutations", |reader| {
                match workspace::Mutations::of(&mode) {
                    Some(mode) => tool.mutations = mode,
                    None => reader.say(
                        format!("`:mutations` cannot be `{}`", brief(&mode)),
                        "it is `:none`, `:draft-only`, `:run-only` or `:write`".to_owned(),
                    ),
                }
            });
        }
        if !has(given, "allow") {
            self.say(
                format!("`:{name}` needs `:allow`"),
                "the operations that the model may use: `:allow [:flows/list :runs/show]`"
                    .to_owned(),
            );
        }
        if let Some(allow) = self.given(given, "allow") {
            let mutations = tool.mutations;
            tool.allow = self.operations("allow", &allow, |op| {
                let needed = workspace::refusal(op, mutations)?;
                let message = format!(
                    "`:{op}` changes something, and `:mutations` is `:{}`",
                    mutations.name()
                );
                Some((message, Some(format!("say {needed}"))))
            });
        }
        if let Some(asked) = self.given(given, "require-approval") {
            let (allow, is_open) = (tool.allow.clone(), self.is_open);
            tool.require_approval = self.operations("require-approval", &asked, |op| {
                let is_allowed = is_open || allow.iter().any(|known| **known == *op);
                (!is_allowed).then(|| (format!("`:{op}` is not in `:allow`"), None))
            });
        }
        self.envelope.workspace = Some(tool);
    }

    /// Reads names of operations. `refused` returns what is wrong with an existing operation, if anything.
    fn operations(
        &mut self,
        key: &str,
        given: &Value,
        refused: impl Fn(&str) -> Option<(String, Option<String>)>,
    ) -> Vec<Rc<str>> {
        let mut known = Vec::new();
        self.under(key, |reader| {
            let Some(items) = reader.items(given, "operations") else {
                return;
            };
            for (idx, item) in items.iter().enumerate() {
                if reader.is_unknown_yet(item) {
                    continue;
                }
                let name = id_of(item);
                reader.under(idx, |reader| match workspace::find(&name) {
                    Some(_) => {
                        push(&mut known, &name);
                        if let Some((message, hint)) = refused(&name) {
                            reader.say(message, hint);
                        }
                    }
                    None => {
                        let names = workspace::OPERATIONS.iter().map(|op| op.name);
                        let hint = near(&name, names.clone()).unwrap_or_else(|| {
                            format!(
                                "the operations are {}",
                                keywords(&names.clone().collect::<Vec<_>>())
                            )
                        });
                        reader.say(format!("the workspace has no operation `:{name}`"), hint);
                        reader.respell(&name, names);
                    }
                });
            }
        });
        known
    }

    fn require(&mut self, given: &Value) {
        if given.as_map().is_none() {
            self.say(
                format!("`:require` is a map, not {}", given.kind()),
                "`:require {:tool-names [\"files\"] :steps [:github/open-pr]}`".to_owned(),
            );
            return;
        }
        self.keys(given, REQUIRE_KEYS, "`:require`");
        if let Some(names) = self.given(given, "tool-names") {
            self.under("tool-names", |reader| {
                for (idx, name) in reader
                    .items(&names, "names of tools")
                    .unwrap_or_default()
                    .iter()
                    .enumerate()
                {
                    if reader.is_unknown_yet(name) {
                        continue;
                    }
                    match name_of(name) {
                        Some(name) => reader.envelope.require.tool_names.push(name),
                        None => reader.under(idx, |reader| {
                            reader.say("the name of a tool is a string", None)
                        }),
                    }
                }
            });
        }
        for origin in [Origin::Step, Origin::Agent] {
            if let Some(ids) = self.given(given, origin.key()) {
                self.under(origin.key(), |reader| {
                    let ids = reader.known_ids(&ids, origin);
                    match origin {
                        Origin::Step => reader.envelope.require.steps = ids,
                        Origin::Agent => reader.envelope.require.agents = ids,
                    }
                });
            }
        }
        if let Some(ids) = self.given(given, "mcp") {
            self.under("mcp", |reader| {
                reader.envelope.require.mcp = reader.mcp_ids(&ids)
            });
        }
    }
}

/// Returns the names for models of the tools of an envelope, without those of MCP servers and of called flows.
pub fn tool_names(flow: &Flow, envelope: &Envelope) -> Vec<String> {
    let packaged = envelope.steps.iter().chain(&envelope.agents);
    let packaged = packaged
        .filter_map(|id| flow.packaged_step(id))
        .map(|step| step.tool_name.to_string());
    let built_in = envelope.built_in.iter().map(ToString::to_string);
    let workspace = envelope.workspace.iter().map(|tool| tool.name.to_owned());
    let kit = envelope.kit.iter().map(ToString::to_string);
    built_in
        .chain(workspace)
        .chain(packaged)
        .chain(kit)
        .collect()
}

fn push(list: &mut Vec<Rc<str>>, name: &str) {
    if list.iter().all(|known| **known != *name) {
        list.push(Rc::from(name));
    }
}

fn id_of(value: &Value) -> Rc<str> {
    let name = name_of(value).unwrap_or_else(|| Rc::from(brief(value)));
    Rc::from(name.trim_start_matches(':'))
}

fn keywords(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
    names.join(", ")
}

fn near<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    nearest(name, names).map(|near| match near.contains('/') {
        true => format!("did you mean `:{near}`?"),
        false => format!("did you mean `{near}`?"),
    })
}

fn near_name<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    nearest(name, names).map(|near| format!("did you mean `{near}`?"))
}

fn missing(
    flow: &Flow,
    name: &str,
    origin: Origin,
    found: Option<&Rc<PackagedStep>>,
) -> (String, Option<String>) {
    let key = origin.key();
    if let Some(other) = found {
        let other = other.origin;
        return (
            format!("`:{name}` is a {}, not a {}", other.noun(), origin.noun()),
            Some(format!("put it under `:{}`", other.key())),
        );
    }
    let ids = flow.packaged.iter().filter(|step| step.origin == origin);
    let hint = near(name, ids.map(|step| &*step.id))
        .unwrap_or_else(|| format!("add it to the flow: `:{key} [{{:id :{name} ...}}]`"));
    (
        format!("there is no {} `:{name}`", origin.noun()),
        Some(hint),
    )
}
