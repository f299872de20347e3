//! Tools of servers for agents: the references in `:tools {:mcp [...]}`.
//!
//! A reference is an adapter's id, which stands for the tools in its `:allow-tools`, or an adapter's namespace with the
//! name of a tool, which stands for that tool alone. The description of a tool is taken from the definition. If it has
//! none, a nested step asks the server, so that a resumed run needs no server for it. Only the definition can declare
//! that a tool changes nothing: a server's own description grants no permission.

use std::rc::Rc;

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::flow::{Flow, McpAdapter};
use flowstone_flow::step::{NestedRequest, StepContext, StepError};
use flowstone_flow::tools::mcp::find;
use flowstone_lang::value::Value;
use serde_json::json;

use super::mcp_resources::{self, Server};
use super::tool::{Tool, ToolKind, ToolStep};
use super::tools::{Shape, most_chars, within};
use crate::json::{items, to_json};
use crate::mcp::answer::for_model;
use crate::mcp::asking::QUESTIONS;
use crate::mcp::{SPEC, with_near};

/// The id of the nested step that asks a server for its tools.
const LISTING: &str = "mcp_tools";

/// Returns the tools of the references, in their order, without duplicates. References have no colon.
///
/// # Errors
/// E0830 if a reference does not name an adapter or tool, or names all tools of an adapter without a list of allowed
/// ones; the error of a nested step that asks a server.
pub(crate) async fn of(cx: &StepContext, references: &[Rc<str>]) -> Result<Vec<Tool>, StepError> {
    let mut meant: Vec<(Rc<McpAdapter>, Vec<Rc<str>>)> = Vec::new();
    let mut readable: Vec<Rc<McpAdapter>> = Vec::new();
    for reference in references {
        let (adapter, tools) = resolve(cx.flow(), reference)?;
        let is_whole = find(cx.flow(), reference).is_some_and(|it| it.1.is_none());
        let is_known = readable.iter().any(|it| it.id == adapter.id);
        if is_whole && adapter.has_resources && !is_known {
            readable.push(adapter.clone());
        }
        match meant.iter_mut().find(|(known, _)| known.id == adapter.id) {
            None => meant.push((adapter, tools)),
            Some((_, known)) => {
                for tool in tools {
                    if !known.contains(&tool) {
                        known.push(tool);
                    }
                }
            }
        }
    }
    let mut all = Vec::new();
    for (adapter, tools) in meant {
        let is_known = |tool: &Rc<str>| {
            adapter
                .tool(tool)
                .is_some_and(|it| it.input_schema.is_some())
        };
        let listed = match tools.iter().all(is_known) {
            true => Vec::new(),
            false => ask(cx, &adapter).await?,
        };
        for tool in tools {
            all.push(tool_of((&adapter, &tool), &listed, most_chars(cx))?);
        }
    }
    for adapter in readable {
        let server = Server {
            adapter: &adapter,
            headers: &[],
            name: &|tool| adapter.model_name(tool),
            most: most_chars(cx),
        };
        let is_taken = |name: &str| all.iter().any(|it: &Tool| *it.name == *name);
        let more = mcp_resources::of(&server, is_taken)?;
        all.extend(more);
    }
    Ok(all)
}

/// Returns the adapter of a reference, and the names of its tools.
fn resolve(flow: &Flow, reference: &str) -> Result<(Rc<McpAdapter>, Vec<Rc<str>>), StepError> {
    match (find(flow, reference), reference) {
        (Some((adapter, Some(tool))), _) => Ok((adapter.clone(), vec![tool.into()])),
        (Some((adapter, None)), _) => match &adapter.allow_tools {
            Some(tools) => Ok((adapter.clone(), tools.clone())),
            None if adapter.has_resources => Ok((adapter.clone(), Vec::new())),
            None => Err(StepError::config(
                "E0830",
                format!("the adapter `:{reference}` does not list its tools"),
            )
            .hint("name them: `:allow-tools [\"...\"]`; a server's tools are never all published automatically")
            .hint(format!("or refer to one tool: `:{}/the_tool`", adapter.namespace()))),
        },
        (None, reference) => {
            let message = format!("`:{reference}` is neither an adapter of `:mcp` nor a tool that an adapter allows");
            let known = flow.mcp.iter().map(|it| &*it.id);
            Err(with_near(StepError::config("E0830", message), reference, known, ":"))
        }
    }
}

