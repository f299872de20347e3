//! The task of a loop, read from the config of an `:agent`, or of an `:llm` whose tools are executed.

use std::rc::Rc;

use flowstone_flow::step::{StepContext, StepError};
use flowstone_flow::tools::Envelope;
use flowstone_lang::value::Value;

use super::MODEL_FIELDS;
use super::answer::Answer;
use super::approval::Approval;
use super::compact::Compact;
use super::control::Control;
use super::hooks::Hooks;
use super::limits::Limits;
use super::prompt::message;
use super::tools;
use super::toolset::Toolset;
use crate::fields::Fields;
use crate::json::items;
use crate::rendered;

/// The step type that runs the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Agent,
    Llm,
}

/// The task of a loop.
pub(super) struct Config {
    /// The objective as the flow gave it.
    pub given: Value,
    pub objective: Rc<str>,
    pub instructions: Option<Rc<str>>,
    /// A map.
    pub inputs: Value,
    /// The inputs for the model, including the content types of references.
    pub known_inputs: Value,
    pub opening: Opening,
    /// Fields that are passed to each turn unchanged.
    pub model: Vec<(Value, Value)>,
    pub limits: Limits,
    pub envelope: Envelope,
    pub approval: Approval,
    pub hooks: Hooks,
    pub answer: Answer,
    pub control: Control,
    pub compact: Option<Compact>,
    /// Whether the result has the conversation.
    pub returns_messages: bool,
}

/// The beginning of the conversation.
pub(super) enum Opening {
    /// A prompt built from the objective.
    Objective,
    /// A prompt from a template.
    Template,
    /// The messages of an `:llm` step, or of an agent with `:messages`.
    Conversation {
        system: Option<String>,
        messages: Vec<Value>,
    },
}

impl Config {
    /// Reads a config.
    ///
    /// # Errors
    /// When the config is invalid.
    pub(super) fn read(cx: &StepContext, kind: Kind, given: Value) -> Result<Config, StepError> {
        tools::check_depth(cx, &given)?;
        let envelope = tools::envelope(cx, &given)?;
        let fields = Fields::new(&given);
        let objective = fields.text("objective")?.unwrap_or_default().trim();
        let has_messages = fields.has("messages");
        if kind == Kind::Agent && objective.is_empty() && !has_messages {
            return Err(StepError::config("E0840", "the `:objective` is empty")
                .hint("say what the agent is to reach, in plain language")
                .hint("or give it a conversation: `:messages`"));
        }
        if fields.has("approval-answer") && (!has_messages || fields.has("thread")) {
            let message = "`:approval-answer` needs the `:messages` of the result with the request, and no `:thread`";
            return Err(StepError::config("E1305", message)
                .hint("`:return-messages true` gives them; with `:resume :in-place` the agent waits by itself"));
        }
        let opening = match kind {
            Kind::Llm => conversation(cx, &given)?,
            Kind::Agent if has_messages => messages(fields)?,
            Kind::Agent if fields.has("template") => Opening::Template,
            Kind::Agent if fields.has("data") => {
                return Err(StepError::config("E0755", "`:data` needs a `:template`")
                    .hint("what the agent is to know goes into `:inputs`"));
            }
            Kind::Agent => Opening::Objective,
        };
        let model = MODEL_FIELDS.iter().filter_map(|key| {
            let value = fields.get(key)?;
            Some((Value::keyword(key), value.clone()))
        });
        Ok(Config {
            objective: objective.into(),
            instructions: fields.text("instructions")?.map(Rc::from),
            inputs: fields.map("inputs")?.cloned().unwrap_or(Value::map([])),
            known_inputs: Value::map([]),
            opening,
            model: model.collect(),
            limits: Limits::read(fields, &envelope)?,
            approval: Approval::read(fields.get("approval"))?.below(cx.rules())?,
            hooks: Hooks::read(cx, fields)?,
            answer: Answer::read(fields)?,
            control: Control::read(fields)?,
            compact: Compact::read(fields.get("compact"))?,
            returns_messages: fields.bool("return-messages")?.unwrap_or(false),
            envelope,
            given: given.clone(),
        })
    }

    /// Returns the names of tools that must be called before the final answer.
    pub(super) fn required_names(&self, tools: &Toolset) -> Vec<String> {
        let require = &self.envelope.require;
        let names = require.tool_names.iter().map(|name| name.to_string());
        let steps = [&require.steps, &require.agents, &require.mcp];
        let by_step = steps.into_iter().flatten().map(|step| {
            tools
                .name_of(step)
                .map_or_else(|| step.to_string(), |name| name.to_string())
        });
        let mut required = Vec::new();
        for name in names.chain(by_step) {
            if !required.contains(&name) {
                required.push(name);
            }
        }
        required
    }
}

/// Reads `:messages` of an agent. `:instructions` are the system prompt.
fn messages(fields: Fields<'_>) -> Result<Opening, StepError> {
    for key in ["data", "inputs", "objective", "template"] {
        if fields.has(key) {
            let both = format!("`:messages` and `:{key}` cannot both be given");
            return Err(StepError::config("E0840", both)
                .hint("what the agent is to know goes into the messages"));
        }
    }
    let messages = fields.get("messages").and_then(items).unwrap_or_default();
    if messages.is_empty() {
        return Err(StepError::config("E0840", "`:messages` has no message")
            .hint("such as `[{:role :user :content \"Hello\"}]`"));
    }
    Ok(Opening::Conversation {
        system: fields.text("instructions")?.map(str::to_owned),
        messages,
    })
}

/// Reads the messages of an `:llm` step.
fn conversation(cx: &StepContext, given: &Value) -> Result<Opening, StepError> {
    let template = rendered::rendered(cx, Fields::new(given), "llm-prompt")?;
    let given = match &template {
        Some(template) => rendered::merged(template, given),
        None => given.clone(),
    };
    let fields = Fields::new(&given);
    let nothing = Value::map([]);
    let input = Fields::nested(":input", fields.map("input")?.unwrap_or(&nothing))?;
    let pick = |key: &str| fields.get(key).or_else(|| input.get(key));
    let as_text = |value: &Value| match value {
        Value::Text(text) => text.to_string(),
        data => super::notes::plain(data),
    };
    let mut messages = pick("messages").and_then(items).unwrap_or_default();
    if let Some(prompt) = pick("prompt") {
        if !messages.is_empty() {
            let both = "`:prompt` and `:messages` cannot both be given";
            return Err(StepError::config("E0809", both));
        }
        messages.push(message("user", Value::from(as_text(prompt))));
    }
    if messages.is_empty() {
        return Err(StepError::config("E0809", "there is nothing to ask")
            .hint("give it a `:prompt` or `:messages`"));
    }
    Ok(Opening::Conversation {
        system: pick("system").map(as_text),
        messages,
    })
}
