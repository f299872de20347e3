//! `:tools {:kit [...]}`: tools of the build kit, with which an agent works on the flow of its run.
//!
//! Their names, descriptions and schemas come from a nested `:kit` step, as a call is one, so an agent that continues has the
//! tools that it began with. This module knows no tool. Which calls a person has to agree to, the kit says before each call.

use std::rc::Rc;

use flowstone_flow::step::{NestedRequest, StepContext, StepError};
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::calls::{Call, Refusal};
use super::notes::facts;
use super::tool::{Tool, ToolKind, ToolStep};
use super::tools;
use crate::json::{from_json, items};

/// The step type that performs a tool.
const STEP: &str = "kit";
/// The id of the step that lists the tools.
const LISTING: &str = "kit_tools";
/// The id of the step that returns what a person is asked about a call.
const QUESTION: &str = "kit_question";
/// The key of an error's data with what the model gets.
const OBJECT: &str = "kit";

/// The tools of the kit that an agent has.
#[derive(Default)]
pub(super) struct Kit {
    pub tools: Vec<Tool>,
    /// How a flow is built with them, for the system prompt.
    pub playbook: Option<String>,
}

impl Kit {
    /// Asks the kit for its tools.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub(super) async fn of(cx: &StepContext, names: &[Rc<str>]) -> Result<Kit, StepError> {
        if names.is_empty() {
            return Ok(Kit::default());
        }
        let names = names.iter().map(|name| Value::from(&**name));
        let listing = facts([
            ("op", Value::keyword("list")),
            ("tools", Value::vector(names)),
        ]);
        let listed = cx
            .perform(NestedRequest::new(STEP, LISTING, listing))
            .await?;
        let found = listed.get("tools").and_then(items).unwrap_or_default();
        let most = tools::most_chars(cx);
        let playbook = listed.get("playbook").and_then(Value::as_str);
        Ok(Kit {
            tools: found.iter().map(|listed| tool(listed, most)).collect(),
            playbook: playbook.map(str::to_owned),
        })
    }
}

fn tool(listed: &Value, most: usize) -> Tool {
    let text = |key: &str| {
        let text = listed.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let is_set = |key: &str| listed.get(key).is_some_and(|it| *it == Value::Bool(true));
    let (changes, asks) = (is_set("changes"), is_set("asks"));
    let name = text("name");
    Tool {
        step: format!("{STEP}/{name}").into(),
        kind: ToolKind::Kit,
        description: text("description"),
        parameters: serde_json::from_str(&text("parameters")).unwrap_or_else(|_| json!({})),
        ops: Vec::new(),
        answer: Rc::new(move |_, value| tools::within(value, most)),
        call: {
            let name = name.clone();
            Rc::new(move |given| Ok(step(&name, given, "call")))
        },
        mutates: Rc::new(move |_| changes),
        // The kit itself says so, for each call.
        needs_approval: Rc::new(move |_| asks),
        name: name.into(),
    }
}

/// Returns a step of the kit. What is wrong with arguments the kit says, so that all of its errors have one shape.
fn step(name: &str, given: &Value, op: &str) -> ToolStep {
    let read = given
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let arguments = read.map_or_else(|| given.clone(), |json: Json| from_json(&json));
    ToolStep {
        kind: STEP.into(),
        config: facts([
            ("op", Value::keyword(op)),
            ("tool", Value::from(name)),
            ("arguments", arguments),
        ]),
    }
}

/// What a person is asked before a call.
pub(super) struct Question {
    /// The id of the call.
    pub call: String,
    pub text: String,
    /// What an answer is bound to.
    pub digest: String,
}

/// Returns the step that asks the kit what a person has to agree to.
pub(super) fn question(call: &Call) -> NestedRequest {
    let asked = step(&call.name, &call.arguments, "question");
    NestedRequest::new(STEP, QUESTION, asked.config)
}

/// Reads the answer of that step: nothing for a call that needs nobody. A call that the kit refuses is not asked about either: it
/// is refused again when it is made.
pub(super) fn asked(call: &Call, answer: &Result<Value, StepError>) -> Option<Question> {
    let answer = answer.as_ref().ok()?;
    let is_asked = answer.get("ask").is_some_and(|it| *it == Value::Bool(true));
    let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
    is_asked.then_some(())?;
    Some(Question {
        call: call.id.clone(),
        text: text("text")?,
        digest: text("digest")?,
    })
}

/// Returns what the model gets of a call that failed: the error of the kit. What failed elsewhere is not for the model.
pub(super) fn failed(error: &StepError) -> Value {
    let object = error.data.get(OBJECT).filter(|it| it.as_map().is_some());
    object
        .cloned()
        .unwrap_or_else(|| refusal("internal", "internal error", None))
}

/// Returns what the model gets of a call that was not made, in the shape of the kit's errors.
pub(super) fn refused(given: &Refusal) -> Value {
    let message = given.message();
    match given {
        Refusal::Bad { .. } | Refusal::NotNow { .. } => {
            refusal("invalid_arguments", &message, None)
        }
        Refusal::Guarded { .. } => refusal("permission_denied", &message, None),
        Refusal::Rejected { .. } => refusal(
            "approval_denied",
            &message,
            Some("ask the person what should be different; do not repeat the same call"),
        ),
        Refusal::Repeated { .. } | Refusal::TooMany { .. } => {
            refusal("limit_exceeded", &message, None)
        }
    }
}

fn refusal(code: &str, message: &str, next_step: Option<&str>) -> Value {
    let next_step = next_step.map(|step| ("next_step", Value::from(step)));
    let error = [
        ("code", Value::from(code)),
        ("message", Value::from(message)),
        ("retryable", Value::Bool(false)),
    ];
    facts(error.into_iter().chain(next_step))
}
