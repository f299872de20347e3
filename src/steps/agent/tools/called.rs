//! Flows, graph specs and behaviour trees of the project as tools: a call is a child run, and its result the answer.
//!
//! Name, description and schema come from the file, by a nested step. Its answer is journaled, so a resumed run offers the
//! tools that it offered before, whatever the file is by then.

use std::rc::Rc;

use flowstone_flow::call_flow::KIND;
use flowstone_flow::step::{NestedRequest, StepContext, StepError};
use flowstone_flow::tools::flows::model_name;
use flowstone_lang::value::Value;
use serde_json::json;

use super::super::tool::{Tool, ToolKind, ToolStep};
use super::{Shape, most_chars, within};
use crate::json::{items, to_json};

/// The id of the nested step that asks for the description of a flow.
const DESCRIBING: &str = "flow_contract";

/// Returns the tools of some flows, in their order. Flows are named as `flow/call-flow` takes them.
///
/// # Errors
/// E0836 if the input of a flow cannot be described to a model; the error of the nested step if there is no such flow or
/// it cannot be run.
pub(super) async fn of(cx: &StepContext, flows: &[Rc<str>]) -> Result<Vec<Tool>, StepError> {
    let mut tools = Vec::new();
    for flow in flows {
        let config = Value::map([
            (Value::keyword("flow-slug"), Value::from(&**flow)),
            (Value::keyword("describe"), Value::Bool(true)),
        ]);
        let request = NestedRequest::new(KIND, DESCRIBING, config);
        let contract = cx.perform(request).await?;
        tools.push(tool(flow, &contract, most_chars(cx))?);
    }
    Ok(tools)
}

fn tool(flow: &Rc<str>, contract: &Value, most: usize) -> Result<Tool, StepError> {
    let text = |key: &str| contract.get(key).and_then(Value::as_str);
    let own_name = text("name").unwrap_or(flow);
    let name = model_name(own_name);
    let parameters = contract.get("input-schema");
    let parameters = parameters.and_then(|schema| to_json(schema).ok());
    let parameters = parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let shape = Shape::new(&name, &parameters).map_err(|error| {
        let message = format!("the input of `{flow}` cannot be described to a model: {error}");
        StepError::config("E0836", message)
    })?;
    let keys = contract.get("result-keys").and_then(items);
    let keys: Vec<Value> = keys.unwrap_or_default();
    let called = flow.clone();
    Ok(Tool {
        step: format!("flow/{own_name}").into(),
        kind: ToolKind::Flow,
        description: match text("description") {
            Some(description) => description.to_owned(),
            None => format!("Runs the flow `{own_name}`, and returns its result."),
        },
        ops: Vec::new(),
        call: Rc::new(move |given| call(&called, &shape, given)),
        // What a flow does is not known before it runs.
        mutates: Rc::new(|_| true),
        needs_approval: Rc::new(|_| false),
        answer: Rc::new(move |_, value| within(of_use(value, &keys), most)),
        parameters,
        name,
    })
}

fn call(flow: &Rc<str>, shape: &Shape, given: &Value) -> Result<ToolStep, StepError> {
    let config = [
        (Value::keyword("flow-slug"), Value::from(&**flow)),
        (Value::keyword("input"), shape.read(given)?),
    ];
    Ok(ToolStep {
        kind: KIND.into(),
        config: Value::map(config),
    })
}

/// Returns the part of a result that is of use to a model.
fn of_use(value: Value, keys: &[Value]) -> Value {
    if keys.is_empty() || value.as_map().is_none() {
        return value;
    }
    let kept = keys.iter().filter_map(|key| {
        let name = key.as_str()?;
        Some((Value::keyword(name), value.get(name)?.clone()))
    });
    Value::map(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(keys: &str) -> Value {
        let text = format!(
            "{{:name \"release-checklist\" :description \"Leads through a release.\"
              :input-schema {{:type \"object\" :properties {{:version {{:type \"string\"}}}} :required [\"version\"]}}
              :result-keys {keys}}}"
        );
        flowstone_flow::codec::decode(&text).expect("EDN")
    }

    #[test]
    fn a_flow_is_a_tool_with_its_name_description_and_schema() {
        let tool = tool(&Rc::from("trees/r.yaml"), &contract("[]"), 1000).expect("a tool");
        assert_eq!(&*tool.name, "release_checklist");
        assert_eq!(tool.description, "Leads through a release.");
        assert_eq!(tool.parameters["required"], json!(["version"]));
        let given = flowstone_flow::codec::decode("{:version \"1.4\"}").expect("EDN");
        let step = (tool.call)(&given).expect("a step");
        assert_eq!(&*step.kind, "call-flow");
        let slug = step.config.get("flow-slug").and_then(Value::as_str);
        assert_eq!(slug, Some("trees/r.yaml"));
        assert!((tool.call)(&Value::map([])).is_err());
    }

    #[test]
    fn a_model_gets_the_keys_of_a_result_that_are_of_use() {
        let tool = tool(&Rc::from("r"), &contract("[\"status\"]"), 1000).expect("a tool");
        let value = flowstone_flow::codec::decode("{:status \"complete\" :step-index {}}");
        let answer = (tool.answer)(&Value::Nil, value.expect("EDN"));
        assert_eq!(
            answer.get("status").and_then(Value::as_str),
            Some("complete")
        );
        assert!(answer.get("step-index").is_none());
    }
}
