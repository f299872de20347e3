//! The tools of a run: their descriptions for the model and for hooks, and how hooks change them.

use std::rc::Rc;

use flowstone_flow::flow::name_of;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_flow::tools::{BUILT_IN, Envelope};
use flowstone_lang::value::Value;

use super::control::Selection;
use super::notes::facts;
use super::outside::ClientTool;
use super::servers::{Asked, LEFT_OUT, Listed};
use super::tool::{Tool, ToolKind};
use super::{deferred, inputs, tools};
use crate::json;

/// The tools that may be called.
#[derive(Clone, Default)]
pub(super) struct Toolset {
    tools: Vec<Tool>,
    /// Tools whose calls the flow performs.
    client: Vec<Value>,
    /// Tools whose results come from outside, while the loop waits.
    outside: Vec<ClientTool>,
    /// Names of tools that are not offered before the model asks for them.
    deferred: Vec<Rc<str>>,
    /// The servers of `:mcp-tools`.
    servers: Vec<Asked>,
}

impl Toolset {
    /// Returns the tools that the envelope names.
    pub(super) async fn read(cx: &StepContext, envelope: &Envelope) -> Result<Toolset, StepError> {
        Ok(Toolset {
            tools: tools::all(cx, envelope).await?,
            client: envelope.definitions.clone(),
            outside: Vec::new(),
            deferred: Vec::new(),
            servers: Vec::new(),
        })
    }

    /// Adds client tools.
    ///
    /// # Errors
    /// E0836: when a name is taken.
    pub(super) fn add_outside(&mut self, more: Vec<ClientTool>) -> Result<(), StepError> {
        for tool in more {
            self.refuse_taken(&tool.name)?;
            self.outside.push(tool);
        }
        Ok(())
    }

    /// Adds tools of which each needs a name of its own.
    ///
    /// # Errors
    /// E0836: when a name is taken.
    pub(super) fn add_named(&mut self, more: Vec<Tool>) -> Result<(), StepError> {
        for tool in more {
            self.refuse_taken(&tool.name)?;
            self.tools.push(tool);
        }
        Ok(())
    }

    /// Returns the number of tools of the agent itself.
    pub(super) fn count(&self) -> usize {
        self.tools.len()
    }

    /// Adds the tools of servers, from this place on. A server chooses their names, so one whose name is taken is left out; returns
    /// why.
    pub(super) fn add_servers(&mut self, listed: Listed, mut at: usize) -> Vec<String> {
        self.servers.extend(listed.servers);
        let mut left_out = Vec::new();
        for tool in listed.tools {
            if self.knows(&tool.name) {
                left_out.push(format!(
                    "{LEFT_OUT}another tool has its name, `{}`",
                    tool.name
                ));
            } else {
                self.tools.insert(at, tool);
                at += 1;
            }
        }
        left_out
    }

    /// Returns why a tool is unknown, if its server did not list its tools.
    pub(super) fn unlisted(&self, name: &str) -> Option<&str> {
        let mut servers = self.servers.iter();
        let server = servers.find(|it| it.failure.is_some() && name.starts_with(&it.prefix))?;
        server.failure.as_deref().filter(|_| !self.knows(name))
    }

    /// Returns why a server did not list its tools, if there is such a server.
    pub(super) fn first_unlisted(&self) -> Option<&str> {
        self.servers.iter().find_map(|it| it.failure.as_deref())
    }

    /// Tells whether a name of the loop control stands for a tool that may be called: `github_*` for all tools of a server.
    pub(super) fn is_nameable(&self, name: &str) -> bool {
        match name.strip_suffix('*') {
            Some(prefix) => {
                self.servers.iter().any(|it| it.prefix == prefix)
                    || self.all_names().iter().any(|it| it.starts_with(prefix))
            }
            None => self.knows(name) || self.unlisted(name).is_some(),
        }
    }

    fn refuse_taken(&self, name: &str) -> Result<(), StepError> {
        match self.knows(name) {
            false => Ok(()),
            true => Err(StepError::config(
                "E0836",
                format!("the model would have two tools `{name}`"),
            )
            .hint("give one of them another name")),
        }
    }

