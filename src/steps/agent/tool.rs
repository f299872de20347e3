//! A tool as the loop sees it: its description for the model, and the nested step that a call performs.
//!
//! Built-in steps, packaged steps, agents, MCP servers and memory all provide tools as values of this type. The loop
//! does not know what is behind one.

use std::rc::Rc;

use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use serde_json::Value as Json;

/// Builds the nested step of a call from its arguments, or returns the error for the model.
pub(crate) type MakeCall = Rc<dyn Fn(&Value) -> Result<ToolStep, StepError>>;

/// Converts a call's arguments and the result of its nested step to the answer for the model.
pub(crate) type MakeAnswer = Rc<dyn Fn(&Value, Value) -> Value>;

/// A tool that the model may call.
#[derive(Clone)]
pub(crate) struct Tool {
    /// Its name for the model, such as `github_open_pr`.
    pub name: Rc<str>,
    /// Its name for flows, without the colon: `files`, `github/open-pr`. It is `:tool` in the tool summary, and `:type`
    /// in the map for hooks.
    pub step: Rc<str>,
    pub kind: ToolKind,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Json,
    /// Its operations, if it has several.
    pub ops: Vec<String>,
    pub call: MakeCall,
    /// Tells whether a call with these arguments changes something.
    pub mutates: Rc<dyn Fn(&Value) -> bool>,
    /// Tells whether a call must be approved, whatever the agent's `:approval` is.
    pub needs_approval: Rc<dyn Fn(&Value) -> bool>,
    /// Converts the arguments and the result of the nested step to the answer for the model.
    pub answer: MakeAnswer,
}

impl Tool {
    /// Tells whether a call may use a model.
    pub(crate) fn may_ask(&self) -> bool {
        matches!(
            self.kind,
            ToolKind::Agent | ToolKind::Flow | ToolKind::Packaged
        )
    }
}

/// The origin of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolKind {
    /// `:files`, `:table`, `:search`.
    BuiltIn,
    /// A packaged step of the flow.
    Packaged,
    /// An agent of the flow.
    Agent,
    /// A flow of the project, a graph spec or a behaviour tree, as a child run.
    Flow,
    /// An entry of `:http-tools`.
    Http,
    /// A tool of the build kit.
    Kit,
    Mcp,
    /// An entry of `:platform-tools`.
    Platform,
    /// `:workspace`, also called `:breyta`.
    Workspace,
    /// A tool of the agent's own memory and plan.
    Memory,
    /// The tool that reads skills.
    Skill,
    /// The tool that loads deferred tools.
    Search,
}

impl ToolKind {
    /// Tells whether the agent itself adds such tools.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, ToolKind::Memory | ToolKind::Skill | ToolKind::Search)
    }
}

/// The nested step of a tool call; its id is the tool's name.
pub(crate) struct ToolStep {
    /// A step type, or a packaged step's id, without the colon.
    pub kind: Rc<str>,
    pub config: Value,
}
