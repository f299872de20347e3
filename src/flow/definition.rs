//! What a flow file declares, as data, and how its definition map is read.
//!
//! The body of the flow is a form here: nothing is compiled or looked up outside the file.

mod agents;
mod inputs;
mod invocations;
mod mcp;
mod packaged;
mod reading;
mod schedules;
mod starts;

use std::rc::Rc;

use flowstone_lang::value::{Span, Value};
use flowstone_model::names::name_of;

use crate::libraries::Libraries;
use crate::schedule::Schedule;

pub(crate) use inputs::option_value;
pub use inputs::{ACTIVATION, InputError, activated, coerce_input};
pub use mcp::{McpAdapter, McpToolDefinition, McpTransport, tool_name as mcp_tool_name};
pub use packaged::{Contract, Origin, PackagedStep};
#[cfg(test)]
pub(crate) use reading::KEYS;
pub use reading::{Reading as FlowReading, is_identifier};
pub(crate) use reading::{flow, keywords};
pub use starts::{Concurrency, StartLimits, Starts, wider_limits};

/// A flow, read and checked.
#[derive(Debug, Clone)]
pub struct Flow {
    pub slug: Rc<str>,
    pub name: Option<Rc<str>>,
    pub description: Option<Rc<str>>,
    /// The form under `:flow`, unquoted.
    pub body: Value,
    pub functions: Vec<FlowFunction>,
    /// The entries of `:steps`, followed by those of `:agents`.
    pub packaged: Vec<Rc<PackagedStep>>,
    pub templates: Vec<Template>,
    pub invocations: Vec<Invocation>,
    /// The fields of forms that are filled in once, before the first run; a run finds their values under
    /// `:activation` of its input.
    pub setup: Vec<Input>,
    pub schedules: Vec<Schedule>,
    /// `:requires`, a vector of maps, or nil.
    pub requires: Value,
    /// `:concurrency` and `:limits`.
    pub starts: Starts,
    /// `:llm-providers`, a vector of maps, or nil.
    pub llm_providers: Value,
    /// `:mcp`.
    pub mcp: Vec<Rc<McpAdapter>>,
    /// `:namespaces`: code that flows of the project share.
    pub libraries: Rc<Libraries>,
    /// The whole definition map, or nil for a bare form.
    pub definition: Value,
    /// The hash of the texts of its file and of everything that the file includes, independent of the file's name;
    /// `None` for a flow that is not in a file.
    pub digest: Option<Rc<str>>,
}

impl Flow {
    /// Returns a flow that is only a body: a bare form, or a form entered at a prompt.
    pub fn bare(slug: &str, body: Value) -> Flow {
        Flow {
            slug: slug.into(),
            name: None,
            description: None,
            body,
            functions: Vec::new(),
            packaged: Vec::new(),
            templates: Vec::new(),
            invocations: Vec::new(),
            setup: Vec::new(),
            schedules: Vec::new(),
            requires: Value::Nil,
            starts: Starts::default(),
            llm_providers: Value::Nil,
            mcp: Vec::new(),
            libraries: Rc::default(),
            definition: Value::Nil,
            digest: None,
        }
    }

    /// Returns the id of the manual interface of an invocation, if that interface is turned off. Without a name, it is
    /// that of the default invocation.
    pub fn manual_off(&self, invocation: Option<&str>) -> Option<Rc<str>> {
        let asked = invocation.unwrap_or("default");
        let manual = self.definition.get("interfaces")?.get("manual")?;
        let entry = manual.as_vector()?.iter().find(|entry| {
            let invocation = entry.get("invocation").and_then(name_of);
            invocation.is_some_and(|invocation| &*invocation == asked)
        })?;
        let is_off = entry.get("enabled") == Some(&Value::Bool(false));
        is_off.then(|| entry.get("id").and_then(name_of).unwrap_or_default())
    }

    /// Returns one of `:functions`.
    pub fn function(&self, id: &str) -> Option<&FlowFunction> {
        self.functions.iter().find(|function| &*function.id == id)
    }

    /// Returns one of `:steps` or `:agents`, by its id without the colon.
    pub fn packaged_step(&self, id: &str) -> Option<&Rc<PackagedStep>> {
        self.packaged.iter().find(|step| &*step.id == id)
    }

    /// Returns one of `:templates`.
    pub fn template(&self, id: &str) -> Option<&Template> {
        self.templates.iter().find(|template| &*template.id == id)
    }

    /// Returns the entry of `:requires` for a slot.
    pub fn requirement(&self, slot: &str) -> Option<&Value> {
        let entries = self.requires.as_vector()?;
        entries.iter().find(|entry| {
            entry
                .get("slot")
                .and_then(name_of)
                .is_some_and(|name| *name == *slot)
        })
    }

    /// Returns the invocation of runs that name none: `:default`, or else the only one.
    pub fn default_invocation(&self) -> Option<&Invocation> {
        let named = self
            .invocations
            .iter()
            .find(|entry| &*entry.id == "default");
        named.or(match &self.invocations[..] {
            [only] => Some(only),
            _ => None,
        })
    }
}

/// An entry of `:functions`.
#[derive(Debug, Clone)]
pub struct FlowFunction {
    pub id: Rc<str>,
    /// A form or a code string.
    pub code: Value,
    pub span: Span,
}

/// An entry of `:templates`.
#[derive(Debug, Clone)]
pub struct Template {
    pub id: Rc<str>,
    /// `http-request`, `llm-prompt`, `db-query`, `notification`.
    pub kind: Rc<str>,
    /// The whole entry.
    pub body: Value,
    pub span: Span,
}

/// A per-run input contract.
#[derive(Debug, Clone)]
pub struct Invocation {
    pub id: Rc<str>,
    pub label: Option<Rc<str>>,
    pub inputs: Vec<Input>,
}

/// One input of a run.
#[derive(Debug, Clone)]
pub struct Input {
    pub name: Rc<str>,
    /// One of the documented input types, such as `text` or `number`.
    pub type_: Rc<str>,
    pub required: bool,
    pub label: Option<Rc<str>>,
    pub description: Option<Rc<str>>,
    pub default: Value,
    /// The values that a `:select` accepts; empty if any value is accepted.
    pub options: Vec<Value>,
    pub multiple: bool,
    pub span: Span,
}
