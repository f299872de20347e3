//! The tools of an agent, from `:available-steps` and the `:tools` envelope.
//!
//! This module creates [`Tool`]s: [`all`] those of the envelope, and [`of_hook`] one that a hook added as `{:type
//! :ns/step :name "..."}`. Arguments are checked in a tool's `call`, before anything is performed.

mod arguments;
mod builtin;
mod called;
mod depth;
pub(crate) mod hidden;
mod http;
mod packaged;
mod shown;
mod workspace;

use std::rc::Rc;

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::flow::name_of;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_flow::tools::{self, BUILT_IN, Envelope, Wrong};
use flowstone_lang::value::Value;

use super::tool::Tool;

pub(crate) use arguments::Shape;
pub(crate) use depth::check_depth;
pub(crate) use http::{
    TOOL as HTTP_TOOL, addresses, of as of_http, parameters, preset, without_preset,
};
pub(crate) use shown::{most_chars, within};

/// Reads the tools of a step's config.
///
/// # Errors
/// E0836: when a named tool does not exist.
pub(crate) fn envelope(cx: &StepContext, config: &Value) -> Result<Envelope, StepError> {
    let (envelope, wrong) = tools::read(cx.flow(), config, false);
    match wrong.into_iter().next() {
        None => Ok(envelope),
        Some(wrong) => Err(refused(wrong)),
    }
}

fn refused(wrong: Wrong) -> StepError {
    let error = StepError::config("E0836", format!("{}: {}", wrong.place(), wrong.message));
    match wrong.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Returns the tools that an envelope names, built-in ones first.
///
/// # Errors
/// E0836: when two have the same name, or one cannot be created.
pub(crate) async fn all(cx: &StepContext, envelope: &Envelope) -> Result<Vec<Tool>, StepError> {
    let (steps, most) = (cx.steps(), most_chars(cx));
    let mut tools: Vec<Tool> = envelope
        .built_in
        .iter()
        .filter_map(|name| builtin::tool(name, steps, most))
        .collect();
    if let Some(given) = &envelope.workspace {
        tools.push(workspace::tool(given, most));
    }
    for id in envelope.steps.iter().chain(&envelope.agents) {
        if let Some(step) = cx.flow().packaged_step(id) {
            tools.push(packaged::tool(cx, step)?);
        }
    }
    tools.extend(super::mcp_tools::of(cx, &envelope.mcp).await?);
    tools.extend(called::of(cx, &envelope.flows).await?);
    let defined = envelope
        .definitions
        .iter()
        .filter_map(|tool| name_of(tool.get("function").unwrap_or(tool).get("name")?));
    let mut names: Vec<(Rc<str>, Rc<str>)> = defined.map(|name| (name.clone(), name)).collect();
    for tool in &tools {
        if let Some((_, other)) = names.iter().find(|(name, _)| *name == tool.name) {
            let message = format!(
                "the model would have two tools `{}`: `:{other}` and `:{}`",
                tool.name, tool.step
            );
            return Err(StepError::config("E0836", message).hint("give the packaged step another name: `:tool {:name \"...\"}`; or the adapter another `:tool-prefix`"));
        }
        names.push((tool.name.clone(), tool.step.clone()));
    }
    Ok(tools)
}

/// Returns the tool that a hook describes as `{:type :ns/step :name "..."}`, under that name.
///
/// # Errors
/// E0836: when the step does not exist.
pub(crate) fn of_hook(cx: &StepContext, name: &str, given: &Value) -> Result<Tool, StepError> {
    let type_ = given.get("type").and_then(name_of).unwrap_or_default();
    let made = match packaged::of_hook(cx.flow(), given) {
        Some(step) => Some(packaged::tool(cx, &step)?),
        None => builtin::tool(type_.trim_start_matches(':'), cx.steps(), most_chars(cx)),
    };
    let Some(tool) = made else {
        let ids = cx
            .flow()
            .packaged
            .iter()
            .map(|step| &*step.id)
            .chain(BUILT_IN.iter().copied());
        let error = StepError::config(
            "E0836",
            format!("a hook adds the tool `{name}` of the type `:{type_}`, which there is not"),
        );
        return Err(match nearest(&type_, ids) {
            Some(near) => error.hint(format!("did you mean `:{near}`?")),
            None => error.hint("the `:type` of a tool is the id of one of the flow's `:steps` or `:agents`, or `:files`, `:search`, `:table`"),
        });
    };
    let description = given
        .get("description")
        .and_then(Value::as_str)
        .map(str::to_owned);
    Ok(Tool {
        name: Rc::from(name),
        description: description.unwrap_or(tool.description),
        ..tool
    })
}