/// Asks a server for its tools, by a nested step.
async fn ask(cx: &StepContext, adapter: &McpAdapter) -> Result<Vec<Value>, StepError> {
    let config = Value::map([
        (Value::keyword("op"), Value::keyword("list-tools")),
        (Value::keyword("adapter"), Value::keyword(&adapter.id)),
    ]);
    let answer = cx
        .perform(NestedRequest::new(SPEC.kind, LISTING, config))
        .await?;
    let tools = answer.get("tools").and_then(items);
    Ok(tools.unwrap_or_default())
}

fn tool_of(
    (adapter, tool): (&Rc<McpAdapter>, &Rc<str>),
    listed: &[Value],
    most: usize,
) -> Result<Tool, StepError> {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let found = listed
        .iter()
        .find(|it| text(it, "name").as_deref() == Some(tool));
    let known = adapter.tool(tool);
    let own_schema = known.and_then(|it| it.input_schema.clone());
    if found.is_none() && own_schema.is_none() {
        let names: Vec<String> = listed.iter().filter_map(|it| text(it, "name")).collect();
        let near = nearest(tool, names.iter().map(String::as_str)).map(str::to_owned);
        let message = format!("the server of `:{}` has no tool `{tool}`", adapter.id);
        let error = StepError::new("E0830", "not-found", message);
        return Err(match near {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        });
    }
    let schema = own_schema
        .or_else(|| to_json(found?.get("input-schema")?).ok())
        .unwrap_or_else(|| json!({"type": "object"}));
    let own_words = known.and_then(|it| it.description.as_deref().map(str::to_owned));
    let is_read = known.and_then(|it| it.read_only).unwrap_or(false);
    let model_name = adapter.model_name(tool);
    // If the schema is invalid, only the server checks the arguments.
    let shape = Shape::new(&model_name, &schema).or_else(|_| Shape::new(&model_name, &json!({})));
    let shape = shape.map_err(|error| StepError::config("E0830", error))?;
    let (own, name) = (adapter.clone(), tool.clone());
    Ok(Tool {
        name: model_name.into(),
        step: format!("{}/{tool}", adapter.namespace()).into(),
        kind: ToolKind::Mcp,
        description: own_words
            .or_else(|| text(found?, "description"))
            .unwrap_or_default(),
        parameters: schema,
        ops: Vec::new(),
        call: Rc::new(move |given| step((&own, &name), &shape, given, is_read)),
        mutates: Rc::new(move |_| !is_read),
        needs_approval: Rc::new(|_| false),
        answer: Rc::new(move |_, value| within(for_model(&value), most)),
    })
}

/// Returns the nested step of a call, if its arguments match.
fn step(
    (adapter, tool): (&McpAdapter, &str),
    shape: &Shape,
    given: &Value,
    is_read: bool,
) -> Result<ToolStep, StepError> {
    let mut config = vec![
        (Value::keyword("adapter"), Value::keyword(&adapter.id)),
        (Value::keyword("tool"), Value::from(tool)),
        (Value::keyword("arguments"), shape.read(given)?),
    ];
    if is_read {
        config.push((Value::keyword("read-only?"), Value::Bool(true)));
    }
    if !adapter.questions.is_nil() {
        config.push((Value::keyword(QUESTIONS), adapter.questions.clone()));
    }
    Ok(ToolStep {
        kind: SPEC.kind.into(),
        config: Value::map(config),
    })
}
