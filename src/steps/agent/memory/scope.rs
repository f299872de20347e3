//! The scope of recalled memories.

use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;

use super::{condition, wrong};
use crate::fields::Fields;

/// The rows of the table that an agent sees.
pub(super) enum Scope {
    /// Rows written by this flow.
    Flow,
    /// Rows of one task, written by any flow.
    Task(String),
    /// All rows.
    Global,
}

impl Scope {
    /// Without `:scope-key`, each run is its own task.
    pub(super) fn read(fields: Fields<'_>, run: &str) -> Result<Scope, StepError> {
        let name = fields.name("scope")?;
        let key = fields.name("scope-key")?;
        let scope = match name.as_deref() {
            None | Some("flow") => Scope::Flow,
            Some("task") => {
                let task = key.as_deref().unwrap_or(run);
                if task.trim().is_empty() {
                    return Err(wrong("`:memory :scope-key` is empty")
                        .hint("it names the task, as in \"review-42\""));
                }
                return Ok(Scope::Task(task.to_owned()));
            }
            Some("global") => Scope::Global,
            Some(other) => {
                return Err(wrong(format!("`:memory` has no `:scope :{other}`"))
                    .hint("there are `:flow`, `:task` and `:global`"));
            }
        };
        match key {
            Some(_) => Err(wrong(
                "`:memory :scope-key` names a task, and the scope is not `:task`",
            )
            .hint("add `:scope :task`, or leave out `:scope-key`")),
            None => Ok(scope),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Scope::Flow => "flow",
            Scope::Task(_) => "task",
            Scope::Global => "global",
        }
    }

    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Scope::Task(key) => Some(key),
            Scope::Flow | Scope::Global => None,
        }
    }

    /// Returns the conditions that select rows.
    pub(super) fn conditions(&self, flow: &str) -> Vec<Value> {
        match self {
            Scope::Flow => vec![condition("flow", "=", Value::from(flow))],
            Scope::Task(key) => vec![
                condition("scope", "=", Value::from("task")),
                condition("scope-key", "=", Value::from(key.as_str())),
            ],
            Scope::Global => Vec::new(),
        }
    }
}
