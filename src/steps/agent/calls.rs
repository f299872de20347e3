//! The tool calls of a turn: which are performed, and what the model receives for each.
//!
//! A call that cannot be performed, or fails, never ends the agent: the model receives the error.

use std::rc::Rc;

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::flow::name_of;
use flowstone_flow::step::{NestedRequest, NestedResult, StepError};
use flowstone_lang::value::Value;

use super::control::Selection;
use super::limits::Limits;
use super::notes::{facts, plain, shortened};
use super::outside::ClientTool;
use super::tool::{Tool, ToolKind};
use super::toolset::Toolset;
use super::{contents, conversation, kit};
use crate::json::items;

/// Maximum number of concurrent calls of a turn.
pub(super) const AT_ONCE: usize = 8;
/// Maximum length of a result for the model, in characters.
const LONGEST: usize = 200_000;

/// A call that the model requests.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub id: String,
    pub name: String,
    /// The arguments: data, or the model's text if it is not JSON.
    pub arguments: Value,
    /// Whether the answer reached its limit before the arguments were complete.
    pub is_cut: bool,
    /// The arguments that the model gave, if others took their place.
    pub original: Option<Value>,
    /// Whether a person gave the arguments.
    pub is_edited: bool,
}

/// Returns the calls of a turn.
pub(super) fn of_reply(reply: &Value) -> Vec<Call> {
    let calls = reply.get("tool-calls").and_then(items).unwrap_or_default();
    let reason = reply.get("finish-reason").and_then(name_of);
    let at_limit = reason.as_deref() == Some("length");
    calls
        .iter()
        .map(|requested| call(requested, at_limit))
        .collect()
}

fn call(requested: &Value, at_limit: bool) -> Call {
    let text = |key: &str| {
        requested
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let broken = requested.get("arguments-text").and_then(Value::as_str);
    Call {
        id: text("tool-call-id").to_owned(),
        name: text("name").to_owned(),
        arguments: match requested.get("arguments") {
            Some(arguments) if !arguments.is_nil() => arguments.clone(),
            _ => broken.map_or_else(|| Value::map([]), Value::from),
        },
        is_cut: at_limit && broken.is_some(),
        original: None,
        is_edited: false,
    }
}

impl Call {
    /// Returns the call with arguments that the flow gave.
    pub(super) fn changed(&self, arguments: Value) -> Call {
        Call {
            arguments,
            is_cut: false,
            original: self.original.clone().or(Some(self.arguments.clone())),
            ..self.clone()
        }
    }

    /// Returns the call with arguments that a person gave.
    pub(super) fn edited(&self, arguments: Value) -> Call {
        Call {
            is_edited: true,
            ..self.changed(arguments)
        }
    }

    /// Returns the call with its arguments as the model gave them.
    pub(super) fn record(&self) -> Value {
        facts([
            ("tool-call-id", Value::from(self.id.as_str())),
            ("name", Value::from(self.name.as_str())),
            ("arguments", self.arguments.clone()),
        ])
    }

    /// Returns the call in the form for hooks and for the conversation.
    pub(super) fn proposed(&self) -> Value {
        facts([
            ("tool-call-id", Value::from(self.id.as_str())),
            ("name", Value::from(self.name.as_str())),
            (
                "arguments",
                match self.original.as_ref().unwrap_or(&self.arguments) {
                    // Providers accept only data.
                    Value::Text(_) => Value::map([]),
                    arguments => arguments.clone(),
                },
            ),
        ])
    }
}

/// The decision about a call.
pub(super) enum Decision {
    Perform(NestedRequest),
    Refuse(Refusal),
}

/// Why a call is not performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The call itself is wrong.
    Bad { message: String },
    /// The call cannot be performed in this turn, for example because its arguments were cut off.
    NotNow { message: String },
    /// The maximum number of calls is reached.
    TooMany { most: i64 },
    /// The maximum number of equal calls is reached.
    Repeated { most: i64 },
    /// A person rejected it.
    Rejected { comment: Option<String> },
    /// The flow refused it.
    Guarded { reason: String },
}

