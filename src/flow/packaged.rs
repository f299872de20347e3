//! Evaluation of packaged steps: the input is checked and turned into the wrapped step's config, and the wrapped step's
//! value into the value of the packaged step. Pure: knows nothing of the execution of the wrapped step.
//!
//! [`tools`] returns a flow's packaged steps as tools for a model. A call of such a tool is a call of `(flow/step
//! :ns/packaged id input)`; see [`by_tool`].

use std::rc::Rc;

use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use crate::definition::{Contract, Flow, PackagedStep};
use crate::schema::{self, Problem};
use crate::step::{Scope, StepContext, StepError, StepSpec, call_code, code_function};

/// A packaged step as a tool for a model.
#[derive(Debug, Clone)]
pub struct PackagedTool {
    pub name: Rc<str>,
    pub description: String,
    /// JSON Schema of its input.
    pub parameters: Json,
    pub step: Rc<PackagedStep>,
}

/// Returns the packaged steps of a flow as tools.
pub fn tools(flow: &Flow) -> Vec<PackagedTool> {
    flow.packaged.iter().map(tool).collect()
}

/// Returns a packaged step as a tool.
pub fn tool(step: &Rc<PackagedStep>) -> PackagedTool {
    let described = step.tool_description.as_ref().or(step.description.as_ref());
    PackagedTool {
        name: step.tool_name.clone(),
        description: described.map_or_else(|| by_itself(step), |text| text.to_string()),
        parameters: match &step.input {
            Some(contract) => {
                let mut parameters = schema::to_json_schema(&contract.schema);
                schema::closed(&mut parameters);
                parameters
            }
            None if step.is_agent() => json!({
                "type": "object",
                "properties": {"task": {
                    "type": "string",
                    "description": "What to do, with all that it takes to do it: the agent sees nothing else of this conversation.",
                }},
                "required": ["task"],
            }),
            None => json!({"type": "object"}),
        },
        step: step.clone(),
    }
}

fn by_itself(step: &PackagedStep) -> String {
    let objective = step.defaults.get("objective").and_then(Value::as_str);
    match objective.filter(|_| step.is_agent()) {
        Some(objective) => {
            format!("Asks another agent, which works independently. Its objective: {objective}")
        }
        None => format!("Performs a `{}` step.", step.kind),
    }
}

/// Computes the configs of wrapped steps from calls of packaged steps, without performing them.
#[derive(Clone)]
pub struct Packager(Rc<Scope>);

impl Packager {
    /// Returns the packager of the run that a step belongs to.
    pub fn of(cx: &StepContext) -> Packager {
        Packager(cx.scope().clone())
    }

    /// Returns the config of the wrapped step.
    ///
    /// # Errors
    /// Fails if the input does not match the schema, or if `:prepare` fails or does not return a map.
    pub fn config(
        &self,
        step: &PackagedStep,
        spec: &'static StepSpec,
        input: &Value,
    ) -> Result<Value, StepError> {
        config(&self.0, (step, spec), input)
    }
}

/// Finds the packaged step that models call by a name.
pub fn by_tool<'f>(flow: &'f Flow, name: &str) -> Option<&'f Rc<PackagedStep>> {
    flow.packaged.iter().find(|step| &*step.tool_name == name)
}

