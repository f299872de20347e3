//! Packaged steps and named agents of the flow as tools: the model sees their input schema, and gets their result.

use std::rc::Rc;

use flowstone_flow::flow::{Flow, PackagedStep, name_of};
use flowstone_flow::packaged::{self, PackagedTool, Packager};
use flowstone_flow::step::{Effect, Step, StepContext, StepError};
use flowstone_flow::tools;
use flowstone_flow::workspace::Mutations;
use flowstone_lang::value::Value;
use serde_json::{Map as JsonMap, Value as Json};

use super::super::tool::{Tool, ToolKind, ToolStep};
use super::arguments::Shape;
use super::shown::{most_chars, within};

/// Steps whose result is an envelope around an answer.
const WITH_ANSWER: &[&str] = &["agent", "llm"];

/// Returns a packaged step or a named agent as a tool.
///
/// # Errors
/// When its input schema cannot be used for a tool.
pub(super) fn tool(cx: &StepContext, step: &Rc<PackagedStep>) -> Result<Tool, StepError> {
    let most = most_chars(cx);
    let PackagedTool {
        name,
        description,
        parameters,
        ..
    } = packaged::tool(step);
    let shape = Shape::new(&name, &parameters).map_err(|error| {
        let message = format!(
            "the `:input-schema` of `:{}` is not a schema for a tool: {error}",
            step.id
        );
        StepError::config("E0836", message)
    })?;
    let shape = Rc::new(shape);
    let call = {
        let (shape, id) = (shape.clone(), step.id.clone());
        let wrapped = find(cx.steps(), &step.kind).map(Step::spec);
        let is_config = wrapped.is_none_or(|spec| packaged::input_is_config(step, spec));
        move |given: &Value| {
            Ok(ToolStep {
                kind: id.clone(),
                config: input(&shape, is_config, given)?,
            })
        }
    };
    Ok(Tool {
        name,
        step: step.id.clone(),
        kind: match step.is_agent() {
            true => ToolKind::Agent,
            false => ToolKind::Packaged,
        },
        description,
        parameters: with_plain_names(&parameters),
        ops: Vec::new(),
        call: Rc::new(call),
        mutates: mutates(cx, step, shape),
        needs_approval: Rc::new(|_| false),
        answer: match WITH_ANSWER.contains(&&*step.kind) {
            true => Rc::new(move |_, value| within(answer(value), most)),
            false => Rc::new(move |_, value| within(value, most)),
        },
    })
}

/// Returns what is useful to another model: the answer, or why there is no answer.
fn answer(value: Value) -> Value {
    let Some(content) = value.get("content").cloned() else {
        return value;
    };
    if !value.get("abort?").is_some_and(Value::is_truthy) {
        return content;
    }
    let keys = ["content", "abort?", "abort-reason", "approval-request"];
    let kept = keys
        .iter()
        .filter_map(|key| Some((Value::keyword(key), value.get(key)?.clone())));
    Value::map(kept)
}

fn mutates(
    cx: &StepContext,
    step: &Rc<PackagedStep>,
    shape: Rc<Shape>,
) -> Rc<dyn Fn(&Value) -> bool> {
    if WITH_ANSWER.contains(&&*step.kind) {
        let changes = delegate_changes((cx.flow(), cx.steps()), &step.defaults, &mut Vec::new());
        // What `:prepare` makes may name other tools.
        let changes = changes || step.prepare.is_some() || persists(&step.defaults);
        return Rc::new(move |_| changes);
    }
    let (packager, step, steps) = (Packager::of(cx), step.clone(), cx.steps().clone());
    Rc::new(move |given| {
        let Some(wrapped) = find(&steps, &step.kind) else {
            return true;
        };
        let is_config = packaged::input_is_config(&step, wrapped.spec());
        let config = input(&shape, is_config, given)
            .and_then(|input| packager.config(&step, wrapped.spec(), &input));
        // A call that fails changes nothing.
        config.is_ok_and(|config| persists(&config) || changes(wrapped.effect(&config)))
    })
}