impl Refusal {
    /// Returns the message for the model.
    pub(super) fn message(&self) -> String {
        match self {
            Refusal::Bad { message } => message.clone(),
            Refusal::NotNow { message } => format!("not performed: {message}"),
            Refusal::TooMany { most } => {
                format!("not performed: this run may make {most} calls of tools, and has made them")
            }
            Refusal::Repeated { most } => format!(
                "not performed: the same call with the same arguments may be made {most} times; its result is the same"
            ),
            Refusal::Rejected { comment: None } => {
                "not performed: a person rejected this call".to_owned()
            }
            Refusal::Rejected {
                comment: Some(comment),
            } => format!("not performed: a person rejected this call: {comment}"),
            Refusal::Guarded { reason } => format!("not performed: {reason}"),
        }
    }

    /// Tells whether the call itself is an error.
    fn is_error(&self) -> bool {
        match self {
            Refusal::Bad { .. } => true,
            Refusal::NotNow { .. }
            | Refusal::TooMany { .. }
            | Refusal::Repeated { .. }
            | Refusal::Rejected { .. }
            | Refusal::Guarded { .. } => false,
        }
    }
}

/// The calls so far, for the limits: refused calls count as well.
#[derive(Default)]
pub(super) struct Tally {
    /// With the tool's step type, if the call was performed.
    asked: Vec<(Call, Option<Rc<str>>)>,
}

impl Tally {
    /// Decides about a call, and counts it.
    pub(super) fn decide(
        &mut self,
        call: &Call,
        (tools, selection): (&Toolset, &Selection),
        limits: &Limits,
    ) -> Decision {
        let is_full = |count: usize, most: i64| i64::try_from(count).is_ok_and(|it| it >= most);
        if is_full(self.asked.len(), limits.calls) {
            let most = limits.calls;
            return Decision::Refuse(Refusal::TooMany { most });
        }
        let is_same = |(other, _): &&(Call, Option<Rc<str>>)| {
            other.name == call.name && other.arguments == call.arguments
        };
        let same = self.asked.iter().filter(is_same).count();
        let made = match (limits.repeated, tools.find(&call.name)) {
            (Some(most), _) if is_full(same, most) => Err(Refusal::Repeated { most }),
            _ if !selection.permits(&call.name) && tools.knows(&call.name) => {
                Err(not_now(selection.forbids()))
            }
            (_, None) => Err(match tools.outside(&call.name) {
                Some(tool) if selection.offers(&call.name) => refused_outside(tool, call),
                Some(_) => inactive(&call.name),
                None if tools.is_client(&call.name) => inactive(&call.name),
                None => bad(unknown(&call.name, tools)),
            }),
            (_, Some(_)) if !selection.offers(&call.name) => Err(inactive(&call.name)),
            (_, Some(_)) if tools.is_deferred(&call.name) => Err(deferred(&call.name)),
            (_, Some(_)) if call.is_cut => Err(cut(call)),
            (_, Some(tool)) => match (tool.call)(&call.arguments) {
                Ok(step) => Ok((tool, step)),
                Err(error) => Err(bad(message_of(&error))),
            },
        };
        let step = made.as_ref().ok().map(|(tool, _)| tool.step.clone());
        self.asked.push((call.clone(), step));
        match made {
            Ok((tool, step)) => {
                let asked = NestedRequest::new(&step.kind, &*tool.name, step.config);
                Decision::Perform(match tool.kind == ToolKind::Memory {
                    true => asked.of_author(),
                    false => asked,
                })
            }
            Err(refusal) => Decision::Refuse(refusal),
        }
    }

    /// Counts a call that a person or the flow refused.
    pub(super) fn reject(&mut self, call: &Call) {
        self.asked.push((call.clone(), None));
    }

    /// Tells whether a tool was called, by its name for the model.
    pub(super) fn has_name(&self, name: &str) -> bool {
        let mut asked = self.asked.iter();
        asked.any(|(call, step)| call.name == name && step.is_some())
    }

