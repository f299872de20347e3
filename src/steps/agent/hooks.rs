//! `:before-tool-call` and `:after-tool-call`: functions of the flow that may change the tools or end the loop.
//!
//! A hook only computes, so that it gives the same result on resume. One that throws is recorded and ignored.
//! `:before-each-call` and `:after-each-call` are read here, too, and called by the loop.

use flowstone_flow::flow::name_of;
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

/// The time of a hook's call for a single call of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    Before,
    After,
}

impl Each {
    pub(super) fn name(self) -> &'static str {
        match self {
            Each::Before => "before-each-call",
            Each::After => "after-each-call",
        }
    }
}

/// What a hook says about a single call.
#[derive(Debug, PartialEq)]
pub(super) enum Ruling {
    Pass,
    /// The call is made with these arguments.
    Arguments(Value),
    /// The call is not made, or its result is withheld, for this reason.
    Refuse(String),
    /// The model gets this result.
    Result(Value),
}

/// The hooks of an agent.
#[derive(Default)]
pub(super) struct Hooks {
    before: Option<Value>,
    after: Option<Value>,
    /// As the flow gave them.
    before_each: Option<Value>,
    after_each: Option<Value>,
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
        let of_each = |when: Each| {
            let given = fields.get(when.name());
            // A function that does not exist is found here, before any call.
            given.map(|given| cx.function(given)).transpose()?;
            Ok::<_, StepError>(given.cloned())
        };
        Ok(Hooks {
            before: function(When::Before)?,
            after: function(When::After)?,
            before_each: of_each(Each::Before)?,
            after_each: of_each(Each::After)?,
        })
    }

    /// Returns the hook for single calls.
    pub(super) fn each(&self, when: Each) -> Option<&Value> {
        match when {
            Each::Before => self.before_each.as_ref(),
            Each::After => self.after_each.as_ref(),
        }
    }

    /// Tells whether the flow has no hook that may change the tools.
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

/// Reads the result of a hook for a single call.
///
/// # Errors
/// E1302 when it is something else.
pub(super) fn ruling(when: Each, given: &Value) -> Result<Ruling, StepError> {
    if given.is_nil() {
        return Ok(Ruling::Pass);
    }
    let known = match when {
        Each::Before => ["arguments", "refuse"],
        Each::After => ["refuse", "result"],
    };
    let wrong = |found: String| {
        let message = format!("`:{}` returned {found}", when.name());
        StepError::config("E1302", message).hint(match when {
            Each::Before => "it returns nil, `{:arguments {...}}` or `{:refuse \"why\"}`",
            Each::After => "it returns nil, `{:result value}` or `{:refuse \"why\"}`",
        })
    };
    let entries = given.as_map().map(|map| map.iter().collect::<Vec<_>>());
    let [(key, value)] = entries.as_deref().unwrap_or_default() else {
        return Err(wrong(crate::text::brief(given)));
    };
    let key = name_of(key).filter(|key| known.contains(&&**key));
    match (key.as_deref(), value) {
        (Some("arguments"), Value::Map(_)) => Ok(Ruling::Arguments((*value).clone())),
        (Some("refuse"), Value::Text(why)) => Ok(Ruling::Refuse(why.as_str().to_owned())),
        (Some("result"), value) => Ok(Ruling::Result((*value).clone())),
        _ => Err(wrong(crate::text::brief(given))),
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
