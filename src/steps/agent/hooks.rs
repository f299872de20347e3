//! `:before-tool-call` and `:after-tool-call`: functions of the flow that may change the tools or end the loop.
//!
//! A hook only computes, so that it gives the same result on resume. One that throws is recorded and ignored.

use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use super::toolset::Toolset;
use crate::fields::Fields;

/// The time of a hook's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Before,
    After,
}

impl When {
    pub(super) fn name(self) -> &'static str {
        match self {
            When::Before => "before-tool-call",
            When::After => "after-tool-call",
        }
    }
}

/// The hooks of an agent.
#[derive(Default)]
pub(super) struct Hooks {
    before: Option<Value>,
    after: Option<Value>,
}

/// The result of a hook.
pub(super) enum Wish {
    GoOn,
    Tools(Toolset),
    Abort { content: Value, reason: String },
}

impl Hooks {
    pub(super) fn read(cx: &StepContext, fields: Fields<'_>) -> Result<Hooks, StepError> {
        let function = |when: When| {
            let given = fields.get(when.name());
            given.map(|given| cx.function(given)).transpose()
        };
        Ok(Hooks {
            before: function(When::Before)?,
            after: function(When::After)?,
        })
    }

    /// Tells whether the flow has no hook.
    pub(super) fn is_empty(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }

    /// Calls a hook with its argument.
    ///
    /// # Errors
    /// The error of the hook, which does not end the loop.
    pub(super) async fn call(
        &self,
        cx: &StepContext,
        when: When,
        tools: &Toolset,
        sees: Value,
    ) -> Result<Wish, StepError> {
        let function = match when {
            When::Before => &self.before,
            When::After => &self.after,
        };
        let Some(function) = function else {
            return Ok(Wish::GoOn);
        };
        let wish = cx.call(function, &[sees]).await?;
        match &wish {
            Value::Nil => Ok(Wish::GoOn),
            Value::Map(_) => read(cx, when, tools, &wish),
            other => Err(not_a_wish(when, other.kind())),
        }
    }
}

fn read(cx: &StepContext, when: When, tools: &Toolset, wish: &Value) -> Result<Wish, StepError> {
    let at = format!("the result of `:{}`", when.name());
    let fields = Fields::nested(&at, wish)?;
    fields.only(&["abort", "abort-reason", "content", "tools"])?;
    if fields.get("abort").is_some_and(Value::is_truthy) {
        let reason = match fields.get("abort-reason") {
            None => "hook".to_owned(),
            Some(reason) => {
                crate::json::name_text(reason).unwrap_or_else(|| crate::text::brief(reason))
            }
        };
        return Ok(Wish::Abort {
            content: fields.get("content").cloned().unwrap_or(Value::Nil),
            reason,
        });
    }
    match fields.get("tools") {
        None => Ok(Wish::GoOn),
        Some(map) => tools.of_hook(cx, map).map(Wish::Tools),
    }
}

fn not_a_wish(when: When, found: &str) -> StepError {
    let message = format!("`:{}` gives {found}", when.name());
    StepError::config("E0842", message)
        .hint("a hook returns nil, `{:tools map}`, or `{:abort true :content \"...\" :abort-reason \"...\"}`")
}