    /// Tells whether a tool was called, by its step type.
    pub(super) fn has_step(&self, step: &str) -> bool {
        let mut asked = self.asked.iter();
        asked.any(|(_, known)| known.as_deref() == Some(step))
    }
}

/// Refuses a call whose arguments were truncated.
fn cut(call: &Call) -> Refusal {
    let came = match &call.arguments {
        Value::Text(text) => text.as_str().chars().count(),
        _ => 0,
    };
    not_now(format!(
        "your answer reached its limit of tokens, and the arguments of `{}` were cut off after {came} characters. Write shorter arguments, or do it in several calls",
        call.name
    ))
}

fn bad(message: String) -> Refusal {
    Refusal::Bad { message }
}

fn not_now(message: String) -> Refusal {
    Refusal::NotNow { message }
}

fn unknown(name: &str, tools: &Toolset) -> String {
    let names = tools.all_names();
    let near = nearest(name, names.iter().map(|it| &**it))
        .map(|near| format!("; did you mean `{near}`"))
        .unwrap_or_default();
    match names.is_empty() {
        true => format!("there is no tool `{name}`: this run has no tools"),
        false => format!(
            "there is no tool `{name}`{near}; there are: {}",
            names.join(", ")
        ),
    }
}

/// Returns why a call of a client tool is not handed out.
fn refused_outside(tool: &ClientTool, call: &Call) -> Refusal {
    match tool.checked(call) {
        Err(error) if !call.is_cut => bad(message_of(&error)),
        Ok(_) | Err(_) => cut(call),
    }
}

fn deferred(name: &str) -> Refusal {
    let search = super::deferred::SEARCH;
    not_now(format!(
        "the tool `{name}` is not loaded. Find it with `{search}` first"
    ))
}

fn inactive(name: &str) -> Refusal {
    not_now(format!("the tool `{name}` is not available in this turn"))
}

/// Returns an error as a message for the model.
fn message_of(error: &StepError) -> String {
    let hints = error.hints.iter().map(|hint| format!(" ({hint})"));
    hints.fold(error.message.clone(), |text, hint| text + &hint)
}

/// The outcome of a call.
pub(super) struct Answered {
    pub call: Call,
    pub result: Value,
    /// Images of the result, as parts of a message.
    pub images: Vec<Value>,
    pub success: bool,
    /// Whether the call was not made.
    pub is_refused: bool,
    /// Whether the call was not made although it is not an error: a limit, a person, the flow or the turn prevented it.
    pub is_prevented: bool,
    pub millis: i64,
    /// The usage of an agent behind the tool.
    pub usage: Option<Value>,
    /// The cost of that usage.
    pub cost: Option<Value>,
    /// The approval request of that agent, if it stopped for one.
    pub request: Option<Value>,
}

impl Answered {
    pub(super) fn refused(call: Call, tool: Option<&Tool>, refusal: &Refusal) -> Answered {
        Answered {
            result: match tool.is_some_and(|tool| tool.kind == ToolKind::Kit) {
                true => kit::refused(refusal),
                false => facts([("error", Value::from(refusal.message()))]),
            },
            call,
            images: Vec::new(),
            success: false,
            is_refused: true,
            is_prevented: !refusal.is_error(),
            millis: 0,
            usage: None,
            cost: None,
            request: None,
        }
    }

    /// A call whose result came from outside, or did not come.
    pub(super) fn outside(call: Call, output: Option<Value>) -> Answered {
        let success = output.is_some();
        let nothing = || {
            facts([(
                "error",
                Value::from("no output was submitted for this call"),
            )])
        };
        Answered {
            result: output.unwrap_or_else(nothing),
            call,
            images: Vec::new(),
            success,
            is_refused: false,
            is_prevented: false,
            millis: 0,
            usage: None,
            cost: None,
            request: None,
        }
    }