fn find<'s>(steps: &'s [Box<dyn Step>], kind: &str) -> Option<&'s dyn Step> {
    let mut steps = steps.iter();
    let found = steps.find(|step| step.spec().kind == kind || step.spec().aliases.contains(&kind));
    found.map(|step| &**step)
}

/// Reads the arguments of a call. `is_config`: they become the config of the wrapped step.
fn input(shape: &Shape, is_config: bool, given: &Value) -> Result<Value, StepError> {
    let input = shape.read(given)?;
    if is_config {
        shape.without_options(&input)?;
    }
    Ok(input)
}

/// Tells whether the result of a step is stored: that changes something, whatever the step itself does.
fn persists(config: &Value) -> bool {
    config.get("persist").is_some_and(|given| !given.is_nil())
}

fn changes(effect: Effect) -> bool {
    !matches!(effect, Effect::Pure | Effect::Read)
}

/// Tells whether another agent has a tool that may change something.
fn delegate_changes(
    (flow, steps): (&Flow, &[Box<dyn Step>]),
    config: &Value,
    seen: &mut Vec<Rc<str>>,
) -> bool {
    let (envelope, _) = tools::read(flow, config, false);
    let may_write = envelope.built_in.iter().any(|name| &**name != "search");
    let workspace = envelope
        .workspace
        .as_ref()
        .is_some_and(|tool| tool.mutations != Mutations::None);
    if may_write || workspace || !envelope.mcp.is_empty() || !envelope.flows.is_empty() {
        return true;
    }
    envelope.steps.iter().chain(&envelope.agents).any(|id| {
        if seen.contains(id) {
            return false;
        }
        seen.push(id.clone());
        let Some(step) = flow.packaged_step(id) else {
            return false;
        };
        if persists(&step.defaults) {
            return true;
        }
        if WITH_ANSWER.contains(&&*step.kind) {
            return step.prepare.is_some() || delegate_changes((flow, steps), &step.defaults, seen);
        }
        let wrapped = find(steps, &step.kind);
        wrapped
            .is_none_or(|wrapped| step.prepare.is_some() || changes(wrapped.effect(&step.defaults)))
    })
}

/// Converts names of properties to characters that every provider accepts. The original names are matched by their
/// letters.
fn with_plain_names(schema: &Json) -> Json {
    let plain = |name: &str| -> String {
        let name = name.trim_end_matches(['?', '!']);
        name.chars()
            .map(|char| match char {
                char if char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.') => char,
                _ => '_',
            })
            .collect()
    };
    match schema {
        Json::Object(map) => {
            let entries = map.iter().map(|(key, value)| match (key.as_str(), value) {
                ("properties", Json::Object(properties)) => {
                    let renamed = properties
                        .iter()
                        .map(|(name, value)| (plain(name), with_plain_names(value)));
                    (key.clone(), Json::Object(renamed.collect()))
                }
                ("required", Json::Array(names)) => {
                    let names = names
                        .iter()
                        .filter_map(Json::as_str)
                        .map(|name| Json::from(plain(name)));
                    (key.clone(), Json::Array(names.collect()))
                }
                ("default" | "const" | "enum" | "examples", value) => (key.clone(), value.clone()),
                (_, value) => (key.clone(), with_plain_names(value)),
            });
            Json::Object(entries.collect::<JsonMap<_, _>>())
        }
        Json::Array(items) => Json::Array(items.iter().map(with_plain_names).collect()),
        other => other.clone(),
    }
}

/// Returns the packaged step that a hook names as `:type`.
pub(super) fn of_hook(flow: &Flow, given: &Value) -> Option<Rc<PackagedStep>> {
    let id = given.get("type").and_then(name_of)?;
    flow.packaged_step(id.trim_start_matches(':')).cloned()
}