    /// Tells whether the model may know a tool of this name.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.find(name).is_some() || self.is_client(name) || self.outside(name).is_some()
    }

    /// Returns the client tool of a name.
    pub(super) fn outside(&self, name: &str) -> Option<&ClientTool> {
        self.outside.iter().find(|tool| *tool.name == *name)
    }

    /// Returns the names of all tools.
    pub(super) fn all_names(&self) -> Vec<Rc<str>> {
        let own = self.tools.iter().map(|tool| tool.name.clone());
        let outside = self.outside.iter().map(|tool| tool.name.clone());
        own.chain(outside)
            .chain(self.client.iter().filter_map(client_name))
            .collect()
    }

    /// Adds tools; one whose name is taken is left out.
    pub(super) fn add(&mut self, more: Vec<Tool>) {
        for tool in more {
            if self.find(&tool.name).is_none() {
                self.tools.push(tool);
            }
        }
    }

    /// Defers tools: they are offered when the model has found them. `always`: names of tools that another option uses.
    ///
    /// # Errors
    /// E1304 when a name is not that of a tool; E0836 when the name of the search is taken.
    pub(super) fn defer(
        &mut self,
        given: Option<&Value>,
        always: &[Rc<str>],
    ) -> Result<(), StepError> {
        self.deferred = deferred::names(given, &self.tools, always)?;
        match self.deferred.is_empty() {
            true => Ok(()),
            false => self.add_named(vec![deferred::tool(&self.tools, &self.deferred)?]),
        }
    }

    /// Tells whether a tool is not offered yet.
    pub(super) fn is_deferred(&self, name: &str) -> bool {
        self.deferred.iter().any(|it| **it == *name)
    }

    /// Returns the names of the tools that are not offered yet.
    pub(super) fn deferred(&self) -> &[Rc<str>] {
        &self.deferred
    }

    /// Offers tools from the next turn on.
    pub(super) fn load(&mut self, names: &[Rc<str>]) {
        self.deferred.retain(|name| !names.contains(name));
    }

    pub(super) fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| &*tool.name == name)
    }

    /// Tells whether the flow performs calls of that name.
    pub(super) fn is_client(&self, name: &str) -> bool {
        self.client
            .iter()
            .any(|tool| client_name(tool).as_deref() == Some(name))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.client.is_empty() && self.outside.is_empty()
    }

    /// Tells whether there is a tool of this step type.
    pub(super) fn has_step(&self, step: &str) -> bool {
        self.tools.iter().any(|tool| &*tool.step == step)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter()
    }

    /// Returns `:definitions` of a turn: those of the tools that it offers.
    pub(super) fn definitions(&self, selection: &Selection) -> Vec<Value> {
        let definition = |name: &str, description: &str, parameters: &serde_json::Value| {
            facts([
                ("name", Value::from(name)),
                ("description", Value::from(description)),
                ("parameters", json::from_json(parameters)),
            ])
        };
        let own = self
            .tools
            .iter()
            .filter(|tool| selection.offers(&tool.name) && !self.is_deferred(&tool.name));
        let own = own.map(|tool| definition(&tool.name, &tool.description, &tool.parameters));
        let outside = self.outside.iter();
        let outside = outside.filter(|tool| selection.offers(&tool.name));
        let outside =
            outside.map(|tool| definition(&tool.name, &tool.description, &tool.parameters));
        let client = self
            .client
            .iter()
            .filter(|tool| client_name(tool).is_none_or(|name| selection.offers(&name)));
        own.chain(outside).chain(client.cloned()).collect()
    }

    /// Returns the map for hooks: `{:files {:type :files :name "files" ...}}`.
    pub(super) fn for_hooks(&self) -> Value {
        Value::map(self.tools.iter().map(|tool| {
            let described = facts([
                ("type", Value::keyword(&tool.step)),
                ("name", Value::from(&*tool.name)),
                ("description", Value::from(tool.description.as_str())),
            ]);
            (Value::keyword(&tool.name), described)
        }))
    }

    /// Returns the tools of a map from a hook: known ones stay unchanged, others are created.
    pub(super) fn of_hook(&self, cx: &StepContext, map: &Value) -> Result<Toolset, StepError> {
        let Some(entries) = map.as_map() else {
            let message = format!("`:tools` of a hook is a map, not {}", map.kind());
            return Err(StepError::config("E0842", message)
                .hint("return the `:tools` that the hook got, with what it changes"));
        };
        let mut kept = Vec::new();
        let mut added = Vec::new();
        for (key, given) in entries.iter() {
            let name = given.get("name").and_then(name_of).or_else(|| name_of(key));
            let name = name.unwrap_or_default();
            let step = given.get("type").and_then(name_of);
            let known = self.tools.iter().position(|tool| {
                tool.name == name && step.as_ref().is_none_or(|step| *step == tool.step)
            });
            match known {
                Some(at) => kept.push(at),
                None => added.push(tools::of_hook(cx, &name, given)?),
            }
        }
        // The order is the one that the model knows, whatever the map's order is.
        kept.sort_unstable();
        let mut tools: Vec<Tool> = kept.iter().map(|at| self.tools[*at].clone()).collect();
        added.sort_by(|one: &Tool, other| one.name.cmp(&other.name));
        tools.extend(added);
        Ok(Toolset {
            tools,
            client: self.client.clone(),
            outside: self.outside.clone(),
            deferred: self.deferred.clone(),
            servers: self.servers.clone(),
        })
    }

    /// Returns `:tool-summary`.
    pub(super) fn summary(&self, inputs: &Value) -> Value {
        let enabled = self.tools.iter().map(|tool| {
            let mut described = vec![
                ("tool", Value::keyword(&tool.step)),
                ("name", Value::from(&*tool.name)),
                ("description", Value::from(tool.description.as_str())),
            ];
            if !tool.ops.is_empty() {
                let ops = tool.ops.iter().map(|op| Value::from(op.as_str()));
                described.push(("ops", Value::vector(ops)));
            }
            facts(described)
        });
        let steps = self
            .tools
            .iter()
            .filter(|tool| tool.kind == ToolKind::BuiltIn && BUILT_IN.contains(&&*tool.step));
        let missing = inputs::missing_tools(inputs, self);
        facts([
            ("enabled", Value::vector(enabled)),
            (
                "enabled-steps",
                Value::vector(steps.map(|tool| Value::keyword(&tool.step))),
            ),
            (
                "missing",
                Value::vector(missing.into_iter().map(inputs::missing)),
            ),
        ])
    }

    /// Returns the name by which a packaged step, an agent or an MCP tool is called.
    pub(super) fn name_of(&self, step: &str) -> Option<Rc<str>> {
        let found = self.tools.iter().find(|tool| &*tool.step == step);
        found.map(|tool| tool.name.clone())
    }
}

/// Returns the name in a definition of a tool.
fn client_name(tool: &Value) -> Option<Rc<str>> {
    let inner = tool.get("function").unwrap_or(tool);
    inner.get("name").and_then(name_of)
}