    pub(super) fn performed(call: Call, tool: Option<&Tool>, performed: NestedResult) -> Answered {
        let millis = (performed.ended_ms - performed.began_ms).max(0);
        let asks = tool.is_some_and(Tool::may_ask);
        match performed.result {
            Ok(value) => {
                // The flow's projection of an agent's answer may lack the usage.
                let own = performed.wrapped.as_ref().unwrap_or(&value);
                let usage = used(own).filter(|_| asks);
                let cost = own.get("cost-usd").filter(|_| usage.is_some()).cloned();
                let reason = own.get("abort-reason").and_then(Value::as_str);
                let is_stopped = asks && reason == Some("approval-required");
                let request = own.get("approval-request").filter(|_| is_stopped).cloned();
                let (value, images) = contents::apart(value);
                Answered {
                    result: match tool {
                        Some(tool) => (tool.answer)(&call.arguments, value),
                        None => value,
                    },
                    call,
                    images,
                    success: true,
                    is_refused: false,
                    is_prevented: false,
                    millis,
                    usage,
                    cost,
                    request,
                }
            }
            Err(error) => Answered {
                result: failed(tool, &error),
                call,
                images: Vec::new(),
                success: false,
                is_refused: false,
                is_prevented: false,
                millis,
                // Failed calls cost as well.
                usage: used(&error.data).filter(|_| asks),
                cost: None,
                request: None,
            },
        }
    }

    /// Replaces the result by another one. Images of the first one are dropped.
    pub(super) fn replace(&mut self, result: Value, success: bool) {
        self.result = result;
        self.images = Vec::new();
        self.success = self.success && success;
    }

    /// Returns the entry of `:tool-calls` of the result.
    pub(super) fn record(&self) -> Value {
        let original = self.call.original.clone();
        let original = original.map(|original| ("proposed-arguments", original));
        let record = [
            ("tool-call-id", Value::from(self.call.id.as_str())),
            ("name", Value::from(self.call.name.as_str())),
            ("arguments", self.call.arguments.clone()),
            ("result", self.result.clone()),
            ("success", Value::Bool(self.success)),
            ("duration-ms", Value::Int(self.millis)),
        ];
        let prevented = self.is_prevented.then(|| ("prevented?", Value::Bool(true)));
        facts(record.into_iter().chain(original).chain(prevented))
    }

    /// Returns the message with the results for the model.
    pub(super) fn message(&self) -> Value {
        let text = within(&self.result, LONGEST);
        let text = Value::from(match self.call.is_edited {
            // The message of the call has the arguments that the model gave.
            true => format!(
                "A person changed the arguments of this call to {}. Its result:\n{text}",
                plain(&self.call.arguments)
            ),
            false => text,
        });
        let content = match self.images.is_empty() {
            true => text,
            false => {
                let text = facts([("type", Value::keyword("text")), ("text", text)]);
                let images = self.images.iter().map(conversation::optional);
                Value::vector([text].into_iter().chain(images))
            }
        };
        let mut result = vec![
            ("role", Value::keyword("tool")),
            ("tool-call-id", Value::from(self.call.id.as_str())),
            ("name", Value::from(self.call.name.as_str())),
            ("content", content),
        ];
        if !self.success {
            result.push(("error?", Value::Bool(true)));
        }
        facts(result)
    }
}

/// Returns the result of a failed call. The answer of a server that refused it is kept.
fn failed(tool: Option<&Tool>, error: &StepError) -> Value {
    if tool.is_some_and(|tool| tool.kind == ToolKind::Kit) {
        return kit::failed(error);
    }
    let mut result = vec![
        ("error", Value::from(message_of(error))),
        ("kind", Value::keyword(error.kind)),
    ];
    if tool.is_some_and(|tool| tool.kind == ToolKind::Http) {
        for key in ["status", "body"] {
            let kept = error.data.get(key).filter(|value| !value.is_nil());
            result.extend(kept.map(|value| (key, value.clone())));
        }
    }
    facts(result)
}

/// Returns the token counts of a model's or agent's result.
fn used(own: &Value) -> Option<Value> {
    let usage = own.get("usage")?;
    usage.get("total-tokens").is_some().then(|| usage.clone())
}

/// Returns a result as text of at most `most` characters.
pub(super) fn within(result: &Value, most: usize) -> String {
    match result {
        Value::Text(text) => shortened(text.as_str(), most),
        data => shortened(&plain(data), most),
    }
}