/// Computes the wrapped step's config from an input.
///
/// # Errors
/// Fails if the input does not match the schema, or if `:prepare` fails or does not return a map.
pub fn config(
    scope: &Scope,
    (step, spec): (&PackagedStep, &'static StepSpec),
    given: &Value,
) -> Result<Value, StepError> {
    let input = checked_input(scope, step, given)?;
    let prepared = match &step.prepare {
        Some(code) => {
            let prepared = run(scope, (step, "prepare", code), &input)?;
            if prepared.as_map().is_none() {
                let message = format!(
                    "`:prepare` of `:{}` gives {}, not the config of a `:{}` step",
                    step.id,
                    prepared.kind(),
                    step.kind
                );
                return Err(StepError::config("E0553", message)
                    .hint("it takes the input and returns a map of the wrapped step's options"));
            }
            prepared
        }
        // If the wrapped step has an input of its own, the packaged step's input is passed there; otherwise, the input
        // is the config.
        None => match own_input(spec) {
            Some(key) => Value::map([(Value::keyword(key), over_default(step, key, input))]),
            None => input,
        },
    };
    // Prepared keys override the defaults.
    let maps = [step.defaults.as_map(), prepared.as_map()];
    let entries = maps.into_iter().flatten().flat_map(|map| map.iter());
    let merged = entries.map(|(key, value)| (key.clone(), value.clone()));
    Ok(Value::map(merged))
}

/// Merges the inputs of a call of an agent over its default inputs.
fn over_default(step: &PackagedStep, key: &str, input: Value) -> Value {
    let (Some(own), Some(given), true) = (
        step.defaults.get(key).and_then(Value::as_map),
        input.as_map(),
        step.is_agent(),
    ) else {
        return input;
    };
    let entries = own.iter().chain(given.iter());
    Value::map(entries.map(|(key, value)| (key.clone(), value.clone())))
}

/// Computes a packaged step's value from the wrapped step's value.
///
/// # Errors
/// Fails if `:project-result` fails, or if its value does not match `:output-schema`.
pub fn result(scope: &Scope, step: &PackagedStep, value: Value) -> Result<Value, StepError> {
    let value = match &step.project_result {
        Some(code) => run(scope, (step, "project-result", code), &value)?,
        None => value,
    };
    check_output(scope, step, &value)?;
    Ok(value)
}

/// Checks a value against `:output-schema`, which for a named agent is that of its answer.
///
/// # Errors
/// Fails if the value does not match.
pub fn check_output(scope: &Scope, step: &PackagedStep, value: &Value) -> Result<(), StepError> {
    let Some(contract) = &step.output else {
        return Ok(());
    };
    let content = match step.is_agent() && step.project_result.is_none() {
        // An agent that stopped early has no answer.
        true if value.get("abort?").is_some_and(Value::is_truthy) => return Ok(()),
        true => value.get("content").unwrap_or(&Value::Nil),
        false => value,
    };
    let problems = problems(scope, contract, content);
    if problems.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the result of `:{}` does not match its `:output-schema`: {}",
        step.id,
        schema::explain(&problems)
    );
    Err(StepError::new("E0554", "invalid", message)
        .with("errors", schema::errors(&problems))
        .hint("`:project-result` computes the result from the value of the wrapped step"))
}

fn checked_input(scope: &Scope, step: &PackagedStep, given: &Value) -> Result<Value, StepError> {
    // An item of a `:fanout` contains the type of its step.
    let is_own_type = given
        .get("type")
        .and_then(flowstone_model::names::name_of)
        .is_some_and(|name| *name == *step.id);
    let given = match is_own_type {
        true => {
            let entries = given.as_map().into_iter().flat_map(|map| map.iter());
            let kept = entries.filter(|(key, _)| **key != Value::keyword("type"));
            Value::map(kept.map(|(key, value)| (key.clone(), value.clone())))
        }
        false => given.clone(),
    };
    let Some(contract) = &step.input else {
        return Ok(given);
    };
    let input = schema::decode(&contract.schema, given);
    let problems = problems(scope, contract, &input);
    if problems.is_empty() {
        return Ok(input);
    }
    let message = format!(
        "the input of `:{}` does not match its `:input-schema`: {}",
        step.id,
        schema::explain(&problems)
    );
    Err(StepError::new("E0552", "invalid", message)
        .with("errors", schema::errors(&problems))
        .hint(format!(
            "its input is {}",
            crate::text::brief(&contract.form)
        )))
}

fn problems(scope: &Scope, contract: &Contract, value: &Value) -> Vec<Problem> {
    schema::validate_with(&contract.schema, value, &mut |function, value| {
        let function = code_function(scope, function).map_err(|error| error.message)?;
        let held = call_code(scope, &function, std::slice::from_ref(value));
        held.map(|held| held.is_truthy())
            .map_err(|error| error.message)
    })
}

fn run(
    scope: &Scope,
    (step, key, code): (&PackagedStep, &str, &Value),
    input: &Value,
) -> Result<Value, StepError> {
    let called = code_function(scope, code)
        .and_then(|function| call_code(scope, &function, std::slice::from_ref(input)));
    called.map_err(|error| {
        let message = format!("`:{key}` of `:{}` failed: {}", step.id, error.message);
        StepError { message, ..error }.with("failed-in", Value::keyword(key))
    })
}

/// Tells whether the input of a packaged step becomes the config of the wrapped step as it is.
pub fn input_is_config(step: &PackagedStep, spec: &StepSpec) -> bool {
    step.prepare.is_none() && own_input(spec).is_none()
}

/// Returns the field in which the wrapped step takes an input of its own.
fn own_input(spec: &StepSpec) -> Option<&'static str> {
    let takes = |key: &&str| spec.fields.iter().any(|field| field.name == *key);
    ["inputs", "input"].into_iter().find(takes)
}
