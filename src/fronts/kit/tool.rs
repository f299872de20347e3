//! What a tool of the kit is: one row, from which lists, schemas, routes and commands are made.

use flowstone_flow::step::LocalFuture;
use flowstone_model::token::Scope;
use serde_json::{Map, Value as Json};

use super::context::KitCall;
use super::error::KitError;

/// The arguments of a call, checked against the tool's schema.
pub type Arguments = Map<String, Json>;

/// The answer of a tool: its object, or the reason why it failed.
pub type Answer = Result<Json, KitError>;

/// See [`Tool::check`].
pub type Check =
    for<'a> fn(&'a KitCall<'a>, &'a Arguments) -> LocalFuture<'a, Result<(), KitError>>;

/// A tool for agents that build flows.
///
/// `call` is asynchronous on the engine's thread. A tool is a file with one constant:
///
/// ```text
/// pub const TOOL: Tool = Tool { name: "read_config", ..., call: |cx, arguments| Box::pin(read(cx, arguments)) };
///
/// async fn read(cx: &KitCall<'_>, arguments: Arguments) -> Answer { ... }
/// ```
#[derive(Clone, Copy)]
pub struct Tool {
    pub name: &'static str,
    /// What a model reads about it.
    pub description: &'static str,
    /// The JSON Schema of the arguments, closed at every level and without what the server binds.
    pub input: fn() -> Json,
    /// The JSON Schema of the answer.
    pub output: fn() -> Json,
    /// What the server fills in. Arguments with these names are refused, and a call without one of them fails.
    pub bound: &'static [Bound],
    /// The one object that some clients wrap the arguments in; it is taken away.
    pub wrapper: Option<&'static str>,
    /// Whether it changes nothing that its caller could see.
    pub read_only: bool,
    pub permission: Permission,
    /// The right that a token needs.
    pub scope: Scope,
    /// The time that it has. Every caller around it waits 10 seconds longer.
    pub timeout_ms: u64,
    /// As `timeout_ms`, for a tool whose arguments say how long it waits.
    pub timeout_of: Option<fn(&Arguments) -> u64>,
    /// Whether it is offered without being enabled.
    pub default_on: bool,
    /// How a call inside a test is refused.
    pub in_test: InTest,
    /// Finds what is wrong with a call, so that nobody is asked about one that could not be made. Changes nothing.
    pub check: Option<Check>,
    pub call: for<'a> fn(&'a KitCall<'a>, Arguments) -> LocalFuture<'a, Answer>,
}

/// What the server fills in, so that a model cannot name another target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The flow that the kit is open for.
    Flow,
    /// The session of the caller.
    Session,
    /// The root span of the bound trace.
    Span,
    /// The trace of the run that calls, or of the session's last test.
    Trace,
    /// The workspace of the credential.
    Workspace,
}

impl Bound {
    /// Returns the names of arguments that would set it.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Bound::Flow => &[
                "application_id",
                "flow",
                "slug",
                "target",
                "variant_id",
                "workflow",
                "workflow_id",
                "workflow_variant_id",
            ],
            Bound::Session => &["session", "session_id"],
            Bound::Span => &["span_id"],
            Bound::Trace => &["trace_id"],
            Bound::Workspace => &["project_id", "workspace", "workspace_id"],
        }
    }
}

/// Whether somebody has to agree to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    Allow,
    /// A person agrees to each call.
    Ask,
    /// No call is made. Only settings say this.
    Deny,
}

impl Permission {
    /// Returns the permission of a name in settings and options.
    pub fn named(name: &str) -> Option<Permission> {
        match name {
            "allow" => Some(Permission::Allow),
            "ask" => Some(Permission::Ask),
            "deny" => Some(Permission::Deny),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Permission::Allow => "allow",
            Permission::Ask => "ask",
            Permission::Deny => "deny",
        }
    }
}

/// How a call inside a run of kind `test` is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTest {
    /// It only reads, so it is answered.
    Answered,
    /// `refused_in_test`.
    Refused,
    /// `recursion_refused`: a test does not start tests.
    Recursion,
}

impl Tool {
    /// Tells whether a person completes what the tool only asks for, so that nobody is asked about the call.
    pub fn is_human(&self) -> bool {
        !self.read_only && self.permission == Permission::Allow
    }

    /// Returns the time that a call has, in milliseconds.
    pub fn timeout_ms_of(&self, arguments: &Arguments) -> u64 {
        self.timeout_of
            .map_or(self.timeout_ms, |timeout| timeout(arguments))
    }

    /// Returns what lists show of the tool. `permission` is that of the caller.
    pub fn described(&self, is_enabled: bool, permission: &str) -> Json {
        serde_json::json!({
            "name": self.name,
            "description": self.description,
            "input_schema": (self.input)(),
            "output_schema": (self.output)(),
            "read_only": self.read_only,
            "permission": permission,
            "timeout_ms": self.timeout_ms,
            "enabled": is_enabled,
        })
    }
}
